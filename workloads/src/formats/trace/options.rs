//! How a trace is read.

use planlab_dsa::Alignment;

use crate::formats::InputLimits;

planlab_dsa::named_enum! {
    /// Which ends of `lower,upper` belong to a live range. A column `end` is always inclusive.
    #[derive(Default)]
    pub enum Dialect {
        /// `[lower, upper)`: live at `lower`, no longer at `upper`.
        #[default]
        HalfOpen = "half-open",
        /// `[lower, upper]`: live at both.
        Inclusive = "inclusive",
        /// `(lower, upper)`: live at neither.
        Open = "open",
    }
}

impl Dialect {
    /// The half-open `[lower, upper)` of a range in this dialect; `None` past 2^64 - 1.
    pub(crate) fn half_open(self, lower: u64, upper: u64) -> Option<(u64, u64)> {
        Some(match self {
            Self::HalfOpen => (lower, upper),
            Self::Inclusive => (lower, upper.checked_add(1)?),
            Self::Open => (lower.checked_add(1)?, upper),
        })
    }
}

impl std::str::FromStr for Dialect {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|dialect| dialect.name() == name);
        known.ok_or_else(|| format!("unknown dialect `{name}`; there are half-open, inclusive, open"))
    }
}

/// How a trace is read.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// What `upper` means. Default: half-open.
    pub dialect: Dialect,
    /// Take a plan as a trace, its offsets as pins. Default: refuse it.
    pub pins: bool,
    /// Rank the steps even if they fit 32 bits. Default: only if they do not fit.
    pub rank_steps: bool,
    /// Sizes are rounded up to it and offsets are multiples of it, whatever the file's metadata say.
    /// Default: as the file says.
    pub alignment: Option<Alignment>,
    /// How much is read. Default: what any trace needs.
    pub limits: InputLimits,
    /// The trace to take of a file that holds several. Default: the only one.
    pub part: Option<String>,
    /// Values of dynamic dimensions, by name. Default: none.
    pub dims: Vec<(String, u64)>,
    /// Leave out the permissions to overwrite a buffer in place. Default: as the file says.
    pub without_in_place: bool,
}
