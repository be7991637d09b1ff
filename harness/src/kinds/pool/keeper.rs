//! Keeps the rows of a replay in a folder of results.

use std::path::Path;

use planlab_results::Notice;
use planlab_results::replay::{ReplayRow, ReplayWriter};

use crate::shell::exit::Failure;
use crate::shell::output::print_note;

/// The folder that keeps rows of replays, if there is one.
pub(crate) struct Keeper {
    writer: Option<ReplayWriter>,
    /// Why no more rows are kept.
    failure: Option<Failure>,
}

impl Keeper {
    pub(crate) fn open_store(folder: Option<&Path>) -> Result<Self, Failure> {
        let Some(folder) = folder else { return Ok(Self { writer: None, failure: None }) };
        let (writer, notices) = ReplayWriter::open(folder)?;
        print_notices(&notices);
        Ok(Self { writer: Some(writer), failure: None })
    }

    /// Keeps rows; returns `false` if they cannot be kept, and nothing more should be played.
    pub(crate) fn keep_rows(&mut self, rows: &[ReplayRow]) -> bool {
        match self.writer.as_mut().map(|writer| writer.append(rows)) {
            Some(Ok(notices)) => print_notices(&notices),
            Some(Err(error)) => self.failure = Some(error.into()),
            None => {}
        }
        self.failure.is_none()
    }

    /// An error if some rows could not be kept. Call this after all results are printed.
    pub(crate) fn end_keeping(self) -> Result<(), Failure> {
        self.failure.map_or(Ok(()), Err)
    }
}

fn print_notices(notices: &[Notice]) {
    notices.iter().for_each(|notice| print_note(&notice.to_string()));
}
