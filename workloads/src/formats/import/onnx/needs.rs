//! What the backward pass of each operator reads, and which operators pass no gradient on.

use super::messages::{Node, is_own};

/// What a backward pass reads beside the gradient of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    Inputs,
    /// The input at this place.
    Input(usize),
    Output,
    Both,
}

/// Sums, moves of elements, and steps whose gradient is 0.
#[rustfmt::skip]
const NEED_NOTHING: &[&str] = &[
    "Add", "AveragePool", "Cast", "CastLike", "Ceil", "Col2Im", "Concat", "CumSum", "DepthToSpace", "Dropout", "Expand",
    "Flatten", "Floor", "GlobalAveragePool", "Identity", "Mean", "Neg", "Pad", "ReduceMean", "ReduceSum", "Reshape",
    "Resize", "ReverseSequence", "Round", "Sign", "Slice", "SpaceToDepth", "Split", "Squeeze", "Sub", "Sum", "Tile",
    "Transpose", "Trilu", "Unsqueeze", "Upsample",
];
#[rustfmt::skip]
const NEED_INPUTS: &[&str] = &[
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BatchNormalization", "Clip", "Conv", "ConvTranspose",
    "Cos", "Cosh", "Det", "Div", "Einsum", "Erf", "Gelu", "Gemm", "GridSample", "GroupNormalization", "HardSwish",
    "InstanceNormalization", "LayerNormalization", "Log", "MatMul", "Max", "MeanVarianceNormalization", "Min", "Mish",
    "Mod", "Mul", "NegativeLogLikelihoodLoss", "PRelu", "Pow", "RMSNormalization", "ReduceSumSquare", "Shrink",
    "SimplifiedLayerNormalization", "Sin", "Sinh", "SoftmaxCrossEntropyLoss", "Softplus", "Softsign", "Swish", "Tan",
];
#[rustfmt::skip]
const NEED_OUTPUT: &[&str] = &[
    "Celu", "Elu", "Exp", "HardSigmoid", "LeakyRelu", "LogSoftmax", "Reciprocal", "Relu", "Selu", "Sigmoid", "Softmax",
    "Sqrt", "Tanh", "ThresholdedRelu", "TopK",
];
/// Operators that take or place elements: their backward pass reads the indices, or the condition.
const NEED_ONE_INPUT: &[(&str, usize)] = &[
    ("Compress", 1),
    ("Gather", 1),
    ("GatherElements", 1),
    ("GatherND", 1),
    ("ScatterElements", 1),
    ("ScatterND", 1),
    ("Where", 0),
];

/// Operators that read only the shape or the whole numbers of their inputs, or draw by chance.
const PASS_NO_GRADIENT: &[&str] =
    &["Bernoulli", "EyeLike", "OneHot", "RandomNormalLike", "RandomUniformLike"];

/// What the backward pass of a node reads. An unknown operator needs its inputs and its output.
pub(crate) fn find_needs(node: &Node) -> Needs {
    let op = node.op_type.as_str();
    // Operators of others may have these names and do what they like.
    if !is_own(node.domain.as_deref()) {
        return Needs::Both;
    }
    match op {
        // The mask is a part of the output.
        "Dropout" if has_mask(node) => Needs::Output,
        "ScatterElements" | "ScatterND" if !adds_elements(node) => Needs::Both,
        _ if NEED_NOTHING.contains(&op) => Needs::Nothing,
        _ if NEED_INPUTS.contains(&op) => Needs::Inputs,
        _ if NEED_OUTPUT.contains(&op) => Needs::Output,
        _ => NEED_ONE_INPUT
            .iter()
            .find(|(known, _)| *known == op)
            .map_or(Needs::Both, |&(_, at)| Needs::Input(at)),
    }
}

/// Whether a dropout gives its mask, which its backward pass reads.
fn has_mask(node: &Node) -> bool {
    node.outputs.get(1).is_some_and(|name| !name.is_empty())
}

/// Whether a scatter replaces elements or adds to them. The gradients of products and extremes depend on the values.
fn adds_elements(node: &Node) -> bool {
    matches!(node.text_attribute("reduction"), None | Some(b"none" | b"add"))
}

/// Whether the gradient of the output says nothing about the inputs of a node.
pub(crate) fn passes_no_gradient(node: &Node) -> bool {
    is_own(node.domain.as_deref()) && PASS_NO_GRADIENT.contains(&node.op_type.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::import::onnx::messages::Attribute;
    use crate::formats::import::onnx::testing::node;

    #[test]
    fn needs_follow_the_operator_of_onnx() {
        for (op, expected) in [
            ("Transpose", Needs::Nothing),
            ("LayerNormalization", Needs::Inputs),
            ("Gather", Needs::Input(1)),
            ("Where", Needs::Input(0)),
            ("Softmax", Needs::Output),
            ("MaxPool", Needs::Both),
            ("Mystery", Needs::Both),
        ] {
            assert_eq!(find_needs(&node(op, &["x"], &["y"])), expected, "{op}");
        }
        let other = Node { domain: Some("mine".to_owned()), ..node("Transpose", &["x"], &["y"]) };
        assert_eq!(find_needs(&other), Needs::Both);
    }

    #[test]
    fn dropout_needs_the_mask_that_it_gives() {
        let needs = |outputs: &[&str]| find_needs(&node("Dropout", &["x", "ratio", "yes"], outputs));
        assert_eq!(needs(&["y", "mask"]), Needs::Output);
        assert_eq!([needs(&["y"]), needs(&["y", ""])], [Needs::Nothing; 2]);
    }

    #[test]
    fn scatter_needs_all_values_unless_it_replaces_or_adds() {
        for op in ["ScatterElements", "ScatterND"] {
            let scatter = node(op, &["x", "indices", "updates"], &["y"]);
            assert_eq!(find_needs(&scatter), Needs::Input(1), "{op}");
            for (reduction, expected) in [
                ("none", Needs::Input(1)),
                ("add", Needs::Input(1)),
                ("mul", Needs::Both),
                ("max", Needs::Both),
                ("min", Needs::Both),
            ] {
                let name = "reduction".to_owned();
                let attribute = Attribute { name, s: Some(reduction.into()), ..Attribute::default() };
                let reduced = Node { attributes: vec![attribute], ..scatter.clone() };
                assert_eq!(find_needs(&reduced), expected, "{op} {reduction}");
            }
        }
    }

    #[test]
    fn operator_has_one_need() {
        let single = NEED_ONE_INPUT.iter().map(|(op, _)| op);
        let mut all: Vec<_> = [NEED_NOTHING, NEED_INPUTS, NEED_OUTPUT].concat();
        all.extend(single);
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
