//! What a certificate says: a capacity, and the steps of the proof that no plan fits it.

use std::fmt;
use std::str::FromStr;

use planlab_dsa::{Bytes, Digest};
use serde::{Deserialize, Serialize};

/// One step of a proof, in depth-first order. Numbers are buffer indices.
///
/// As text, a letter and the number: `p3`, `s3`, `k3`, `r3`, `o`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The case that a buffer lies at its lowest offset. After its proof follows the other case, `Skip`.
    Place(usize),
    /// As `Place`, but nothing is pushed up: the only case.
    Settle(usize),
    /// The case that it lies above its lowest offset, and above something that is not placed yet.
    Skip(usize),
    /// A buffer that has to lie above something unplaced rises to the lowest end that it can lie on.
    Raise(usize),
    /// A contradiction: some step of time, or a buffer, does not fit. Ends the case.
    Over,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place(buffer) => write!(f, "p{buffer}"),
            Self::Settle(buffer) => write!(f, "s{buffer}"),
            Self::Skip(buffer) => write!(f, "k{buffer}"),
            Self::Raise(buffer) => write!(f, "r{buffer}"),
            Self::Over => f.write_str("o"),
        }
    }
}

/// Text that is not a step of a proof.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no step of a certificate (p, s, k or r with a number, or o)")]
pub struct BadStep(String);

impl FromStr for Step {
    type Err = BadStep;

    fn from_str(text: &str) -> Result<Self, BadStep> {
        let bad = || BadStep(text.chars().take(40).collect());
        if text == "o" {
            return Ok(Self::Over);
        }
        let kind = text.chars().next().ok_or_else(bad)?;
        let number = text.get(1..).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let buffer = number.and_then(|digits| digits.parse().ok()).ok_or_else(bad)?;
        match kind {
            'p' => Ok(Self::Place(buffer)),
            's' => Ok(Self::Settle(buffer)),
            'k' => Ok(Self::Skip(buffer)),
            'r' => Ok(Self::Raise(buffer)),
            _ => Err(bad()),
        }
    }
}

/// A proof that no plan without hand-overs fits a capacity.
///
/// Do not rely on it before [`Certificate::check_proof`] has accepted it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// The version of the rules; [`Certificate::VERSION`].
    pub version: u32,
    /// The instance's digest.
    pub instance: Digest,
    /// The capacity that no plan fits.
    pub capacity: Bytes,
    /// A divisor of the least height of all plans: the bound is the next multiple above the capacity.
    pub unit: Bytes,
    /// The proof; in files one string, the steps separated by spaces.
    #[serde(with = "text")]
    pub steps: Vec<Step>,
}

impl Certificate {
    /// The version that this crate writes and checks.
    pub const VERSION: u32 = 1;
}

mod text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Step;

    pub(super) fn serialize<S: Serializer>(steps: &[Step], serializer: S) -> Result<S::Ok, S::Error> {
        let text: Vec<String> = steps.iter().map(Step::to_string).collect();
        serializer.serialize_str(&text.join(" "))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Step>, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.split_ascii_whitespace().map(|step| step.parse().map_err(D::Error::custom)).collect()
    }
}
