//! Shares blocks by reference counts, node by node: the memory planner of MXNet.
//!
//! At each node, in execution order:
//! 1. an entry with an in-place permission takes the place of its input if no other node needs the input any more
//!    and if both have the same size;
//! 2. the other entries of the node, the largest first, each take a free block whose size is within a factor, the
//!    *match range*, of their own: the smallest that holds the entry, else the largest of the smaller ones, which
//!    grows, else a new one;
//! 3. each input has one reader less; a block without readers is free, and so is an entry that no node reads.
//!
//! The memory is the sum of all blocks. With colours, a block passes only between nodes of one colour, so that
//! sharing does not serialise chains of operations that may run in parallel.
//!
//! # References
//!
//! 1. T. Chen et al., *MXNet: a flexible and efficient machine learning library for heterogeneous distributed
//!    systems*, 2015, arXiv:1512.01274, and the note *Optimizing memory consumption in deep learning* of its
//!    documentation.
//! 2. MXNet 0.11 and NNVM, `PlanMemory`; `solvers/tests/it/mxnet_totals.rs` has the totals of their rule on their
//!    graphs.
//!
//! # Complexity
//!
//! O((entries + reads) log entries), and O(colours * (nodes + reads)) for the colours.
//!
//! # Deviations from the public code
//!
//! None with the default rules. Equal sizes stand for equal shapes and element types.

use planlab_dsa::Bytes;

use super::colours::node_colours;
use super::free_lists::Blocks;
use super::graph::{Node, SharingGraph};

/// The rules for sharing blocks. The defaults are those of MXNet: match range 16, in place, one colour.
///
/// ```
/// use planlab_dsa::Bytes;
/// use planlab_solvers::placement::sharing::{BlockSharing, Entry, Node, SharingGraph};
///
/// // A chain of three: the third takes the block of the first.
/// let entry = |bytes| Entry { bytes: Bytes::new(bytes), external: false, held: 0 };
/// let node = |reads: &[u32], write| Node { reads: reads.to_vec(), writes: vec![write], ..Node::default() };
/// let nodes = vec![node(&[], 0), node(&[0], 1), node(&[1], 2)];
/// let graph = SharingGraph::new(vec![entry(64), entry(64), entry(32)], nodes)?;
/// assert_eq!(BlockSharing::default().plan(&graph).total_bytes(), Bytes::new(128));
/// assert_eq!(BlockSharing::default().with_match_range(0).plan(&graph).total_bytes(), Bytes::new(160));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSharing {
    match_range: u64,
    in_place: bool,
    colours: u32,
    largest_first: bool,
    exact_range: bool,
}

impl Default for BlockSharing {
    fn default() -> Self {
        Self { match_range: 16, in_place: true, colours: 1, largest_first: true, exact_range: false }
    }
}

/// The block of each entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedBlocks {
    /// The block of each entry; `None` for external entries.
    pub block_of: Vec<Option<u32>>,
    /// The size of each block.
    pub blocks: Vec<Bytes>,
    /// The pairs of an input and the entry that takes its place.
    pub in_place: Vec<(u32, u32)>,
}

impl SharedBlocks {
    /// The sum of all blocks, in bytes.
    #[must_use]
    pub fn total_bytes(&self) -> Bytes {
        Bytes::new(self.blocks.iter().map(|block| block.get()).sum())
    }
}

impl BlockSharing {
    /// The largest factor between the sizes of a block and of an entry that takes it; 0: blocks are never reused.
    /// Default: 16.
    #[must_use]
    pub const fn with_match_range(mut self, range: u64) -> Self {
        self.match_range = range;
        self
    }

    /// Whether entries may take the places of inputs. Default: yes.
    #[must_use]
    pub const fn with_in_place(mut self, yes: bool) -> Self {
        self.in_place = yes;
        self
    }

    /// The number of colours, at least 1. More than one for each node have no effect. Default: 1.
    #[must_use]
    pub const fn with_colours(mut self, colours: u32) -> Self {
        self.colours = if colours == 0 { 1 } else { colours };
        self
    }

    /// Whether the entries of a node take their blocks by size, the largest first and the last of equals first;
    /// otherwise in the order of the node. Default: yes.
    #[must_use]
    pub const fn with_largest_first(mut self, yes: bool) -> Self {
        self.largest_first = yes;
        self
    }

    /// Whether the least size of a block that an entry may take, its own size over the factor, is exact; otherwise
    /// it is rounded down to whole bytes, as in the public code. Default: no.
    #[must_use]
    pub const fn with_exact_range(mut self, yes: bool) -> Self {
        self.exact_range = yes;
        self
    }

    /// Plans a graph.
    #[must_use]
    pub fn plan(&self, graph: &SharingGraph) -> SharedBlocks {
        let Ok(shared) = self.plan_until(graph, |_| Ok::<(), std::convert::Infallible>(()));
        shared
    }

    /// Plans a graph; calls `tick` at every node, which may stop the run.
    pub(super) fn plan_until<E>(
        &self,
        graph: &SharingGraph,
        mut tick: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<SharedBlocks, E> {
        let count = self.colours_of(graph);
        let mut planning = Planning::new(self, graph, count);
        for (node, &colour) in graph.nodes().iter().zip(&node_colours(graph, count)) {
            tick(1 + (node.reads.len() + node.writes.len()) as u64)?;
            planning.run_node(node, colour);
        }
        let Planning { block_of, blocks, in_place, .. } = planning;
        Ok(SharedBlocks { block_of, blocks: blocks.sizes.into_iter().map(Bytes::new).collect(), in_place })
    }

    /// The number of colours that can be used: each but the last has a node of its own.
    fn colours_of(&self, graph: &SharingGraph) -> u32 {
        let most = graph.nodes().len() + 1;
        u32::try_from(most).map_or(self.colours, |most| self.colours.min(most))
    }

    /// The sizes of free blocks that an entry may take.
    const fn size_window(&self, bytes: u64) -> (u64, u64) {
        let range = self.match_range;
        let least = if self.exact_range { bytes.div_ceil(range) } else { bytes / range };
        (least, bytes.saturating_mul(range))
    }
}

struct Planning<'g> {
    rules: &'g BlockSharing,
    graph: &'g SharingGraph,
    /// The number of reads and holds of each entry.
    references: Vec<u64>,
    /// The number of reads and holds that are left of the entries in each block.
    readers: Vec<u64>,
    block_of: Vec<Option<u32>>,
    blocks: Blocks,
    in_place: Vec<(u32, u32)>,
}

impl<'g> Planning<'g> {
    fn new(rules: &'g BlockSharing, graph: &'g SharingGraph, colours: u32) -> Self {
        Self {
            rules,
            graph,
            references: graph.reference_counts(),
            readers: Vec::new(),
            block_of: vec![None; graph.entries().len()],
            blocks: Blocks::new(colours as usize),
            in_place: Vec::new(),
        }
    }

    fn run_node(&mut self, node: &Node, colour: u32) {
        if self.rules.in_place {
            self.hand_over(node);
        }
        for entry in self.unplaced_entries(node) {
            self.place_entry(entry, colour);
        }
        for &entry in &node.reads {
            if let Some(block) = self.block_of[entry as usize] {
                self.readers[block as usize] -= 1;
                self.release_unread(block, colour);
            }
        }
        for &entry in &node.writes {
            if let Some(block) = self.block_of[entry as usize] {
                self.release_unread(block, colour);
            }
        }
    }

    fn hand_over(&mut self, node: &Node) {
        let mut taken = vec![false; node.reads.len()];
        for pair in &node.in_place {
            let (input, output) = (node.reads[pair.read], node.writes[pair.write]);
            let Some(block) = self.block_of[input as usize] else { continue };
            let is_last = self.readers[block as usize] == 1;
            let is_alone = is_last || pair.identity;
            if is_alone && !taken[pair.read] && self.may_replace(input, output) {
                taken[pair.read] = true;
                self.block_of[output as usize] = Some(block);
                self.readers[block as usize] += self.references[output as usize];
                self.in_place.push((input, output));
            }
        }
    }

    fn may_replace(&self, input: u32, output: u32) -> bool {
        let (from, to) = (&self.graph.entries()[input as usize], &self.graph.entries()[output as usize]);
        let is_unplaced = !to.external && self.block_of[output as usize].is_none();
        is_unplaced && self.references[output as usize] > 0 && from.bytes == to.bytes
    }

    /// The entries of a node that have no block yet, in the order in which they take one.
    fn unplaced_entries(&self, node: &Node) -> Vec<u32> {
        let needs_block = |entry: &u32| {
            !self.graph.entries()[*entry as usize].external && self.block_of[*entry as usize].is_none()
        };
        let mut entries: Vec<u32> = node.writes.iter().copied().filter(needs_block).collect();
        if self.rules.largest_first {
            entries.reverse();
            entries.sort_by_key(|&entry| std::cmp::Reverse(self.graph.entries()[entry as usize].bytes));
        }
        entries
    }

    fn place_entry(&mut self, entry: u32, colour: u32) {
        let bytes = self.graph.entries()[entry as usize].bytes.get();
        let block = if self.rules.match_range == 0 {
            self.blocks.open_block(bytes)
        } else {
            self.blocks.request_block(colour, bytes, self.rules.size_window(bytes))
        };
        self.readers.resize(self.blocks.sizes.len(), 0);
        self.readers[block as usize] = self.references[entry as usize];
        self.block_of[entry as usize] = Some(block);
    }

    fn release_unread(&mut self, block: u32, colour: u32) {
        if self.readers[block as usize] == 0 {
            self.blocks.release_block(colour, block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::sharing::Entry;
    use crate::placement::sharing::blocks::graph::testing::{entry, node};

    fn plan(entries: Vec<Entry>, nodes: Vec<Node>) -> (Vec<Option<u32>>, Vec<u64>) {
        let graph = SharingGraph::new(entries, nodes).expect("valid");
        let shared = BlockSharing::default().plan(&graph);
        (shared.block_of, shared.blocks.into_iter().map(Bytes::get).collect())
    }

    #[test]
    fn an_input_is_overwritten_only_by_its_last_reader() {
        let chain = |reads_again: &[u32]| {
            let nodes =
                vec![node(&[], &[0], &[]), node(&[0], &[1], &[(0, 0, false)]), node(reads_again, &[2], &[])];
            plan(vec![entry(8); 3], nodes).0
        };
        assert_eq!(chain(&[1]), [Some(0), Some(0), Some(1)]);
        assert_eq!(chain(&[0, 1]), [Some(0), Some(1), Some(2)]);
    }

    /// The trap of the note: B is read by a sigmoid that could take its place, and by F, which runs later.
    #[test]
    fn a_sigmoid_does_not_overwrite_what_another_operation_still_reads() {
        // A -> B -> C = sigmoid(B) -> E, and F reads B and E.
        let sigmoid = (0, 0, false);
        let nodes = vec![
            node(&[], &[0], &[]),
            node(&[0], &[1], &[sigmoid]),
            node(&[1], &[2], &[sigmoid]),
            node(&[2], &[3], &[sigmoid]),
            node(&[1, 3], &[4], &[]),
        ];
        let mut entries = vec![entry(8); 5];
        entries[3].held = 1;
        let (blocks, _) = plan(entries.clone(), nodes.clone());
        assert_eq!(blocks[1], blocks[0], "nothing else reads A");
        assert_ne!(blocks[2], blocks[1], "F needs B after C is made");
        assert_eq!(blocks[3], blocks[2]);
        // Without F the chain needs one block.
        assert_eq!(plan(entries, nodes[..4].to_vec()).1, [8]);
    }

    #[test]
    fn an_identity_shares_with_other_readers() {
        let nodes = vec![
            node(&[], &[0], &[]),
            node(&[0], &[1], &[(0, 0, true)]),
            node(&[0, 1], &[2], &[]),
            node(&[2], &[3], &[]),
        ];
        assert_eq!(plan(vec![entry(8); 4], nodes), (vec![Some(0), Some(0), Some(1), Some(0)], vec![8, 8]));
    }

    #[test]
    fn external_and_held_entries_are_never_shared() {
        let mut entries = vec![entry(8); 4];
        entries[0].external = true;
        entries[1].held = 1;
        let nodes = vec![node(&[0], &[1], &[(0, 0, false)]), node(&[1], &[2], &[]), node(&[2], &[3], &[])];
        assert_eq!(plan(entries, nodes), (vec![None, Some(0), Some(1), Some(2)], vec![8, 8, 8]));
    }

    #[test]
    fn what_nobody_reads_is_free_at_once() {
        let nodes = vec![node(&[], &[0, 1], &[]), node(&[1], &[2], &[])];
        // The larger one is placed first; entry 2 takes its block.
        assert_eq!(
            plan(vec![entry(9), entry(4), entry(9)], nodes),
            (vec![Some(0), Some(1), Some(0)], vec![9, 4])
        );
    }

    #[test]
    fn colours_beyond_the_nodes_take_no_memory_and_change_nothing() {
        let nodes = vec![node(&[], &[0], &[]), node(&[0], &[1], &[]), node(&[0], &[2], &[])];
        let nodes = [nodes, vec![node(&[1, 2], &[3], &[]), node(&[3], &[4], &[])]].concat();
        let graph = SharingGraph::new(vec![entry(8); 5], nodes).expect("valid");
        let plan = |colours: u32| BlockSharing::default().with_colours(colours).plan(&graph);
        assert_eq!(BlockSharing::default().with_colours(u32::MAX).colours_of(&graph), 6);
        assert_eq!(plan(u32::MAX), plan(6));
        assert_eq!(plan(0), plan(1));
        let none = SharingGraph::new(Vec::new(), Vec::new()).expect("valid");
        assert_eq!(BlockSharing::default().with_colours(u32::MAX).plan(&none).total_bytes(), Bytes::ZERO);
    }

    #[test]
    fn whole_bytes_and_the_exact_range_differ_at_the_edge() {
        // 5 / 2 is 2.5: a block of 2 bytes is within 2 whole bytes, but not within the factor.
        let entries = vec![entry(2), entry(1), entry(5)];
        let nodes = vec![node(&[], &[0], &[]), node(&[0], &[1], &[]), node(&[1], &[2], &[])];
        let graph = SharingGraph::new(entries, nodes).expect("valid");
        let rules = BlockSharing::default().with_match_range(2);
        assert_eq!(rules.plan(&graph).total_bytes(), Bytes::new(5 + 1));
        assert_eq!(rules.with_exact_range(true).plan(&graph).total_bytes(), Bytes::new(2 + 1 + 5));
    }
}
