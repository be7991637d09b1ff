//! What the forward nodes become: functions, maps, parameters.

use std::collections::BTreeMap;

use super::nodes::Node;
use crate::formats::profiles::measured::distinct;

/// What a forward node becomes in the net.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Weights, or what is made of weights alone in no time.
    Parameters,
    /// Neither a size nor a time.
    Nothing,
    Input,
    Function,
    /// The same map as the node at this place.
    View(usize),
}

/// What the nodes of a class have together.
#[derive(Default)]
struct Class {
    forward_nodes: usize,
    backward_nodes: usize,
    backward_seconds: f64,
    /// The most bytes of a gradient that enters the class from another one.
    gradient_bytes: Option<f64>,
}

/// The forward nodes with their roles. Places are indices of sorted nodes.
pub(super) struct ForwardGraph<'n> {
    nodes: &'n [Node],
    roles: Vec<Role>,
    /// For each node, the input or function whose map it is.
    origins: Vec<Option<usize>>,
    /// For each node, the distinct origins of what it reads.
    inputs: Vec<Vec<usize>>,
    /// For each node, the bytes of its map.
    bytes: Vec<f64>,
}

impl<'n> ForwardGraph<'n> {
    /// Finds the roles of sorted nodes.
    pub(super) fn new(nodes: &'n [Node]) -> Self {
        let classes = gather_classes(nodes);
        let mut graph =
            Self { nodes, roles: Vec::new(), origins: Vec::new(), inputs: Vec::new(), bytes: Vec::new() };
        for (place, node) in nodes.iter().enumerate().take_while(|(_, node)| !node.is_backward) {
            let class = node.class.and_then(|class| classes.get(&class));
            let inputs = distinct(node.reads.iter().filter_map(|read| graph.origins[read.from]));
            let bytes = written_bytes(node, class);
            let role = if node.reads.is_empty() {
                role_of_source(node, class, bytes)
            } else {
                graph.role_of_reader(node, &inputs, bytes)
            };
            graph.origins.push(match role {
                Role::Parameters | Role::Nothing => None,
                Role::Input | Role::Function => Some(place),
                Role::View(_) => inputs.first().copied(),
            });
            graph.roles.push(role);
            graph.inputs.push(inputs);
            graph.bytes.push(bytes);
        }
        graph.add_outputs();
        graph
    }

    fn role_of_reader(&self, node: &Node, inputs: &[usize], bytes: f64) -> Role {
        let reads = || node.reads.iter().map(|read| read.from);
        if node.seconds > 0.0 {
            return Role::Function;
        }
        match inputs {
            [] if reads().all(|from| self.roles[from] == Role::Parameters) => Role::Parameters,
            [] if bytes == 0.0 => Role::Nothing,
            // One of the nodes has the map that is the only input.
            [_] => reads().find(|&from| self.origins[from].is_some()).map_or(Role::Function, Role::View),
            _ => Role::Function,
        }
    }

    /// Gives operators that write less than a byte the bytes of their outputs together.
    fn add_outputs(&mut self) {
        let mut outputs = vec![0.0; self.roles.len()];
        for place in (0..self.roles.len()).rev() {
            if self.bytes[place] < 1.0 {
                self.bytes[place] = self.bytes[place].max(outputs[place]);
            }
            if let Role::View(of) = self.roles[place] {
                outputs[of] += self.bytes[place];
            }
        }
    }

    /// The number of forward nodes.
    pub(super) fn len(&self) -> usize {
        self.roles.len()
    }

    /// All nodes, forward before backward.
    pub(super) const fn nodes(&self) -> &'n [Node] {
        self.nodes
    }

    pub(super) fn node(&self, place: usize) -> &'n Node {
        &self.nodes[place]
    }

    pub(super) fn role(&self, place: usize) -> Role {
        self.roles[place]
    }

    /// The functions, ascending.
    pub(super) fn functions(&self) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.len()).filter(|&place| self.roles[place] == Role::Function)
    }

    /// The input or function whose map a node is.
    pub(super) fn origin(&self, place: usize) -> Option<usize> {
        self.origins.get(place).copied().flatten()
    }

    /// The function that makes the map of a node.
    pub(super) fn producer(&self, place: usize) -> Option<usize> {
        self.origin(place).filter(|&origin| self.roles[origin] == Role::Function)
    }

    /// The inputs and functions whose maps a node reads.
    pub(super) fn inputs(&self, place: usize) -> &[usize] {
        &self.inputs[place]
    }

    /// The bytes of a node's map.
    pub(super) fn map_bytes(&self, place: usize) -> f64 {
        self.bytes[place]
    }

    /// Whether a node is a small output beside a large one.
    pub(super) fn is_statistic(&self, place: usize) -> bool {
        self.origin(place).is_some_and(|origin| self.bytes[place] * 100.0 < self.bytes[origin])
    }

    /// The bytes of the weights at a node.
    pub(super) fn parameter_bytes(&self, place: usize) -> f64 {
        let node = self.node(place);
        match self.roles[place] {
            Role::Parameters if node.reads.is_empty() => node.size,
            Role::Function => (node.size - self.bytes[place]).max(0.0),
            _ => 0.0,
        }
    }
}

fn gather_classes(nodes: &[Node]) -> BTreeMap<i64, Class> {
    let mut classes: BTreeMap<i64, Class> = BTreeMap::new();
    for node in nodes {
        let Some(class) = node.class else { continue };
        let totals = classes.entry(class).or_default();
        if !node.is_backward {
            totals.forward_nodes += 1;
            continue;
        }
        totals.backward_nodes += 1;
        totals.backward_seconds += node.seconds;
        let is_gradient = |from: &Node| from.is_backward && from.class != node.class;
        let gradients = node.reads.iter().filter(|read| is_gradient(&nodes[read.from]));
        for size in gradients.filter_map(|read| read.size) {
            totals.gradient_bytes = Some(totals.gradient_bytes.map_or(size, |most| most.max(size)));
        }
    }
    classes
}

/// The bytes that a node writes. If nobody reads them, the gradient has as many, without the weights.
fn written_bytes(node: &Node, class: Option<&Class>) -> f64 {
    let gradient = class.and_then(|class| class.gradient_bytes);
    node.written.unwrap_or_else(|| gradient.map_or(node.size, |gradient| gradient.min(node.size)))
}

fn role_of_source(node: &Node, class: Option<&Class>, bytes: f64) -> Role {
    let is_timed = node.seconds > 0.0;
    let loads_data = class.is_some_and(|class| class.backward_nodes > 0 && class.backward_seconds == 0.0);
    match class {
        Some(class) if !is_timed && class.forward_nodes > 1 => Role::Parameters,
        _ if is_timed && !loads_data => Role::Function,
        _ if bytes == 0.0 => Role::Nothing,
        _ => Role::Input,
    }
}
