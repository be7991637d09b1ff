//! Arguments of the verbs on nets and graph files: `model`, `graph`, `sweep`, `schedule`.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use planlab_workloads::models::{Allocator, Mode, Workspace};

use super::common::{Choice, LimitArgs, parse_dimension, parse_named};
use crate::shell::quantity;

/// The shape of a net, without the batch; a graph file has its own shape.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ShapeArgs {
    /// Forward pass only, or forward and backward [default: train]
    #[arg(long, value_parser = parse_named([Mode::Infer, Mode::Train], |mode| mode.name().into()))]
    pub(crate) mode: Option<Mode>,
    /// Height and width of an input image [default: the net's own]
    #[arg(long, value_name = "PIXELS")]
    pub(crate) size: Option<NonZeroU64>,
    /// Tokens in a sequence [default: the net's own]
    #[arg(long, value_name = "TOKENS")]
    pub(crate) sequence: Option<NonZeroU64>,
    /// What decides the requests for memory: the needs of each operation, or Chainer's rules [default: ideal]
    #[arg(long, value_parser = parse_named([Allocator::Chainer, Allocator::Ideal], |model| model.name().into()))]
    pub(crate) allocator_model: Option<Allocator>,
    /// Workspace of each convolution: bytes (0, 4096, 8m for 8 MiB), or a multiple of its output (x20, x0.05). For
    /// `schedule`: the one workspace that all share; a multiple limits what each may use of it [default: 0; with
    /// chainer 8m; for `schedule` the machine's]
    #[arg(long, value_name = "LIMIT", value_parser = parse_workspace)]
    pub(crate) workspace: Option<Workspace>,
}

impl ShapeArgs {
    /// Whether any of these arguments is given.
    pub(crate) fn is_said(&self) -> bool {
        let numbers = self.size.is_some() || self.sequence.is_some();
        numbers || self.mode.is_some() || self.allocator_model.is_some() || self.workspace.is_some()
    }
}

fn parse_workspace(text: &str) -> Result<Workspace, String> {
    let form = "a workspace is a number of bytes (4096, 8m) or a multiple of the output (x20, x0.05)";
    Workspace::parse(text).ok_or_else(|| format!("`{text}`: {form}"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emit {
    /// The live ranges, as trace CSV
    Trace,
    /// The operations, as JSON Lines
    Graph,
    /// The operations, for Graphviz; those at the peak are marked
    Dot,
    /// Feature maps and functions in training, for `schedule`, as JSON Lines
    TrainingNet,
}

#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// A net (`planlab list models`), or a whole key (model/alexnet/train/b32)
    pub(crate) net: String,
    #[command(flatten)]
    pub(crate) shape: ShapeArgs,
    /// Batch size: images or sequences at a time [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) batch: Option<NonZeroU64>,
    /// What to write [default: trace]
    #[arg(long, value_enum, requires = "output")]
    pub(crate) emit: Option<Emit>,
    /// The file to write (- for stdout); without it, the net's figures are printed
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) output: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct GraphArgs {
    /// A net (`planlab list models`), a graph file, or - for stdin
    pub(crate) graph: String,
    #[command(flatten)]
    pub(crate) shape: ShapeArgs,
    /// Batch size of a net: images or sequences at a time [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) batch: Option<NonZeroU64>,
    /// The planner that makes all plans
    #[arg(long, value_name = "KEY", default_value = "portfolio")]
    pub(crate) planner: String,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Work limit of the local search for a better order, in operations visited. All searches for orders together end
    /// after --time-limit, or 60 s
    #[arg(long, value_name = "N", default_value_t = 1 << 22)]
    pub(crate) order_work: u64,
    /// Run the plans in this many random legal orders
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) orders: u64,
    /// Write the graph, in the order whose plan is lowest, to this file (- for stdout)
    #[arg(short = 'o', long = "output", value_name = "GRAPH")]
    pub(crate) output: Option<String>,
    /// Keep the results in this folder, for the report
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// A net (`planlab list models`), a graph file, or - for stdin
    pub(crate) graph: String,
    #[command(flatten)]
    pub(crate) shape: ShapeArgs,
    /// Batches from A to B: A, then each power of two, then B
    #[arg(long, value_name = "A..B", value_parser = parse_batches, default_value = "1..512")]
    pub(crate) batch: Batches,
    /// The batch that a graph file was made for; all sizes except those of external tensors scale with the batch
    /// [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) graph_batch: Option<NonZeroU64>,
    /// Find the largest batch that fits into this much memory, including what is kept beside the plan (parameters,
    /// gradients, the optimizer's state; for a graph file its external tensors)
    #[arg(long, value_name = "BYTES", value_parser = quantity::parse_bytes)]
    pub(crate) capacity: Option<u64>,
    /// What training keeps for each parameter of a net besides the parameter and its gradient [default: momentum]
    #[arg(long, value_enum)]
    pub(crate) optimizer: Option<Optimizer>,
    /// Planners (globs) [default: portfolio]
    #[arg(long = "planner", value_name = "GLOB")]
    pub(crate) planners: Vec<String>,
    /// Online allocators (globs), played until they settle [default: no allocator]
    #[arg(long = "allocator", value_name = "GLOB")]
    pub(crate) allocators: Vec<String>,
    /// Whether the net's permissions to overwrite a buffer in place count [default: yes]
    #[arg(long, value_enum, value_name = "yes|no", hide_possible_values = true)]
    pub(crate) in_place: Option<Choice>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Keep the results in this folder, for the report
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// What an optimizer keeps for each parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Optimizer {
    /// Nothing
    Sgd,
    /// A velocity
    Momentum,
    /// Two moments
    Adam,
}

impl Optimizer {
    /// Numbers kept for each parameter, besides the parameter and its gradient.
    pub(crate) const fn states_per_parameter(self) -> u64 {
        match self {
            Self::Sgd => 0,
            Self::Momentum => 1,
            Self::Adam => 2,
        }
    }
}

/// A range of batch sizes, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Batches {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Batches {
    /// The first batch, each power of two between, and the last.
    pub(crate) fn batch_points(self) -> Vec<u64> {
        let powers = (0..u64::BITS).map(|exponent| 1_u64 << exponent);
        let mut points: Vec<u64> = powers.filter(|&batch| self.from < batch && batch < self.to).collect();
        points.extend([self.from, self.to]);
        points.sort_unstable();
        points.dedup();
        points
    }
}

fn parse_batches(text: &str) -> Result<Batches, String> {
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    match (from.parse(), to.strip_prefix('=').unwrap_or(to).parse()) {
        (Ok(from), Ok(to)) if 1 <= from && from <= to => Ok(Batches { from, to }),
        _ => Err(format!("`{text}`: batches are A..B with 1 <= A <= B, both included")),
    }
}

#[derive(Debug, Args)]
pub(crate) struct ScheduleArgs {
    /// A net (`planlab list models`), a whole key (model/resnet50/train/b512), a file of a training net
    /// (docs/FILES.md), a model of ONNX, a profile of PipeDream, or a graph of dnn-partitioning
    pub(crate) net: String,
    #[command(flatten)]
    pub(crate) shape: ShapeArgs,
    /// Batch size: images or sequences at a time [default: 1; for a file its own]
    #[arg(long, value_name = "N")]
    pub(crate) batch: Option<NonZeroU64>,
    /// The batch at which a profile was measured (of PipeDream or dnn-partitioning); the file does not contain it
    #[arg(long, value_name = "N")]
    pub(crate) measured_batch: Option<NonZeroU64>,
    /// Fix a dynamic dimension of a model of ONNX; the first one of its first input is the batch
    #[arg(long = "dim", value_name = "NAME=VALUE", value_parser = parse_dimension)]
    pub(crate) dims: Vec<(String, u64)>,
    /// A machine (`planlab list machines`), or a file that describes one (.toml) [default: x86-pcie3; for a file that
    /// names one, its own]
    #[arg(long, value_name = "MACHINE")]
    pub(crate) machine: Option<String>,
    /// Rate of copies in each direction, bytes per second (12GB) [default: the machine's]
    #[arg(long, value_name = "BYTES", value_parser = quantity::parse_bytes)]
    pub(crate) link: Option<u64>,
    /// Measured times of the net's functions, CSV: function,forward,backward in seconds [default: roofline]
    #[arg(long, value_name = "CSV")]
    pub(crate) times: Option<String>,
    /// Memory of the device, parameters included [default: the machine's]
    #[arg(long, value_name = "BYTES", value_parser = quantity::parse_bytes)]
    pub(crate) capacity: Option<u64>,
    /// Schedulers (globs; `*` for all)
    #[arg(long = "scheduler", value_name = "GLOB", default_value = "joint")]
    pub(crate) schedulers: Vec<String>,
    /// The planner that assigns offsets to a schedule's buffers
    #[arg(long, value_name = "KEY", default_value = "portfolio")]
    pub(crate) planner: String,
    /// Wall time of that planner [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration)]
    pub(crate) planner_time_limit: Option<Duration>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Do not schedule this batch, but find the largest batch that fits and at which each scheduler loses at most this share of the speed
    /// (10%). The search doubles and halves, so it may miss a larger batch that fits
    #[arg(long, value_name = "SHARE", value_parser = quantity::parse_share, conflicts_with_all = ["batch", "times", "output", "check", "out"])]
    pub(crate) loss: Option<f64>,
    /// Do not schedule, but check the schedule in this file; exit code 4 if it is not valid
    #[arg(long, value_name = "SCHEDULE", conflicts_with_all = ["schedulers", "output", "out"])]
    pub(crate) check: Option<String>,
    /// Also list the feature maps, and what the fastest schedule that fits does with each
    #[arg(long, conflicts_with_all = ["loss", "check"])]
    pub(crate) maps: bool,
    /// Write the fastest schedule that fits, with its offsets, to this file (- for stdout)
    #[arg(short = 'o', long = "output", value_name = "SCHEDULE")]
    pub(crate) output: Option<String>,
    /// Keep rows, schedules and timelines in this folder of results
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_have_both_ends_and_the_powers_of_two_between() {
        let points = |text| parse_batches(text).map(Batches::batch_points);
        assert_eq!(points("1..8"), Ok(vec![1, 2, 4, 8]));
        assert_eq!(points("3..20"), Ok(vec![3, 4, 8, 16, 20]));
        assert_eq!(points("32"), Ok(vec![32]));
        for text in ["0..4", "4..2", "a..b", "1..", ""] {
            assert!(parse_batches(text).is_err(), "{text}");
        }
    }
}
