//! The numbers of small whole-number values, where they follow from shapes and constants: exporters compute the shape of
//! a Reshape from the shape of its input.

use super::call::{Call, cuts, range};
use super::value::{FOLLOWED, Value, element_count};

/// What an operator makes of known numbers; `None` if nothing is known.
#[expect(clippy::too_many_lines, reason = "an arm for each operator")]
pub(crate) fn known_ints(call: &Call<'_>) -> Option<Vec<i64>> {
    let known = |at: usize| call.optional_input(at).and_then(|value: &Value| value.ints.as_deref());
    match call.node.op_type.as_str() {
        "Identity" | "Cast" | "Reshape" | "Squeeze" | "Unsqueeze" | "Flatten" => {
            known(0).map(<[i64]>::to_vec)
        }
        "Shape" => {
            let shape = &call.optional_input(0)?.shape;
            let rank = i64::try_from(shape.len()).ok()?;
            let place = |at: i64| {
                let at = if at < 0 { at.saturating_add(rank) } else { at };
                usize::try_from(at.clamp(0, rank)).ok()
            };
            let (start, end) =
                (place(call.int_attribute("start", 0))?, place(call.int_attribute("end", rank))?);
            shape.get(start..end)?.iter().map(|&dim| i64::try_from(dim).ok()).collect()
        }
        "Size" => Some(vec![i64::try_from(element_count(&call.optional_input(0)?.shape)?).ok()?]),
        "Gather" => {
            let (data, places) = (known(0)?, known(1)?);
            let count = i64::try_from(data.len()).ok()?;
            let at = |&place: &i64| {
                let place = if place < 0 { place.saturating_add(count) } else { place };
                data.get(usize::try_from(place).ok()?).copied()
            };
            places.iter().map(at).collect()
        }
        "Concat" => {
            let mut joined = Vec::new();
            for at in 0..call.node.inputs.len() {
                joined.extend(known(at)?);
                if joined.len() > FOLLOWED {
                    return None;
                }
            }
            Some(joined)
        }
        "Slice" => {
            let value = call.optional_input(0)?;
            let (data, only) = (known(0)?, cuts(call, value).ok()?);
            if value.rank() != 1 {
                return None;
            }
            let Some(cut) = only.first() else { return Some(data.to_vec()) };
            let count = usize::try_from(cut.count).ok()?;
            let at = |step: usize| usize::try_from(cut.start + i64::try_from(step).ok()? * cut.step).ok();
            (0..count).map(|step| data.get(at(step)?).copied()).collect()
        }
        "Add" => join_known(known(0)?, known(1)?, i64::checked_add),
        "Sub" => join_known(known(0)?, known(1)?, i64::checked_sub),
        "Mul" => join_known(known(0)?, known(1)?, i64::checked_mul),
        "Div" => join_known(known(0)?, known(1)?, i64::checked_div),
        "Equal" => join_known(known(0)?, known(1)?, |a, b| Some(i64::from(a == b))),
        "Where" => {
            let yes =
                join_known(known(0)?, known(1)?, |take, value| Some(if take != 0 { value } else { 0 }))?;
            let no = join_known(known(0)?, known(2)?, |take, value| Some(if take == 0 { value } else { 0 }))?;
            join_known(&yes, &no, i64::checked_add)
        }
        "ConstantOfShape" => {
            let count = known(0)?.iter().try_fold(1_i64, |product, &dim| product.checked_mul(dim))?;
            let value = match call.tensor_attribute("value") {
                Some(tensor) => *Value::of_tensor(tensor).ok()?.ints?.first()?,
                None => return None,
            };
            (0..=1024).contains(&count).then(|| vec![value; usize::try_from(count).unwrap_or(0)])
        }
        "Range" => {
            let [start, limit, step] = [known(0)?, known(1)?, known(2)?].map(|ints| ints.first().copied());
            let (start, limit, step) = (start?, limit?, step?);
            let count = range(start, limit, step)?;
            let at = |index: i64| index.checked_mul(step).and_then(|far| far.checked_add(start));
            (count <= 1024).then(|| (0..i64::try_from(count).unwrap_or(0)).map(at).collect())?
        }
        _ => None,
    }
}

/// Number by number; one that stands alone goes with each of the others.
fn join_known(a: &[i64], b: &[i64], join: impl Fn(i64, i64) -> Option<i64>) -> Option<Vec<i64>> {
    match (a, b) {
        ([one], many) => many.iter().map(|&other| join(*one, other)).collect(),
        (many, [one]) => many.iter().map(|&other| join(other, *one)).collect(),
        _ if a.len() == b.len() => a.iter().zip(b).map(|(&a, &b)| join(a, b)).collect(),
        _ => None,
    }
}
