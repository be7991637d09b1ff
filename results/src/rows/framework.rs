//! One row of a framework measurement: an unmodified framework runs a net under one allocator, in its own process.

use planlab_dsa::performance::End;
use serde::{Deserialize, Serialize};

use super::row::{Row, RowKind};

/// The version of the row; raised when a field changes its meaning.
pub const FRAMEWORK_SCHEMA: u32 = 2;

/// The contender that serves requests from a plan. Those that keep a step within a capacity begin with this name and `/`.
pub const PLANLAB: &str = "planlab";

/// The contender without a limit, to which those of a [`StepBudget`] are compared.
pub const UNCONSTRAINED: &str = "unconstrained";

/// A row of a contender on a net.
pub type FrameworkRow = Row<FrameworkRun>;

/// One process: one contender on one net. The cell of its row is a digest of framework, net, mode, batch, threads,
/// numbers of propagations, contender with its settings, machine, and for planlab the library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameworkRun {
    /// The framework with its version: `torch-1.13.0a0`, `onnxruntime-1.32.0`.
    pub framework: String,
    /// The net: `resnet18`.
    pub net: String,
    /// `infer` or `train`.
    pub mode: String,
    /// Images or sentences per propagation.
    pub batch: u64,
    /// Threads that the framework may use.
    pub threads: u32,
    /// `glibc`, `jemalloc/keep`, `planlab`, ...
    pub contender: String,
    /// The contender's environment variables, or the limit it got; empty for its defaults.
    pub settings: String,
    /// `complete` or `failed`; `out-of-memory` if a step does not fit its capacity.
    pub status: End,
    /// Why there is no figure; empty if there is one.
    pub reason: String,
    /// Propagations before the timed ones, the first included.
    pub warm_up: u32,
    /// Wall time of each timed propagation; if inputs of several lengths alternate, the mean of each turn.
    pub wall_ns: Vec<u64>,
    /// CPU time of each timed propagation, over all threads of the process.
    pub cpu_ns: Vec<u64>,
    /// Minor page faults of each timed propagation.
    pub faults: Vec<u64>,
    /// Wall time of the first propagation.
    pub first_wall_ns: Option<u64>,
    /// CPU time of the first propagation.
    pub first_cpu_ns: Option<u64>,
    /// Minor page faults of the first propagation.
    pub first_faults: Option<u64>,
    /// Resident bytes before the first propagation: the program, its libraries and the weights.
    pub resident_before: Option<u64>,
    /// The most bytes ever resident.
    pub resident_peak: Option<u64>,
    /// The most bytes resident during the timed propagations; `None` if the kernel does not report it.
    pub steady_peak: Option<u64>,
    /// Digest of the net's output; for training, of all losses and weights; with `budget`, of losses and gradients.
    pub digest: Option<String>,
    /// Large requests of the process. This field and those below exist only for planlab; with `budget` only `planning_ns`.
    pub requests: Option<u64>,
    /// Large requests served from a plan.
    pub planned: Option<u64>,
    /// The number of plans made.
    pub plans: Option<u64>,
    /// Time spent planning, on a separate thread; with `budget`, before or during a step of the warm-up.
    pub planning_ns: Option<u64>,
    /// Height of the highest plan.
    pub plan_height: Option<u64>,
    /// Load of that plan's round.
    pub plan_load: Option<u64>,
    /// The memory of a training step; `None` for rows that compare allocators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<StepBudget>,
}

/// The memory of a training step under a contender that saves some. Parameters and inputs do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepBudget {
    /// The bytes that the step was given; `None` for contenders that take no number of bytes.
    pub capacity: Option<u64>,
    /// The most bytes live at once, counted operation by operation.
    pub counted_peak: Option<u64>,
    /// The most bytes resident above those before the step.
    pub measured_peak: Option<u64>,
    /// The least counted peak that was found, if the step does not fit.
    pub least_peak: Option<u64>,
    /// Time of what the backward pass computes again, as planned.
    pub recompute_ns: Option<u64>,
    /// Bytes that a step copies to the host and back.
    pub copied_bytes: Option<u64>,
}

impl FrameworkRun {
    /// Whether planlab is the contender, in one of its ways.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.contender.split('/').next() == Some(PLANLAB)
    }

    /// Whether the run has to compute what the others do. PyTorch's choices within a budget may repeat random operations.
    pub(crate) fn must_agree(&self) -> bool {
        self.budget.is_none() || self.is_ours() || self.contender == UNCONSTRAINED
    }

    /// Whether it was measured, but lacks a figure that every such run has.
    fn lacks_figures(&self) -> bool {
        let lacks_peak =
            |budget: &StepBudget| budget.counted_peak.is_none() || budget.measured_peak.is_none();
        self.wall_ns.is_empty() || self.digest.is_none() || self.budget.as_ref().is_some_and(lacks_peak)
    }
}

impl RowKind for FrameworkRun {
    const KNOWN: u32 = FRAMEWORK_SCHEMA;
    const NAME: &'static str = "framework";
    const JOURNAL: &'static str = "frameworks.jsonl";
    /// The measuring script writes the lines with Python's standard library.
    const HAS_CHECKSUMS: bool = false;

    /// A row with figures counts more than one without.
    fn worth(&self) -> u8 {
        (self.status == End::Complete).into()
    }

    fn contradiction(&self) -> Option<&'static str> {
        let timed = self.wall_ns.len();
        if self.cpu_ns.len() != timed || self.faults.len() != timed {
            return Some("`wall_ns`, `cpu_ns` and `faults` have different lengths");
        }
        let is_false = self.status == End::Complete && self.lacks_figures();
        is_false.then_some("it is complete, but has no times, no `digest` or no peak")
    }
}
