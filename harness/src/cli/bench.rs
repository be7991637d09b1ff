//! Arguments of `bench`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::common::{LimitArgs, Reading};
use crate::shell::quantity;

#[derive(Debug, Args)]
#[command(
    after_help = "A file becomes a workload with its name and the digest of its content as key, so a bench of it \
    resumes, and a changed file is another workload.\n\n\
    Example: planlab bench my.csv --planner 'first-fit/*' --planner portfolio --report pages"
)]
pub(crate) struct BenchArgs {
    /// Trace files, workload keys (globs), or - for stdin, instead of a suite's workloads
    #[arg(value_name = "TRACE", conflicts_with = "suite")]
    pub(crate) traces: Vec<String>,
    /// A suite by name, or a TOML file [default: smoke, unless a TRACE or --workload is given]
    #[arg(long, value_name = "SUITE")]
    pub(crate) suite: Option<String>,
    /// Only these planners (globs)
    #[arg(long = "planner", value_name = "GLOB")]
    pub(crate) planners: Vec<String>,
    /// Only the schedules of the suite, and only these schedulers (globs)
    #[arg(long = "scheduler", value_name = "GLOB", conflicts_with = "planners")]
    pub(crate) schedulers: Vec<String>,
    /// Only these workloads (globs)
    #[arg(long = "workload", value_name = "GLOB")]
    pub(crate) workloads: Vec<String>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Repetitions of every cell [default: the suite's, or 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) reps: Option<u32>,
    /// Ask for plans that fit this many bytes, one cell for each value [default: the suite's]
    #[arg(long = "capacity", value_name = "BYTES", value_parser = quantity::parse_bytes)]
    pub(crate) capacities: Vec<u64>,
    /// Number of cells to run at the same time; with more than one, times are shown but never ranked
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) jobs: u32,
    /// Only part i of n (1/4, 2/4, ...) of the cells
    #[arg(long, value_name = "I/N", value_parser = parse_shard)]
    pub(crate) shard: Option<(u64, u64)>,
    /// Run these cells again even if they have a row
    #[arg(long, value_enum, value_name = "WHICH")]
    pub(crate) retry: Option<Retry>,
    /// List the cells and estimate the time without running them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Folder of the results
    #[arg(long, value_name = "DIR", default_value = "results/store")]
    pub(crate) out: PathBuf,
    /// Then write the report of these results to this folder
    #[cfg(feature = "reports")]
    #[arg(long, value_name = "DIR", conflicts_with = "dry_run")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Retry {
    Failed,
    Timeout,
}

fn parse_shard(text: &str) -> Result<(u64, u64), String> {
    let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match parts {
        Some((i, n)) if 1 <= i && i <= n => Ok((i, n)),
        _ => Err(format!("`{text}`: a shard is i/n with 1 <= i <= n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_count_from_one() {
        assert_eq!(parse_shard("2/4"), Ok((2, 4)));
        for text in ["0/4", "5/4", "1", "a/b", "1/0"] {
            assert!(parse_shard(text).is_err(), "{text}");
        }
    }
}
