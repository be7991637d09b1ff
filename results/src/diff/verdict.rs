//! The two sides of a comparison, and the verdict on their difference.

/// A value for each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sides<T> {
    /// Before.
    pub a: T,
    /// After.
    pub b: T,
}

planlab_dsa::named_enum! {
    /// The verdict on a change.
    #[derive(Default)]
    pub enum Verdict {
        /// No change, or none that counts.
        #[default]
        Same = "same",
        /// Better.
        Better = "better",
        /// Worse.
        Worse = "worse",
        /// Possibly chance: there is too little evidence.
        Undecided = "undecided",
        /// One side has a proof that a verified plan of the other refutes.
        Contradiction = "contradiction",
    }
}

impl Verdict {
    pub(super) fn from_values<T: Ord>(a: &T, b: &T) -> Self {
        match b.cmp(a) {
            std::cmp::Ordering::Less => Self::Better,
            std::cmp::Ordering::Equal => Self::Same,
            std::cmp::Ordering::Greater => Self::Worse,
        }
    }
}
