//! The memory cost of each way of sharing: the table of the framework note, and plans with offsets for the same
//! lifetimes.
//!
//! The strategies share whole blocks, within a match range. For comparison, the table has the load and the height of a
//! plan that gives offsets to the same entries. An entry is live from the node that makes it to the last node that
//! reads it, both included, or to the end if the caller holds it. An entry that takes the place of another is merged
//! with it.
//!
//! # References
//!
//! 1. The note *Optimizing memory consumption in deep learning* and `example/memcost` of MXNet's documentation.
//!
//! # Complexity
//!
//! That of [`BlockSharing`] and of the planner, for each strategy.

use planlab_dsa::{Budget, Buffer, Bytes, Instance, InstanceError, LiveRange, Planner, execute};

use super::block_sharing::BlockSharing;
use super::graph::SharingGraph;

planlab_dsa::named_enum! {
    /// A column of the table in the note.
    pub enum Strategy {
        /// A block for each entry.
        NoOptimisation = "no optimisation",
        /// Entries take the places of inputs that no later node needs.
        InPlace = "in-place",
        /// Blocks are reused.
        Sharing = "sharing",
        /// Both.
        Both = "both",
        /// Both, for the forward pass only.
        ForwardOnly = "forward only",
    }
}

impl Strategy {
    const fn is_in_place(self) -> bool {
        matches!(self, Self::InPlace | Self::Both | Self::ForwardOnly)
    }

    fn sharing_rules(self) -> BlockSharing {
        let range = if matches!(self, Self::NoOptimisation | Self::InPlace) { 0 } else { 16 };
        BlockSharing::default().with_in_place(self.is_in_place()).with_match_range(range)
    }
}

/// The memory cost of a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryCost {
    /// The strategy.
    pub strategy: Strategy,
    /// The sum of all blocks in bytes.
    pub bytes: Bytes,
    /// The number of blocks.
    pub blocks: usize,
    /// The load of the same lifetimes: a bound on plans with offsets.
    pub load: Bytes,
    /// The height of a plan with offsets for them; `None` if the planner found none.
    pub height: Option<Bytes>,
}

/// The table of the note for a graph: a row for each strategy, the last one only if there is a graph of the forward
/// pass. `planner` finds the offsets.
///
/// # Errors
///
/// As [`entry_lifetimes`].
pub fn memory_cost(
    train: &SharingGraph,
    forward: Option<&SharingGraph>,
    planner: &dyn Planner,
) -> Result<Vec<MemoryCost>, InstanceError> {
    let graph_of = |strategy| if strategy == Strategy::ForwardOnly { forward } else { Some(train) };
    let graphs = Strategy::ALL.into_iter().filter_map(|strategy| Some((strategy, graph_of(strategy)?)));
    let row = |(strategy, graph): (Strategy, &SharingGraph)| {
        let shared = strategy.sharing_rules().plan(graph);
        let instance = entry_lifetimes(graph, strategy.is_in_place())?;
        let height = execute(planner, &instance, Budget::default(), 0).height();
        let (bytes, blocks) = (shared.total_bytes(), shared.blocks.len());
        Ok(MemoryCost { strategy, bytes, blocks, load: instance.load().bytes, height })
    };
    graphs.map(row).collect()
}

/// The entries of a graph as buffers that are live at nodes. With `in_place`, an entry that takes the place of an
/// input is one buffer with it. External entries and entries of 0 bytes are left out.
///
/// # Errors
///
/// [`InstanceError`] if there are more than 2^32 - 1 buffers.
pub fn entry_lifetimes(graph: &SharingGraph, in_place: bool) -> Result<Instance, InstanceError> {
    // Without a match range, a block holds only what is made in one place.
    let shared = BlockSharing::default().with_in_place(in_place).with_match_range(0).plan(graph);
    let horizon = u32::try_from(graph.nodes().len()).expect("a graph has fewer than 2^32 nodes");
    let mut lives: Vec<Option<(u32, u32)>> = vec![None; shared.blocks.len()];
    let mut extend = |entry: u32, end: u32, at: u32| {
        if let Some(block) = shared.block_of[entry as usize] {
            let life = lives[block as usize].get_or_insert((at, end));
            *life = (life.0.min(at), life.1.max(end));
        }
    };
    for (at, node) in (0..).zip(graph.nodes()) {
        node.reads.iter().for_each(|&entry| extend(entry, at + 1, at));
        for &entry in &node.writes {
            let is_held = graph.entries()[entry as usize].held > 0;
            extend(entry, if is_held { horizon } else { at + 1 }, at);
        }
    }
    let buffer = |(&bytes, life): (&Bytes, Option<(u32, u32)>)| {
        let (start, end) = life?;
        (bytes > Bytes::ZERO).then(|| Buffer::new(bytes, LiveRange::new(start, end).expect("at a node")))
    };
    Instance::from_buffers(shared.blocks.iter().zip(lives).filter_map(buffer).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::greedy::GreedyBySize;
    use crate::placement::sharing::blocks::graph::testing::{entry, node};

    #[test]
    fn a_chain_in_place_is_one_buffer() {
        let mut entries = [8, 8, 4, 6].map(entry);
        entries[2].held = 1;
        let nodes = vec![
            node(&[], &[0], &[]),
            node(&[0], &[1], &[(0, 0, false)]),
            node(&[1], &[2], &[]),
            node(&[2], &[3], &[]),
        ];
        let graph = SharingGraph::new(entries.to_vec(), nodes).expect("valid");
        let lives = |in_place| -> Vec<(u32, u32)> {
            entry_lifetimes(&graph, in_place).expect("few").buffers().iter().map(|b| b.live.into()).collect()
        };
        assert_eq!(lives(false), [(0, 2), (1, 3), (2, 4), (3, 4)]);
        assert_eq!(lives(true), [(0, 3), (2, 4), (3, 4)]);
        let rows = memory_cost(&graph, None, &GreedyBySize).expect("few");
        let costs: Vec<[u64; 3]> = rows
            .iter()
            .map(|row| [row.bytes.get(), row.load.get(), row.height.expect("a plan").get()])
            .collect();
        assert_eq!(costs, [[26, 16, 20], [18, 12, 12], [16, 16, 20], [12, 12, 12]]);
    }
}
