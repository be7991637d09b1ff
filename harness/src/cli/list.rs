//! `list`.

use clap::{Args, ValueEnum};

use super::common::Corpus;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// What to list
    #[arg(value_enum, default_value_t = Listing::Planners)]
    pub(crate) what: Listing,
    /// One of the list, in full
    pub(crate) key: Option<String>,
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
