//! What sharing by reference counts looks at: nodes in execution order, and who reads what.
//!
//! A [`Graph`] has no outputs that the caller holds storage for and no permissions that are exempt from
//! counting; frameworks that plan by reference counts have both. Hence a graph of its own, of numbers alone.

use planlab_dsa::{Buffer, BufferId, Bytes, Instance};
use planlab_graph::{Graph, OpId, Operation, TensorId};

/// A value: something that a node makes, or that is there from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its size in bytes.
    pub bytes: Bytes,
    /// Whether the caller holds its storage: a parameter, an input, a gradient that has a place already.
    pub external: bool,
    /// How often the caller holds on to it to the end.
    pub held: u32,
}

/// An operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The entries that it reads; one that it reads twice counts twice.
    pub reads: Vec<u32>,
    /// The entries that it makes.
    pub writes: Vec<u32>,
    /// Which may be made in whose place, in the order in which they are tried.
    pub in_place: Vec<InPlaceEntries>,
}

/// Permission to make an entry in the place of one that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InPlaceEntries {
    /// A position among the node's reads.
    pub read: usize,
    /// A position among its writes.
    pub write: usize,
    /// Whether the bytes stay as they are, so that others may still read them.
    pub identity: bool,
}

/// Why parts are no graph for sharing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SharingGraphError {
    /// A node that names no entry.
    #[error("node {node} names entry {entry}, but there are only {count}")]
    UnknownEntry {
        /// The node.
        node: usize,
        /// The number that it names.
        entry: u32,
        /// How many entries there are.
        count: usize,
    },
    /// A read of what nobody has made by then.
    #[error("node {node} reads entry {entry}, which no node before it makes")]
    NotMade {
        /// The node.
        node: usize,
        /// The entry.
        entry: u32,
    },
    /// An entry that is made a second time.
    #[error("node {node} makes entry {entry}, which is there already")]
    MadeTwice {
        /// The node.
        node: usize,
        /// The entry.
        entry: u32,
    },
    /// A permission that names no read or no write of its node.
    #[error("node {node} has no read {read} or no write {write} for its in-place permission")]
    UnknownPosition {
        /// The node.
        node: usize,
        /// The position among its reads.
        read: usize,
        /// The position among its writes.
        write: usize,
    },
    /// Sizes that are too large together.
    #[error("entry {entry}: with it the sizes sum to more than 2^64 - 1 bytes")]
    TotalOverflow {
        /// The entry at which the sum leaves the range.
        entry: usize,
    },
}

/// A validated graph for sharing.
///
/// ```
/// use planlab_dsa::Bytes;
/// use planlab_solvers::placement::sharing::{Entry, Node, SharingGraph};
///
/// let entry = |external| Entry { bytes: Bytes::new(64), external, held: 0 };
/// let convolution = Node { reads: vec![0], writes: vec![1], ..Node::default() };
/// let graph = SharingGraph::new(vec![entry(true), entry(false)], vec![convolution])?;
/// assert_eq!(graph.nodes().len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharingGraph {
    entries: Vec<Entry>,
    nodes: Vec<Node>,
}

impl SharingGraph {
    /// A graph of entries, by number, and nodes, in execution order.
    ///
    /// # Errors
    ///
    /// The first rule that is broken: nodes name entries that there are, read only what is external or made
    /// before, and make an entry once; permissions name positions that there are; all sizes together fit
    /// 64 bits.
    pub fn new(entries: Vec<Entry>, nodes: Vec<Node>) -> Result<Self, SharingGraphError> {
        let mut total = Bytes::ZERO;
        for (entry, of) in entries.iter().enumerate() {
            total = total.checked_add(of.bytes).ok_or(SharingGraphError::TotalOverflow { entry })?;
        }
        let mut made = vec![false; entries.len()];
        for (node, parts) in nodes.iter().enumerate() {
            check(node, parts, &entries, &mut made)?;
        }
        Ok(Self { entries, nodes })
    }

    /// The entries, by number.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The nodes, in execution order.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// A computation graph in its own order: an entry for each tensor, a node for each operation. Tensors that
    /// no operation makes are external, outputs are held. Workspaces are left out.
    ///
    /// # Errors
    ///
    /// As [`SharingGraph::new`]; of a valid graph only its sizes can be too large.
    pub fn of_graph(graph: &Graph) -> Result<Self, SharingGraphError> {
        let ids = || (0..graph.tensors().len()).map(TensorId::from_index);
        let entries = graph.tensors().iter().zip(ids()).map(|(tensor, id)| Entry {
            bytes: tensor.bytes,
            external: graph.maker(id).is_none(),
            held: u32::from(tensor.output),
        });
        let node = |op: OpId| node_of(graph, op, &graph.operations()[op.index()]);
        Self::new(entries.collect(), graph.order().into_iter().map(node).collect())
    }

    /// How often each entry is read or held.
    pub(super) fn references(&self) -> Vec<u64> {
        let mut references: Vec<u64> = self.entries.iter().map(|entry| u64::from(entry.held)).collect();
        for &read in self.nodes.iter().flat_map(|node| &node.reads) {
            references[read as usize] += 1;
        }
        references
    }

    /// The graph of a placement instance: an entry for each buffer, by id, and a node for each step at which
    /// buffers begin or end. It makes those that begin at it, and reads those whose last step it is; so a
    /// buffer of one step is read by nobody, and free right after it was made. A permission counts where both
    /// buffers have the same alignment, so that an object can stand for both.
    pub(super) fn of_instance(instance: &Instance) -> Self {
        let last = |buffer: &Buffer| buffer.live.end().get() - 1;
        let first = |buffer: &Buffer| buffer.live.start().get();
        let mut steps: Vec<u32> = instance.buffers().iter().flat_map(|b| [first(b), last(b)]).collect();
        steps.sort_unstable();
        steps.dedup();
        let node_at = |step: u32| steps.partition_point(|&other| other < step);
        let mut nodes = vec![Node::default(); steps.len()];
        let mut places = vec![(usize::MAX, usize::MAX); instance.len()];
        for (buffer, id) in instance.buffers().iter().zip(0_u32..) {
            let place = &mut places[id as usize];
            place.1 = push(&mut nodes[node_at(first(buffer))].writes, id);
            if first(buffer) < last(buffer) {
                place.0 = push(&mut nodes[node_at(last(buffer))].reads, id);
            }
        }
        let align = |id: BufferId| instance.buffer(id).align;
        for pair in instance.in_place().iter().filter(|pair| align(pair.input) == align(pair.output)) {
            let (read, write) = (places[pair.input.index()].0, places[pair.output.index()].1);
            if read != usize::MAX {
                let node = node_at(first(instance.buffer(pair.output)));
                nodes[node].in_place.push(InPlaceEntries { read, write, identity: false });
            }
        }
        let entry = |buffer: &Buffer| Entry { bytes: buffer.size, external: false, held: 0 };
        Self { entries: instance.buffers().iter().map(entry).collect(), nodes }
    }
}

fn node_of(graph: &Graph, op: OpId, operation: &Operation) -> Node {
    let number = |id: &TensorId| u32::try_from(id.index()).expect("a graph has fewer than 2^32 parts");
    let reads: Vec<u32> = operation.reads.iter().map(number).collect();
    let mut writes: Vec<u32> = Vec::new();
    for id in operation.writes.iter().filter(|&&id| graph.maker(id) == Some(op)) {
        if !writes.contains(&number(id)) {
            writes.push(number(id));
        }
    }
    let position = |list: &[u32], id: &TensorId| list.iter().position(|&entry| entry == number(id));
    let pair = |(input, output): &(TensorId, TensorId)| {
        let (read, write) = (position(&reads, input)?, position(&writes, output)?);
        Some(InPlaceEntries { read, write, identity: false })
    };
    let in_place = operation.in_place.iter().filter_map(pair).collect();
    Node { reads, writes, in_place }
}

/// Appends, and says where.
fn push(list: &mut Vec<u32>, entry: u32) -> usize {
    list.push(entry);
    list.len() - 1
}

fn check(node: usize, parts: &Node, entries: &[Entry], made: &mut [bool]) -> Result<(), SharingGraphError> {
    let count = entries.len();
    if let Some(&entry) = parts.reads.iter().chain(&parts.writes).find(|&&entry| entry as usize >= count) {
        return Err(SharingGraphError::UnknownEntry { node, entry, count });
    }
    let is_there = |entry: u32| entries[entry as usize].external || made[entry as usize];
    if let Some(&entry) = parts.reads.iter().find(|&&entry| !is_there(entry)) {
        return Err(SharingGraphError::NotMade { node, entry });
    }
    for &entry in &parts.writes {
        if std::mem::replace(&mut made[entry as usize], true) {
            return Err(SharingGraphError::MadeTwice { node, entry });
        }
    }
    let is_known = |pair: &&InPlaceEntries| pair.read < parts.reads.len() && pair.write < parts.writes.len();
    match parts.in_place.iter().find(|pair| !is_known(pair)) {
        Some(&InPlaceEntries { read, write, .. }) => {
            Err(SharingGraphError::UnknownPosition { node, read, write })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::{InPlace, LiveRange};

    use super::*;

    fn entries(count: usize) -> Vec<Entry> {
        vec![Entry { bytes: Bytes::new(4), external: false, held: 0 }; count]
    }

    fn node(reads: &[u32], writes: &[u32]) -> Node {
        Node { reads: reads.to_vec(), writes: writes.to_vec(), in_place: Vec::new() }
    }

    #[test]
    fn what_breaks_a_rule_is_named() {
        let of = |nodes: Vec<Node>| SharingGraph::new(entries(2), nodes).map(|_| ());
        let unknown = SharingGraphError::UnknownEntry { node: 0, entry: 2, count: 2 };
        assert_eq!(of(vec![node(&[], &[2])]), Err(unknown));
        let not_made = SharingGraphError::NotMade { node: 0, entry: 1 };
        assert_eq!(of(vec![node(&[1], &[0]), node(&[], &[1])]), Err(not_made));
        let twice = SharingGraphError::MadeTwice { node: 1, entry: 0 };
        assert_eq!(of(vec![node(&[], &[0]), node(&[], &[0])]), Err(twice));
        let mut pair = node(&[0], &[1]);
        pair.in_place.push(InPlaceEntries { read: 0, write: 1, identity: false });
        let position = SharingGraphError::UnknownPosition { node: 1, read: 0, write: 1 };
        assert_eq!(of(vec![node(&[], &[0]), pair]), Err(position));
        let mut large = entries(2);
        large[1].bytes = Bytes::new(u64::MAX - 3);
        let overflow = SharingGraphError::TotalOverflow { entry: 1 };
        assert_eq!(SharingGraph::new(large, Vec::new()).map(|_| ()), Err(overflow));
    }

    #[test]
    fn a_computation_graph_keeps_its_reads_and_permissions() {
        use planlab_graph::Tensor;
        let mut graph = Graph::builder();
        let [w, x, y] = ["w", "x", "y"].map(|name| graph.tensor(Tensor::new(name, Bytes::new(4))));
        let z = graph.tensor(Tensor::new("z", Bytes::new(4)).as_output());
        graph.operation(Operation::new("conv").reads([x, w]).writes([y]));
        graph.operation(Operation::new("relu").reads([y]).writes([z]).overwrites(y, z));
        graph.operation(Operation::new("update").reads([w, z]).writes([w]));
        let graph = SharingGraph::of_graph(&graph.build().expect("valid")).expect("small");
        let external: Vec<bool> = graph.entries().iter().map(|entry| entry.external).collect();
        assert_eq!(external, [true, true, false, false]);
        assert_eq!(graph.references(), [2, 1, 1, 2]);
        let pair = InPlaceEntries { read: 0, write: 0, identity: false };
        let relu = Node { in_place: vec![pair], ..node(&[2], &[3]) };
        assert_eq!(graph.nodes(), [node(&[1, 0], &[2]), relu, node(&[0, 3], &[])]);
    }

    #[test]
    fn a_buffer_is_made_at_its_first_step_and_read_at_its_last() {
        let buffer = |start, end| Buffer::new(Bytes::new(4), LiveRange::new(start, end).expect("not empty"));
        let pair = |a, b| InPlace { input: BufferId::new(a), output: BufferId::new(b) };
        let instance = Instance::builder()
            .buffers([buffer(5, 9), buffer(8, 12), buffer(8, 9), buffer(8, 10)])
            .in_place([pair(0, 1), pair(2, 3), pair(0, 3)])
            .build()
            .expect("valid");
        let graph = SharingGraph::of_instance(&instance);
        let nodes: Vec<_> = graph.nodes().iter().map(|n| (n.reads.clone(), n.writes.clone())).collect();
        let at_8 = (vec![0], vec![1, 2, 3]);
        assert_eq!(nodes, [(vec![], vec![0]), at_8, (vec![3], vec![]), (vec![1], vec![])]);
        // Buffer 2 is over in its first step: nobody reads it, so nothing takes its place.
        let places: Vec<(usize, usize)> =
            graph.nodes()[1].in_place.iter().map(|pair| (pair.read, pair.write)).collect();
        assert_eq!(places, [(0, 0), (0, 2)]);
        assert_eq!(SharingGraph::new(graph.entries.clone(), graph.nodes.clone()), Ok(graph));
    }
}
