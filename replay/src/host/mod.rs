//! Requests of a trace on memory of the host: what a plan, an online allocator or a process's allocator costs.
//!
//! [`replay`] plays one contender in this process: every block is checked first, then propagations are played until
//! the reserved bytes do not change any more, then they are timed. Options of an allocator hold for a process, and
//! so do the counters of memory: whoever compares contenders gives each a process of its own.
//!
//! ```
//! use std::num::NonZeroU32;
//!
//! use planlab_dsa::{Buffer, Bytes, Instance, LiveRange, Offset, Plan, Requests};
//! use planlab_replay::host::{Contender, Effort, Order, replay};
//! use planlab_replay::{End, Sequence, Work};
//!
//! let rows = [(4096, 0, 2), (512, 1, 3), (4096, 2, 4)];
//! let buffers = rows.map(|(size, start, end)| {
//!     Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"))
//! });
//! let instance = Instance::from_buffers(buffers.to_vec())?;
//! let plan = instance.verify(Plan::from_offsets([0, 4096, 0].map(Offset::new)))?;
//! let report = replay(&Order {
//!     contender: Contender::Plan(&plan),
//!     sequences: &[Sequence::new(&Requests::new(&instance))],
//!     work: Work::Pattern,
//!     threads: NonZeroU32::MIN,
//!     capacity: None,
//!     effort: Effort { iterations: Some(100), ..Effort::default() },
//! });
//! assert_eq!((report.performance.status, report.performance.reserved_peak), (End::Complete, 4608));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backing;
mod checker;
mod clock;
mod conductor;
mod contender;
#[cfg(target_env = "gnu")]
mod glibc;
#[cfg(feature = "mallocs")]
mod jemalloc;
mod memory;
#[cfg(feature = "mallocs")]
mod mimalloc;
mod player;
mod report;

use std::num::NonZeroU32;
use std::time::Duration;

use planlab_dsa::Bytes;
use planlab_dsa::performance::Work;

pub use backing::HostBacking;
pub use checker::{Fault, Guarded};
pub use contender::{BuildAllocator, Contender, Malloc};
pub use report::Report;

use crate::sequence::Sequence;

/// What is to be played, and how.
#[derive(Clone, Copy)]
pub struct Order<'a> {
    /// On what.
    pub contender: Contender<'a>,
    /// The calls of each propagation; several are played in turn, and again from the first.
    pub sequences: &'a [Sequence],
    /// What is done with each block; what only a device does is refused.
    pub work: Work,
    /// Threads, each with all sequences, and with a plan or pool of its own.
    pub threads: NonZeroU32,
    /// The most that each thread's plan or pool may reserve. Default: no limit.
    pub capacity: Option<Bytes>,
    /// How long.
    pub effort: Effort,
}

/// How long a replay goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Time for timed propagations; half as much again goes into the times of single calls. Default: 2 s.
    pub budget: Duration,
    /// Timed propagations, whatever time they take. Default: as many as fit the budget; 200 of several sequences, or
    /// without a warm-up.
    pub iterations: Option<u32>,
    /// Propagations before the timed ones, at least. 0: none; a new memory is made after the check, and each sample is
    /// one propagation from the first on. What a process's malloc keeps of the check, it keeps. Default: 50.
    pub warm_up: Option<u32>,
}

impl Default for Effort {
    fn default() -> Self {
        Self { budget: Duration::from_secs(2), iterations: None, warm_up: None }
    }
}

/// Plays a contender in this process; what goes wrong is in the report.
///
/// # Panics
///
/// If there are no sequences, or no thread can be started.
#[must_use]
pub fn replay(order: &Order<'_>) -> Report {
    contender::play(order)
}
