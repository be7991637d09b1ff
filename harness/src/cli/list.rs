//! Arguments of `list`.

use clap::{Args, ValueEnum};

use super::common::Corpus;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// What to list
    #[arg(value_enum, default_value_t = Listing::Planners)]
    pub(crate) what: Listing,
    /// Show only this entry, in full; with a glob or a family of planners, show one line for each match
    pub(crate) key: Option<String>,
    #[command(flatten)]
    pub(crate) corpus: Corpus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Listing {
    Planners,
    Workloads,
    Models,
    Suites,
    Families,
    Formats,
    Allocators,
    Schedulers,
    Machines,
}
