//! What the repetitions of one planner on one subject come to.

use std::collections::{BTreeMap, BTreeSet};

use planlab_results::{Record, Status, latest_builds};
use planlab_workloads::glob;

use crate::external;

/// What planners are compared on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Subject {
    /// The part of the key that related workloads share: `minimalloc`, `synthetic/guillotine`.
    pub(crate) family: String,
    pub(crate) buffers: u64,
    pub(crate) workload: String,
    pub(crate) load: u64,
    pub(crate) capacity: Option<u64>,
    pub(crate) wall_ns: Option<u64>,
}

/// A planner with its parameters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Variant {
    pub(crate) planner: String,
    pub(crate) threads: u64,
    pub(crate) work: Option<u64>,
}

impl Variant {
    pub(crate) fn name(&self) -> String {
        let threads = if self.threads == 1 { String::new() } else { format!(", {} threads", self.threads) };
        let work = self.work.map(|work| format!(", work limit {work}")).unwrap_or_default();
        format!("{}{threads}{work}", self.planner)
    }
}

/// The rows of one bench, by subject and planner.
#[derive(Debug, Default)]
pub(crate) struct Field<'r> {
    pub(crate) figures: BTreeMap<Subject, BTreeMap<Variant, Figure<'r>>>,
}

impl<'r> Field<'r> {
    /// Sorts the rows. Of a cell that was measured with several builds, the one that ran last counts.
    pub(crate) fn new(rows: impl Iterator<Item = &'r Record>) -> Self {
        let variant = |row: &Record| Variant {
            planner: row.planner.clone(),
            threads: row.threads(),
            work: row.work_limit,
        };
        let mut field = Self::default();
        for ((subject, variant), rows) in latest_builds(rows, |row| (subject(row), variant(row))) {
            field.figures.entry(subject).or_default().insert(variant, Figure { rows });
        }
        field
    }

    /// Every planner that has rows.
    pub(crate) fn planners(&self) -> BTreeSet<&str> {
        self.figures.values().flat_map(BTreeMap::keys).map(|variant| variant.planner.as_str()).collect()
    }

    /// Whether the glob names a planner that has rows.
    pub(crate) fn has(&self, pattern: &str) -> bool {
        self.planners().into_iter().any(|planner| glob(pattern, planner))
    }

    /// Whether there are rows without a capacity.
    pub(crate) fn has_minimised(&self) -> bool {
        self.figures.keys().any(|subject| subject.capacity.is_none())
    }

    /// The variants that one of the globs names, in order.
    pub(crate) fn variants(&self, globs: &[String], at_capacity: bool) -> Vec<Variant> {
        let subjects = self.figures.iter().filter(|(subject, _)| subject.capacity.is_some() == at_capacity);
        let all = subjects.flat_map(|(_, figures)| figures.keys());
        let named = all.filter(|variant| globs.iter().any(|pattern| glob(pattern, &variant.planner)));
        let mut named: Vec<Variant> = named.cloned().collect();
        named.sort();
        named.dedup();
        named
    }
}

fn subject(row: &Record) -> Subject {
    let family = match row.workload.route() {
        "synthetic" => row.workload.group(),
        route => route,
    };
    Subject {
        family: family.to_owned(),
        buffers: row.buffers,
        workload: row.workload.to_string(),
        load: row.load,
        capacity: row.target_bytes,
        wall_ns: row.wall_limit_ns,
    }
}

/// The repetitions of one planner on one subject; at least one.
#[derive(Debug)]
pub(crate) struct Figure<'r> {
    rows: Vec<&'r Record>,
}

impl Figure<'_> {
    /// Seconds to the answer, the median; `None` where half the repetitions or more have none.
    pub(crate) fn seconds(&self) -> Option<f64> {
        self.median(|row| is_answer(row).then(|| wall_ns(row)).flatten())
    }

    /// The same by the planner's own clock; `None` where that is too coarse to tell the time from none.
    pub(crate) fn own_seconds(&self) -> Option<f64> {
        self.median(|row| row.reported_ns.filter(|_| is_answer(row))).filter(|&seconds| seconds > 0.0)
    }

    /// The time that was spent, answer or not.
    pub(crate) fn spent_seconds(&self) -> Option<f64> {
        self.median(wall_ns)
    }

    /// When the best plan was found. A trajectory counts from the start of the run; the time of an external
    /// planner is that of its process, at whose end its plan is read.
    pub(crate) fn best_after_seconds(&self) -> Option<f64> {
        self.median(|row| {
            let height = row.height?;
            let found = row.trajectory.iter().find(|point| point.height == Some(height))?;
            Some(wall_ns(row).map_or(found.elapsed_ns, |wall| found.elapsed_ns.min(wall)))
        })
    }

    fn median(&self, value: impl Fn(&Record) -> Option<u64>) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "seconds as a number")]
        let seconds = |ns: Option<u64>| ns.map_or(f64::INFINITY, |ns| ns as f64 / 1e9);
        let values: Vec<f64> = self.rows.iter().map(|row| seconds(value(row))).collect();
        planlab_results::statistics::median(&values).filter(|value| value.is_finite())
    }

    /// How many repetitions there are, and how many have an answer.
    pub(crate) fn answers(&self) -> (usize, usize) {
        (self.rows.iter().filter(|row| is_answer(row)).count(), self.rows.len())
    }

    /// The height that the middle one of the repetitions reaches.
    pub(crate) fn height(&self) -> Option<u64> {
        let mut heights: Vec<u64> = self.rows.iter().map(|row| row.height.unwrap_or(u64::MAX)).collect();
        heights.sort_unstable();
        heights.get((heights.len() - 1) / 2).copied().filter(|&height| height != u64::MAX)
    }

    /// The bound that the middle one of the repetitions proves, and how.
    pub(crate) fn bound(&self) -> (u64, &str) {
        let mut bounds: Vec<(u64, &str)> =
            self.rows.iter().map(|row| (row.bound, row.bound_evidence.name())).collect();
        bounds.sort_unstable();
        bounds.get((bounds.len() - 1) / 2).copied().unwrap_or_default()
    }

    /// Whether most repetitions end with height and bound equal.
    pub(crate) fn is_proven(&self) -> bool {
        2 * self.rows.iter().filter(|row| row.status == Status::Optimal).count() > self.rows.len()
    }

    pub(crate) fn peak_rss_bytes(&self) -> Option<u64> {
        self.rows.iter().filter_map(|row| row.peak_rss_bytes).max()
    }

    /// How it ended, in a word or two: the first repetition without an answer speaks, if there is one.
    pub(crate) fn word(&self) -> String {
        let speaker = self.rows.iter().find(|row| !is_answer(row)).or(self.rows.first());
        let Some(row) = speaker else { return String::new() };
        let (answers, runs) = self.answers();
        let word = match row.status {
            Status::Timeout => "no answer (timeout)".to_owned(),
            Status::Unknown => "no answer".to_owned(),
            Status::Infeasible => "infeasible".to_owned(),
            Status::Optimal | Status::Feasible => "fits".to_owned(),
            other => other.name().to_owned(),
        };
        if answers == runs || answers == 0 { word } else { format!("{word}, {answers} of {runs} answer") }
    }

    pub(crate) fn limit_seconds(&self) -> Option<f64> {
        self.median(|row| row.wall_limit_ns)
    }
}

/// Where there is a capacity, a plan that fits it or a proof that none does; else any plan.
fn is_answer(row: &Record) -> bool {
    match row.target_bytes {
        Some(_) => row.status.is_answer(),
        None => row.height.is_some() && !row.status.is_lie(),
    }
}

/// Of ours, the whole run; of an external planner, its process; of a cell with several samples, their median.
fn wall_ns(row: &Record) -> Option<u64> {
    let is_external = row.planner.starts_with(external::PREFIX);
    let whole = row.trajectory.last().map(|point| point.elapsed_ns);
    match row.samples_ns.as_slice() {
        [_] if !is_external && whole.is_some() => whole,
        _ => row.median_ns(),
    }
}
