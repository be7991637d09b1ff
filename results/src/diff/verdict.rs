//! The two sides of a comparison, and the verdict on their difference.

/// A value for each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sides<T> {
    /// Before.
    pub a: T,
    /// After.
    pub b: T,
}

/// The verdict on a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// No change, or none that counts.
    #[default]
    Same,
    /// Better.
    Better,
    /// Worse.
    Worse,
    /// Possibly chance: there is too little evidence.
    Undecided,
    /// One side has a proof that a verified plan of the other refutes.
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
