//! Which trace of a file is explained.

use std::cmp::Reverse;

use planlab_workloads::ReadOptions;
use planlab_workloads::formats::import::{Imported, Part};

use crate::shell::exit::Failure;

/// A trace of the file, in short.
pub(super) struct Summary {
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
