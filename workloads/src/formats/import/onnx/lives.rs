//! When each value of a graph is live: from the node that makes it to the last that reads it.
//!
//! Nodes run in the file's order, one a step. What a graph is given is live from the start, what it gives to the end.
//! The output of a view operator is the buffer of its input, which is as large as the largest of them. Initializers and
//! constants, and views of them, have memory of their own. So has what a node makes of constants alone: a runtime computes
//! it once, before the net runs. That takes a standard operator without chance and without a graph inside, as in ONNX
//! Runtime, and an output that the net does not give; an initializer that is also an input is a default.

use rustc_hash::{FxHashMap, FxHashSet};

use super::messages::{Graph, Node, Versions, is_own};
use super::shapes::{ModelFault, Shapes};
use super::{in_place, views};
use crate::formats::error::quote_excerpt;
use crate::formats::import::gather::Tally;

/// A buffer of the graph.
#[derive(Debug, Default)]
pub(crate) struct Storage<'g> {
    pub(crate) name: &'g str,
    /// The node that makes it; none makes an input.
    pub(crate) node: Option<usize>,
    pub(crate) start: u64,
    /// The last step that reads it.
    pub(crate) last: u64,
    pub(crate) bytes: u64,
    pub(crate) is_output: bool,
    /// How often it is read.
    reads: u64,
    /// How often it is read as a weight or a bias.
    weights: u64,
}

impl Storage<'_> {
    /// Whether it is an input that is read as weights, and as nothing else.
    pub(crate) const fn is_weight(&self) -> bool {
        self.node.is_none() && self.reads > 0 && self.reads == self.weights
    }
}

/// Where a value is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValuePlace {
    /// With the weights, and the same in every run.
    Constant,
    /// With the weights; a run may be given another.
    Outside,
    /// In a buffer, by number.
    In(usize),
}

/// The buffers of a graph, and what has memory of its own.
#[derive(Default)]
pub(crate) struct Lives<'g> {
    pub(crate) storages: Vec<Storage<'g>>,
    pub(crate) initializers: Tally,
    pub(crate) constants: Tally,
    /// What nodes make of constants alone.
    pub(crate) folded: Tally,
    /// Outputs of view operators.
    pub(crate) views: u64,
    /// Values that are no tensors.
    pub(crate) others: u64,
    /// Buffers that may be written over others, which end there: output, input.
    pub(crate) permissions: Vec<(usize, usize)>,
    places: FxHashMap<&'g str, ValuePlace>,
    /// What the net gives.
    outputs: FxHashSet<&'g str>,
    /// Of the operators.
    version: i64,
}

impl<'g> Lives<'g> {
    /// Plays a graph.
    ///
    /// # Errors
    ///
    /// The value or node that makes no sense.
    pub(crate) fn from_graph(
        graph: &'g Graph,
        shapes: &Shapes<'g>,
        versions: Versions,
    ) -> Result<Self, ModelFault> {
        let outputs = graph.outputs.iter().map(|output| output.name.as_str()).collect();
        let mut lives = Self { version: versions.operators, outputs, ..Self::default() };
        let inputs = graph.inputs.iter().filter(|_| versions.has_defaults());
        let overridable: FxHashSet<&str> = inputs.map(|input| input.name.as_str()).collect();
        let sparse = graph.sparse_initializers.iter().filter_map(|sparse| sparse.values.as_ref());
        for tensor in graph.initializers.iter().chain(sparse) {
            let name = tensor.name.as_deref().unwrap_or_default();
            let bytes = shapes.values.get(name).map_or(Ok(0), |value| value.byte_size());
            lives.initializers.add_bytes(bytes.unwrap_or(0));
            let place = if overridable.contains(name) { ValuePlace::Outside } else { ValuePlace::Constant };
            lives.places.insert(name, place);
        }
        for input in &graph.inputs {
            // Older files list initializers among the inputs.
            if !lives.places.contains_key(input.name.as_str()) {
                lives.store_value(&input.name, None, 0, shapes)?;
            }
        }
        for (number, node) in graph.nodes.iter().enumerate() {
            lives.run_node(number, node, shapes).map_err(|reason| ModelFault::from_node(number, reason))?;
        }
        let end = graph.nodes.len() as u64;
        for output in &graph.outputs {
            match lives.places.get(output.name.as_str()) {
                Some(&ValuePlace::In(at)) => {
                    lives.storages[at].last = end.saturating_sub(1);
                    lives.storages[at].is_output = true;
                }
                Some(ValuePlace::Constant | ValuePlace::Outside) => {}
                None if shapes.others.contains(output.name.as_str()) => {}
                None => {
                    return Err(format!("nothing makes the output `{}`", quote_excerpt(&output.name)).into());
                }
            }
        }
        let storages = &lives.storages;
        lives.permissions.retain(|&(output, input)| {
            let (output, input) = (&storages[output], &storages[input]);
            let ends = input.last == output.start && !input.is_output && !input.is_weight();
            // A view may have made one of them larger.
            ends && output.bytes <= input.bytes
        });
        Ok(lives)
    }

    /// The buffer that a value is in, by number.
    pub(crate) fn storage_of(&self, name: &str) -> Option<usize> {
        find_storage(&self.places, name)
    }

    /// Notes the inputs that the output of a node may overwrite if they end there.
    fn permit_inputs(&mut self, node: &'g Node, output: &str, storage: usize, shapes: &Shapes<'g>) {
        let value = |name: &str| shapes.values.get(name);
        let Some(made) = value(output) else { return };
        let place = |name: &String| find_storage(&self.places, name);
        // An input that is repeated along a dimension is read again after it was written over.
        let fits = |name: &String| {
            value(name).is_some_and(|read| read.shape == made.shape && read.byte_size() == made.byte_size())
        };
        for at in in_place::replaceable_inputs(node) {
            let Some(input) = node.inputs.get(at).and_then(place) else { continue };
            let all_fit = node.inputs.iter().filter(|name| place(name) == Some(input)).all(fits);
            let is_read_later = in_place::read_later(node).iter().any(|name| place(name) == Some(input));
            if all_fit && !is_read_later && self.permissions.last() != Some(&(storage, input)) {
                self.permissions.push((storage, input));
            }
        }
    }

    fn run_node(&mut self, number: usize, node: &'g Node, shapes: &Shapes<'g>) -> Result<(), String> {
        let step = number as u64;
        let shows = views::is_view(node, self.version, shapes);
        for (at, name) in node.inputs.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            match self.places.get(name.as_str()) {
                // What a view hands on is judged where it is read in the end.
                Some(&ValuePlace::In(place)) if shows && at == 0 => self.storages[place].last = step,
                Some(&ValuePlace::In(place)) => self.read_value(place, step, is_weight(&node.op_type, at)),
                Some(ValuePlace::Constant | ValuePlace::Outside) => {}
                None if shapes.others.contains(name.as_str()) => {}
                None => {
                    let (op, name) = (quote_excerpt(&node.op_type), quote_excerpt(name));
                    return Err(format!(
                        "node {number} ({op}) reads `{name}`, which nothing before it makes"
                    ));
                }
            }
        }
        // What a branch or a loop reads from outside is read by its node.
        let mut captured = Vec::new();
        node.inner_graphs().for_each(|graph| names_in(graph, &mut captured));
        for name in captured {
            if let Some(&ValuePlace::In(place)) = self.places.get(name) {
                self.read_value(place, step, false);
            }
        }
        self.store_outputs(number, node, shapes)
    }

    /// Whether the outputs of a node are the same in every run, so that they are computed before the first.
    fn is_folded(&self, node: &Node) -> bool {
        let mut inputs = node.inputs.iter().filter(|name| !name.is_empty()).peekable();
        let has_inputs = inputs.peek().is_some();
        has_inputs
            && inputs.all(|name| self.places.get(name.as_str()) == Some(&ValuePlace::Constant))
            && is_own(node.domain.as_deref())
            && !BY_CHANCE.contains(&node.op_type.as_str())
            && node.inner_graphs().next().is_none()
            && !node.outputs.iter().any(|name| self.outputs.contains(name.as_str()))
    }

    fn store_outputs(&mut self, number: usize, node: &'g Node, shapes: &Shapes<'g>) -> Result<(), String> {
        let viewed = node.inputs.first().and_then(|name| self.places.get(name.as_str())).copied();
        let viewed = viewed.filter(|_| views::is_view(node, self.version, shapes));
        let is_folded = self.is_folded(node);
        for (at, name) in node.outputs.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            if self.places.contains_key(name.as_str()) {
                return Err(format!("node {number} makes `{}`, which is there already", quote_excerpt(name)));
            }
            match viewed.filter(|_| at == 0) {
                Some(ValuePlace::In(place)) => {
                    let bytes = value_bytes(name, shapes)?.unwrap_or(0);
                    let storage = &mut self.storages[place];
                    storage.bytes = storage.bytes.max(bytes);
                    self.views += 1;
                    self.places.insert(name, ValuePlace::In(place));
                }
                Some(place) => {
                    self.places.insert(name, place);
                }
                None if node.op_type == "Constant" => {
                    self.constants.add_bytes(value_bytes(name, shapes)?.unwrap_or(0));
                    self.places.insert(name, ValuePlace::Constant);
                }
                None if is_folded => {
                    if let Some(bytes) = value_bytes(name, shapes)? {
                        self.folded.add_bytes(bytes);
                        self.places.insert(name, ValuePlace::Constant);
                    } else {
                        self.others += 1;
                    }
                }
                None => {
                    let storage = self.storages.len();
                    self.store_value(name, Some(number), number as u64, shapes)?;
                    if storage < self.storages.len() {
                        self.permit_inputs(node, name, storage, shapes);
                    }
                }
            }
        }
        Ok(())
    }

    fn read_value(&mut self, place: usize, step: u64, weight: bool) {
        let storage = &mut self.storages[place];
        storage.last = step;
        storage.reads += 1;
        storage.weights += u64::from(weight);
    }

    fn store_value(
        &mut self,
        name: &'g str,
        node: Option<usize>,
        start: u64,
        shapes: &Shapes<'g>,
    ) -> Result<(), String> {
        let Some(bytes) = value_bytes(name, shapes)? else {
            self.others += 1;
            return Ok(());
        };
        self.places.insert(name, ValuePlace::In(self.storages.len()));
        self.storages.push(Storage { name, node, start, last: start, bytes, ..Storage::default() });
        Ok(())
    }
}

/// The buffer that a value is in.
fn find_storage(places: &FxHashMap<&str, ValuePlace>, name: &str) -> Option<usize> {
    match places.get(name) {
        Some(&ValuePlace::In(place)) => Some(place),
        _ => None,
    }
}

/// Operators whose outputs differ from run to run. Dropout is among them where it drops: elsewhere it is a view.
const BY_CHANCE: [&str; 7] = [
    "Bernoulli",
    "Dropout",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
];

/// The bytes of a value; none of what is no tensor.
fn value_bytes(name: &str, shapes: &Shapes<'_>) -> Result<Option<u64>, String> {
    if shapes.others.contains(name) {
        return Ok(None);
    }
    let Some(value) = shapes.values.get(name) else {
        return Err(format!("no shape is known of `{}`", quote_excerpt(name)));
    };
    value.byte_size().map(Some).map_err(|reason| format!("`{}`: {reason}", quote_excerpt(name)))
}

/// Collects the names that the nodes of a graph inside of a node read.
fn names_in<'g>(graph: &'g Graph, names: &mut Vec<&'g str>) {
    for node in &graph.nodes {
        names.extend(node.inputs.iter().map(String::as_str));
        node.inner_graphs().for_each(|graph| names_in(graph, names));
    }
    names.extend(graph.outputs.iter().map(|output| output.name.as_str()));
}

/// Whether an operator's input is a weight, a bias or the like.
fn is_weight(op: &str, at: usize) -> bool {
    match op {
        "Conv"
        | "ConvTranspose"
        | "ConvInteger"
        | "Gemm"
        | "BatchNormalization"
        | "InstanceNormalization"
        | "LayerNormalization"
        | "GroupNormalization"
        | "PRelu" => at >= 1,
        "LSTM" | "GRU" | "RNN" => (1..=3).contains(&at),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::import::onnx::messages::{Attribute, Tensor};
    use crate::formats::import::onnx::testing::{floats, graph, node};

    const VERSIONS: Versions = Versions { format: 10, operators: 22 };

    fn play(graph: &Graph) -> Vec<(&str, u64, u64, u64)> {
        let shapes = Shapes::from_graph(graph, &[]).expect("known");
        let lives = Lives::from_graph(graph, &shapes, VERSIONS).expect("valid");
        lives.storages.iter().map(|s| (s.name, s.start, s.last, s.bytes)).collect()
    }

    #[test]
    fn a_view_is_the_buffer_that_it_shows() {
        let graph = graph(
            vec![
                node("Relu", &["x"], &["a"]),
                node("Flatten", &["a"], &["b"]),
                node("Identity", &["b"], &["c"]),
                node("Relu", &["x"], &["d"]),
                node("Add", &["c", "d"], &["y"]),
            ],
            vec![floats("x", &[1, 4])],
            vec![floats("y", &[1, 4])],
        );
        assert_eq!(play(&graph), [("x", 0, 3, 16), ("a", 0, 4, 16), ("d", 3, 4, 16), ("y", 4, 4, 16)]);
    }

    fn initializer() -> Tensor {
        Tensor { dims: vec![2], data_type: Some(1), name: Some("c".to_owned()), ..Tensor::default() }
    }

    /// The values that have a buffer, in a net that adds its input to what `nodes` make of the initializer `c`.
    fn buffers_beside(nodes: Vec<Node>, last: &str, versions: Versions) -> Vec<String> {
        let nodes = [nodes, vec![node("Add", &["x", last], &["y"])]].concat();
        let inputs = vec![floats("x", &[2]), floats("c", &[2])];
        let graph =
            Graph { initializers: vec![initializer()], ..graph(nodes, inputs, vec![floats("y", &[2])]) };
        let shapes = Shapes::from_graph(&graph, &[]).expect("known");
        let lives = Lives::from_graph(&graph, &shapes, versions).expect("valid");
        lives.storages.iter().map(|storage| storage.name.to_owned()).collect()
    }

    #[test]
    fn constant_inputs_make_constant_outputs() {
        let old = Versions { format: 3, operators: 8 };
        let chain = || {
            vec![
                node("Exp", &["c"], &["a"]),
                node("Identity", &["a"], &["b"]),
                node("Add", &["a", "b"], &["d"]),
            ]
        };
        assert_eq!(buffers_beside(chain(), "d", old), ["x", "y"]);
        // A run may be given another `c`, as an input that has a default.
        assert_eq!(buffers_beside(chain(), "d", VERSIONS), ["x", "a", "d", "y"]);
    }

    #[test]
    fn chance_graphs_and_foreign_operators_make_buffers() {
        let old = Versions { format: 3, operators: 8 };
        let made = |node: Node| buffers_beside(vec![node], "a", old).contains(&"a".to_owned());
        assert!(!made(node("Neg", &["c"], &["a"])));
        assert!(made(node("RandomNormalLike", &["c"], &["a"])));
        assert!(made(node("Add", &["c", "x"], &["a"])));
        let with_graph = Attribute { g: Some(Box::default()), ..Attribute::default() };
        assert!(made(Node { attributes: vec![with_graph], ..node("Neg", &["c"], &["a"]) }));
        let foreign = Node { domain: Some("mine".to_owned()), ..node("Neg", &["c"], &["a"]) };
        let lives = Lives { places: [("c", ValuePlace::Constant)].into_iter().collect(), ..Lives::default() };
        assert!(!lives.is_folded(&foreign) && lives.is_folded(&Node { domain: None, ..foreign }));
        assert!(!lives.is_folded(&node("RandomNormal", &[], &["a"])));
    }

    #[test]
    fn an_output_of_the_net_is_made_when_it_runs() {
        let graph = |nodes: Vec<Node>| Graph {
            initializers: vec![initializer()],
            ..graph(nodes, vec![], vec![floats("y", &[2])])
        };
        assert_eq!(play(&graph(vec![node("Neg", &["c"], &["y"])])), [("y", 0, 0, 8)]);
        // What it is made of is folded.
        let chain = vec![node("Neg", &["c"], &["a"]), node("Exp", &["a"], &["y"])];
        assert_eq!(play(&graph(chain)), [("y", 1, 1, 8)]);
    }

    #[test]
    fn a_branch_keeps_what_it_reads() {
        let inner = graph(vec![node("Relu", &["a"], &["inner"])], vec![], vec![floats("inner", &[4])]);
        let mut branch = node("If", &["condition"], &["y"]);
        branch.attributes.push(Attribute {
            name: "then_branch".to_owned(),
            g: Some(Box::new(inner)),
            ..Attribute::default()
        });
        let graph = graph(
            vec![node("Relu", &["x"], &["a"]), node("Relu", &["x"], &["b"]), branch],
            vec![floats("x", &[4]), floats("condition", &[1])],
            vec![floats("y", &[4])],
        );
        let lives = play(&graph);
        assert!(lives.contains(&("a", 0, 2, 16)), "{lives:?}");
        assert!(lives.contains(&("b", 1, 1, 16)), "{lives:?}");
    }

    #[test]
    fn elementwise_nodes_may_overwrite_what_ends_there() {
        let graph = Graph {
            nodes: vec![
                node("Relu", &["x"], &["a"]),
                // x is read again.
                node("Mul", &["x", "a"], &["b"]),
                // Both end here; of one size is `b` alone.
                node("Add", &["b", "bias"], &["c"]),
                node("Softmax", &["c"], &["d"]),
                node("Reshape", &["d"], &["e"]),
                // Two values in one buffer, both repeated.
                node("Add", &["d", "e"], &["f"]),
                node("Cast", &["f"], &["half"]),
                node("Identity", &["half"], &["y"]),
            ],
            inputs: vec![floats("x", &[4, 1]), floats("bias", &[1])],
            outputs: vec![floats("y", &[4, 4])],
            value_info: vec![floats("e", &[1, 4]), floats("f", &[4, 4]), floats("half", &[4, 4])],
            ..Graph::default()
        };
        let shapes = Shapes::from_graph(&graph, &[]).expect("known");
        let lives = Lives::from_graph(&graph, &shapes, VERSIONS).expect("valid");
        let name = |at: usize| lives.storages[at].name;
        let permitted: Vec<_> =
            lives.permissions.iter().map(|&(output, input)| (name(output), name(input))).collect();
        assert_eq!(permitted, [("b", "x"), ("b", "a"), ("c", "b"), ("half", "f")]);
    }

    #[test]
    fn what_is_added_last_is_not_overwritten_first() {
        let permitted = |inputs: &[&str]| {
            let graph = graph(
                vec![node("Sum", inputs, &["s"]), node("Softmax", &["s"], &["t"])],
                ["x", "y", "z"].iter().map(|name| floats(name, &[4])).collect(),
                vec![floats("t", &[4])],
            );
            let shapes = Shapes::from_graph(&graph, &[]).expect("known");
            let lives = Lives::from_graph(&graph, &shapes, VERSIONS).expect("valid");
            let inputs = lives.permissions.iter().map(|&(_, input)| lives.storages[input].name.to_owned());
            inputs.collect::<Vec<String>>()
        };
        assert_eq!(permitted(&["x", "y", "z"]), ["x", "y"]);
        assert_eq!(permitted(&["x", "y", "x"]), ["y"]);
        assert_eq!(permitted(&["x", "y", "z", "y"]), ["x"]);
        assert_eq!(permitted(&["x", "x"]), ["x"]);
    }

    #[test]
    fn inputs_that_are_only_weights_are_known() {
        let graph = graph(
            vec![node("Identity", &["w"], &["v"]), node("Conv", &["x", "v"], &["y"])],
            vec![floats("x", &[1, 1, 4, 4]), floats("w", &[1, 1, 2, 2])],
            vec![floats("y", &[1, 1, 3, 3])],
        );
        let shapes = Shapes::from_graph(&graph, &[]).expect("known");
        let lives = Lives::from_graph(&graph, &shapes, VERSIONS).expect("valid");
        let weights: Vec<bool> = lives.storages.iter().map(Storage::is_weight).collect();
        assert_eq!(weights, [false, true, false]);
    }
}
