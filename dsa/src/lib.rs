//! What a memory placement problem is, what a plan is, and who may call one valid.
//!
//! Offline *dynamic storage allocation*: every [`Buffer`] has a size in bytes and a half-open
//! [`LiveRange`] of steps; a [`Plan`] gives each buffer an [`Offset`] so that no two buffers that are
//! live at one step share an address. The plan's *height* is the size of the arena that it needs.
//!
//! ```text
//!  address
//!    ^   +--------+
//!    |   |   c    |+---+        height: the top of c
//!    |   +----+---++ d |        load:   the most bytes live at one step
//!    |   | a  |  b | --+
//!    +---+----+----+------> step
//! ```
//!
//! A plan counts only after [`Instance::verify`] has turned it into a [`VerifiedPlan`]; optimality is
//! derived (height equals a proven [`Bound`]), never asserted. Planners implement [`Planner`] and are
//! run by [`execute`].
//!
//! # Example
//!
//! ```
//! use planlab_dsa::{Buffer, Bytes, Instance, LiveRange, Offset, Plan};
//!
//! let instance = Instance::builder()
//!     .buffer(Buffer::new(Bytes::new(64), LiveRange::new(0, 2)?))
//!     .buffer(Buffer::new(Bytes::new(32), LiveRange::new(1, 3)?))
//!     .buffer(Buffer::new(Bytes::new(64), LiveRange::new(2, 4)?))
//!     .build()?;
//! let plan = Plan::from_offsets([0, 64, 0].map(Offset::new));
//! let verified = instance.verify(plan)?;
//! assert_eq!(verified.height(), instance.load().bytes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod arenas;
mod bound;
mod budget;
mod buffer;
mod clock;
mod columns;
mod digest;
mod instance;
mod labels;
pub mod letter;
mod live_range;
mod load;
mod metrics;
mod online;
mod outcome;
pub mod performance;
mod plan;
mod planner;
#[cfg(feature = "debug-checks")]
mod recheck;
mod run;
#[cfg(feature = "testing")]
pub mod testing;
mod text;
mod units;
mod verify;

pub use arenas::ArenaPart;
pub use bound::{
    Bound, Claim, Evidence, Scope, alignment_bound, highest_rounded_load, initial_bound, pin_bound,
};
pub use budget::{Budget, CancelToken};
pub use buffer::{Buffer, Pause, Piece, Pieces};
pub use clock::Clock;
pub use columns::{ColumnError, Columns};
pub use digest::Digest;
pub use instance::{Arena, InPlace, Instance, InstanceBuilder, InstanceError, KeepApart, gcd};
pub use labels::{Label, Labels};
pub use live_range::{EmptyLiveRange, LiveRange};
pub use load::{Load, LoadCurve};
pub use metrics::{fragmentation, gap};
pub use online::{
    AllocError, Audit, AuditError, Backing, Call, DeviceMemory, Meter, Metered, NO_OPERATIONS, NotLive,
    OnlineAllocator, Planning, Refused, Requests, Simulated, Usage,
};
pub use outcome::{Event, Halt, Mark, Outcome, PlanError, Stop};
pub use plan::{Plan, VerifiedPlan};
pub use planner::{Descriptor, Feature, Guarantee, Honours, Planner};
pub use run::{Run, execute, execute_observed};
pub use text::{is_unprintable, printable_line, printable_text};
pub use units::{Address, Alignment, ArenaId, BufferId, Bytes, Offset, Step, Stream};
pub use verify::Violation;
