//! Which operators may write their output over an input: those that make each element of it from the elements at the
//! same place.

use super::messages::{Node, is_own};
use super::shapes::rules::{BROADCAST, COMPARE, ELEMENTWISE};

/// The inputs that a node reads when elements of its output are there already.
pub(crate) fn read_later(node: &Node) -> &[String] {
    if node.op_type == "Where" { &[] } else { node.inputs.get(2..).unwrap_or_default() }
}

/// The places of the inputs that a node's output may take, if both have as many elements of one size.
pub(crate) fn replaceable_inputs(node: &Node) -> std::ops::Range<usize> {
    let op = node.op_type.as_str();
    let has_one_output = node.outputs.iter().filter(|name| !name.is_empty()).count() == 1;
    // Operators of others may have these names and do what they like.
    if !has_one_output || !is_own(node.domain.as_deref()) {
        return 0..0;
    }
    // It reads the whole input before the first element is made.
    if op == "BatchNormalization" && node.int_attribute("training_mode").is_some_and(|flag| flag != 0) {
        return 0..0;
    }
    match op {
        // The condition comes first.
        "Where" => 1..3,
        // Operators of more inputs add one after the other to what the first two gave.
        _ if BROADCAST.contains(&op) || COMPARE.contains(&op) => 0..2,
        // Others that they have hold parameters.
        "Cast" | "CastLike" | "DequantizeLinear" | "IsInf" | "IsNaN" | "QuantizeLinear" => 0..1,
        _ if ELEMENTWISE.contains(&op) => 0..1,
        _ => 0..0,
    }
}
