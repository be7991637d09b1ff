//! What several verbs take: the corpus, how a trace is read, limits.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use crate::shell::quantity;

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
    #[arg(long, value_name = "N", value_parser = quantity::parse_bytes)]
    pub(crate) align: Option<u64>,
    /// Take the offsets of a plan file as pins
    #[arg(long)]
    pub(crate) pins: bool,
    /// Whether the trace's permissions to overwrite a buffer in place count [default: yes; to export a C header or an
    /// offline plan, no]
    #[arg(long, value_enum, value_name = "yes|no", hide_possible_values = true)]
    pub(crate) in_place: Option<Choice>,
    #[command(flatten)]
    pub(crate) parts: Parts,
}

impl Reading {
    /// Whether it changes how a file is read.
    pub(crate) fn is_said(&self) -> bool {
        self.is_said_beside_dims() || !self.parts.dims.is_empty()
    }

    /// Whether any of its arguments but `--dim` changes how a file is read.
    pub(crate) fn is_said_beside_dims(&self) -> bool {
        self.align.is_some() || self.pins || self.in_place.is_some() || self.parts.part.is_some()
    }
}

/// The answer to a question that has a default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Choice {
    Yes,
    No,
}

/// Which trace of another tool's file to take, and its shape.
#[derive(Clone, Debug, Args)]
pub(crate) struct Parts {
    /// The trace to take from a file that contains several: a device (cuda:0), one stream of it (cuda:0/stream-7), or
    /// the name of a graph
    #[arg(long, value_name = "NAME")]
    pub(crate) part: Option<String>,
    /// Fix a dynamic dimension of a model
    #[arg(long = "dim", value_name = "NAME=VALUE", value_parser = parse_dimension)]
    pub(crate) dims: Vec<(String, u64)>,
}

pub(super) fn parse_dimension(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text.split_once('=').ok_or("a dimension is NAME=VALUE")?;
    match value.trim().parse() {
        Ok(value) if value > 0 && !name.trim().is_empty() => Ok((name.trim().to_owned(), value)),
        _ => Err(format!("`{value}` is not a whole number above 0")),
    }
}

/// Parses one of these values by its name; `possible` has the name and the help of each.
pub(super) fn parse_named<T: Copy + Send + Sync + 'static, const N: usize>(
    values: [T; N],
    possible: fn(T) -> PossibleValue,
) -> impl TypedValueParser<Value = T> {
    let is_named = move |value: T, name: &str| possible(value).matches(name, false);
    let find = move |name: String| values.into_iter().find(|&value| is_named(value, &name));
    PossibleValuesParser::new(values.map(possible)).try_map(move |name| find(name).ok_or("no such value"))
}

/// Limits of a cell.
#[derive(Clone, Debug, Args)]
pub(crate) struct LimitArgs {
    /// Wall time of each run (10s, 500ms, 2m) [default: 10s, or what the suite says]
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration)]
    pub(crate) time_limit: Option<Duration>,
    /// Memory of each run
    #[arg(long, value_name = "BYTES", value_parser = quantity::parse_bytes, default_value = "4GiB")]
    pub(crate) memory_limit: u64,
    /// Work of each run, in the planners' own units: with it, one thread and enough time, a planner that honours
    /// it gives the same plan on every machine
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) work_limit: Option<u64>,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Threads that a planner or a scheduler may use [default: every core in `plan`, `compare` and `schedule`; in
    /// `bench` 1, or what the suite says]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
}

impl LimitArgs {
    /// Whether a seed, or a limit other than that of memory, is named.
    pub(crate) fn is_said(&self) -> bool {
        self.time_limit.is_some() || self.work_limit.is_some() || self.threads.is_some() || self.seed != 0
    }
}
