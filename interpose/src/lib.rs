//! Puts a plan under an unmodified program.
//!
//! The preloaded `libplanlab.so` replaces `malloc` and its kin. Small requests go straight to the real allocator. For
//! the large ones each thread has a [`machine`]. It watches until the same requests come in the same order round after
//! round, and has that round planned in the background. From then on it serves request k at base + offset\[k\]. The
//! real allocator serves what departs from the plan; these requests are counted by reason.
//!
//! ```text
//!   program -- malloc, free, ... --> symbols --> Machine --> Planned (a verified plan on a segment)
//!                                       |           |
//!                                       |           +------> `planlab run`, or a thread, plans a round
//!                                       +------------------> the real allocator
//! ```
//!
//! It also provides symbols for frameworks that let their allocator of GPU memory be replaced: see [`device`].
//!
//! The machine and its parts touch no memory and make no system call, so they are tested without a preload. The
//! feature `preload` adds the symbols and the code that needs a process.

mod calls;
pub mod device;
pub mod machine;
mod planning;
mod plans;
mod signals;
mod tally;

#[cfg(all(feature = "preload", not(test)))]
mod preload;

pub use calls::{Call, Proof, Request, Round, Token};
pub use planning::{Planning, Solved, Unsolved};
pub use plans::Segment;
pub use tally::{Count, DeviceTally, PlanTally, Tally};
