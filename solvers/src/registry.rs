//! Every planner by its key.

use planlab_dsa::Planner;

use crate::placement::approximation::{Boxing, Gergov, Shelves};
use crate::placement::baseline::Bump;
use crate::placement::exact::Exact;
use crate::placement::flow::MincostFlow;
use crate::placement::greedy::{
    BestFitGap, Executorch, ExecutorchClosest, FirstFit, GreedyByBreadth, GreedyBySize, OneFlow,
    OneFlowInsertion, OneFlowOrder, Somas, TfliteArena, TflmGreedy, Tvm, Xla,
};
use crate::placement::search::{Annealing, BlockBuilding, HillClimbTvm, HillClimbVela, Lns, Tabu};
use crate::placement::sharing::{
    Means, MxnetSharing, PatentFreeList, SharedObjectsByBreadth, SharedObjectsBySize, SharedObjectsInOrder,
    SharedObjectsSizeDistance,
};
use crate::placement::skyline::{BestFit, BestFitReference};
use crate::placement::{Order, Portfolio, Scaled};

/// A digest of the sources of this crate and of the contract: the version of every planner here. 64 hexadecimal digits;
/// equal for equal sources.
pub const SOURCE_DIGEST: &str = env!("PLANLAB_SOURCE_DIGEST");

/// A planner by its key.
struct Entry {
    key: &'static str,
    /// `None` if this build does not include it.
    build: Option<fn() -> Box<dyn Planner>>,
}

macro_rules! entry {
    ($key:literal, $planner:expr) => {
        Entry { key: $key, build: Some(|| Box::new($planner)) }
    };
}

/// A planner that needs a feature of this crate.
macro_rules! optional {
    ($feature:literal, $key:literal, $planner:expr) => {
        Entry {
            key: $key,
            #[cfg(feature = $feature)]
            build: Some(|| Box::new($planner)),
            #[cfg(not(feature = $feature))]
            build: None,
        }
    };
}

const BASELINE: &[Entry] = &[entry!("bump", Bump)];

const GREEDY: &[Entry] = &[
    entry!("first-fit/input", FirstFit::new(Order::Input)),
    entry!("first-fit/start", FirstFit::new(Order::Start)),
    entry!("first-fit/end", FirstFit::new(Order::End)),
    entry!("first-fit/size", FirstFit::new(Order::Size)),
    entry!("first-fit/area", FirstFit::new(Order::Area)),
    entry!("first-fit/width", FirstFit::new(Order::Width)),
    entry!("first-fit/load", FirstFit::new(Order::Load)),
    entry!("first-fit/overlaps", FirstFit::new(Order::Overlaps)),
    entry!("first-fit/sections", FirstFit::new(Order::Sections)),
    entry!("best-fit-gap/input", BestFitGap::new(Order::Input)),
    entry!("best-fit-gap/start", BestFitGap::new(Order::Start)),
    entry!("best-fit-gap/end", BestFitGap::new(Order::End)),
    entry!("best-fit-gap/size", BestFitGap::new(Order::Size)),
    entry!("best-fit-gap/area", BestFitGap::new(Order::Area)),
    entry!("best-fit-gap/width", BestFitGap::new(Order::Width)),
    entry!("best-fit-gap/load", BestFitGap::new(Order::Load)),
    entry!("best-fit-gap/overlaps", BestFitGap::new(Order::Overlaps)),
    entry!("best-fit-gap/sections", BestFitGap::new(Order::Sections)),
    entry!("greedy-by-size", GreedyBySize),
    entry!("greedy-by-breadth", GreedyByBreadth),
    entry!("somas/many-objects", Somas::many_objects()),
    entry!("somas/single-object", Somas::single_object()),
    entry!("somas/best", Somas::best()),
    entry!("somas/best/published", Somas::best_as_published()),
    entry!(
        "oneflow/mem-size-first-compact",
        OneFlow::new(OneFlowOrder::MemSizeFirst, OneFlowInsertion::Compact)
    ),
    entry!(
        "oneflow/mem-size-first-non-compact",
        OneFlow::new(OneFlowOrder::MemSizeFirst, OneFlowInsertion::NonCompact)
    ),
    entry!(
        "oneflow/lifetime-first-compact",
        OneFlow::new(OneFlowOrder::LifetimeFirst, OneFlowInsertion::Compact)
    ),
    entry!(
        "oneflow/lifetime-first-non-compact",
        OneFlow::new(OneFlowOrder::LifetimeFirst, OneFlowInsertion::NonCompact)
    ),
    entry!("oneflow/time-line-compact", OneFlow::new(OneFlowOrder::TimeLine, OneFlowInsertion::Compact)),
    entry!(
        "oneflow/time-line-non-compact",
        OneFlow::new(OneFlowOrder::TimeLine, OneFlowInsertion::NonCompact)
    ),
    entry!(
        "oneflow/mem-volume-first-compact",
        OneFlow::new(OneFlowOrder::MemVolumeFirst, OneFlowInsertion::Compact)
    ),
    entry!(
        "oneflow/mem-volume-first-non-compact",
        OneFlow::new(OneFlowOrder::MemVolumeFirst, OneFlowInsertion::NonCompact)
    ),
    entry!("oneflow/best", OneFlow::best()),
    entry!(
        "oneflow/mem-volume-first-compact/published",
        OneFlow::new(OneFlowOrder::MemVolumeFirst, OneFlowInsertion::Compact).with_truncated_volume(true)
    ),
    entry!(
        "oneflow/mem-volume-first-non-compact/published",
        OneFlow::new(OneFlowOrder::MemVolumeFirst, OneFlowInsertion::NonCompact).with_truncated_volume(true)
    ),
    entry!("oneflow/best/published", OneFlow::best().with_truncated_volume(true)),
    entry!("tflite-arena", TfliteArena::default()),
    entry!("tflm-greedy", TflmGreedy),
    entry!("tvm/by-size", Tvm::by_size()),
    entry!("tvm/by-conflicts", Tvm::by_conflicts()),
    entry!("xla/temporal", Xla::temporal()),
    entry!("xla/spatial", Xla::spatial()),
    entry!("xla/best", Xla::best()),
    entry!("executorch", Executorch::default()),
    entry!("executorch/closest", ExecutorchClosest::default()),
];

const SKYLINE: &[Entry] = &[entry!("best-fit", BestFit), entry!("best-fit/reference", BestFitReference)];

const SHARING: &[Entry] = &[
    entry!("shared-objects/by-size", SharedObjectsBySize),
    entry!("shared-objects/by-breadth", SharedObjectsByBreadth),
    entry!("shared-objects/in-order", SharedObjectsInOrder),
    entry!("shared-objects/size-distance", SharedObjectsSizeDistance),
    entry!("mxnet-sharing", MxnetSharing::default()),
    entry!("mxnet-sharing/in-place-only", MxnetSharing::default().with_means(Means::InPlace)),
    entry!("mxnet-sharing/sharing-only", MxnetSharing::default().with_means(Means::Sharing)),
    entry!("mxnet-sharing/published", MxnetSharing::default().with_whole_bytes(true)),
    entry!("patent-free-list", PatentFreeList),
];

const FLOW: &[Entry] = &[entry!("mincost-flow", MincostFlow)];

const APPROXIMATION: &[Entry] = &[
    entry!("gergov", Gergov::default()),
    entry!("gergov/squeezed", Gergov::default().with_squeeze(true)),
    entry!("boxing", Boxing::default().with_shelves(Shelves::Rows)),
    entry!("boxing/published", Boxing::default().with_shelves(Shelves::Classes)),
];

const SEARCH: &[Entry] = &[
    entry!("hill-climb/tvm", HillClimbTvm),
    entry!("hill-climb/vela", HillClimbVela),
    entry!("annealing", Annealing),
    entry!("tabu", Tabu),
    entry!("lns", Lns),
    entry!("block-building", BlockBuilding),
];

const EXACT: &[Entry] = &[entry!("exact", Exact::default())];

const PORTFOLIO: &[Entry] = &[entry!("portfolio", Portfolio), entry!("scaled", Scaled::default())];

const MILP: &[Entry] = &[
    optional!("mip", "mip/cbc", crate::milp::Mip::cbc()),
    optional!("mip", "mip/highs", crate::milp::Mip::highs()),
];

const CP: &[Entry] = &[optional!("cp", "cp/pumpkin", crate::cp::CpPumpkin::default())];

/// Every planner, by family, in the order in which lists show them. A family is a folder or a file of this crate.
const FAMILIES: &[(&str, &[Entry])] = &[
    ("baseline", BASELINE),
    ("greedy", GREEDY),
    ("skyline", SKYLINE),
    ("sharing", SHARING),
    ("flow", FLOW),
    ("approximation", APPROXIMATION),
    ("search", SEARCH),
    ("exact", EXACT),
    ("portfolio", PORTFOLIO),
    ("milp", MILP),
    ("cp", CP),
];

fn entries() -> impl Iterator<Item = &'static Entry> {
    FAMILIES.iter().flat_map(|(_, entries)| *entries)
}

/// Keys of existing planners that this build does not include.
#[must_use]
pub fn absent() -> Vec<&'static str> {
    entries().filter(|entry| entry.build.is_none()).map(|entry| entry.key).collect()
}

/// One planner for each key, in the order in which lists show them.
///
/// ```
/// let keys: Vec<_> = planlab_solvers::registry().iter().map(|p| p.descriptor().key).collect();
/// assert!(keys.contains(&"first-fit/size".into()));
/// ```
#[must_use]
pub fn registry() -> Vec<Box<dyn Planner>> {
    entries().filter_map(|entry| entry.build).map(|build| build()).collect()
}

/// The planner of a key, or `None`.
///
/// ```
/// assert!(planlab_solvers::planner("bump").is_some());
/// assert!(planlab_solvers::planner("bmup").is_none());
/// ```
#[must_use]
pub fn planner(key: &str) -> Option<Box<dyn Planner>> {
    entries().find(|entry| entry.key == key).and_then(|entry| entry.build).map(|build| build())
}

/// The family of the planner of a key: `greedy`, `exact`, ...; `None` if there is no such planner.
///
/// ```
/// assert_eq!(planlab_solvers::family("best-fit"), Some("skyline"));
/// ```
#[must_use]
pub fn family(key: &str) -> Option<&'static str> {
    let has_it = |(_, entries): &&(&str, &[Entry])| entries.iter().any(|entry| entry.key == key);
    FAMILIES.iter().find(has_it).map(|(family, _)| *family)
}

/// The keys of the [`registry`], in its order.
#[must_use]
pub fn keys() -> Vec<String> {
    entries().filter(|entry| entry.build.is_some()).map(|entry| entry.key.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn keys_are_unique_and_found() {
        let keys = keys();
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
        for key in &keys {
            assert_eq!(planner(key).expect("in the registry").descriptor().key, key.as_str());
        }
    }

    #[test]
    fn the_digest_is_64_hexadecimal_digits() {
        assert_eq!(SOURCE_DIGEST.len(), 64);
        assert!(SOURCE_DIGEST.chars().all(|c| c.is_ascii_hexdigit()));
    }
}
