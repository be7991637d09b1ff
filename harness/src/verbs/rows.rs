//! The rows of results that a verb is about.

use std::collections::BTreeSet;
use std::path::Path;

use planlab_results::{Record, read_records};

use crate::exit::Failure;

/// The rows of a folder, or those of one suite.
///
/// # Errors
///
/// Where the folder cannot be read, or no row is of the suite: then which suites there are.
pub(crate) fn read(results: &Path, suite: Option<&str>) -> Result<Vec<Record>, Failure> {
    let rows = read_records(results)?;
    let Some(suite) = suite else { return Ok(rows) };
    let (wanted, others): (Vec<Record>, Vec<Record>) = rows.into_iter().partition(|row| row.suite == suite);
    if wanted.is_empty() { Err(no_suite(results, suite, &others)) } else { Ok(wanted) }
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
