//! What both forms of XLA's dumps say in the same words: alignment, and allocations outside of every heap.

use crate::formats::import::Dropped;
use crate::formats::import::gather::{Rule, Tally, common_alignment};

pub(crate) const NAME: &str = "XLA";
/// Offsets are multiples of this on a CPU, sizes are not.
const ALIGNMENT: u64 = 64;
/// The same on a GPU; no device that XLA knows needs more.
const MOST_ALIGNMENT: u64 = 256;

/// How XLA aligned buffers, by its own offsets.
pub(crate) fn rule(offsets: impl Iterator<Item = u64>) -> Rule {
    Rule {
        bytes: common_alignment(offsets, ALIGNMENT, MOST_ALIGNMENT),
        rounds: false,
        why: "XLA's own offsets are",
    }
}

/// What is left out of every trace, and why.
const OUTSIDE: &str = "outside the heap that XLA plans";

planlab_dsa::named_enum! {
    /// What an allocation outside of every heap is for.
    pub(crate) enum Kind {
        Parameter = "allocations of parameters",
        Constant = "allocations of constants",
        ThreadLocal = "allocations of threads",
        Output = "allocations of outputs",
        Other = "other allocations",
    }
}

/// Allocations outside of every heap, by what they are for.
#[derive(Default)]
pub(crate) struct Outside([Tally; Kind::ALL.len()]);

impl Outside {
    pub(crate) fn add_bytes(&mut self, kind: Kind, bytes: u64) {
        self.0[kind as usize].add_bytes(bytes);
    }

    pub(crate) fn as_dropped(&self) -> Vec<Dropped> {
        let tallies = self.0.iter().zip(Kind::ALL);
        tallies.filter_map(|(tally, kind)| tally.as_dropped(kind.name(), OUTSIDE)).collect()
    }
}
