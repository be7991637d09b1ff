//! `generate`, `import`, `export`, `show`.

#[cfg(feature = "reports")]
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::common::Reading;

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
