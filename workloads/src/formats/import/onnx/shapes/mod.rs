//! The shape of every value of a graph: as the file says it, or as it follows from the inputs.

mod call;
mod einsum;
mod known;
mod reshapes;
mod resize;
pub(crate) mod rules;
#[cfg(test)]
mod table;
pub(crate) mod value;
mod windows;

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use self::call::Call;
use self::rules::infer_outputs;
use self::value::{MOST_DIMENSIONS, Value, few_dimensions};
use super::messages::{Graph, Node, ValueInfo};
use crate::formats::error::{quote_excerpt, quote_names};

/// What is wrong with a graph.
#[derive(Debug)]
pub(crate) struct ModelFault {
    /// The node, if it is one.
    pub(crate) node: Option<usize>,
    pub(crate) reason: String,
}

impl From<String> for ModelFault {
    fn from(reason: String) -> Self {
        Self { node: None, reason }
    }
}

impl ModelFault {
    /// What is wrong with a node.
    pub(crate) const fn from_node(node: usize, reason: String) -> Self {
        Self { node: Some(node), reason }
    }
}

/// Names in a list of an error.
const SHOWN: usize = 8;

/// What is known of the values of a graph, by name.
pub(crate) struct Shapes<'g> {
    pub(crate) values: FxHashMap<&'g str, Value>,
    /// Values that are no tensors: sequences, maps.
    pub(crate) others: BTreeSet<&'g str>,
}

/// Dimensions that only the user can say.
struct Dims<'d> {
    given: &'d [(String, u64)],
    missing: BTreeSet<String>,
    /// Names that the file has.
    all: BTreeSet<String>,
}

impl<'g> Shapes<'g> {
    /// Follows the graph from its inputs.
    ///
    /// # Errors
    ///
    /// Names the dimensions that are not known, those given that the file lacks, or the value whose shape nobody knows.
    pub(crate) fn from_graph(graph: &'g Graph, given: &[(String, u64)]) -> Result<Self, ModelFault> {
        let mut dims = Dims { given, missing: BTreeSet::new(), all: BTreeSet::new() };
        let mut shapes = Self { values: FxHashMap::default(), others: BTreeSet::new() };
        shapes.add_initializers(graph)?;
        for input in &graph.inputs {
            if let Some(value) = shapes.declared_value(input, &mut dims)? {
                shapes.values.entry(&input.name).or_insert(value);
            }
        }
        let missing = std::mem::take(&mut dims.missing);
        let mut said = FxHashMap::default();
        for info in graph.value_info.iter().chain(&graph.outputs) {
            if let Some(value) = shapes.declared_value(info, &mut dims)? {
                said.insert(info.name.as_str(), value);
            }
        }
        dims.check_given(&missing)?;
        shapes.follow_nodes(graph, &mut said).refuse_unknown(&graph.nodes, !dims.all.is_empty())?;
        Ok(shapes)
    }

    fn add_initializers(&mut self, graph: &'g Graph) -> Result<(), String> {
        let sparse = graph.sparse_initializers.iter().filter_map(|sparse| sparse.values.as_ref());
        for tensor in graph.initializers.iter().chain(sparse) {
            let name = tensor.name.as_deref().unwrap_or_default();
            let value = Value::of_tensor(tensor)
                .map_err(|reason| format!("the initializer `{}`: {reason}", quote_excerpt(name)))?;
            self.values.insert(name, value);
        }
        Ok(())
    }

    /// What the file says of a value, if it says all of it.
    fn declared_value(&mut self, info: &'g ValueInfo, dims: &mut Dims<'_>) -> Result<Option<Value>, String> {
        let Some(of) = &info.of else { return Ok(None) };
        let Some(tensor) = &of.tensor else {
            self.others.insert(&info.name);
            return Ok(None);
        };
        let Some(said) = &tensor.shape else { return Ok(None) };
        few_dimensions(said.dims.len())
            .map_err(|reason| format!("the value `{}`: {reason}", quote_excerpt(&info.name)))?;
        let mut shape = Vec::new();
        for (at, dim) in said.dims.iter().enumerate() {
            let known = dim.value.and_then(|value| u64::try_from(value).ok());
            let param = dim.param.as_deref().unwrap_or_default();
            shape.push(known.or_else(|| dims.look_up(param, &info.name, at)));
        }
        let shape: Option<Vec<u64>> = shape.into_iter().collect();
        Ok(shape.map(|shape| Value::new(tensor.elem_type, shape)))
    }

    /// Node by node, in the file's order.
    fn follow_nodes(&mut self, graph: &'g Graph, said: &mut FxHashMap<&'g str, Value>) -> Unknown<'g> {
        let mut unknown = Unknown::default();
        for (number, node) in graph.nodes.iter().enumerate() {
            let call = Call {
                node,
                inputs: node.inputs.iter().map(|name| self.values.get(name.as_str())).collect(),
            };
            let ints = known::known_ints(&call);
            let (inferred, reason) = match infer_outputs(&call) {
                Ok(values) => (values, None),
                Err(reason) => (Vec::new(), Some(reason)),
            };
            let mut inferred = inferred.into_iter().filter(|value| value.rank() <= MOST_DIMENSIONS);
            for (at, name) in node.outputs.iter().enumerate() {
                let inferred = inferred.next().filter(|_| !name.is_empty());
                match join_known(said.remove(name.as_str()), inferred) {
                    Some(value) if at == 0 && value.ints.is_none() => {
                        self.values.insert(name, value.with_ints(ints.clone()));
                    }
                    Some(value) => {
                        self.values.insert(name, value);
                    }
                    None if name.is_empty() || self.others.contains(name.as_str()) => {}
                    None => unknown.add_value(number, name, reason.as_deref()),
                }
            }
        }
        unknown
    }
}

/// What is known of a value: as the file says it, with the numbers that its rule knows.
fn join_known(said: Option<Value>, inferred: Option<Value>) -> Option<Value> {
    let is_same = |said: &Value, rule: &Value| said.elem == rule.elem && said.shape == rule.shape;
    match (said, inferred) {
        (Some(said), Some(rule)) if is_same(&said, &rule) => Some(rule),
        (said, inferred) => said.or(inferred),
    }
}

/// Values whose shape nobody knows.
#[derive(Default)]
struct Unknown<'g> {
    count: u64,
    /// The first: its node, its name, and why.
    first: Option<(usize, &'g str, String)>,
}

impl<'g> Unknown<'g> {
    fn add_value(&mut self, node: usize, name: &'g str, reason: Option<&str>) {
        self.count += 1;
        if self.first.is_none() {
            let reason = reason.unwrap_or("the rule has fewer outputs, or more than 64 dimensions");
            self.first = Some((node, name, brief(reason)));
        }
    }

    fn refuse_unknown(self, nodes: &[Node], is_dynamic: bool) -> Result<(), ModelFault> {
        let Some((number, name, reason)) = self.first else { return Ok(()) };
        let more = match self.count - 1 {
            0 => String::new(),
            more => format!(" and {more} more values"),
        };
        let (name, op) = (quote_excerpt(name), quote_excerpt(&nodes[number].op_type));
        let first = match is_dynamic {
            true => {
                ", after onnx.tools.update_model_dims has fixed what is dynamic (--dim is for this import alone)"
            }
            false => "",
        };
        let reason = format!(
            "no shape is known of `{name}`{more} (node {number}, {op}: {reason}); onnx.shape_inference.infer_shapes \
             writes shapes into the file{first}"
        );
        Err(ModelFault::from_node(number, reason))
    }
}

impl Dims<'_> {
    /// The value of a dimension; one without a name is called by its place, `x[0]`.
    fn look_up(&mut self, param: &str, value: &str, at: usize) -> Option<u64> {
        let name = if param.is_empty() { format!("{value}[{at}]") } else { param.to_owned() };
        let given = self.given.iter().find(|(known, _)| *known == name).map(|&(_, value)| value);
        if given.is_none() {
            self.missing.insert(name.clone());
        }
        self.all.insert(name);
        given
    }

    /// Refuses missing dimensions of the inputs, and given ones that are not there.
    fn check_given(&self, missing: &BTreeSet<String>) -> Result<(), String> {
        if let Some((name, _)) = self.given.iter().find(|(name, _)| !self.all.contains(name)) {
            let there = match self.all.is_empty() {
                true => "it has no dynamic dimension".to_owned(),
                false => format!("it has {}", quote_names(self.all.iter(), SHOWN)),
            };
            return Err(format!("there is no dimension `{}` in it; {there}", quote_excerpt(name)));
        }
        if missing.is_empty() {
            return Ok(());
        }
        let example = missing.first().map_or("", String::as_str);
        let names = quote_names(missing.iter(), SHOWN);
        Err(format!("dynamic dimensions: {names}; fix each, as in --dim '{example}=1'"))
    }
}

/// A reason that may quote shapes of any length, for a message.
fn brief(reason: &str) -> String {
    const MOST: usize = 200;
    let mut brief: String = reason.chars().filter(|letter| !letter.is_control()).take(MOST).collect();
    if brief.len() < reason.len() {
        brief.push_str("...");
    }
    brief
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::import::onnx::messages::{Attribute, Dim, Tensor};
    use crate::formats::import::onnx::testing::{floats, graph, node};

    fn refused(graph: &Graph) -> String {
        Shapes::from_graph(graph, &[]).map(drop).expect_err("refused").reason
    }

    /// Shape inference says the shape of a constant, which says the shape of what is dynamic.
    #[test]
    fn a_constant_whose_shape_is_said_keeps_its_numbers() {
        let numbers = Attribute { name: "value_ints".to_owned(), ints: vec![3, -1], ..Attribute::default() };
        let constant = Node { attributes: vec![numbers], ..node("Constant", &[], &["shape"]) };
        let mut said = floats("shape", &[2]);
        said.of.as_mut().and_then(|of| of.tensor.as_mut()).expect("a tensor").elem_type = 7;
        let graph = Graph {
            nodes: vec![constant, node("Reshape", &["x", "shape"], &["y"])],
            inputs: vec![floats("x", &[2, 6])],
            value_info: vec![said],
            ..Graph::default()
        };
        let shapes = Shapes::from_graph(&graph, &[]).expect("known");
        assert_eq!(shapes.values["y"].shape, [3, 4]);
    }

    #[test]
    fn advice_on_missing_shapes_says_what_comes_first() {
        let node = node("NonZero", &["x"], &["y"]);
        let mut graph = graph(vec![node], vec![floats("x", &[2, 3])], vec![]);
        let told = refused(&graph);
        assert!(told.ends_with("infer_shapes writes shapes into the file"), "{told}");
        let tensor = graph.inputs[0].of.as_mut().and_then(|of| of.tensor.as_mut()).expect("a tensor");
        let dim = tensor.shape.as_mut().and_then(|shape| shape.dims.first_mut()).expect("a dimension");
        *dim = Dim { value: None, param: Some("batch".to_owned()) };
        let told =
            Shapes::from_graph(&graph, &[("batch".to_owned(), 2)]).map(drop).expect_err("refused").reason;
        assert!(
            told.contains("after onnx.tools.update_model_dims has fixed what is dynamic (--dim"),
            "{told}"
        );
    }

    /// Wherever the file says a shape: a node that reads such a value would walk all of them.
    #[test]
    fn shapes_of_too_many_dimensions_are_refused() {
        let weight = |count: usize| Tensor {
            name: Some("w".to_owned()),
            dims: vec![1; count],
            data_type: Some(1),
            ..Tensor::default()
        };
        let initialized = |count: usize| Graph { initializers: vec![weight(count)], ..Graph::default() };
        let input = |count: usize| Graph { inputs: vec![floats("x", &vec![1; count])], ..Graph::default() };
        let inner =
            |count: usize| Graph { value_info: vec![floats("v", &vec![1; count])], ..Graph::default() };
        let most = MOST_DIMENSIONS;
        for graph in [initialized(most), input(most), inner(most)] {
            assert!(Shapes::from_graph(&graph, &[]).is_ok());
        }
        let tells = |name: &str| format!("the {name}: it has 65 dimensions, more than 64");
        assert_eq!(refused(&initialized(most + 1)), tells("initializer `w`"));
        assert_eq!(refused(&input(most + 1)), tells("value `x`"));
        assert_eq!(refused(&inner(most + 1)), tells("value `v`"));
    }
}
