//! The flow network of `mincost-flow` with O(n log n) arcs, and its optimal flow.
//!
//! The ends of live ranges (*supplies*) and their starts (*demands*) are events in time; ends come before starts at one
//! step. The time axis is halved again and again. At each halving, the supplies of the left half and the demands of the
//! right half are nodes of a *chain*, ascending by size. Neighbours have arcs both ways: upwards at the cost of the
//! difference, downwards free. A supply may enter at any of its nodes, a demand may be met from any of its nodes.
//!
//! ```text
//!   size     left half | right half
//!     9         i      |                 i to j: down, at no cost
//!     7                |     j           k to j: up, at 7 - 4
//!     4         k      |
//!            ----------------------> time
//! ```
//!
//! **The optimum is that of all arcs.** Supply i may serve demand j exactly if i's event comes before j's. Then there
//! is just one halving with i on the left and j on the right. Its chain leads from i to j at the cost max(0, size j -
//! size i): straight up or straight down. So each flow over all arcs is one here, at the same cost. Conversely, the
//! flow through a chain can be split into paths from its supplies to its demands. Each path joins a pair that may
//! follow each other. Each costs at least max(0, size j - size i): only steps upwards cost anything, and they add up to
//! at least the difference.
//!
//! # The optimal flow
//!
//! Demands are met one after the other along a shortest augmenting path. The search runs backwards from the demand to
//! the nearest unused supply, or to the source that opens an object. Potentials keep the reduced cost of every arc from
//! being negative (Jonker and Volgenant). Costs are differences of sizes and all potentials are at most the sum of all
//! sizes, so 64 bits hold them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use planlab_dsa::{BufferId, Instance};

use crate::trees::Adjacency;

/// The role of a node of a chain.
#[derive(Clone, Copy, Debug)]
struct Link {
    buffer: u32,
    is_supply: bool,
    /// Whether the chain has a larger node: the next link.
    has_next: bool,
    /// Whether the buffer's unit passes through here.
    is_used: bool,
    /// The flow to the next link, minus the flow back.
    flow: i32,
}

/// The network, with a flow that is optimal for the demands met so far.
pub(super) struct Network {
    sizes: Vec<u64>,
    links: Vec<Link>,
    /// The links from which each buffer's demand can be met.
    demands: Adjacency,
    /// The link that each buffer's supply enters.
    goes_into: Vec<Option<u32>>,
    /// The potentials of all links, then of the supplies, then of the demands.
    potentials: Vec<u64>,
    search: PathSearch,
}

/// A node of the search: a link, a supply, or a demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Link(u32),
    Supply(u32),
    Demand(u32),
}

/// The beginning of a path.
#[derive(Clone, Copy, Debug)]
enum Begin {
    /// An unused supply.
    Supply(u32),
    /// A new object for a demand.
    Open(u32),
}

impl Network {
    /// Without a flow; O(n log^2 n).
    pub(super) fn new(instance: &Instance) -> Self {
        let sizes: Vec<u64> = instance.buffers().iter().map(|buffer| buffer.size.get()).collect();
        let links = halving_chains(instance, &sizes);
        let nodes = links.len() + 2 * sizes.len();
        let demands = links.iter().zip(0_u32..).filter(|(link, _)| !link.is_supply);
        Self {
            demands: Adjacency::new(sizes.len(), demands.map(|(link, number)| (link.buffer, number))),
            goes_into: vec![None; sizes.len()],
            potentials: vec![0; nodes],
            search: PathSearch::new(nodes),
            sizes,
            links,
        }
    }

    /// Meets the demand of a buffer; returns the number of nodes examined.
    pub(super) fn supply_demand(&mut self, id: BufferId) -> u64 {
        let root = Node::Demand(id.get());
        self.search.begin_search(self.node_index(root));
        let mut best: Option<(u64, Begin)> = None;
        while let Some((distance, index)) = self.search.nearest_unsettled() {
            if best.is_some_and(|(least, _)| least <= distance) {
                break;
            }
            self.search.settle_node(index);
            let node = self.node_at(index);
            if let Some((rest, begin)) = self.path_begin(node) {
                let length = distance + rest;
                if best.is_none_or(|(least, _)| length < least) {
                    best = Some((length, begin));
                }
            }
            self.expand_node(node, distance);
        }
        let (length, begin) = best.expect("an object can be opened for the demand itself");
        for &index in &self.search.settled {
            self.potentials[index as usize] += length.saturating_sub(self.search.distances[index as usize]);
        }
        self.augment_path(begin, root);
        self.search.settled.len() as u64
    }

    /// For each buffer the one that it follows, from splitting the flow of each chain.
    pub(super) fn followed_buffers(&self) -> Vec<Option<BufferId>> {
        let mut followed = vec![None; self.sizes.len()];
        let mut waiting: VecDeque<&Link> = VecDeque::new();
        for link in self.links.iter().filter(|link| link.is_used) {
            // All waiting units are of one kind, supplies or demands, and flow to the next link or from it.
            match waiting.pop_back() {
                Some(other) if other.is_supply != link.is_supply => {
                    let (supply, demand) = if link.is_supply { (link, other) } else { (other, link) };
                    followed[demand.buffer as usize] = Some(BufferId::new(supply.buffer));
                }
                other => waiting.extend(other.into_iter().chain([link])),
            }
        }
        followed
    }

    fn node_index(&self, node: Node) -> u32 {
        let links = u32::try_from(self.links.len()).expect("fewer than 2^32 links");
        let buffers = u32::try_from(self.sizes.len()).expect("an instance has fewer than 2^32 buffers");
        match node {
            Node::Link(link) => link,
            Node::Supply(buffer) => links + buffer,
            Node::Demand(buffer) => links + buffers + buffer,
        }
    }

    fn node_at(&self, index: u32) -> Node {
        let first = |node| self.node_index(node);
        if index < first(Node::Supply(0)) {
            Node::Link(index)
        } else if index < first(Node::Demand(0)) {
            Node::Supply(index - first(Node::Supply(0)))
        } else {
            Node::Demand(index - first(Node::Demand(0)))
        }
    }

    /// The cost of beginning a path at a node, if one can begin there.
    fn path_begin(&self, node: Node) -> Option<(u64, Begin)> {
        match node {
            Node::Supply(buffer) if self.goes_into[buffer as usize].is_none() => {
                Some((0, Begin::Supply(buffer)))
            }
            Node::Demand(buffer) => {
                let potential = self.potentials[self.node_index(node) as usize];
                Some((self.sizes[buffer as usize] - potential, Begin::Open(buffer)))
            }
            _ => None,
        }
    }

    /// Examines every node from which a unit can come to a node.
    fn expand_node(&mut self, node: Node, distance: u64) {
        match node {
            Node::Demand(buffer) => {
                for place in 0..self.demands.of(buffer).len() {
                    let link = self.demands.of(buffer)[place];
                    if !self.links[link as usize].is_used {
                        self.relax_edge(Node::Link(link), node, 0, distance);
                    }
                }
            }
            Node::Supply(buffer) => {
                if let Some(link) = self.goes_into[buffer as usize] {
                    self.relax_edge(Node::Link(link), node, 0, distance);
                }
            }
            Node::Link(link) => self.expand_link(link, distance),
        }
    }

    fn expand_link(&mut self, number: u32, distance: u64) {
        let (node, link) = (Node::Link(number), self.links[number as usize]);
        match (link.is_supply, link.is_used) {
            (true, false) => self.relax_edge(Node::Supply(link.buffer), node, 0, distance),
            (false, true) => self.relax_edge(Node::Demand(link.buffer), node, 0, distance),
            _ => {}
        }
        if link.has_next {
            // Downwards at no cost, or a reduction of the upward flow.
            let cost = if link.flow > 0 { -self.size_difference(number) } else { 0 };
            self.relax_edge(Node::Link(number + 1), node, cost, distance);
        }
        if let Some(below) = number.checked_sub(1)
            && self.links[below as usize].has_next
        {
            // Upwards at the difference, or a reduction of the downward flow.
            let cost = if self.links[below as usize].flow < 0 { 0 } else { self.size_difference(below) };
            self.relax_edge(Node::Link(below), node, cost, distance);
        }
    }

    /// The difference in size between a link and the next.
    fn size_difference(&self, link: u32) -> i128 {
        let size = |link: u32| i128::from(self.sizes[self.links[link as usize].buffer as usize]);
        size(link + 1) - size(link)
    }

    fn relax_edge(&mut self, from: Node, to: Node, cost: i128, distance: u64) {
        let (from, to) = (self.node_index(from), self.node_index(to));
        let potential = |index: u32| i128::from(self.potentials[index as usize]);
        let reduced = cost + potential(from) - potential(to);
        let length = u64::try_from(reduced).ok().and_then(|reduced| distance.checked_add(reduced));
        debug_assert!(reduced >= 0, "potentials keep reduced costs from being negative");
        // A length above 64 bits is longer than opening an object.
        if let Some(length) = length {
            self.search.reach_node(from, to, length, distance);
        }
    }

    fn augment_path(&mut self, begin: Begin, root: Node) {
        let mut node = match begin {
            Begin::Supply(buffer) => Node::Supply(buffer),
            Begin::Open(buffer) => Node::Demand(buffer),
        };
        while node != root {
            let next = self.node_at(self.search.toward[self.node_index(node) as usize]);
            match (node, next) {
                (Node::Supply(buffer), Node::Link(link)) => {
                    self.goes_into[buffer as usize] = Some(link);
                    self.links[link as usize].is_used = true;
                }
                (Node::Link(link), Node::Demand(_)) => self.links[link as usize].is_used = true,
                (Node::Link(link), Node::Supply(_)) | (Node::Demand(_), Node::Link(link)) => {
                    self.links[link as usize].is_used = false;
                }
                (Node::Link(link), Node::Link(next)) if next > link => self.links[link as usize].flow += 1,
                (Node::Link(_), Node::Link(next)) => self.links[next as usize].flow -= 1,
                _ => unreachable!("a unit goes through links"),
            }
            node = next;
        }
    }
}

/// The chains of all halvings, one after the other.
fn halving_chains(instance: &Instance, sizes: &[u64]) -> Vec<Link> {
    let mut events: Vec<(u32, bool, u32)> = Vec::with_capacity(2 * sizes.len());
    for (buffer, id) in instance.buffers().iter().zip(0..) {
        events.push((buffer.live.end().get(), false, id));
        events.push((buffer.live.start().get(), true, id));
    }
    events.sort_unstable();
    let mut by_size: Vec<usize> = (0..events.len()).collect();
    by_size.sort_by_key(|&event| sizes[events[event].2 as usize]);
    let mut links = Vec::new();
    for level in (0..usize::BITS).take_while(|&level| events.len().saturating_sub(1) >> level > 0) {
        // Supplies of left halves and demands of right ones.
        let faces = |&event: &usize| events[event].1 == ((event >> level) % 2 == 1);
        let half_of = |event: usize| event >> (level + 1);
        let mut facing: Vec<usize> = by_size.iter().copied().filter(faces).collect();
        facing.sort_by_key(|&event| half_of(event));
        for chain in facing.chunk_by(|&a, &b| half_of(a) == half_of(b)) {
            push_chain(&mut links, chain.iter().map(|&event| (events[event].2, !events[event].1)));
        }
    }
    links
}

/// Appends a chain of buffers, each with whether it is a supply, unless all are of one kind.
fn push_chain(links: &mut Vec<Link>, chain: impl Iterator<Item = (u32, bool)>) {
    let first = links.len();
    links.extend(chain.map(|(buffer, is_supply)| Link {
        buffer,
        is_supply,
        has_next: true,
        is_used: false,
        flow: 0,
    }));
    let supplies = links[first..].iter().filter(|link| link.is_supply).count();
    if supplies == 0 || supplies == links.len() - first {
        links.truncate(first);
    } else if let Some(last) = links.last_mut() {
        last.has_next = false;
    }
}

/// Distances to one demand, and the paths to it.
struct PathSearch {
    turn: u32,
    /// The turn at which each node was reached, and at which it was settled.
    reached: Vec<u32>,
    done: Vec<u32>,
    distances: Vec<u64>,
    toward: Vec<u32>,
    /// Nodes at the current distance, and those farther away.
    near: Vec<u32>,
    at: u64,
    far: BinaryHeap<Reverse<(u64, u32)>>,
    settled: Vec<u32>,
}

impl PathSearch {
    fn new(nodes: usize) -> Self {
        Self {
            turn: 0,
            reached: vec![0; nodes],
            done: vec![0; nodes],
            distances: vec![0; nodes],
            toward: vec![0; nodes],
            near: Vec::new(),
            at: 0,
            far: BinaryHeap::new(),
            settled: Vec::new(),
        }
    }

    fn begin_search(&mut self, root: u32) {
        self.turn += 1;
        self.near.clear();
        self.far.clear();
        self.settled.clear();
        self.at = 0;
        self.reach_node(root, root, 0, 0);
    }

    /// Records a path from a node over `next`, where `next` is at `distance` and the arc has the given length.
    fn reach_node(&mut self, node: u32, next: u32, length: u64, distance: u64) {
        let index = node as usize;
        if self.reached[index] == self.turn && self.distances[index] <= length {
            return;
        }
        (self.reached[index], self.distances[index], self.toward[index]) = (self.turn, length, next);
        if length == distance {
            self.near.push(node);
        } else {
            self.far.push(Reverse((length, node)));
        }
    }

    /// The nearest node that is not settled.
    fn nearest_unsettled(&mut self) -> Option<(u64, u32)> {
        loop {
            let (distance, node) = match self.near.pop() {
                Some(node) => (self.at, node),
                None => self.far.pop()?.0,
            };
            if self.done[node as usize] != self.turn {
                self.at = distance;
                return Some((distance, node));
            }
        }
    }

    fn settle_node(&mut self, node: u32) {
        self.done[node as usize] = self.turn;
        self.settled.push(node);
    }
}
