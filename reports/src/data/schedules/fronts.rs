//! Time against memory: the problems of a net that differ in their capacity alone.

use std::cmp::Reverse;

use planlab_results::schedule::time_gap;

use super::asked::{Variant, group_by_origin};
use super::cases::{Case, IN_CORE, Run, Schedules, variant_words};
use crate::data::rows::group_by;
use crate::figures::Series;
use crate::format::as_real;

/// Our scheduler: the one that `schedule` runs by default.
pub(crate) const OURS: &str = "joint";
/// Schedulers that are no rivals: our searches, and the one that needs all memory.
const NO_RIVALS: [&str; 4] = [OURS, "exact", "local-search", IN_CORE];

/// A net at one size in a capacity that does not hold everything, and its runs.
#[derive(Clone, Debug)]
pub(crate) struct TightProblem<'s> {
    pub(crate) case: &'s Case,
    pub(crate) size: u64,
    /// By scheduler; at least one.
    pub(crate) runs: Vec<&'s Run>,
}

/// A net at one size on one machine and link, in several capacities.
#[derive(Clone, Debug)]
pub(crate) struct Front<'s> {
    /// By ascending capacity; at least two.
    pub(crate) problems: Vec<TightProblem<'s>>,
    variant: Variant,
    /// A text that distinguishes its variant from others of the machine and link; usually empty.
    pub(crate) variant_words: String,
    /// The number of earlier fronts that differ from it in times or reserved memory alone; usually 0.
    pub(crate) number: usize,
}

/// A machine, and the link to the host and back.
type Place<'s> = (&'s str, (u64, u64));

/// The parts of a problem other than its capacity and the origin of its times: workload, place, planner, and what they
/// result in: base, and time of in-core training.
type Question<'s> = (&'s str, Place<'s>, &'s str, [u64; 2]);

/// The problems whose capacity does not hold everything, as far as known. Replaced problems are left out.
pub(crate) fn tight_problems(schedules: &Schedules) -> impl Iterator<Item = TightProblem<'_>> {
    let problems = schedules.cases.iter().filter(|case| !case.is_replaced()).flat_map(list_problems);
    problems.filter(|problem| !problem.holds_everything())
}

/// The fronts with at least two capacities, a run of ours and a schedule.
pub(crate) fn find_fronts(schedules: &Schedules) -> Vec<Front<'_>> {
    let mut fronts = Vec::new();
    for (question, problems) in group_by(tight_problems(schedules), TightProblem::question) {
        for ((rates, times), problems) in group_by_origin(problems, |problem| problem.case.variant.origin()) {
            let variant = Variant { age: 0, rates, times, planner: question.2.to_owned() };
            fronts.push(Front::new(problems, variant));
        }
    }
    fronts.retain(Front::is_shown);
    tell_apart(&mut fronts);
    fronts
}

/// Gives words or numbers to fronts whose names would be the same.
fn tell_apart(fronts: &mut [Front<'_>]) {
    let name = |front: &Front<'_>| {
        let at_place: Vec<&Variant> = fronts
            .iter()
            .filter(|other| other.place() == front.place())
            .map(|other| &other.variant)
            .collect();
        variant_words(&front.variant, &at_place)
    };
    let words: Vec<String> = fronts.iter().map(name).collect();
    for (at, words) in words.into_iter().enumerate() {
        let (earlier, rest) = fronts.split_at_mut(at);
        let front = &mut rest[0];
        front.number = earlier.iter().filter(|other| other.has_name_of(front)).count();
        front.variant_words = words;
    }
}

fn list_problems(case: &Case) -> Vec<TightProblem<'_>> {
    let problem = |size| TightProblem { case, size, runs: case.runs_at(size).collect() };
    case.sizes().into_iter().map(problem).collect()
}

impl<'s> TightProblem<'s> {
    fn question(&self) -> Question<'s> {
        let row = &self.runs[0].row;
        (row.workload.as_str(), self.place(), self.case.variant.planner.as_str(), [row.base, row.compute_ns])
    }

    fn place(&self) -> Place<'s> {
        let (out, back) = self.case.link;
        (self.case.machine.as_str(), (out.to_bits(), back.to_bits()))
    }

    /// Whether in-core training fits, by its offsets if there is such a run, else by its bytes.
    fn holds_everything(&self) -> bool {
        let in_core = self.runs.iter().find(|run| run.series.label == IN_CORE);
        let by_bytes = || self.in_core_bytes().is_some_and(|bytes| bytes <= self.case.capacity);
        in_core.map_or_else(by_bytes, |run| run.placed_ns().is_some())
    }

    /// The memory of in-core training in bytes, parameters and workspace included; older rows lack it.
    fn in_core_bytes(&self) -> Option<u64> {
        self.runs.iter().find_map(|run| run.row.in_core_bytes)
    }

    /// The capacity as a share of what in-core training needs, both above parameters and workspace.
    pub(crate) fn memory_share(&self) -> Option<f64> {
        let base = self.runs[0].row.base;
        let needed = self.in_core_bytes()?.checked_sub(base).filter(|&needed| needed > 0)?;
        Some(as_real(self.case.capacity.saturating_sub(base)) / as_real(needed))
    }

    /// A time in relation to that of in-core training, in which nothing waits.
    pub(crate) fn slowdown(&self, iteration_ns: u64) -> f64 {
        excess(iteration_ns, self.runs[0].row.compute_ns).unwrap_or(0.0) + 1.0
    }

    /// The largest proven bound on the time of any schedule, in nanoseconds. The claim of a run that failed counts for
    /// nothing: a refuted bound is still in its row.
    pub(crate) fn bound_ns(&self) -> u64 {
        let bound = |run: &&Run| match run.row.bound_scope.as_str() {
            "any" if !run.row.status.is_failure() => run.row.bound_ns,
            _ => run.row.compute_ns,
        };
        self.runs.iter().map(bound).max().unwrap_or(0)
    }

    pub(crate) fn run_of(&self, scheduler: usize) -> Option<&'s Run> {
        self.runs.iter().copied().find(|run| run.series.number == scheduler)
    }

    /// Our run, if it has a schedule whose offsets fit.
    pub(crate) fn our_run(&self) -> Option<&'s Run> {
        self.placed_runs().find(|run| run.series.label == OURS)
    }

    /// The fastest rival whose offsets fit; of equals the first by name.
    pub(crate) fn best_rival(&self) -> Option<&'s Run> {
        self.placed_runs().filter(|run| is_rival(run)).min_by_key(|run| run.placed_ns())
    }

    /// Whether any scheduler has a schedule whose offsets fit.
    pub(crate) fn is_scheduled(&self) -> bool {
        self.placed_runs().next().is_some()
    }

    /// Whether our schedule is at least as fast as that of every rival.
    pub(crate) fn is_ours_fastest(&self) -> bool {
        let time = |run: Option<&Run>| run.and_then(Run::placed_ns);
        match (time(self.our_run()), time(self.best_rival())) {
            // Times are rounded to nanoseconds.
            (Some(ours), Some(rival)) => ours <= rival.saturating_add(1),
            (ours, _) => ours.is_some(),
        }
    }

    /// The relative time that the best rival takes above ours; below 0 if it is faster.
    pub(crate) fn gain(&self) -> Option<f64> {
        excess(self.best_rival()?.placed_ns()?, self.our_run()?.placed_ns()?)
    }

    /// The relative time of our schedule above the proven bound; below 0 if the schedule refutes the bound.
    pub(crate) fn gap(&self) -> Option<f64> {
        time_gap(self.our_run()?.placed_ns()?, self.bound_ns())
    }

    fn placed_runs(&self) -> impl Iterator<Item = &'s Run> {
        self.runs.iter().copied().filter(|run| run.placed_ns().is_some())
    }
}

impl<'s> Front<'s> {
    fn new(mut problems: Vec<TightProblem<'s>>, variant: Variant) -> Self {
        problems.sort_by_key(|problem| problem.case.capacity);
        Self { problems, variant, variant_words: String::new(), number: 0 }
    }

    fn is_shown(&self) -> bool {
        self.problems.len() > 1 && self.our_series().is_some() && self.has_schedule()
    }

    fn place(&self) -> Place<'s> {
        self.problems[0].place()
    }

    /// The machine with its link and rates, the source of the times, and the planner.
    pub(crate) fn setting(&self) -> (Place<'s>, Variant) {
        (self.place(), self.variant.clone())
    }

    fn has_name_of(&self, other: &Front<'_>) -> bool {
        let workload = |front: &Front<'_>| front.problems[0].runs[0].row.workload.clone();
        workload(self) == workload(other) && self.setting() == other.setting()
    }

    /// For example `x86-pcie3 (12 GB/s)`.
    pub(crate) fn machine_and_link(&self) -> String {
        self.problems[0].case.machine_and_link(&self.variant_words)
    }

    fn has_schedule(&self) -> bool {
        self.problems.iter().any(TightProblem::is_scheduled)
    }

    /// The rivals with a schedule. First are those that are the best rival in most capacities, then those with schedules
    /// in most, then the fastest.
    pub(crate) fn ranked_rivals(&self) -> Vec<&'s Series> {
        let runs = self.problems.iter().flat_map(TightProblem::placed_runs).filter(|run| is_rival(run));
        let mut ranked: Vec<Vec<&Run>> = group_by(runs, |run| run.series.number).into_values().collect();
        ranked.sort_by_key(|runs| {
            let is_won = |problem: &&TightProblem<'_>| {
                problem.best_rival().is_some_and(|best| best.series.number == runs[0].series.number)
            };
            let won = self.problems.iter().filter(is_won).count();
            let total = runs.iter().filter_map(|run| run.placed_ns()).fold(0, u64::saturating_add);
            (Reverse(won), Reverse(runs.len()), total)
        });
        ranked.into_iter().map(|runs| &runs[0].series).collect()
    }

    /// Our series; `None` if ours did not run here.
    pub(crate) fn our_series(&self) -> Option<&'s Series> {
        let mut runs = self.problems.iter().flat_map(|problem| problem.runs.iter().copied());
        runs.find(|run| run.series.label == OURS).map(|run| &run.series)
    }
}

fn is_rival(run: &Run) -> bool {
    !NO_RIVALS.contains(&run.series.label.as_str())
}

/// How much longer a time is than another, as a share of the other; `None` if the other is 0.
fn excess(longer_ns: u64, shorter_ns: u64) -> Option<f64> {
    (shorter_ns > 0).then(|| as_real(longer_ns) / as_real(shorter_ns) - 1.0)
}
