//! Every planning algorithm of planlab, one file each.
//!
//! [`registry`] holds one planner for each key; [`find_planner`] finds one. Planners are immutable
//! configurations; [`planlab_dsa::execute`] runs them.
//!
//! ```
//! use planlab_dsa::{execute, Budget, Buffer, Bytes, Instance, LiveRange};
//!
//! let ranges = [(64, 0, 2), (32, 1, 3), (64, 2, 4)];
//! let mut buffers = Vec::new();
//! for (size, start, end) in ranges {
//!     buffers.push(Buffer::new(Bytes::new(size), LiveRange::new(start, end)?));
//! }
//! let instance = Instance::from_buffers(buffers)?;
//! let best_fit = planlab_solvers::find_planner("best-fit").ok_or("no such planner")?;
//! let outcome = execute(&best_fit, &instance, Budget::default(), 0);
//! assert_eq!(outcome.height(), Some(Bytes::new(96)));
//! assert!(outcome.is_optimal());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod arenas;
pub mod bounds;
mod certificate;
#[cfg(feature = "cp")]
pub mod cp;
mod demands;
mod feasibility;
#[cfg(feature = "mip")]
pub mod milp;
mod nested;
pub mod online;
#[cfg(any(feature = "cp", feature = "mip"))]
mod pairs;
pub mod placement;
mod registry;
pub mod reorder;
pub mod schedule;
mod team;
mod tick;
mod trees;

pub use registry::{SOURCE_DIGEST, absent_keys, family, find_planner, keys, registry};
