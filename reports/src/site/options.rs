//! What a report is asked for.

use crate::data::nets::PoolTotals;

/// What a report shows beside the records.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReportOptions {
    /// The title of the summary.
    pub title: String,
    /// The command that makes the report, as its pages name it.
    pub command: String,
    /// What is known of workloads beside the records.
    pub totals: PoolTotals,
    /// What is known of nets by their key.
    pub nets: KnownNets,
    /// The planner whose plans get maps beside the best ones, and whose times are shown by net.
    pub baseline: String,
    /// How many plans at most get maps and a page of their own: the best and the baseline's of each workload
    /// first, then, of workloads of up to 2,000 buffers, one of each of the three lowest heights.
    pub maps: usize,
}

impl Default for ReportOptions {
    fn default() -> Self {
        Self {
            title: "Memory planning benchmark".to_owned(),
            command: "planlab report".to_owned(),
            totals: PoolTotals::new(),
            nets: KnownNets::default(),
            baseline: "best-fit".to_owned(),
            maps: 800,
        }
    }
}

/// What is known of a net by the key of its workload, for example `model/alexnet/train/b32`.
#[derive(Clone, Copy, Debug)]
pub struct KnownNets {
    /// Bytes that are kept beside every plan: parameters and, in training, their gradients and the optimizer's state.
    pub kept_bytes: fn(&str) -> Option<u64>,
    /// The net drawn as SVG, with the operations at its peak marked.
    pub draw: fn(&str) -> Option<String>,
}

/// Nothing is known.
impl Default for KnownNets {
    fn default() -> Self {
        Self { kept_bytes: |_| None, draw: |_| None }
    }
}
