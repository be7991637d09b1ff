//! Shapes of what is scaled: Resize, and Upsample before it.

use super::call::{Call, axis, one, unsigned};
use super::value::Value;

/// Sizes if they are said, else the input's dimensions by their scales.
pub(crate) fn infer_resize(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let input = call.required_input(0)?;
    let policy = call.text_attribute("keep_aspect_ratio_policy");
    if policy.is_some_and(|policy| policy != "stretch") {
        return Err("sizes that keep the aspect ratio have no rule here".to_owned());
    }
    let axes = match call.ints_attribute("axes") {
        Some(axes) => axes.iter().map(|&at| axis(at, input.rank())).collect::<Result<Vec<_>, _>>()?,
        None => (0..input.rank()).collect(),
    };
    let mut shape = input.shape.clone();
    for (&at, dim) in axes.iter().zip(resized_dimensions(call, &axes)?) {
        shape[at] = dim;
    }
    one(input.elem, &shape)
}

/// What becomes of each of these dimensions of the input.
fn resized_dimensions(call: &Call<'_>, axes: &[usize]) -> Result<Vec<u64>, String> {
    let input = call.required_input(0)?;
    if call.is_given(3) {
        let sizes = call.known_ints(3).ok_or("its sizes are known only when the net runs")?;
        check_same_length(sizes.len(), axes.len())?;
        return sizes.iter().map(|&size| unsigned(size)).collect();
    }
    let scales = find_scales(call)?;
    check_same_length(scales.len(), axes.len())?;
    axes.iter().zip(scales).map(|(&at, &scale)| scale_dimension(input.shape[at], scale)).collect()
}

fn check_same_length(said: usize, asked: usize) -> Result<(), String> {
    if said == asked { Ok(()) } else { Err(format!("{said} sizes or scales for {asked} dimensions")) }
}

/// The scales: an attribute first, then the second input, and the third since there is a region of interest.
fn find_scales<'v>(call: &Call<'v>) -> Result<&'v [f32], String> {
    if let Some(scales) = call.floats_attribute("scales") {
        return Ok(scales);
    }
    let at = if call.node.inputs.len() > 2 { 2 } else { 1 };
    let floats = call.optional_input(at).and_then(|value| value.floats.as_deref());
    floats.ok_or_else(|| "its scales are known only when the net runs".to_owned())
}

/// As ONNX's shape inference has it, in 64 bits: ten times the float 0.7 is six.
fn scale_dimension(dim: u64, scale: f32) -> Result<u64, String> {
    let scaled = (dim as f64 * f64::from(scale)).floor();
    if !(0.0..9e18).contains(&scaled) {
        return Err(format!("a dimension of {scaled}"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just above")]
    Ok(scaled as u64)
}
