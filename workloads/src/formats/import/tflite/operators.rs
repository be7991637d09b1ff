//! The names of TensorFlow Lite's operators, by their number (`BuiltinOperator` of `schema.fbs`).

#[rustfmt::skip]
const NAMES: [&str; 130] = [
    "add", "average_pool_2d", "concatenation", "conv_2d", "depthwise_conv_2d", "depth_to_space", "dequantize",
    "embedding_lookup", "floor", "fully_connected", "hashtable_lookup", "l2_normalization", "l2_pool_2d",
    "local_response_normalization", "logistic", "lsh_projection", "lstm", "max_pool_2d", "mul", "relu",
    "relu_n1_to_1", "relu6", "reshape", "resize_bilinear", "rnn", "softmax", "space_to_depth", "svdf", "tanh",
    "concat_embeddings", "skip_gram", "call", "custom", "embedding_lookup_sparse", "pad",
    "unidirectional_sequence_rnn", "gather", "batch_to_space_nd", "space_to_batch_nd", "transpose", "mean",
    "sub", "div", "squeeze", "unidirectional_sequence_lstm", "strided_slice", "bidirectional_sequence_rnn",
    "exp", "topk_v2", "split", "log_softmax", "delegate", "bidirectional_sequence_lstm", "cast", "prelu",
    "maximum", "arg_max", "minimum", "less", "neg", "padv2", "greater", "greater_equal", "less_equal", "select",
    "slice", "sin", "transpose_conv", "sparse_to_dense", "tile", "expand_dims", "equal", "not_equal", "log",
    "sum", "sqrt", "rsqrt", "shape", "pow", "arg_min", "fake_quant", "reduce_prod", "reduce_max", "pack",
    "logical_or", "one_hot", "logical_and", "logical_not", "unpack", "reduce_min", "floor_div", "reduce_any",
    "square", "zeros_like", "fill", "floor_mod", "range", "resize_nearest_neighbor", "leaky_relu",
    "squared_difference", "mirror_pad", "abs", "split_v", "unique", "ceil", "reverse_v2", "add_n", "gather_nd",
    "cos", "where", "rank", "elu", "reverse_sequence", "matrix_diag", "quantize", "matrix_set_diag", "round",
    "hard_swish", "if", "while", "non_max_suppression_v4", "non_max_suppression_v5", "scatter_nd", "select_v2",
    "densify", "segment_sum", "batch_matmul", "placeholder_for_greater_op_codes", "cumsum", "call_once",
];

/// The operator that carries a name of its own.
pub(crate) const CUSTOM: u32 = 32;
/// Operators whose output is their first input, seen otherwise: `RESHAPE`, `SQUEEZE`, `EXPAND_DIMS`.
pub(crate) const VIEWS: [u32; 3] = [22, 43, 70];

/// How many subgraphs an operator runs, which its options list: `IF`, `WHILE`, `CALL_ONCE`.
pub(crate) const fn subgraph_count(code: u32) -> u16 {
    match code {
        118 | 119 => 2,
        129 => 1,
        _ => 0,
    }
}

/// Operators that make each element of their output from that of their first input at the same place.
#[rustfmt::skip]
const UNARY: [&str; 25] = [
    "abs", "cast", "ceil", "cos", "dequantize", "elu", "exp", "floor", "hard_swish", "leaky_relu", "log", "logical_not",
    "logistic", "neg", "prelu", "quantize", "relu", "relu6", "relu_n1_to_1", "round", "rsqrt", "sin", "sqrt",
    "square", "tanh",
];
/// The same of two inputs.
#[rustfmt::skip]
const BINARY: [&str; 18] = [
    "add", "div", "equal", "floor_div", "floor_mod", "greater", "greater_equal", "less", "less_equal", "logical_and",
    "logical_or", "maximum", "minimum", "mul", "not_equal", "pow", "squared_difference", "sub",
];

/// How many of its first inputs an operator's output may be written over, where they are as large.
pub(crate) fn replaceable_inputs(code: u32) -> usize {
    let known = usize::try_from(code).ok().and_then(|code| NAMES.get(code));
    match known {
        Some(name) if UNARY.contains(name) => 1,
        Some(name) if BINARY.contains(name) => 2,
        _ => 0,
    }
}

/// The name of an operator, or its number.
pub(crate) fn operator_name(code: u32) -> String {
    let known = usize::try_from(code).ok().and_then(|code| NAMES.get(code));
    known.map_or_else(|| format!("operator-{code}"), |&name| name.to_owned())
}

/// Bits of an element, by `TensorType`; none of strings, resources and variants.
pub(crate) const fn element_bits(of: u8) -> Option<u64> {
    Some(match of {
        17 => 4,
        3 | 6 | 9 => 8,
        1 | 7 | 16 | 18 => 16,
        0 | 2 | 15 => 32,
        4 | 8 | 10 | 12 => 64,
        11 => 128,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_names() {
        let found = [0, 22, 32, 43, 70, 114, 119, 999].map(operator_name);
        let names =
            ["add", "reshape", "custom", "squeeze", "expand_dims", "quantize", "while", "operator-999"];
        assert_eq!(found, names);
    }
}
