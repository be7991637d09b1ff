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

mod bounds;
mod online;
mod plans;
mod problem;
mod run;
#[cfg(feature = "testing")]
pub mod testing;
mod values;

pub use bounds::{Bound, Claim, Evidence, alignment_bound, highest_rounded_load, initial_bound, pin_bound};
pub use online::performance;
pub use online::{
    AllocError, Audit, AuditError, Backing, Call, DeviceMemory, Meter, Metered, NO_OPERATIONS, NotLive,
    OnlineAllocator, Planning, Ranges, Refused, Requests, Simulated, Usage,
};
pub use plans::{ArenaPart, Digest, Plan, VerifiedPlan, Violation};
pub use problem::{
    Arena, Buffer, ColumnError, Columns, InPlace, Instance, InstanceBuilder, InstanceError, KeepApart, Label,
    Labels, Pause, Piece, Scope, greatest_common_divisor,
};
pub use run::{
    Budget, CancelToken, Descriptor, Event, Feature, Guarantee, Halt, Honours, Mark, Outcome, PlanError,
    Planner, Run, Stop, execute, execute_observed,
};
pub use values::letter;
pub use values::{
    Address, Alignment, ArenaId, BufferId, Bytes, Clock, EmptyLiveRange, LiveRange, Load, LoadCurve, Offset,
    Step, Stream, fragmentation, gap, is_unprintable, printable_line, printable_text,
};
