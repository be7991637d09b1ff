//! Computation graphs, and how an execution order turns one into live ranges.
//!
//! ```
//! use planlab_dsa::Bytes;
//! use planlab_graph::{Graph, Operation, Tensor, liveness};
//!
//! let mut graph = Graph::builder();
//! let x = graph.tensor(Tensor::new("x", Bytes::new(64)));
//! let y = graph.tensor(Tensor::new("y", Bytes::new(64)));
//! graph.operation(Operation::new("relu").reads([x]).writes([y]).overwrites(x, y));
//! let graph = graph.build()?;
//! let (instance, labels) = liveness(&graph, &graph.order())?;
//! assert_eq!(instance.load().bytes, Bytes::new(128));
//! assert_eq!(instance.relaxed_load().bytes, Bytes::new(64));
//! assert_eq!(labels.buffers[1].op.as_deref(), Some("relu"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ancestors;
mod dot;
mod feature_maps;
mod graph;
mod jsonl;
mod liveness;
mod machine;
mod order;
mod parallel;
mod placing;
mod problem;
mod rehearsal;
mod schedule;
mod schedule_jsonl;
mod scheduler;
mod storage;
mod timeline;
mod validate;

pub use ancestors::Ancestors;
pub use dot::write_dot;
pub use feature_maps::{FeatureMap, Function, FunctionId, FunctionKind, MapId, NetError, TrainingNet, Work};
pub use graph::{Alias, Graph, GraphBuilder, GraphError, OpId, Operation, Place, Tensor, TensorId};
pub use jsonl::{read_jsonl, write_jsonl};
pub use liveness::{Lowered, OrderError, liveness, lower};
pub use machine::{Machine, Times, TimesError};
pub use order::Dependencies;
pub use parallel::{Safety, lower_for_all_orders};
pub use problem::SchedulingProblem;
pub use rehearsal::{Clash, Rehearsal};
pub use schedule::{Completions, Content, Engine, Event, Schedule, ScheduledBuffer, Task};
pub use scheduler::{
    ScheduleBound, ScheduleBudget, ScheduleError, ScheduleEvidence, ScheduleHalt, ScheduleMark,
    ScheduleOutcome, ScheduleRun, ScheduleScope, Scheduler, SchedulerDescriptor, Verified, execute_scheduler,
};
pub use storage::Storage;
pub use timeline::{Span, Stuck, Timeline, simulate};
pub use validate::{Audited, EventId, Violation, validate};
