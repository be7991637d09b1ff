//! Which values of a model have a gradient, and what becomes of the nodes whose values have none.

use std::collections::{BTreeMap, BTreeSet};

use super::lives::Lives;
use super::messages::{Graph, Node};
use super::needs::passes_no_gradient;
use super::shapes::Shapes;
use super::shapes::value::element_count;

/// What a node that makes a buffer becomes in a net in training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeRole {
    /// A function: its output follows from floats, so it has a gradient.
    Function,
    /// An input of the net: its output has no gradient, and no function comes before it.
    Input,
    /// A part of each function that reads it: its output has no gradient, but follows from that of a function.
    Folded,
    /// Nothing: the numbers of its output are known.
    Known,
}

/// Whether a value of this element type (`TensorProto.DataType`) can have a gradient.
pub(crate) const fn is_float(elem: i32) -> bool {
    matches!(elem, 1 | 10 | 11 | 14..=16)
}

/// The roles of the nodes of a model.
pub(crate) struct GradientFlow<'m> {
    graph: &'m Graph,
    shapes: &'m Shapes<'m>,
    lives: &'m Lives<'m>,
    /// For each node that makes a buffer.
    roles: BTreeMap<usize, NodeRole>,
}

impl<'m> GradientFlow<'m> {
    /// Finds the roles, in the order of the nodes.
    pub(crate) fn new(graph: &'m Graph, shapes: &'m Shapes<'m>, lives: &'m Lives<'m>) -> Self {
        let mut flow = Self { graph, shapes, lives, roles: BTreeMap::new() };
        for number in lives.storages.iter().filter_map(|storage| storage.node) {
            let role = flow.find_role(number);
            flow.roles.insert(number, role);
        }
        flow
    }

    /// The nodes that make a buffer, ascending, with their roles.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (usize, NodeRole)> {
        self.roles.iter().map(|(&number, &role)| (number, role))
    }

    /// The role of the node that makes a buffer; `None` for what the graph is given.
    pub(crate) fn role_of(&self, storage: usize) -> Option<NodeRole> {
        self.roles.get(&self.lives.storages[storage].node?).copied()
    }

    fn find_role(&self, number: usize) -> NodeRole {
        let node = &self.graph.nodes[number];
        let mut roles = self.storages_in(node).filter_map(|storage| self.role_of(storage));
        if self.has_gradient(number, node) {
            NodeRole::Function
        } else if self.is_known(node) {
            NodeRole::Known
        } else if roles.any(|role| matches!(role, NodeRole::Function | NodeRole::Folded)) {
            NodeRole::Folded
        } else {
            NodeRole::Input
        }
    }

    fn has_gradient(&self, number: usize, node: &Node) -> bool {
        node.outputs.iter().any(|name| self.is_float_value(name) && self.is_made_by(number, name))
            && !passes_no_gradient(node)
            && node.inputs.iter().any(|name| self.carries_gradient(name))
    }

    /// Whether the buffer of a value is that of the node's own output: a view is in the buffer of another.
    fn is_made_by(&self, number: usize, name: &str) -> bool {
        let storage = self.lives.storage_of(name);
        storage.is_some_and(|storage| self.lives.storages[storage].node == Some(number))
    }

    /// Whether a node makes nothing but whole numbers that are known before the net runs.
    fn is_known(&self, node: &Node) -> bool {
        let mut names = node.outputs.iter().filter(|name| !name.is_empty());
        names.all(|name| self.shapes.values.get(name.as_str()).is_some_and(|value| value.ints.is_some()))
    }

    /// Whether a value is made of floats that a net is given or learns. A single constant is taken as fixed: it scales or
    /// fills a mask. What is no tensor may hold such floats.
    fn carries_gradient(&self, name: &str) -> bool {
        if !self.is_float_value(name) {
            return self.shapes.others.contains(name);
        }
        match self.lives.storage_of(name) {
            Some(storage) => self.role_of(storage).is_none_or(|role| role == NodeRole::Function),
            None => {
                let value = self.shapes.values.get(name);
                value.is_some_and(|value| element_count(&value.shape).is_none_or(|count| count > 1))
            }
        }
    }

    fn is_float_value(&self, name: &str) -> bool {
        self.shapes.values.get(name).is_some_and(|value| is_float(value.elem))
    }

    /// The buffers that a node reads, in the order of its arguments.
    fn storages_in(&self, node: &Node) -> impl DoubleEndedIterator<Item = usize> {
        node.inputs.iter().filter_map(|name| self.lives.storage_of(name))
    }

    /// The buffers of functions and of inputs of the net behind the values of these names: themselves, or what a folded
    /// node reads. The order is that of the arguments; a buffer may come twice.
    pub(crate) fn sources_of(&self, names: &[String]) -> Vec<usize> {
        let mut sources = Vec::new();
        let mut seen = BTreeSet::new();
        let mut stack: Vec<usize> =
            names.iter().rev().filter_map(|name| self.lives.storage_of(name)).collect();
        while let Some(storage) = stack.pop() {
            let origin = &self.lives.storages[storage];
            match (self.role_of(storage), origin.node) {
                (Some(NodeRole::Known), _) => {}
                (Some(NodeRole::Folded), Some(number)) => {
                    if seen.insert(number) {
                        stack.extend(self.storages_in(&self.graph.nodes[number]).rev());
                    }
                }
                _ if origin.is_weight() => {}
                _ => sources.push(storage),
            }
        }
        sources
    }

    /// The nodes that are no functions and that a function follows from, directly or through others of them, if they are
    /// not in `counted` yet. Adds them to it.
    pub(crate) fn take_helpers(&self, function: usize, counted: &mut BTreeSet<usize>) -> Vec<usize> {
        let mut helpers = Vec::new();
        let mut stack = vec![function];
        while let Some(reader) = stack.pop() {
            for storage in self.storages_in(&self.graph.nodes[reader]) {
                let is_helper = matches!(self.role_of(storage), Some(NodeRole::Input | NodeRole::Folded));
                let made_by = self.lives.storages[storage].node.filter(|_| is_helper);
                if let Some(number) = made_by.filter(|&number| counted.insert(number)) {
                    helpers.push(number);
                    stack.push(number);
                }
            }
        }
        helpers
    }
}
