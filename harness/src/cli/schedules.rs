//! `schedule`.

use std::num::NonZeroU64;

use clap::Args;

use super::common::LimitArgs;
use super::graphs::NetArgs;
use crate::shell::quantity;

#[derive(Debug, Args)]
pub(crate) struct ScheduleArgs {
    #[command(flatten)]
    pub(crate) net: NetArgs,
    /// Images, or sequences, at a time [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) batch: Option<NonZeroU64>,
    /// A machine (`planlab list machines`), or a file that describes one (.toml)
    #[arg(long, value_name = "MACHINE", default_value = "x86-pcie3")]
    pub(crate) machine: String,
    /// Rate of copies in each direction, bytes per second (12GB) [default: the machine's]
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes)]
    pub(crate) link: Option<u64>,
    /// Measured times of the net's functions, CSV: function,forward,backward in seconds [default: roofline]
    #[arg(long, value_name = "CSV")]
    pub(crate) times: Option<String>,
    /// Memory of the device, parameters included [default: the machine's]
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes)]
    pub(crate) capacity: Option<u64>,
    /// Schedulers (globs) [default: all]
    #[arg(long = "scheduler", value_name = "GLOB")]
    pub(crate) schedulers: Vec<String>,
    /// The planner that gives the buffers of a schedule their offsets
    #[arg(long, value_name = "KEY", default_value = "portfolio")]
    pub(crate) planner: String,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Check the schedule in this file instead; exit code 4 if it is not valid
    #[arg(long, value_name = "SCHEDULE", conflicts_with_all = ["schedulers", "output"])]
    pub(crate) check: Option<String>,
    /// Write the fastest schedule that fits, with its offsets, to this file (- for stdout)
    #[arg(short = 'o', long = "output", value_name = "SCHEDULE")]
    pub(crate) output: Option<String>,
}
