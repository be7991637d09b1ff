//! Nodes in the order of their first runs, and what they read.

/// A computation whose result may be kept, or computed again.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    /// Seconds of a run.
    pub(super) seconds: f64,
    /// Bytes of the result.
    pub(super) bytes: u64,
    /// The nodes that it reads: earlier ones, ascending.
    pub(super) inputs: Vec<usize>,
    /// Whether it runs once only. The result stays until its last reader.
    pub(super) runs_once: bool,
}

/// The nodes of an iteration.
#[derive(Clone, Debug)]
pub(super) struct NodeGraph {
    nodes: Vec<Node>,
    /// For each node: the nodes that read it, ascending.
    readers: Vec<Vec<usize>>,
    is_lazy: bool,
}

impl NodeGraph {
    pub(super) fn new(nodes: Vec<Node>) -> Self {
        let mut readers = vec![Vec::new(); nodes.len()];
        for (reader, node) in nodes.iter().enumerate() {
            node.inputs.iter().for_each(|&input| readers[input].push(reader));
        }
        Self { nodes, readers, is_lazy: false }
    }

    /// Whether a node runs again only in a stage that reads it. Default: no.
    pub(super) const fn with_laziness(mut self, yes: bool) -> Self {
        self.is_lazy = yes;
        self
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The number of nodes, which is that of stages.
    pub(super) fn count_stages(&self) -> usize {
        self.nodes.len()
    }

    /// The readers of a node, ascending.
    pub(super) fn readers_of(&self, node: usize) -> &[usize] {
        &self.readers[node]
    }

    /// The last reader of a node; the node itself if no node reads it.
    pub(super) fn last_reader(&self, node: usize) -> usize {
        self.readers[node].last().copied().unwrap_or(node)
    }

    pub(super) const fn is_lazy(&self) -> bool {
        self.is_lazy
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// `length` forward passes, a loss, and `length` backward passes. All nodes take a second and a byte; a backward pass
    /// reads the pass before it and what its forward pass makes.
    pub(in crate::schedule::checkmate) fn unit_chain(length: usize) -> NodeGraph {
        let node = |index: usize| {
            let mut inputs: Vec<usize> = index.checked_sub(1).into_iter().collect();
            if index > length {
                inputs.push(2 * length - index);
            }
            inputs.sort_unstable();
            inputs.dedup();
            Node { seconds: 1.0, bytes: 1, inputs, runs_once: false }
        };
        NodeGraph::new((0..=2 * length).map(node).collect())
    }

    #[test]
    fn forward_pass_of_a_chain_has_two_readers() {
        let graph = unit_chain(3);
        // 0 1 2 loss 2' 1' 0'
        let inputs: Vec<_> = graph.nodes().iter().map(|node| node.inputs.clone()).collect();
        assert_eq!(inputs, [vec![], vec![0], vec![1], vec![2], vec![2, 3], vec![1, 4], vec![0, 5]]);
        assert_eq!(graph.readers_of(0), [1, 6]);
        assert_eq!((graph.last_reader(0), graph.last_reader(2), graph.last_reader(6)), (6, 4, 6));
    }
}
