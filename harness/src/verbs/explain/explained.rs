//! Which trace of a file is explained, and everything that is printed of it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use planlab_dsa::BufferId;
use planlab_results::Record;
use planlab_workloads::formats::import::{Dropped, Framework, Imported, Part};
use planlab_workloads::waste::Waste;
use planlab_workloads::{ReadOptions, Trace};
use serde::Serialize;

use super::failure::Failed;
use super::largest::Largest;
use crate::shell::exit::Failure;

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

/// A trace of the file, in short.
#[derive(Serialize)]
pub(super) struct Summary {
    #[serde(rename = "part")]
    pub(super) name: String,
    pub(super) buffers: usize,
    pub(super) load: u64,
    pub(super) reserved: Option<u64>,
    /// How often it ran out of memory.
    pub(super) failures: usize,
}

/// The trace that is explained.
pub(super) struct Chosen {
    pub(super) part: Part,
    /// Why this one, if there are several and nobody named one.
    pub(super) why: Option<&'static str>,
    pub(super) others: Vec<Summary>,
}

/// The trace that the options name, or the only one; else one that ran out of memory, if there is one, and of these or of all
/// that which reserved most.
pub(super) fn choose_part(
    mut imported: Imported,
    file: &str,
    options: &ReadOptions,
) -> Result<Chosen, Failure> {
    let mut others: Vec<Summary> = imported.parts.iter().map(summarize_part).collect();
    let of_most = |(index, summary): &(usize, &Summary)| {
        (summary.failures > 0, summary.reserved.unwrap_or(summary.load), Reverse(*index))
    };
    let best = others.iter().enumerate().max_by_key(of_most).map(|(index, _)| index);
    let Some(index) = best.filter(|_| options.part.is_none() && others.len() > 1) else {
        let part = imported.chosen_part(file, options)?;
        others.retain(|other| other.name != part.name);
        return Ok(Chosen { part, why: None, others });
    };
    let summary = others.remove(index);
    let why = match (summary.failures, summary.reserved) {
        (1.., _) => "it ran out of memory",
        (0, Some(_)) => "it reserved most",
        (0, None) => "its load is the highest",
    };
    Ok(Chosen { part: imported.parts.swap_remove(index), why: Some(why), others })
}

fn summarize_part(part: &Part) -> Summary {
    let framework = part.framework.as_ref();
    Summary {
        name: part.name.clone(),
        buffers: part.trace.instance.len(),
        load: part.trace.instance.load().bytes.get(),
        reserved: framework.and_then(|framework| framework.reserved_peak).map(|bytes| bytes.get()),
        failures: framework.map_or(0, |framework| framework.failures.len()),
    }
}
