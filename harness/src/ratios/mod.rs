//! Planners of one bench side by side: who answers, how fast, how low, and the ratios.
//!
//! What is compared: of our planners, the wall time of the whole run from the parsed instance to the verified
//! plan; of external ones, the wall time of their process (its start, reading the instance, planning, writing
//! the plan) and, where they print one, the time that they say themselves, which has none of that. The median
//! over repetitions counts a repetition without an answer as endless.

mod figure;
mod tables;

pub(crate) use figure::{Field, Figure, Subject, Variant};
pub(crate) use tables::{Pair, capacity_csv, minimised_csv, page};
