//! The rows of a folder of results, and what is lost of them.

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
