//! Makes the row of a judged cell.

use planlab_dsa::{Bytes, Digest, Scope};
use planlab_results::{Lane, PlannerRun, Record, Row, SCHEMA};

use super::cell::{Cell, Subject};
use super::judge::Judgement;
use crate::cells::RowContext;
use crate::shell::quantity::as_nanoseconds;

/// The row of a judged cell; `plan` is the digest under which its plan is kept.
pub(crate) fn record(
    cell: &Cell,
    subject: &Subject<'_>,
    judgement: &Judgement<'_>,
    plan: Option<Digest>,
    context: RowContext<'_>,
) -> Record {
    Row {
        schema: SCHEMA,
        cell: cell.key(subject.digest),
        repetition: cell.repetition,
        run: PlannerRun {
            lane: if context.provenance.concurrency == 1 { Lane::Timing } else { Lane::Quality },
            suite: context.suite.to_owned(),
            workload: cell.workload.as_str().into(),
            instance: subject.digest.to_string(),
            buffers: subject.instance.len() as u64,
            planner: cell.planner.clone(),
            planner_version: cell.planner_version(),
            parameters: cell.parameters(),
            seed: cell.seed,
            wall_limit_ns: cell.wall.map(as_nanoseconds),
            memory_limit_bytes: cell.memory,
            work_limit: cell.work,
            target_bytes: cell.target,
            mechanism: context.mechanism.name().to_owned(),
            status: judgement.ending.status,
            stop: judgement.ending.stop,
            reason: judgement.ending.reason.clone(),
            exit_code: judgement.ending.exit_code,
            signal: judgement.ending.signal,
            stderr_tail: judgement.ending.stderr_tail.clone(),
            height: judgement.height().map(|height| height.get()),
            load: subject.instance.load_without_in_place().bytes.get(),
            relaxed_load: subject.instance.load().bytes.get(),
            bound: judgement.bound.value.get(),
            bound_evidence: judgement.bound.evidence,
            bound_scope: Scope::Any,
            hand_overs: judgement.plan.as_ref().map_or(0, |plan| plan.in_place().len() as u64),
            samples_ns: judgement.samples_ns.clone(),
            reported_ns: judgement.reported_ns,
            orders_run: None,
            orders_failed: None,
            order_bound: None,
            bound_without_in_place: judgement.without_in_place.map(Bytes::get),
            cpu_ns: judgement.ending.cpu_ns,
            work: judgement.ending.work,
            peak_rss_bytes: judgement.ending.peak_rss_bytes,
            trajectory: judgement.trajectory.clone(),
            plan: plan.map(|digest| digest.to_string()),
        },
        started_ns: context.started_ns,
        provenance: context.provenance,
    }
}
