//! The pauses of a buffer: the column `gaps`.

use crate::formats::Dialect;
use crate::formats::error::quote_excerpt;
use crate::formats::input::numbers::whole;

/// A pause as the file has it, half-open.
#[derive(Clone)]
pub(crate) struct RawPause {
    pub(crate) lower: u64,
    pub(crate) upper: u64,
    pub(crate) window: Option<(u64, u64)>,
}

/// The pauses of a cell, in their order; see [`check_gaps`].
pub(crate) fn gaps(cell: &str, dialect: Dialect) -> Result<Vec<RawPause>, String> {
    let gaps = cell.split_ascii_whitespace();
    let mut pauses = gaps.map(|gap| pause(gap, dialect)).collect::<Result<Vec<_>, _>>()?;
    pauses.sort_by_key(|pause| pause.lower);
    Ok(pauses)
}

/// Whether pauses lie apart from each other inside a life, and their windows inside the buffer.
pub(crate) fn check_gaps(pauses: &[RawPause], (start, end): (u64, u64), size: u64) -> Result<(), String> {
    let mut from = start;
    for pause in pauses {
        let (lower, upper) = (pause.lower, pause.upper);
        if upper > end || lower < start {
            return Err(format!("the gap [{lower}, {upper}) leaves the life [{start}, {end})"));
        } else if lower < from {
            return Err(format!("the gap [{lower}, {upper}) overlaps the one before it"));
        } else if pause.window.is_some_and(|(low, high)| low >= high || high > size) {
            return Err(format!("the window of the gap [{lower}, {upper}) is empty or leaves the buffer"));
        }
        from = upper;
    }
    Ok(())
}

fn pause(gap: &str, dialect: Dialect) -> Result<RawPause, String> {
    let bad = || format!("the gap `{}` is not `lo-hi` or `lo-hi@wlo:whi`", quote_excerpt(gap));
    let (steps, window) = match gap.split_once('@') {
        Some((steps, window)) => (steps, Some(window.split_once(':').ok_or_else(bad)?)),
        None => (gap, None),
    };
    let (lower, upper) = steps.split_once('-').ok_or_else(bad)?;
    let (lower, upper) = (whole("the gap's start", lower)?, whole("the gap's end", upper)?);
    let half_open = dialect.half_open(lower, upper).filter(|(lower, upper)| lower < upper);
    let (lower, upper) = half_open.ok_or_else(|| format!("the gap `{}` is empty", quote_excerpt(gap)))?;
    let window = match window {
        Some((low, high)) => Some((whole("the window's start", low)?, whole("the window's end", high)?)),
        None => None,
    };
    Ok(RawPause { lower, upper, window })
}
