//! The journal: one line for each row, with its checksum.
//!
//! ```text
//! 9f86d081884c7d65 {"schema":1,"cell":"..."}
//! ```
//!
//! A line is written by one call and flushed to the disk before the next. A process that dies while it
//! writes leaves a torn last line, without its line feed, which is dropped; any other line that does not match its
//! checksum means that the file was damaged, and is an error: [`repair`](crate::repair) sets it aside.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{StoreError, files};

/// What a line of a journal holds.
pub(crate) trait Row: Serialize + DeserializeOwned + Clone + PartialEq {
    /// The newest schema that this program reads.
    const KNOWN: u32;

    /// The schema of this row.
    fn schema(&self) -> u32;

    /// Cell and repetition: of the rows with one key the latest counts.
    fn key(&self) -> (&str, u32);
}

/// What a journal holds.
#[derive(Debug)]
pub(crate) struct Content<R> {
    pub(crate) rows: Vec<R>,
    /// Bytes up to the end of the last good line.
    pub(crate) length: u64,
    /// The last good line lacks its line feed.
    pub(crate) unended: bool,
    /// The torn last line: its number from 1 and its bytes.
    pub(crate) torn: Option<(u64, u64)>,
}

/// Reads a journal; none is an empty one.
pub(crate) fn read<R: Row>(path: &Path) -> Result<Content<R>, StoreError> {
    let mut content = Content { rows: Vec::new(), length: 0, unended: false, torn: None };
    let Some(bytes) = files::read_if_there(path)? else { return Ok(content) };
    for (line, number) in bytes.split_inclusive(|&byte| byte == b'\n').zip(1_u64..) {
        match decode::<R>(line) {
            Ok(row) if row.schema() > R::KNOWN => {
                let (path, found) = (path.to_path_buf(), row.schema());
                return Err(StoreError::Schema { path, found, known: R::KNOWN });
            }
            Ok(row) => {
                content.rows.push(row);
                content.length += line.len() as u64;
                content.unended = line.last() != Some(&b'\n');
            }
            Err(_) if is_torn(line) => content.torn = Some((number, line.len() as u64)),
            Err(reason) => {
                return Err(StoreError::Corrupt { path: path.to_path_buf(), line: number, reason });
            }
        }
    }
    Ok(content)
}

/// Whether a process died while it wrote the line: only the last one can lack its line feed.
fn is_torn(line: &[u8]) -> bool {
    line.last() != Some(&b'\n')
}

/// The lines of a journal, those that are what was written apart from the others.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    pub(crate) whole: Vec<u8>,
    pub(crate) damaged: Vec<u8>,
    /// Of the damaged ones, from 1. A torn last line is none of either.
    pub(crate) numbers: Vec<u64>,
}

/// Sorts the lines of a journal; none is an empty one.
pub(crate) fn sort<R: Row>(path: &Path) -> Result<Sorted, StoreError> {
    let mut sorted = Sorted::default();
    let Some(bytes) = files::read_if_there(path)? else { return Ok(sorted) };
    for (line, number) in bytes.split_inclusive(|&byte| byte == b'\n').zip(1_u64..) {
        match decode::<R>(line) {
            Ok(_) => sorted.whole.extend_from_slice(line),
            Err(_) if is_torn(line) => {}
            Err(_) => {
                sorted.damaged.extend_from_slice(line);
                sorted.numbers.push(number);
            }
        }
    }
    Ok(sorted)
}

fn checksum(json: &[u8]) -> String {
    blake3::hash(json).to_hex()[..16].to_owned()
}

fn encode<R: Row>(row: &R, lines: &mut Vec<u8>) -> Result<(), StoreError> {
    let json = serde_json::to_vec(row).map_err(|error| {
        let (cell, repetition) = row.key();
        StoreError::Row { cell: cell.to_owned(), repetition, reason: error.to_string() }
    })?;
    lines.extend_from_slice(checksum(&json).as_bytes());
    lines.push(b' ');
    lines.extend_from_slice(&json);
    lines.push(b'\n');
    Ok(())
}

fn decode<R: Row>(line: &[u8]) -> Result<R, String> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let (sum, json) = line.split_at_checked(16).ok_or("the line is too short for a checksum")?;
    let json = json.strip_prefix(b" ").ok_or("there is no space after the checksum")?;
    if checksum(json).as_bytes() != sum {
        return Err("the row does not match its checksum".to_owned());
    }
    serde_json::from_slice(json).map_err(|error| format!("not a row: {error}"))
}

/// An open journal that rows are appended to.
#[derive(Debug)]
pub(crate) struct Journal<R> {
    path: PathBuf,
    file: File,
    length: u64,
    rows: PhantomData<R>,
}

impl<R: Row> Journal<R> {
    /// Opens the journal, cuts a torn last line off, and gives what it holds.
    pub(crate) fn open(path: &Path) -> Result<(Self, Content<R>), StoreError> {
        let content = read(path)?;
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .map_err(StoreError::io("open for writing", path))?;
        let mut length = content.length;
        if content.torn.is_some() {
            file.set_len(length).map_err(StoreError::io("cut the torn last line off", path))?;
        }
        if content.unended {
            file.write_all(b"\n").map_err(StoreError::io("write", path))?;
            length += 1;
        }
        file.sync_data().map_err(StoreError::io("flush", path))?;
        Ok((Self { path: path.to_path_buf(), file, length, rows: PhantomData }, content))
    }

    /// Appends rows; when it returns they are on the disk. When it fails, the journal is as before.
    pub(crate) fn append(&mut self, rows: &[R]) -> Result<(), StoreError> {
        let mut lines = Vec::new();
        for row in rows {
            encode(row, &mut lines)?;
        }
        let written = self.file.write_all(&lines).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // Where even this fails, the next reader drops the torn line.
            let _ = self.file.set_len(self.length);
            return Err(StoreError::io("append to", &self.path)(error));
        }
        self.length += lines.len() as u64;
        Ok(())
    }

    /// Bytes of all that was read and written.
    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    /// Whether there is no row.
    #[cfg(feature = "parquet")]
    pub(crate) const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Drops all rows.
    #[cfg(feature = "parquet")]
    pub(crate) fn clear(&mut self) -> Result<(), StoreError> {
        self.file.set_len(0).map_err(StoreError::io("truncate", &self.path))?;
        self.length = 0;
        self.file.sync_data().map_err(StoreError::io("flush", &self.path))
    }
}
