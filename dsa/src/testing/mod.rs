//! Test helpers for planners: an oracle, exact answers for small instances, random instances, a corpus with known
//! optima and a conformance suite.
//!
//! Nothing here is fast, and nothing here shares code with what it checks.
//!
//! ```
//! use planlab_dsa::testing::{brute_force, corpus, oracle_height, test_instance};
//! use planlab_dsa::{Bytes, Offset, Plan};
//!
//! let instance = test_instance(&[(2, 0, 2), (3, 1, 3)]);
//! assert_eq!(brute_force(&instance), Some(Bytes::new(5)));
//! assert_eq!(oracle_height(&instance, &Plan::from_offsets([3, 0].map(Offset::new))), Ok(Bytes::new(5)));
//! assert!(corpus().iter().any(|case| case.optimum.is_some()));
//! ```

mod brute_force;
mod conformance;
mod corpus;
mod exhaustive;
mod first_fit;
mod guillotine;
mod online;
mod oracle;
mod samples;
mod stopwatch;
mod strategy;

pub use brute_force::{brute_force, brute_force_within, brute_force_without_hand_over};
pub use conformance::{check_conformance, conformance_on, scaled_and_shifted};
pub use corpus::{Case, CaseFile, FileCase, PauseRow, corpus};
pub use exhaustive::{is_plain, lowest_height};
pub use first_fit::first_fit;
pub use guillotine::guillotine_instance;
pub use online::{AllocatorCall, Capacity, abuse_allocator, allocator_calls};
pub use oracle::{Fault, oracle_height, plan_faults};
pub use samples::{pseudo_random, test_buffer, test_instance};
pub use stopwatch::Stopwatch;
pub use strategy::{Shape, deep_config, instances, is_deep_run, plans_for};
