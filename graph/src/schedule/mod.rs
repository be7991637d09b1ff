//! Training in less memory than it needs: what stays on the device, what is swapped to the host, and what is
//! recomputed.
//!
//! | file | what |
//! |---|---|
//! | `training_net` | a net as feature maps and functions |
//! | `convolution` | kernels, and a limit on the workspace of convolutions |
//! | `machine` | a machine as data |
//! | `times`, `pipedream` | the times of functions: by the roofline, or measured |
//! | `problem`, `net_jsonl` | a net, a machine and a capacity; their file |
//! | `events`, `jsonl` | a schedule as data: what each engine does, and when it may start |
//! | `timeline` | runs a schedule: when each event starts and ends, and what is in memory |
//! | `placing` | offsets for the buffers of a schedule |
//! | `validate` | audits a schedule; shares nothing with what made it |
//! | `scheduler`, `bounds` | the contract of a scheduler, its run, and what it proves |

mod bounds;
mod convolution;
mod events;
mod jsonl;
mod machine;
mod net_jsonl;
mod pipedream;
mod placing;
mod problem;
mod scheduler;
mod timeline;
mod times;
mod training_net;
mod validate;

pub use bounds::{GradientSums, ScheduleBound, ScheduleEvidence, compute_bound, gradient_sums};
pub use convolution::{ConvolutionAlgorithm, ConvolutionChoice, Kernel, WorkspaceLimitError};
pub use events::{Completions, Content, Engine, Event, Schedule, ScheduledBuffer, Task};
pub use machine::Machine;
pub use pipedream::{PipeDream, ProfileError};
pub use problem::SchedulingProblem;
pub use scheduler::{
    ScheduleBudget, ScheduleError, ScheduleHalt, ScheduleMark, ScheduleOutcome, ScheduleRun, Scheduler,
    SchedulerDescriptor, Verified, execute_scheduler, execute_scheduler_observed,
};
pub use timeline::{Span, Stuck, Timeline, simulate};
pub use times::{Times, TimesError};
pub use training_net::{FeatureMap, Function, FunctionId, FunctionKind, MapId, NetError, TrainingNet, Work};
pub use validate::{Audited, EventId, Violation, validate};
