//! The classes of feature maps (kept, swapped or recomputed), and how they become a schedule.
//!
//! | file | what |
//! |---|---|
//! | `class` | classes |
//! | `program` | what the compute engine does |
//! | `lab` | tries classes: the time and the memory that they take |

mod class;
mod lab;
mod program;

pub use class::{Class, Classes, Counts, Policy};
pub use lab::{Lab, Trial};
#[cfg(test)]
pub(super) use program::swapping_program;
