//! Keeps the rows of a replay in a folder of results.

use std::path::Path;

use planlab_results::Notice;
use planlab_results::replay::{ReplayRow, ReplayWriter};

use crate::shell::exit::Failure;
use crate::shell::output::note;

/// The folder that keeps rows of replays, if there is one.
pub(crate) struct Keeper {
    writer: Option<ReplayWriter>,
    /// Why no more rows are kept.
    failure: Option<Failure>,
}

impl Keeper {
    pub(crate) fn open(folder: Option<&Path>) -> Result<Self, Failure> {
        let Some(folder) = folder else { return Ok(Self { writer: None, failure: None }) };
        let (writer, notices) = ReplayWriter::open(folder)?;
        tell(&notices);
        Ok(Self { writer: Some(writer), failure: None })
    }

    /// Keeps rows; returns `false` if they cannot be kept, and nothing more should be played.
    pub(crate) fn keep(&mut self, rows: &[ReplayRow]) -> bool {
        match self.writer.as_mut().map(|writer| writer.append(rows)) {
            Some(Ok(notices)) => tell(&notices),
            Some(Err(error)) => self.failure = Some(error.into()),
            None => {}
        }
        self.failure.is_none()
    }

    /// An error if some rows could not be kept. Call this after all results are printed.
    pub(crate) fn end(self) -> Result<(), Failure> {
        self.failure.map_or(Ok(()), Err)
    }
}

fn tell(notices: &[Notice]) {
    notices.iter().for_each(|notice| note(&notice.to_string()));
}
