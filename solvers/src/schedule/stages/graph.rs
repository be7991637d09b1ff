//! Nodes in the order of their first runs, what they read, and how long their results take to the host and back.

/// The most time of a copy that is modelled, in times of all nodes. Longer ones would dwarf all other coefficients.
const SLOWEST_COPY: f64 = 1e4;

/// The seconds in which a byte is copied to the host, and back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Link {
    pub(super) out: f64,
    pub(super) back: f64,
}

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
    total_seconds: f64,
    is_lazy: bool,
    link: Option<Link>,
}

impl NodeGraph {
    pub(super) fn new(nodes: Vec<Node>) -> Self {
        let mut readers = vec![Vec::new(); nodes.len()];
        for (reader, node) in nodes.iter().enumerate() {
            node.inputs.iter().for_each(|&input| readers[input].push(reader));
        }
        let total_seconds = nodes.iter().map(|node| node.seconds).sum();
        Self { nodes, readers, total_seconds, is_lazy: false, link: None }
    }

    /// Whether a node runs again only in a stage that reads it. Default: no.
    pub(super) const fn with_laziness(mut self, yes: bool) -> Self {
        self.is_lazy = yes;
        self
    }

    /// Results of nodes that may run again may also be copied to the host and back. Default: no copies.
    pub(super) const fn with_link(mut self, link: Link) -> Self {
        self.link = Some(link);
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

    pub(super) const fn link(&self) -> Option<Link> {
        self.link
    }

    /// The factor that turns seconds into parts of the time of all nodes; 1 if they take no time.
    pub(super) fn seconds_scale(&self) -> f64 {
        if self.total_seconds > 0.0 { self.total_seconds.recip() } else { 1.0 }
    }

    /// Whether the result of a node may be copied to the host and back.
    pub(super) fn may_leave(&self, node: usize) -> bool {
        let node = &self.nodes[node];
        self.link.is_some_and(|link| {
            let seconds = node.bytes as f64 * link.out.max(link.back);
            !node.runs_once && node.bytes > 0 && seconds <= SLOWEST_COPY * self.total_seconds
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// `length` forward passes, a loss, and `length` backward passes. All nodes take a second and a byte; a backward pass
    /// reads the pass before it and what its forward pass makes.
    pub(in crate::schedule::stages) fn unit_chain(length: usize) -> NodeGraph {
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

    #[test]
    fn result_leaves_over_a_link_that_is_not_too_slow() {
        let mut nodes = unit_chain(1).nodes().to_vec();
        nodes[1].runs_once = true;
        nodes[2].bytes = 0;
        let graph = NodeGraph::new(nodes);
        let may_leave = |graph: &NodeGraph| [0, 1, 2].map(|node| graph.may_leave(node));
        assert_eq!(may_leave(&graph), [false; 3]);
        // All nodes take 3 seconds.
        for (back, first) in [(3e4, true), (3.1e4, false)] {
            let graph = graph.clone().with_link(Link { out: 1.0, back });
            assert_eq!(may_leave(&graph), [first, false, false], "{back}");
        }
    }
}
