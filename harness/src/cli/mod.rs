//! The command line.

mod bench;
mod common;
mod graphs;
mod list;
mod planning;
mod playing;
mod results;
mod traces;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(crate) use bench::{BenchArgs, Retry};
pub(crate) use common::{Choice, LimitArgs, Reading};
pub(crate) use graphs::{Emit, GraphArgs, ModelArgs, Optimizer, ScheduleArgs, ShapeArgs, SweepArgs};
pub(crate) use list::{ListArgs, Listing};
pub(crate) use planning::{BoundArgs, CompareArgs, PlanArgs, VerifyArgs};
pub(crate) use playing::{Device, ReplayArgs, RunArgs, SimulateArgs};
pub(crate) use results::{AuditArgs, DiffArgs, TurnsArgs};
#[cfg(feature = "reports")]
pub(crate) use results::{MergeArgs, QueryArgs, RatiosArgs, ReportArgs, TablesArgs};
#[cfg(feature = "reports")]
pub(crate) use traces::ShowArgs;
pub(crate) use traces::{
    AddWorkloadArgs, ExplainArgs, ExportArgs, ExportFormat, GenerateArgs, IDEALLOC, ImportArgs,
};

use crate::shell::quantity;
use crate::shell::text::TableForm;

/// The variable that names the file of external planners, for children and for users.
pub(crate) const PLANNERS: &str = "PLANLAB_PLANNERS";
/// The variable from which children learn how much they may read of an input, in bytes.
pub(crate) const INPUT_LIMIT: &str = "PLANLAB_INPUT_LIMIT";

/// Plans the memory of deep nets, and says what each plan is worth.
#[derive(Debug, Parser)]
#[command(name = "planlab", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 complete, 1 regression or failed check, 2 usage or bad input, \
    3 incomplete (some cell has no answer), 4 an invalid plan or refuted bound was found, 130 interrupted.")]
pub(crate) struct Cli {
    /// Write JSON to stdout instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Write the tables alone to stdout, for a spreadsheet or a text of yours; the words around them go to stderr
    #[arg(long, global = true, value_enum, value_name = "FORM", conflicts_with = "json")]
    pub(crate) table: Option<TableForm>,

    /// External planners [default: planners.toml in this folder, if there is one]
    #[arg(long = "planners", global = true, env = PLANNERS, value_name = "FILE")]
    pub(crate) planners_file: Option<PathBuf>,

    /// The most to read of an input, unpacked; a line may take 1/1024 of it, or 16 MiB if that is more [default: 16GiB]
    #[arg(long, global = true, env = INPUT_LIMIT, value_name = "BYTES", value_parser = quantity::parse_bytes)]
    pub(crate) input_limit: Option<u64>,

    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List what there is, or show one entry in full
    List(ListArgs),
    /// Run every cell of a suite, or planners on your own traces; resumes by itself
    Bench(BenchArgs),
    /// Plan one trace with one planner, in a process of its own
    Plan(PlanArgs),
    /// Plan one trace with all quick planners, and with external ones
    Compare(CompareArgs),
    /// Check a plan, or a certificate, against its trace; exit code 4 if it is not valid
    Verify(VerifyArgs),
    /// Prove lower bounds on the height of any plan, and say how each was derived
    Bound(BoundArgs),
    /// Play a trace on online allocators (pools): what they reserve at most, and what it costs
    Simulate(SimulateArgs),
    /// Play a trace on real memory: a plan beside pools and the allocators of processes, every byte checked
    Replay(ReplayArgs),
    /// Run a program on planned memory (libplanlab.so); nothing in it changes
    Run(RunArgs),
    /// Make a synthetic trace
    Generate(GenerateArgs),
    /// Make the trace or the graph of a net, or print its figures
    Model(ModelArgs),
    /// Compare sharing, other orders of the operations, and plans for all orders, by the memory of a net
    Graph(GraphArgs),
    /// Compute the memory of a net by batch, and the largest batch that fits
    Sweep(SweepArgs),
    /// Decide what a net that does not fit keeps, swaps to the host and recomputes, and what that costs
    Schedule(ScheduleArgs),
    /// Read another tool's file
    Import(ImportArgs),
    /// Write another tool's file
    Export(ExportArgs),
    /// Keep a trace in the repository as a recorded workload, with its line in the manifest
    AddWorkload(AddWorkloadArgs),
    /// Explain why a framework's memory ran out: what it reserved against the best plan, and what makes the difference
    Explain(ExplainArgs),
    /// Draw a trace, or a plan of it
    #[cfg(feature = "reports")]
    Show(ShowArgs),
    /// Write the report of a results folder
    #[cfg(feature = "reports")]
    Report(ReportArgs),
    /// Join the results of several folders (of shards, say)
    #[cfg(feature = "reports")]
    Merge(MergeArgs),
    /// Check results against each other: refuted bounds, false plans, missing repetitions and files
    Audit(AuditArgs),
    /// Ask the rows, replays and instances of a results folder a question in SQL
    #[cfg(feature = "reports")]
    Query(QueryArgs),
    /// Compare times and heights of planners of one bench, as tables
    #[cfg(feature = "reports")]
    Ratios(RatiosArgs),
    /// Show what changed between two results, cell by cell; exit code 1 if something is worse
    Diff(DiffArgs),
    /// Write tables of how time, memory and height grow with the number of buffers
    #[cfg(feature = "reports")]
    Scale(TablesArgs),
    /// Check what works on this machine, and what may disturb a measurement
    Doctor,
    /// Serve cells to a parent process
    #[command(hide = true)]
    RunCells,
    /// Serve a scheduler's cell to a parent process
    #[command(hide = true)]
    RunSchedule,
    /// Play one contender for a parent process
    #[command(hide = true)]
    RunReplay,
    /// Play contenders on a device for a parent process
    #[command(hide = true)]
    RunDeviceReplay,
    /// Answer a question to results for a parent process
    #[cfg(feature = "reports")]
    #[command(hide = true)]
    RunQuery,
    /// Become an external planner's program
    #[command(hide = true)]
    ExecExternal(ExecArgs),
}

impl Verb {
    /// Whether it may run external planners.
    pub(crate) const fn needs_planners(&self) -> bool {
        match self {
            Self::List(_) | Self::Bench(_) | Self::Plan(_) | Self::Compare(_) | Self::RunCells => true,
            Self::Graph(_) | Self::Sweep(_) | Self::Schedule(_) | Self::Explain(_) => true,
            Self::Diff(args) => args.turns.interleave,
            Self::Replay(args) => !args.planners.is_empty(),
            _ => false,
        }
    }

    /// Whether it serves a parent process, which ends it.
    pub(crate) const fn serves_parent(&self) -> bool {
        match self {
            Self::RunCells | Self::RunSchedule | Self::RunReplay => true,
            Self::RunDeviceReplay | Self::ExecExternal(_) => true,
            #[cfg(feature = "reports")]
            Self::RunQuery => true,
            _ => false,
        }
    }

    /// Whether it ends by itself when it is interrupted, and prints what it has so far.
    pub(crate) const fn ends_by_itself(&self) -> bool {
        match self {
            Self::Bench(_) | Self::Plan(_) | Self::Compare(_) | Self::Bound(_) | Self::Replay(_) => true,
            Self::Graph(_) | Self::Sweep(_) | Self::Schedule(_) | Self::Explain(_) => true,
            #[cfg(feature = "reports")]
            Self::Query(_) => true,
            Self::Diff(args) => args.turns.interleave,
            _ => false,
        }
    }

    /// Whether it passes signals on to a program that it runs.
    pub(crate) const fn relays_signals(&self) -> bool {
        matches!(self, Self::Run(_))
    }
}

#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// The process that starts it
    pub(crate) parent: u32,
    /// The file that takes the time at which the program begins
    pub(crate) stamp: PathBuf,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<OsString>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
