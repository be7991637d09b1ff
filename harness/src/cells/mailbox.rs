//! Keeps the best of a run in files, so that it survives a kill.
//!
//! A value has two files (in memory, if `/dev/shm` exists). A write goes to the file that does not hold the latest
//! value, with a sequence number and a checksum. If the writer dies in the middle, the previous value stays readable.
//!
//! ```text
//!   each file: sequence u64, length u64, checksum 32 bytes, payload
//! ```

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use planlab_files::open_regular;

const HEADER: usize = 48;

/// Writes one value of a mailbox.
pub(crate) struct MailboxWriter {
    files: [File; 2],
    written: u64,
}

impl MailboxWriter {
    /// Creates the files of the value `name` in a mailbox.
    pub(crate) fn create(mailbox: &Path, name: &str) -> io::Result<Self> {
        let [one, other] =
            paths(mailbox, name).map(|path| OpenOptions::new().write(true).create_new(true).open(path));
        Ok(Self { files: [one?, other?], written: 0 })
    }

    pub(crate) fn put(&mut self, payload: &[u8]) -> io::Result<()> {
        let sequence = self.written + 1;
        let mut slot = Vec::with_capacity(HEADER + payload.len());
        slot.extend_from_slice(&sequence.to_le_bytes());
        slot.extend_from_slice(&(payload.len() as u64).to_le_bytes());
        slot.extend_from_slice(blake3::hash(payload).as_bytes());
        slot.extend_from_slice(payload);
        let at = usize::from(sequence.is_multiple_of(2));
        self.files[at].write_all_at(&slot, 0)?;
        // A write that fails may have spoilt its file: the next one goes there again.
        self.written = sequence;
        Ok(())
    }
}

/// The value that was put last, unless it is longer than `most` bytes.
pub(crate) fn latest(mailbox: &Path, name: &str, most: u64) -> Option<Vec<u8>> {
    let read = paths(mailbox, name).into_iter().filter_map(|path| read(&path, most));
    read.max_by_key(|&(sequence, _)| sequence).map(|(_, payload)| payload)
}

fn paths(mailbox: &Path, name: &str) -> [PathBuf; 2] {
    [0, 1].map(|at| mailbox.with_extension(format!("{name}-{at}")))
}

fn read(path: &Path, most: u64) -> Option<(u64, Vec<u8>)> {
    let file = open_regular(path).ok()?;
    let mut header = [0; HEADER];
    file.read_exact_at(&mut header, 0).ok()?;
    let [sequence, length] =
        [0, 8].map(|at| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes")));
    if length > most {
        return None;
    }
    let mut payload = vec![0; usize::try_from(length).ok()?];
    file.read_exact_at(&mut payload, HEADER as u64).ok()?;
    (blake3::hash(&payload).as_bytes() == &header[16..]).then_some((sequence, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_value_is_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let mailbox = folder.path().join("0");
        let mut writer = MailboxWriter::create(&mailbox, "plan").expect("writable");
        assert_eq!(latest(&mailbox, "plan", 9), None);
        for value in ["a long one", "twenty", "ten"] {
            writer.put(value.as_bytes()).expect("writable");
        }
        assert_eq!(latest(&mailbox, "plan", 9).as_deref(), Some(&b"ten"[..]));
        assert_eq!((latest(&mailbox, "bound", 9), latest(&mailbox, "plan", 2)), (None, None));
    }

    #[test]
    fn a_torn_write_leaves_the_value_before_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let mailbox = folder.path().join("0");
        let mut writer = MailboxWriter::create(&mailbox, "plan").expect("writable");
        writer.put(b"thirty").expect("writable");
        writer.put(b"twenty").expect("writable");
        writer.files[1].write_all_at(&[0xff; 4], HEADER as u64 + 2).expect("writable");
        assert_eq!(latest(&mailbox, "plan", 9).as_deref(), Some(&b"thirty"[..]));
    }

    #[test]
    fn writes_that_fail_leave_the_other_file_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let mailbox = folder.path().join("0");
        let mut writer = MailboxWriter::create(&mailbox, "plan").expect("writable");
        writer.put(b"thirty").expect("writable");
        let read_only = File::open(&paths(&mailbox, "plan")[1]).expect("readable");
        let writable = std::mem::replace(&mut writer.files[1], read_only);
        assert!(writer.put(b"twenty").is_err() && writer.put(b"ten").is_err());
        assert_eq!(latest(&mailbox, "plan", 9).as_deref(), Some(&b"thirty"[..]));
        writer.files[1] = writable;
        writer.put(b"ten").expect("writable");
        assert_eq!(latest(&mailbox, "plan", 9).as_deref(), Some(&b"ten"[..]));
    }
}
