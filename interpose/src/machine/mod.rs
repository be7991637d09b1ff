//! The state machine of a thread: watches its calls, finds the round, and serves it from a plan.
//!
//! ```text
//!              a period is proved            planned             the round's first request
//!   seeking ------------------------> (in the background) ---> seeking ------------------> following
//!      ^                                                          ^                            |
//!      +------------ another size, a block in use ----------------+----------------------------+
//! ```
//!
//! It touches no memory of the program and makes no system call; its [`Ground`] does that. It never hands out live
//! memory, whatever the calls: [`Planned`](planlab_replay::Planned) refuses what the verified plan does not allow, and
//! the real allocator serves it.

mod attention;
mod finding;
mod frozen;
mod progress;
mod serving;
mod state;
#[cfg(test)]
mod tests;

pub use serving::RequestAnswer;
pub use state::{Config, Machine};

pub use crate::plans::{Ground, Pages};
