//! The journal: one line per row, with its checksum unless a script writes the lines.
//!
//! ```text
//! 9f86d081884c7d65 {"schema":1,"cell":"..."}
//! ```
//!
//! Each line is written in one call and flushed to disk before the next. A process that dies while writing leaves an
//! incomplete last line, without its line feed, which is dropped. Any other line that does not match its checksum is
//! damaged, and an error; [`repair_store`](crate::repair_store) sets it aside. A line that matches its checksum but is no known row
//! was written by another version and stays unchanged. Without checksums, each invalid line that ends in a line feed
//! is an error.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::disk;
use crate::StoreError;
use crate::rows::{Row, RowKind};

/// The contents of a journal.
#[derive(Debug)]
pub(crate) struct Content<R> {
    pub(crate) rows: Vec<Row<R>>,
    /// Bytes up to the end of the last good line.
    pub(crate) length: u64,
    /// Whether the last good line lacks its line feed.
    pub(crate) unended: bool,
    /// The incomplete last line: its number from 1 and its bytes.
    pub(crate) torn: Option<(u64, u64)>,
}

/// Reads a journal; a missing file counts as an empty one.
pub(crate) fn read_journal<R: RowKind>(path: &Path) -> Result<Content<R>, StoreError> {
    let mut content = Content { rows: Vec::new(), length: 0, unended: false, torn: None };
    let Some(bytes) = disk::read_if_there(path)? else { return Ok(content) };
    for (line, number) in journal_lines(&bytes) {
        match decode_line::<R>(line) {
            Line::Whole(row) => {
                content.rows.push(*row);
                content.length += line.len() as u64;
                content.unended = line.last() != Some(&b'\n');
            }
            Line::Unknown(unknown) => return Err(unknown.error::<R>(path, number)),
            Line::Torn => content.torn = Some((number, line.len() as u64)),
            Line::Damaged(reason) => {
                let reason = format!("{reason}; `planlab audit --repair` sets damaged lines aside");
                return Err(StoreError::BadLine { path: path.to_path_buf(), line: number, reason });
            }
        }
    }
    Ok(content)
}

/// The lines of a journal with their line feeds, and their numbers from 1.
fn journal_lines(bytes: &[u8]) -> impl Iterator<Item = (&[u8], u64)> {
    bytes.split_inclusive(|&byte| byte == b'\n').zip(1..)
}

/// The classification of a journal line.
enum Line<R> {
    Whole(Box<Row<R>>),
    /// Intact, but not a row that this program knows.
    Unknown(Unknown),
    /// Incomplete: a process died while writing it, so it is the last line and lacks its end.
    Torn,
    /// Damaged, with the reason.
    Damaged(&'static str),
}

/// The known parts of a row of another version.
struct Unknown {
    schema: Option<u32>,
    reason: String,
}

/// The fields common to the rows of all versions.
#[derive(Deserialize)]
struct Versioned {
    schema: u32,
}

impl Unknown {
    fn from_json(json: &[u8], reason: &dyn Display) -> Self {
        let schema = serde_json::from_slice(json).ok().map(|Versioned { schema }| schema);
        Self { schema, reason: reason.to_string() }
    }

    fn error<R: RowKind>(self, path: &Path, line: u64) -> StoreError {
        let (path, reason) = (path.to_path_buf(), self.reason);
        match self.schema {
            Some(found) if found > R::KNOWN => StoreError::Schema { path, found, known: R::KNOWN },
            _ if !R::HAS_CHECKSUMS => {
                let reason = format!("not a valid {} row: {reason}", R::NAME);
                StoreError::BadLine { path, line, reason }
            }
            schema => {
                let schema = schema.map_or_else(|| "none".to_owned(), |schema| schema.to_string());
                let reason = format!("a row of another version of planlab (schema {schema}): {reason}");
                StoreError::BadLine { path, line, reason }
            }
        }
    }
}

/// The lines of a journal, sorted into intact and damaged ones.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    pub(crate) whole: Vec<u8>,
    /// Includes an incomplete last line, here completed by a line feed.
    pub(crate) damaged: Vec<u8>,
    /// The numbers of the damaged lines, from 1.
    pub(crate) numbers: Vec<u64>,
}

/// Sorts the lines of a journal; a missing file counts as an empty one.
pub(crate) fn sort_lines<R: RowKind>(path: &Path) -> Result<Sorted, StoreError> {
    let mut sorted = Sorted::default();
    let Some(bytes) = disk::read_if_there(path)? else { return Ok(sorted) };
    for (line, number) in journal_lines(&bytes) {
        match decode_line::<R>(line) {
            Line::Whole(_) => sorted.whole.extend_from_slice(line),
            Line::Unknown(unknown) => return Err(unknown.error::<R>(path, number)),
            Line::Torn | Line::Damaged(_) => {
                sorted.damaged.extend_from_slice(line);
                sorted.numbers.push(number);
            }
        }
    }
    if sorted.damaged.last().is_some_and(|&byte| byte != b'\n') {
        sorted.damaged.push(b'\n');
    }
    Ok(sorted)
}

fn checksum(json: &[u8]) -> String {
    blake3::hash(json).to_hex()[..16].to_owned()
}

fn encode_row<R: RowKind>(row: &Row<R>, lines: &mut Vec<u8>) -> Result<(), StoreError> {
    let json = serde_json::to_vec(row).map_err(|error| {
        let (cell, repetition) = row.key();
        StoreError::Row { cell: cell.to_owned(), repetition, reason: error.to_string() }
    })?;
    if R::HAS_CHECKSUMS {
        lines.extend_from_slice(checksum(&json).as_bytes());
        lines.push(b' ');
    }
    lines.extend_from_slice(&json);
    lines.push(b'\n');
    Ok(())
}

fn decode_line<R: RowKind>(line: &[u8]) -> Line<R> {
    let ended = line.strip_suffix(b"\n");
    if !R::HAS_CHECKSUMS {
        return ended.map_or(Line::Torn, decode_row);
    }
    let json = match (check_line(ended.unwrap_or(line)), ended) {
        (Ok(json), _) => json,
        (Err(reason), Some(_)) => return Line::Damaged(reason),
        // A line that was cut short lacks more than that.
        (Err(_), None) if line.split_last().is_some_and(|(_, row)| check_line(row).is_ok()) => {
            return Line::Damaged("the row ends with another byte than a line feed");
        }
        (Err(_), None) => return Line::Torn,
    };
    decode_row(json)
}

fn decode_row<R: RowKind>(json: &[u8]) -> Line<R> {
    let unknown = |reason: &dyn Display| Line::Unknown(Unknown::from_json(json, reason));
    match serde_json::from_slice::<Row<R>>(json) {
        Ok(row) if row.schema > R::KNOWN => unknown(&"a newer schema"),
        Ok(row) => match row.run.contradiction() {
            Some(reason) => unknown(&reason),
            None => Line::Whole(Box::new(row)),
        },
        Err(error) => unknown(&error),
    }
}

/// The row of a line without its line feed, if the checksum matches.
fn check_line(line: &[u8]) -> Result<&[u8], &'static str> {
    let (sum, json) = line.split_at_checked(16).ok_or("the line is too short for a checksum")?;
    let json = json.strip_prefix(b" ").ok_or("there is no space after the checksum")?;
    if checksum(json).as_bytes() == sum { Ok(json) } else { Err("the row does not match its checksum") }
}

/// A journal that is open for appending.
#[derive(Debug)]
pub(crate) struct Journal<R> {
    path: PathBuf,
    file: File,
    length: u64,
    rows: PhantomData<R>,
}

impl<R: RowKind> Journal<R> {
    /// Opens the journal, cuts off an incomplete last line, and returns the contents.
    pub(crate) fn open(path: &Path) -> Result<(Self, Content<R>), StoreError> {
        let content = read_journal(path)?;
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .map_err(StoreError::from_io("open for writing", path))?;
        let mut length = content.length;
        if content.torn.is_some() {
            file.set_len(length).map_err(StoreError::from_io("cut the torn last line off", path))?;
        }
        if content.unended {
            file.write_all(b"\n").map_err(StoreError::from_io("write", path))?;
            length += 1;
        }
        file.sync_data().map_err(StoreError::from_io("flush", path))?;
        Ok((Self { path: path.to_path_buf(), file, length, rows: PhantomData }, content))
    }

    /// Appends rows; on return they are on disk. On failure, the journal is unchanged.
    pub(crate) fn append(&mut self, rows: &[Row<R>]) -> Result<(), StoreError> {
        let mut lines = Vec::new();
        for row in rows {
            encode_row(row, &mut lines)?;
        }
        let written = self.file.write_all(&lines).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // If even this fails, the next reader drops the incomplete line.
            let _ = self.file.set_len(self.length);
            return Err(StoreError::from_io("append to", &self.path)(error));
        }
        self.length += lines.len() as u64;
        Ok(())
    }

    /// The length of the journal in bytes.
    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    #[cfg(feature = "parquet")]
    pub(crate) const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Drops all rows.
    #[cfg(feature = "parquet")]
    pub(crate) fn clear(&mut self) -> Result<(), StoreError> {
        self.file.set_len(0).map_err(StoreError::from_io("truncate", &self.path))?;
        self.length = 0;
        self.file.sync_data().map_err(StoreError::from_io("flush", &self.path))
    }
}
