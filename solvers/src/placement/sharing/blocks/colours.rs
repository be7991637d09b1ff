//! Colours of nodes: the longest chains of operations, which may run in parallel.
//!
//! A block that passes from a node to a node of another chain makes one wait for the other. So the longest path
//! through the graph has the first colour, the longest path through uncoloured nodes the second, and so on. All
//! nodes that are left have the last colour.
//!
//! # Complexity
//!
//! O(colours * (nodes + reads)).

use super::graph::{Node, SharingGraph};

/// The colour of each node, less than `count`.
pub(super) fn node_colours(graph: &SharingGraph, count: u32) -> Vec<u32> {
    let nodes = graph.nodes();
    let maker = entry_makers(graph);
    let last = count.saturating_sub(1);
    let mut colours = vec![last; nodes.len()];
    let mut uncoloured = vec![true; nodes.len()];
    for colour in 0..last {
        let path = longest_path(nodes, &maker, &uncoloured);
        if path.iter().all(|&node| !uncoloured[node]) {
            break;
        }
        for node in path {
            if std::mem::replace(&mut uncoloured[node], false) {
                colours[node] = colour;
            }
        }
    }
    colours
}

/// The node that makes each entry.
pub(super) fn entry_makers(graph: &SharingGraph) -> Vec<Option<usize>> {
    let mut makers = vec![None; graph.entries().len()];
    for (number, node) in graph.nodes().iter().enumerate() {
        for &entry in &node.writes {
            makers[entry as usize] = Some(number);
        }
    }
    makers
}

/// The nodes of a path with the most uncoloured nodes; of equal paths the one that begins last and, from each node,
/// the one whose next node comes last.
fn longest_path(nodes: &[Node], maker: &[Option<usize>], uncoloured: &[bool]) -> Vec<usize> {
    let mut most = vec![0_u32; nodes.len()];
    let mut next = vec![None; nodes.len()];
    let mut start: Option<usize> = None;
    for (number, node) in nodes.iter().enumerate().rev() {
        most[number] += u32::from(uncoloured[number]);
        if start.is_none_or(|start| most[number] > most[start]) {
            start = Some(number);
        }
        for before in node.reads.iter().filter_map(|&entry| maker[entry as usize]) {
            if most[number] > most[before] {
                most[before] = most[number];
                next[before] = Some(number);
            }
        }
    }
    std::iter::successors(start, |&node| next[node]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::sharing::blocks::graph::testing::{entry, node};

    #[test]
    fn the_longest_path_is_first_and_the_rest_is_last() {
        // 0 -> 1 -> 2 -> 5, and 0 -> 3 -> 5, and 4 on its own.
        let reads: [&[u32]; 6] = [&[], &[0], &[1], &[0], &[], &[2, 3]];
        let nodes = (0..).zip(reads).map(|(write, reads)| node(reads, &[write], &[]));
        let graph = SharingGraph::new(vec![entry(1); 6], nodes.collect()).expect("valid");
        assert_eq!(node_colours(&graph, 1), [0; 6]);
        assert_eq!(node_colours(&graph, 2), [0, 0, 0, 1, 1, 0]);
        assert_eq!(node_colours(&graph, 3), [0, 0, 0, 2, 1, 0]);
        assert_eq!(node_colours(&graph, 9), [0, 0, 0, 2, 1, 0]);
    }
}
