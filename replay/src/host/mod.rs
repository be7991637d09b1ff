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
mod player;
mod report;

use planlab_dsa::performance::Work;
use planlab_dsa::{NO_OPERATIONS, Simulated};

use crate::planned::Planned;
use conductor::conduct_threads;
use memory::{EmptyLoop, Online};

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
    if let Some(reason) = obstacle(order) {
        return Report::from_absence(reason);
    }
    let backing = || order.capacity.map_or_else(HostBacking::new, HostBacking::with_capacity);
    match order.contender {
        Contender::Plan(plan) => {
            conduct_threads(order, || Ok(Online::new(backing(), |backing| Planned::new(plan, backing))?))
        }
        Contender::Online(build) => {
            conduct_threads(order, || Online::new(backing(), |backing| Ok(build(backing))))
        }
        Contender::Malloc(malloc) => mallocs::play(malloc, order),
        Contender::EmptyLoop => conduct_threads(order, || Ok(EmptyLoop::default())),
    }
}

/// Why an order cannot be played at all.
fn obstacle(order: &Order<'_>) -> Option<String> {
    let threads = u64::from(order.threads.get());
    let most = order.sequences.iter().map(|sequence| sequence.peak_bytes().get()).max().unwrap_or(0);
    let needed = most.saturating_mul(threads);
    match (order.contender, order.work) {
        (_, work) if !work.is_for_host() => Some(format!("--work {work} is for devices")),
        (Contender::Plan(_), _) if order.sequences.len() > 1 => {
            Some("it is made for one propagation, and there are several".to_owned())
        }
        (Contender::EmptyLoop, Work::Pages | Work::Pattern) => {
            Some("the empty loop hands out no memory: --work none".to_owned())
        }
        (Contender::Malloc(_) | Contender::EmptyLoop, _) if order.capacity.is_some() => {
            Some("its memory cannot be limited".to_owned())
        }
        (Contender::Online(build), _) if lacks_operations(order, build) => Some(NO_OPERATIONS.to_owned()),
        (_, Work::Pages | Work::Pattern) => {
            let available = clock::available_memory().filter(|&available| needed > available)?;
            Some(format!("{needed} bytes are live at once, {available} are available"))
        }
        _ => None,
    }
}

/// Whether the allocator needs the operation of each request and a sequence lacks it.
fn lacks_operations(order: &Order<'_>, build: BuildAllocator<'_>) -> bool {
    order.sequences.iter().any(|sequence| sequence.operations().is_none())
        && build(Box::new(Simulated::new())).wants_operations()
}
