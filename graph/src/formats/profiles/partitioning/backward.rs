//! What the backward nodes become: the time of each function's backward pass, and the maps that it needs.

use std::collections::{BTreeMap, BTreeSet};

use super::forward::{ForwardGraph, Role};

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
#[derive(Clone, Copy)]
enum Owner {
    Class(i64),
    Function(usize),
}

struct Owners {
    /// For each class, its functions.
    functions: BTreeMap<i64, Vec<usize>>,
    /// For each node, its owner.
    of: Vec<Option<Owner>>,
    /// The last function.
    last: Vec<usize>,
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
        let last = (0..forward.len()).rev().find(|&place| forward.role(place) == Role::Function);
        let mut owners = Self { functions, of: Vec::new(), last: last.into_iter().collect() };
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

    /// The functions that a backward node belongs to; no function if the net has none.
    fn functions_of(&self, place: usize) -> &[usize] {
        match &self.of[place] {
            Some(Owner::Class(class)) => &self.functions[class],
            Some(Owner::Function(function)) => std::slice::from_ref(function),
            None => &self.last,
        }
    }
}

/// The backward seconds of each function: those of its own backward nodes, and its share of its class.
fn add_seconds(forward: &ForwardGraph<'_>, owners: &Owners) -> BTreeMap<usize, f64> {
    // By the functions that share them.
    let mut totals: BTreeMap<&[usize], f64> = BTreeMap::new();
    for (place, node) in forward.nodes().iter().enumerate().skip(forward.len()) {
        *totals.entry(owners.functions_of(place)).or_default() += node.seconds;
    }
    let mut seconds = BTreeMap::new();
    for (functions, backward) in totals {
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
    let functions = (0..forward.len()).filter(|&place| forward.role(place) == Role::Function);
    functions.map(|place| (place, forward.inputs(place).iter().copied().chain([place]).collect())).collect()
}

/// The needs that edges from forward to backward nodes say.
fn find_needs(forward: &ForwardGraph<'_>, owners: &Owners) -> BTreeMap<usize, BTreeSet<usize>> {
    let mut needs: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (place, node) in forward.nodes().iter().enumerate().skip(forward.len()) {
        for from in node.reads.iter().map(|read| read.from).filter(|&from| !forward.is_statistic(from)) {
            let Some(map) = forward.origin(from) else { continue };
            let touches = |function: &usize| *function == map || forward.inputs(*function).contains(&map);
            let mut readers: Vec<usize> =
                owners.functions_of(place).iter().copied().filter(touches).collect();
            if readers.is_empty() {
                readers.extend(forward.producer(from).or_else(|| first_reader(forward, map)));
            }
            readers.into_iter().for_each(|reader| {
                needs.entry(reader).or_default().insert(map);
            });
        }
    }
    needs
}

/// The function that reads an input first.
fn first_reader(forward: &ForwardGraph<'_>, input: usize) -> Option<usize> {
    (0..forward.len())
        .find(|&place| forward.role(place) == Role::Function && forward.inputs(place).contains(&input))
}
