//! What the backward nodes become: the time of each function's backward pass, and the maps that it needs.

use std::collections::{BTreeMap, BTreeSet};

use super::forward::ForwardGraph;

/// The backward passes of functions, by the place of the function's node.
pub(super) struct BackwardPasses {
    seconds: BTreeMap<usize, f64>,
    needs: BTreeMap<usize, BTreeSet<usize>>,
}

impl BackwardPasses {
    /// Assigns backward nodes to the functions.
    pub(super) fn new(forward: &ForwardGraph<'_>) -> Self {
        let owners = Owners::new(forward);
        let reads_forward = forward.nodes()[forward.len()..]
            .iter()
            .any(|node| node.reads.iter().any(|read| read.from < forward.len()));
        let needs = if reads_forward { find_needs(forward, &owners) } else { all_needs(forward) };
        Self { seconds: add_seconds(forward, &owners), needs }
    }

    /// The seconds of a function's backward pass.
    pub(super) fn seconds(&self, function: usize) -> f64 {
        self.seconds.get(&function).copied().unwrap_or_default()
    }

    /// The inputs and functions whose maps a function's backward pass reads, ascending.
    pub(super) fn needs(&self, function: usize) -> Vec<usize> {
        self.needs.get(&function).into_iter().flatten().copied().collect()
    }
}

/// Whose backward pass a node belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Class(i64),
    Function(usize),
}

struct Owners {
    /// For each class, its functions, ascending.
    functions: BTreeMap<i64, Vec<usize>>,
    /// For each node, its owner.
    of: Vec<Option<Owner>>,
    /// The last function.
    last: Option<usize>,
}

impl Owners {
    fn new(forward: &ForwardGraph<'_>) -> Self {
        let mut functions: BTreeMap<i64, BTreeSet<usize>> = BTreeMap::new();
        for place in 0..forward.len() {
            if let (Some(class), Some(function)) = (forward.node(place).class, forward.producer(place)) {
                functions.entry(class).or_default().insert(function);
            }
        }
        let functions =
            functions.into_iter().map(|(class, members)| (class, members.into_iter().collect())).collect();
        let last = forward.functions().next_back();
        let mut owners = Self { functions, of: Vec::new(), last };
        for (place, node) in forward.nodes().iter().enumerate() {
            let owner = if place < forward.len() {
                forward.producer(place).map(Owner::Function)
            } else {
                let class = node.class.filter(|class| owners.functions.contains_key(class));
                let read = || node.reads.iter().find_map(|read| owners.of[read.from]);
                class.map(Owner::Class).or_else(read)
            };
            owners.of.push(owner);
        }
        owners
    }

    /// The owner of a backward node; `None` if the net has no function.
    fn owner_of(&self, place: usize) -> Option<Owner> {
        self.of[place].or(self.last.map(Owner::Function))
    }

    /// The functions of an owner, ascending.
    fn functions_of<'o>(&'o self, owner: &'o Owner) -> &'o [usize] {
        match owner {
            Owner::Class(class) => &self.functions[class],
            Owner::Function(function) => std::slice::from_ref(function),
        }
    }
}

/// The backward seconds of each function: those of its own backward nodes, and its share of its class.
fn add_seconds(forward: &ForwardGraph<'_>, owners: &Owners) -> BTreeMap<usize, f64> {
    let mut totals: BTreeMap<Owner, f64> = BTreeMap::new();
    for (place, node) in forward.nodes().iter().enumerate().skip(forward.len()) {
        if let Some(owner) = owners.owner_of(place) {
            *totals.entry(owner).or_default() += node.seconds;
        }
    }
    let mut seconds = BTreeMap::new();
    for (owner, backward) in &totals {
        let functions = owners.functions_of(owner);
        let total: f64 = functions.iter().map(|&function| forward.node(function).seconds).sum();
        for &function in functions {
            let share = match forward.node(function).seconds {
                own if total > 0.0 => own / total,
                _ => 1.0 / functions.len() as f64,
            };
            *seconds.entry(function).or_default() += backward * share;
        }
    }
    seconds
}

/// The needs of a file that does not contain them: the inputs and the output of each function.
fn all_needs(forward: &ForwardGraph<'_>) -> BTreeMap<usize, BTreeSet<usize>> {
    let needs = |place: usize| forward.inputs(place).iter().copied().chain([place]).collect();
    forward.functions().map(|place| (place, needs(place))).collect()
}

/// The needs that edges from forward to backward nodes say.
fn find_needs(forward: &ForwardGraph<'_>, owners: &Owners) -> BTreeMap<usize, BTreeSet<usize>> {
    let touching = find_touching(forward);
    let mut needs: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (owner, map) in &needed_maps(forward, owners) {
        let mut keepers = common_items(owners.functions_of(owner), &touching[*map]);
        if keepers.is_empty() {
            // The function that makes the map, or the first one that reads an input.
            keepers.extend(touching[*map].first());
        }
        for keeper in keepers {
            needs.entry(keeper).or_default().insert(*map);
        }
    }
    needs
}

/// The maps that the backward nodes of each owner read, statistics left out.
fn needed_maps(forward: &ForwardGraph<'_>, owners: &Owners) -> BTreeSet<(Owner, usize)> {
    let mut needed = BTreeSet::new();
    for (place, node) in forward.nodes().iter().enumerate().skip(forward.len()) {
        let Some(owner) = owners.owner_of(place) else { continue };
        let read = node.reads.iter().map(|read| read.from).filter(|&from| !forward.is_statistic(from));
        needed.extend(read.filter_map(|from| forward.origin(from)).map(|map| (owner, map)));
    }
    needed
}

/// For each map, the functions that make or read it, ascending.
fn find_touching(forward: &ForwardGraph<'_>) -> Vec<Vec<usize>> {
    let mut touching = vec![Vec::new(); forward.len()];
    for place in forward.functions() {
        for &map in forward.inputs(place).iter().chain([&place]) {
            touching[map].push(place);
        }
    }
    touching
}

/// The items that two ascending lists have in common.
fn common_items(one: &[usize], other: &[usize]) -> Vec<usize> {
    let (few, many) = if one.len() < other.len() { (one, other) } else { (other, one) };
    few.iter().copied().filter(|item| many.binary_search(item).is_ok()).collect()
}
