//! A graph that recomputes by copies of nodes, as NNVM's pass `Gradient` does with `mirror_fun`: the reference for
//! memonger's published figures.
//!
//! Nodes are in execution order: depth first from the outputs, the inputs of a node before it. A recomputed node has one
//! copy, which reads copies of its inputs if there are any; the backward pass reads the copies.

use planlab_dsa::Bytes;
use planlab_solvers::placement::sharing::{BlockSharing, Entry, InPlaceEntries, Node, SharingGraph};
use planlab_solvers::schedule::checkpoints::{Cut, Item};

/// The endings of a variable's name if it is a parameter.
const PARAMETERS: [&str; 4] = ["weight", "bias", "beta", "gamma"];
/// The operation whose result would differ.
const RANDOM: &str = "Dropout";

/// A node's place, and which of its outputs.
pub(crate) type Reference = (usize, usize);

#[derive(Clone, Debug)]
pub(crate) struct MirrorNode {
    pub(crate) name: String,
    /// `None` for a variable.
    pub(crate) op: Option<String>,
    pub(crate) inputs: Vec<Reference>,
    pub(crate) outputs: Vec<Bytes>,
    /// The number of outputs, from the first on, that the forward pass may read.
    pub(crate) visible: usize,
    pub(crate) in_place: Vec<InPlaceEntries>,
}

#[derive(Clone, Debug)]
pub(crate) struct MirrorGraph {
    pub(crate) nodes: Vec<MirrorNode>,
    outputs: Vec<Reference>,
    forward_outputs: usize,
    /// The nodes of the forward pass, in order.
    forward: Vec<usize>,
}

impl MirrorGraph {
    pub(crate) fn new(nodes: Vec<MirrorNode>, outputs: Vec<Reference>, forward_outputs: usize) -> Self {
        let forward = depth_first_order(&nodes, &outputs[..forward_outputs]);
        Self { nodes, outputs, forward_outputs, forward }
    }

    /// The visible outputs of the forward pass except parameters, and the nodes that they belong to. Blocks may end at
    /// the inputs of residual blocks: the first inputs of operations `add`.
    pub(crate) fn items(&self, add: &str) -> (Vec<Item>, Vec<usize>) {
        let mut is_candidate = vec![false; self.nodes.len()];
        let is_sum = |node: &&usize| self.nodes[**node].op.as_deref() == Some(add);
        for &sum in self.forward.iter().filter(is_sum) {
            is_candidate[self.nodes[sum].inputs[0].0] = true;
        }
        let is_parameter = |node: &MirrorNode| {
            node.op.is_none() && PARAMETERS.iter().any(|&ending| node.name.ends_with(ending))
        };
        let nodes = self.forward.iter().filter(|&&node| !is_parameter(&self.nodes[node]));
        nodes
            .flat_map(|&node| {
                let visible = self.nodes[node].outputs.iter().take(self.nodes[node].visible);
                let is_candidate = is_candidate[node];
                visible.map(move |&bytes| (Item { bytes, is_candidate }, node))
            })
            .unzip()
    }

    /// The graph in which all operations of the forward pass are recomputed, except those that a cut keeps and random
    /// ones.
    pub(crate) fn recomputed(&self, cut: &Cut, nodes: &[usize]) -> Self {
        let kept: Vec<usize> = cut.kept.iter().map(|&place| nodes[place]).collect();
        let mut all = self.nodes.clone();
        let mut copy_of: Vec<usize> = (0..all.len()).collect();
        for &node in &self.forward {
            let is_operation = self.nodes[node].op.as_deref().is_some_and(|op| op != RANDOM);
            if is_operation && !kept.contains(&node) {
                let mut copy = self.nodes[node].clone();
                redirect(&mut copy, &copy_of);
                copy_of[node] = all.len();
                all.push(copy);
            }
        }
        for node in (0..self.nodes.len()).filter(|node| !self.forward.contains(node)) {
            redirect(&mut all[node], &copy_of);
        }
        self.in_order(&all)
    }

    fn in_order(&self, all: &[MirrorNode]) -> Self {
        let order = depth_first_order(all, &self.outputs);
        let mut place_of = vec![0; all.len()];
        order.iter().enumerate().for_each(|(place, &node)| place_of[node] = place);
        let nodes = order.iter().map(|&node| {
            let mut node = all[node].clone();
            redirect(&mut node, &place_of);
            node
        });
        let outputs = self.outputs.iter().map(|&(node, output)| (place_of[node], output));
        Self::new(nodes.collect(), outputs.collect(), self.forward_outputs)
    }

    /// The graph for sharing: variables and gradients belong to the caller, who holds the forward outputs to the end.
    pub(crate) fn sharing(&self) -> SharingGraph {
        let mut first = Vec::with_capacity(self.nodes.len());
        let mut entries = Vec::new();
        for node in &self.nodes {
            first.push(entries.len());
            let entry = |&bytes: &Bytes| Entry { bytes, external: node.op.is_none(), held: 0 };
            entries.extend(node.outputs.iter().map(entry));
        }
        for (turn, &(node, output)) in self.outputs.iter().enumerate() {
            let entry: &mut Entry = &mut entries[first[node] + output];
            if turn < self.forward_outputs {
                entry.held += 1;
            } else {
                entry.external = true;
            }
        }
        let number = |place: usize| u32::try_from(place).expect("few entries");
        let operations = self.nodes.iter().zip(&first).filter(|(node, _)| node.op.is_some());
        let nodes = operations.map(|(node, &own)| Node {
            reads: node.inputs.iter().map(|&(node, output)| number(first[node] + output)).collect(),
            writes: (own..own + node.outputs.len()).map(number).collect(),
            in_place: node.in_place.clone(),
        });
        SharingGraph::new(entries, nodes.collect()).expect("a graph")
    }

    /// The bytes of blocks that are shared in place and within a match range: the total that MXNet prints.
    pub(crate) fn shared_bytes(&self, match_range: u64) -> u64 {
        let rules = BlockSharing::default().with_in_place(true).with_match_range(match_range);
        rules.plan(&self.sharing()).total_bytes().get()
    }
}

fn redirect(node: &mut MirrorNode, to: &[usize]) {
    node.inputs.iter_mut().for_each(|(input, _)| *input = to[*input]);
}

/// Nodes in depth-first order from the outputs, the inputs of a node before it.
fn depth_first_order(nodes: &[MirrorNode], outputs: &[Reference]) -> Vec<usize> {
    let mut order = Vec::with_capacity(nodes.len());
    let mut is_seen = vec![false; nodes.len()];
    for &(output, _) in outputs {
        let mut stack = Vec::new();
        if !std::mem::replace(&mut is_seen[output], true) {
            stack.push((output, 0));
        }
        while let Some((node, entered)) = stack.last_mut() {
            if let Some(&(input, _)) = nodes[*node].inputs.get(*entered) {
                *entered += 1;
                if !std::mem::replace(&mut is_seen[input], true) {
                    stack.push((input, 0));
                }
            } else {
                order.push(*node);
                stack.pop();
            }
        }
    }
    order
}
