//! Turns the end of a child into a verdict; the parent validates the schedule here.

use planlab_dsa::{Bytes, Evidence, Instance, Plan, Stop};
use planlab_graph::{
    MapId, MemoryBound, Schedule, ScheduleBound, ScheduleEvidence, Scheduler, SchedulingProblem, Task,
    TrainingNet, Verified, compute_bound,
};
use planlab_results::Status;
use planlab_results::schedule::{Disturbance, Improvement};
use planlab_solvers::schedule::Class;

use super::Question;
use super::kind::Scheduling;
use super::messages::Answer;
use crate::cells::{CellEnd, Ending};

/// The largest relative difference between two times of one schedule if one of them went through a file.
const SAME: f64 = 1e-9;
/// The reason of a cell that was interrupted; what it found does not count.
const INTERRUPTED: &str = "ended from outside";

/// The verdict on a cell.
#[derive(Clone, Debug)]
pub(crate) struct Judgement {
    pub(crate) ending: Ending,
    /// The best schedule, validated by the parent, even if the child died.
    pub(crate) best: Option<Verified>,
    /// The best bound on the time of every schedule.
    pub(crate) bound: ScheduleBound,
    /// The best bound on the memory of every schedule.
    pub(crate) least_memory: MemoryBound,
    /// The schedule with the lowest offsets.
    pub(crate) placed: Option<Placed>,
    /// How the planner of the offsets ended. If it has no plan, the online best fit's offsets are used.
    pub(crate) planner_status: Option<Status>,
    pub(crate) planner_reason: String,
    pub(crate) disturbed: Vec<Disturbance>,
    pub(crate) elapsed_ns: Option<u64>,
    pub(crate) trajectory: Vec<Improvement>,
}

/// A schedule whose buffers a planner has placed.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) schedule: Verified,
    /// The instance that the planner received.
    pub(crate) instance: Instance,
    /// The lower of the planner's and the online best fit's plans.
    pub(crate) plan: Plan,
    /// A proven bound on the height, including the base.
    pub(crate) bound: Bytes,
    pub(crate) evidence: Evidence,
}

impl Judgement {
    /// The memory that the lowest offsets need, including the base.
    pub(crate) fn height(&self) -> Option<Bytes> {
        self.placed.as_ref().map(|placed| placed.schedule.height())
    }

    /// Whether the schedule runs in the problem's memory with its offsets.
    pub(crate) fn fits(&self, problem: &SchedulingProblem) -> bool {
        self.height().is_some_and(|height| height <= problem.capacity)
    }

    /// The [gap](ScheduleBound::gap) of the best schedule.
    pub(crate) fn gap(&self) -> Option<f64> {
        Some(self.bound.gap(self.best.as_ref()?.seconds()))
    }

    fn new(question: &Question) -> Self {
        Self {
            ending: Ending::new(Status::Unknown),
            best: None,
            bound: compute_bound(&question.problem),
            least_memory: question.least_memory,
            placed: None,
            planner_status: None,
            planner_reason: String::new(),
            disturbed: Vec::new(),
            elapsed_ns: None,
            trajectory: Vec::new(),
        }
    }

    /// Makes this the verdict on an interrupted cell: the interruption may come while its buffers are placed.
    pub(super) fn mark_interrupted(&mut self) {
        self.ending.status = Status::Interrupted;
        INTERRUPTED.clone_into(&mut self.ending.reason);
    }

    /// Takes over what a child answers. That no schedule fits counts if the bound says so, or if the scheduler may have
    /// searched all schedules.
    fn take_answer(&mut self, problem: &SchedulingProblem, scheduler: &dyn Scheduler, answer: Answer) {
        let contradiction = self.contradiction(answer.seconds);
        let bound = ScheduleBound::highest_of(&[answer.bound, self.bound]).unwrap_or(self.bound);
        self.bound = bound;
        let is_refuted = self.best.as_ref().is_some_and(|best| bound.is_refuted_by(best.seconds()));
        self.elapsed_ns = Some(answer.elapsed_ns);
        self.trajectory = answer.trajectory;
        let is_infeasible = answer.run.stop == Some(Stop::Infeasible);
        let is_searched =
            answer.memory_evidence == ScheduleEvidence::Search && scheduler.searches_all_schedules();
        if is_infeasible && is_searched && self.best.is_none() {
            let searched = MemoryBound::above_searched(problem.capacity);
            self.least_memory = searched.unwrap_or(self.least_memory);
        }
        let is_unproved = is_infeasible && self.least_memory.bytes <= problem.capacity;
        let ranked = self.rank(answer.run.stop, answer.shortfall);
        self.ending.take_run(answer.run, ranked);
        if let Some(reason) = contradiction {
            (self.ending.status, self.ending.reason) = (Status::BadOutput, reason);
        } else if is_refuted {
            self.ending.status = Status::BoundRefuted;
            self.ending.reason = format!("a bound of {:e} s was claimed", bound.seconds);
        } else if is_infeasible && self.best.is_some() {
            self.ending.status = Status::BoundRefuted;
            "it was claimed that no schedule fits".clone_into(&mut self.ending.reason);
        } else if is_unproved {
            self.ending.status = Status::BadOutput;
            "the child says that no schedule fits, without a proof".clone_into(&mut self.ending.reason);
        }
    }

    /// The reason if the child reported a time that is not the schedule's.
    fn contradiction(&self, said: Option<f64>) -> Option<String> {
        let found = self.best.as_ref().map(Verified::seconds);
        let agree = match (said, found) {
            (Some(said), Some(found)) => (said - found).abs() <= SAME * found.abs(),
            (said, found) => said == found,
        };
        let text = |seconds: Option<f64>| {
            seconds.map_or_else(|| "none".to_owned(), |seconds| format!("{seconds} s"))
        };
        (!agree).then(|| {
            format!("the child says that an iteration takes {}, but it takes {}", text(said), text(found))
        })
    }

    fn rank(&self, stop: Option<Stop>, shortfall: Option<String>) -> (Status, String) {
        match (&self.best, stop) {
            (Some(best), _) if self.bound.proves_fastest(best.seconds()) => (Status::Optimal, String::new()),
            (Some(_), _) => (Status::Feasible, String::new()),
            (None, Some(Stop::Infeasible)) => (Status::Infeasible, shortfall.unwrap_or_default()),
            (None, Some(Stop::Cancelled)) => (Status::Interrupted, INTERRUPTED.to_owned()),
            (None, Some(Stop::Deadline)) => {
                (Status::Timeout, "the time limit came before there was a schedule".to_owned())
            }
            (None, _) => {
                (Status::Unknown, shortfall.unwrap_or_else(|| "the scheduler has no schedule".to_owned()))
            }
        }
    }
}

/// Judges the end of a scheduler's child and what it has kept.
pub(super) fn judge(question: &Question, scheduler: &dyn Scheduler, cell: CellEnd<Scheduling>) -> Judgement {
    let problem = &question.problem;
    let mut judgement = Judgement::new(question);
    judgement.ending.stderr_tail = cell.stderr_tail;
    let kept = cell.kept.map(|text| {
        let schedule = Schedule::read_jsonl("schedule", &text)
            .map_err(|error| (Status::BadOutput, error.to_string()))?;
        Verified::new(problem, schedule).map_err(|error| (Status::InvalidPlan, error.to_string()))
    });
    let refusal = match kept.transpose() {
        Ok(best) => {
            judgement.best = best;
            None
        }
        Err(refusal) => Some(refusal),
    };
    match cell.end {
        Ok(answer) => judgement.take_answer(problem, scheduler, answer),
        Err(death) => judgement.ending.take_death(death),
    }
    if let Some(refusal) = refusal {
        (judgement.ending.status, judgement.ending.reason) = refusal;
    }
    judgement
}

/// How many maps a schedule keeps, swaps and recomputes, of those that a backward pass reads.
pub(crate) fn counts(net: &TrainingNet, schedule: &Schedule) -> [usize; 3] {
    let mut counts = [0; 3];
    for (_, class) in classes(net, schedule) {
        counts[class as usize] += 1;
    }
    counts
}

/// What a schedule does with each map that a backward pass reads. A map that is swapped and recomputed is swapped.
pub(crate) fn classes(net: &TrainingNet, schedule: &Schedule) -> Vec<(MapId, Class)> {
    let mut classes = vec![Class::Keep; net.maps().len()];
    for event in schedule.events.iter().flatten() {
        match event.task {
            Task::CopyIn(map) => classes[map.index()] = Class::Swap,
            Task::Recompute(id) => {
                let class = &mut classes[net.function(id).output.index()];
                if *class == Class::Keep {
                    *class = Class::Recompute;
                }
            }
            _ => {}
        }
    }
    net.map_ids().filter(|&map| net.is_retained(map)).map(|map| (map, classes[map.index()])).collect()
}
