//! ONNX models as nets in training: the nodes of the file are the forward pass, and rules give the backward pass.
//!
//! A node that makes a buffer is a function; its outputs are one map. Views are the map that they view. Initializers,
//! constants and inputs that are read as weights only are no maps; those of floats that functions read are parameters.
//!
//! | node | backward pass needs |
//! |---|---|
//! | `Conv`, `Gemm`, `MatMul`, products, normalizations, `Gelu` and the like | its inputs |
//! | `Relu`, `Sigmoid`, `Tanh`, `Softmax`, `Exp`, `Sqrt` and the like | its output |
//! | sums, means, average pooling, `Concat`, `Split`, `Slice`, `Transpose`, `Resize`, `Dropout` | nothing |
//! | max pooling, `LRN`, any other node | its inputs and its output |
//! | a node whose output is not of floats | there is no backward pass |
//!
//! A node that nobody knows keeps too much rather than too little. `Add` and `Sum` of maps of one size share the gradient.
//!
//! Work: a convolution and a matrix product have two operations for each product, twice as many in the backward pass (the
//! gradients of input and weights; once if the input is an input of the net). Every node moves what it reads, weights
//! included, and what it writes; in the backward pass a product moves it twice, and any other node moves its needs,
//! the gradient of its output and those of its inputs.

use std::collections::{BTreeMap, BTreeSet};

use planlab_dsa::Bytes;
use planlab_graph::{FeatureMap, Function, FunctionKind, MapId, TrainingNet, Work};

use super::lives::{Lives, Storage};
use super::messages::{Graph, Node, ValueInfo, is_own};
use super::model::DecodedModel;
use super::shapes::value::element_count;
use super::shapes::{ModelFault, Shapes};
use crate::formats::FormatError;
use crate::formats::import::Input;

/// Reads a model as a net in training. `dims` fixes dynamic dimensions. If the first dimension of the first input is
/// dynamic and not among them, it is the batch: `batch`, or 1.
///
/// # Errors
///
/// [`FormatError`] with the byte: an invalid model, a batch other than the model's, dynamic dimensions, a graph inside of
/// a node, or a net that breaks a [rule](planlab_graph::NetError).
pub fn read_training_net(
    input: Input<'_>,
    name: &str,
    batch: Option<u64>,
    dims: &[(String, u64)],
) -> Result<TrainingNet, FormatError> {
    let decoded = DecodedModel::from_input(input)?;
    let graph = decoded.graph()?;
    let mut dims = dims.to_vec();
    let open = batch_dimension(graph).filter(|open| dims.iter().all(|(name, _)| name != open));
    dims.extend(open.map(|open| (open, batch.unwrap_or(1))));
    let (shapes, lives) = decoded.follow_graph(&dims)?;
    let draft = NetDraft::new(graph, &shapes, &lives);
    draft.build_net(name, batch).map_err(|fault| decoded.error_at(fault))
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

/// What a backward pass reads beside the gradient of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    Inputs,
    Output,
    Both,
}

fn needs_of(node: &Node) -> Needs {
    // Operators of others may have these names and do what they like.
    if !is_own(node.domain.as_deref()) {
        return Needs::Both;
    }
    match node.op_type.as_str() {
        "Add" | "AveragePool" | "Cast" | "Concat" | "DepthToSpace" | "Dropout" | "Expand"
        | "GlobalAveragePool" | "Neg" | "Pad" | "ReduceMean" | "ReduceSum" | "Resize" | "Slice"
        | "SpaceToDepth" | "Split" | "Sub" | "Sum" | "Tile" | "Transpose" | "Upsample" => Needs::Nothing,
        "BatchNormalization"
        | "Clip"
        | "Conv"
        | "ConvTranspose"
        | "Div"
        | "Erf"
        | "Gelu"
        | "Gemm"
        | "GroupNormalization"
        | "HardSwish"
        | "InstanceNormalization"
        | "LayerNormalization"
        | "Log"
        | "MatMul"
        | "Mish"
        | "Mul"
        | "PRelu"
        | "Pow"
        | "Softplus" => Needs::Inputs,
        "Elu" | "Exp" | "HardSigmoid" | "LeakyRelu" | "LogSoftmax" | "Relu" | "Selu" | "Sigmoid"
        | "Softmax" | "Sqrt" | "Tanh" => Needs::Output,
        _ => Needs::Both,
    }
}

/// Whether a value of this element type (`TensorProto.DataType`) has a gradient.
const fn is_float(elem: i32) -> bool {
    matches!(elem, 1 | 10 | 11 | 14..=16)
}

/// A net that is being built.
struct NetDraft<'m> {
    graph: &'m Graph,
    shapes: &'m Shapes<'m>,
    lives: &'m Lives<'m>,
    maps: Vec<FeatureMap>,
    /// The number of maps that are inputs of the net. They come first, and have no gradient.
    input_maps: usize,
    /// For each buffer, its map; `None` for weights.
    map_of: Vec<Option<MapId>>,
    /// For each node that makes a buffer, its map.
    made: BTreeMap<usize, MapId>,
}

impl<'m> NetDraft<'m> {
    fn new(graph: &'m Graph, shapes: &'m Shapes<'m>, lives: &'m Lives<'m>) -> Self {
        let (maps, map_of, made) = (Vec::new(), Vec::new(), BTreeMap::new());
        let is_input = |storage: &&Storage<'_>| storage.node.is_none() && !storage.is_weight();
        let input_maps = lives.storages.iter().filter(is_input).count();
        let mut draft = Self { graph, shapes, lives, maps, input_maps, map_of, made };
        for storage in &lives.storages {
            let map = (!storage.is_weight()).then(|| {
                let known = storage.node.and_then(|number| draft.made.get(&number).copied());
                draft.add_bytes(known, storage.name, storage.bytes)
            });
            draft.map_of.push(map);
            draft.made.extend(storage.node.zip(map));
        }
        draft
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
        let mut functions = Vec::with_capacity(self.made.len());
        for (&number, &output) in &self.made {
            let node = &self.graph.nodes[number];
            if node.inner_graphs().next().is_some() {
                let reason =
                    format!("`{}` has a graph inside, whose backward pass is not known", node.op_type);
                return Err(ModelFault::from_node(number, reason));
            }
            functions.push(self.build_function(number, output));
        }
        let (maps, parameters) = (std::mem::take(&mut self.maps), self.count_parameters());
        TrainingNet::new(name, own, parameters, maps, functions)
            .map_err(|error| ModelFault::from(error.to_string()))
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

    fn build_function(&self, number: usize, output: MapId) -> Function {
        let node = &self.graph.nodes[number];
        let maps = node.inputs.iter().filter_map(|name| self.map_of[self.lives.storage_of(name)?]);
        let mut seen = BTreeSet::new();
        let inputs: Vec<MapId> = maps.filter(|&map| seen.insert(map)).collect();
        let kind = self.kind_of(node, &inputs, output);
        let needs = match needs_of(node) {
            _ if !self.has_gradient(node) => Vec::new(),
            Needs::Nothing => Vec::new(),
            Needs::Inputs => inputs.clone(),
            Needs::Output => vec![output],
            Needs::Both => inputs.iter().copied().chain([output]).collect(),
        };
        let function = Function {
            name: format!("{number}:{}", node.op_type),
            kind,
            inputs,
            output,
            needs,
            ..Function::default()
        };
        let (forward, backward) = self.work_of(node, &function);
        Function { forward, backward, ..function }
    }

    fn has_gradient(&self, node: &Node) -> bool {
        let value = node.outputs.first().and_then(|name| self.shapes.values.get(name.as_str()));
        value.is_some_and(|value| is_float(value.elem))
    }

    fn kind_of(&self, node: &Node, inputs: &[MapId], output: MapId) -> FunctionKind {
        let bytes = |map: &MapId| self.maps[map.index()].bytes;
        match node.op_type.as_str() {
            _ if !is_own(node.domain.as_deref()) => FunctionKind::Other,
            "Conv" | "ConvTranspose" => FunctionKind::Convolution,
            // One of the factors is a weight.
            "Gemm" | "MatMul" if inputs.len() == 1 => FunctionKind::FullyConnected,
            "Add" | "Sum"
                if self.has_gradient(node)
                    && inputs.len() == node.inputs.len()
                    && inputs.iter().all(|map| bytes(map) == bytes(&output)) =>
            {
                FunctionKind::Add
            }
            _ => FunctionKind::Other,
        }
    }

    /// The work of both passes.
    fn work_of(&self, node: &Node, function: &Function) -> (Work, Work) {
        let map_bytes = |map: &MapId| self.maps[map.index()].bytes.get() as f64;
        let names = node.inputs.iter().chain(&node.outputs);
        let moved: f64 = names.map(|name| self.value_bytes(name)).sum();
        let flops = self.count_flops(node);
        let forward = Work { flops: flops.unwrap_or_default(), bytes: moved, launches: 1 };
        if function.kind == FunctionKind::Add || !self.has_gradient(node) {
            return (forward, Work::default());
        }
        let backward = match flops {
            Some(flops) if function.inputs.iter().any(|map| map.index() >= self.input_maps) => {
                Work { flops: 2.0 * flops, bytes: 2.0 * moved, launches: 2 }
            }
            Some(flops) => Work { flops, bytes: moved, launches: 1 },
            None => {
                let needs: f64 = function.needs.iter().map(map_bytes).sum();
                let gradients: f64 = function.inputs.iter().chain([&function.output]).map(map_bytes).sum();
                Work { flops: 0.0, bytes: needs + gradients, launches: 1 }
            }
        };
        (forward, backward)
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
    use crate::formats::import::onnx::messages::{Attribute, Dim, Model, Shape, TensorType, Type};
    use crate::formats::import::onnx::testing::{floats, graph, node};
    use crate::formats::input::unpacked::Unpacked;

    fn read(graph: Graph, batch: Option<u64>) -> Result<TrainingNet, String> {
        let model = Model { ir_version: Some(9), graph: Some(graph), ..Model::default() }.encode_to_vec();
        let input = Input::new("m.onnx", Unpacked::plain(&model), InputLimits::default());
        read_training_net(input, "m", batch, &[]).map_err(|error| error.to_string())
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
        let expected = [
            ("image", 384),
            ("a", 640),
            ("b", 640),
            ("c", 640),
            ("d", 640),
            ("f", 16),
            ("g", 16),
            ("label", 16),
        ];
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
            (FunctionKind::Other, vec![6], vec![]),
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
        assert_eq!(net.functions()[6].backward, Work::default());
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
}
