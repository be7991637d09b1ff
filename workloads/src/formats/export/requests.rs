//! A plan as a caching allocator takes it: sizes and offsets in order of request.

use std::fmt::Write;

use planlab_dsa::{BufferId, Plan};

use super::heights;
use crate::formats::{ExportError, Trace};

/// Sizes and offsets as CSV (`size,offset`), a row for each request in the order in which they come: by first step, and
/// at one step by the trace's order. `# height` is the size of the arena. Where the requests end in a round that comes
/// again and again, `# prefix` counts the requests before the first round and `# round` those of one.
///
/// # Errors
///
/// [`ExportError`] for several arenas.
///
/// # Panics
///
/// If the plan does not belong to the trace.
pub fn write_requests(trace: &Trace, plan: &Plan) -> Result<Vec<u8>, ExportError> {
    if trace.instance.arenas().len() > 1 {
        return Err(ExportError::new("a list of requests", "which arena a buffer lies in"));
    }
    let height = heights(trace, plan).first().map_or(0, |height| height.get());
    let mut order: Vec<BufferId> = trace.instance.ids().collect();
    order.sort_by_key(|&id| trace.instance.buffer(id).live.start());
    let size = |id: BufferId| trace.instance.buffer(id).size.get();
    let sizes: Vec<u64> = order.iter().map(|&id| size(id)).collect();
    let mut out = format!("# planlab: requests\n# height: {height}\n");
    if let Some((prefix, round)) = find_rounds(&sizes) {
        writeln!(out, "# prefix: {prefix}\n# round: {round}").expect("a string takes everything");
    }
    out.push_str("size,offset\n");
    for id in order {
        let offset = plan.offsets[id.index()];
        writeln!(out, "{},{offset}", size(id)).expect("a string takes everything");
    }
    Ok(out.into_bytes())
}

/// The shortest round of sizes that most requests are in, if it comes twice at least and they are half of all: the number
/// of requests before the first, and of those of one.
///
/// The Z function of the requests from the end says, for each length of a round, how far back it recurs; O(n).
fn find_rounds(sizes: &[u64]) -> Option<(usize, usize)> {
    let last_first: Vec<u64> = sizes.iter().rev().copied().collect();
    let recurs = z_function(&last_first);
    let whole = |&round: &usize| recurs[round] >= round;
    let covered = |round: usize| recurs[round] + round;
    let round =
        (1..sizes.len()).filter(whole).min_by_key(|&round| (std::cmp::Reverse(covered(round)), round))?;
    // A round in part at the front belongs to the prefix.
    let inside = covered(round) / round * round;
    (2 * inside >= sizes.len()).then(|| (sizes.len() - inside, round))
}

/// For each place, how many numbers from there on are those at the front.
fn z_function(numbers: &[u64]) -> Vec<usize> {
    let count = numbers.len();
    let mut reach = vec![0; count];
    let (mut left, mut right) = (0, 0);
    for at in 1..count {
        let mut far = if at < right { reach[at - left].min(right - at) } else { 0 };
        while at + far < count && numbers[far] == numbers[at + far] {
            far += 1;
        }
        if at + far > right {
            (left, right) = (at, at + far);
        }
        reach[at] = far;
    }
    reach
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::export::testing::planned;

    #[test]
    fn requests_come_in_their_order() {
        let (trace, plan) = planned();
        let text = String::from_utf8(write_requests(&trace, &plan).expect("one arena")).expect("text");
        assert_eq!(text, "# planlab: requests\n# height: 96\nsize,offset\n64,0\n32,64\n48,0\n");
    }

    #[test]
    fn what_comes_before_the_rounds_is_the_prefix() {
        type Case = (&'static [u64], Option<(usize, usize)>);
        let cases: [Case; 7] = [
            (&[9, 8, 1, 2, 3, 1, 2, 3, 1, 2, 3], Some((2, 3))),
            (&[1, 2, 1, 2], Some((0, 2))),
            (&[7, 7, 7], Some((0, 1))),
            // A round in part at the front is no round.
            (&[3, 1, 2, 3, 1, 2, 3], Some((1, 3))),
            (&[1, 2, 3, 4], None),
            // Two equal requests at the end of many are no round.
            (&[1, 2, 3, 4, 5, 5], None),
            (&[], None),
        ];
        for (sizes, expected) in cases {
            assert_eq!(find_rounds(sizes), expected, "{sizes:?}");
        }
    }
}
