//! Puts a plan under a program that nobody changed.
//!
//! `libplanlab.so`, preloaded, takes `malloc` and its kin. Small requests go straight to the real allocator. Of the large
//! ones each thread has a [`machine`]: it watches until the same requests come in the same order round after round, has
//! that round planned in the background, and from then on serves request k at base + offset\[k\]. What departs from the
//! plan is served by the real allocator, and counted with its reason.
//!
//! ```text
//!   program -- malloc, free, ... --> symbols --> Machine --> Planned (a verified plan on a segment)
//!                                       |           |
//!                                       |           +------> a thread that plans a round, and ends
//!                                       +------------------> the real allocator
//! ```
//!
//! Frameworks that let their allocator of GPU memory be replaced find symbols for that, too: see [`device`].
//!
//! The machine and what it is made of touch no memory and make no system call; they are tested without a preload. The
//! feature `preload` adds the symbols and what they need of the process.

mod course;
pub mod device;
mod history;
pub mod machine;
mod period;
mod planning;
mod round;
mod signals;
mod solve;
mod tally;
mod token;

#[cfg(all(feature = "preload", not(test)))]
mod preload;

pub use course::Segment;
pub use period::Proof;
pub use planning::Planning;
pub use round::{Request, Round};
pub use solve::{Solved, Unsolved};
pub use tally::{Count, DeviceTally, PlanTally, Tally};
pub use token::{Call, Token};
