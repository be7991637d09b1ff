//! What a mailbox keeps of a round: the log without figures, and the figures of each contender. A turn writes only
//! those of its contender.

use std::io;
use std::path::Path;

use planlab_replay::Performance;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::messages::TurnLog;
use crate::cells::{MailboxWriter, latest};

const LOG: &str = "log";
/// The most bytes of a value: far more than the figures of any contender take.
const VALUE_BYTES: u64 = 1 << 30;

/// The writing side.
pub(super) struct Mailbox {
    log: MailboxWriter,
    figures: Vec<MailboxWriter>,
}

impl Mailbox {
    /// Creates the values of a round with this many contenders.
    pub(super) fn create(path: &Path, contenders: usize) -> io::Result<Self> {
        let figures = (0..contenders).map(|place| MailboxWriter::create(path, &figures_name(place)));
        Ok(Self { log: MailboxWriter::create(path, LOG)?, figures: figures.collect::<io::Result<_>>()? })
    }

    /// Keeps the log of turns; its list of figures has a place for each contender, and nothing in them.
    pub(super) fn put_log(&mut self, log: &TurnLog) {
        put(&mut self.log, log);
    }

    /// Keeps the figures of the contender at a place in the request.
    pub(super) fn put_figures(&mut self, place: usize, figures: &Performance) {
        put(&mut self.figures[place], figures);
    }
}

/// Reads the log that was kept last, with the figures that were; the default if nothing was kept.
pub(super) fn read(path: &Path) -> TurnLog {
    let mut log: TurnLog = read_value(path, LOG).unwrap_or_default();
    for (place, figures) in log.figures.iter_mut().enumerate() {
        *figures = read_value(path, &figures_name(place));
    }
    log
}

fn figures_name(place: usize) -> String {
    format!("figures-{place}")
}

fn put(writer: &mut MailboxWriter, value: &impl Serialize) {
    // If it cannot be kept the round continues, because its answer still counts.
    let _ = writer.put(&serde_json::to_vec(value).expect("plain data"));
}

fn read_value<T: DeserializeOwned>(path: &Path, name: &str) -> Option<T> {
    serde_json::from_slice(&latest(path, name, VALUE_BYTES)?).ok()
}

#[cfg(test)]
mod tests {
    use planlab_replay::End;

    use super::*;

    #[test]
    fn log_is_read_back_with_the_latest_figures_of_each() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("0");
        let mut mailbox = Mailbox::create(&path, 3).expect("writable");
        assert_eq!(read(&path), TurnLog::default());
        let mut log = TurnLog { figures: vec![None; 3], current: Some(2), ..TurnLog::default() };
        let figures = |reason: &str| Performance::without_measurements(End::Failed, reason.to_owned());
        for (place, reason) in [(1, "first"), (2, "other"), (1, "second")] {
            mailbox.put_figures(place, &figures(reason));
        }
        mailbox.put_log(&log);
        log.figures = vec![None, Some(figures("second")), Some(figures("other"))];
        assert_eq!(read(&path), log);
    }
}
