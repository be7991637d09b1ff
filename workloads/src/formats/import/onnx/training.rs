//! ONNX models as nets in training: the nodes of the file are the forward pass, and rules give the backward pass.
//!
//! A node whose output is made of floats is a function; its outputs are one map. Views are the map that they view.
//! Initializers, constants and inputs that are read as weights only are no maps; those of floats that functions read are
//! parameters.
//!
//! | node | backward pass needs |
//! |---|---|
//! | `Conv`, `Gemm`, `MatMul`, products, normalizations, `Gelu` and the like | its inputs |
//! | `Relu`, `Sigmoid`, `Tanh`, `Softmax`, `Exp`, `Sqrt` and the like; `Dropout` with a mask, a part of its output | its output |
//! | `Gather`, `ScatterElements` and the like; `Where` | the indices; the condition |
//! | sums, means, average pooling, `Concat`, `Split`, `Slice`, `Transpose`, `Resize`, `Dropout` | nothing |
//! | max pooling, `LRN`, recurrent cells, scatters that multiply or take an extreme, any other node | its inputs and its output |
//!
//! A node that nobody knows keeps too much rather than too little. `Add` and `Sum` of maps of one size share the gradient.
//!
//! # Values without a gradient
//!
//! Whole numbers, truth values, and floats that follow only from them and from single constants have no gradient: a mask
//! of attention, made of tokens. In the model of a net only inputs of the net have none, so no such value is the output of
//! a function:
//!
//! - If no function comes before it, it is an input of the net, and what it is made of is a map only if functions read it.
//! - If it follows from a function (`ArgMax`, `IsNaN`), each function that reads it computes it again, and reads what it is
//!   made of. The gradient of that has a part too many if the function does not read it anyway.
//! - Known numbers (shapes) and what no function reads are left out.
//!
//! Their work counts once, in the forward pass of the first function that follows from them.
//!
//! # Work
//!
//! A convolution and a matrix product have two operations for each product, twice as many in the backward pass (the
//! gradients of input and weights; once if its inputs have no gradient). Every node moves what it reads, weights
//! included, and what it writes; in the backward pass a product moves it twice, and any other node moves its needs,
//! the gradient of its output and those of its inputs.

use std::collections::{BTreeMap, BTreeSet};

use planlab_dsa::Bytes;
use planlab_graph::{FeatureMap, Function, FunctionKind, MapId, TrainingNet, Work};

use super::gradients::{GradientFlow, NodeRole, is_float};
use super::lives::Lives;
use super::messages::{Graph, Node, ValueInfo, is_own};
use super::model::DecodedModel;
use super::needs::{Needs, find_needs};
use super::shapes::value::element_count;
use super::shapes::{ModelFault, Shapes};
use crate::formats::FormatError;
use crate::formats::error::quote_excerpt;
use crate::formats::import::Input;

/// Reads a model as a net in training. `dims` fixes dynamic dimensions. If the first dimension of the first input is
/// dynamic and not among them, it is the batch: `batch`, or 1.
///
/// # Errors
///
/// [`FormatError`] with the byte: an invalid model, a batch other than the model's, dynamic dimensions, a graph inside of
/// a node, a function that reads what is no tensor, or a net that breaks a [rule](planlab_graph::NetError).
pub fn read_training_net(
    input: Input<'_>,
    name: &str,
    batch: Option<u64>,
    dims: &[(String, u64)],
) -> Result<TrainingNet, FormatError> {
    let decoded = DecodedModel::from_input(input)?;
    let graph = decoded.graph()?;
    let mut dims = dims.to_vec();
    dims.extend(open_batch(graph, &dims).map(|open| (open, batch.unwrap_or(1))));
    let (shapes, lives) = decoded.follow_graph(&dims)?;
    let draft = NetDraft::new(graph, &shapes, &lives);
    draft.build_net(name, batch).map_err(|fault| decoded.error_at(fault))
}

/// Whether a model can be read at any batch: the first dimension of its first input is dynamic, and not among `dims`.
///
/// # Errors
///
/// [`FormatError`] with the byte: an invalid model.
pub fn has_open_batch(input: Input<'_>, dims: &[(String, u64)]) -> Result<bool, FormatError> {
    let decoded = DecodedModel::from_input(input)?;
    Ok(open_batch(decoded.graph()?, dims).is_some())
}

/// The name of the dynamic dimension that is the batch, if it is not given.
fn open_batch(graph: &Graph, dims: &[(String, u64)]) -> Option<String> {
    batch_dimension(graph).filter(|open| dims.iter().all(|(name, _)| name != open))
}

/// The inputs of a graph that are not initializers.
fn true_inputs(graph: &Graph) -> impl Iterator<Item = &ValueInfo> {
    let stored: BTreeSet<&str> =
        graph.initializers.iter().filter_map(|tensor| tensor.name.as_deref()).collect();
    graph.inputs.iter().filter(move |input| !stored.contains(input.name.as_str()))
}

/// The name of the first dimension of the first input, if it has no size.
fn batch_dimension(graph: &Graph) -> Option<String> {
    let input = true_inputs(graph).next()?;
    let dim = input.of.as_ref()?.tensor.as_ref()?.shape.as_ref()?.dims.first()?;
    let name = dim.param.clone().filter(|name| !name.is_empty());
    dim.value.is_none().then(|| name.unwrap_or_else(|| format!("{}[0]", input.name)))
}

/// A net that is being built.
struct NetDraft<'m> {
    graph: &'m Graph,
    shapes: &'m Shapes<'m>,
    lives: &'m Lives<'m>,
    flow: GradientFlow<'m>,
    maps: Vec<FeatureMap>,
    /// The number of maps that are inputs of the net. They come first, and have no gradient.
    input_maps: usize,
    /// For each buffer, its map, if it has one.
    map_of: Vec<Option<MapId>>,
    /// For each function, by its node, its map.
    made: BTreeMap<usize, MapId>,
}

impl<'m> NetDraft<'m> {
    fn new(graph: &'m Graph, shapes: &'m Shapes<'m>, lives: &'m Lives<'m>) -> Self {
        let flow = GradientFlow::new(graph, shapes, lives);
        let (maps, map_of, made) = (Vec::new(), vec![None; lives.storages.len()], BTreeMap::new());
        let mut draft = Self { graph, shapes, lives, flow, maps, input_maps: 0, map_of, made };
        let (outputs, inputs): (Vec<usize>, Vec<usize>) =
            draft.find_stored().into_iter().partition(|&storage| draft.is_made(storage));
        draft.add_maps(&inputs);
        draft.input_maps = draft.maps.len();
        draft.made = draft.add_maps(&outputs);
        draft
    }

    /// The buffers that functions make or read, ascending.
    fn find_stored(&self) -> BTreeSet<usize> {
        let made = (0..self.lives.storages.len()).filter(|&storage| self.is_made(storage));
        let mut stored: BTreeSet<usize> = made.collect();
        for (number, _) in self.flow.nodes().filter(|&(_, role)| role == NodeRole::Function) {
            stored.extend(self.flow.sources_of(&self.graph.nodes[number].inputs));
        }
        stored
    }

    /// Whether a function makes the buffer.
    fn is_made(&self, storage: usize) -> bool {
        self.flow.role_of(storage) == Some(NodeRole::Function)
    }

    /// Adds maps for buffers, one for those of a node. Returns the map of each node.
    fn add_maps(&mut self, storages: &[usize]) -> BTreeMap<usize, MapId> {
        let mut map_of_node = BTreeMap::new();
        for &place in storages {
            let storage = &self.lives.storages[place];
            let known = storage.node.and_then(|number| map_of_node.get(&number).copied());
            let map = self.add_bytes(known, storage.name, storage.bytes);
            self.map_of[place] = Some(map);
            map_of_node.extend(storage.node.zip(Some(map)));
        }
        map_of_node
    }

    /// Adds a buffer to the map of its node, or as a new map.
    fn add_bytes(&mut self, known: Option<MapId>, name: &str, bytes: u64) -> MapId {
        let map = known.unwrap_or_else(|| {
            self.maps.push(FeatureMap { name: name.to_owned(), bytes: Bytes::ZERO });
            MapId::from_index(self.maps.len() - 1)
        });
        let total = &mut self.maps[map.index()].bytes;
        *total = Bytes::new(total.get().saturating_add(bytes));
        map
    }

    fn build_net(mut self, name: &str, batch: Option<u64>) -> Result<TrainingNet, ModelFault> {
        let own = self.model_batch();
        if let Some(batch) = batch.filter(|&batch| batch != own) {
            return Err(format!("the model has batch {own}, not {batch}").into());
        }
        self.refuse_inner_graphs()?;
        self.refuse_other_values()?;
        let mut counted = BTreeSet::new();
        let mut functions = Vec::with_capacity(self.made.len());
        for (&number, &output) in &self.made {
            functions.push(self.build_function(number, output, &mut counted));
        }
        let (maps, parameters) = (std::mem::take(&mut self.maps), self.count_parameters());
        TrainingNet::new(name, own, parameters, maps, functions)
            .map_err(|error| ModelFault::from(error.to_string()))
    }

    fn refuse_inner_graphs(&self) -> Result<(), ModelFault> {
        let has_graph = |number: &usize| self.graph.nodes[*number].inner_graphs().next().is_some();
        let Some(number) = self.flow.nodes().map(|(number, _)| number).find(has_graph) else {
            return Ok(());
        };
        let op = &self.graph.nodes[number].op_type;
        let reason = format!("`{op}` has a graph inside, whose backward pass is not known");
        Err(ModelFault::from_node(number, reason))
    }

    /// Refuses functions that read what is no tensor: it has no buffer, so what it is made of is not known.
    fn refuse_other_values(&self) -> Result<(), ModelFault> {
        for &number in self.made.keys() {
            let node = &self.graph.nodes[number];
            let other = node.inputs.iter().find(|name| self.shapes.others.contains(name.as_str()));
            if let Some(value) = other {
                let named = node.name.as_deref().filter(|name| !name.is_empty());
                let name = named.map_or_else(|| number.to_string(), quote_excerpt);
                let (op, value) = (quote_excerpt(&node.op_type), quote_excerpt(value));
                let reason = format!("node {name} ({op}) reads `{value}`, which is no tensor");
                let reason = format!("{reason}, so its backward pass is not known");
                return Err(ModelFault::from_node(number, reason));
            }
        }
        Ok(())
    }

    /// The first dimension of the first input.
    fn model_batch(&self) -> u64 {
        let shape = true_inputs(self.graph).next().and_then(|input| self.shape(&input.name));
        shape.and_then(|shape| shape.first().copied()).unwrap_or(1).max(1)
    }

    /// The elements of the floats that functions read and that are no maps: initializers, constants and what follows from
    /// them, inputs that are weights.
    fn count_parameters(&self) -> u64 {
        let read = self.made.keys().flat_map(|&number| &self.graph.nodes[number].inputs);
        let constants: BTreeSet<&str> =
            read.map(String::as_str).filter(|name| self.lives.storage_of(name).is_none()).collect();
        let given = self.lives.storages.iter().filter(|storage| storage.is_weight());
        let names = constants.into_iter().chain(given.map(|storage| storage.name));
        let values = names.filter_map(|name| self.shapes.values.get(name));
        let counts =
            values.filter(|value| is_float(value.elem)).filter_map(|value| element_count(&value.shape));
        counts.fold(0_u64, u64::saturating_add)
    }

    /// `counted` has the nodes whose work earlier functions have.
    fn build_function(&self, number: usize, output: MapId, counted: &mut BTreeSet<usize>) -> Function {
        let node = &self.graph.nodes[number];
        let inputs = self.maps_behind(&node.inputs);
        let needs = match find_needs(node) {
            Needs::Nothing => Vec::new(),
            Needs::Inputs => inputs.clone(),
            Needs::Input(at) => self.maps_behind(node.inputs.get(at..=at).unwrap_or_default()),
            Needs::Output => vec![output],
            Needs::Both => inputs.iter().copied().chain([output]).collect(),
        };
        let helpers = self.flow.take_helpers(number, counted);
        let function = Function {
            name: format!("{number}:{}", node.op_type),
            kind: self.kind_of(node, &inputs, output),
            inputs,
            output,
            needs,
            forward: self.forward_work([number].into_iter().chain(helpers)),
            ..Function::default()
        };
        Function { backward: self.backward_work(node, &function), ..function }
    }

    /// The distinct maps behind the values of these names, in their order.
    fn maps_behind(&self, names: &[String]) -> Vec<MapId> {
        let mut seen = BTreeSet::new();
        let maps = self.flow.sources_of(names).into_iter().filter_map(|storage| self.map_of[storage]);
        maps.filter(|&map| seen.insert(map)).collect()
    }

    fn kind_of(&self, node: &Node, inputs: &[MapId], output: MapId) -> FunctionKind {
        let bytes = |map: &MapId| self.maps[map.index()].bytes;
        let is_map =
            |name: &String| self.lives.storage_of(name).is_some_and(|storage| self.map_of[storage].is_some());
        match node.op_type.as_str() {
            _ if !is_own(node.domain.as_deref()) => FunctionKind::Other,
            "Conv" | "ConvTranspose" => FunctionKind::Convolution,
            // One of the factors is a weight.
            "Gemm" | "MatMul" if inputs.len() == 1 => FunctionKind::FullyConnected,
            "Add" | "Sum"
                if node.inputs.iter().all(is_map)
                    && inputs.len() == node.inputs.len()
                    && inputs.iter().all(|map| bytes(map) == bytes(&output)) =>
            {
                FunctionKind::Add
            }
            _ => FunctionKind::Other,
        }
    }

    /// The forward work of some nodes together.
    fn forward_work(&self, nodes: impl Iterator<Item = usize>) -> Work {
        let mut work = Work::default();
        for node in nodes.map(|number| &self.graph.nodes[number]) {
            work.flops += self.count_flops(node).unwrap_or_default();
            work.bytes += self.moved_bytes(node);
            work.launches = work.launches.saturating_add(1);
        }
        work
    }

    fn backward_work(&self, node: &Node, function: &Function) -> Work {
        if function.kind == FunctionKind::Add {
            return Work::default();
        }
        let map_bytes = |map: &MapId| self.maps[map.index()].bytes.get() as f64;
        let has_gradient = |map: &&MapId| map.index() >= self.input_maps;
        match (self.count_flops(node), self.moved_bytes(node)) {
            (Some(flops), bytes) if function.inputs.iter().any(|map| has_gradient(&map)) => {
                Work { flops: 2.0 * flops, bytes: 2.0 * bytes, launches: 2 }
            }
            (Some(flops), bytes) => Work { flops, bytes, launches: 1 },
            (None, _) => {
                let needs: f64 = function.needs.iter().map(map_bytes).sum();
                let inputs = function.inputs.iter().filter(has_gradient);
                let gradients: f64 = inputs.chain([&function.output]).map(map_bytes).sum();
                Work { flops: 0.0, bytes: needs + gradients, launches: 1 }
            }
        }
    }

    /// The bytes that the forward pass of a node reads and writes.
    fn moved_bytes(&self, node: &Node) -> f64 {
        node.inputs.iter().chain(&node.outputs).map(|name| self.value_bytes(name)).sum()
    }

    /// The operations of a product; `None` for other nodes.
    fn count_flops(&self, node: &Node) -> Option<f64> {
        let elements = |shape: &[u64]| shape.iter().map(|&dim| dim as f64).product::<f64>();
        let input = |place: usize| self.shape(node.inputs.get(place)?);
        let output = elements(self.shape(node.outputs.first()?)?);
        let products = match node.op_type.as_str() {
            _ if !is_own(node.domain.as_deref()) => return None,
            // Weights are output channels x input channels of a group x window, of a transposed one the other way round.
            "Conv" => output * elements(input(1)?.get(1..)?),
            "ConvTranspose" => elements(input(0)?) * elements(input(1)?.get(1..)?),
            "Gemm" if node.int_attribute("transA").is_some_and(|flag| flag != 0) => {
                output * *input(0)?.first()? as f64
            }
            "Gemm" | "MatMul" => output * *input(0)?.last()? as f64,
            _ => return None,
        };
        Some(2.0 * products)
    }

    fn shape(&self, name: &str) -> Option<&'m [u64]> {
        self.shapes.values.get(name).map(|value| value.shape.as_slice())
    }

    /// The bytes of a value; 0 if they are not known.
    fn value_bytes(&self, name: &str) -> f64 {
        let bytes = self.shapes.values.get(name).and_then(|value| value.byte_size().ok());
        bytes.unwrap_or_default() as f64
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::formats::InputLimits;
    use crate::formats::import::onnx::messages::{Attribute, Dim, Model, Shape, Tensor, TensorType, Type};
    use crate::formats::import::onnx::testing::{floats, graph, node};
    use crate::formats::input::unpacked::Unpacked;

    fn encode(graph: Graph) -> Vec<u8> {
        Model { ir_version: Some(9), graph: Some(graph), ..Model::default() }.encode_to_vec()
    }

    fn input(model: &[u8]) -> Input<'_> {
        Input::new("m.onnx", Unpacked::plain(model), InputLimits::default())
    }

    fn read(graph: Graph, batch: Option<u64>) -> Result<TrainingNet, String> {
        let net = read_training_net(input(&encode(graph)), "m", batch, &[]);
        net.map_err(|error| error.to_string())
    }

    /// A convolution (its weights are an input that nobody makes), a ReLU, a shortcut around another, a classifier.
    fn small_graph() -> Graph {
        let image = ValueInfo {
            name: "image".to_owned(),
            of: Some(Type {
                tensor: Some(TensorType {
                    elem_type: 1,
                    shape: Some(Shape {
                        dims: [None, Some(3), Some(4), Some(4)]
                            .map(|value| Dim { value, param: None })
                            .to_vec(),
                    }),
                }),
            }),
        };
        graph(
            vec![
                node("Conv", &["image", "w1"], &["a"]),
                node("Relu", &["a"], &["b"]),
                node("Conv", &["b", "w2"], &["c"]),
                node("Add", &["b", "c"], &["d"]),
                node("Flatten", &["d"], &["e"]),
                node("Gemm", &["e", "w3"], &["f"]),
                node("Mystery", &["f"], &["g"]),
                node("Classes", &["g"], &["label"]),
            ],
            vec![image, floats("w1", &[5, 3, 1, 1]), floats("w2", &[5, 5, 1, 1]), floats("w3", &[80, 2])],
            vec![floats("g", &[2, 2]), whole("label", &[2, 1])],
        )
    }

    /// A tensor of 64-bit whole numbers.
    fn whole(name: &str, dims: &[i64]) -> ValueInfo {
        let mut value = floats(name, dims);
        if let Some(tensor) = value.of.as_mut().and_then(|of| of.tensor.as_mut()) {
            tensor.elem_type = 7;
        }
        value
    }

    #[test]
    fn model_becomes_a_net_with_work_and_needs() {
        let net = read(small_graph(), Some(2)).expect("a net");
        assert_eq!((net.batch(), net.parameters()), (2, 15 + 25 + 160));
        let maps: Vec<_> = net.maps().iter().map(|map| (&map.name[..], map.bytes.get())).collect();
        let expected = [("image", 384), ("a", 640), ("b", 640), ("c", 640), ("d", 640), ("f", 16), ("g", 16)];
        assert_eq!(maps, expected);
        let indices = |maps: &[MapId]| maps.iter().map(|map| map.index()).collect::<Vec<_>>();
        let functions: Vec<_> = net
            .functions()
            .iter()
            .map(|function| (function.kind, indices(&function.inputs), indices(&function.needs)))
            .collect();
        let expected = [
            (FunctionKind::Convolution, vec![0], vec![0]),
            (FunctionKind::Other, vec![1], vec![2]),
            (FunctionKind::Convolution, vec![2], vec![2]),
            (FunctionKind::Add, vec![2, 3], vec![]),
            (FunctionKind::FullyConnected, vec![4], vec![4]),
            (FunctionKind::Other, vec![5], vec![5, 6]),
        ];
        assert_eq!(functions, expected);
        let flops = |place: usize| {
            let function = &net.functions()[place];
            (function.forward.flops, function.backward.flops)
        };
        // Outputs of 160 elements with 3 and 5 products each, and of 4 with 80.
        assert_eq!(flops(0), (960.0, 960.0), "nobody needs the gradient of the image");
        assert_eq!((flops(2), flops(4)), ((1600.0, 3200.0), (640.0, 1280.0)));
        assert_eq!(net.functions()[1].backward.bytes, 3.0 * 640.0);
    }

    fn initializer(name: &str, dims: &[i64]) -> Tensor {
        let (dims, name) = (dims.to_vec(), Some(name.to_owned()));
        Tensor { dims, data_type: Some(1), name, ..Tensor::default() }
    }

    /// A number of the type that `to` says.
    fn cast(to: i64, input: &str, output: &str) -> Node {
        let to = Attribute { name: "to".to_owned(), i: Some(to), ..Attribute::default() };
        Node { attributes: vec![to], ..node("Cast", &[input], &[output]) }
    }

    /// Embedded tokens, to which a mask is added twice, and a guard against undefined numbers.
    fn masked_graph() -> Graph {
        let nodes = vec![
            node("Gather", &["words", "tokens"], &["h"]),
            cast(1, "seen", "kept"),
            node("Sub", &["one", "kept"], &["hidden"]),
            node("Mul", &["hidden", "low"], &["mask"]),
            node("Add", &["h", "mask"], &["a"]),
            node("Add", &["a", "mask"], &["b"]),
            node("IsNaN", &["b"], &["bad"]),
            node("Where", &["bad", "one", "b"], &["c"]),
            node("Shape", &["c"], &["dims"]),
            node("Expand", &["c", "dims"], &["d"]),
            node("ArgMax", &["d"], &["best"]),
        ];
        let inputs = vec![whole("tokens", &[2, 3]), whole("seen", &[2, 3, 1])];
        let outputs = vec![floats("d", &[2, 3, 4]), whole("best", &[1, 3, 4])];
        let initializers =
            vec![initializer("words", &[10, 4]), initializer("one", &[]), initializer("low", &[1])];
        Graph { initializers, ..graph(nodes, inputs, outputs) }
    }

    #[test]
    fn value_without_a_gradient_is_no_output_of_a_function() {
        let net = read(masked_graph(), None).expect("a net");
        let maps: Vec<_> = net.maps().iter().map(|map| (&map.name[..], map.bytes.get())).collect();
        let expected = [("tokens", 48), ("mask", 24), ("h", 96), ("a", 96), ("b", 96), ("c", 96), ("d", 96)];
        assert_eq!(maps, expected);
        let indices = |maps: &[MapId]| maps.iter().map(|map| map.index()).collect::<Vec<_>>();
        let functions: Vec<_> = net
            .functions()
            .iter()
            .map(|function| (&function.name[..], indices(&function.inputs), indices(&function.needs)))
            .collect();
        let expected = [
            ("0:Gather", vec![0], vec![0]),
            ("4:Add", vec![2, 1], vec![]),
            ("5:Add", vec![3, 1], vec![]),
            ("7:Where", vec![4], vec![4]),
            ("9:Expand", vec![5], vec![]),
        ];
        assert_eq!(functions, expected);
        let with_gradient = net.map_ids().filter(|&map| net.has_gradient(map)).count();
        assert_eq!((with_gradient, net.parameters()), (5, 40 + 1));
        // The mask is made once, and the guard where it is read; nobody reads the best.
        let launches: Vec<_> = net.functions().iter().map(|function| function.forward.launches).collect();
        assert_eq!(launches, [1, 4, 1, 2, 1]);
        assert_eq!(net.functions()[1].backward.bytes, 2.0 * 96.0, "the mask has no gradient");
    }

    #[test]
    fn model_without_gradients_is_refused() {
        let numbers = graph(vec![cast(1, "x", "y")], vec![whole("x", &[4])], vec![floats("y", &[4])]);
        let refused = read(numbers, None).expect_err("no gradient");
        assert!(refused.ends_with("a net without functions"), "{refused}");
    }

    #[test]
    fn batch_is_the_dimension_without_a_size() {
        let mut batch_of_one = small_graph();
        batch_of_one.outputs = vec![floats("g", &[1, 2]), whole("label", &[1, 1])];
        assert_eq!(read(batch_of_one, None).map(|net| net.batch()), Ok(1));
        let fixed = || {
            let (values, result) = (vec![floats("x", &[4, 8])], vec![floats("y", &[4, 8])]);
            graph(vec![node("Relu", &["x"], &["y"])], values, result)
        };
        assert_eq!(read(fixed(), None).map(|net| net.batch()), Ok(4));
        let is_open = |graph, dims: &[(String, u64)]| has_open_batch(input(&encode(graph)), dims);
        assert_eq!((is_open(small_graph(), &[]), is_open(fixed(), &[])), (Ok(true), Ok(false)));
        assert_eq!(is_open(small_graph(), &[("image[0]".to_owned(), 2)]), Ok(false));
        let refused = read(fixed(), Some(8)).expect_err("another batch");
        assert!(refused.ends_with("the model has batch 4, not 8"), "{refused}");
    }

    #[test]
    fn graph_inside_of_a_node_is_refused() {
        let inside = Attribute {
            name: "then_branch".to_owned(),
            g: Some(Box::new(graph(vec![], vec![], vec![]))),
            ..Attribute::default()
        };
        let branch = Node { attributes: vec![inside], ..node("If", &["x"], &["y"]) };
        let refused = read(graph(vec![branch], vec![floats("x", &[1])], vec![floats("y", &[1])]), None);
        let text = refused.expect_err("a branch");
        assert!(text.ends_with("`If` has a graph inside, whose backward pass is not known"), "{text}");
    }

    /// A net that splits a map into a sequence, and what is read from that.
    fn sequence_graph(readers: Vec<Node>) -> Graph {
        let sequence = || ValueInfo { name: "parts".to_owned(), of: Some(Type { tensor: None }) };
        let start = vec![node("Relu", &["x"], &["a"]), node("SplitToSequence", &["a"], &["parts"])];
        let index = Tensor { data_type: Some(7), ..initializer("index", &[]) };
        Graph {
            initializers: vec![index],
            value_info: vec![floats("part", &[1, 8]), sequence()],
            ..graph(
                [start, readers].concat(),
                vec![floats("x", &[4, 8])],
                vec![floats("a", &[4, 8]), sequence()],
            )
        }
    }

    #[test]
    fn function_that_reads_a_sequence_is_refused() {
        let at = node("SequenceAt", &["parts", "index"], &["part"]);
        let named = Node { name: Some("first".to_owned()), ..at.clone() };
        for (at, shown) in [(at, "2"), (named, "first")] {
            let refused = read(sequence_graph(vec![at, node("Exp", &["part"], &["y"])]), None);
            let text = refused.expect_err("a sequence");
            let reason = "reads `parts`, which is no tensor, so its backward pass is not known";
            assert!(text.ends_with(&format!("node {shown} (SequenceAt) {reason}")), "{text}");
        }
        let unread = read(sequence_graph(vec![]), None).expect("no function reads the sequence");
        assert_eq!(unread.functions().len(), 1);
    }

    #[test]
    fn mask_is_needed_unless_its_dropout_is_a_view() {
        let read_with = |is_test: i64| -> (Vec<Vec<usize>>, Vec<u64>) {
            let off = Attribute { name: "is_test".to_owned(), i: Some(is_test), ..Attribute::default() };
            let dropout = Node { attributes: vec![off], ..node("Dropout", &["a"], &["b", "mask"]) };
            let nodes = vec![node("Relu", &["x"], &["a"]), dropout, node("Exp", &["b"], &["y"])];
            let model = graph(nodes, vec![floats("x", &[4, 8])], vec![floats("y", &[4, 8])]);
            let net = read(Graph { value_info: vec![whole("mask", &[4, 8])], ..model }, None).expect("a net");
            let indices = |maps: &[MapId]| maps.iter().map(|map| map.index()).collect::<Vec<_>>();
            let needs = net.functions().iter().map(|function| indices(&function.needs)).collect();
            (needs, net.maps().iter().map(|map| map.bytes.get()).collect())
        };
        assert_eq!(read_with(0), (vec![vec![1], vec![2], vec![3]], vec![128, 128, 128 + 256, 128]));
        assert_eq!(read_with(1), (vec![vec![1], vec![2]], vec![128; 3]));
    }
}
