//! Keeps rows of schedules, and the documents that they name, in a store.

use planlab_results::schedule::{Document, ScheduleRow};
use planlab_results::{Status, Store};

use super::row::{row, schedule_timeline};
use super::{Cell, Judgement, Question};
use crate::cells::RowContext;
use crate::shell::exit::Failure;

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
