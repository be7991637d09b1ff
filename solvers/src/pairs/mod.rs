//! The common part of models that decide the order of every two buffers: the MIP and the constraint model.
//!
//! - [`parts`] splits an instance: sets aside what no better plan needs, and divides the rest into parts that share no
//!   step, to be solved one by one.
//! - [`draft`] lists the buffers of a part in units, and every pair in which one has to lie below the other.
//! - [`switches`] are the parts of a model that can be left out.
//! - [`symmetry`] chooses the order of pairs if a plan is as good the other way round.
//! - [`course`] solves part after part, and turns a solver's order into plans.

mod course;
mod draft;
mod parts;
mod switches;
mod symmetry;

pub(crate) use course::{PairCourse, follow_course, prove_bound};
pub(crate) use draft::{Below, PairDraft, Relation};
#[cfg(feature = "mip")]
pub(crate) use draft::{Part, PlacedBuffer};
pub(crate) use switches::switches;

/// The steps before a solver sees anything.
#[expect(clippy::struct_excessive_bools, reason = "a table of independent switches")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reductions {
    /// Bytes are divided by the common divisor of the sizes.
    pub(crate) scale: bool,
    /// Parts that end at or below the best bound are left out.
    pub(crate) drop_settled: bool,
    /// Buffers that find a place in every plan of the others are left out.
    pub(crate) peel: bool,
    /// Parts are solved one by one.
    pub(crate) split: bool,
    /// One of each two equivalent plans is left out.
    pub(crate) symmetry: bool,
}
