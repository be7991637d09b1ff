//! Everything that `explain` prints.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use planlab_dsa::BufferId;
use planlab_results::Record;
use planlab_workloads::Trace;
use planlab_workloads::formats::import::{Dropped, Framework};
use planlab_workloads::waste::Waste;

use super::choice::Summary;
use super::failure::Failed;
use super::largest::Largest;

/// Everything that is printed.
pub(super) struct Explained<'e> {
    pub(super) file: &'e str,
    pub(super) part: &'e str,
    /// Why this trace was chosen of several, and the others.
    pub(super) why: Option<&'static str>,
    pub(super) others: Vec<Summary>,
    pub(super) trace: &'e Trace,
    pub(super) framework: &'e Framework,
    pub(super) dropped: &'e [Dropped],
    pub(super) best: &'e Record,
    pub(super) waste: Option<Waste>,
    /// The step of the load, and the buffers that are in use then, largest first.
    pub(super) peak_step: u64,
    pub(super) peak: Vec<BufferId>,
    /// The first times that memory ran out; `framework` has all.
    pub(super) failures: Vec<Failed>,
    pub(super) largest: Option<Largest>,
}

impl Explained<'_> {
    /// The most bytes that were asked for at once.
    pub(super) fn requested_peak(&self) -> u64 {
        let sizes = self.peak.iter().map(|id| self.requested_size(*id));
        sizes.fold(0, u64::saturating_add)
    }

    /// Bytes that were asked for, before any rounding.
    pub(super) fn requested_size(&self, id: BufferId) -> u64 {
        let label = &self.trace.labels.buffers[id.index()];
        label.requested.unwrap_or(self.trace.instance.buffer(id).size).get()
    }

    /// The buffers of the peak by category, with their number and bytes, largest first.
    pub(super) fn peak_by_category(&self) -> Vec<(Option<&str>, usize, u64)> {
        let mut all: BTreeMap<Option<&str>, (usize, u64)> = BTreeMap::new();
        for &id in &self.peak {
            let category = self.trace.labels.buffers[id.index()].category.as_deref();
            let (count, bytes) = all.entry(category).or_default();
            *count += 1;
            *bytes = bytes.saturating_add(self.trace.instance.buffer(id).size.get());
        }
        let mut all: Vec<_> = all.into_iter().map(|(name, (count, bytes))| (name, count, bytes)).collect();
        all.sort_by_key(|&(_, _, bytes)| Reverse(bytes));
        all
    }

    /// Bytes that offsets are multiples of, if there is one number for all.
    pub(super) fn common_alignment(&self) -> Option<u64> {
        let mut all = self.trace.instance.buffers().iter().map(|buffer| buffer.align.get());
        let first = all.next()?;
        all.all(|other| other == first).then_some(first).filter(|&bytes| bytes > 1)
    }
}
