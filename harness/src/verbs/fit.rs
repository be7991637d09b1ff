//! Searches for the largest batch that fits.

use crate::shell::exit::Failure;

/// The largest batch of a range that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// Not even the first batch fits.
    None,
    /// This batch fits and the next does not.
    Most(u64),
    /// The last batch of the range fits.
    All(u64),
    /// Some batch has no answer.
    Unknown,
}

/// The largest batch that fits, by bisection between two of the points, which ascend. Assumes that memory grows with the
/// batch. `fits` gives `None` for a batch without an answer.
pub(super) fn largest_fitting(
    points: impl IntoIterator<Item = u64>,
    mut fits: impl FnMut(u64) -> Result<Option<bool>, Failure>,
) -> Result<Fit, Failure> {
    let (mut low, mut high) = (None, None);
    for batch in points {
        match fits(batch)? {
            None => return Ok(Fit::Unknown),
            Some(true) => low = Some(batch),
            Some(false) => {
                high = Some(batch);
                break;
            }
        }
    }
    let (Some(mut low), Some(mut high)) = (low, high) else {
        return Ok(low.map_or(Fit::None, Fit::All));
    };
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match fits(middle)? {
            None => return Ok(Fit::Unknown),
            Some(true) => low = middle,
            Some(false) => high = middle,
        }
    }
    Ok(Fit::Most(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_batch_lies_between_two_points() {
        let find =
            |most: u64| largest_fitting([1, 4, 16], |batch| Ok(Some(batch <= most))).expect("no failure");
        assert_eq!(
            [0, 1, 3, 7, 15].map(find),
            [Fit::None, Fit::Most(1), Fit::Most(3), Fit::Most(7), Fit::Most(15)]
        );
        assert_eq!(find(99), Fit::All(16));
        assert_eq!(
            largest_fitting([1, 4], |batch| Ok((batch < 3).then_some(true))).expect("no failure"),
            Fit::Unknown
        );
    }
}
