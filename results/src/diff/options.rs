//! When a difference counts.

/// The criteria for a change.
///
/// A time of a cell, or of a planner over its cells, is worse under two conditions. The ratio exceeds the threshold.
/// And a change of this size, shared by this many measurements, would arise by chance in fewer than 1 of 1000 diffs,
/// counting all cells and planners of the diff.
///
/// The rows show the effect of chance. If turns were repeated, it is the change between the repetitions of one side.
/// Otherwise it comes from cells of other planners with similar times, and only whole planners get a verdict. See
/// `docs/METHODOLOGY.md`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct DiffOptions {
    /// Changes of a time up to this share do not count.
    pub threshold: f64,
    /// Whether times get a verdict; otherwise they are only shown.
    pub judge_times: bool,
    /// Whether to pair cells that differ only in their limits.
    pub across_limits: bool,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self { threshold: 0.05, judge_times: true, across_limits: false }
    }
}
