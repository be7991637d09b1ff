//! Arguments of the verbs that read results: `report`, `diff`, `ratios`, `scale`, `merge`, `audit`.

use std::path::PathBuf;

use clap::Args;

use super::common::{Corpus, LimitArgs};
use crate::shell::quantity;

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// Folder of the results before
    #[arg(value_name = "A", required_unless_present = "interleave")]
    pub(crate) before: Option<PathBuf>,
    /// Folder of the results after
    #[arg(value_name = "B", required_unless_present = "interleave")]
    pub(crate) after: Option<PathBuf>,
    /// Ignore changes of a time up to this share
    #[arg(long, value_name = "SHARE", value_parser = quantity::parse_share, default_value = "5%")]
    pub(crate) threshold: f64,
    /// List every cell, changed or not
    #[arg(long)]
    pub(crate) all: bool,
    /// Continue if the hosts differ; times are then shown but not judged
    #[arg(long)]
    pub(crate) across_hosts: bool,
    /// Continue if hosts, flags or limits differ, and judge everything anyway
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) turns: TurnsArgs,
}

/// Two builds, measured in turns.
#[derive(Debug, Args)]
#[command(next_help_heading = "Measure two builds in turns, then compare")]
pub(crate) struct TurnsArgs {
    /// Run the cells of both builds on this machine in turns (A B, B A, A B, ...)
    #[arg(long, conflicts_with = "before", requires_all = ["a_binary", "b_binary"])]
    pub(crate) interleave: bool,
    /// The binary before
    #[arg(long, value_name = "PATH", requires = "interleave")]
    pub(crate) a_binary: Option<PathBuf>,
    /// The binary after
    #[arg(long, value_name = "PATH", requires = "interleave")]
    pub(crate) b_binary: Option<PathBuf>,
    /// A suite by name, or a TOML file, as in `bench`
    #[arg(long, value_name = "SUITE", requires = "interleave")]
    pub(crate) suite: Option<String>,
    /// Only these planners (globs)
    #[arg(long = "planner", value_name = "GLOB", requires = "interleave")]
    pub(crate) planners: Vec<String>,
    /// Only these workloads (globs)
    #[arg(long = "workload", value_name = "GLOB", requires = "interleave")]
    pub(crate) workloads: Vec<String>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Repetitions of every cell [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires = "interleave")]
    pub(crate) reps: Option<u32>,
    /// Folder of the results, in subfolders a/ and b/ [default: results/store-diff]
    #[arg(long, value_name = "DIR", requires = "interleave")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) corpus: Corpus,
}

#[cfg(feature = "reports")]
#[derive(Debug, Args)]
pub(crate) struct RatiosArgs {
    /// The planners whose times are the numerators (globs)
    #[arg(long = "of", value_name = "GLOB", required = true)]
    pub(crate) of: Vec<String>,
    /// The planners whose times are the denominators (globs)
    #[arg(long = "over", value_name = "GLOB", required = true)]
    pub(crate) over: Vec<String>,
    #[command(flatten)]
    pub(crate) tables: TablesArgs,
}

/// Rows, and the folder of the tables that are made of them.
#[cfg(feature = "reports")]
#[derive(Debug, Args)]
pub(crate) struct TablesArgs {
    /// Folder of the results
    #[arg(default_value = "results/store")]
    pub(crate) results: PathBuf,
    /// Only rows of this suite
    #[arg(long, value_name = "SUITE")]
    pub(crate) suite: Option<String>,
    /// Folder of the tables
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) output: PathBuf,
}

#[cfg(feature = "reports")]
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Folder of the results
    #[arg(default_value = "results/store")]
    pub(crate) results: PathBuf,
    /// Folder of the pages
    #[arg(short = 'o', long = "output", value_name = "DIR", default_value = "reports/out")]
    pub(crate) output: PathBuf,
    /// The most plans that get maps and a page of their own
    #[arg(long, value_name = "N", default_value_t = Self::MAPS)]
    pub(crate) maps: usize,
}

#[cfg(feature = "reports")]
impl ReportArgs {
    /// The default for the number of plans with a page of their own.
    pub(crate) const MAPS: usize = 800;
}

#[cfg(feature = "reports")]
#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Folders of results
    #[arg(required = true)]
    pub(crate) from: Vec<PathBuf>,
    /// Folder to merge them into
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Folder of the results
    #[arg(default_value = "results/store")]
    pub(crate) results: PathBuf,
    /// Move damaged journal lines and shards to `*.damaged` files, and stop reporting missing shards
    #[arg(long)]
    pub(crate) repair: bool,
}

#[cfg(feature = "reports")]
#[derive(Debug, Args)]
#[command(override_usage = "planlab query [OPTIONS] [RESULTS] SQL\n       planlab query --columns")]
#[command(
    after_help = "Tables: rows, replays, schedules, instances. Numbers are bytes, nanoseconds, or shares (0.01 is 1 %).\n\n\
    Example: planlab query \"SELECT planner, avg(gap) FROM rows GROUP BY planner\"\n\
    More of them: docs/QUERIES.md"
)]
pub(crate) struct QueryArgs {
    /// Folder of the results [default: results/store], and the query
    #[arg(value_name = "RESULTS> <SQL", num_args = 1..=2, required_unless_present = "columns")]
    pub(crate) question: Vec<String>,
    /// List the tables' columns, with units and meanings
    #[arg(long, conflicts_with = "question")]
    pub(crate) columns: bool,
    /// Write comma-separated values with all digits
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Memory of the query; one that needs more has no answer (exit code 3)
    #[arg(long, value_name = "BYTES", value_parser = quantity::parse_bytes, default_value = "2GiB")]
    pub(crate) memory_limit: u64,
}

#[cfg(feature = "reports")]
impl QueryArgs {
    /// The folder of the results and the query.
    pub(crate) fn folder_and_query(&self) -> (PathBuf, &str) {
        match self.question.as_slice() {
            [results, sql] => (results.into(), sql),
            words => ("results/store".into(), words.first().map_or("", String::as_str)),
        }
    }
}
