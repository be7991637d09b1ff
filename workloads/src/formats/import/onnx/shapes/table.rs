//! The rules against the shapes that ONNX 1.23.2 itself infers at operator set 22.

use super::call::Call;
use super::rules::infer_outputs;
use super::value::{BOOL, FLOAT, INT64, UINT8, Value};
use crate::formats::import::onnx::messages::{Attribute, Node};

const INT8: i32 = 3;

/// An attribute.
enum Said {
    Int(i64),
    Ints(&'static [i64]),
    Floats(&'static [f32]),
    Text(&'static str),
}
use Said::{Floats, Int, Ints, Text};

/// Operator, inputs, attributes, and the element type and shape of each output.
type Case =
    (&'static str, Vec<Option<Value>>, &'static [(&'static str, Said)], &'static [(i32, &'static [u64])]);

fn floats(shape: &[u64]) -> Value {
    of(FLOAT, shape)
}

fn of(elem: i32, shape: &[u64]) -> Value {
    Value::new(elem, shape)
}

fn ints(ints: &[i64]) -> Value {
    Value::of_ints(ints.to_vec())
}

fn scales(floats: &[f32]) -> Value {
    of(FLOAT, &[floats.len() as u64]).with_floats(Some(floats.to_vec()))
}

fn node(op: &str, inputs: &[Option<Value>], attributes: &[(&str, Said)], outputs: usize) -> Node {
    let name =
        |(at, input): (usize, &Option<Value>)| input.as_ref().map_or(String::new(), |_| at.to_string());
    let attribute = |(name, said): &(&str, Said)| {
        let mut attribute = Attribute { name: (*name).to_owned(), ..Attribute::default() };
        match said {
            Int(int) => attribute.i = Some(*int),
            Ints(ints) => attribute.ints = ints.to_vec(),
            Floats(floats) => attribute.floats = floats.to_vec(),
            Text(text) => attribute.s = Some(text.as_bytes().into()),
        }
        attribute
    };
    Node {
        op_type: op.to_owned(),
        inputs: inputs.iter().enumerate().map(name).collect(),
        outputs: (0..outputs).map(|at| at.to_string()).collect(),
        attributes: attributes.iter().map(attribute).collect(),
        ..Node::default()
    }
}

#[test]
fn rules_infer_what_onnx_infers() {
    for (op, inputs, attributes, expected) in cases() {
        let node = node(op, &inputs, attributes, expected.len());
        let call = Call { node: &node, inputs: inputs.iter().map(Option::as_ref).collect() };
        let outputs = infer_outputs(&call).unwrap_or_else(|reason| panic!("{op}: {reason}"));
        let outputs: Vec<(i32, &[u64])> =
            outputs.iter().take(expected.len()).map(|value| (value.elem, &value.shape[..])).collect();
        assert_eq!(outputs, expected, "{op} of {inputs:?}");
    }
}

#[test]
fn calls_that_make_no_sense_are_refused() {
    let cases: [Case; 15] = [
        ("Conv", vec![Some(floats(&[1, 1, 2, 2])), Some(floats(&[1, 1, 3, 3]))], &[], &[]),
        ("Conv", vec![Some(floats(&[1])), Some(floats(&[1]))], &[], &[]),
        ("MaxPool", vec![Some(floats(&[1, 1, 2]))], &[("kernel_shape", Ints(&[0]))], &[]),
        ("Concat", vec![Some(floats(&[1, 2])), Some(floats(&[2, 2]))], &[("axis", Int(1))], &[]),
        ("Reshape", vec![Some(floats(&[2, 3])), Some(ints(&[4, -1]))], &[], &[]),
        ("Add", vec![Some(floats(&[2])), Some(floats(&[3]))], &[], &[]),
        ("Transpose", vec![Some(floats(&[2]))], &[("perm", Ints(&[1]))], &[]),
        ("Resize", vec![Some(floats(&[1, 2])), None, Some(floats(&[2]))], &[], &[]),
        ("Resize", vec![Some(floats(&[1, 2])), None, Some(scales(&[2.0]))], &[], &[]),
        ("Resize", vec![Some(floats(&[1, 2])), None, Some(scales(&[1.0, -1.0]))], &[], &[]),
        ("Resize", vec![Some(floats(&[1, 2])), None, Some(scales(&[1.0, f32::NAN]))], &[], &[]),
        ("Einsum", vec![Some(floats(&[2]))], &[], &[]),
        ("Einsum", vec![Some(floats(&[2]))], &[("equation", Text("...->..."))], &[]),
        ("Einsum", vec![Some(floats(&[2, 3])), Some(floats(&[4]))], &[("equation", Text("ij,j->i"))], &[]),
        ("Einsum", vec![Some(floats(&[2]))], &[("equation", Text("i->k"))], &[]),
    ];
    for (op, inputs, attributes, _) in cases {
        let node = node(op, &inputs, attributes, 1);
        let call = Call { node: &node, inputs: inputs.iter().map(Option::as_ref).collect() };
        assert!(infer_outputs(&call).is_err(), "{op} of {inputs:?}");
    }
}

#[rustfmt::skip]
fn cases() -> [Case; 55] {
    [
        ("Conv", vec![Some(floats(&[1, 3, 9, 8])), Some(floats(&[4, 3, 3, 3]))], &[("pads", Ints(&[1, 1, 1, 1])), ("strides", Ints(&[2, 2]))], &[(1, &[1, 4, 5, 4])]),
        ("Conv", vec![Some(floats(&[2, 4, 10, 10])), Some(floats(&[8, 1, 3, 3]))], &[("dilations", Ints(&[2, 2])), ("group", Int(4))], &[(1, &[2, 8, 6, 6])]),
        ("Conv", vec![Some(floats(&[1, 3, 9, 9])), Some(floats(&[4, 3, 2, 2]))], &[("auto_pad", Text("SAME_UPPER")), ("strides", Ints(&[2, 2]))], &[(1, &[1, 4, 5, 5])]),
        ("Conv", vec![Some(floats(&[1, 3, 9])), Some(floats(&[4, 3, 2]))], &[("auto_pad", Text("VALID"))], &[(1, &[1, 4, 8])]),
        ("ConvTranspose", vec![Some(floats(&[1, 4, 5, 5])), Some(floats(&[4, 3, 3, 3]))], &[("strides", Ints(&[2, 2])), ("pads", Ints(&[1, 1, 1, 1])), ("output_padding", Ints(&[1, 1]))], &[(1, &[1, 3, 10, 10])]),
        ("MaxPool", vec![Some(floats(&[1, 2, 13, 13]))], &[("kernel_shape", Ints(&[3, 3])), ("strides", Ints(&[2, 2])), ("ceil_mode", Int(1))], &[(1, &[1, 2, 6, 6]), (7, &[1, 2, 6, 6])]),
        ("MaxPool", vec![Some(floats(&[1, 2, 12, 12]))], &[("kernel_shape", Ints(&[3, 3])), ("strides", Ints(&[2, 2])), ("ceil_mode", Int(1))], &[(1, &[1, 2, 6, 6])]),
        ("AveragePool", vec![Some(floats(&[1, 2, 7, 7]))], &[("kernel_shape", Ints(&[2, 2])), ("strides", Ints(&[2, 2])), ("pads", Ints(&[1, 1, 1, 1])), ("ceil_mode", Int(1))], &[(1, &[1, 2, 4, 4])]),
        ("GlobalAveragePool", vec![Some(floats(&[1, 5, 7, 6]))], &[], &[(1, &[1, 5, 1, 1])]),
        ("Gemm", vec![Some(floats(&[3, 4])), Some(floats(&[5, 4]))], &[("transB", Int(1))], &[(1, &[3, 5])]),
        ("MatMul", vec![Some(floats(&[2, 1, 3, 4])), Some(floats(&[5, 4, 6]))], &[], &[(1, &[2, 5, 3, 6])]),
        ("MatMul", vec![Some(floats(&[4])), Some(floats(&[4, 6]))], &[], &[(1, &[6])]),
        ("Add", vec![Some(floats(&[3, 1, 5])), Some(floats(&[4, 1]))], &[], &[(1, &[3, 4, 5])]),
        ("Equal", vec![Some(floats(&[3, 1])), Some(floats(&[3, 2]))], &[], &[(9, &[3, 2])]),
        ("Where", vec![Some(of(BOOL, &[3, 1])), Some(floats(&[3, 2])), Some(floats(&[2]))], &[], &[(1, &[3, 2])]),
        ("Concat", vec![Some(floats(&[2, 3])), Some(floats(&[2, 4]))], &[("axis", Int(-1))], &[(1, &[2, 7])]),
        ("Flatten", vec![Some(floats(&[2, 3, 4]))], &[("axis", Int(2))], &[(1, &[6, 4])]),
        ("Flatten", vec![Some(floats(&[2, 3, 4]))], &[("axis", Int(0))], &[(1, &[1, 24])]),
        ("Reshape", vec![Some(floats(&[2, 3, 4])), Some(ints(&[0, -1]))], &[], &[(1, &[2, 12])]),
        ("Squeeze", vec![Some(floats(&[1, 3, 1])), Some(ints(&[-1]))], &[], &[(1, &[1, 3])]),
        ("Squeeze", vec![Some(floats(&[1, 3, 1]))], &[], &[(1, &[3])]),
        ("Unsqueeze", vec![Some(floats(&[3])), Some(ints(&[0, -1]))], &[], &[(1, &[1, 3, 1])]),
        ("Transpose", vec![Some(floats(&[2, 3, 4]))], &[("perm", Ints(&[2, 0, 1]))], &[(1, &[4, 2, 3])]),
        ("Transpose", vec![Some(floats(&[2, 3, 4]))], &[], &[(1, &[4, 3, 2])]),
        ("Split", vec![Some(floats(&[2, 7]))], &[("axis", Int(1)), ("num_outputs", Int(3))], &[(1, &[2, 3]), (1, &[2, 3]), (1, &[2, 1])]),
        ("Split", vec![Some(floats(&[2, 7])), Some(ints(&[3, 4]))], &[("axis", Int(1))], &[(1, &[2, 3]), (1, &[2, 4])]),
        ("Slice", vec![Some(floats(&[5, 6])), Some(ints(&[1, -1])), Some(ints(&[i64::MAX, -7])), Some(ints(&[0, 1])), Some(ints(&[2, -2]))], &[], &[(1, &[2, 3])]),
        ("Gather", vec![Some(floats(&[5, 6, 7])), Some(of(INT64, &[2, 3]))], &[("axis", Int(1))], &[(1, &[5, 2, 3, 7])]),
        ("GatherND", vec![Some(floats(&[5, 6, 7])), Some(of(INT64, &[4, 2]))], &[], &[(1, &[4, 7])]),
        ("Expand", vec![Some(floats(&[3, 1])), Some(ints(&[2, 1, 6]))], &[], &[(1, &[2, 3, 6])]),
        ("Tile", vec![Some(floats(&[3, 2])), Some(ints(&[2, 4]))], &[], &[(1, &[6, 8])]),
        ("Pad", vec![Some(floats(&[3, 2])), Some(ints(&[1, 0, 2, -1]))], &[], &[(1, &[6, 1])]),
        ("DepthToSpace", vec![Some(floats(&[1, 8, 2, 3]))], &[("blocksize", Int(2))], &[(1, &[1, 2, 4, 6])]),
        ("SpaceToDepth", vec![Some(floats(&[1, 2, 4, 6]))], &[("blocksize", Int(2))], &[(1, &[1, 8, 2, 3])]),
        ("TopK", vec![Some(floats(&[3, 9])), Some(ints(&[4]))], &[("axis", Int(-1))], &[(1, &[3, 4]), (7, &[3, 4])]),
        ("ArgMax", vec![Some(floats(&[3, 9]))], &[("axis", Int(1)), ("keepdims", Int(0))], &[(7, &[3])]),
        ("ReduceMean", vec![Some(floats(&[3, 9, 2])), Some(ints(&[1]))], &[("keepdims", Int(1))], &[(1, &[3, 1, 2])]),
        ("ReduceSum", vec![Some(floats(&[3, 9, 2]))], &[("keepdims", Int(0))], &[(1, &[])]),
        ("Resize", vec![Some(floats(&[1, 1, 2, 2])), None, None, Some(ints(&[1, 1, 4, 6]))], &[], &[(1, &[1, 1, 4, 6])]),
        ("Resize", vec![Some(floats(&[1, 3, 10, 7])), None, Some(scales(&[1.0, 1.0, 0.7, 1.6]))], &[], &[(1, &[1, 3, 6, 11])]),
        ("Resize", vec![Some(floats(&[1, 3, 10, 7])), None, Some(scales(&[2.0, 0.5]))], &[("axes", Ints(&[2, -1]))], &[(1, &[1, 3, 20, 3])]),
        ("Resize", vec![Some(floats(&[1, 3, 10, 7])), None, None, Some(ints(&[4, 5]))], &[("axes", Ints(&[2, 3]))], &[(1, &[1, 3, 4, 5])]),
        // Of operator sets 10 and 7.
        ("Resize", vec![Some(floats(&[1, 3, 10, 7])), Some(scales(&[1.0, 1.0, 0.7, 1.6]))], &[], &[(1, &[1, 3, 6, 11])]),
        ("Upsample", vec![Some(floats(&[1, 1, 2, 3]))], &[("scales", Floats(&[1.0, 1.0, 2.0, 2.5]))], &[(1, &[1, 1, 4, 7])]),
        ("QLinearConv", vec![Some(of(UINT8, &[1, 3, 9, 8])), Some(floats(&[])), Some(of(UINT8, &[])), Some(of(INT8, &[4, 3, 3, 3])), Some(floats(&[])), Some(of(INT8, &[])), Some(floats(&[])), Some(of(INT8, &[]))], &[("strides", Ints(&[2, 2]))], &[(3, &[1, 4, 4, 3])]),
        ("QLinearMatMul", vec![Some(of(UINT8, &[2, 3])), Some(floats(&[])), Some(of(UINT8, &[])), Some(of(INT8, &[3, 5])), Some(floats(&[])), Some(of(INT8, &[])), Some(floats(&[])), Some(of(INT8, &[]))], &[], &[(3, &[2, 5])]),
        ("MatMulInteger", vec![Some(of(UINT8, &[2, 3])), Some(of(INT8, &[3, 5]))], &[], &[(6, &[2, 5])]),
        ("Einsum", vec![Some(floats(&[2, 3, 4])), Some(floats(&[2, 4, 5]))], &[("equation", Text("bij, bjk -> bik"))], &[(1, &[2, 3, 5])]),
        ("Einsum", vec![Some(floats(&[3, 4])), Some(floats(&[4, 5]))], &[("equation", Text("zj,ja"))], &[(1, &[5, 3])]),
        ("Einsum", vec![Some(floats(&[3, 4]))], &[("equation", Text("ij->"))], &[(1, &[])]),
        ("Shape", vec![Some(floats(&[4, 5, 6]))], &[("start", Int(1))], &[(7, &[2])]),
        ("ConstantOfShape", vec![Some(ints(&[2, 3]))], &[], &[(1, &[2, 3])]),
        ("LSTM", vec![Some(floats(&[7, 2, 3])), Some(floats(&[2, 16, 3])), Some(floats(&[2, 16, 4]))], &[("hidden_size", Int(4)), ("direction", Text("bidirectional"))], &[(1, &[7, 2, 2, 4]), (1, &[2, 2, 4]), (1, &[2, 2, 4])]),
        ("Dropout", vec![Some(floats(&[3, 4]))], &[], &[(1, &[3, 4]), (9, &[3, 4])]),
        ("Cast", vec![Some(floats(&[3]))], &[("to", Int(7))], &[(7, &[3])]),
    ]
}
