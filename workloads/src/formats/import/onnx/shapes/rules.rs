//! What shape an operator's outputs have, for the operators that nets are made of.
//!
//! The rules are those of ONNX's operator documentation. A value whose shape the file itself says needs none; an operator
//! without a rule is refused, with the advice to let ONNX's own shape inference write the shapes into the file.

use super::call::{Call, one, range};
use super::value::{BOOL, FLOAT, INT32, INT64, UINT8, Value};
use super::{einsum, reshapes, resize, windows};
use crate::formats::import::onnx::messages::Attribute;

/// Each element of the output is made from that of the first input at the same place.
#[rustfmt::skip]
pub(crate) const ELEMENTWISE: &[&str] = &[
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BatchNormalization", "BitwiseNot", "Ceil",
    "Celu", "Clip", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "HardSigmoid", "HardSwish", "LeakyRelu",
    "Log", "Neg", "Not", "PRelu", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin",
    "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "ThresholdedRelu",
];
/// Other outputs that are shaped as the first input.
#[rustfmt::skip]
const AS_FIRST: &[&str] = &[
    "CumSum", "Dropout", "Gelu", "GroupNormalization", "Hardmax", "Identity", "InstanceNormalization", "LRN",
    "LayerNormalization", "LogSoftmax", "LpNormalization", "MeanVarianceNormalization", "Mish",
    "RMSNormalization", "Scatter", "ScatterElements", "ScatterND", "SimplifiedLayerNormalization", "Softmax",
    "Swish", "Trilu",
];
/// Numpy's broadcasting, in the type of the first input.
#[rustfmt::skip]
pub(crate) const BROADCAST: &[&str] = &[
    "Add", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Max", "Mean", "Min", "Mod", "Mul",
    "Pow", "Sub", "Sum",
];
/// The same, with truth values.
#[rustfmt::skip]
pub(crate) const COMPARE: &[&str] = &[
    "And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Or", "Xor",
];

/// The outputs of a node, as many as are known of.
///
/// # Errors
///
/// Why nothing is known.
pub(crate) fn infer_outputs(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let op = call.node.op_type.as_str();
    let domain = call.node.domain.as_deref().unwrap_or_default();
    if !["", "ai.onnx"].contains(&domain) {
        return Err(format!("operators of `{domain}` have no rule here"));
    }
    match op {
        _ if ELEMENTWISE.contains(&op) || AS_FIRST.contains(&op) => as_first(call),
        _ if BROADCAST.contains(&op) => infer_broadcast(call, None),
        _ if COMPARE.contains(&op) => infer_broadcast(call, Some(BOOL)),
        "Where" => broadcast_where(call),
        "IsNaN" | "IsInf" => one(BOOL, &call.required_input(0)?.shape),
        "Cast" => one(element_attribute(call, "to")?, &call.required_input(0)?.shape),
        "CastLike" => one(call.required_input(1)?.elem, &call.required_input(0)?.shape),
        "QuantizeLinear" => {
            one(call.optional_input(2).map_or(UINT8, |zero| zero.elem), &call.required_input(0)?.shape)
        }
        "DequantizeLinear" => one(call.required_input(1)?.elem, &call.required_input(0)?.shape),
        "Conv" => windows::infer_convolution(call, 1, call.required_input(0)?.elem),
        "ConvInteger" => windows::infer_convolution(call, 1, INT32),
        // The elements are those of the last zero point.
        "QLinearConv" => windows::infer_convolution(call, 3, call.required_input(7)?.elem),
        "ConvTranspose" => windows::infer_transposed(call),
        "MaxPool" | "AveragePool" | "LpPool" => windows::infer_pool(call),
        "GlobalAveragePool" | "GlobalMaxPool" | "GlobalLpPool" => windows::global_pool(call),
        "Gemm" => infer_gemm(call),
        "MatMul" => infer_matmul(call, 1, call.required_input(0)?.elem),
        "MatMulInteger" => infer_matmul(call, 1, INT32),
        "QLinearMatMul" => infer_matmul(call, 3, call.required_input(7)?.elem),
        "Einsum" => einsum::infer_einsum(call),
        "Constant" => infer_constant(call),
        "ConstantOfShape" => constant_of_shape(call),
        "RandomNormalLike" | "RandomUniformLike" | "EyeLike" => as_first(call),
        "Range" => infer_range(call),
        "LSTM" | "GRU" | "RNN" => infer_recurrent(call),
        "Resize" | "Upsample" => resize::infer_resize(call),
        _ => reshapes::infer_reshape(call),
    }
}

fn as_first(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let first = call.required_input(0)?;
    let mut outputs = vec![Value::new(first.elem, first.shape.clone())];
    if call.node.op_type == "Dropout" {
        outputs.push(Value::new(BOOL, first.shape.clone()));
    }
    Ok(outputs)
}

/// The element type that an attribute names.
fn element_attribute(call: &Call<'_>, name: &str) -> Result<i32, String> {
    i32::try_from(call.int_attribute(name, 0)).map_err(|_| format!("`{name}` is no element type"))
}

/// The shape that two broadcast to.
fn broadcast_shapes(a: &[u64], b: &[u64]) -> Result<Vec<u64>, String> {
    let rank = a.len().max(b.len());
    let at =
        |shape: &[u64], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |place| shape[place]);
    let join = |axis| match (at(a, axis), at(b, axis)) {
        (a, b) if a == b || b == 1 => Ok(a),
        (1, b) => Ok(b),
        (a, b) => Err(format!("{a} and {b} do not broadcast")),
    };
    (0..rank).map(join).collect()
}

fn infer_broadcast(call: &Call<'_>, elem: Option<i32>) -> Result<Vec<Value>, String> {
    let first = call.required_input(0)?;
    let mut shape = first.shape.clone();
    for at in 1..call.node.inputs.len() {
        shape = broadcast_shapes(&shape, &call.required_input(at)?.shape)?;
    }
    one(elem.unwrap_or(first.elem), &shape)
}

fn broadcast_where(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let (condition, yes, no) = (call.required_input(0)?, call.required_input(1)?, call.required_input(2)?);
    one(yes.elem, &broadcast_shapes(&broadcast_shapes(&condition.shape, &yes.shape)?, &no.shape)?)
}

fn infer_gemm(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let (a, b) = (call.required_input(0)?, call.required_input(1)?);
    let ([a0, a1], [b0, b1]) = (&a.shape[..], &b.shape[..]) else {
        return Err("its inputs are no matrices".to_owned());
    };
    let rows = if call.int_attribute("transA", 0) != 0 { a1 } else { a0 };
    let columns = if call.int_attribute("transB", 0) != 0 { b0 } else { b1 };
    one(a.elem, &[*rows, *columns])
}

/// A product of the first input and another one.
fn infer_matmul(call: &Call<'_>, other: usize, elem: i32) -> Result<Vec<Value>, String> {
    let (a, b) = (call.required_input(0)?, call.required_input(other)?);
    if a.rank() == 0 || b.rank() == 0 {
        return Err("one of its inputs is a single number".to_owned());
    }
    // A vector stands for a matrix of one row, or one column, that the product loses again.
    let (batch_a, rows) = match a.shape[..] {
        [_] => (&[][..], None),
        _ => (&a.shape[..a.rank() - 2], Some(a.shape[a.rank() - 2])),
    };
    let (batch_b, columns) = match b.shape[..] {
        [_] => (&[][..], None),
        _ => (&b.shape[..b.rank() - 2], Some(b.shape[b.rank() - 1])),
    };
    let mut shape = broadcast_shapes(batch_a, batch_b)?;
    shape.extend(rows);
    shape.extend(columns);
    one(elem, &shape)
}

fn infer_constant(call: &Call<'_>) -> Result<Vec<Value>, String> {
    if let Some(tensor) = call.tensor_attribute("value") {
        return Ok(vec![Value::of_tensor(tensor)?]);
    }
    let [Attribute { name, i, floats, ints, .. }] = &call.node.attributes[..] else {
        return Err("a constant of no value".to_owned());
    };
    match (name.as_str(), i) {
        ("value_int", Some(int)) => Ok(vec![Value::new(INT64, []).with_ints(Some(vec![*int]))]),
        ("value_ints", _) => Ok(vec![Value::of_ints(ints.clone())]),
        ("value_float", _) => one(FLOAT, &[]),
        ("value_floats", _) => {
            let value = Value::new(FLOAT, [floats.len() as u64]);
            Ok(vec![value.with_floats(Some(floats.clone()))])
        }
        _ => Err(format!("a constant given as `{name}` has no rule here")),
    }
}

fn constant_of_shape(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let shape = call.known_ints(0).ok_or("its shape is known only when the net runs")?;
    let shape = shape.iter().map(|&dim| u64::try_from(dim)).collect::<Result<Vec<_>, _>>();
    let elem = call.tensor_attribute("value").and_then(|value| value.data_type).unwrap_or(FLOAT);
    one(elem, &shape.map_err(|_| "a negative dimension")?)
}

fn infer_range(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let first = |at: usize| call.known_ints(at).and_then(|ints| ints.first().copied());
    let (Some(start), Some(limit), Some(step)) = (first(0), first(1), first(2)) else {
        return Err("its bounds are known only when the net runs".to_owned());
    };
    one(call.required_input(0)?.elem, &[range(start, limit, step).ok_or("a step of 0")?])
}

/// LSTM, GRU and RNN: all states, then the last ones.
fn infer_recurrent(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let input = call.required_input(0)?;
    let [first, second, _] = input.shape[..] else {
        return Err("its input has not three dimensions".to_owned());
    };
    let hidden = u64::try_from(call.int_attribute("hidden_size", 0)).map_err(|_| "a negative hidden_size")?;
    let ways = if call.text_attribute("direction").as_deref() == Some("bidirectional") { 2 } else { 1 };
    // With layout 1 the batch comes first.
    let (all, last) = match call.int_attribute("layout", 0) {
        0 => ([first, ways, second, hidden], [ways, second, hidden]),
        _ => ([first, second, ways, hidden], [first, ways, hidden]),
    };
    Ok(vec![Value::new(input.elem, all), Value::new(input.elem, last), Value::new(input.elem, last)])
}
