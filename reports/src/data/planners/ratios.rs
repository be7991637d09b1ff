//! Compares planners of one bench: which of them answer, how fast, how low, and the ratios.
//!
//! For our planners, the time is the wall time of the whole run, from the parsed instance to the verified plan. For
//! external ones it is the wall time of their process (its start, reading the instance, planning, writing the plan). If
//! they print a time of their own, that is compared too; it includes only planning. In the median over repetitions, a
//! repetition without an answer counts as infinite.

use std::collections::{BTreeMap, BTreeSet};

use planlab_results::statistics::{median, shifted_geometric_mean};
use planlab_results::{Record, Status, latest_builds};

use crate::format::as_real;

/// The prefix of the keys of external planners.
const EXTERNAL: &str = "external/";

/// The planners that one name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name, as a glob.
    pub name: String,
    /// The keys of the matching planners with rows.
    pub planners: BTreeSet<String>,
}

/// A problem on which planners are compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Subject {
    /// The part of the key that related workloads have in common: `minimalloc`, `synthetic/guillotine`.
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
    /// Sorts the rows. If several builds measured a cell, the one that ran last counts.
    pub(crate) fn new(rows: impl Iterator<Item = &'r Record>) -> Self {
        let variant = |row: &Record| Variant {
            planner: row.planner.clone(),
            threads: row.threads(),
            work: row.work_limit,
        };
        let mut field = Self::default();
        for ((subject, variant), rows) in latest_builds(rows, |row| (subject_of(row), variant(row))) {
            field.figures.entry(subject).or_default().insert(variant, Figure { rows });
        }
        field
    }

    /// The variants at a capacity that match one of the names.
    fn matching_variants(&self, names: &[Named]) -> BTreeSet<Variant> {
        let subjects = self.figures.iter().filter(|(subject, _)| subject.capacity.is_some());
        let all = subjects.flat_map(|(_, figures)| figures.keys());
        all.filter(|variant| names.iter().any(|name| name.planners.contains(&variant.planner)))
            .cloned()
            .collect()
    }
}

fn subject_of(row: &Record) -> Subject {
    let family = match row.workload.route() {
        "synthetic" => row.workload.group(),
        route => route,
    };
    Subject {
        family: family.to_owned(),
        buffers: row.buffers,
        workload: row.workload.to_string(),
        load: row.relaxed_load,
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
    /// The median of the seconds to the answer; `None` if half the repetitions or more have no answer.
    pub(crate) fn median_seconds(&self) -> Option<f64> {
        self.median_of(|row| is_answer(row).then(|| wall_ns(row)).flatten())
    }

    /// The same by the planner's own clock; `None` if that clock is too coarse for the time.
    pub(crate) fn own_seconds(&self) -> Option<f64> {
        self.median_of(|row| row.reported_ns.filter(|_| is_answer(row))).filter(|&seconds| seconds > 0.0)
    }

    /// The seconds spent, with or without an answer.
    pub(crate) fn spent_seconds(&self) -> Option<f64> {
        self.median_of(wall_ns)
    }

    /// The time at which the best plan was found. A trajectory counts from the start of the run. For an external
    /// planner it is the time of its process, as its plan is read at the end.
    pub(crate) fn best_after_seconds(&self) -> Option<f64> {
        self.median_of(|row| {
            let height = row.height?;
            let found = row.trajectory.iter().find(|point| point.height == Some(height))?;
            Some(wall_ns(row).map_or(found.elapsed_ns, |wall| found.elapsed_ns.min(wall)))
        })
    }

    fn median_of(&self, value: impl Fn(&Record) -> Option<u64>) -> Option<f64> {
        let seconds = |row: &&Record| value(row).map_or(f64::INFINITY, |ns| as_real(ns) / 1e9);
        let values: Vec<f64> = self.rows.iter().map(seconds).collect();
        median(&values).filter(|value| value.is_finite())
    }

    pub(crate) fn middle_height(&self) -> Option<u64> {
        let mut heights: Vec<u64> = self.rows.iter().map(|row| row.height.unwrap_or(u64::MAX)).collect();
        heights.sort_unstable();
        heights.get((heights.len() - 1) / 2).copied().filter(|&height| height != u64::MAX)
    }

    pub(crate) fn middle_bound(&self) -> (u64, &str) {
        let mut bounds: Vec<(u64, &str)> =
            self.rows.iter().map(|row| (row.bound, row.bound_evidence.name())).collect();
        bounds.sort_unstable();
        bounds.get((bounds.len() - 1) / 2).copied().unwrap_or_default()
    }

    /// Whether height and bound are equal at the end of most repetitions.
    pub(crate) fn is_proven(&self) -> bool {
        2 * self.rows.iter().filter(|row| row.status == Status::Optimal).count() > self.rows.len()
    }

    pub(crate) fn peak_rss_bytes(&self) -> Option<u64> {
        self.rows.iter().filter_map(|row| row.peak_rss_bytes).max()
    }

    /// The outcome in a word or two: that of the first repetition without an answer, if there is one.
    pub(crate) fn outcome_word(&self) -> String {
        let speaker = self.rows.iter().find(|row| !is_answer(row)).or(self.rows.first());
        let Some(row) = speaker else { return String::new() };
        let (answers, runs) = (self.rows.iter().filter(|row| is_answer(row)).count(), self.rows.len());
        let word = match row.status {
            Status::Timeout => "no answer (timeout)".to_owned(),
            Status::Unknown => "no answer".to_owned(),
            Status::Infeasible => "infeasible".to_owned(),
            Status::Optimal | Status::Feasible => "fits".to_owned(),
            other => other.name().to_owned(),
        };
        if answers == runs || answers == 0 { word } else { format!("{word}, {answers} of {runs} answer") }
    }
}

/// With a capacity, a plan that fits or a proof that none does; otherwise any plan.
fn is_answer(row: &Record) -> bool {
    match row.target_bytes {
        Some(_) => row.status.is_answer(),
        None => row.height.is_some() && !row.status.is_lie(),
    }
}

/// For our planners the whole run, for an external planner its process; for a cell with several samples their median.
fn wall_ns(row: &Record) -> Option<u64> {
    let is_external = row.planner.starts_with(EXTERNAL);
    let whole = row.trajectory.last().map(|point| point.elapsed_ns);
    match row.samples_ns.as_slice() {
        [_] if !is_external && whole.is_some() => whole,
        _ => row.median_ns(),
    }
}

/// One planner compared with another, on all subjects with a capacity.
#[derive(Debug)]
pub(crate) struct Pair<'f> {
    pub(crate) of: Variant,
    pub(crate) over: Variant,
    pub(crate) lines: Vec<Line<'f>>,
}

#[derive(Debug)]
pub(crate) struct Line<'f> {
    pub(crate) subject: &'f Subject,
    pub(crate) of: Option<&'f Figure<'f>>,
    pub(crate) over: Option<&'f Figure<'f>>,
}

/// Which clock measures the other planner's times: [`Figure::median_seconds`] or [`Figure::own_seconds`].
type Clock<'f> = fn(&Figure<'f>) -> Option<f64>;

/// A mean of ratios over the subjects that the other planner answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mean {
    pub(crate) value: Option<f64>,
    pub(crate) subjects: usize,
    /// The number of subjects that only the other planner answers: its time is compared with our limit.
    pub(crate) ours_missing: usize,
}

impl<'f> Pair<'f> {
    /// Every pair of variants that match the globs.
    pub(crate) fn all_pairs(field: &'f Field<'_>, of: &[Named], over: &[Named]) -> Vec<Self> {
        let (of, over) = (field.matching_variants(of), field.matching_variants(over));
        let pairs = of.iter().flat_map(|of| over.iter().map(move |over| (of, over)));
        pairs.filter(|(of, over)| of != over).map(|(of, over)| Self::new(field, of, over)).collect()
    }

    fn new(field: &'f Field<'_>, of: &Variant, over: &Variant) -> Self {
        let subjects = field.figures.iter().filter(|(subject, _)| subject.capacity.is_some());
        let line = |(subject, figures): (&'f Subject, &'f BTreeMap<Variant, Figure<'_>>)| Line {
            subject,
            of: figures.get(of),
            over: figures.get(over),
        };
        let lines = subjects.map(line).filter(|line| line.of.is_some() || line.over.is_some()).collect();
        Self { of: of.clone(), over: over.clone(), lines }
    }

    pub(crate) fn mean_ratio(&self, clock: Clock<'f>) -> Mean {
        let mut ours_missing = 0;
        let mut ratios = Vec::new();
        for line in &self.lines {
            let (Some(of), Some(theirs)) = (line.of, line.over.and_then(clock)) else {
                continue;
            };
            let ours = of.median_seconds().or_else(|| {
                ours_missing += 1;
                of.median_of(|row| row.wall_limit_ns)
            });
            ratios.push(ours.map(|ours| ours / theirs));
        }
        let subjects = ratios.len();
        Mean { value: shifted_geometric_mean(ratios, 0.0).mean, subjects, ours_missing }
    }
}

impl<'f> Line<'f> {
    pub(crate) fn time_ratio(&self, clock: Clock<'f>) -> Option<f64> {
        Some(self.of?.median_seconds()? / clock(self.over?)?)
    }
}
