//! The memory planner of MXNet on placement instances, with a search for the match range.
//!
//! The steps at which buffers begin or end are the nodes of a graph: a step makes the buffers that begin at
//! it and reads those whose last step it is. [`BlockSharing`] plans that graph with match ranges of 1, 2, 4, 8
//! and 16. The blocks are stacked, and the lowest of the five plans is kept.
//!
//! # References
//!
//! 1. T. Chen et al., *MXNet: a flexible and efficient machine learning library for heterogeneous distributed
//!    systems*, 2015, arXiv:1512.01274, and the note *Optimizing memory consumption in deep learning* of its
//!    documentation (sharing, in place, colours).
//! 2. NNVM, `PlanMemory` with `NNVM_AUTO_SEARCH_MATCH_RANGE`.
//!
//! # Complexity
//!
//! O(n log n) for each match range.
//!
//! # Deviations from the public code
//!
//! - *Default: repaired.* A block is within the range if it has at least the size of the buffer over the factor. The
//!   public code rounds that down to whole bytes, so that plans depend on the unit of the sizes:
//!   [`MxnetSharing::with_whole_bytes`] is the published rule, `mxnet-sharing/published`.
//! - An in-place permission is used if both buffers have the same size, as published, and the same alignment. A
//!   buffer that is live for one step never takes the place of another, since no node reads it.
//! - A buffer that begins at the last step of another does not take its block without a permission: both are live
//!   at that step.
//! - One colour: an instance says which pairs to keep apart, not which steps may run in parallel.

use planlab_dsa::{BufferId, Descriptor, Halt, Honours, InPlace, Instance, Plan, Planner, Run};

use super::block_sharing::{BlockSharing, SharedBlocks};
use super::graph::SharingGraph;
use crate::placement::sharing::objects::{HONOURS, stack_objects};

/// Blocks by reference counts, as MXNet shares them; keys `mxnet-sharing`, `mxnet-sharing/published`,
/// `mxnet-sharing/in-place-only` and `mxnet-sharing/sharing-only`.
#[derive(Clone, Copy, Debug, Default)]
pub struct MxnetSharing {
    whole_bytes: bool,
    means: Means,
}

/// The means of sharing that a plan may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Means {
    /// Both.
    #[default]
    Both,
    /// A buffer takes the place of an input that it may overwrite; no block is reused. The key is
    /// `mxnet-sharing/in-place-only`.
    InPlace,
    /// Free blocks are reused; no buffer overwrites an input. The key is `mxnet-sharing/sharing-only`.
    Sharing,
}

impl MxnetSharing {
    /// Whether the least size of a block within the range is rounded down to whole bytes, as in the public code;
    /// the key is `mxnet-sharing/published` then. Default: no.
    #[must_use]
    pub const fn with_whole_bytes(mut self, yes: bool) -> Self {
        self.whole_bytes = yes;
        self
    }

    /// Sets the means of sharing. With only one of them, the least size of a block is exact. Default: both.
    #[must_use]
    pub const fn with_means(mut self, means: Means) -> Self {
        self.means = means;
        self
    }

    const fn key(self) -> (&'static str, &'static str) {
        match (self.means, self.whole_bytes) {
            (Means::Both, false) => (
                "mxnet-sharing",
                "blocks shared by reference counts within a match range (1 to 16, the best kept)",
            ),
            (Means::Both, true) => (
                "mxnet-sharing/published",
                "blocks shared by reference counts within a match range in whole bytes (1 to 16, the best kept)",
            ),
            (Means::InPlace, _) => (
                "mxnet-sharing/in-place-only",
                "buffers overwrite inputs by reference counts; no block is used again",
            ),
            (Means::Sharing, _) => (
                "mxnet-sharing/sharing-only",
                "blocks shared by reference counts within a match range (1 to 16, the best kept), nothing in place",
            ),
        }
    }
}

/// The match ranges that are tried.
pub(super) const MATCH_RANGES: [u64; 5] = [1, 2, 4, 8, 16];
/// The match range with which no block is reused.
const NO_SHARING: [u64; 1] = [0];

impl Planner for MxnetSharing {
    fn descriptor(&self) -> Descriptor {
        let (key, summary) = self.key();
        Descriptor {
            key: key.into(),
            summary: summary.into(),
            honours: Honours { in_place: self.means != Means::Sharing, ..HONOURS },
            reference: "Chen et al. 2015, arXiv:1512.01274, and NNVM's PlanMemory",
            complexity: "n log n",
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let rules = BlockSharing::default().with_exact_range(!self.whole_bytes || self.means != Means::Both);
        match self.means {
            Means::Both => try_match_ranges(run, rules, &MATCH_RANGES),
            Means::InPlace => try_match_ranges(run, rules, &NO_SHARING),
            Means::Sharing => try_match_ranges(run, rules.with_in_place(false), &MATCH_RANGES),
        }
    }
}

/// Offers the plan of each match range.
pub(super) fn try_match_ranges(run: &mut Run<'_>, rules: BlockSharing, ranges: &[u64]) -> Result<(), Halt> {
    let instance = run.instance();
    let graph = SharingGraph::of_instance(instance);
    for &range in ranges {
        let shared = rules.with_match_range(range).plan_until(&graph, |work| run.tick(work))?;
        run.offer(plan_of(instance, &shared))?;
    }
    Ok(())
}

fn plan_of(instance: &Instance, shared: &SharedBlocks) -> Plan {
    let block_of: Vec<u32> =
        shared.block_of.iter().map(|block| block.expect("no buffer is external")).collect();
    let pair = |&(input, output): &(u32, u32)| InPlace {
        input: BufferId::new(input),
        output: BufferId::new(output),
    };
    Plan { offsets: stack_objects(instance, &block_of), in_place: shared.in_place.iter().map(pair).collect() }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::{Shape, instances, scaled_and_shifted};
    use planlab_dsa::{Budget, Bytes, execute};
    use proptest::prelude::*;

    use super::*;
    use crate::placement::testing::{in_place, test_buffer, test_instance};

    #[test]
    fn each_means_alone_saves_less() {
        let instance = Instance::builder()
            .buffers([test_buffer(8, 0, 2), test_buffer(8, 1, 4), test_buffer(8, 5, 6)])
            .in_place([in_place(0, 1)])
            .build()
            .expect("valid");
        let height = |means| {
            let planner = MxnetSharing::default().with_means(means);
            execute(&planner, &instance, Budget::default(), 0).height().expect("a plan").get()
        };
        assert_eq!([Means::InPlace, Means::Sharing, Means::Both].map(height), [16, 16, 8]);
    }

    #[test]
    fn whole_bytes_depend_on_the_unit_and_the_default_does_not() {
        // 33 over 16 is more than 2: a block of 2 bytes is within the widest range only in whole bytes.
        let height = |unit: u64, whole_bytes: bool| {
            let instance = test_instance(&[(2 * unit, 0, 1), (33 * unit, 1, 2)]);
            let planner = MxnetSharing::default().with_whole_bytes(whole_bytes);
            execute(&planner, &instance, Budget::default(), 0).height().map(Bytes::get)
        };
        assert_eq!([height(1, false), height(100, false)], [Some(35), Some(3500)]);
        assert_eq!([height(1, true), height(100, true)], [Some(33), Some(3500)]);
        let key = |yes: bool| MxnetSharing::default().with_whole_bytes(yes).descriptor().key;
        assert_eq!([key(false), key(true)], ["mxnet-sharing", "mxnet-sharing/published"]);
    }

    /// The contents of a block, and their last step; `None` if the block is free.
    #[derive(Clone)]
    struct Block {
        size: u64,
        holds: Option<u32>,
        released: usize,
    }

    /// The rule in words, step by step, over a plain list of blocks.
    fn literal(instance: &Instance, range: u64) -> u64 {
        let last = |id: u32| instance.buffers()[id as usize].live.end().get() - 1;
        let first = |id: u32| instance.buffers()[id as usize].live.start().get();
        let size = |id: u32| instance.buffers()[id as usize].size.get();
        let mut blocks: Vec<Block> = Vec::new();
        let mut turn = 0;
        for step in 0..instance.horizon().get() {
            let ids = || 0..u32::try_from(instance.len()).expect("few");
            let mut made: Vec<u32> = Vec::new();
            let mut handed: Vec<u32> = Vec::new();
            for pair in instance.in_place() {
                let (input, output) = (pair.input.get(), pair.output.get());
                let fits = first(output) == step && last(output) > step && size(input) == size(output);
                let block = blocks.iter_mut().find(|block| block.holds == Some(input));
                if let (true, false, Some(block)) = (fits, made.contains(&output), block) {
                    block.holds = Some(output);
                    made.push(output);
                    handed.push(input);
                }
            }
            let mut rest: Vec<u32> = ids().filter(|&id| first(id) == step && !made.contains(&id)).collect();
            rest.sort_by_key(|&id| std::cmp::Reverse((size(id), id)));
            for id in rest {
                let bytes = size(id);
                let rank = |block: &Block| {
                    let is_smaller = block.size < bytes;
                    let turn = if is_smaller { usize::MAX - block.released } else { block.released };
                    (is_smaller, block.size.abs_diff(bytes), turn)
                };
                let within = |block: &&mut Block| {
                    block.holds.is_none() && block.size * range >= bytes && bytes * range >= block.size
                };
                match blocks.iter_mut().filter(within).min_by_key(|block| rank(block)) {
                    Some(block) => {
                        *block = Block { size: bytes.max(block.size), holds: Some(id), released: 0 }
                    }
                    None => blocks.push(Block { size: bytes, holds: Some(id), released: 0 }),
                }
            }
            let ended = |id: &u32| last(*id) == step && !handed.contains(id);
            let read = ids().filter(|&id| first(id) < step).filter(ended);
            let mut unread: Vec<u32> = ids().filter(|&id| first(id) == step).filter(ended).collect();
            unread.sort_unstable();
            for id in read.chain(unread) {
                let block = blocks.iter_mut().find(|block| block.holds == Some(id)).expect("it is live");
                turn += 1;
                (block.holds, block.released) = (None, turn);
            }
        }
        blocks.iter().map(|block| block.size).sum()
    }

    proptest! {
        #[test]
        fn the_best_plan_is_that_of_the_plain_rule(
            instance in instances(
                Shape::plain_buffers().with_max_buffers(60).with_max_steps(40).with_max_size(40).with_in_place(true),
            ),
        ) {
            let best = MATCH_RANGES.iter().map(|&range| literal(&instance, range)).min().expect("five");
            let height = execute(&MxnetSharing::default(), &instance, Budget::default(), 0).height();
            prop_assert_eq!(height, Some(Bytes::new(best)));
            // Whole bytes are exact if every range divides the sizes.
            let large = scaled_and_shifted(&instance, 16, 0).expect("small");
            let published = MxnetSharing::default().with_whole_bytes(true);
            let height = execute(&published, &large, Budget::default(), 0).height();
            prop_assert_eq!(height, Some(Bytes::new(16 * best)));
        }
    }
}
