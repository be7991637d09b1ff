//! Groups of cells in a suite: workloads, and the planners that run on each.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::time::Duration;

use planlab_dsa::Alignment;
use serde::Deserialize;

use crate::files::FileOptions;

/// Workloads and the planners that run on each of them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Group {
    /// Patterns over workload keys.
    pub workloads: Vec<String>,
    /// Files with traces, relative to the suite's file; patterns with `*`, `?`, `[...]` and `**`. See
    /// [`Suite::open_files`](super::Suite::open_files).
    pub files: Vec<String>,
    /// The alignment of the files' traces, as [`FileOptions::align`].
    pub align: Option<Alignment>,
    /// The trace to take from a file that contains several.
    pub part: Option<String>,
    /// Values of dynamic dimensions of the files, by name.
    pub dims: BTreeMap<String, NonZeroU64>,
    /// Whether the files' permissions to overwrite a buffer in place count. Default: yes.
    pub in_place: Option<bool>,
    /// Patterns over planner keys.
    pub planners: Vec<String>,
    /// Patterns over the keys of excluded planners.
    pub except: Vec<String>,
    /// Patterns over keys of online allocators.
    pub allocators: Vec<String>,
    /// Seconds per cell; `None` for the harness's default.
    pub time_limit: Option<f64>,
    /// Several limits in seconds, with a cell for each; instead of `time_limit`.
    pub time_limits: Vec<f64>,
    /// Workloads with more buffers are left out.
    pub max_buffers: Option<usize>,
    /// Capacities in bytes, with a cell for each; if empty, the height is minimised.
    pub capacities: Vec<u64>,
    /// Numbers of threads, with a cell for each; single-threaded planners have one cell. If empty, the harness's
    /// default.
    pub threads: Vec<NonZeroUsize>,
    /// Repetitions of each cell; `None` for the harness's default.
    pub repetitions: Option<NonZeroU32>,
    /// Excludes planners that search, and others on workloads larger than they are practical for.
    pub quick: bool,
}

impl Group {
    pub(super) fn file_options(&self) -> FileOptions {
        FileOptions {
            align: self.align,
            pins: false,
            part: self.part.clone(),
            dims: self.dims.iter().map(|(name, value)| (name.clone(), value.get())).collect(),
            without_in_place: self.in_place == Some(false),
        }
    }

    /// What is wrong with the group's workloads and files, and the text in the suite that it is about.
    pub(super) fn find_fault(&self) -> Option<(&'static str, &'static str)> {
        let has_options =
            self.align.is_some() || self.part.is_some() || !self.dims.is_empty() || self.in_place.is_some();
        if self.planners.is_empty() && self.allocators.is_empty() {
            Some(("[[group]]", "a group has neither planners nor allocators"))
        } else if self.workloads.is_empty() && self.files.is_empty() {
            Some(("[[group]]", "a group has neither workloads nor files"))
        } else if self.files.is_empty() && has_options {
            Some(("[[group]]", "align, part, dims and in_place are for a group with files"))
        } else {
            None
        }
    }

    /// The limits of the cells for one planner on one workload.
    pub(super) fn cell_limits(&self) -> Vec<CellLimits> {
        let mut cells = Vec::new();
        for seconds in one_or_several(self.time_limit, &self.time_limits) {
            for capacity in optional(&self.capacities) {
                for threads in optional(&self.threads) {
                    let time_limit = seconds.map(Duration::from_secs_f64);
                    cells.push(CellLimits { time_limit, capacity, threads });
                }
            }
        }
        cells
    }
}

/// Each value, or a single `None` without values.
pub(super) fn optional<T: Copy>(values: &[T]) -> Vec<Option<T>> {
    one_or_several(None, values)
}

/// Each of several values; without them the one value, which may be missing.
pub(super) fn one_or_several<T: Copy>(one: Option<T>, several: &[T]) -> Vec<Option<T>> {
    if several.is_empty() { vec![one] } else { several.iter().copied().map(Some).collect() }
}

/// The limits of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CellLimits {
    pub(super) time_limit: Option<Duration>,
    pub(super) capacity: Option<u64>,
    pub(super) threads: Option<NonZeroUsize>,
}
