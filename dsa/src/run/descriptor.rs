//! What is known of a planner before it runs.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

use crate::Instance;

/// What is known of a planner before it runs. Default: a heuristic that no seed changes, without texts or features.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Descriptor {
    /// The stable name: `best-fit`, `first-fit/size`. A key that ends in `/published` marks a rule exactly as
    /// published, beside the repaired one; its plans may depend on the unit of the sizes.
    pub key: Cow<'static, str>,
    /// What it does, in one line.
    pub summary: Cow<'static, str>,
    /// How good its plans are.
    pub guarantee: Guarantee,
    /// Which features it takes into account.
    pub honours: Honours,
    /// Whether the seed changes its plans.
    pub randomized: bool,
    /// Where it was published.
    pub reference: &'static str,
    /// Running time in the number n of buffers.
    pub complexity: &'static str,
    /// The most buffers that suites give it by default; beyond that it is too slow.
    pub practical: Option<u32>,
}

/// How good a planner's plans are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guarantee {
    /// No guarantee.
    #[default]
    Heuristic,
    /// Height at most this many times the load, on instances without alignments and pauses. Padding and loads of whole
    /// live ranges have no such limit. For a planner that does not overwrite in place it is the load without that.
    Ratio(f64),
    /// Optimal, given enough time.
    Exact,
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Heuristic => f.pad("heuristic"),
            Self::Ratio(ratio) => f.pad(&format!("{ratio} x load")),
            Self::Exact => f.pad("exact"),
        }
    }
}

/// The features that a planner takes into account.
///
/// `in_place`, `pauses` and `hint` are opportunities: a planner that does not honour them makes valid plans without
/// them. `pins`, `alignment`, `arenas` and `apart` are demands: [`execute`](crate::execute) refuses an instance with a
/// demand that the planner does not honour.
#[expect(clippy::struct_excessive_bools, reason = "a table of independent capabilities")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Honours {
    /// Uses in-place permissions.
    pub in_place: bool,
    /// Leaves pinned buffers where they are.
    pub pins: bool,
    /// Uses pauses.
    pub pauses: bool,
    /// Keeps alignments.
    pub alignment: bool,
    /// Plans several arenas.
    pub arenas: bool,
    /// Keeps pairs apart.
    pub apart: bool,
    /// Starts from suggested offsets.
    pub hint: bool,
    /// Stops at a work limit at the same point in every run.
    pub work_limit: bool,
    /// Uses several threads if the budget permits.
    pub threads: bool,
}

/// A demand that an instance makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Feature {
    /// Pinned offsets.
    Pins,
    /// Alignments above 1.
    Alignment,
    /// Several arenas, or a capacity.
    Arenas,
    /// Pairs to keep apart.
    Apart,
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pins => "pinned offsets",
            Self::Alignment => "alignment",
            Self::Arenas => "several arenas or a capacity",
            Self::Apart => "keep-apart pairs",
        })
    }
}

impl Honours {
    /// No feature; the default.
    pub const NONE: Self = Self {
        in_place: false,
        pins: false,
        pauses: false,
        alignment: false,
        arenas: false,
        apart: false,
        hint: false,
        work_limit: false,
        threads: false,
    };

    /// The first demand of the instance that the planner does not honour, if any.
    #[must_use]
    pub fn first_refused_feature(&self, instance: &Instance) -> Option<Feature> {
        let arenas = instance.arenas();
        let demands = [
            (Feature::Pins, self.pins, instance.buffers().iter().any(|b| b.pin.is_some())),
            (Feature::Alignment, self.alignment, instance.buffers().iter().any(|b| b.align.get() > 1)),
            (Feature::Arenas, self.arenas, arenas.len() > 1 || arenas.iter().any(|a| a.capacity.is_some())),
            (Feature::Apart, self.apart, !instance.keep_apart_pairs().is_empty()),
        ];
        demands.into_iter().find(|&(_, honoured, asked)| asked && !honoured).map(|(feature, ..)| feature)
    }
}
