//! Runs cells: the scheduler in a child, then the planner that places its schedule.

use std::fs;
use std::io;
use std::path::Path;

use planlab_dsa::{Bytes, CancelToken, Labels, Offset, Plan};
use planlab_graph::{ScheduledBuffer, Verified};
use planlab_workloads::Trace;
use planlab_workloads::formats::write_trace;

use super::disturb::disturb_times;
use super::judge::{Judgement, Placed, judge};
use super::kind::Scheduling;
use super::messages::CellRequest;
use super::question::resolve_scheduler;
use super::{Cell, Question};
use crate::cells::{Order, Supervisor};
use crate::inputs::network::source_file;
use crate::kinds::placement::{self, Samples, Subject};
use crate::shell::exit::{Exit, Failure};
use crate::shell::quantity::as_nanoseconds;

/// Starts children and judges their answers.
pub(crate) struct Runner {
    placement: placement::Runner,
}

impl Runner {
    /// A runner whose cells end early once `cancel` is set.
    pub(crate) fn new(cancel: CancelToken) -> io::Result<Self> {
        Ok(Self { placement: placement::Runner::new(cancel, Samples::ONCE)? })
    }

    /// The supervisor of the children.
    pub(crate) fn supervisor(&self) -> &Supervisor {
        self.placement.supervisor()
    }

    pub(crate) fn cancel(&self) -> &CancelToken {
        self.placement.cancel()
    }

    /// Runs a cell and judges it.
    ///
    /// # Errors
    ///
    /// If no child can be started or its files cannot be written. A failure of the child itself is not an error.
    pub(crate) fn run(&self, question: &Question, cell: &Cell) -> Result<Judgement, Failure> {
        let folder = self.supervisor().folder()?;
        let source = folder.join("problem.jsonl");
        fs::write(&source, &question.text)?;
        let asked = CellRequest {
            scheduler: cell.scheduler.clone(),
            seed: cell.seed,
            wall_ns: cell.wall.map(as_nanoseconds),
            work: cell.work,
            target: cell.target,
            threads: cell.threads,
        };
        let order = Order { source: &source, cells: &[asked], memory: cell.memory, core: None };
        let end = self.supervisor().run::<Scheduling>(&order)?.pop();
        let end =
            end.ok_or_else(|| Failure::new(Exit::Incomplete, "the child did not answer for its cell"))?;
        let mut judgement = judge(question, &*resolve_scheduler(&cell.scheduler)?, end);
        if let Some(best) = judgement.best.clone() {
            self.place(question, cell, &best, &folder, &mut judgement)?;
            if cell.target.is_none() {
                judgement.disturbed = disturb_times(&question.problem, &best);
            }
        }
        if self.cancel().is_cancelled() {
            judgement.mark_interrupted();
        }
        fs::remove_dir_all(&folder)?;
        Ok(judgement)
    }

    /// Gives the schedule the planner's offsets, or leaves its own if they are lower; returns how the planner ended.
    fn place(
        &self,
        question: &Question,
        cell: &Cell,
        best: &Verified,
        folder: &Path,
        judgement: &mut Judgement,
    ) -> Result<(), Failure> {
        let instance = best.placement_problem()?;
        let file = folder.join("buffers.csv");
        fs::write(&file, write_trace(&Trace::new(instance.clone(), Labels::from_numbers(instance.len()))))?;
        let source = source_file(&format!("{} by {}", question.workload, cell.scheduler), file);
        let subject =
            Subject { source: &source, instance: &instance, digest: instance.digest(), hints: None };
        let asked = placement::Cell {
            workload: source.name.clone(),
            planner: cell.planner.clone(),
            wall: cell.planner_wall,
            memory: cell.memory,
            work: None,
            target: cell.target.map(|_| question.room_above_base().get()),
            seed: cell.seed,
            threads: 1,
            hints: None,
            repetition: 0,
        };
        let judged = self.placement.run(&subject, std::slice::from_ref(&asked), None)?;
        let Some(planning) = judged.into_iter().next() else { return Ok(()) };
        let (bound, evidence) = (planning.bound.value, planning.bound.evidence);
        judgement.planner_status = Some(planning.ending.status);
        judgement.planner_reason.clone_from(&planning.ending.reason);
        let planned = planning.plan.as_ref().filter(|_| planning.ending.status.is_answer());
        let planned = planned.map(|plan| plan.as_plan().offsets.as_slice().to_vec());
        drop(planning);
        let base = question.problem.base();
        let (mut placed, mut offsets) = (best.clone(), own_offsets(best));
        if let Some(planned) = planned {
            let moved = best.with_offsets(&question.problem, &planned)?;
            if moved.height() <= placed.height() {
                (placed, offsets) = (moved, planned);
            }
        }
        let bound = Bytes::new(bound.get().saturating_add(base.get()));
        let plan = Plan::from_offsets(offsets);
        judgement.placed = Some(Placed { schedule: placed, instance, plan, bound, evidence });
        Ok(())
    }
}

/// The offsets of a schedule, counted from its base.
fn own_offsets(schedule: &Verified) -> Vec<Offset> {
    let base = schedule.schedule().base.get();
    let offset = |buffer: &ScheduledBuffer| buffer.offset.map_or(0, |offset| offset.get() - base);
    schedule.schedule().buffers.iter().map(|buffer| Offset::new(offset(buffer))).collect()
}
