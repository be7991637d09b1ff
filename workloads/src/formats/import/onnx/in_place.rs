//! Which operators may write their output over an input: those that make each element of it from the elements at the
//! same place.

use super::messages::{Node, is_own};

/// Operators of one such input, their first. Others that they have hold parameters.
const UNARY: [&str; 46] = [
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BatchNormalization",
    "BitwiseNot",
    "Cast",
    "CastLike",
    "Ceil",
    "Celu",
    "Clip",
    "Cos",
    "Cosh",
    "DequantizeLinear",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "HardSigmoid",
    "HardSwish",
    "IsInf",
    "IsNaN",
    "LeakyRelu",
    "Log",
    "Neg",
    "Not",
    "PRelu",
    "QuantizeLinear",
    "Reciprocal",
    "Relu",
    "Round",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
];

/// Operators of two such inputs. Those of more add one after the other to what the first two gave.
const BINARY: [&str; 23] = [
    "Add",
    "And",
    "BitShift",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "Div",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Max",
    "Mean",
    "Min",
    "Mod",
    "Mul",
    "Or",
    "Pow",
    "Sub",
    "Sum",
    "Where",
    "Xor",
];

/// The inputs that a node reads when elements of its output are there already.
pub(super) fn read_later(node: &Node) -> &[String] {
    if node.op_type == "Where" { &[] } else { node.inputs.get(2..).unwrap_or_default() }
}

/// The places of the inputs that a node's output may take, if both have as many elements of one size.
pub(super) fn inputs(node: &Node) -> std::ops::Range<usize> {
    let op = node.op_type.as_str();
    let has_one_output = node.outputs.iter().filter(|name| !name.is_empty()).count() == 1;
    // Operators of others may have these names and do what they like.
    if !has_one_output || !is_own(node.domain.as_deref()) {
        return 0..0;
    }
    // It reads the whole input before the first element is made.
    if op == "BatchNormalization" && node.int("training_mode").is_some_and(|flag| flag != 0) {
        return 0..0;
    }
    match op {
        // The condition comes first.
        "Where" => 1..3,
        _ if BINARY.contains(&op) => 0..2,
        _ if UNARY.contains(&op) => 0..1,
        _ => 0..0,
    }
}
