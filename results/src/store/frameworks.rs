//! Rows of framework measurements in the folder's file `frameworks.jsonl`: JSON Lines without checksums, because the
//! measuring script writes them with Python's standard library. They are few and are not compacted. A last line without
//! a line feed remains from a killed run and is ignored; any other invalid line is an error.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::files::disk;
use crate::files::journal::Versioned;
use crate::rows::{FRAMEWORK_SCHEMA, FrameworkRow};

const FILE: &str = "frameworks.jsonl";

/// The rows of a folder, one per cell and repetition, in the order of their first appearance; an empty list without
/// such a file. An incomplete last line is ignored.
///
/// # Errors
///
/// [`StoreError::Io`] if the file cannot be read, [`StoreError::BadLine`] if a line is not a row,
/// [`StoreError::Schema`] if a newer program wrote it.
pub fn read_frameworks(dir: impl AsRef<Path>) -> Result<Vec<FrameworkRow>, StoreError> {
    let path = path(dir.as_ref());
    let text = disk::read_if_there(&path)?.unwrap_or_default();
    let mut rows = Vec::new();
    for (line, number) in text[..whole(&text)].split_inclusive(|&byte| byte == b'\n').zip(1..) {
        rows.push(read_line(line, &path, number)?);
    }
    Ok(best(rows))
}

/// The incomplete last line of the file: its number from 1 and its bytes.
pub(crate) fn torn(dir: &Path) -> Result<Option<(PathBuf, u64, u64)>, StoreError> {
    let path = path(dir);
    let text = disk::read_if_there(&path)?.unwrap_or_default();
    let end = whole(&text);
    let line = text[..end].split_inclusive(|&byte| byte == b'\n').count() as u64 + 1;
    Ok((end < text.len()).then(|| (path, line, (text.len() - end) as u64)))
}

/// Adds rows to those of a folder; returns how many are new or better. The file is replaced as a whole.
pub(crate) fn put(dir: &Path, rows: Vec<FrameworkRow>) -> Result<usize, StoreError> {
    let there = read_frameworks(dir)?;
    let all = best(there.iter().cloned().chain(rows).collect());
    let changed = all.iter().filter(|row| !there.contains(row)).count();
    if changed > 0 {
        let path = path(dir);
        let mut text = Vec::new();
        for row in &all {
            serde_json::to_writer(&mut text, row).map_err(|error| StoreError::bad_file(&path, &error))?;
            text.push(b'\n');
        }
        disk::write_whole(&path, &text)?;
    }
    Ok(changed)
}

/// Whether a folder has such rows.
pub(crate) fn is_there(dir: &Path) -> bool {
    path(dir).exists()
}

fn path(dir: &Path) -> PathBuf {
    dir.join(FILE)
}

/// The end of the last complete line.
fn whole(text: &[u8]) -> usize {
    text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1)
}

fn read_line(line: &[u8], path: &Path, number: u64) -> Result<FrameworkRow, StoreError> {
    let bad = |reason: String| StoreError::BadLine { path: path.to_path_buf(), line: number, reason };
    let no_row = |error: serde_json::Error| bad(format!("not a row of a framework: {error}"));
    // Check the version first: newer rows may have other fields.
    let Versioned { schema: found } = serde_json::from_slice(line).map_err(no_row)?;
    if found > FRAMEWORK_SCHEMA {
        return Err(StoreError::Schema { path: path.to_path_buf(), found, known: FRAMEWORK_SCHEMA });
    }
    let row: FrameworkRow = serde_json::from_slice(line).map_err(no_row)?;
    row.contradiction().map_or(Ok(()), |reason| Err(bad(reason.to_owned())))?;
    Ok(row)
}

/// The best row of each cell and repetition.
fn best(rows: Vec<FrameworkRow>) -> Vec<FrameworkRow> {
    let mut index: BTreeMap<(String, u32), usize> = BTreeMap::new();
    let mut best: Vec<FrameworkRow> = Vec::new();
    for row in rows {
        match index.get(&row.key()) {
            Some(&at) if row.rank() >= best[at].rank() => best[at] = row,
            Some(_) => {}
            None => {
                index.insert(row.key(), best.len());
                best.push(row);
            }
        }
    }
    best
}
