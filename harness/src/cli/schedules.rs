//! Arguments of `schedule`.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::Args;

use super::common::LimitArgs;
use super::graphs::ShapeArgs;
use crate::shell::quantity;

#[derive(Debug, Args)]
pub(crate) struct ScheduleArgs {
    /// A net (`planlab list models`), a whole key (model/resnet50/train/b512), a file of a training net
    /// (docs/FILES.md), or a profile of PipeDream
    pub(crate) net: String,
    #[command(flatten)]
    pub(crate) shape: ShapeArgs,
    /// Batch size: images or sequences at a time [default: 1; for a file its own]
    #[arg(long, value_name = "N")]
    pub(crate) batch: Option<NonZeroU64>,
    /// The batch at which a profile of PipeDream was measured; the profile does not contain it
    #[arg(long, value_name = "N")]
    pub(crate) measured_batch: Option<NonZeroU64>,
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
    /// Schedulers (globs) [default: all]
    #[arg(long = "scheduler", value_name = "GLOB")]
    pub(crate) schedulers: Vec<String>,
    /// The planner that assigns offsets to a schedule's buffers
    #[arg(long, value_name = "KEY", default_value = "portfolio")]
    pub(crate) planner: String,
    /// Wall time of that planner [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration)]
    pub(crate) planner_time_limit: Option<std::time::Duration>,
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
