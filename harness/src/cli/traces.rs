//! `generate`, `import`, `export`, `add-workload`, `explain`, `show`.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};
use planlab_workloads::formats::Dialect;
use planlab_workloads::formats::import::READERS;

use super::common::{Choice, LimitArgs, Parts, Reading, parse_named};
use crate::shell::quantity;

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

/// Formats that a file of the lab's own reader may be in, with what they are.
const OWN_FORMATS: [(&str, &str); 3] = [
    ("lab", "planlab's own CSV, or a graph"),
    ("minimalloc", "MiniMalloc's CSV (`end` columns are inclusive)"),
    (IDEALLOC, "idealloc's CSV; say which ends it excludes by --dialect"),
];
/// The format that has dialects.
pub(crate) const IDEALLOC: &str = "idealloc";

/// Every format that can be imported.
fn import_formats() -> PossibleValuesParser {
    let foreign = READERS.into_iter().map(|reader| (reader.key, reader.title));
    let all = OWN_FORMATS.into_iter().chain(foreign);
    PossibleValuesParser::new(all.map(|(key, title)| PossibleValue::new(key).help(title)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// planlab's own CSV
    Lab,
    /// MiniMalloc's CSV
    Minimalloc,
    /// idealloc's CSV, both ends exclusive, steps doubled
    Idealloc,
    /// A plan as one JSON object
    PlanJson,
    /// The offline plan of TensorFlow Lite Micro, as the bytes of a model's metadata
    TfliteMicro,
    /// A C header with the offsets of a plan
    CHeader,
    /// JSON for ui.perfetto.dev: load, height, and a track for each arena; of a schedule, its three tracks and its memory
    Perfetto,
    /// Sizes and offsets in order of request, for a caching allocator
    Requests,
}

/// What each dialect means.
fn dialect_value(dialect: Dialect) -> PossibleValue {
    PossibleValue::new(dialect.name()).help(match dialect {
        Dialect::HalfOpen => "`[lower, upper)`",
        Dialect::Inclusive => "`[lower, upper]`",
        Dialect::Open => "`(lower, upper)`",
    })
}

#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct ImportArgs {
    /// The format [default: recognised by the content of the file]
    #[arg(value_parser = import_formats())]
    pub(crate) format: Option<String>,
    /// The file, or - for stdin
    pub(crate) file: String,
    /// Which ends of a live range the file includes
    #[arg(long, value_parser = parse_named(Dialect::ALL, dialect_value), default_value_t = Dialect::HalfOpen)]
    pub(crate) dialect: Dialect,
    /// Round sizes up to multiples of N bytes and align offsets to it [default: as the framework does]
    #[arg(long, value_name = "N", value_parser = quantity::parse_bytes)]
    pub(crate) align: Option<u64>,
    /// Take offsets as pins
    #[arg(long)]
    pub(crate) pins: bool,
    /// Whether the trace keeps the file's permissions to overwrite a buffer in place
    #[arg(long, value_enum, value_name = "yes|no", hide_possible_values = true, default_value_t = Choice::Yes)]
    pub(crate) in_place: Choice,
    #[command(flatten)]
    pub(crate) parts: Parts,
    /// Write the framework's own placement too, as a plan of the trace
    #[arg(long, value_name = "PLAN")]
    pub(crate) plan: Option<String>,
    /// Where to write the trace (- for stdout)
    #[arg(short = 'o', long = "output", value_name = "TRACE", default_value = "-")]
    pub(crate) output: String,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[arg(value_enum)]
    pub(crate) format: ExportFormat,
    /// A trace file, a workload key, or - for stdin; for `perfetto` also a schedule
    pub(crate) trace: String,
    /// A plan file, whose offsets are written too
    pub(crate) plan: Option<String>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// tflite-micro: write a copy of this model that contains the offline plan
    #[arg(long, value_name = "MODEL")]
    pub(crate) into: Option<String>,
    /// c-header: the prefix of all names
    #[arg(long, value_name = "NAME", default_value = "planlab")]
    pub(crate) prefix: String,
    /// Where to write the file (- for stdout)
    #[arg(short = 'o', long = "output", value_name = "FILE", default_value = "-")]
    pub(crate) output: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: planlab add-workload trace.csv --key torch/mynet/train/b8 \\\n    \
    --source 'PyTorch 2.9, torch.cuda.memory._record_memory_history' --license MIT")]
pub(crate) struct AddWorkloadArgs {
    /// A trace file, a recording of another tool, or - for stdin
    #[arg(value_name = "FILE")]
    pub(crate) trace: String,
    /// The workload's key: ROUTE/NET/MODE/bN, with a variant behind that if needed. ROUTE names the recorder or the
    /// allocator, MODE is train, infer, decode or process
    #[arg(long, value_name = "KEY")]
    pub(crate) key: String,
    /// How the trace was obtained, and with which versions
    #[arg(long, value_name = "TEXT")]
    pub(crate) source: String,
    /// The licence under which it may be redistributed
    #[arg(long, value_name = "NAME")]
    pub(crate) license: String,
    /// The folder of recorded workloads, which has the MANIFEST.toml
    #[arg(long, value_name = "DIR", default_value = "workloads/data")]
    pub(crate) data: PathBuf,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example: planlab explain snapshot.pickle -o page.html; with --batch N, the largest batch that fits"
)]
pub(crate) struct ExplainArgs {
    /// A snapshot or another recording, a trace file, a workload key, or - for stdin
    pub(crate) file: String,
    /// The planner of the best plan
    #[arg(long, value_name = "KEY", default_value = "portfolio")]
    pub(crate) planner: String,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Show this many of the buffers that are live at the peak
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) top: usize,
    /// The batch that was recorded: says how large a batch would fit
    #[arg(long, value_name = "N")]
    pub(crate) batch: Option<NonZeroU64>,
    /// The memory of the device [default: if memory ran out, what was reserved and what the device had left]
    #[arg(long, value_name = "BYTES", value_parser = quantity::parse_bytes)]
    pub(crate) capacity: Option<u64>,
    /// Also write the answer as a page (.html) with a map of the framework's placement and the best plan
    #[cfg(feature = "reports")]
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[cfg(feature = "reports")]
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A trace file, a workload key, a schedule, or - for stdin
    pub(crate) trace: String,
    /// Plan files; a page (.html) shows any number of them side by side. After a schedule, other schedules of the net
    #[arg(value_name = "PLAN")]
    pub(crate) plans: Vec<String>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Where to write it: a picture (.svg, .png), or a page to zoom and search (.html)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Width and height of a plan's picture (.svg, .png) in pixels, from 320x200 to 10000x10000; if it is narrower than
    /// 600, the legend is below the map [default: 1200x640]
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = parse_pixels)]
    pub(crate) size: Option<(u32, u32)>,
    /// The memory to compare schedules with: a line on their page, and a column of its table
    #[arg(long, value_name = "BYTES", value_parser = quantity::parse_bytes)]
    pub(crate) capacity: Option<u64>,
    /// The net of the schedules, whose names their page shows: a net, a whole key (model/...), or a file
    #[arg(long, value_name = "NET")]
    pub(crate) net: Option<String>,
}

/// The most pixels of a picture on one side.
#[cfg(feature = "reports")]
const MOST_PIXELS: u32 = 10_000;

/// Reads the size of a picture, `1200x640`.
#[cfg(feature = "reports")]
fn parse_pixels(text: &str) -> Result<(u32, u32), String> {
    let size =
        text.split_once('x').and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    match size {
        Some((width @ 320..=MOST_PIXELS, height @ 200..=MOST_PIXELS)) => Ok((width, height)),
        _ => Err(format!("a size is WIDTHxHEIGHT in pixels, from 320x200 to {MOST_PIXELS}x{MOST_PIXELS}")),
    }
}
