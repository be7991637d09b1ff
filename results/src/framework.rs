//! One row of a framework measurement: an unmodified framework runs a net under one allocator, in its own process.
//!
//! Rows are stored in the folder's file `frameworks.jsonl`: JSON Lines without checksums, because the measuring script
//! writes them with Python's standard library. They are few and are not compacted. A last line without a line feed
//! remains from a killed run and is ignored; any other invalid line is an error.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use planlab_dsa::performance::End;
use serde::{Deserialize, Serialize};

use crate::record::Provenance;
use crate::{StoreError, files};

/// The version of the row; raised when a field changes its meaning.
pub const FRAMEWORK_SCHEMA: u32 = 1;

/// The contender that serves requests from a plan.
pub const PLANLAB: &str = "planlab";

const FILE: &str = "frameworks.jsonl";

/// One process: one contender on one net. Raw integers: bytes, nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameworkRow {
    /// [`FRAMEWORK_SCHEMA`].
    pub schema: u32,
    /// Digest of everything that defines the row except the repetition: framework, net, mode, batch, threads, numbers
    /// of propagations, contender with its settings, machine, and for planlab the library.
    pub cell: String,
    /// The number of the process, from 0.
    pub repetition: u32,
    /// The framework with its version: `torch-1.13.0a0`, `onnxruntime-1.32.0`.
    pub framework: String,
    /// The net: `resnet18`.
    pub net: String,
    /// `infer` or `train`.
    pub mode: String,
    /// Images or sentences per propagation.
    pub batch: u64,
    /// Threads that the framework may use.
    pub threads: u32,
    /// `glibc`, `jemalloc/keep`, `planlab`, ...
    pub contender: String,
    /// The contender's environment variables; empty for its defaults.
    pub settings: String,
    /// `complete` or `failed`.
    pub status: End,
    /// Why there is no figure; empty if there is one.
    pub reason: String,
    /// Propagations before the timed ones, the first included.
    pub warm_up: u32,
    /// Wall time of each timed propagation; if inputs of several lengths alternate, the mean of each turn.
    pub wall_ns: Vec<u64>,
    /// CPU time of each timed propagation, over all threads of the process.
    pub cpu_ns: Vec<u64>,
    /// Minor page faults of each timed propagation.
    pub faults: Vec<u64>,
    /// Wall time of the first propagation.
    pub first_wall_ns: Option<u64>,
    /// CPU time of the first propagation.
    pub first_cpu_ns: Option<u64>,
    /// Minor page faults of the first propagation.
    pub first_faults: Option<u64>,
    /// Resident bytes before the first propagation: the program, its libraries and the weights.
    pub resident_before: Option<u64>,
    /// The most bytes ever resident.
    pub resident_peak: Option<u64>,
    /// The most bytes resident during the timed propagations; `None` if the kernel does not report it.
    pub steady_peak: Option<u64>,
    /// Digest of the net's output; for training, of all losses and weights.
    pub digest: Option<String>,
    /// Large requests of the process. This field and those below exist only for planlab.
    pub requests: Option<u64>,
    /// Large requests served from a plan.
    pub planned: Option<u64>,
    /// The number of plans made.
    pub plans: Option<u64>,
    /// Time spent planning, on a separate thread.
    pub planning_ns: Option<u64>,
    /// Height of the highest plan.
    pub plan_height: Option<u64>,
    /// Load of that plan's round.
    pub plan_load: Option<u64>,
    /// When the process started, nanoseconds since 1970.
    pub started_ns: u64,
    /// Machine and build.
    pub provenance: Provenance,
}

impl FrameworkRow {
    /// The contradiction in this row; `None` if it is plausible.
    fn contradiction(&self) -> Option<&'static str> {
        let timed = self.wall_ns.len();
        if self.cpu_ns.len() != timed || self.faults.len() != timed {
            return Some("`wall_ns`, `cpu_ns` and `faults` have different lengths");
        }
        let lacks = timed == 0 || self.digest.is_none();
        (self.status == End::Complete && lacks).then_some("it is complete, but has no times or no `digest`")
    }

    fn key(&self) -> (String, u32) {
        (self.cell.clone(), self.repetition)
    }

    /// Rows with figures come before rows without; among equals the later wins.
    fn rank(&self) -> (bool, u64) {
        (self.status == End::Complete, self.started_ns)
    }
}

/// The rows of a folder, one per cell and repetition, in the order of their first appearance; an empty list without
/// such a file. An incomplete last line is ignored.
///
/// # Errors
///
/// [`StoreError::Io`] if the file cannot be read, [`StoreError::BadLine`] if a line is not a row,
/// [`StoreError::Schema`] if a newer program wrote it.
pub fn read_frameworks(dir: impl AsRef<Path>) -> Result<Vec<FrameworkRow>, StoreError> {
    let path = path(dir.as_ref());
    let text = files::read_if_there(&path)?.unwrap_or_default();
    let mut rows = Vec::new();
    for (line, number) in text[..whole(&text)].split_inclusive(|&byte| byte == b'\n').zip(1..) {
        rows.push(read_line(line).map_err(|bad| bad.error(&path, number))?);
    }
    Ok(best(rows))
}

/// The incomplete last line of the file: its number from 1 and its bytes.
pub(crate) fn torn(dir: &Path) -> Result<Option<(PathBuf, u64, u64)>, StoreError> {
    let path = path(dir);
    let text = files::read_if_there(&path)?.unwrap_or_default();
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
        files::write_whole(&path, &text)?;
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

/// Why a line is not a valid row.
enum Bad {
    Newer(u32),
    Reason(String),
}

impl Bad {
    fn error(self, path: &Path, line: u64) -> StoreError {
        let path = path.to_path_buf();
        match self {
            Self::Newer(found) => StoreError::Schema { path, found, known: FRAMEWORK_SCHEMA },
            Self::Reason(reason) => StoreError::BadLine { path, line, reason },
        }
    }
}

/// The fields common to the rows of all versions.
#[derive(Deserialize)]
struct Versioned {
    schema: u32,
}

fn read_line(line: &[u8]) -> Result<FrameworkRow, Bad> {
    let bad = |error: serde_json::Error| Bad::Reason(format!("not a row of a framework: {error}"));
    // Check the version first: newer rows may have other fields.
    let Versioned { schema } = serde_json::from_slice(line).map_err(bad)?;
    if schema > FRAMEWORK_SCHEMA {
        return Err(Bad::Newer(schema));
    }
    let row: FrameworkRow = serde_json::from_slice(line).map_err(bad)?;
    match row.contradiction() {
        Some(reason) => Err(Bad::Reason(reason.to_owned())),
        None => Ok(row),
    }
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
