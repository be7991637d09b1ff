//! What models that decide the order of every two buffers have in common: the MIP and the constraint
//! model.
//!
//! - [`parts`] takes an instance apart: what no better plan needs to look at is set aside, the rest falls
//!   into parts that share no step, to be solved one by one.
//! - [`draft`] lists the buffers of a part in units, and every pair of which one has to lie below the other.
//! - [`switches`] are the parts of a model that can be left out.
//! - [`symmetry`] chooses the order of pairs where a plan is as good the other way round.
//! - [`course`] goes from part to part, and turns what a solver says of the order into plans.

mod course;
mod draft;
mod parts;
mod switches;
mod symmetry;

pub(crate) use course::{Course, follow, prove};
pub(crate) use draft::{Below, Draft, Relation};
#[cfg(feature = "mip")]
pub(crate) use draft::{Part, Place};
pub(crate) use switches::switches;

/// What is done before a solver sees anything.
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
    /// One of each two plans that are alike is left out.
    pub(crate) symmetry: bool,
}
