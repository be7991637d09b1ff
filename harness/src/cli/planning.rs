//! Arguments of the verbs that make and check plans: `plan`, `compare`, `verify`, `bound`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::common::{LimitArgs, Reading};
use crate::shell::quantity;

#[derive(Debug, Args)]
#[command(
    after_help = "Example: planlab plan trace.csv -o plan.csv; best-fit takes a millisecond: --planner best-fit"
)]
pub(crate) struct PlanArgs {
    /// A trace file, a workload key, or - for stdin
    pub(crate) trace: String,
    /// The planner
    #[arg(long, value_name = "KEY", default_value = "portfolio")]
    pub(crate) planner: String,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Stop at the first plan that fits this many bytes; exit code 3 if none is found
    #[arg(long, value_name = "BYTES", value_parser = quantity::parse_bytes)]
    pub(crate) capacity: Option<u64>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Start from this plan of the same trace (- for stdin) instead of the trace's column `hint`, if the planner
    /// honours hints
    #[arg(long, value_name = "PLAN")]
    pub(crate) start: Option<String>,
    /// Do not start from the trace's column `hint`
    #[arg(long, conflicts_with = "start")]
    pub(crate) no_hints: bool,
    /// Start from this plan of another batch size, adapted to this trace; prints its height here
    #[arg(long, value_name = "PLAN", requires = "of", conflicts_with = "start")]
    pub(crate) carry: Option<String>,
    /// The trace of the --carry plan
    #[arg(long, value_name = "TRACE", requires = "carry")]
    pub(crate) of: Option<String>,
    /// Reuse a plan from this folder if one exists for the trace, or for another batch size with all sizes in
    /// proportion, and had at least this much planning time. Otherwise plan, and keep the plan there
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
    /// Only these planners (globs) [default: all planners that are quick at this size, and the external ones that
    /// planners.toml describes]
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
    /// Time for all methods of proof together [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration)]
    pub(crate) time_limit: Option<Duration>,
    /// Write a proof that no plan fits the capacity to this file, for others to check (- for stdout); exit code 3 if a
    /// plan exists or no proof was found in time
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate: Option<String>,
    /// The capacity that the certificate is about [default: the load, without in-place]
    #[arg(long, value_name = "BYTES", value_parser = quantity::parse_bytes, requires = "certificate")]
    pub(crate) capacity: Option<u64>,
    #[command(flatten)]
    pub(crate) reading: Reading,
}
