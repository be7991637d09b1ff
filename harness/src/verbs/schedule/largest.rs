//! `schedule --loss`: the largest batch at which a scheduler loses at most so much speed.
//!
//! The batch is doubled until it no longer does, and then bisected: a batch above the answer that fits again is not
//! found.

use std::num::NonZeroU64;

use planlab_graph::compute_bound;
use planlab_results::table::{Table, Value as Shown};
use serde_json::{Value, json};

use super::{cell, question};
use crate::cli::ScheduleArgs;
use crate::inputs::network::is_file;
use crate::scheduling::{Runner, matching};
use crate::shell::JSON_VERSION;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::Output;
use crate::shell::progress::Progress;
use crate::shell::quantity::percent;
use crate::shell::signals::cancel_token;

/// No batch above is tried.
const MOST: u64 = 1 << 20;

/// A batch that fits.
#[derive(Clone, Copy)]
struct Fit {
    batch: u64,
    images_per_second: f64,
    loss: f64,
}

/// The search for one scheduler.
struct Search<'a> {
    args: &'a ScheduleArgs,
    scheduler: &'a str,
    loss: f64,
    runner: &'a Runner,
}

pub(super) fn run(args: &ScheduleArgs, loss: f64, output: Output) -> Verdict {
    if args.net.starts_with("model/") {
        return Err(Failure::usage(format!("`{}` names one batch; name the net alone", args.net)));
    }
    if is_file(&args.net) && args.measured_batch.is_none() {
        return Err(Failure::usage(
            "--loss needs a net that can be made for any batch; a training net has one",
        ));
    }
    let runner = Runner::new(cancel_token())?;
    let keys = matching(&args.schedulers)?;
    // A machine or a net that is misspelt is refused before anything runs.
    question(args, NonZeroU64::new(1))?;
    let bar = Progress::new(keys.len() as u64, "schedulers");
    let mut rows: Vec<(String, Option<Fit>)> = Vec::new();
    for key in &keys {
        bar.set_message(key.clone());
        let found = Search { args, scheduler: key, loss, runner: &runner }.largest()?;
        if runner.cancel().is_cancelled() {
            break;
        }
        rows.push((key.clone(), found));
        bar.inc(1);
    }
    bar.finish_and_clear();
    let mut table = Table::new(&["scheduler", "largest batch", "images/s", "slower"]);
    for (key, fit) in &rows {
        table.push(vec![
            Shown::text(key),
            Shown::or_missing(fit.map(|fit| Shown::count(usize::try_from(fit.batch).unwrap_or(usize::MAX)))),
            Shown::text(fit.map_or_else(String::new, |fit| format!("{:.1}", fit.images_per_second))),
            Shown::text(fit.map_or_else(String::new, |fit| percent(Some(fit.loss)))),
        ]);
    }
    let object = |(key, fit): &(String, Option<Fit>)| -> Value {
        json!({
            "scheduler": key,
            "batch": fit.map(|fit| fit.batch),
            "images_per_second": fit.map(|fit| fit.images_per_second),
            "loss": fit.map(|fit| fit.loss),
        })
    };
    let value = json!({
        "version": JSON_VERSION,
        "net": args.net,
        "loss": loss,
        "schedulers": rows.iter().map(object).collect::<Vec<_>>(),
    });
    let text = format!(
        "{}: the largest batch that fits with its offsets, at most {} slower than if all of it fitted\n\n{}",
        args.net,
        percent(Some(loss)),
        table.render()
    );
    output.put(&value, &text)?;
    Ok(match rows.iter().any(|(_, fit)| fit.is_some()) {
        _ if runner.cancel().is_cancelled() => Exit::Interrupted,
        true => Exit::Complete,
        false => Exit::Incomplete,
    })
}

impl Search<'_> {
    fn largest(&self) -> Result<Option<Fit>, Failure> {
        let mut best = None;
        let (mut good, mut bad) = (0, 1);
        while bad <= MOST
            && let Some(fit) = self.fits(bad)?
        {
            best = Some(fit);
            (good, bad) = (bad, bad * 2);
        }
        while bad - good > 1 {
            let middle = u64::midpoint(good, bad);
            match self.fits(middle)? {
                Some(fit) => {
                    best = Some(fit);
                    good = middle;
                }
                None => bad = middle,
            }
        }
        Ok(best)
    }

    /// What the scheduler comes to at a batch, if that is fast enough and fits.
    fn fits(&self, batch: u64) -> Result<Option<Fit>, Failure> {
        if self.runner.cancel().is_cancelled() {
            return Ok(None);
        }
        let question = question(self.args, NonZeroU64::new(batch))?;
        if question.hopeless().is_some() {
            return Ok(None);
        }
        let judgement = self.runner.run(&question, &cell(self.args, self.scheduler))?;
        let Some(best) = judgement.best.as_ref().filter(|_| judgement.fits(&question.problem)) else {
            return Ok(None);
        };
        let loss = (1.0 - compute_bound(&question.problem).seconds / best.seconds()).max(0.0);
        let images_per_second = question.problem.images_per_second(best.seconds());
        Ok((judgement.status.is_answer() && loss <= self.loss).then_some(Fit {
            batch,
            images_per_second,
            loss,
        }))
    }
}
