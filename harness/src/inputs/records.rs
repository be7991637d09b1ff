//! Reads the rows of a folder of results, and reports lost shards.

use std::collections::BTreeSet;
use std::path::Path;

use planlab_results::{MissingShard, Record, missing_shards, read_records};

use crate::shell::exit::{Exit, Failure};
use crate::shell::output::print_note;

/// The rows of a folder.
pub(crate) struct Rows {
    pub(crate) rows: Vec<Record>,
    /// Lost shards, already reported on stderr.
    pub(crate) missing: Vec<MissingShard>,
}

/// Reads the rows of a folder, and names lost shards on stderr.
///
/// # Errors
///
/// As [`read_records`].
pub(crate) fn read_folder(folder: &Path) -> Result<Rows, Failure> {
    let rows = read_records(folder)?;
    Ok(Rows { rows, missing: tell_missing(folder)? })
}

/// As [`read_folder`], but only the rows of a suite, if one is named.
///
/// # Errors
///
/// As [`read_folder`]; if no row is of the suite, the error lists the existing suites.
#[cfg_attr(not(feature = "reports"), expect(dead_code, reason = "for verbs that write tables"))]
pub(crate) fn read_suite(folder: &Path, suite: Option<&str>) -> Result<Rows, Failure> {
    let Rows { rows, missing } = read_folder(folder)?;
    let Some(suite) = suite else { return Ok(Rows { rows, missing }) };
    let (wanted, others): (Vec<Record>, Vec<Record>) = rows.into_iter().partition(|row| row.suite == suite);
    if wanted.is_empty() { Err(no_suite(folder, suite, &others)) } else { Ok(Rows { rows: wanted, missing }) }
}

fn no_suite(results: &Path, suite: &str, rows: &[Record]) -> Failure {
    let suites: BTreeSet<&str> =
        rows.iter().map(|row| row.suite.as_str()).filter(|name| !name.is_empty()).collect();
    let quoted: Vec<String> = suites.iter().map(|name| format!("`{name}`")).collect();
    let there = match quoted.is_empty() {
        true => "no suite".to_owned(),
        false => quoted.join(", "),
    };
    let results = results.display();
    Failure::from_usage(format!(
        "{results}: no row belongs to suite `{suite}`; the rows here belong to {there}"
    ))
    .in_file(results, None)
}

/// Reports the lost shards of a folder on stderr, and returns them.
///
/// # Errors
///
/// If the manifest cannot be read.
pub(crate) fn tell_missing(folder: &Path) -> Result<Vec<MissingShard>, Failure> {
    let missing = missing_shards(folder)?;
    missing.iter().for_each(|shard| print_note(&shard.to_string()));
    Ok(missing)
}

/// The exit code: `Incomplete` instead of `Complete` if rows are lost.
pub(crate) const fn exit_with(exit: Exit, is_whole: bool) -> Exit {
    match exit {
        Exit::Complete if !is_whole => Exit::Incomplete,
        exit => exit,
    }
}
