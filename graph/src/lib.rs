//! Computation graphs, and their conversion to live ranges by an execution order.
//!
//! ```
//! use planlab_dsa::Bytes;
//! use planlab_graph::{Graph, Operation, Tensor, placement_problem};
//!
//! let mut graph = Graph::builder();
//! let x = graph.add_tensor(Tensor::new("x", Bytes::new(64)));
//! let y = graph.add_tensor(Tensor::new("y", Bytes::new(64)));
//! graph.add_operation(Operation::new("relu").with_inputs([x]).with_outputs([y]).with_in_place(x, y));
//! let graph = graph.build()?;
//! let (instance, labels) = placement_problem(&graph, &graph.operation_order())?;
//! assert_eq!(instance.load().bytes, Bytes::new(64));
//! assert_eq!(instance.load_without_in_place().bytes, Bytes::new(128));
//! assert_eq!(labels.buffers[1].op.as_deref(), Some("relu"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod computation;
mod formats;
mod order;
pub mod schedule;

pub use computation::{Alias, Graph, GraphBuilder, GraphError, OpId, Operation, Place, Tensor, TensorId};
pub use formats::{MeasuredNet, ProfileError, ProfileFormat, read_jsonl, write_dot, write_jsonl};
pub use order::{
    Ancestors, Clash, Dependencies, Lowered, OrderError, Rehearsal, Safety, Storage, TooManyOperations,
    lower_for_all_orders, lower_graph, placement_problem,
};
pub use schedule::{
    Audited, BufferIds, Completions, Content, ConvolutionAlgorithm, ConvolutionChoice, Engine, Event,
    EventId, EventWaits, FeatureMap, Function, FunctionId, FunctionKind, GradientSums, Kernel, Machine,
    MapId, MemoryBound, NetError, Playback, PlaybackError, PlaybackTotals, Schedule, ScheduleBound,
    ScheduleBudget, ScheduleError, ScheduleEvidence, ScheduleHalt, ScheduleMark, ScheduleOutcome,
    ScheduleRun, ScheduledBuffer, Scheduler, SchedulerDescriptor, SchedulingProblem, Span, Stuck, Task,
    Timeline, Times, TimesError, TrainingNet, ValueKind, Verified, Violation, Work, WorkspaceLimitError,
    bound_memory, compute_bound, execute_scheduler, execute_scheduler_observed, gradient_sums,
    simulate_schedule, validate_schedule,
};
