//! `schedule --loss`: finds the largest batch at which a scheduler loses at most the given share of the speed.
//!
//! The batch is doubled until one fails. Then the eighths of that last range are tried from the top, and the range
//! above the first success is bisected. Neither speed nor memory changes evenly with the batch, so an untried larger
//! batch may succeed.

use std::num::NonZeroU64;

use planlab_graph::compute_bound;
use planlab_results::Status;
use planlab_results::table::{CellValue as Shown, Table};
use serde_json::{Value, json};

use super::question::{cell, question};
use crate::cli::ScheduleArgs;
use crate::inputs::network::is_file;
use crate::kinds::schedule::{Cell, Runner, has_any_batch, matching_schedulers};
use crate::shell::JSON_VERSION;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::Output;
use crate::shell::progress::Progress;
use crate::shell::quantity::format_percent;
use crate::shell::signals::cancel_token;
use crate::shell::text::Text;

/// The largest batch that is tried.
const MOST: u64 = 1 << 20;
/// Parts of the range between a batch that succeeds and one that fails.
const EIGHTHS: u64 = 8;
/// Tolerance, so that a loss of exactly the given share counts.
const ROUNDING: f64 = 1e-12;

/// A batch that fits.
#[derive(Clone, Copy)]
struct Fit {
    batch: u64,
    images_per_second: f64,
    loss: f64,
}

/// The result of one scheduler.
#[derive(Clone, Default)]
struct LargestBatch {
    fit: Option<Fit>,
    /// The failure at the last batch at which it crashed, hung or gave a false answer. Such a batch counts as one that
    /// does not fit.
    failure: Option<(Status, String)>,
}

/// The search for one scheduler.
struct ScheduleBatchSearch<'a> {
    args: &'a ScheduleArgs,
    scheduler: &'a str,
    loss: f64,
    runner: &'a Runner,
}

pub(super) fn run(args: &ScheduleArgs, loss: f64, output: Output) -> Verdict {
    if args.net.starts_with("model/") {
        return Err(Failure::from_usage(format!("`{}` names one batch; name the net alone", args.net)));
    }
    if args.net == "-" {
        return Err(Failure::from_usage("--loss reads the net for each batch; name a file instead of `-`"));
    }
    if is_file(&args.net) && !has_any_batch(&args.net, &args.dims)? {
        return Err(Failure::from_usage(
            "--loss needs a net that can be made for any batch; a training net has one batch, and so has a model of \
             ONNX unless its batch is dynamic",
        ));
    }
    let runner = Runner::new(cancel_token())?;
    let keys = matching_schedulers(&args.schedulers)?;
    // A misspelt machine or net is refused before anything runs.
    question(args, NonZeroU64::new(1))?;
    let bar = Progress::new(keys.len() as u64, "schedulers");
    let mut rows: Vec<Row> = Vec::new();
    for key in &keys {
        bar.set_message(key.clone());
        let found = ScheduleBatchSearch { args, scheduler: key, loss, runner: &runner }.largest_batch()?;
        if runner.cancel().is_cancelled() {
            break;
        }
        rows.push((key.clone(), found));
        bar.inc(1);
    }
    bar.finish_and_clear();
    let value = json!({
        "version": JSON_VERSION,
        "net": args.net,
        "loss": loss,
        "schedulers": rows.iter().map(row_object).collect::<Vec<_>>(),
    });
    let head = format!(
        "{}: the largest batch found that fits with its offsets, at most {} slower than without a limit of memory; schedulers stop \
         at the first schedule that is fast enough\n\n",
        args.net,
        format_percent(Some(loss)),
    );
    output.print_either(&value, Text::from(head) + rows_table(&rows))?;
    Ok(exit_of(&rows, runner.cancel().is_cancelled()))
}

/// A scheduler and its result.
type Row = (String, LargestBatch);

fn rows_table(rows: &[Row]) -> Table {
    let mut table = Table::new(&["scheduler", "largest batch", "images/s", "slower", "remark"]);
    for (key, LargestBatch { fit, failure }) in rows {
        table.push(vec![
            Shown::text(key),
            Shown::or_missing(fit.map(|fit| Shown::count(usize::try_from(fit.batch).unwrap_or(usize::MAX)))),
            Shown::text(fit.map_or_else(String::new, |fit| format!("{:.1}", fit.images_per_second))),
            Shown::text(fit.map_or_else(String::new, |fit| format_percent(Some(fit.loss)))),
            Shown::text(failure.as_ref().map_or("", |(_, reason)| reason)),
        ]);
    }
    table
}

fn row_object((key, LargestBatch { fit, failure }): &Row) -> Value {
    json!({
        "scheduler": key,
        "batch": fit.map(|fit| fit.batch),
        "images_per_second": fit.map(|fit| fit.images_per_second),
        "loss": fit.map(|fit| fit.loss),
        "remark": failure.as_ref().map(|(_, reason)| reason),
    })
}

fn exit_of(rows: &[Row], is_cancelled: bool) -> Exit {
    let failures = || rows.iter().filter_map(|(_, found)| found.failure.as_ref());
    let is_incomplete = failures().next().is_some() || rows.iter().all(|(_, found)| found.fit.is_none());
    Exit::first_of([
        (Exit::Interrupted, is_cancelled),
        (Exit::Invalid, failures().any(|(status, _)| status.is_lie())),
        (Exit::Incomplete, is_incomplete),
    ])
}

impl ScheduleBatchSearch<'_> {
    fn largest_batch(&self) -> Result<LargestBatch, Failure> {
        let mut found = LargestBatch::default();
        let (mut good, mut bad) = (0, 1);
        while bad <= MOST && self.fits_batch(bad, &mut found)? {
            (good, bad) = (bad, bad * 2);
        }
        let step = (bad - good) / EIGHTHS;
        for eighth in (1..EIGHTHS).rev().filter(|_| step > 1) {
            if self.fits_batch(good + eighth * step, &mut found)? {
                (good, bad) = (good + eighth * step, good + (eighth + 1) * step);
                break;
            }
            bad = good + eighth * step;
        }
        while bad - good > 1 {
            let middle = u64::midpoint(good, bad);
            if self.fits_batch(middle, &mut found)? {
                good = middle;
            } else {
                bad = middle;
            }
        }
        Ok(found)
    }

    /// Whether the scheduler is fast enough at a batch and fits. Keeps the result, or the failure.
    fn fits_batch(&self, batch: u64, found: &mut LargestBatch) -> Result<bool, Failure> {
        if self.runner.cancel().is_cancelled() {
            return Ok(false);
        }
        let question = question(self.args, NonZeroU64::new(batch))?;
        let compute = compute_bound(&question.problem);
        let target = Some(compute.seconds / (1.0 - self.loss).max(f64::MIN_POSITIVE));
        let cell = Cell { target, ..cell(self.args, self.scheduler) };
        let judgement = self.runner.run(&question, &cell)?;
        let status = judgement.ending.status;
        if status.is_failure() {
            found.failure =
                Some((status, format!("batch {batch}: {}: {}", status.name(), judgement.ending.reason)));
            return Ok(false);
        }
        let Some(best) = judgement.best.as_ref().filter(|_| judgement.fits(&question.problem)) else {
            return Ok(false);
        };
        let loss = compute.speed_loss(best.seconds()).max(0.0);
        let images_per_second = question.problem.images_per_second(best.seconds());
        let is_enough = status.is_answer() && loss <= self.loss + ROUNDING;
        if is_enough {
            found.fit = Some(Fit { batch, images_per_second, loss });
        }
        Ok(is_enough)
    }
}
