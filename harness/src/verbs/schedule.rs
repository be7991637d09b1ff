//! `schedule`: what a net that does not fit keeps, swaps to the host and recomputes, and what that costs.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use planlab_dsa::{Bytes, Labels};
use planlab_files::TemporaryFolder;
use planlab_graph::{
    Machine, Schedule, ScheduleBudget, ScheduleOutcome, SchedulingProblem, Task, Times, TrainingNet,
    Verified, execute_scheduler, validate,
};
use planlab_results::Status;
use planlab_results::table::{Table, Value as Shown};
use planlab_solvers::schedule::{scheduler, scheduler_keys};
use planlab_workloads::formats::write_trace;
use planlab_workloads::models::Mode;
use planlab_workloads::{Trace, did_you_mean, glob, nearest};
use serde_json::{Value, json};

use crate::cli::ScheduleArgs;
use crate::inputs::network::{source_file, spec};
use crate::inputs::{self};
use crate::planning::{Cell, Runner, Samples, Subject, planners};
use crate::shell::JSON_VERSION;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, note};
use crate::shell::progress::Progress;
use crate::shell::quantity::percent;
use crate::shell::signals::cancel_token;
use crate::shell::target::{Target, scratch};

/// Wall time of a scheduler, if none is named.
const WALL: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &ScheduleArgs, output: Output) -> Verdict {
    if let Some(path) = &args.output {
        output.refuse_stdout("schedule", path)?;
    }
    planners::find(&args.planner)?;
    let problem = problem(args)?;
    if let Some(file) = &args.check {
        return check(&problem, file, output);
    }
    refuse_hopeless(&problem)?;
    let keys = matching(&args.schedulers)?;
    let target = args.output.as_ref().map(|path| Target::open(path)).transpose()?;
    let scratch = scratch()?;
    let mut study = Study {
        args,
        problem: &problem,
        runner: Runner::new(cancel_token(), Samples::ONCE)?,
        scratch: &scratch,
        rows: Vec::new(),
    };
    let bar = Progress::new(keys.len() as u64, "schedulers");
    for key in &keys {
        if study.runner.cancel().is_cancelled() {
            break;
        }
        bar.set_message(key.clone());
        study.run(key)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    let exit = study.exit();
    let best = study.best();
    let written = match (target, best) {
        (Some(target), Some(best)) => target.write(best.schedule().write_jsonl().as_bytes()),
        (Some(_), None) => Err(Failure::new(Exit::Incomplete, "no schedule fits, so none is written")),
        (None, _) => Ok(()),
    };
    match args.output.as_deref() {
        // The schedule is what stdout has.
        Some("-") => note(study.text().trim_end()),
        _ => output.put(&study.object(), &study.text())?,
    }
    written.map(|()| exit)
}

/// The net in training on the machine.
fn problem(args: &ScheduleArgs) -> Result<SchedulingProblem, Failure> {
    let spec = spec(&args.net.net, &args.net.shape, args.batch)?;
    if spec.mode != Mode::Train {
        return Err(Failure::usage("`schedule` plans training; inference keeps no feature maps"));
    }
    let machine = machine(&args.machine)?;
    let machine = match args.link {
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        Some(link) => machine.with_link(link as f64),
        None => machine,
    };
    let mut problem = SchedulingProblem::new(spec.feature_maps()?, machine);
    if let Some(file) = &args.times {
        let text = inputs::document(file)?;
        let times = Times::from_csv(&problem.machine, &problem.net, inputs::name(file), &text)?;
        problem = problem.with_times(times);
    }
    Ok(match args.capacity {
        Some(capacity) => problem.with_capacity(Bytes::new(capacity)),
        None => problem,
    })
}

fn machine(argument: &str) -> Result<Machine, Failure> {
    if let Some(machine) = Machine::built_in(argument) {
        return Ok(machine);
    }
    if argument == "-" || argument.ends_with(".toml") {
        return Ok(Machine::from_toml(inputs::name(argument), &inputs::document(argument)?)?);
    }
    let near = nearest(argument, Machine::BUILT_IN);
    Err(Failure::usage(format!("there is no machine `{argument}`{}", did_you_mean(&near))))
}

/// Refuses a capacity in which no schedule can run: the base, or one function with its inputs and its output, takes more.
fn refuse_hopeless(problem: &SchedulingProblem) -> Result<(), Failure> {
    let (net, capacity, base) = (&problem.net, problem.capacity, problem.base());
    let refuse =
        |what: String| Failure::usage(format!("a capacity of {capacity} bytes cannot be met: {what}"));
    let Some(room) = capacity.get().checked_sub(base.get()) else {
        return Err(refuse(format!("parameters and workspace alone take {base}")));
    };
    for function in net.functions() {
        let maps = function.inputs.iter().chain([&function.output]);
        let bytes: u64 = maps.map(|&map| net.map(map).bytes.get()).sum();
        if bytes > room {
            let name = &function.name;
            return Err(refuse(format!(
                "function `{name}` alone takes {bytes}, beside {base} of parameters and workspace"
            )));
        }
    }
    Ok(())
}

/// The schedulers that one of the globs matches; without a glob, all.
fn matching(globs: &[String]) -> Result<Vec<String>, Failure> {
    let keys = scheduler_keys();
    for wanted in globs {
        if !keys.iter().any(|key| glob(wanted, key)) {
            let near = nearest(wanted, keys.iter().map(String::as_str));
            return Err(Failure::usage(format!("there is no scheduler `{wanted}`{}", did_you_mean(&near))));
        }
    }
    let is_wanted = |key: &String| globs.is_empty() || globs.iter().any(|wanted| glob(wanted, key));
    Ok(keys.into_iter().filter(is_wanted).collect())
}

/// Validates a schedule from a file, in the memory of the machine.
fn check(problem: &SchedulingProblem, file: &str, output: Output) -> Verdict {
    let name = inputs::name(file);
    let schedule = Schedule::read_jsonl(name, &inputs::document(file)?)?;
    match validate(problem, &schedule, Some(problem.capacity)) {
        Ok(audited) => {
            let speed = problem.images_per_second(audited.seconds);
            let value = json!({
                "version": JSON_VERSION,
                "valid": true,
                "seconds": audited.seconds,
                "images_per_second": speed,
                "height": audited.height,
            });
            let text = format!(
                "valid\nseconds  {:.6}\nimages   {speed:.1} a second\nheight   {}\n",
                audited.seconds, audited.height
            );
            output.put(&value, &text)?;
            Ok(Exit::Complete)
        }
        Err(violation) => {
            let message = violation.to_string();
            let value = json!({ "version": JSON_VERSION, "valid": false, "message": message });
            output.put(&value, &format!("not valid: {message}\n"))?;
            Ok(Exit::Invalid)
        }
    }
}

/// What one scheduler came to.
struct Row {
    scheduler: String,
    /// `None` if it panicked.
    outcome: Option<ScheduleOutcome>,
    /// The same schedule with the planner's offsets; `None` without a schedule or a plan.
    planned: Option<Verified>,
}

struct Study<'a> {
    args: &'a ScheduleArgs,
    problem: &'a SchedulingProblem,
    runner: Runner,
    scratch: &'a TemporaryFolder,
    rows: Vec<Row>,
}

impl Study<'_> {
    fn run(&mut self, key: &str) -> Result<(), Failure> {
        let Some(scheduler) = scheduler(key) else { return Ok(()) };
        let budget = ScheduleBudget {
            wall: Some(self.args.limits.time_limit.unwrap_or(WALL)),
            work: self.args.limits.work_limit,
            cancel: self.runner.cancel().clone(),
            ..ScheduleBudget::default()
        };
        let attempt = || execute_scheduler(&*scheduler, self.problem, budget, self.args.limits.seed);
        let outcome = catch_unwind(AssertUnwindSafe(attempt)).ok();
        let planned = match outcome.as_ref().and_then(|outcome| outcome.best.as_ref()) {
            Some(best) => self.place(key, best)?,
            None => None,
        };
        self.rows.push(Row { scheduler: key.to_owned(), outcome, planned });
        Ok(())
    }

    /// The schedule with the planner's offsets, or its own where they are lower.
    fn place(&self, key: &str, schedule: &Verified) -> Result<Option<Verified>, Failure> {
        let instance = schedule.instance()?;
        let file = self.scratch.path().join("schedule.csv");
        let name = format!("{} by {key}", self.problem.net.name());
        fs::write(&file, write_trace(&Trace::new(instance.clone(), Labels::numbered(instance.len()))))?;
        let source = source_file(&name, file);
        let subject =
            Subject { source: &source, instance: &instance, digest: instance.digest(), hints: None };
        let cell = Cell::of(&source, &self.args.planner, &self.args.limits);
        let judged = self.runner.run(&subject, std::slice::from_ref(&cell), None)?;
        let judgement = judged.first().filter(|judgement| judgement.status.is_answer());
        let Some(plan) = judgement.and_then(|judgement| judgement.plan.as_ref()) else {
            let status = judged.first().map_or(Status::Unknown, |judgement| judgement.status);
            note(&format!("{name}: {}: {}", self.args.planner, status.name()));
            return Ok(None);
        };
        let planned = schedule.with_offsets(self.problem, plan.as_plan().offsets.as_slice());
        let planned = planned.map_err(|error| Failure::new(Exit::Invalid, error))?;
        Ok(Some(if planned.height() <= schedule.height() { planned } else { schedule.clone() }))
    }

    /// The fastest schedule whose offsets fit.
    fn best(&self) -> Option<&Verified> {
        let fits = |schedule: &&Verified| schedule.height() <= self.problem.capacity;
        let all = self.rows.iter().filter_map(|row| row.planned.as_ref()).filter(fits);
        all.min_by(|a, b| a.seconds().total_cmp(&b.seconds()))
    }

    fn exit(&self) -> Exit {
        let failed = |row: &Row| row.outcome.as_ref().is_none_or(|outcome| outcome.end.is_err());
        if self.runner.cancel().is_cancelled() {
            Exit::Interrupted
        } else if self.rows.iter().any(failed) {
            Exit::Invalid
        } else if self.best().is_none() {
            Exit::Incomplete
        } else {
            Exit::Complete
        }
    }

    /// The speed of an iteration that nothing slows down: every pass of every function, once.
    fn unlimited(&self) -> f64 {
        let bounds = self.rows.iter().filter_map(|row| row.outcome.as_ref()?.bounds.first());
        self.problem.images_per_second(bounds.map(|bound| bound.seconds).fold(0.0, f64::max))
    }

    fn text(&self) -> String {
        let mut table = Table::new(&[
            "scheduler",
            "images/s",
            "slower",
            "keep",
            "swap",
            "recompute",
            "live peak",
            "height",
            "gap",
            "remark",
        ]);
        let unlimited = self.unlimited();
        for row in &self.rows {
            let facts = row.facts(self.problem);
            let count = |number: Option<usize>| Shown::or_missing(number.map(Shown::count));
            table.push(vec![
                Shown::text(&row.scheduler),
                Shown::text(facts.speed.map_or_else(String::new, |speed| format!("{speed:.1}"))),
                Shown::text(
                    facts.speed.map_or_else(String::new, |speed| percent(Some(1.0 - speed / unlimited))),
                ),
                count(facts.counts.map(|counts| counts[0])),
                count(facts.counts.map(|counts| counts[1])),
                count(facts.counts.map(|counts| counts[2])),
                Shown::or_missing(facts.live_peak.map(Shown::Bytes)),
                Shown::or_missing(facts.height.map(Shown::Bytes)),
                Shown::text(percent(facts.gap)),
                Shown::text(facts.remark),
            ]);
        }
        let (net, machine) = (&self.problem.net, &self.problem.machine);
        let bytes = |bytes: Bytes| Shown::Bytes(bytes.get()).shown();
        format!(
            "{} at batch {} on {}: {} of memory, {} of it reserved; {unlimited:.1} images/s if all of it fitted\n\n{}",
            net.name(),
            net.batch(),
            machine.name,
            bytes(self.problem.capacity),
            bytes(self.problem.base()),
            table.render()
        )
    }

    fn object(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let facts = row.facts(self.problem);
            json!({
                "scheduler": row.scheduler,
                "seconds": facts.seconds,
                "images_per_second": facts.speed,
                "kept": facts.counts.map(|counts| counts[0]),
                "swapped": facts.counts.map(|counts| counts[1]),
                "recomputed": facts.counts.map(|counts| counts[2]),
                "live_peak": facts.live_peak,
                "height": facts.height,
                "fits": facts.height.map(|height| height <= self.problem.capacity.get()),
                "gap": facts.gap,
                "remark": facts.remark,
            })
        });
        json!({
            "version": JSON_VERSION,
            "net": self.problem.net.name(),
            "batch": self.problem.net.batch(),
            "machine": self.problem.machine.name,
            "capacity": self.problem.capacity,
            "base": self.problem.base(),
            "images_per_second": self.unlimited(),
            "schedules": rows.collect::<Vec<_>>(),
        })
    }
}

/// What is shown of a row.
#[derive(Default)]
struct Facts {
    seconds: Option<f64>,
    speed: Option<f64>,
    /// Feature maps that are kept, swapped and recomputed.
    counts: Option<[usize; 3]>,
    live_peak: Option<u64>,
    height: Option<u64>,
    gap: Option<f64>,
    remark: String,
}

impl Row {
    fn facts(&self, problem: &SchedulingProblem) -> Facts {
        let Some(outcome) = &self.outcome else {
            return Facts { remark: "panicked".to_owned(), ..Facts::default() };
        };
        let Some(best) = &outcome.best else {
            let remark = match (&outcome.end, &outcome.shortfall) {
                (Err(error), _) => error.to_string(),
                (_, Some(shortfall)) => shortfall.clone(),
                (Ok(stop), None) => stop.name().to_owned(),
            };
            return Facts { remark, ..Facts::default() };
        };
        let height = self.planned.as_ref().map(|planned| planned.height());
        let remark = match (&outcome.end, height) {
            (Err(error), _) => error.to_string(),
            (Ok(_), Some(height)) if height > problem.capacity => "its offsets do not fit".to_owned(),
            _ => String::new(),
        };
        Facts {
            seconds: Some(best.seconds()),
            speed: Some(problem.images_per_second(best.seconds())),
            counts: Some(counts(&problem.net, best.schedule())),
            live_peak: Some(best.live_peak().get()),
            height: height.map(Bytes::get),
            gap: outcome.gap(),
            remark,
        }
    }
}

/// How many of the maps that a backward pass reads a schedule keeps, swaps and recomputes.
fn counts(net: &TrainingNet, schedule: &Schedule) -> [usize; 3] {
    let mut counts = [0; 3];
    let tasks = || schedule.events.iter().flatten().map(|event| event.task);
    for map in net.map_ids().filter(|&map| net.is_retained(map)) {
        let is_swapped = tasks().any(|task| task == Task::CopyIn(map));
        let is_recomputed =
            tasks().any(|task| matches!(task, Task::Recompute(id) if net.function(id).output == map));
        counts[if is_swapped { 1 } else { 2 * usize::from(is_recomputed) }] += 1;
    }
    counts
}
