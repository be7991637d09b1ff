//! External planners: other people's programs, described in a `planners.toml`, that run beside our planners.
//!
//! ```text
//!   planlab ──> child process ──> exec-external ══> the program      (══> the same process)
//!                 External::plan      dies with its parent
//! ```
//!
//! The verifier checks their plans like any other; their bounds are claims. See `docs/external-planners.md`.

mod entry;
pub(crate) mod launch;
mod planner;
mod program;
mod registry;

pub(crate) use entry::{Entry, PREFIX};
pub(crate) use planner::{External, Fate, Report, descriptor};
pub(crate) use registry::{absent, all_absent, ask_versions, entries, file, find, has_file, load};
