//! Plays the requests of a trace on host memory, and measures the cost of plans, pools and process allocators.
//!
//! [`replay_contender`] plays one contender in this process. It first checks every block, then plays propagations until the
//! reserved bytes no longer change, then times them. An allocator's options and the memory counters are those of the
//! whole process, so to compare contenders, give each its own process.
//!
//! ```
//! use std::num::NonZeroU32;
//!
//! use planlab_dsa::{Buffer, Bytes, Instance, LiveRange, Offset, Plan, Requests};
//! use planlab_replay::host::{Contender, Effort, Order, replay_contender};
//! use planlab_replay::{End, Sequence, Work};
//!
//! let rows = [(4096, 0, 2), (512, 1, 3), (4096, 2, 4)];
//! let buffers = rows.map(|(size, start, end)| {
//!     Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"))
//! });
//! let instance = Instance::from_buffers(buffers.to_vec())?;
//! let plan = instance.verify(Plan::from_offsets([0, 4096, 0].map(Offset::new)))?;
//! let report = replay_contender(&Order {
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
mod mallocs;
mod memory;
mod order;
mod play;
mod player;
mod report;

pub use backing::HostBacking;
pub use checker::{Fault, Guarded};
pub use order::{BuildAllocator, Contender, Effort, Malloc, Order};
pub use report::Report;

/// Plays a contender in this process; the report contains any failure.
///
/// # Panics
///
/// If there are no sequences, or a thread cannot be started.
#[must_use]
pub fn replay_contender(order: &Order<'_>) -> Report {
    play::play(order)
}
