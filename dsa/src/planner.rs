//! The contract of a placement planner.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

use crate::{Halt, Instance, Run};

/// An algorithm that plans: an immutable configuration, `&self`, and a [`Run`] with everything that
/// changes.
///
/// A planner [offers](Run::offer) plans as it finds them and [raises the bound](Run::raise_bound) as it
/// proves it; both verify or check before anything counts. It calls [`Run::tick`] often enough that a
/// time limit holds, and leaves by `?` when that tells it to.
pub trait Planner: Send + Sync {
    /// What it is and what it can honour.
    fn descriptor(&self) -> Descriptor;

    /// Plans. `Ok(())` means that the planner has done all it can.
    ///
    /// # Errors
    ///
    /// [`Halt::Stop`] when the run told it to stop, [`Halt::Error`] when it cannot go on.
    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt>;
}

impl<P: Planner + ?Sized> Planner for Box<P> {
    fn descriptor(&self) -> Descriptor {
        (**self).descriptor()
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        (**self).plan(run)
    }
}

/// What is known of a planner before it runs.
#[derive(Clone, Debug, Serialize)]
pub struct Descriptor {
    /// The stable name: `best-fit`, `first-fit/size`. One that ends in `/published` is a rule as published beside the
    /// repaired one, and its plans may depend on the unit of the sizes.
    pub key: Cow<'static, str>,
    /// One line on what it does.
    pub summary: Cow<'static, str>,
    /// How good its plans are.
    pub guarantee: Guarantee,
    /// What it can take into account.
    pub honours: Honours,
    /// Whether the seed changes its plans.
    pub randomized: bool,
    /// Where it was published.
    pub reference: &'static str,
    /// Time in the number n of buffers.
    pub complexity: &'static str,
    /// The most buffers that suites give it by default: past it, it takes too long to be of use.
    pub practical: Option<u32>,
}

/// How good a planner's plans are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guarantee {
    /// None.
    Heuristic,
    /// Height at most so many times the load, on instances without alignments and pauses: padding and the load of
    /// whole live ranges know no such limit.
    Ratio(f64),
    /// Optimal, given the time.
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

/// What a planner takes into account.
///
/// `in_place`, `pauses` and `hint` are opportunities: a planner that does not honour them plans validly
/// without. `pins`, `alignment`, `arenas` and `apart` are demands: [`execute`](crate::execute) refuses
/// an instance that makes one which the planner does not honour.
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
    /// Stops at a work limit at the same point each time.
    pub work_limit: bool,
    /// Uses more than one thread where it may.
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
    /// The first demand of the instance that is not honoured.
    #[must_use]
    pub fn refuses(&self, instance: &Instance) -> Option<Feature> {
        let arenas = instance.arenas();
        let demands = [
            (Feature::Pins, self.pins, instance.buffers().iter().any(|b| b.pin.is_some())),
            (Feature::Alignment, self.alignment, instance.buffers().iter().any(|b| b.align.get() > 1)),
            (Feature::Arenas, self.arenas, arenas.len() > 1 || arenas.iter().any(|a| a.capacity.is_some())),
            (Feature::Apart, self.apart, !instance.apart().is_empty()),
        ];
        demands.into_iter().find(|&(_, honoured, asked)| asked && !honoured).map(|(feature, ..)| feature)
    }
}
