//! A node with what is known of its inputs, and what the rules of several operators ask of it.

use super::value::Value;
use crate::formats::import::onnx::messages::{Attribute, Node, Tensor};

/// A node with what is known of its inputs.
pub(crate) struct Call<'v> {
    pub(crate) node: &'v Node,
    pub(crate) inputs: Vec<Option<&'v Value>>,
}

impl<'v> Call<'v> {
    /// An input that must be there, with a known shape.
    pub(crate) fn required_input(&self, at: usize) -> Result<&'v Value, String> {
        self.optional_input(at).ok_or_else(|| format!("the shape of its input {at} is not known"))
    }

    pub(crate) fn optional_input(&self, at: usize) -> Option<&'v Value> {
        self.inputs.get(at).copied().flatten()
    }

    /// The numbers of an input; `None` if it is missing, or they are not known.
    pub(crate) fn known_ints(&self, at: usize) -> Option<&'v [i64]> {
        self.optional_input(at)?.ints.as_deref()
    }

    /// Whole numbers that came as an attribute once, and as an input since.
    pub(crate) fn numbers_of(&self, at: usize, name: &str) -> Result<Option<&'v [i64]>, String> {
        match (self.ints_attribute(name), self.is_given(at), self.known_ints(at)) {
            (Some(list), ..) => Ok(Some(list)),
            (None, false, _) => Ok(None),
            (None, true, Some(ints)) => Ok(Some(ints)),
            (None, true, None) => Err(format!("its input {at} (`{name}`) is known only when the net runs")),
        }
    }

    pub(crate) fn is_given(&self, at: usize) -> bool {
        self.node.inputs.get(at).is_some_and(|name| !name.is_empty())
    }

    fn find_attribute(&self, name: &str) -> Option<&'v Attribute> {
        self.node.attributes.iter().find(|attribute| attribute.name == name)
    }

    pub(crate) fn int_attribute(&self, name: &str, default: i64) -> i64 {
        self.find_attribute(name).and_then(|attribute| attribute.i).unwrap_or(default)
    }

    pub(crate) fn ints_attribute(&self, name: &str) -> Option<&'v [i64]> {
        self.find_attribute(name).map(|attribute| attribute.ints.as_slice())
    }

    pub(crate) fn floats_attribute(&self, name: &str) -> Option<&'v [f32]> {
        self.find_attribute(name).map(|attribute| attribute.floats.as_slice())
    }

    pub(crate) fn text_attribute(&self, name: &str) -> Option<String> {
        let bytes = self.find_attribute(name)?.s.as_ref()?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    pub(crate) fn tensor_attribute(&self, name: &str) -> Option<&'v Tensor> {
        self.find_attribute(name)?.t.as_deref()
    }
}

pub(crate) fn one(elem: i32, shape: &[u64]) -> Result<Vec<Value>, String> {
    Ok(vec![Value::new(elem, shape)])
}

/// How many numbers a range has.
pub(crate) fn range(start: i64, limit: i64, step: i64) -> Option<u64> {
    let far = i128::from(limit) - i128::from(start);
    let count = match step {
        0 => return None,
        1.. => (far + i128::from(step) - 1) / i128::from(step),
        _ => (far + i128::from(step) + 1) / i128::from(step),
    };
    u64::try_from(count.max(0)).ok()
}

/// A dimension counted from the end where it is negative.
pub(crate) fn axis(axis: i64, rank: usize) -> Result<usize, String> {
    let place = if axis < 0 { axis.checked_add_unsigned(rank as u64) } else { Some(axis) };
    let place = place.and_then(|place| usize::try_from(place).ok());
    place.filter(|&place| place < rank).ok_or_else(|| format!("there is no dimension {axis} of {rank}"))
}

/// What a Slice keeps along a dimension.
pub(crate) struct Cut {
    pub(crate) axis: usize,
    pub(crate) start: i64,
    pub(crate) step: i64,
    pub(crate) count: u64,
}

/// What a Slice keeps.
pub(crate) fn cuts(call: &Call<'_>, data: &Value) -> Result<Vec<Cut>, String> {
    let must = |at, name| call.numbers_of(at, name)?.ok_or_else(|| format!("it has no `{name}`"));
    let (starts, ends) = (must(1, "starts")?, must(2, "ends")?);
    let (axes, steps) = (call.numbers_of(3, "axes")?, call.numbers_of(4, "steps")?);
    let mut cuts = Vec::new();
    for (at, (&start, &end)) in starts.iter().zip(ends).enumerate() {
        let given = axes.map_or(i64::try_from(at).ok(), |axes| axes.get(at).copied());
        let axis = axis(given.ok_or("it has fewer axes than starts")?, data.rank())?;
        let step = steps.map_or(Some(1), |steps| steps.get(at).copied());
        let step = step.filter(|&step| step != 0).ok_or("a step is 0 or missing")?;
        let extent = i64::try_from(data.shape[axis]).map_err(|_| "a dimension past 2^63")?;
        cuts.push(cut(axis, extent, start, end, step));
    }
    Ok(cuts)
}

fn cut(axis: usize, extent: i64, start: i64, end: i64, step: i64) -> Cut {
    let from_end = |place: i64| if place < 0 { place.saturating_add(extent) } else { place };
    let (start, end) = (from_end(start), from_end(end));
    let (start, span) = if step > 0 {
        let start = start.clamp(0, extent);
        (start, end.clamp(0, extent) - start)
    } else {
        let start = start.clamp(-1, extent - 1);
        (start, start - end.clamp(-1, extent - 1))
    };
    let count = u64::try_from(span).map_or(0, |span| span.div_ceil(step.unsigned_abs()));
    Cut { axis, start, step, count }
}

pub(crate) fn unsigned(int: i64) -> Result<u64, String> {
    u64::try_from(int).map_err(|_| format!("a dimension of {int}"))
}
