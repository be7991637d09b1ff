//! The rows of a folder of results, and what is lost of them.

use std::collections::BTreeSet;
use std::path::Path;

use planlab_results::{Record, missing_shards, read_records};

use crate::exit::{Exit, Failure};
use crate::output::note;

/// The rows of a folder.
pub(crate) struct Rows {
    pub(crate) rows: Vec<Record>,
    /// Whether no shard is gone.
    pub(crate) is_whole: bool,
}

/// Reads the rows of a folder; shards that are gone are told.
///
/// # Errors
///
/// As [`read_records`].
pub(crate) fn read(folder: &Path) -> Result<Rows, Failure> {
    let rows = read_records(folder)?;
    Ok(Rows { rows, is_whole: tell_missing(folder)? })
}

/// As [`read`], but only the rows of a suite, if one is named.
///
/// # Errors
///
/// As [`read`], and where no row is of the suite: then which suites there are.
pub(crate) fn read_suite(folder: &Path, suite: Option<&str>) -> Result<Rows, Failure> {
    let Rows { rows, is_whole } = read(folder)?;
    let Some(suite) = suite else { return Ok(Rows { rows, is_whole }) };
    let (wanted, others): (Vec<Record>, Vec<Record>) = rows.into_iter().partition(|row| row.suite == suite);
    if wanted.is_empty() {
        Err(no_suite(folder, suite, &others))
    } else {
        Ok(Rows { rows: wanted, is_whole })
    }
}

fn no_suite(results: &Path, suite: &str, rows: &[Record]) -> Failure {
    let suites: BTreeSet<&str> =
        rows.iter().map(|row| row.suite.as_str()).filter(|name| !name.is_empty()).collect();
    let quoted: Vec<String> = suites.iter().map(|name| format!("`{name}`")).collect();
    let there = match quoted.is_empty() {
        true => "its rows are of no suite".to_owned(),
        false => format!("there are rows of {}", quoted.join(", ")),
    };
    let results = results.display();
    Failure::usage(format!("{results}: no row is of the suite `{suite}`; {there}")).in_file(results, None)
}

/// Tells which shards of a folder are gone; gives whether none is.
///
/// # Errors
///
/// Where the manifest cannot be read.
pub(crate) fn tell_missing(folder: &Path) -> Result<bool, Failure> {
    let missing = missing_shards(folder)?;
    for shard in &missing {
        let path = folder.join("shards").join(&shard.name);
        note(&format!("{}: the shard is gone, and {} rows with it", path.display(), shard.rows));
    }
    Ok(missing.is_empty())
}

/// What is complete by itself is not where rows are lost.
pub(crate) const fn exit(exit: Exit, is_whole: bool) -> Exit {
    match exit {
        Exit::Complete if !is_whole => Exit::Incomplete,
        exit => exit,
    }
}
