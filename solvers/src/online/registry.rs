//! Every online allocator by its key.

use std::fmt;

use planlab_dsa::{Backing, OnlineAllocator};

use super::{
    Cupy1Pool, Cupy2Pool, Cupy4Pool, DeviceOnly, MxnetNaive, MxnetRounded, NetworkWise, ProfileGuided,
    ProfileGuidedScoped, PytorchCaching, PytorchExpandable, TensorflowBfc, TensorflowBfcOneRegion, Tlsf,
};

/// An online allocator that can be built over any backing.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The stable name: `cupy2rc1-pool`.
    pub key: &'static str,
    /// A one-line summary.
    pub summary: &'static str,
    /// Its source.
    pub reference: &'static str,
    build: fn(Box<dyn Backing>) -> Box<dyn OnlineAllocator>,
}

impl Entry {
    /// A new, empty allocator.
    #[must_use]
    pub fn build(&self, backing: Box<dyn Backing>) -> Box<dyn OnlineAllocator> {
        (self.build)(backing)
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("key", &self.key).finish_non_exhaustive()
    }
}

macro_rules! entry {
    ($key:literal, $summary:literal, $reference:literal, $allocator:ty) => {
        Entry {
            key: $key,
            summary: $summary,
            reference: $reference,
            build: |backing| Box::new(<$allocator>::new(backing)),
        }
    };
}

const REGISTRY: [Entry; 15] = [
    entry!(
        "network-wise",
        "a device allocation for each request, given back after the propagation",
        "Sekiyama et al. 2018, arXiv:1804.10001",
        NetworkWise
    ),
    entry!(
        "device",
        "a device allocation for each request, given back at once",
        "CUDA Runtime API",
        DeviceOnly
    ),
    entry!("cupy1-pool", "blocks are used again for their exact size", "CuPy 1.0, 2017", Cupy1Pool),
    entry!("cupy2rc1-pool", "best fit by a linear scan of bins", "CuPy 2.0.0rc1, 2017", Cupy2Pool),
    entry!("cupy4-pool", "best fit by a sparse index of sizes, for each stream", "CuPy 4.0, 2018", Cupy4Pool),
    entry!(
        "pytorch-caching",
        "best fit in small and in large segments",
        "PyTorch, CUDACachingAllocator.cpp",
        PytorchCaching
    ),
    entry!(
        "pytorch-caching/expandable",
        "best fit in small and in large ranges that grow by pages",
        "PyTorch, CUDACachingAllocator.cpp, expandable_segments",
        PytorchExpandable
    ),
    entry!(
        "tensorflow-bfc",
        "best fit with coalescing, in regions that double (allow_growth)",
        "TensorFlow 1.x, bfc_allocator.cc",
        TensorflowBfc
    ),
    entry!(
        "tensorflow-bfc/one-region",
        "best fit with coalescing, the high-water mark of one region",
        "TensorFlow 1.x, bfc_allocator.cc",
        TensorflowBfcOneRegion
    ),
    entry!(
        "mxnet-naive",
        "exact size after rounding to pages",
        "MXNet 1.x, pooled_storage_manager.h",
        MxnetNaive
    ),
    entry!(
        "mxnet-rounded",
        "exact size after rounding to powers of two",
        "MXNet 1.x, pooled_storage_manager.h",
        MxnetRounded
    ),
    entry!(
        "tlsf",
        "two-level segregated fit, the high-water mark of one region",
        "Masmano et al. 2004, doi:10.1109/EMRTS.2004.1311009",
        Tlsf
    ),
    entry!(
        "profile-guided",
        "replays a best-fit plan of the last propagation; what differs goes to cupy4-pool",
        "Sekiyama et al. 2018, arXiv:1804.10001, section 4",
        ProfileGuided
    ),
    Entry {
        key: "profile-guided/kinds",
        summary: "the same with a plan for each kind of propagation, all in one segment",
        reference: "Sekiyama et al. 2018, arXiv:1804.10001, section 4",
        build: |backing| Box::new(ProfileGuided::new(backing).with_kinds()),
    },
    entry!(
        "profile-guided/scoped",
        "one plan of all propagations so far, in which a request is known by its operation",
        "Sekiyama et al. 2018, arXiv:1804.10001, section 4",
        ProfileGuidedScoped
    ),
];

/// One allocator for each key, in the order in which lists show them.
///
/// ```
/// let registry = planlab_solvers::online::registry();
/// assert!(registry.iter().any(|entry| entry.key == "cupy2rc1-pool"));
/// ```
#[must_use]
pub fn registry() -> &'static [Entry] {
    &REGISTRY
}

/// The allocator of a key, or `None`.
///
/// ```
/// assert!(planlab_solvers::online::find_allocator("tlsf").is_some());
/// assert!(planlab_solvers::online::find_allocator("tsfl").is_none());
/// ```
#[must_use]
pub fn find_allocator(key: &str) -> Option<Entry> {
    REGISTRY.into_iter().find(|entry| entry.key == key)
}

/// The keys of the [`registry`], in its order.
#[must_use]
pub fn keys() -> Vec<&'static str> {
    REGISTRY.iter().map(|entry| entry.key).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn keys_are_unique_and_found() {
        let keys = keys();
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
        assert!(keys.into_iter().all(|key| find_allocator(key).is_some_and(|entry| entry.key == key)));
    }
}
