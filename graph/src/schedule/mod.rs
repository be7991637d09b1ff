//! Training in less memory than it needs: what stays on the device, what is swapped to the host, and what is
//! recomputed.
//!
//! | room or file | what |
//! |---|---|
//! | `training` | the problem: a net, the times of its functions, a machine and a capacity |
//! | `events` | a schedule as data, when each of its events runs, and where its buffers lie |
//! | `validate` | audits a schedule; shares nothing with what made it |
//! | `bounds` | bounds on the time of every schedule |
//! | `least_memory` | a bound on the memory of every schedule |
//! | `playback` | the run of a schedule from its file alone, without the net |
//! | `verified` | a schedule that has passed the audit |
//! | `error`, `outcome`, `scheduler` | the contract of a scheduler and its run |

mod bounds;
mod error;
mod events;
mod least_memory;
mod outcome;
mod playback;
mod scheduler;
mod training;
mod validate;
mod verified;

pub use bounds::{GradientSums, ScheduleBound, ScheduleEvidence, compute_bound, gradient_sums};
pub use error::{ScheduleError, ScheduleHalt};
pub use events::{
    BufferIds, Completions, Content, Engine, Event, EventId, Schedule, ScheduledBuffer, Span, Stuck, Task,
    Timeline, simulate_schedule,
};
pub use least_memory::{MemoryBound, bound_memory};
pub use outcome::{ScheduleBudget, ScheduleMark, ScheduleOutcome, SchedulerDescriptor};
pub use playback::{EventWaits, Playback, PlaybackError, PlaybackTotals, ValueKind};
pub use scheduler::{ScheduleRun, Scheduler, execute_scheduler, execute_scheduler_observed};
pub use training::{
    ConvolutionAlgorithm, ConvolutionChoice, FeatureMap, Function, FunctionId, FunctionKind, Kernel, Machine,
    MapId, NetError, SchedulingProblem, Times, TimesError, TrainingNet, Work, WorkspaceLimitError,
};
pub(crate) use training::{EXACT, is_time};
pub use validate::{Audited, Violation, validate_schedule};
pub use verified::Verified;
