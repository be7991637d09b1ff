//! The nodes of a graph, checked and sorted: forward nodes before backward nodes, each behind those that it reads.

use std::collections::{BTreeMap, BTreeSet};

use planlab_files::FormatError;
use serde::Deserialize;

use crate::formats::profiles::measured::is_size;
use crate::schedule::is_time;

/// A layer or an operator, in one of its passes.
pub(super) struct Node {
    id: u64,
    pub(super) name: String,
    pub(super) is_backward: bool,
    pub(super) seconds: f64,
    /// Bytes, which may include weights.
    pub(super) size: f64,
    pub(super) class: Option<i64>,
    /// The most bytes of an edge that leaves it; `None` if no edge with a size does.
    pub(super) written: Option<f64>,
    pub(super) reads: Vec<Read>,
}

/// An edge, at the node that it enters.
pub(super) struct Read {
    /// The place of the node that it leaves.
    pub(super) from: usize,
    /// Bytes.
    pub(super) size: Option<f64>,
}

#[derive(Deserialize)]
struct RawGraph {
    nodes: Vec<RawNode>,
    edges: Vec<RawEdge>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawNode {
    id: u64,
    name: Option<String>,
    supported_on_fpga: Flag,
    fpga_latency: f64,
    is_backward_node: Flag,
    color_class: Option<i64>,
    size: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEdge {
    source_id: u64,
    dest_id: u64,
    size: Option<f64>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(untagged, expecting = "a flag is true, false, 0 or 1")]
enum Flag {
    Boolean(bool),
    Number(u8),
}

impl Flag {
    const fn is_set(self) -> bool {
        match self {
            Self::Boolean(flag) => flag,
            Self::Number(number) => number != 0,
        }
    }
}

/// Reads the nodes of a graph.
pub(super) fn read_nodes(file: &str, text: &str) -> Result<Vec<Node>, FormatError> {
    let raw = serde_json::from_str(text).map_err(|error| {
        let reason = format!("not a graph of dnn-partitioning: {error}");
        FormatError::new(file, (error.line() as u64).max(1), reason)
    })?;
    link_nodes(raw).map_err(|reason| FormatError::new(file, 1, reason))
}

fn link_nodes(raw: RawGraph) -> Result<Vec<Node>, String> {
    let mut places = BTreeMap::new();
    let mut nodes = Vec::with_capacity(raw.nodes.len());
    for (place, node) in raw.nodes.into_iter().enumerate() {
        let id = node.id;
        nodes.push(check_node(node).map_err(|reason| format!("nodes[{place}]: {reason}"))?);
        if places.insert(id, place).is_some() {
            return Err(format!("nodes[{place}]: there is a node of id {id} already"));
        }
    }
    for (place, edge) in raw.edges.iter().enumerate() {
        link_edge(&mut nodes, &places, edge).map_err(|reason| format!("edges[{place}]: {reason}"))?;
    }
    sort_nodes(nodes)
}

fn check_node(raw: RawNode) -> Result<Node, String> {
    if !raw.supported_on_fpga.is_set() {
        return Err("`supportedOnFpga` is false: the node has no time on an accelerator".to_owned());
    }
    let seconds = raw.fpga_latency / 1e3;
    if !is_time(seconds) {
        return Err(format!("`fpgaLatency` is {:?}, not a time in milliseconds", raw.fpga_latency));
    }
    Ok(Node {
        id: raw.id,
        name: raw.name.unwrap_or_else(|| format!("node{}", raw.id)),
        is_backward: raw.is_backward_node.is_set(),
        seconds,
        size: check_size(raw.size)?,
        class: raw.color_class,
        written: None,
        reads: Vec::new(),
    })
}

fn check_size(size: f64) -> Result<f64, String> {
    if is_size(size) { Ok(size) } else { Err(format!("`size` is {size:?}, not a number of bytes")) }
}

fn link_edge(nodes: &mut [Node], places: &BTreeMap<u64, usize>, edge: &RawEdge) -> Result<(), String> {
    let place = |id: u64, field: &str| {
        places.get(&id).copied().ok_or_else(|| format!("there is no node of id {id} (`{field}`)"))
    };
    let (from, to) = (place(edge.source_id, "sourceId")?, place(edge.dest_id, "destId")?);
    if nodes[from].is_backward && !nodes[to].is_backward {
        let [from, to] = [from, to].map(|place| nodes[place].name.clone());
        return Err(format!("the forward node `{to}` reads the backward node `{from}`"));
    }
    let size = edge.size.map(check_size).transpose()?;
    nodes[to].reads.push(Read { from, size });
    if let Some(size) = size {
        let written = &mut nodes[from].written;
        *written = Some(written.map_or(size, |most| most.max(size)));
    }
    Ok(())
}

/// Sorts the nodes; those that could come next at once come by id.
fn sort_nodes(nodes: Vec<Node>) -> Result<Vec<Node>, String> {
    let mut readers = vec![Vec::new(); nodes.len()];
    for (place, node) in nodes.iter().enumerate() {
        node.reads.iter().for_each(|read| readers[read.from].push(place));
    }
    let mut waits_for: Vec<usize> = nodes.iter().map(|node| node.reads.len()).collect();
    let key = |place: usize| (nodes[place].is_backward, nodes[place].id, place);
    let free = (0..nodes.len()).filter(|&place| nodes[place].reads.is_empty());
    let mut ready: BTreeSet<_> = free.map(key).collect();
    let mut rank_of = vec![None; nodes.len()];
    let mut ranks = 0..;
    while let Some((_, _, place)) = ready.pop_first() {
        rank_of[place] = ranks.next();
        for &reader in &readers[place] {
            waits_for[reader] -= 1;
            if waits_for[reader] == 0 {
                ready.insert(key(reader));
            }
        }
    }
    if let Some(place) = find_circle(&nodes, &rank_of) {
        let name = &nodes[place].name;
        return Err(format!("nodes[{place}]: `{name}` is in a circle of nodes that read each other"));
    }
    let rank_of: Vec<usize> = rank_of.into_iter().flatten().collect();
    let mut nodes: Vec<(usize, Node)> = rank_of.iter().copied().zip(nodes).collect();
    nodes.sort_by_key(|(rank, _)| *rank);
    for read in nodes.iter_mut().flat_map(|(_, node)| &mut node.reads) {
        read.from = rank_of[read.from];
    }
    Ok(nodes.into_iter().map(|(_, node)| node).collect())
}

/// The place of a node in a circle, if some nodes have no rank.
fn find_circle(nodes: &[Node], rank_of: &[Option<usize>]) -> Option<usize> {
    let mut place = rank_of.iter().position(Option::is_none)?;
    let mut seen = BTreeSet::new();
    // A node without a rank reads another one.
    while seen.insert(place) {
        place = nodes[place].reads.iter().map(|read| read.from).find(|&from| rank_of[from].is_none())?;
    }
    Some(place)
}
