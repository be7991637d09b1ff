//! A graph of a framework that recomputes by copies of nodes, as NNVM does.
//!
//! Nodes are in execution order: depth first from the outputs, the inputs of a node before it. To recompute a node of
//! the forward pass is to give it one copy, which reads copies of its inputs if there are any; the backward pass reads
//! the copies. The order is again depth first, so that a block is recomputed just before the first node that needs it.
//!
//! # References
//!
//! 1. NNVM, the pass `Gradient` with `mirror_fun`. Apache-2.0.

use planlab_dsa::Bytes;

use super::cut::{Cut, Item, Mark};
use crate::placement::sharing::{
    BlockSharing, Entry, InPlaceEntries, MATCH_RANGES, Node, SharingGraph, SharingGraphError,
};

/// The endings of a variable's name if it is a parameter.
const PARAMETERS: [&str; 4] = ["weight", "bias", "beta", "gamma"];
/// The operation whose result would differ.
const RANDOM: &str = "Dropout";

/// An output of a node: the node's place, and which of its outputs.
type Reference = (u32, u32);

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointNode {
    /// Its name.
    pub name: String,
    /// The operation; `None` for a variable.
    pub op: Option<String>,
    /// Its inputs: each an earlier node, and one of that node's outputs.
    pub inputs: Vec<(u32, u32)>,
    /// The sizes of its outputs.
    pub outputs: Vec<Bytes>,
    /// The number of outputs, from the first on, that others may read in the forward pass.
    pub visible: usize,
    /// Permissions to overwrite an input.
    pub in_place: Vec<InPlaceEntries>,
}

/// Why nodes do not form a graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointGraphError {
    /// A node reads something that no earlier node makes.
    #[error("node {node} reads output {output} of node {source_node}, which is not there before it")]
    NotThere {
        /// The reader.
        node: usize,
        /// The node that it names.
        source_node: u32,
        /// The output of it.
        output: u32,
    },
    /// An output of the graph that no node makes.
    #[error("the graph gives back output {output} of node {node}, which does not exist")]
    NoSuchOutput {
        /// The node.
        node: u32,
        /// The output of it.
        output: u32,
    },
    /// More outputs of the forward pass than outputs.
    #[error("{forward} of {outputs} outputs are the forward pass's")]
    ForwardOutputs {
        /// The number of outputs of the forward pass.
        forward: usize,
        /// The number of all outputs.
        outputs: usize,
    },
}

/// A net in training: its forward and its backward pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointGraph {
    nodes: Vec<CheckpointNode>,
    outputs: Vec<Reference>,
    forward_outputs: usize,
    /// The nodes of the forward pass, in order.
    forward: Vec<usize>,
}

impl CheckpointGraph {
    /// A graph of nodes in execution order. The first `forward_outputs` outputs are those of the forward pass; the
    /// caller has storage for the others, which are gradients.
    ///
    /// # Errors
    ///
    /// [`CheckpointGraphError`] if a node or an output refers to something that does not exist.
    pub fn new(
        nodes: Vec<CheckpointNode>,
        outputs: Vec<(u32, u32)>,
        forward_outputs: usize,
    ) -> Result<Self, CheckpointGraphError> {
        let is_there = |&(node, output): &Reference, before: usize| {
            (node as usize) < before && (output as usize) < nodes[node as usize].outputs.len()
        };
        for (node, parts) in nodes.iter().enumerate() {
            if let Some(&(source_node, output)) = parts.inputs.iter().find(|input| !is_there(input, node)) {
                return Err(CheckpointGraphError::NotThere { node, source_node, output });
            }
        }
        if let Some(&(node, output)) = outputs.iter().find(|output| !is_there(output, nodes.len())) {
            return Err(CheckpointGraphError::NoSuchOutput { node, output });
        }
        if forward_outputs > outputs.len() {
            return Err(CheckpointGraphError::ForwardOutputs {
                forward: forward_outputs,
                outputs: outputs.len(),
            });
        }
        let forward = depth_first(&nodes, &outputs[..forward_outputs]);
        Ok(Self { nodes, outputs, forward_outputs, forward })
    }

    /// The nodes, in execution order.
    #[must_use]
    pub fn nodes(&self) -> &[CheckpointNode] {
        &self.nodes
    }

    /// By node, a mark on those of the forward pass whose outputs enter residual blocks: the first inputs of operations
    /// `add`.
    #[must_use]
    pub fn block_inputs(&self, add: &str) -> Vec<Mark> {
        let mut inputs = vec![Mark::Inside; self.nodes.len()];
        let sums = self.forward.iter().map(|&node| &self.nodes[node]);
        for (node, _) in
            sums.filter(|node| node.op.as_deref() == Some(add)).filter_map(|sum| sum.inputs.first())
        {
            inputs[*node as usize] = Mark::Alone;
        }
        inputs
    }

    /// The items for the searches: the visible outputs of the forward pass except parameters, and the nodes that they
    /// belong to. `marks` gives for each node whether a block may end there.
    ///
    /// # Panics
    ///
    /// If the number of marks is not that of the nodes.
    #[must_use]
    pub fn items(&self, marks: &[Mark]) -> (Vec<Item>, Vec<usize>) {
        assert_eq!(marks.len(), self.nodes.len(), "one for each node");
        let is_parameter = |node: &CheckpointNode| {
            node.op.is_none() && PARAMETERS.iter().any(|&ending| node.name.ends_with(ending))
        };
        let nodes = self.forward.iter().filter(|&&node| !is_parameter(&self.nodes[node]));
        nodes
            .flat_map(|&node| {
                let visible = self.nodes[node].outputs.iter().take(self.nodes[node].visible);
                visible.map(move |&bytes| (Item { bytes, mark: marks[node] }, node))
            })
            .unzip()
    }

    /// The graph in which everything but a cut's checkpoints is recomputed. `nodes` are those of [`Self::items`].
    ///
    /// # Panics
    ///
    /// If the cut is not one of these items.
    #[must_use]
    pub fn recomputed(&self, cut: &Cut, nodes: &[usize]) -> Self {
        let mut is_kept = vec![false; self.nodes.len()];
        cut.kept.iter().for_each(|&place| is_kept[nodes[place]] = true);
        self.mirrored(&is_kept)
    }

    /// The graph that recomputes all operations of the forward pass except those that are kept or random.
    fn mirrored(&self, is_kept: &[bool]) -> Self {
        let mut all = self.nodes.clone();
        let mut copy_of: Vec<u32> = (0..).take(all.len()).collect();
        let mut is_forward = vec![false; all.len()];
        for &node in &self.forward {
            is_forward[node] = true;
            let is_operation = self.nodes[node].op.as_deref().is_some_and(|op| op != RANDOM);
            if is_operation && !is_kept[node] {
                let mut copy = self.nodes[node].clone();
                copy.name.push_str("_mirror");
                redirect(&mut copy, &copy_of);
                copy_of[node] = number(all.len());
                all.push(copy);
            }
        }
        for node in (0..self.nodes.len()).filter(|&node| !is_forward[node]) {
            redirect(&mut all[node], &copy_of);
        }
        self.in_order(&all)
    }

    /// The graph of the nodes that the outputs need, in depth-first order.
    fn in_order(&self, all: &[CheckpointNode]) -> Self {
        let order = depth_first(all, &self.outputs);
        let mut place_of = vec![0; all.len()];
        (0..).zip(&order).for_each(|(place, &node)| place_of[node] = place);
        let nodes = order.iter().map(|&node| {
            let mut node = all[node].clone();
            redirect(&mut node, &place_of);
            node
        });
        let nodes: Vec<_> = nodes.collect();
        let outputs: Vec<_> =
            self.outputs.iter().map(|&(node, output)| (place_of[node as usize], output)).collect();
        let forward = depth_first(&nodes, &outputs[..self.forward_outputs]);
        Self { nodes, outputs, forward_outputs: self.forward_outputs, forward }
    }

    /// The graph for sharing: variables and gradients belong to the caller, who holds the forward outputs to the end.
    ///
    /// # Errors
    ///
    /// [`SharingGraphError`] for a permission without such an input or output, and for sizes beyond 64 bits.
    pub fn sharing(&self) -> Result<SharingGraph, SharingGraphError> {
        let mut first = Vec::with_capacity(self.nodes.len());
        let mut entries = Vec::new();
        for node in &self.nodes {
            first.push(number(entries.len()));
            let entry = |&bytes: &Bytes| Entry { bytes, external: node.op.is_none(), held: 0 };
            entries.extend(node.outputs.iter().map(entry));
        }
        let at = |&(node, output): &Reference| first[node as usize] + output;
        for (turn, output) in self.outputs.iter().enumerate() {
            let entry = &mut entries[at(output) as usize];
            if turn < self.forward_outputs {
                entry.held += 1;
            } else {
                entry.external = true;
            }
        }
        let operations = self.nodes.iter().zip(&first).filter(|(node, _)| node.op.is_some());
        let nodes = operations.map(|(node, &first)| Node {
            reads: node.inputs.iter().map(at).collect(),
            writes: (first..).take(node.outputs.len()).collect(),
            in_place: node.in_place.clone(),
        });
        SharingGraph::new(entries, nodes.collect())
    }

    /// The bytes of blocks that are shared in place and within a match range: the total that MXNet prints.
    ///
    /// # Errors
    ///
    /// As [`CheckpointGraph::sharing`].
    pub fn shared_bytes(&self, match_range: u64) -> Result<u64, SharingGraphError> {
        Ok(shared(&self.sharing()?, match_range))
    }

    /// The match range of 1, 2, 4, 8 and 16 with the least [bytes](Self::shared_bytes), and that number: the allocation
    /// of the patent's claims, and of NNVM's automatic search. Of equals, the smallest range.
    ///
    /// # Errors
    ///
    /// As [`CheckpointGraph::sharing`].
    pub fn least_shared_bytes(&self) -> Result<(u64, u64), SharingGraphError> {
        let graph = self.sharing()?;
        let windows = MATCH_RANGES.map(|range| (range, shared(&graph, range)));
        Ok(windows.into_iter().min_by_key(|&(_, bytes)| bytes).unwrap_or_default())
    }
}

fn shared(graph: &SharingGraph, match_range: u64) -> u64 {
    let rules = BlockSharing::default().with_in_place(true).with_match_range(match_range);
    rules.plan(graph).total().get()
}

fn number(place: usize) -> u32 {
    u32::try_from(place).expect("a graph has fewer than 2^32 nodes")
}

fn redirect(node: &mut CheckpointNode, to: &[u32]) {
    node.inputs.iter_mut().for_each(|(input, _)| *input = to[*input as usize]);
}

/// Nodes in depth-first order from the outputs, the inputs of a node before it.
fn depth_first(nodes: &[CheckpointNode], outputs: &[Reference]) -> Vec<usize> {
    let mut order = Vec::with_capacity(nodes.len());
    let mut is_seen = vec![false; nodes.len()];
    // A node, and the number of its inputs entered so far.
    let mut open: Vec<(usize, usize)> = Vec::new();
    for &(output, _) in outputs {
        if !std::mem::replace(&mut is_seen[output as usize], true) {
            open.push((output as usize, 0));
        }
        while let Some((node, entered)) = open.last_mut() {
            match nodes[*node].inputs.get(*entered) {
                Some(&(input, _)) => {
                    *entered += 1;
                    if !std::mem::replace(&mut is_seen[input as usize], true) {
                        open.push((input as usize, 0));
                    }
                }
                None => {
                    order.push(*node);
                    open.pop();
                }
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, op: Option<&str>, inputs: &[Reference]) -> CheckpointNode {
        CheckpointNode {
            name: name.to_owned(),
            op: op.map(str::to_owned),
            inputs: inputs.to_vec(),
            outputs: vec![Bytes::new(8)],
            visible: 1,
            in_place: Vec::new(),
        }
    }

    /// x -> a -> b -> c, with a gradient for each of a, b and c that reads the operation's inputs.
    fn chain() -> CheckpointGraph {
        let op = Some("op");
        let nodes = vec![
            node("x", None, &[]),
            node("a", op, &[(0, 0)]),
            node("b", op, &[(1, 0)]),
            node("c", op, &[(2, 0)]),
            node("c_backward", op, &[(2, 0), (3, 0)]),
            node("b_backward", op, &[(4, 0), (1, 0)]),
            node("a_backward", op, &[(5, 0), (0, 0)]),
        ];
        CheckpointGraph::new(nodes, vec![(3, 0), (6, 0)], 1).expect("a graph")
    }

    #[test]
    fn what_is_not_kept_is_copied_just_before_its_use() {
        let graph = chain();
        let (items, nodes) = graph.items(&[Mark::Alone; 7]);
        assert_eq!((items.len(), &nodes[..]), (4, &[0, 1, 2, 3][..]));
        let cut = Cut { kept: vec![1], ..Cut::default() };
        let recomputed = graph.recomputed(&cut, &nodes);
        let names: Vec<_> = recomputed.nodes().iter().map(|node| &node.name[..]).collect();
        let expected = ["x", "a", "b", "c", "b_mirror", "c_mirror", "c_backward", "b_backward", "a_backward"];
        assert_eq!(names, expected);
        assert_eq!(recomputed.nodes()[6].inputs, [(4, 0), (5, 0)]);
        assert_eq!(recomputed.nodes()[7].inputs, [(6, 0), (1, 0)]);
        assert!(recomputed.sharing().is_ok());
    }

    #[test]
    fn what_is_not_there_is_named() {
        let bad = CheckpointGraph::new(vec![node("a", None, &[(0, 0)])], vec![], 0).expect_err("a loop");
        assert_eq!(bad.to_string(), "node 0 reads output 0 of node 0, which is not there before it");
        let bad = CheckpointGraph::new(vec![node("a", None, &[])], vec![(0, 1)], 0).expect_err("one output");
        assert_eq!(bad, CheckpointGraphError::NoSuchOutput { node: 0, output: 1 });
        let bad = CheckpointGraph::new(vec![], vec![], 1).expect_err("none");
        assert_eq!(bad, CheckpointGraphError::ForwardOutputs { forward: 1, outputs: 0 });
    }
}
