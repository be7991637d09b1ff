//! Exact search at one capacity: a plan that fits it, or a proof that no plan does.
//!
//! | file | what it does |
//! |---|---|
//! | `search.rs`, `firsts.rs` | depth-first search: the branching, and every rule that prunes |
//! | `restarts.rs`, `sequences.rs` | restarts of it, with other preferences, limits and capacities |
//! | `problem.rs`, `item.rs` | the instance in units and sections |
//! | `peel.rs` | what can be left out because it always fits |
//! | `memo.rs`, `preference.rs` | failed states; the order of what lies equally low |
//! | `certify.rs` | proofs as lists of steps, for the checker in `certificate/` |
//!
//! The search keeps a lowest offset for each buffer. It places one of the lowest buffers or lifts it onto something
//! that it could rest on, and checks for every section, at every height, whether the rest still fits (see `search.rs`).
//! Its state consists of these offsets only. So a table can keep failed states, whatever the order in which they were
//! reached, across restarts and lower capacities.

mod certify;
mod firsts;
mod item;
mod memo;
mod peel;
mod preference;
mod problem;
mod restarts;
mod search;
mod sequences;

pub use certify::{Refutation, certify};
pub(crate) use problem::Problem;
pub(crate) use restarts::{Restarts, Turn, Verdict};
pub(crate) use sequences::{luby_number, van_der_corput};
