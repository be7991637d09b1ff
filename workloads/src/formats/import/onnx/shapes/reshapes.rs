//! Shapes of what moves, joins, cuts and reduces.

use super::call::{Call, axis, cuts, one, unsigned};
use super::known;
use super::value::{INT64, Value, element_count};

/// The outputs of a node that computes nothing but places, or little.
pub(crate) fn infer_reshape(call: &Call<'_>) -> Result<Vec<Value>, String> {
    match call.node.op_type.as_str() {
        "Shape" => Ok(vec![shape_of(call)?]),
        "Size" => one(INT64, &[]),
        "Reshape" => infer_reshape_node(call),
        "Flatten" => infer_flatten(call),
        "Squeeze" => infer_squeeze(call),
        "Unsqueeze" => infer_unsqueeze(call),
        "Transpose" => infer_transpose(call),
        "Concat" => infer_concat(call),
        "Split" => infer_split(call),
        "Slice" => infer_slice(call),
        "Gather" => infer_gather(call),
        "GatherElements" => one(call.required_input(0)?.elem, &call.required_input(1)?.shape),
        "GatherND" => gather_nd(call),
        "Expand" => infer_expand(call),
        "Tile" => infer_tile(call),
        "Pad" => infer_pad(call),
        "DepthToSpace" => infer_blocks(call, true),
        "SpaceToDepth" => infer_blocks(call, false),
        "TopK" => infer_top_k(call),
        "ArgMax" | "ArgMin" => infer_arg(call),
        op if op.starts_with("Reduce") => infer_reduce(call),
        op => Err(format!("the operator {op} has no rule here")),
    }
}

fn shape_of(call: &Call<'_>) -> Result<Value, String> {
    let rank = call.required_input(0)?.rank();
    let known = known::known_ints(call);
    Ok(known.map_or_else(|| Value::new(INT64, [rank as u64]), Value::of_ints))
}

/// The product of dimensions, which are some of a value's.
fn dimension_product(shape: &[u64]) -> Result<u64, String> {
    element_count(shape).ok_or_else(|| "its elements do not fit 64 bits".to_owned())
}

fn infer_reshape_node(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let input = call.required_input(0)?;
    let asked = call.numbers_of(1, "shape")?.ok_or("it says no shape")?;
    let keeps_zero = call.int_attribute("allowzero", 0) != 0;
    let mut shape = Vec::new();
    let mut free = None;
    for (at, &dim) in asked.iter().enumerate() {
        shape.push(match dim {
            -1 if free.is_none() => {
                free = Some(at);
                1
            }
            0 if !keeps_zero => *input.shape.get(at).ok_or("it keeps a dimension that is not there")?,
            dim => unsigned(dim)?,
        });
    }
    if let Some(at) = free {
        let (all, others) = (dimension_product(&input.shape)?, dimension_product(&shape)?);
        shape[at] = all.checked_div(others).unwrap_or(0);
    }
    let count = element_count(&shape);
    if count.is_none() || count != element_count(&input.shape) {
        return Err(format!("{:?} cannot become {asked:?}", input.shape));
    }
    one(input.elem, &shape)
}

fn infer_flatten(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let input = call.required_input(0)?;
    let at = call.int_attribute("axis", 1);
    let at =
        if at == i64::try_from(input.rank()).unwrap_or(0) { input.rank() } else { axis(at, input.rank())? };
    let (outer, inner) = input.shape.split_at(at);
    one(input.elem, &[dimension_product(outer)?, dimension_product(inner)?])
}

fn infer_squeeze(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let input = call.required_input(0)?;
    let Some(axes) = call.numbers_of(1, "axes")? else {
        let shape: Vec<u64> = input.shape.iter().copied().filter(|&dim| dim != 1).collect();
        return one(input.elem, &shape);
    };
    let axes = axes.iter().map(|&at| axis(at, input.rank())).collect::<Result<Vec<_>, _>>()?;
    let kept = input.shape.iter().enumerate().filter(|(at, _)| !axes.contains(at)).map(|(_, &dim)| dim);
    one(input.elem, &kept.collect::<Vec<u64>>())
}

fn infer_unsqueeze(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let input = call.required_input(0)?;
    let axes = call.numbers_of(1, "axes")?.ok_or("it says no axes")?;
    let rank = input.rank() + axes.len();
    let mut axes = axes.iter().map(|&at| axis(at, rank)).collect::<Result<Vec<_>, _>>()?;
    axes.sort_unstable();
    let mut shape = input.shape.clone();
    for at in axes {
        if at > shape.len() {
            return Err("it names an axis twice".to_owned());
        }
        shape.insert(at, 1);
    }
    one(input.elem, &shape)
}

fn infer_transpose(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let input = call.required_input(0)?;
    let Some(order) = call.ints_attribute("perm") else {
        return one(input.elem, &input.shape.iter().rev().copied().collect::<Vec<_>>());
    };
    let order = order.iter().map(|&at| axis(at, input.rank())).collect::<Result<Vec<_>, _>>()?;
    if order.len() != input.rank() {
        return Err("its order has not as many dimensions as its input".to_owned());
    }
    one(input.elem, &order.iter().map(|&at| input.shape[at]).collect::<Vec<_>>())
}

fn infer_concat(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let first = call.required_input(0)?;
    let at = axis(call.int_attribute("axis", 1), first.rank())?;
    let mut shape = first.shape.clone();
    for input in 1..call.node.inputs.len() {
        let other = call.required_input(input)?;
        let mut expected = shape.clone();
        expected[at] = *other.shape.get(at).ok_or("its inputs have not the same rank")?;
        if other.shape != expected {
            return Err(format!("{:?} and {:?} do not join", first.shape, other.shape));
        }
        shape[at] = shape[at].checked_add(other.shape[at]).ok_or("a dimension past 2^64")?;
    }
    one(first.elem, &shape)
}

fn infer_split(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let input = call.required_input(0)?;
    let at = axis(call.int_attribute("axis", 0), input.rank())?;
    let count = call.node.outputs.len() as u64;
    let sizes = match call.numbers_of(1, "split")? {
        Some(sizes) => sizes.iter().map(|&size| unsigned(size)).collect::<Result<Vec<_>, _>>()?,
        None => {
            // The last part is smaller if they cannot be equal.
            let each = input.shape[at].div_ceil(count.max(1));
            (0..count)
                .map(|part| each.min(input.shape[at].saturating_sub(each.saturating_mul(part))))
                .collect()
        }
    };
    let part = |size| {
        let mut shape = input.shape.clone();
        shape[at] = size;
        Value::new(input.elem, shape)
    };
    Ok(sizes.into_iter().map(part).collect())
}

fn infer_slice(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let input = call.required_input(0)?;
    let mut shape = input.shape.clone();
    for cut in cuts(call, input)? {
        shape[cut.axis] = cut.count;
    }
    one(input.elem, &shape)
}

fn infer_gather(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let (data, places) = (call.required_input(0)?, call.required_input(1)?);
    let at = axis(call.int_attribute("axis", 0), data.rank())?;
    let shape = [&data.shape[..at], &places.shape, &data.shape[at + 1..]].concat();
    one(data.elem, &shape)
}

fn gather_nd(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let (data, places) = (call.required_input(0)?, call.required_input(1)?);
    let batch = usize::try_from(call.int_attribute("batch_dims", 0)).map_err(|_| "a negative batch_dims")?;
    let bad = || "its places do not fit its input".to_owned();
    let (&depth, outer) = places.shape.split_last().ok_or_else(bad)?;
    let inner = usize::try_from(depth).ok().and_then(|depth| data.shape.get(batch.checked_add(depth)?..));
    one(data.elem, &[outer, inner.ok_or_else(bad)?].concat())
}

fn infer_expand(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let input = call.required_input(0)?;
    let asked = call.known_ints(1).ok_or("its shape is known only when the net runs")?;
    let mut shape = asked.iter().map(|&dim| unsigned(dim)).collect::<Result<Vec<_>, _>>()?;
    while shape.len() < input.rank() {
        shape.insert(0, 1);
    }
    let first = shape.len() - input.rank();
    for (dim, &own) in shape[first..].iter_mut().zip(&input.shape) {
        *dim = if *dim == 1 { own } else { *dim };
    }
    one(input.elem, &shape)
}

fn infer_tile(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let input = call.required_input(0)?;
    let times = call.known_ints(1).ok_or("its repeats are known only when the net runs")?;
    let grow = |(&dim, &times): (&u64, &i64)| {
        dim.checked_mul(unsigned(times)?).ok_or("a dimension past 2^64".to_owned())
    };
    one(input.elem, &input.shape.iter().zip(times).map(grow).collect::<Result<Vec<_>, _>>()?)
}

fn infer_pad(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let input = call.required_input(0)?;
    let pads = call.numbers_of(1, "pads")?.ok_or("it says no pads")?;
    let axes = match call.numbers_of(3, "axes")? {
        Some(axes) => axes.iter().map(|&at| axis(at, input.rank())).collect::<Result<Vec<_>, _>>()?,
        None => (0..input.rank()).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return Err(format!("{} pads for {} dimensions", pads.len(), axes.len()));
    }
    let mut shape = input.shape.clone();
    for (place, &at) in axes.iter().enumerate() {
        let padded = shape[at].checked_add_signed(pads[place]);
        let padded = padded.and_then(|dim| dim.checked_add_signed(pads[place + axes.len()]));
        shape[at] = padded.ok_or("its pads leave nothing")?;
    }
    one(input.elem, &shape)
}

/// Channels to blocks of space, or back.
fn infer_blocks(call: &Call<'_>, to_space: bool) -> Result<Vec<Value>, String> {
    let input = call.required_input(0)?;
    let [batch, channels, rows, columns] = input.shape[..] else {
        return Err("its input has not four dimensions".to_owned());
    };
    let side = unsigned(call.int_attribute("blocksize", 0))?;
    let area = side.checked_mul(side).filter(|&area| area > 0).ok_or("a block of no size")?;
    let far = || "a dimension past 2^64".to_owned();
    let times = |dim: u64, by: u64| dim.checked_mul(by).ok_or_else(far);
    let shape = match to_space {
        true => [batch, channels / area, times(rows, side)?, times(columns, side)?],
        false => [batch, times(channels, area)?, rows / side, columns / side],
    };
    one(input.elem, &shape)
}

fn infer_top_k(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let input = call.required_input(0)?;
    let at = axis(call.int_attribute("axis", -1), input.rank())?;
    let count = match call.known_ints(1).and_then(|ints| ints.first()) {
        Some(&count) => count,
        None => call.int_attribute("k", -1),
    };
    let mut shape = input.shape.clone();
    shape[at] = unsigned(count).map_err(|_| "how many is known only when the net runs")?;
    Ok(vec![Value::new(input.elem, shape.clone()), Value::new(INT64, shape)])
}

fn infer_arg(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let input = call.required_input(0)?;
    let at = axis(call.int_attribute("axis", 0), input.rank())?;
    one(INT64, &without_axes(&input.shape, &[at], call.int_attribute("keepdims", 1) != 0))
}

fn infer_reduce(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let input = call.required_input(0)?;
    let axes = call.numbers_of(1, "axes")?.unwrap_or_default();
    let axes = match axes.is_empty() {
        true if call.int_attribute("noop_with_empty_axes", 0) != 0 => Vec::new(),
        true => (0..input.rank()).collect(),
        false => axes.iter().map(|&at| axis(at, input.rank())).collect::<Result<Vec<_>, _>>()?,
    };
    one(input.elem, &without_axes(&input.shape, &axes, call.int_attribute("keepdims", 1) != 0))
}

/// A shape with dimensions of 1 in place of these, or without them.
fn without_axes(shape: &[u64], axes: &[usize], keep: bool) -> Vec<u64> {
    let dims = shape.iter().enumerate();
    dims.filter_map(|(at, &dim)| match axes.contains(&at) {
        false => Some(dim),
        true => keep.then_some(1),
    })
    .collect()
}
