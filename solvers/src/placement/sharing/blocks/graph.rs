//! The graph for sharing by reference counts: nodes in execution order, and the entries that they read and make.
//!
//! Frameworks that plan by reference counts know entries that the caller holds several times and in-place
//! permissions that need no last reader. A [`Graph`](planlab_graph::Graph) has neither, so that sharing has a graph of
//! its own, of numbers alone.

use planlab_dsa::{Buffer, BufferId, Bytes, Instance};

/// A value with one storage: made by a node, or present from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its size in bytes.
    pub bytes: Bytes,
    /// Whether the caller owns its storage, as of parameters, inputs, and gradients that the caller binds.
    pub external: bool,
    /// The number of references that the caller keeps to the end.
    pub held: u32,
}

/// An operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The entries that it reads; an entry that it reads twice counts twice.
    pub reads: Vec<u32>,
    /// The entries that it makes.
    pub writes: Vec<u32>,
    /// The in-place permissions, in the order in which they are tried.
    pub in_place: Vec<InPlaceEntries>,
}

/// Permission to make an entry in the place of one that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InPlaceEntries {
    /// A position among the node's reads.
    pub read: usize,
    /// A position among its writes.
    pub write: usize,
    /// Whether the bytes do not change, so that others may still read them.
    pub identity: bool,
}

/// Why entries and nodes do not form a graph for sharing.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SharingGraphError {
    /// A node uses an entry that does not exist.
    #[error("node {node} uses entry {entry}, but there are only {count} entries")]
    UnknownEntry { node: usize, entry: u32, count: usize },
    /// A node reads an entry that is not made yet.
    #[error("node {node} reads entry {entry}, which no earlier node makes")]
    NotMade { node: usize, entry: u32 },
    /// A node makes an entry that an earlier node makes.
    #[error("node {node} makes entry {entry}, which is made already")]
    MadeTwice { node: usize, entry: u32 },
    /// An in-place permission for a position among the reads or the writes that does not exist.
    #[error(
        "node {node} has an in-place permission from read {read} to write {write}, but lacks one of the two"
    )]
    UnknownPosition { node: usize, read: usize, write: usize },
    /// The entries up to this one together exceed 64 bits.
    #[error("entry {entry} brings the total size above 2^64 - 1 bytes")]
    TotalOverflow { entry: usize },
}

/// A validated graph for sharing.
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
    /// The first rule that is broken: nodes use entries that exist, read only what is external or made by an
    /// earlier node, and make an entry once; permissions use positions that exist; all sizes together fit 64 bits.
    pub fn new(entries: Vec<Entry>, nodes: Vec<Node>) -> Result<Self, SharingGraphError> {
        let mut total = Bytes::ZERO;
        for (entry, of) in entries.iter().enumerate() {
            total = total.checked_add(of.bytes).ok_or(SharingGraphError::TotalOverflow { entry })?;
        }
        let mut made = vec![false; entries.len()];
        for (node, parts) in nodes.iter().enumerate() {
            check_node(node, parts, &entries, &mut made)?;
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

    /// The number of reads and holds of each entry.
    pub(super) fn reference_counts(&self) -> Vec<u64> {
        let mut references: Vec<u64> = self.entries.iter().map(|entry| u64::from(entry.held)).collect();
        for &read in self.nodes.iter().flat_map(|node| &node.reads) {
            references[read as usize] += 1;
        }
        references
    }

    /// The graph of a placement instance: an entry for each buffer, by id, and a node for each step at which buffers
    /// begin or end. The node makes the buffers that begin at its step, and reads those whose last step it is. So a
    /// buffer of one step has no reader, and is free right after it was made. A permission counts if both
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
            place.1 = push_entry(&mut nodes[node_at(first(buffer))].writes, id);
            if first(buffer) < last(buffer) {
                place.0 = push_entry(&mut nodes[node_at(last(buffer))].reads, id);
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

/// Appends an entry; returns its position.
fn push_entry(list: &mut Vec<u32>, entry: u32) -> usize {
    list.push(entry);
    list.len() - 1
}

fn check_node(
    node: usize,
    parts: &Node,
    entries: &[Entry],
    made: &mut [bool],
) -> Result<(), SharingGraphError> {
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

/// Entries and nodes for tests.
#[cfg(test)]
pub(super) mod testing {
    use super::*;

    pub(crate) fn entry(bytes: u64) -> Entry {
        Entry { bytes: Bytes::new(bytes), external: false, held: 0 }
    }

    pub(crate) fn node(reads: &[u32], writes: &[u32], in_place: &[(usize, usize, bool)]) -> Node {
        let pair = |&(read, write, identity): &_| InPlaceEntries { read, write, identity };
        let in_place = in_place.iter().map(pair).collect();
        Node { reads: reads.to_vec(), writes: writes.to_vec(), in_place }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{entry, node};
    use super::*;
    use crate::placement::testing::{in_place, test_buffer};

    #[test]
    fn what_breaks_a_rule_is_named() {
        let of = |nodes: Vec<Node>| SharingGraph::new(vec![entry(4); 2], nodes).map(|_| ());
        let unknown = SharingGraphError::UnknownEntry { node: 0, entry: 2, count: 2 };
        assert_eq!(of(vec![node(&[], &[2], &[])]), Err(unknown));
        let not_made = SharingGraphError::NotMade { node: 0, entry: 1 };
        assert_eq!(of(vec![node(&[1], &[0], &[]), node(&[], &[1], &[])]), Err(not_made));
        let twice = SharingGraphError::MadeTwice { node: 1, entry: 0 };
        assert_eq!(of(vec![node(&[], &[0], &[]), node(&[], &[0], &[])]), Err(twice));
        let position = SharingGraphError::UnknownPosition { node: 1, read: 0, write: 1 };
        assert_eq!(of(vec![node(&[], &[0], &[]), node(&[0], &[1], &[(0, 1, false)])]), Err(position));
        let large = vec![entry(4), entry(u64::MAX - 3)];
        let overflow = SharingGraphError::TotalOverflow { entry: 1 };
        assert_eq!(SharingGraph::new(large, Vec::new()).map(|_| ()), Err(overflow));
    }

    #[test]
    fn a_buffer_is_made_at_its_first_step_and_read_at_its_last() {
        let instance = Instance::builder()
            .buffers([(5, 9), (8, 12), (8, 9), (8, 10)].map(|(start, end)| test_buffer(4, start, end)))
            .in_place([in_place(0, 1), in_place(2, 3), in_place(0, 3)])
            .build()
            .expect("valid");
        let graph = SharingGraph::of_instance(&instance);
        let nodes: Vec<_> = graph.nodes().iter().map(|n| (n.reads.clone(), n.writes.clone())).collect();
        let at_8 = (vec![0], vec![1, 2, 3]);
        assert_eq!(nodes, [(vec![], vec![0]), at_8, (vec![3], vec![]), (vec![1], vec![])]);
        // Buffer 2 ends in its first step: it has no reader, so nothing takes its place.
        let places: Vec<(usize, usize)> =
            graph.nodes()[1].in_place.iter().map(|pair| (pair.read, pair.write)).collect();
        assert_eq!(places, [(0, 0), (0, 2)]);
        assert_eq!(SharingGraph::new(graph.entries.clone(), graph.nodes.clone()), Ok(graph));
    }
}
