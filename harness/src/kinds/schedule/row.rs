//! Makes the row of a judged cell, and keeps it in a store with the documents that it names.

use planlab_dsa::{Bytes, Digest, Evidence};
use planlab_graph::{Engine, Event, Machine, SchedulingProblem, Task, TrainingNet, Verified, compute_bound};
use planlab_results::schedule::{
    Document, MemoryStep, SCHEDULE_SCHEMA, ScheduleRow, SchedulerRun, Timeline, TimelineSpan,
};
use planlab_results::{Row, Status, Store};

use super::judge::{Judgement, counts};
use super::{Cell, Question};
use crate::cells::RowContext;
use crate::shell::exit::Failure;
use crate::shell::quantity::{as_nanoseconds, nanoseconds_of};

/// The schedules that bounds cover. Rows of older versions may have `classes`.
const ANY: &str = "any";

/// The row of a judged cell, without the digests of what the store keeps.
#[expect(clippy::too_many_lines, reason = "one row, all fields")]
fn row(question: &Question, cell: &Cell, judgement: &Judgement, context: RowContext<'_>) -> ScheduleRow {
    let Question { problem, .. } = question;
    let best = judgement.best.as_ref();
    let placed = judgement.placed.as_ref();
    let counts = best.map(|best| counts(&problem.net, best.schedule()).map(|count| count as u64));
    Row {
        schema: SCHEDULE_SCHEMA,
        cell: cell.key(&question.digest),
        repetition: cell.repetition,
        run: SchedulerRun {
            suite: context.suite.to_owned(),
            workload: question.workload.as_str().into(),
            problem: question.digest.clone(),
            batch: problem.net.batch(),
            functions: problem.net.functions().len() as u64,
            maps: problem.net.map_ids().filter(|&map| problem.net.is_retained(map)).count() as u64,
            machine: problem.machine.name.clone(),
            rates_digest: Some(rates_digest(&problem.machine)),
            times: Some(time_source(problem).to_owned()),
            copy_out: problem.machine.copy_out,
            copy_in: problem.machine.copy_in,
            capacity: problem.capacity.get(),
            base: problem.base().get(),
            in_core_bytes: Some(question.in_core_bytes()),
            least_memory: Some(judgement.least_memory.bytes.get()),
            least_memory_evidence: Some(judgement.least_memory.evidence.name().to_owned()),
            compute_ns: nanoseconds_of(compute_bound(problem).seconds),
            scheduler: cell.scheduler.clone(),
            scheduler_version: cell.version(),
            seed: cell.seed,
            wall_limit_ns: cell.wall.map(as_nanoseconds),
            memory_limit_bytes: cell.memory,
            work_limit: cell.work,
            threads: Some(cell.threads as u64),
            mechanism: context.mechanism.name().to_owned(),
            status: judgement.ending.status,
            stop: judgement.ending.stop,
            reason: judgement.ending.reason.clone(),
            exit_code: judgement.ending.exit_code,
            signal: judgement.ending.signal,
            stderr_tail: judgement.ending.stderr_tail.clone(),
            iteration_ns: best.map(|best| nanoseconds_of(best.seconds())),
            bound_ns: nanoseconds_of(judgement.bound.seconds),
            bound_evidence: judgement.bound.evidence.name().to_owned(),
            bound_scope: ANY.to_owned(),
            kept: counts.map(|counts| counts[0]),
            swapped: counts.map(|counts| counts[1]),
            recomputed: counts.map(|counts| counts[2]),
            copied_out: best.map(|best| copied_out(problem, best)),
            recompute_ns: best.map(recompute_ns),
            live_peak: best.map(|best| best.live_peak().get()),
            best_fit_height: best.map(|best| best.height().get()),
            height: judgement.height().map(|height| height.get()),
            height_bound: placed.map(|placed| placed.bound.get()),
            height_evidence: placed.map_or(Evidence::Load, |placed| placed.evidence),
            planner: cell.planner.clone(),
            planner_wall_ns: cell.planner_wall.map(as_nanoseconds),
            planner_status: judgement.planner_status.map_or("", Status::name).to_owned(),
            planner_reason: judgement.planner_reason.clone(),
            disturbed: judgement.disturbed.clone(),
            elapsed_ns: judgement.elapsed_ns,
            cpu_ns: judgement.ending.cpu_ns,
            peak_rss_bytes: judgement.ending.peak_rss_bytes,
            work: judgement.ending.work,
            trajectory: judgement.trajectory.clone(),
            instance: placed.map(|placed| placed.instance.digest().to_string()),
            plan: None,
            schedule: None,
        },
        started_ns: context.started_ns,
        provenance: context.provenance,
    }
}

/// Digest of a machine's rates. Capacity and workspace are left out: rows have the first, and the second may follow the
/// batch.
fn rates_digest(machine: &Machine) -> String {
    let machine = Machine { capacity: Bytes::ZERO, workspace: Bytes::ZERO, ..machine.clone() };
    Digest::of_bytes(machine.to_toml().as_bytes()).to_string()
}

fn time_source(problem: &SchedulingProblem) -> &'static str {
    if problem.times == problem.machine.roofline_times(&problem.net) { "roofline" } else { "given" }
}

fn copied_out(problem: &SchedulingProblem, schedule: &Verified) -> u64 {
    let bytes = |event: &Event| match event.task {
        Task::CopyOut(map) => problem.net.map(map).bytes.get(),
        _ => 0,
    };
    schedule.schedule().events_of(Engine::Out).iter().map(bytes).sum()
}

fn recompute_ns(schedule: &Verified) -> u64 {
    let is_again = |event: &&Event| matches!(event.task, Task::Recompute(_));
    let events = schedule.schedule().events_of(Engine::Compute).iter();
    nanoseconds_of(events.filter(is_again).map(|event| event.seconds).sum())
}

/// The timeline of a schedule, for reports to draw.
fn schedule_timeline(problem: &SchedulingProblem, schedule: &Verified) -> Timeline {
    let mut spans = Vec::new();
    for engine in Engine::ALL {
        let events =
            schedule.schedule().events_of(engine).iter().zip(&schedule.timeline().spans[engine.index()]);
        spans.extend(events.map(|(event, span)| TimelineSpan {
            engine: engine.name().to_owned(),
            task: event.task.name().to_owned(),
            name: task_object(&problem.net, event.task).to_owned(),
            bytes: schedule.schedule().moved_bytes(event).get(),
            start_ns: nanoseconds_of(span.start),
            end_ns: nanoseconds_of(span.end),
        }));
    }
    let step = |&(at, bytes): &(f64, planlab_dsa::Bytes)| MemoryStep {
        at_ns: nanoseconds_of(at),
        bytes: bytes.get(),
    };
    Timeline {
        spans,
        memory: schedule.timeline().memory.iter().map(step).collect(),
        capacity: problem.capacity.get(),
        iteration_ns: nanoseconds_of(schedule.seconds()),
    }
}

/// The name of a task's function or feature map.
pub(crate) fn task_object(net: &TrainingNet, task: Task) -> &str {
    match task {
        Task::Forward(id) | Task::Recompute(id) | Task::Backward(id) => &net.function(id).name,
        Task::Accumulate(id) | Task::CopyOut(id) | Task::CopyIn(id) => &net.map(id).name,
    }
}

/// Keeps the problem, the schedule with its timeline and placement, and then the row that names them.
pub(crate) fn keep(
    store: &mut Store,
    question: &Question,
    cell: &Cell,
    judgement: &Judgement,
    context: RowContext<'_>,
) -> Result<ScheduleRow, Failure> {
    let mut row = row(question, cell, judgement, context);
    // An interrupted cell has no row.
    if judgement.ending.status == Status::Interrupted {
        return Ok(row);
    }
    store.put_document(Document::Problem, &question.text)?;
    let kept = judgement.placed.as_ref().map(|placed| &placed.schedule).or(judgement.best.as_ref());
    if let Some(schedule) = kept {
        let digest = store.put_document(Document::Schedule, &schedule.schedule().write_jsonl())?;
        store.put_timeline(&digest, &schedule_timeline(&question.problem, schedule))?;
        row.schedule = Some(digest);
    }
    row.plan = placement(store, judgement)?;
    store.append_schedule(&row)?;
    Ok(row)
}

/// Keeps the placement problem and its plan; returns the plan's digest.
#[cfg(feature = "reports")]
fn placement(store: &Store, judgement: &Judgement) -> Result<Option<String>, Failure> {
    let Some(placed) = &judgement.placed else { return Ok(None) };
    store.put_instance(&placed.instance, &planlab_dsa::Labels::from_numbers(placed.instance.len()))?;
    Ok(Some(store.put_plan(&placed.plan)?.to_string()))
}

#[cfg(not(feature = "reports"))]
#[expect(clippy::unnecessary_wraps, reason = "the lean build keeps rows and documents alone")]
fn placement(_store: &Store, judgement: &Judgement) -> Result<Option<String>, Failure> {
    debug_assert!(judgement.placed.as_ref().is_none_or(|placed| !placed.plan.offsets.is_empty()));
    Ok(None)
}
