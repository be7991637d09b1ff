//! Turns the end of a child into a verdict; the parent verifies the plan here.

use planlab_dsa::{Bound, Bytes, Claim, Instance, Scope, Stop, VerifiedPlan, initial_bound};
use planlab_results::{Point, Status};

use super::protocol::{Answer, ComplaintKind};
use super::supervisor::CellEnd;
use crate::process::Death;

const INTERRUPTED: &str = "ended from outside; this is the best so far";

/// The verdict on a cell.
#[derive(Clone, Debug)]
pub(crate) struct Judgement<'i> {
    pub(crate) status: Status,
    /// The best plan, verified by the parent, even if the child died.
    pub(crate) plan: Option<VerifiedPlan<'i>>,
    /// The bound on any plan.
    pub(crate) bound: Claim,
    /// The bound on plans without hand-overs, if the instance permits some and the planner uses none.
    pub(crate) without_in_place: Option<Bytes>,
    pub(crate) stop: Option<Stop>,
    pub(crate) reason: String,
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) stderr_tail: String,
    pub(crate) samples_ns: Vec<u64>,
    /// The time that an external planner reports.
    pub(crate) reported_ns: Option<u64>,
    pub(crate) cpu_ns: Option<u64>,
    pub(crate) peak_rss_bytes: Option<u64>,
    pub(crate) work: u64,
    pub(crate) trajectory: Vec<Point>,
}

impl Judgement<'_> {
    pub(crate) fn height(&self) -> Option<Bytes> {
        self.plan.as_ref().map(VerifiedPlan::height)
    }
}

/// Judges one cell.
pub(crate) fn judge(end: CellEnd, instance: &Instance, target: Option<u64>) -> Judgement<'_> {
    let CellEnd { end, plan, bound, stderr_tail, interrupted } = end;
    let (plan, violation) = match plan.map(|plan| instance.verify(plan)) {
        Some(Ok(plan)) => (Some(plan), None),
        Some(Err(violation)) => (None, Some(violation)),
        None => (None, None),
    };
    // A child that died did not report its scope: `Any` claims least.
    let scope = end.as_ref().map_or(Scope::Any, |answer| answer.scope);
    let known = join(initial_bound(instance), bound.or(end.as_ref().ok().map(|answer| answer.bound)));
    let refuted = plan.as_ref().and_then(|plan| refuted(known.of(plan.scope()), plan.height()));
    let mut judgement = Judgement {
        status: Status::Unknown,
        plan,
        bound: known.of(Scope::Any),
        without_in_place: without_in_place(instance, known, scope),
        stop: None,
        reason: String::new(),
        exit_code: None,
        signal: None,
        stderr_tail,
        samples_ns: Vec::new(),
        reported_ns: None,
        cpu_ns: None,
        peak_rss_bytes: None,
        work: 0,
        trajectory: Vec::new(),
    };
    match end {
        Ok(answer) => judgement.take_answer(answer, target, refuted),
        Err(death) => judgement.take_death(death),
    }
    if let (None, Some((arena, load))) = (&judgement.plan, instance.overfull_arena()) {
        let name = &instance.arenas()[arena.index()].name;
        judgement.status = Status::Infeasible;
        judgement.stop = Some(Stop::Infeasible);
        judgement.reason = format!(
            "arena {arena} `{name}`: {load} bytes are live in it at one step, more than its capacity"
        );
    }
    if interrupted && judgement.stop == Some(Stop::Cancelled) {
        judgement.status = Status::Interrupted;
        INTERRUPTED.clone_into(&mut judgement.reason);
    }
    if let Some(violation) = violation {
        judgement.status = status_of(ComplaintKind::of(&violation));
        judgement.reason = violation.to_string();
    }
    judgement
}

/// The judgement of an existing plan, whose look-up took `took_ns` nanoseconds.
pub(crate) fn judge_found(plan: VerifiedPlan<'_>, scope: Scope, took_ns: u64) -> Judgement<'_> {
    let known = initial_bound(plan.instance());
    let bound = known.of(Scope::Any);
    Judgement {
        status: if plan.height() == bound.value { Status::Optimal } else { Status::Feasible },
        without_in_place: without_in_place(plan.instance(), known, scope),
        plan: Some(plan),
        bound,
        stop: None,
        reason: String::new(),
        exit_code: None,
        signal: None,
        stderr_tail: String::new(),
        samples_ns: vec![took_ns],
        reported_ns: None,
        cpu_ns: None,
        peak_rss_bytes: None,
        work: 0,
        trajectory: Vec::new(),
    }
}

/// The bound on plans without hand-overs, if a run of this scope leaves out plans that the instance permits.
fn without_in_place(instance: &Instance, known: Bound, scope: Scope) -> Option<Bytes> {
    let leaves_out = scope == Scope::NoHandOver && !instance.in_place().is_empty();
    leaves_out.then(|| known.of(Scope::NoHandOver).value)
}

/// The reason if a plan of this height refutes a claim about plans like it.
fn refuted(claim: Claim, height: Bytes) -> Option<String> {
    let bound = claim.value;
    (height < bound).then(|| format!("a bound of {bound} was claimed, the plan has height {height}"))
}

fn join(mut bound: Bound, other: Option<Bound>) -> Bound {
    if let Some(other) = other {
        bound.raise(other.of(Scope::Any), Scope::Any);
        bound.raise(other.of(Scope::NoHandOver), Scope::NoHandOver);
    }
    bound
}

impl Judgement<'_> {
    fn take_answer(&mut self, answer: Answer, target: Option<u64>, refuted: Option<String>) {
        let contradiction = self.contradiction(&answer);
        self.stop = answer.stop;
        self.samples_ns = answer.samples_ns;
        self.cpu_ns = Some(answer.cpu_ns);
        self.peak_rss_bytes = answer.peak_rss_bytes;
        self.work = answer.work;
        self.trajectory = answer.trajectory;
        self.reported_ns = answer.reported_ns;
        (self.exit_code, self.signal) = match (answer.exit_code, answer.signal) {
            (None, None) => (Some(0), None),
            died => died,
        };
        if !answer.stderr_tail.is_empty() {
            self.stderr_tail = answer.stderr_tail;
        }
        let ranked = refuted.map_or_else(|| self.rank(target), |reason| (Status::BoundRefuted, reason));
        (self.status, self.reason) = match (contradiction, answer.error) {
            (Some(reason), _) => (Status::BadOutput, reason),
            (None, Some(complaint)) if complaint.kind == ComplaintKind::Failed => {
                (ranked.0, complaint.message)
            }
            (None, Some(complaint)) => (status_of(complaint.kind), complaint.message),
            (None, None) => ranked,
        };
    }

    /// The reason if the child reported a height that is not the plan's.
    fn contradiction(&self, answer: &Answer) -> Option<String> {
        let verified = self.height().map(Bytes::get);
        (answer.height != verified).then(|| {
            let text = |height: Option<u64>| height.map_or("none".to_owned(), |height| height.to_string());
            format!("the child says height {}, its plan has height {}", text(answer.height), text(verified))
        })
    }

    fn rank(&self, target: Option<u64>) -> (Status, String) {
        let (height, bound) = (self.height(), self.bound.value);
        let fits = |height: Bytes| target.is_none_or(|target| height.get() <= target);
        let status = match (height, self.stop) {
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

    fn take_death(&mut self, death: Death) {
        let Fate { status, reason, exit_code, signal } = fate(death);
        (self.status, self.reason) = (status, reason);
        (self.exit_code, self.signal) = (exit_code.or(self.exit_code), signal.or(self.signal));
    }
}

/// The row's fields for a child without an answer.
pub(crate) struct Fate {
    pub(crate) status: Status,
    pub(crate) reason: String,
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
}

/// The row's fields for a death.
pub(crate) fn fate(death: Death) -> Fate {
    let (mut exit_code, mut killed_by) = (None, None);
    let (status, reason) = match death {
        Death::Timeout => (Status::Timeout, "did not end at its time limit and was killed".to_owned()),
        Death::OutOfMemory => (Status::OutOfMemory, "needed more memory than its limit".to_owned()),
        Death::Signal(signal) => {
            killed_by = Some(signal);
            // KILL comes from outside; a planner that crashes ends with ABRT, SEGV, ...
            let status = if signal == 9 { Status::Killed } else { Status::Crashed };
            (status, format!("ended by signal {signal}"))
        }
        Death::Exit(code) => {
            exit_code = Some(code);
            (Status::Crashed, format!("ended with exit code {code}"))
        }
        Death::BadOutput(reason) | Death::Unreadable(reason) => (Status::BadOutput, reason),
        Death::Interrupted => (Status::Interrupted, INTERRUPTED.to_owned()),
    };
    Fate { status, reason, exit_code, signal: killed_by }
}

const fn status_of(kind: ComplaintKind) -> Status {
    match kind {
        ComplaintKind::Unsupported => Status::Unsupported,
        ComplaintKind::Overlap => Status::InvalidOverlap,
        ComplaintKind::Broken => Status::InvalidPlan,
        ComplaintKind::Misaligned => Status::Misaligned,
        ComplaintKind::OverCapacity => Status::OverCapacity,
        ComplaintKind::Refuted => Status::BoundRefuted,
        ComplaintKind::Crashed => Status::Crashed,
        ComplaintKind::Killed => Status::Killed,
        ComplaintKind::OutOfMemory => Status::OutOfMemory,
        ComplaintKind::Nonsense => Status::BadOutput,
        ComplaintKind::Failed => Status::Unknown,
    }
}
