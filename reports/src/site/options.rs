//! The options of a report.

use std::collections::BTreeMap;

use crate::data::nets::parts::PoolTotals;

/// The parts of a report that do not come from the records.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReportOptions {
    /// The title of the summary.
    pub title: String,
    /// The command that makes the report, as shown on its pages.
    pub command: String,
    /// Facts about workloads that are not in the records.
    pub totals: PoolTotals,
    /// Facts about nets, by their key.
    pub nets: KnownNets,
    /// Facts about planners, by their key.
    pub planners: BTreeMap<String, KnownPlanner>,
    /// The planner whose plans get maps besides the best ones, and whose times are shown by net.
    pub baseline: String,
    /// The most plans that get maps and a page: first the best and the baseline's plan of each workload. Then, on
    /// workloads of up to 2,000 buffers, the worst plan of each planner, and one plan for each of the three lowest
    /// heights of a workload.
    pub maps: usize,
}

impl Default for ReportOptions {
    fn default() -> Self {
        Self {
            title: "Memory planning benchmark".to_owned(),
            command: "planlab report".to_owned(),
            totals: PoolTotals::new(),
            nets: KnownNets::default(),
            planners: BTreeMap::new(),
            baseline: "best-fit".to_owned(),
            maps: 800,
        }
    }
}

/// Facts about a planner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownPlanner {
    /// What it does, in one line.
    pub summary: String,
    /// The kind of planner: `greedy`, `exact`, ...
    pub kind: String,
    /// How good its plans are.
    pub guarantee: String,
    /// Its running time in the number n of buffers.
    pub complexity: String,
    /// Where it was published.
    pub reference: String,
}

/// Facts about a net, by the key of its workload, for example `model/alexnet/train/b32`.
#[derive(Clone, Copy, Debug)]
pub struct KnownNets {
    /// Bytes that are kept besides every plan: parameters and, in training, their gradients and the optimizer's state.
    pub kept_bytes: fn(&str) -> Option<u64>,
    /// A drawing of the net as SVG, with the operations at its peak marked.
    pub draw: fn(&str) -> Option<String>,
}

/// No facts are known.
impl Default for KnownNets {
    fn default() -> Self {
        Self { kept_bytes: |_| None, draw: |_| None }
    }
}
