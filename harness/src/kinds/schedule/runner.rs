//! Runs cells: the scheduler in a child, then the planner that places its schedule.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use planlab_dsa::{CancelToken, Labels, Offset, Plan};
use planlab_files::TemporaryFolder;
use planlab_graph::{SchedulingProblem, Verified};
use planlab_results::Status;
use planlab_workloads::Trace;
use planlab_workloads::formats::write_trace;

use super::disturb::disturb;
use super::judge::{Judgement, Placed, judge};
use super::protocol::{Reply, Request};
use super::{Cell, Question};
use crate::inputs::network::source_file;
use crate::kinds::placement::{self, Samples, Subject};
use crate::process::limits::{Cgroup, Mechanism};
use crate::process::{Death, command, talk_in};
use crate::shell::exit::Failure;
use crate::shell::quantity::nanoseconds;
use crate::shell::target::scratch_in_memory;

/// The time past its wall limit that a child gets to read its problem and write its answer.
const RESERVE: Duration = Duration::from_secs(2);
/// The time limit of a child without a wall limit.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Starts children and judges their answers.
pub(crate) struct Runner {
    planning: placement::Runner,
    folder: TemporaryFolder,
    next: AtomicU64,
}

impl Runner {
    /// A runner whose cells end early once `cancel` is set.
    pub(crate) fn new(cancel: CancelToken) -> io::Result<Self> {
        let planning = placement::Runner::new(cancel, Samples::ONCE)?;
        Ok(Self { planning, folder: scratch_in_memory()?, next: AtomicU64::new(0) })
    }

    pub(crate) fn mechanism(&self) -> Mechanism {
        self.planning.mechanism()
    }

    pub(crate) fn cancel(&self) -> &CancelToken {
        self.planning.cancel()
    }

    /// Runs a cell and judges it.
    ///
    /// # Errors
    ///
    /// If no child can be started or its files cannot be written. A failure of the child itself is not an error.
    pub(crate) fn run(&self, question: &Question, cell: &Cell) -> Result<Judgement, Failure> {
        let folder = self.folder.path().join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
        fs::create_dir(&folder)?;
        let request = Request {
            parent: std::process::id(),
            problem: folder.join("problem.jsonl"),
            mailbox: folder.join("schedule.jsonl"),
            scheduler: cell.scheduler.clone(),
            seed: cell.seed,
            wall_ns: cell.wall.map(nanoseconds),
            work: cell.work,
            target: cell.target,
            address_space: None,
        };
        fs::write(&request.problem, &question.text)?;
        let mut judgement = self.schedule(&question.problem, request, cell)?;
        if let Some(best) = judgement.best.clone() {
            self.place(question, cell, &best, &folder, &mut judgement)?;
            if cell.target.is_none() {
                judgement.disturbed = disturb(&question.problem, &best);
            }
        }
        if self.cancel().is_cancelled() {
            (judgement.status, judgement.reason) = (Status::Interrupted, "ended from outside".to_owned());
        }
        fs::remove_dir_all(&folder)?;
        Ok(judgement)
    }

    fn schedule(
        &self,
        problem: &SchedulingProblem,
        request: Request,
        cell: &Cell,
    ) -> Result<Judgement, Failure> {
        let mechanism = self.mechanism();
        let group = Cgroup::create(mechanism, cell.memory)?;
        let address_space = cell.memory.filter(|_| group.is_none());
        let request = Request { address_space, ..request };
        let limit = cell.wall.map_or(FOREVER, |wall| wall + wall / 20 + RESERVE);
        let talk = talk_in(command("run-schedule")?, &request, limit, self.cancel(), group.as_ref())?;
        let ran_out = group.as_ref().is_some_and(Cgroup::ran_out_of_memory);
        let end = match serde_json::from_slice(&talk.answer) {
            _ if talk.killed.is_some() => Err(talk.death()),
            Ok(Reply::Finished(answer)) => Ok(*answer),
            Ok(Reply::Unreadable { reason }) => Err(Death::Unreadable(reason)),
            Err(_) if ran_out => Err(Death::OutOfMemory),
            Err(_) => Err(talk.death()),
        };
        let mailbox = match fs::read_to_string(&request.mailbox) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            mailbox => Some(mailbox?),
        };
        let stderr = if end.is_err() { talk.stderr } else { String::new() };
        Ok(judge(problem, end, mailbox.as_deref(), stderr))
    }

    /// Gives the schedule the planner's offsets, or leaves its own if they are lower; returns how the planner ended.
    fn place(
        &self,
        question: &Question,
        cell: &Cell,
        best: &Verified,
        folder: &std::path::Path,
        judgement: &mut Judgement,
    ) -> Result<(), Failure> {
        let instance = best.instance()?;
        let file = folder.join("buffers.csv");
        fs::write(&file, write_trace(&Trace::new(instance.clone(), Labels::numbered(instance.len()))))?;
        let source = source_file(&format!("{} by {}", question.workload, cell.scheduler), file);
        let subject =
            Subject { source: &source, instance: &instance, digest: instance.digest(), hints: None };
        let asked = placement::Cell {
            workload: source.name.clone(),
            planner: cell.planner.clone(),
            wall: cell.planner_wall,
            memory: cell.memory,
            work: None,
            target: cell.target.map(|_| question.room().get()),
            seed: cell.seed,
            threads: 1,
            hints: None,
            repetition: 0,
        };
        let judged = self.planning.run(&subject, std::slice::from_ref(&asked), None)?;
        let Some(planning) = judged.into_iter().next() else { return Ok(()) };
        let (bound, evidence) = (planning.bound.value, planning.bound.evidence);
        judgement.planner_status = Some(planning.status);
        judgement.planner_reason.clone_from(&planning.reason);
        let own: Vec<Offset> = own_offsets(best);
        let planned = planning.plan.as_ref().filter(|_| planning.status.is_answer());
        let planned = planned.map(|plan| plan.as_plan().offsets.as_slice().to_vec());
        drop(planning);
        let base = question.problem.base();
        let mut placed = best.clone();
        let mut offsets = own;
        if let Some(planned) = planned {
            let moved = best.with_offsets(&question.problem, &planned)?;
            if moved.height() <= placed.height() {
                (placed, offsets) = (moved, planned);
            }
        }
        let bound = planlab_dsa::Bytes::new(bound.get().saturating_add(base.get()));
        let plan = Plan::from_offsets(offsets);
        judgement.placed = Some(Placed { schedule: placed, instance, plan, bound, evidence });
        Ok(())
    }
}

/// The offsets of a schedule, counted from its base.
fn own_offsets(schedule: &Verified) -> Vec<Offset> {
    let base = schedule.schedule().base.get();
    let offset =
        |buffer: &planlab_graph::ScheduledBuffer| buffer.offset.map_or(0, |offset| offset.get() - base);
    schedule.schedule().buffers.iter().map(|buffer| Offset::new(offset(buffer))).collect()
}
