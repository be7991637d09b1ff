//! The command line.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::{external, quantity};

/// Tells children how much they may read of an input.
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

    /// External planners [default: planners.toml in this folder, where there is one]
    #[arg(long = "planners", global = true, env = external::VARIABLE, value_name = "FILE")]
    pub(crate) planners_file: Option<PathBuf>,

    /// Read no more than this of an input, unpacked; a line may take 1/256 of it, or 16 MiB if that is more [default: 4GiB]
    #[arg(long, global = true, env = INPUT_LIMIT, value_name = "BYTES", value_parser = quantity::bytes)]
    pub(crate) input_limit: Option<u64>,

    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List what there is
    List(ListArgs),
    /// Run every cell of a suite; resumes by itself
    Bench(BenchArgs),
    /// Plan one trace with one planner, in a process of its own
    Plan(PlanArgs),
    /// Plan one trace with all quick planners
    Compare(CompareArgs),
    /// Check a plan, or a certificate, against its trace; exit code 4 if it is not valid
    Verify(VerifyArgs),
    /// Lower bounds on the height of any plan, and how each was had
    Bound(BoundArgs),
    /// Play a trace on online allocators (pools): what they reserve at most, and what it costs
    Simulate(SimulateArgs),
    /// Play a trace on real memory: a plan beside pools and the allocators of processes, every byte checked
    Replay(ReplayArgs),
    /// Make a synthetic trace
    Generate(GenerateArgs),
    /// Read another tool's file
    Import(ImportArgs),
    /// Write another tool's file
    Export(ExportArgs),
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
    /// Compare times and heights of planners of one bench, as tables
    Ratios(RatiosArgs),
    /// What changed between two results, cell by cell; exit code 1 if something is worse
    Diff(DiffArgs),
    /// Tables of how time, memory and height grow with the number of buffers
    Scale(ScaleArgs),
    /// Say what works on this machine, and what a measurement should beware of
    Doctor,
    /// Serve cells to a parent process
    #[command(hide = true)]
    RunCells,
    /// Play one contender for a parent process
    #[command(hide = true)]
    RunReplay,
    /// Play contenders on a device for a parent process
    #[command(hide = true)]
    RunDeviceReplay,
    /// Become an external planner's program
    #[command(hide = true)]
    ExecExternal(ExecArgs),
}

impl Verb {
    /// Whether external planners may have a part in it.
    pub(crate) const fn needs_planners(&self) -> bool {
        match self {
            Self::List(_) | Self::Bench(_) | Self::Plan(_) | Self::Compare(_) | Self::RunCells => true,
            Self::Diff(args) => args.turns.interleave,
            Self::Replay(args) => !args.planners.is_empty(),
            _ => false,
        }
    }

    /// Whether it is for a parent process, which says when it is to end.
    pub(crate) const fn serves(&self) -> bool {
        matches!(self, Self::RunCells | Self::RunReplay | Self::RunDeviceReplay | Self::ExecExternal(_))
    }

    /// Whether it ends by itself when it is interrupted, and tells what it has.
    pub(crate) const fn ends_by_itself(&self) -> bool {
        match self {
            Self::Bench(_) | Self::Plan(_) | Self::Compare(_) | Self::Bound(_) | Self::Replay(_) => true,
            Self::Diff(args) => args.turns.interleave,
            _ => false,
        }
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

#[derive(Debug, Args)]
pub(crate) struct RatiosArgs {
    /// Folder of the results
    #[arg(default_value = "results/store")]
    pub(crate) results: PathBuf,
    /// The planners whose times are the numerators (globs)
    #[arg(long = "of", value_name = "GLOB", required = true)]
    pub(crate) of: Vec<String>,
    /// The planners whose times are the denominators (globs)
    #[arg(long = "over", value_name = "GLOB", required = true)]
    pub(crate) over: Vec<String>,
    /// Only rows of this suite
    #[arg(long, value_name = "SUITE")]
    pub(crate) suite: Option<String>,
    /// Folder of the tables
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// Folder of the results before
    #[arg(value_name = "A", required_unless_present = "interleave")]
    pub(crate) before: Option<PathBuf>,
    /// Folder of the results after
    #[arg(value_name = "B", required_unless_present = "interleave")]
    pub(crate) after: Option<PathBuf>,
    /// Changes of a time up to this share are none
    #[arg(long, value_name = "SHARE", value_parser = quantity::share, default_value = "5%")]
    pub(crate) threshold: f64,
    /// List every cell, changed or not
    #[arg(long)]
    pub(crate) all: bool,
    /// Go on where the hosts differ; times are then shown and not judged
    #[arg(long)]
    pub(crate) across_hosts: bool,
    /// Go on where hosts, flags or limits differ, and judge all the same
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
    /// Folder of the results, which go to a/ and b/ in it [default: results/store-diff]
    #[arg(long, value_name = "DIR", requires = "interleave")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) corpus: Corpus,
}

#[derive(Debug, Args)]
pub(crate) struct ScaleArgs {
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

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// What to list
    #[arg(value_enum, default_value_t = Listing::Planners)]
    pub(crate) what: Listing,
    #[command(flatten)]
    pub(crate) corpus: Corpus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Listing {
    Planners,
    Workloads,
    Suites,
    Families,
    Formats,
    Allocators,
    Schedulers,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Corpus {
    /// Folder with external instances (minimalloc/, idealloc/)
    #[arg(long, env = "PLANLAB_CORPUS", value_name = "DIR")]
    pub(crate) corpus: Option<PathBuf>,
}

/// How a TRACE is read.
#[derive(Clone, Debug, Args)]
pub(crate) struct Reading {
    #[command(flatten)]
    pub(crate) corpus: Corpus,
    /// Round sizes up to multiples of N bytes and align offsets to it
    #[arg(long, value_name = "N", value_parser = quantity::bytes)]
    pub(crate) align: Option<u64>,
    /// Take the offsets of a plan file as pins
    #[arg(long)]
    pub(crate) pins: bool,
}

/// Limits of a cell.
#[derive(Clone, Debug, Args)]
pub(crate) struct LimitArgs {
    /// Wall time of a cell (10s, 500ms, 2m) [default: 10s, or what the suite says]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub(crate) time_limit: Option<Duration>,
    /// Memory of a cell
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes, default_value = "4GiB")]
    pub(crate) memory_limit: u64,
    /// Work of a cell, in the planners' own units: with it, one thread and enough time, a planner that honours
    /// it gives the same plan on every machine
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) work_limit: Option<u64>,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Threads that a planner may use [default: every core in `plan` and `compare`; in `bench` 1, or what the
    /// suite says]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
}

impl LimitArgs {
    /// Whether any limit but that of memory, or a seed, is named.
    pub(crate) fn is_said(&self) -> bool {
        self.time_limit.is_some() || self.work_limit.is_some() || self.threads.is_some() || self.seed != 0
    }
}

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// A suite by name, or a TOML file [default: smoke, unless --planner and --workload are given]
    #[arg(long, value_name = "SUITE")]
    pub(crate) suite: Option<String>,
    /// Only these planners (globs)
    #[arg(long = "planner", value_name = "GLOB")]
    pub(crate) planners: Vec<String>,
    /// Only these workloads (globs)
    #[arg(long = "workload", value_name = "GLOB")]
    pub(crate) workloads: Vec<String>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Repetitions of every cell [default: 1, or what the suite says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) reps: Option<u32>,
    /// Ask for plans that fit so many bytes, a cell for each [default: what the suite says]
    #[arg(long = "capacity", value_name = "BYTES", value_parser = quantity::bytes)]
    pub(crate) capacities: Vec<u64>,
    /// Cells at the same time; with more than one, times are shown but never ranked
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) jobs: u32,
    /// Only part i of n (1/4, 2/4, ...) of the cells
    #[arg(long, value_name = "I/N", value_parser = shard)]
    pub(crate) shard: Option<(u64, u64)>,
    /// Run these cells again although they have a row
    #[arg(long, value_enum, value_name = "WHICH")]
    pub(crate) retry: Option<Retry>,
    /// List the cells and estimate the time, run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Folder of the results
    #[arg(long, value_name = "DIR", default_value = "results/store")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) corpus: Corpus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Retry {
    Failed,
    Timeout,
}

fn shard(text: &str) -> Result<(u64, u64), String> {
    let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match parts {
        Some((i, n)) if 1 <= i && i <= n => Ok((i, n)),
        _ => Err(format!("`{text}`: a shard is i/n with 1 <= i <= n")),
    }
}

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
    /// Start from this plan of another batch size, carried over; its height for this trace is told
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

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// A trace file, a workload key, or - for stdin; several are played in turn, each as one propagation
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<String>,
    /// The allocators (globs; `planlab list allocators`)
    #[arg(long = "allocator", value_name = "GLOB", required = true)]
    pub(crate) allocators: Vec<String>,
    /// How often the trace, or all of them in turn, is played
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) iterations: u32,
    /// Memory of the device [default: unlimited]
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes)]
    pub(crate) capacity: Option<u64>,
    /// Only what comes before this step [default: the last step, so that what ends there lives on]
    #[arg(long, value_name = "STEP")]
    pub(crate) until: Option<u32>,
    /// Print each propagation too
    #[arg(long)]
    pub(crate) samples: bool,
    /// Keep a row for each allocator in this folder of results, for `report`, which is about whole propagations
    #[arg(long, value_name = "DIR", conflicts_with = "until")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("contenders").required(true).multiple(true).args(["plans", "planners", "allocators"])))]
pub(crate) struct ReplayArgs {
    /// A trace file, a workload key, or - for stdin
    pub(crate) trace: String,
    /// Traces that follow, each one propagation, in turn
    #[arg(value_name = "TRACE")]
    pub(crate) more: Vec<String>,
    /// Play this plan of the trace: rows call it `plan:NAME` by the stem of its file
    #[arg(long = "plan", value_name = "PLAN")]
    pub(crate) plans: Vec<String>,
    /// Play the plan that this planner makes
    #[arg(long = "planner", value_name = "KEY")]
    pub(crate) planners: Vec<String>,
    /// Play these (globs): online allocators (`planlab list allocators`), and on the host glibc, jemalloc,
    /// jemalloc/oversize-1m, jemalloc/one-arena, mimalloc, and empty-loop, which is what the loop itself takes; on
    /// a device empty-loop too, cuda-malloc, cuda-malloc-async/keep, cuda-malloc-async/release, cuda-graph/async, and of each plan
    /// cuda-graph/plan and plan/shuffled
    #[arg(long = "allocator", value_name = "GLOB")]
    pub(crate) allocators: Vec<String>,
    /// Whose memory: host, cuda:N, or simulated-cuda[:BYTES], which is no GPU and measures nothing
    #[arg(long, value_name = "DEVICE", value_parser = device, default_value = "host")]
    pub(crate) device: Device,
    /// Threads, each with the whole trace; several numbers are played one after another
    #[arg(long, value_name = "N[,N]", value_delimiter = ',', default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) threads: Vec<u32>,
    /// What is done with each block
    #[arg(long, value_enum, default_value_t = WorkArg::None)]
    pub(crate) work: WorkArg,
    /// Timed propagations of each process [default: as many as fit --seconds; of several traces, without a warm-up,
    /// or on a device 200, there fewer if these take longer]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) iterations: Option<u32>,
    /// Time for the timed propagations of each process; on a device, of each contender's turn, and for its warm-up
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, default_value = "2s")]
    pub(crate) seconds: Duration,
    /// Processes of each contender, which take turns
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) reps: u32,
    /// On a device: turns of each contender in a process, in an order that is drawn anew
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Propagations before the timed ones, at least; 0 for none at all [default: 50]
    #[arg(long, value_name = "N")]
    pub(crate) warm_up: Option<u32>,
    /// With --work operations: how long each takes [default: as recorded, where the trace says what a step is in time:
    /// `# step-unit: ns`]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub(crate) operation_time: Option<Duration>,
    /// The most that a plan or a pool may reserve, for each thread; on a device, the memory that is left to each
    /// contender [default: unlimited]
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes)]
    pub(crate) capacity: Option<u64>,
    /// Wall time of a process; one that takes longer is killed
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, default_value = "5m")]
    pub(crate) time_limit: Duration,
    /// Seed of the order in which the contenders take their turns
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Keep a row for each process in this folder of results
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// Whose memory is played on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Device {
    Host,
    /// A GPU, by its number.
    Cuda(u32),
    /// What stands for a GPU, with so many bytes.
    Simulated(u64),
}

/// Bytes of a simulated device where it is not said.
const SIMULATED_MEMORY: u64 = 4 << 30;

fn device(text: &str) -> Result<Device, String> {
    let number = text.strip_prefix("cuda:").and_then(|number| number.parse().ok());
    let memory = text.strip_prefix("simulated-cuda:").map(quantity::bytes);
    match (text, number, memory) {
        ("host", _, _) => Ok(Device::Host),
        ("simulated-cuda", _, _) => Ok(Device::Simulated(SIMULATED_MEMORY)),
        (_, Some(number), _) => Ok(Device::Cuda(number)),
        (_, _, Some(memory)) => Ok(Device::Simulated(memory?)),
        _ => Err(format!("`{text}`: a device is host, cuda:0, cuda:1, ..., or simulated-cuda[:BYTES]")),
    }
}

/// What is done with a block between its request and its free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WorkArg {
    /// Nothing: addresses alone
    None,
    /// One byte of each page is written
    Pages,
    /// Every byte is written, and looked for before the free
    Pattern,
    /// On a device: one kernel writes a buffer after its request, one reads it before its free
    Kernels,
    /// On a device: kernels, and the device works for as long as the operations take
    Operations,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// The family (`planlab list families`)
    pub(crate) family: String,
    /// Its parameters
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) parameters: Vec<String>,
    /// Where to write the trace (- for stdout)
    #[arg(short = 'o', long = "output", value_name = "TRACE", default_value = "-")]
    pub(crate) output: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportFormat {
    /// The lab's CSV
    Lab,
    /// MiniMalloc's CSV (`end` columns are inclusive)
    Minimalloc,
    /// idealloc's CSV; say which ends it excludes by --dialect
    Idealloc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// The lab's CSV
    Lab,
    /// MiniMalloc's CSV
    Minimalloc,
    /// idealloc's CSV, both ends exclusive, steps doubled
    Idealloc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DialectArg {
    /// `[lower, upper)`
    HalfOpen,
    /// `[lower, upper]`
    Inclusive,
    /// `(lower, upper)`
    Open,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    #[arg(value_enum)]
    pub(crate) format: ImportFormat,
    /// The file, or - for stdin
    pub(crate) file: String,
    /// How the file means its ends
    #[arg(long, value_enum, default_value_t = DialectArg::HalfOpen)]
    pub(crate) dialect: DialectArg,
    /// Take offsets as pins
    #[arg(long)]
    pub(crate) pins: bool,
    /// Where to write the trace (- for stdout)
    #[arg(short = 'o', long = "output", value_name = "TRACE", default_value = "-")]
    pub(crate) output: String,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[arg(value_enum)]
    pub(crate) format: ExportFormat,
    /// A trace file, a workload key, or - for stdin
    pub(crate) trace: String,
    /// A plan file, whose offsets are written too
    pub(crate) plan: Option<String>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Where to write the file (- for stdout)
    #[arg(short = 'o', long = "output", value_name = "FILE", default_value = "-")]
    pub(crate) output: String,
}

#[cfg(feature = "reports")]
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A trace file, a workload key, or - for stdin
    pub(crate) trace: String,
    /// A plan file
    pub(crate) plan: Option<String>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Where to write the picture: .svg, .png or .html
    #[arg(short = 'o', long = "output", value_name = "FILE")]
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
}

#[cfg(feature = "reports")]
#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Folders of results
    #[arg(required = true)]
    pub(crate) from: Vec<PathBuf>,
    /// Folder that takes them all
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Folder of the results
    #[arg(default_value = "results/store")]
    pub(crate) results: PathBuf,
    /// Move damaged journal lines and shards to `*.damaged` files, and stop reporting shards that are gone
    #[arg(long)]
    pub(crate) repair: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn devices_have_names() {
        assert_eq!((device("host"), device("cuda:3")), (Ok(Device::Host), Ok(Device::Cuda(3))));
        assert_eq!(device("simulated-cuda:8MiB"), Ok(Device::Simulated(8 << 20)));
        assert_eq!(device("simulated-cuda"), Ok(Device::Simulated(SIMULATED_MEMORY)));
        for text in ["", "cuda", "cuda:", "cuda:-1", "gpu", "Host", "simulated-cuda:x"] {
            assert!(device(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shards_count_from_one() {
        assert_eq!(shard("2/4"), Ok((2, 4)));
        for text in ["0/4", "5/4", "1", "a/b", "1/0"] {
            assert!(shard(text).is_err(), "{text}");
        }
    }
}
