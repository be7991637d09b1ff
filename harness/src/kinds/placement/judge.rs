//! Turns the end of a child into a verdict; the parent verifies the plan here.

use planlab_dsa::{Bound, Bytes, Claim, Instance, Scope, Stop, VerifiedPlan, initial_bound};
use planlab_results::{Point, Status};

use super::kind::Placement;
use super::messages::{Answer, status_of_violation};
use crate::cells::{CellEnd, Ending};

/// The verdict on a cell.
#[derive(Clone, Debug)]
pub(crate) struct Judgement<'i> {
    pub(crate) ending: Ending,
    /// The best plan, verified by the parent, even if the child died.
    pub(crate) plan: Option<VerifiedPlan<'i>>,
    /// The bound on any plan.
    pub(crate) bound: Claim,
    /// The bound on plans without hand-overs, if the instance permits some and the planner uses none.
    pub(crate) without_in_place: Option<Bytes>,
    pub(crate) samples_ns: Vec<u64>,
    /// The time that an external planner reports.
    pub(crate) reported_ns: Option<u64>,
    pub(crate) trajectory: Vec<Point>,
}

impl Judgement<'_> {
    pub(crate) fn height(&self) -> Option<Bytes> {
        self.plan.as_ref().map(VerifiedPlan::height)
    }
}

/// Judges one cell.
pub(super) fn judge(cell: CellEnd<Placement>, instance: &Instance, target: Option<u64>) -> Judgement<'_> {
    let CellEnd { end, kept: (plan, bound), stderr_tail, ran_out_of_memory, interrupted } = cell;
    let (plan, violation) = match plan.map(|plan| instance.verify(plan)) {
        Some(Ok(plan)) => (Some(plan), None),
        Some(Err(violation)) => (None, Some(violation)),
        None => (None, None),
    };
    // A child that died did not report its scope: `Any` claims least.
    let scope = end.as_ref().map_or(Scope::Any, |answer| answer.scope);
    let known = join(initial_bound(instance), bound.or(end.as_ref().ok().map(|answer| answer.bound)));
    let refuted = plan.as_ref().and_then(|plan| refuted(known.best_claim(plan.bound_scope()), plan.height()));
    let mut judgement = Judgement::new(instance, plan, known, scope);
    judgement.ending.stderr_tail = stderr_tail;
    match end {
        Ok(answer) => judgement.take_answer(answer, target, refuted),
        Err(death) => judgement.ending.take_death(death),
    }
    let ending = &mut judgement.ending;
    if ran_out_of_memory && ending.status == Status::Killed {
        // In a group that ran out of memory, a killed external program counts as out of memory.
        ending.status = Status::OutOfMemory;
    }
    if let (None, Some((arena, load))) = (&judgement.plan, instance.overfull_arena()) {
        let name = &instance.arenas()[arena.index()].name;
        ending.status = Status::Infeasible;
        ending.stop = Some(Stop::Infeasible);
        ending.reason = format!(
            "arena {arena} `{name}`: {load} bytes are live in it at one step, more than its capacity"
        );
    }
    if interrupted && ending.stop == Some(Stop::Cancelled) {
        ending.status = Status::Interrupted;
        Ending::INTERRUPTED.clone_into(&mut ending.reason);
    }
    if let Some(violation) = violation {
        ending.status = status_of_violation(&violation);
        ending.reason = violation.to_string();
    }
    judgement
}

/// The judgement of an existing plan, whose look-up took `took_ns` nanoseconds.
pub(super) fn judge_found(plan: VerifiedPlan<'_>, scope: Scope, took_ns: u64) -> Judgement<'_> {
    let (instance, height) = (plan.instance(), plan.height());
    let mut judgement = Judgement::new(instance, Some(plan), initial_bound(instance), scope);
    let is_optimal = height == judgement.bound.value;
    judgement.ending.status = if is_optimal { Status::Optimal } else { Status::Feasible };
    judgement.samples_ns = vec![took_ns];
    judgement
}

/// The bound on plans without hand-overs, if a run of this scope leaves out plans that the instance permits.
fn without_in_place(instance: &Instance, known: Bound, scope: Scope) -> Option<Bytes> {
    let leaves_out = scope == Scope::NoHandOver && !instance.in_place().is_empty();
    leaves_out.then(|| known.best_claim(Scope::NoHandOver).value)
}

/// The reason if a plan of this height refutes a claim about plans like it.
fn refuted(claim: Claim, height: Bytes) -> Option<String> {
    let bound = claim.value;
    (height < bound).then(|| format!("a bound of {bound} was claimed, the plan has height {height}"))
}

fn join(mut bound: Bound, other: Option<Bound>) -> Bound {
    if let Some(other) = other {
        bound.raise_claim(other.best_claim(Scope::Any), Scope::Any);
        bound.raise_claim(other.best_claim(Scope::NoHandOver), Scope::NoHandOver);
    }
    bound
}

impl<'i> Judgement<'i> {
    fn new(instance: &'i Instance, plan: Option<VerifiedPlan<'i>>, known: Bound, scope: Scope) -> Self {
        Self {
            ending: Ending::new(Status::Unknown),
            plan,
            bound: known.best_claim(Scope::Any),
            without_in_place: without_in_place(instance, known, scope),
            samples_ns: Vec::new(),
            reported_ns: None,
            trajectory: Vec::new(),
        }
    }

    fn take_answer(&mut self, answer: Answer, target: Option<u64>, refuted: Option<String>) {
        let contradiction = self.contradiction(&answer);
        let stop = answer.run.stop;
        let ranked = refuted.map_or_else(|| self.rank(target, stop), |reason| (Status::BoundRefuted, reason));
        self.ending.take_run(answer.run, ranked);
        self.samples_ns = answer.samples_ns;
        self.trajectory = answer.trajectory;
        self.reported_ns = answer.reported_ns;
        if answer.exit_code.or(answer.signal).is_some() {
            (self.ending.exit_code, self.ending.signal) = (answer.exit_code, answer.signal);
        }
        if !answer.stderr_tail.is_empty() {
            self.ending.stderr_tail = answer.stderr_tail;
        }
        if let Some(reason) = contradiction {
            (self.ending.status, self.ending.reason) = (Status::BadOutput, reason);
        }
    }

    /// The reason if the child reported a height that is not the plan's.
    fn contradiction(&self, answer: &Answer) -> Option<String> {
        let verified = self.height().map(Bytes::get);
        (answer.height != verified).then(|| {
            let text = |height: Option<u64>| height.map_or("none".to_owned(), |height| height.to_string());
            format!("the child says height {}, its plan has height {}", text(answer.height), text(verified))
        })
    }

    fn rank(&self, target: Option<u64>, stop: Option<Stop>) -> (Status, String) {
        let (height, bound) = (self.height(), self.bound.value);
        let fits = |height: Bytes| target.is_none_or(|target| height.get() <= target);
        let status = match (height, stop) {
            _ if target.is_some_and(|target| bound.get() > target) => Status::Infeasible,
            (None, Some(Stop::Infeasible)) => Status::Infeasible,
            (Some(height), _) if height == bound && fits(height) => Status::Optimal,
            (Some(height), _) if fits(height) => Status::Feasible,
            (_, Some(Stop::Deadline | Stop::Cancelled)) => Status::Timeout,
            _ => Status::Unknown,
        };
        let reason = match (status, height) {
            (Status::Infeasible, _) if target.is_none_or(|target| bound.get() <= target) => {
                "an arena cannot keep its capacity".to_owned()
            }
            (Status::Infeasible, _) => {
                let capacity = target.map_or(String::new(), |target| format!(", the capacity is {target}"));
                format!("every plan needs {bound} bytes{capacity}")
            }
            (Status::Timeout | Status::Unknown, Some(height)) => {
                format!("the lowest plan found, {height} bytes, does not fit")
            }
            (Status::Timeout, None) => "the time limit came before there was a plan".to_owned(),
            (Status::Unknown, None) => "the planner ended without a plan".to_owned(),
            _ => String::new(),
        };
        (status, reason)
    }
}
