//! Shapes of what slides a window over its input: convolutions and pools.

use super::call::{Call, one};
use super::value::{INT64, Value};

/// The attributes of a window, for each spatial dimension.
struct Window {
    kernel: Vec<u64>,
    strides: Vec<u64>,
    dilations: Vec<u64>,
    before: Vec<u64>,
    after: Vec<u64>,
    /// Whether `auto_pad` asks for an output at each stride of the input.
    is_same: bool,
    ceil: bool,
}

impl Window {
    fn from_call(call: &Call<'_>, kernel: Vec<u64>) -> Result<Self, String> {
        let rank = kernel.len();
        let list = |name: &str, count: usize, default: u64| match call.ints_attribute(name) {
            Some(ints) if ints.len() == count => ints.iter().map(|&int| as_unsigned(name, int)).collect(),
            Some(ints) => Err(format!("`{name}` has {} numbers, not {count}", ints.len())),
            None => Ok(vec![default; count]),
        };
        let mut before: Vec<u64> = list("pads", 2 * rank, 0)?;
        let mut after = before.split_off(rank);
        let strides: Vec<u64> = list("strides", rank, 1)?;
        if strides.contains(&0) || kernel.contains(&0) {
            return Err("a stride or a kernel is 0".to_owned());
        }
        let auto = call.text_attribute("auto_pad");
        let is_same = match auto.as_deref() {
            None | Some("" | "NOTSET") => false,
            Some("VALID") => {
                before.fill(0);
                after.fill(0);
                false
            }
            Some("SAME_UPPER" | "SAME_LOWER") => true,
            Some(other) => return Err(format!("unknown auto_pad `{other}`")),
        };
        let dilations = list("dilations", rank, 1)?;
        let ceil = call.int_attribute("ceil_mode", 0) != 0;
        Ok(Self { kernel, strides, dilations, before, after, is_same, ceil })
    }

    /// The extent of the window along a dimension.
    fn window_extent(&self, at: usize) -> Option<u64> {
        self.dilations[at].checked_mul(self.kernel[at] - 1)?.checked_add(1)
    }

    /// How often the window fits along a dimension.
    fn slide_count(&self, at: usize, input: u64) -> Option<u64> {
        let stride = self.strides[at];
        if self.is_same {
            return Some(input.div_ceil(stride));
        }
        let (before, after) = (self.before[at], self.after[at]);
        let room = input.checked_add(before)?.checked_add(after)?.checked_sub(self.window_extent(at)?)?;
        if !self.ceil {
            return Some(room / stride + 1);
        }
        let count = room.div_ceil(stride) + 1;
        // A window that would begin in the padding behind the input does not count.
        let begins_behind = (count - 1).checked_mul(stride)? >= input.checked_add(before)?;
        Some(count - u64::from(begins_behind))
    }

    /// How often the window fits along each dimension.
    fn slide_counts(&self, space: &[u64]) -> Result<Vec<u64>, String> {
        let counts = space.iter().enumerate().map(|(at, &extent)| self.slide_count(at, extent));
        counts.collect::<Option<_>>().ok_or_else(misfit_reason)
    }

    /// The extent that slides this often, for a transposed convolution.
    fn spread_extent(&self, at: usize, input: u64, extra: u64) -> Option<u64> {
        let stride = self.strides[at];
        if self.is_same {
            return input.checked_mul(stride);
        }
        let slid = stride.checked_mul(input.checked_sub(1)?)?;
        let all = slid.checked_add(self.window_extent(at)?)?.checked_add(extra)?;
        all.checked_sub(self.before[at])?.checked_sub(self.after[at])
    }
}

fn as_unsigned(name: &str, int: i64) -> Result<u64, String> {
    u64::try_from(int).map_err(|_| format!("`{name}` has the negative number {int}"))
}

/// Spatial dimensions: all behind the batch and the channels.
fn spatial_dimensions<'v>(call: &Call<'v>) -> Result<&'v [u64], String> {
    call.required_input(0)?.shape.get(2..).ok_or_else(|| "its input has no spatial dimensions".to_owned())
}

fn misfit_reason() -> String {
    "the window does not fit its input".to_owned()
}

/// The window of a convolution with these weights.
fn weight_window(call: &Call<'_>, weight: &Value, space: &[u64]) -> Result<Window, String> {
    let kernel = weight.shape.get(2..).filter(|kernel| kernel.len() == space.len());
    Window::from_call(call, kernel.ok_or_else(misfit_reason)?.to_vec())
}

/// A convolution of the first input with the weights that are another one.
pub(crate) fn infer_convolution(call: &Call<'_>, weight: usize, elem: i32) -> Result<Vec<Value>, String> {
    let (input, weight) = (call.required_input(0)?, call.required_input(weight)?);
    let space = spatial_dimensions(call)?;
    let window = weight_window(call, weight, space)?;
    one(elem, &[&[input.shape[0], weight.shape[0]][..], &window.slide_counts(space)?].concat())
}

pub(crate) fn infer_transposed(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let (input, weight) = (call.required_input(0)?, call.required_input(1)?);
    let space = spatial_dimensions(call)?;
    let window = weight_window(call, weight, space)?;
    let groups = as_unsigned("group", call.int_attribute("group", 1))?;
    let channels = weight.shape[1].checked_mul(groups).ok_or_else(misfit_reason)?;
    let mut shape = vec![input.shape[0], channels];
    let said = call.ints_attribute("output_shape").filter(|said| said.len() >= space.len());
    let extra = call.ints_attribute("output_padding").unwrap_or_default();
    for (at, &extent) in space.iter().enumerate() {
        shape.push(match said {
            Some(said) => as_unsigned("output_shape", said[said.len() - space.len() + at])?,
            None => {
                let extra = as_unsigned("output_padding", extra.get(at).copied().unwrap_or(0))?;
                window.spread_extent(at, extent, extra).ok_or_else(misfit_reason)?
            }
        });
    }
    Ok(vec![Value::new(input.elem, shape)])
}

pub(crate) fn infer_pool(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let input = call.required_input(0)?;
    let space = spatial_dimensions(call)?;
    let kernel = call.ints_attribute("kernel_shape").filter(|kernel| kernel.len() == space.len());
    let kernel = kernel.ok_or_else(misfit_reason)?.iter().map(|&int| as_unsigned("kernel_shape", int));
    let window = Window::from_call(call, kernel.collect::<Result<Vec<_>, _>>()?)?;
    let shape = [&input.shape[..2], &window.slide_counts(space)?].concat();
    // MaxPool's second output has the places of the largest.
    Ok(vec![Value::new(input.elem, shape.clone()), Value::new(INT64, shape)])
}

pub(crate) fn global_pool(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let input = call.required_input(0)?;
    let mut shape = input.shape.clone();
    spatial_dimensions(call)?;
    shape[2..].fill(1);
    Ok(vec![Value::new(input.elem, shape)])
}
