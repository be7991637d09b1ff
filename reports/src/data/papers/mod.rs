//! Published figures, for comparison with ours.

pub(crate) mod claims;
pub(crate) mod paper;
pub(crate) mod published;

/// Where figures from `least` to `most` lie relative to a range. An end of it may be open.
pub(crate) fn lies((low, high): (Option<f64>, Option<f64>), (least, most): (f64, f64)) -> &'static str {
    let below = |figure: f64| low.is_some_and(|low| figure < low);
    let above = |figure: f64| high.is_some_and(|high| figure > high);
    match (below(least), above(most)) {
        (false, false) => "within",
        (true, false) if below(most) => "below",
        (true, false) => "within and below",
        (false, true) if above(least) => "above",
        (false, true) => "within and above",
        (true, true) => "within, below and above",
    }
}
