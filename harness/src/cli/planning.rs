//! `plan`, `compare`, `verify`, `bound`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::common::{LimitArgs, Reading};
use crate::shell::quantity;

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// A trace file, a workload key, or - for stdin
    pub(crate) trace: String,
    /// The planner
    #[arg(long, value_name = "KEY", default_value = "portfolio")]
    pub(crate) planner: String,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Stop at the first plan that fits this many bytes; without one, exit code 3
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes)]
    pub(crate) capacity: Option<u64>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Start from this plan of the same trace (- for stdin), where the planner honours hints; it takes the
    /// place of the trace's column `hint`
    #[arg(long, value_name = "PLAN")]
    pub(crate) start: Option<String>,
    /// Do not start from the trace's column `hint`
    #[arg(long, conflicts_with = "start")]
    pub(crate) no_hints: bool,
    /// Start from this plan of another batch size, carried over; its height for this trace is printed
    #[arg(long, value_name = "PLAN", requires = "of", conflicts_with = "start")]
    pub(crate) carry: Option<String>,
    /// The trace that the plan of --carry is of
    #[arg(long, value_name = "TRACE", requires = "carry")]
    pub(crate) of: Option<String>,
    /// Take the plan from this folder if it has one of the trace, or of another batch size of which all sizes
    /// are multiples, that as much time went into; keep it there if not
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Write the plan to this file (- for stdout)
    #[arg(short = 'o', long = "output", value_name = "PLAN")]
    pub(crate) output: Option<String>,
    /// Plan in this process, without isolation
    #[arg(long)]
    pub(crate) in_process: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// A trace file, a workload key, or - for stdin
    pub(crate) trace: String,
    /// Only these planners (globs) [default: all that are quick at this size]
    #[arg(long = "planner", value_name = "GLOB")]
    pub(crate) planners: Vec<String>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// A trace file, a workload key, or - for stdin
    pub(crate) trace: String,
    /// A plan file, or - for stdin
    pub(crate) plan: Option<String>,
    /// Check this certificate of infeasibility instead (- for stdin)
    #[arg(long, value_name = "FILE", conflicts_with = "plan")]
    pub(crate) certificate: Option<String>,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

#[derive(Debug, Args)]
pub(crate) struct BoundArgs {
    /// A trace file, a workload key, or - for stdin
    pub(crate) trace: String,
    /// Time for all arguments together [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub(crate) time_limit: Option<Duration>,
    /// Write a proof that no plan fits the capacity to this file, for others to check (- for stdout);
    /// exit code 3 if there is a plan, or no proof in time
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate: Option<String>,
    /// The capacity that the certificate is about [default: the load]
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes, requires = "certificate")]
    pub(crate) capacity: Option<u64>,
    #[command(flatten)]
    pub(crate) reading: Reading,
}
