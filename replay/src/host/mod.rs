//! Plays the requests of a trace on host memory, and measures the cost of plans, pools and process allocators.
//!
//! [`replay`] plays one contender in this process. It first checks every block, then plays propagations until the
//! reserved bytes no longer change, then times them. An allocator's options and the memory counters are those of the
//! whole process, so to compare contenders, give each its own process.
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

/// What to play, and how.
#[derive(Clone, Copy)]
pub struct Order<'a> {
    /// Who serves the requests.
    pub contender: Contender<'a>,
    /// The calls of each propagation; several are played in turn, again and again.
    pub sequences: &'a [Sequence],
    /// What to do with each block; work that only a device does is refused.
    pub work: Work,
    /// The number of threads; each plays all sequences on its own plan or pool.
    pub threads: NonZeroU32,
    /// The most that each thread's plan or pool may reserve. Default: no limit.
    pub capacity: Option<Bytes>,
    /// How long to play.
    pub effort: Effort,
}

/// How long a replay runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Time for timed propagations; the times of single calls take half as much again. Default: 2 s.
    pub budget: Duration,
    /// Timed propagations, whatever time they take. Default: as many as fit the budget; 200 for several sequences or
    /// without a warm-up.
    pub iterations: Option<u32>,
    /// The least number of propagations before the timed ones. At 0, a new memory is made after the check, and each
    /// sample is one propagation from the first on. A process's malloc keeps what it cached during the check. Default:
    /// 50.
    pub warm_up: Option<u32>,
}

impl Default for Effort {
    fn default() -> Self {
        Self { budget: Duration::from_secs(2), iterations: None, warm_up: None }
    }
}

/// Plays a contender in this process; the report contains any failure.
///
/// # Panics
///
/// If there are no sequences, or a thread cannot be started.
#[must_use]
pub fn replay(order: &Order<'_>) -> Report {
    contender::play(order)
}
