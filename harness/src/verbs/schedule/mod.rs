//! `schedule`: finds what a net that does not fit should keep, swap to the host and recompute, and the cost.

mod check;
mod largest;
mod question;

use planlab_dsa::Bytes;
use planlab_graph::{FeatureMap, ScheduleBudget, Verified, compute_bound};
use planlab_results::table::{CellValue as Shown, Table};
use planlab_results::{Status, Store};
use planlab_solvers::schedule::{Class, SuggestedCapacity, suggest_capacity};
use serde_json::{Value, json};

use crate::bench::book::open_store;
use crate::cells::Ending;
use crate::cli::ScheduleArgs;
use crate::kinds::placement::planners;
use crate::kinds::schedule::{Judgement, Question, Runner, WALL, classes, counts, keep, matching_schedulers};
use crate::shell::JSON_VERSION;
use crate::shell::clock::now_ns;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, print_note};
use crate::shell::progress::Progress;
use crate::shell::quantity::format_percent;
use crate::shell::signals::cancel_token;
use crate::shell::target::Target;
use crate::shell::text::{Text, titled_table};
use question::{cell, question};

pub(crate) fn run(args: &ScheduleArgs, output: Output) -> Verdict {
    if let Some(path) = &args.output {
        output.refuse_stdout("schedule", path)?;
    }
    planners::find(&args.planner)?;
    if let Some(loss) = args.loss {
        return largest::run(args, loss, output);
    }
    let question = question(args, args.batch)?;
    if let Some(file) = &args.check {
        return check::run(&question.problem, file, output);
    }
    let keys = matching_schedulers(&args.schedulers)?;
    let read = [Some(&args.net), args.machine.as_ref(), args.times.as_ref()];
    let read = || read.into_iter().flatten().map(String::as_str);
    let target = args.output.as_ref().map(|path| Target::open_argument(path, read())).transpose()?;
    let mut study = Study::new(args, &question)?;
    study.run_all(&keys)?;
    study.suggest_capacity();
    let exit = study.exit_code();
    let written = match (target, study.best_schedule()) {
        (Some(target), Some(best)) => target.write_all(best.schedule().write_jsonl().as_bytes()),
        (Some(_), None) => Err(Failure::new(Exit::Incomplete, "no schedule fits, so no file is written")),
        (None, _) => Ok(()),
    };
    match args.output.as_deref() {
        // Stdout receives the schedule.
        Some("-") => print_note(study.study_text().plain().trim_end()),
        _ => output.print_either(&study.study_object(), study.study_text())?,
    }
    written.map(|()| exit)
}

/// The result of one scheduler.
struct Row {
    scheduler: String,
    judgement: Judgement,
}

/// All schedulers on one problem.
struct Study<'a> {
    args: &'a ScheduleArgs,
    question: &'a Question,
    runner: Runner,
    store: Option<Store>,
    rows: Vec<Row>,
    /// A capacity that suffices, if no schedule fits the given one.
    suggested: Option<SuggestedCapacity>,
}

impl<'a> Study<'a> {
    fn new(args: &'a ScheduleArgs, question: &'a Question) -> Result<Self, Failure> {
        let runner = Runner::new(cancel_token())?;
        let store = args.out.as_deref().map(open_store).transpose()?;
        Ok(Self { args, question, runner, store, rows: Vec::new(), suggested: None })
    }

    fn run_all(&mut self, keys: &[String]) -> Result<(), Failure> {
        let bar = Progress::new(keys.len() as u64, "schedulers");
        for key in keys {
            if self.runner.cancel().is_cancelled() {
                break;
            }
            bar.set_message(key.clone());
            self.run(key)?;
            bar.inc(1);
        }
        bar.finish_and_clear();
        #[cfg(feature = "reports")]
        if let Some(store) = &mut self.store {
            store.compact_schedules()?;
        }
        Ok(())
    }

    fn run(&mut self, key: &str) -> Result<(), Failure> {
        let cell = cell(self.args, key);
        let started_ns = now_ns();
        let judgement = self.runner.run(self.question, &cell)?;
        if let Some(store) = &mut self.store {
            let context = self.runner.supervisor().context("", 1, started_ns);
            keep(store, self.question, &cell, &judgement, context)?;
        }
        self.rows.push(Row { scheduler: key.to_owned(), judgement });
        Ok(())
    }

    /// The first scheduler that proves that no schedule fits.
    fn infeasible_row(&self) -> Option<&Row> {
        self.rows.iter().find(|row| row.judgement.ending.status == Status::Infeasible)
    }

    /// A scheduler that proves that no schedule fits, and one that has a schedule.
    fn find_contradiction(&self) -> Option<(&Row, &Row)> {
        let found = self.rows.iter().find(|row| row.judgement.best.is_some());
        self.infeasible_row().zip(found)
    }

    /// Searches for a capacity that suffices if no schedule fits. If work is limited, the clock does not end the search, so
    /// that it is repeatable.
    fn suggest_capacity(&mut self) {
        if self.infeasible_row().is_none() || self.find_contradiction().is_some() {
            return;
        }
        let limits = &self.args.limits;
        let budget = ScheduleBudget {
            wall: limits.work_limit.is_none().then(|| limits.time_limit.unwrap_or(WALL)),
            work: limits.work_limit,
            cancel: self.runner.cancel().clone(),
            ..ScheduleBudget::default()
        };
        self.suggested = suggest_capacity(&self.question.problem, &budget);
    }

    fn infeasible_text(&self) -> Option<Text> {
        if let Some((infeasible, found)) = self.find_contradiction() {
            let (infeasible, found) = (&infeasible.scheduler, &found.scheduler);
            let says = "proves that no schedule fits, but there is one of";
            return Some(Text::from(format!("\na contradiction: {infeasible} {says} {found}\n")));
        }
        let reason = &self.infeasible_row()?.judgement.ending.reason;
        let suggestion = self.suggested.as_ref().map_or_else(String::new, |suggested| {
            let (bytes, scheduler) = (suggested.capacity, &suggested.scheduler);
            format!("; {scheduler} finds a schedule in {} ({bytes})", Shown::Bytes(bytes.get()).shown())
        });
        Some(Text::from(format!("\n{reason}{suggestion}\n")))
    }

    /// The fastest schedule whose offsets fit.
    fn best_schedule(&self) -> Option<&Verified> {
        self.fastest_schedule().map(|(_, schedule)| schedule)
    }

    /// The same with its scheduler.
    fn fastest_schedule(&self) -> Option<(&str, &Verified)> {
        let fitting = self.rows.iter().filter(|row| row.judgement.fits(&self.question.problem));
        let placed = fitting.filter_map(|row| Some((row.scheduler.as_str(), row.judgement.placed.as_ref()?)));
        let placed = placed.map(|(scheduler, placed)| (scheduler, &placed.schedule));
        placed.min_by(|a, b| a.1.seconds().total_cmp(&b.1.seconds()))
    }

    fn exit_code(&self) -> Exit {
        let any = |test: fn(Status) -> bool| self.rows.iter().any(|row| test(row.judgement.ending.status));
        Exit::first_of([
            (Exit::Interrupted, self.runner.cancel().is_cancelled()),
            (Exit::Invalid, any(Status::is_lie) || self.find_contradiction().is_some()),
            (Exit::Incomplete, self.best_schedule().is_none() || any(Status::is_failure)),
        ])
    }

    /// The speed of an iteration in which nothing waits.
    fn unlimited_speed(&self) -> f64 {
        let seconds = compute_bound(&self.question.problem).seconds;
        self.question.problem.images_per_second(seconds)
    }

    fn study_text(&self) -> Text {
        let mut table = titled_table(
            "scheduler, images/s, slower, keep, swap, recompute, live peak, height, gap, remark",
        );
        let unlimited = self.unlimited_speed();
        let compute = compute_bound(&self.question.problem);
        for row in &self.rows {
            let facts = row.row_facts(self.question);
            let count = |number: Option<usize>| Shown::or_missing(number.map(Shown::count));
            table.push(vec![
                Shown::text(&row.scheduler),
                Shown::text(facts.speed.map_or_else(String::new, |speed| format!("{speed:.1}"))),
                Shown::text(
                    facts.seconds.map_or_else(String::new, |seconds| {
                        format_percent(Some(compute.speed_loss(seconds)))
                    }),
                ),
                count(facts.counts.map(|counts| counts[0])),
                count(facts.counts.map(|counts| counts[1])),
                count(facts.counts.map(|counts| counts[2])),
                Shown::or_missing(facts.live_peak.map(Shown::Bytes)),
                Shown::or_missing(facts.height.map(Shown::Bytes)),
                Shown::text(format_percent(facts.gap)),
                Shown::text(facts.remark),
            ]);
        }
        let problem = &self.question.problem;
        let bytes = |bytes: Bytes| Shown::Bytes(bytes.get()).shown();
        let head = format!(
            "{} at batch {} on {}: {} of memory, {} of it reserved; {unlimited:.1} images/s without a limit of memory\n\n",
            problem.net.name(),
            problem.net.batch(),
            problem.machine.name,
            bytes(problem.capacity),
            bytes(problem.base()),
        );
        let notes = [self.infeasible_text(), self.map_table()];
        notes.into_iter().flatten().fold(Text::from(head) + table, |text, note| text + note)
    }

    /// What the fastest schedule that fits does with each map, if requested.
    fn map_classes(&self) -> Option<(&str, Vec<(&FeatureMap, Class)>)> {
        let fastest = self.fastest_schedule().filter(|_| self.args.maps)?;
        let net = &self.question.problem.net;
        let classes = classes(net, fastest.1.schedule());
        Some((fastest.0, classes.into_iter().map(|(map, class)| (net.map(map), class)).collect()))
    }

    fn map_table(&self) -> Option<Text> {
        let (scheduler, maps) = self.map_classes()?;
        let mut table = Table::new(&["feature map", "bytes", "class"]);
        for (map, class) in maps {
            table.push(vec![
                Shown::text(&map.name),
                Shown::Bytes(map.bytes.get()),
                Shown::text(class.name()),
            ]);
        }
        Some(Text::from(format!("\n{scheduler}, the fastest that fits\n\n")) + table)
    }

    fn study_object(&self) -> Value {
        let problem = &self.question.problem;
        let rows = self.rows.iter().map(|row| row.row_object(self.question));
        let map = |(map, class): (&FeatureMap, Class)| json!({ "name": map.name, "bytes": map.bytes, "class": class.name() });
        let maps = self.map_classes().map(|(scheduler, maps)| {
            json!({ "scheduler": scheduler, "maps": maps.into_iter().map(map).collect::<Vec<_>>() })
        });
        let mut value = json!({
            "version": JSON_VERSION,
            "net": problem.net.name(),
            "batch": problem.net.batch(),
            "machine": problem.machine.name,
            "capacity": problem.capacity,
            "base": problem.base(),
            "least_memory": self.rows.iter().map(|row| row.judgement.least_memory.bytes).max(),
            "suggested_capacity": self.suggested.as_ref().map(|suggested| suggested.capacity),
            "suggested_scheduler": self.suggested.as_ref().map(|suggested| &suggested.scheduler),
            "images_per_second": self.unlimited_speed(),
            "schedules": rows.collect::<Vec<_>>(),
        });
        if let Some(maps) = maps {
            value["fastest"] = maps;
        }
        value
    }
}

/// The facts of a row to print.
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
    fn row_facts(&self, question: &Question) -> Facts {
        let Judgement { ending: Ending { status, reason, .. }, best, .. } = &self.judgement;
        let Some(best) = best else {
            let remark = match status {
                // The reason is below the table.
                Status::Infeasible => status.name().to_owned(),
                _ if status.is_failure() => format!("{}: {reason}", status.name()),
                _ => reason.clone(),
            };
            return Facts { remark, ..Facts::default() };
        };
        let height = self.judgement.height();
        let remark = match (status, height) {
            (Status::Optimal | Status::Feasible, Some(height)) if height > question.problem.capacity => {
                "its offsets do not fit".to_owned()
            }
            (Status::Optimal | Status::Feasible, None) => "its buffers have no plan".to_owned(),
            (Status::Optimal, Some(_)) => "optimal".to_owned(),
            (Status::Feasible, Some(_)) => reason.clone(),
            (status, _) => format!("{}: {reason}", status.name()),
        };
        Facts {
            seconds: Some(best.seconds()),
            speed: Some(question.problem.images_per_second(best.seconds())),
            counts: Some(counts(&question.problem.net, best.schedule())),
            live_peak: Some(best.live_peak().get()),
            height: height.map(Bytes::get),
            gap: self.judgement.gap(),
            remark,
        }
    }

    fn row_object(&self, question: &Question) -> Value {
        let facts = self.row_facts(question);
        let Judgement { ending: Ending { status, stop, reason, .. }, bound, .. } = &self.judgement;
        json!({
            "scheduler": self.scheduler,
            "status": status.name(),
            "stop": stop.map(|stop| stop.name()),
            "reason": reason,
            "seconds": facts.seconds,
            "images_per_second": facts.speed,
            "kept": facts.counts.map(|counts| counts[0]),
            "swapped": facts.counts.map(|counts| counts[1]),
            "recomputed": facts.counts.map(|counts| counts[2]),
            "live_peak": facts.live_peak,
            "height": facts.height,
            "fits": facts.height.map(|height| height <= question.problem.capacity.get()),
            "bound_seconds": bound.seconds,
            "bound_evidence": bound.evidence.name(),
            "gap": facts.gap,
            "planner_status": self.judgement.planner_status.map(Status::name),
            "remark": facts.remark,
        })
    }
}
