//! Two sides, and what a difference between them comes to.

/// A value of either side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sides<T> {
    /// Before.
    pub a: T,
    /// After.
    pub b: T,
}

/// What a change comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// None, or none that counts.
    #[default]
    Same,
    /// For the better.
    Better,
    /// For the worse.
    Worse,
    /// It may be chance: what there is cannot tell.
    Undecided,
    /// One side proves what a verified plan of the other refutes.
    Contradiction,
}

impl Verdict {
    /// The name in files and on screen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Undecided => "undecided",
            Self::Contradiction => "contradiction",
        }
    }

    pub(super) fn of<T: Ord>(a: &T, b: &T) -> Self {
        match b.cmp(a) {
            std::cmp::Ordering::Less => Self::Better,
            std::cmp::Ordering::Equal => Self::Same,
            std::cmp::Ordering::Greater => Self::Worse,
        }
    }
}
