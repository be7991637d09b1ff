//! Arguments of `run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::shell::quantity;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The smallest request to plan; at least 1KiB
    #[arg(long, value_name = "BYTES", value_parser = least_size, default_value = "4KiB")]
    pub(crate) min_size: u64,
    /// A round lasts from one call of `planlab_step()` to the next [default: rounds are detected]
    #[arg(long)]
    pub(crate) marks: bool,
    /// Equal rounds in a row before one is planned
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) rounds: u32,
    /// Check every planned block: overlaps, and writes to freed memory
    #[arg(long)]
    pub(crate) check: bool,
    /// Do not use huge pages
    #[arg(long)]
    pub(crate) no_huge_pages: bool,
    /// Write the statistics to this file as JSON (`-`: stdout)
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<String>,
    /// Plan nothing; write the program's requests to this file as a trace (`.csv`, `.csv.zst`, `.csv.gz`)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["marks", "check", "no_huge_pages", "report", "rounds"])]
    pub(crate) record_only: Option<String>,
    /// libplanlab.so [default: the one beside this program]
    #[arg(long, env = "PLANLAB_LIBRARY", value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

fn least_size(text: &str) -> Result<u64, String> {
    let bytes = quantity::parse_bytes(text)?;
    if bytes < 1024 { Err(format!("`{text}`: the least is 1KiB")) } else { Ok(bytes) }
}
