//! `bench`: runs every cell of a suite.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use planlab_dsa::performance::{End, Performance};
#[cfg(feature = "reports")]
use planlab_reports::Report;
use planlab_results::audit::{Finding, audit, audit_replays, audit_schedules};
use planlab_results::replay::ReplayRow;
use planlab_results::schedule::{ScheduleRow, SchedulerRun, read_schedules};
use planlab_results::{PlannerRun, Record, Status, StoreError, read_records};
use planlab_workloads::Suite;
use serde_json::{Value, json};

use crate::bench::book::{Rule, Tally, open_store};
use crate::bench::planners::Planners;
use crate::bench::pools::Pools;
use crate::bench::schedules::{self, Schedules};
use crate::bench::selection::{BenchSelection, baseline_tasks, planning_tasks};
use crate::cli::BenchArgs;
#[cfg(feature = "reports")]
use crate::cli::ReportArgs;
use crate::kinds::placement::Cell;
use crate::kinds::placement::{Runner, Samples};
use crate::kinds::schedule;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, print_note};
use crate::shell::quantity;
use crate::shell::signals::cancel_token;
use crate::shell::text::Text;
#[cfg(feature = "reports")]
use crate::verbs::picture;
use crate::verbs::view;

/// Runs the cells and, if asked, writes the report of the results.
#[cfg(feature = "reports")]
pub(crate) fn run(args: &BenchArgs, output: Output) -> Verdict {
    let Some(pages) = &args.report else { return measure_cells(args, output) };
    // Before anything is measured, so that a folder that cannot be written wastes no time.
    drop(Report::open_folder(pages, &args.out)?);
    let exit = measure_cells(args, output)?;
    if exit == Exit::Interrupted {
        return Ok(exit);
    }
    let report = ReportArgs { results: args.out.clone(), output: pages.clone(), maps: ReportArgs::MAPS };
    Ok(exit.or_worse(picture::write_report(&report, output)?))
}

#[cfg(not(feature = "reports"))]
pub(crate) fn run(args: &BenchArgs, output: Output) -> Verdict {
    measure_cells(args, output)
}

fn measure_cells(args: &BenchArgs, output: Output) -> Verdict {
    let cancel = cancel_token();
    let asked = BenchSelection::from_args(args)?;
    let suite = asked.suite.as_ref();
    let tasks = planning_tasks(args, &asked)?;
    let name = suite.map_or("", |suite| suite.name.as_str());
    let (rule, seed, jobs) = (Rule { shard: args.shard, retry: args.retry }, args.limits.seed, args.jobs);
    let alone = suite.is_some_and(|suite| suite.limits.alone);
    let planners = Planners { suite: name, tasks, jobs, rule, seed, alone };
    let pools = Pools { suite: name, tasks: baseline_tasks(args, &asked)?, rule, out: &args.out };
    let schedules = Schedules { suite: name, tasks: schedules::tasks(args, suite)?, rule, seed, jobs };
    if args.dry_run {
        return dry_run(args, &planners, &pools, &schedules, output);
    }
    if planners.tasks.is_empty() && pools.tasks.is_empty() && schedules.tasks.is_empty() {
        // A notice has reported what the suite leaves out, and a misspelt name was refused earlier.
        print_note("nothing to run");
        return Ok(Exit::Complete);
    }
    let mut store = open_store(&args.out)?;
    let limits = suite.map(|suite| suite.limits.clone()).unwrap_or_default();
    let runner = Runner::new(cancel, Samples::new(limits.samples, limits.single_above))?;
    let mut tally = planners.run(&mut store, &runner, &shown(output, view::record_object));
    if let Some(failure) = tally.failure.take() {
        return ended_by(failure, &tally, output);
    }
    #[cfg(feature = "reports")]
    store.compact()?;
    // Allocators are played while no cell is timed.
    let played = match pools.run(runner.cancel(), &shown(output, view::baseline_object)).and_then(whole) {
        Ok(played) => played,
        Err(failure) => return ended_by(failure, &tally, output),
    };
    #[cfg(feature = "reports")]
    store.compact_replays()?;
    let scheduled = match run_schedules(&schedules, &mut store, &runner, output) {
        Ok(scheduled) => scheduled,
        Err(failure) => return ended_by(failure, &tally, output),
    };
    tally.interrupted |= runner.cancel().is_cancelled();
    let surprises = unmet_expectations(suite, &planners, &tally);
    summarize_planners(&tally, &surprises, &args.out);
    summarize_played(&played);
    summarize_schedules(&scheduled);
    let mut findings = audit(&tally.rows);
    findings.extend(audit_schedules(&scheduled.rows));
    findings.extend(audit_replays(&played.rows));
    findings.iter().for_each(|finding| print_note(&finding.to_string()));
    if !output.json {
        let text = summary_table(&tally.rows) + schedule_table(&scheduled.rows);
        output.print_text(text + compare_workloads(&tally.rows))?;
    }
    let refuted = findings.iter().any(Finding::is_refutation);
    Ok(match exit_of(&tally, &surprises) {
        _ if refuted && !tally.interrupted => Exit::Invalid,
        Exit::Complete => exit_of_schedules(&scheduled).or_worse(exit_of_played(&played)),
        exit => exit,
    })
}

/// Runs the schedules, one problem after another, while no cell is timed.
fn run_schedules(
    schedules: &Schedules<'_>,
    store: &mut planlab_results::Store,
    runner: &Runner,
    output: Output,
) -> Result<Tally<ScheduleRow>, Failure> {
    if schedules.tasks.is_empty() || runner.cancel().is_cancelled() {
        return Ok(Tally::default());
    }
    let runner = schedule::Runner::new(runner.cancel().clone())?;
    let scheduled = whole(schedules.run(store, &runner, &shown(output, view::schedule_object)))?;
    #[cfg(feature = "reports")]
    store.compact_schedules()?;
    Ok(scheduled)
}

/// Prints rows as they come, with `--json`.
fn shown<Row>(output: Output, object: fn(&Row) -> Value) -> impl Fn(&Row) + Sync {
    move |row| {
        if output.json {
            // A closed pipe is reported at the end, when the bench has its rows.
            let _ = output.print_value(&object(row));
        }
    }
}

/// What a bench has come to, or why it stopped.
fn whole<Row>(mut tally: Tally<Row>) -> Result<Tally<Row>, Failure> {
    tally.failure.take().map_or(Ok(tally), Err)
}

/// Notes how many rows there are, what could not be read and what failed.
fn print_summary<Row>(tally: &Tally<Row>, counts: Option<String>, failure: impl Fn(&Row) -> Option<String>) {
    let unreadable =
        tally.unreadable.iter().map(|(workload, reason)| format!("{workload} could not be read: {reason}"));
    let failures = tally.rows.iter().filter_map(failure);
    counts.into_iter().chain(unreadable).chain(failures).for_each(|text| print_note(&text));
}

fn summarize_schedules(scheduled: &Tally<ScheduleRow>) {
    let (count, ran) = (scheduled.rows.len(), scheduled.ran);
    let counts = (count > 0).then(|| format!("{count} rows of schedules, {ran} run now"));
    print_summary(scheduled, counts, |row| {
        let SchedulerRun { scheduler, workload, status, reason, .. } = &row.run;
        let has_failed = status.is_failure() || *status == Status::Timeout;
        has_failed.then(|| format!("{scheduler} on {workload}: {}: {reason}", status.name()))
    });
}

/// The exit code. A scheduler without a schedule for lack of memory is shown and is not a failure.
fn exit_of_schedules(scheduled: &Tally<ScheduleRow>) -> Exit {
    let has_failed = |row: &ScheduleRow| row.status.is_failure() || row.status == Status::Timeout;
    Exit::first_of([
        (Exit::Invalid, scheduled.rows.iter().any(|row| row.status.is_lie())),
        (Exit::Incomplete, scheduled.rows.iter().any(has_failed)),
    ])
}

/// The most workloads whose planners are compared in the terminal; the report has more.
const MOST_COMPARED: usize = 3;

/// The planners of each workload, if there are few workloads.
fn compare_workloads(rows: &[Record]) -> Text {
    let mut workloads: Vec<&str> = rows.iter().map(|row| row.workload.as_str()).collect();
    workloads.sort_unstable();
    workloads.dedup();
    if workloads.len() > MOST_COMPARED {
        return Text::default();
    }
    workloads.into_iter().fold(Text::default(), |text, workload| {
        let mut rows: Vec<Record> = rows.iter().filter(|row| row.workload == workload).cloned().collect();
        view::share_bound(&mut rows);
        let load = rows.first().map_or_else(String::new, |row| view::load_text(row.relaxed_load, row.load));
        text + format!("\n{workload}: load {load}\n\n") + view::comparison_table(&rows)
    })
}

/// How the schedules ended, and how many fit with their offsets.
fn schedule_table(rows: &[ScheduleRow]) -> Text {
    if rows.is_empty() {
        return Text::default();
    }
    let mut counts: BTreeMap<Status, [usize; 2]> = BTreeMap::new();
    for row in rows {
        let count = counts.entry(row.status).or_default();
        count[0] += 1;
        count[1] += usize::from(row.fits_memory() == Some(true));
    }
    let mut table = planlab_results::table::Table::new(&["schedules", "cells", "fit with offsets"]);
    for (status, [cells, fit]) in counts {
        table.push_texts([status.name().to_owned(), cells.to_string(), fit.to_string()]);
    }
    table.into()
}

fn dry_run(
    args: &BenchArgs,
    planners: &Planners<'_>,
    pools: &Pools<'_>,
    schedules: &Schedules<'_>,
    output: Output,
) -> Verdict {
    let rows = match read_records(&args.out) {
        Err(StoreError::NoResults { .. }) => Vec::new(),
        _ if !args.out.exists() => Vec::new(),
        rows => rows?,
    };
    let left = planners.left(&rows, &args.out)?;
    for (cell, repetitions) in distinct_cells(left.iter().map(|(cell, _)| cell)) {
        let value = json!({
            "workload": cell.workload,
            "planner": cell.planner,
            "repetitions": repetitions,
            "capacity": cell.target,
            "threads": cell.threads,
            "time_limit": cell.wall.map(|wall| wall.as_secs_f64()),
            "work_limit": cell.work,
        });
        output.print_either(&value, dry_run_line(&cell, repetitions))?;
    }
    for (workload, allocator) in pools.left()? {
        let value = json!({ "workload": workload, "allocator": allocator });
        output.print_either(&value, format!("{workload}  allocator {allocator}\n"))?;
    }
    let rows = if args.out.exists() { read_schedules(&args.out)? } else { Vec::new() };
    let status = |cell: &str, repetition: u32| {
        let row = rows.iter().find(|row| row.cell == cell && row.repetition == repetition);
        row.map(|row| row.status)
    };
    for (question, cell) in schedules.left(&status) {
        let machine = &question.problem.machine;
        let value = json!({
            "workload": question.workload,
            "machine": machine.name,
            "copy_out": machine.copy_out,
            "copy_in": machine.copy_in,
            "capacity": question.problem.capacity,
            "scheduler": cell.scheduler,
            "repetition": cell.repetition,
        });
        let on = format!("{} at {:e} bytes/s", machine.name, machine.copy_out);
        output
            .print_either(&value, format!("{}  {on}  scheduler {}\n", question.workload, cell.scheduler))?;
    }
    let known: u64 = left.iter().filter_map(|(_, time)| *time).sum();
    let unknown = left.iter().filter(|(_, time)| time.is_none()).count();
    let limit: Duration = left.iter().filter_map(|(cell, _)| cell.wall).sum();
    print_note(&format!(
        "{} runs: {} of planning by earlier rows, {unknown} runs without an earlier row; at most {} by their limits, one \
         after the other, without the repeated samples of quick cells",
        left.len(),
        quantity::format_seconds(known),
        quantity::format_seconds(quantity::as_nanoseconds(limit))
    ));
    Ok(Exit::Complete)
}

/// The cells without their repetitions, each with the number of its runs.
fn distinct_cells<'c>(cells: impl Iterator<Item = &'c Cell>) -> Vec<(Cell, u32)> {
    let mut all: Vec<(Cell, u32)> = Vec::new();
    // Repetitions of a cell follow each other.
    for cell in cells {
        let cell = Cell { repetition: 0, ..cell.clone() };
        match all.last_mut() {
            Some((last, count)) if *last == cell => *count += 1,
            _ => all.push((cell, 1)),
        }
    }
    all
}

fn dry_run_line(cell: &Cell, repetitions: u32) -> String {
    let plural = |count: u64, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let mut parts = vec![cell.workload.clone(), cell.planner.clone()];
    parts.extend(cell.target.map(|capacity| format!("capacity {}", quantity::format_memory(capacity))));
    parts.push(plural(cell.threads as u64, "thread"));
    parts.extend(
        cell.wall.map(|wall| format!("limit {}", quantity::format_seconds(quantity::as_nanoseconds(wall)))),
    );
    parts.extend(cell.work.map(|work| format!("work limit {work}")));
    parts.push(plural(repetitions.into(), "repetition"));
    format!("{}\n", parts.join("  "))
}

/// The expected heights that this bench did not find, in words; if it was interrupted, only those with a row.
fn unmet_expectations(suite: Option<&Suite>, planners: &Planners<'_>, tally: &Tally<Record>) -> Vec<String> {
    let Some(suite) = suite else { return Vec::new() };
    let mut surprises = Vec::new();
    for expectation in &suite.expect {
        let is_it = |workload: &str, planner: &str| {
            workload == expectation.workload && planner == expectation.planner
        };
        let mut cells = planners.tasks.iter().flat_map(|task| &task.cells);
        let was_asked = cells.any(|cell| is_it(&cell.workload, &cell.planner));
        let row = tally.rows.iter().find(|row| is_it(&row.workload, &row.planner));
        let may_be_missing = tally.interrupted || planners.rule.shard.is_some();
        if !was_asked || (row.is_none() && may_be_missing) {
            continue;
        }
        let found = row.and_then(|row| row.height);
        if found != Some(expectation.height) {
            let (planner, workload) = (&expectation.planner, &expectation.workload);
            let found = found.map_or_else(|| "no plan".to_owned(), quantity::format_memory);
            let expected = quantity::format_memory(expectation.height);
            surprises.push(format!(
                "{planner} on {workload}: the suite expects the height {expected}, found {found}"
            ));
        }
    }
    surprises
}

fn summarize_planners(tally: &Tally<Record>, surprises: &[String], out: &Path) {
    let noun = if tally.rows.len() == 1 { "cell" } else { "cells" };
    let counts = format!("{} {noun}, {} run now; rows in {}", tally.rows.len(), tally.ran, out.display());
    print_summary(tally, Some(counts), |row| {
        let PlannerRun { planner, workload, status, reason, .. } = &row.run;
        status.is_failure().then(|| format!("{planner} on {workload}: {}: {reason}", status.name()))
    });
    surprises.iter().for_each(|surprise| print_note(surprise));
    if tally.interrupted {
        print_note("interrupted; the same command continues from here");
    }
}

fn summarize_played(played: &Tally<ReplayRow>) {
    let (count, ran) = (played.rows.len(), played.ran);
    let counts = (count > 0).then(|| format!("{count} rows of online allocators, {ran} played now"));
    print_summary(played, counts, |row| {
        let (contender, workload) = (&row.contender, &row.workload);
        let Performance { status, reason, .. } = &row.performance;
        (*status != End::Complete).then(|| format!("{contender} on {workload}: {}: {reason}", status.name()))
    });
}

/// The exit code. An allocator that cannot serve a request (for 0 bytes) is shown and is not a failure.
fn exit_of_played(played: &Tally<ReplayRow>) -> Exit {
    let has_answer = |row: &ReplayRow| matches!(row.performance.status, End::Complete | End::Unavailable);
    let is_whole = played.unreadable.is_empty() && played.rows.iter().all(has_answer);
    if is_whole { Exit::Complete } else { Exit::Incomplete }
}

/// Prints the results so far of a bench that had to stop.
fn ended_by(failure: Failure, tally: &Tally<Record>, output: Output) -> Verdict {
    if !output.json {
        output.print_text(lost_table(&tally.lost) + summary_table(&tally.rows))?;
    }
    Err(failure)
}

/// The table of rows that cannot be kept.
fn lost_table(rows: &[Record]) -> Text {
    let mut table = planlab_results::table::Table::new(&["not kept", "planner", "status", "height"]);
    for row in rows {
        let height = row.height.map_or_else(String::new, quantity::format_memory);
        table.push_texts([
            row.workload.to_string(),
            row.planner.clone(),
            row.status.name().to_owned(),
            height,
        ]);
    }
    if rows.is_empty() { Text::default() } else { Text::from(table) + "\n" }
}

fn summary_table(rows: &[Record]) -> Text {
    if rows.is_empty() {
        return Text::default();
    }
    let mut counts: BTreeMap<Status, usize> = BTreeMap::new();
    rows.iter().for_each(|row| *counts.entry(row.status).or_default() += 1);
    let mut table = planlab_results::table::Table::new(&["status", "cells"]);
    for (status, count) in counts {
        table.push_texts([status.name().to_owned(), count.to_string()]);
    }
    table.into()
}

fn exit_of(tally: &Tally<Record>, surprises: &[String]) -> Exit {
    let incomplete = |row: &Record| !row.status.is_answer() && row.status != Status::Unsupported;
    Exit::first_of([
        (Exit::Interrupted, tally.interrupted),
        (Exit::Invalid, tally.rows.iter().any(|row| row.status.is_lie())),
        (Exit::Regression, !surprises.is_empty()),
        (Exit::Incomplete, !tally.unreadable.is_empty() || tally.rows.iter().any(incomplete)),
    ])
}
