//! `bench`: every cell of a suite.

use std::collections::BTreeMap;
use std::path::Path;

use planlab_results::{Record, Status, read_records};
use planlab_workloads::{Catalog, Suite, glob as glob_matches};
use serde_json::json;

use super::plan::cell;
use crate::bench::{Order, Tally, Task, cancel_on_interrupt, estimate, open_store, run as run_bench};
use crate::cell::Cell;
use crate::cli::{BenchArgs, LimitArgs};
use crate::exit::{Exit, Failure, Verdict};
use crate::input::Source;
use crate::output::{Output, note};
use crate::runner::{Runner, Samples};
use crate::{planners, quantity, view};

pub(crate) fn run(args: &BenchArgs, output: Output) -> Verdict {
    let catalog = Catalog::new(args.corpus.corpus.clone());
    let suite = suite(args)?;
    let tasks = tasks(args, suite.as_ref(), &catalog)?;
    if args.dry_run {
        return dry_run(args, &tasks, output);
    }
    let cells: usize = tasks.iter().map(|task| task.cells.len()).sum();
    if cells == 0 {
        note("nothing to run: no workload with a planner for it");
        return Ok(Exit::Complete);
    }
    let name = suite.as_ref().map_or("", |suite| suite.name.as_str());
    let order = Order {
        suite: name,
        tasks,
        jobs: args.jobs,
        shard: args.shard,
        retry: args.retry,
        seed: args.limits.seed,
    };
    let mut store = open_store(&args.out, &note)?;
    let limits = suite.as_ref().map(|suite| suite.limits.clone()).unwrap_or_default();
    let runner = Runner::new(cancel_on_interrupt()?, Samples::new(limits.samples, limits.single_above))?;
    let print = |row: &Record| {
        if output.json {
            // A closed pipe is found out at the end, when the bench has its rows.
            let _ = output.value(&view::object(row, args.limits.threads));
        }
    };
    let tally = run_bench(&order, &mut store, &runner, &print);
    #[cfg(feature = "reports")]
    store.compact()?;
    let tally = tally?;
    let surprises = surprises(suite.as_ref(), &tally.rows);
    summarize(&tally, &surprises, &args.out);
    if !output.json {
        output.text(&summary_table(&tally))?;
    }
    Ok(exit_of(&tally, &surprises))
}

fn suite(args: &BenchArgs) -> Result<Option<Suite>, Failure> {
    let name = match &args.suite {
        Some(name) => name.as_str(),
        None if args.workloads.is_empty() || args.planners.is_empty() => "smoke",
        None => return Ok(None),
    };
    Ok(Some(Suite::find(name)?))
}

/// The cells to run, by workload.
fn tasks(args: &BenchArgs, suite: Option<&Suite>, catalog: &Catalog) -> Result<Vec<Task>, Failure> {
    let planners =
        if args.planners.is_empty() { planners::keys() } else { planners::matching(&args.planners)? };
    let mut by_workload: BTreeMap<String, Vec<Cell>> = BTreeMap::new();
    let mut add = |workload: &str, planner: &str, limits: &LimitArgs| {
        let source = Source::workload(workload, args.corpus.corpus.as_deref());
        let cells = by_workload.entry(workload.to_owned()).or_default();
        for repetition in 0..args.reps {
            let cell = Cell { repetition, ..cell(&source, planner, limits) };
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
    };
    match suite {
        Some(suite) => {
            let selection = suite.select(catalog, &planners::keys())?;
            selection.notices.iter().for_each(|notice| note(notice));
            for pick in &selection.picks {
                let wanted = args.workloads.is_empty()
                    || args.workloads.iter().any(|glob| glob_matches(glob, &pick.workload));
                if wanted && planners.contains(&pick.planner) {
                    let time_limit = args.limits.time_limit.or(pick.time_limit);
                    add(&pick.workload, &pick.planner, &LimitArgs { time_limit, ..args.limits.clone() });
                }
            }
        }
        None => {
            for workload in chosen_workloads(&args.workloads, catalog)? {
                planners.iter().for_each(|planner| add(&workload, planner, &args.limits));
            }
        }
    }
    let task = |(workload, cells): (String, Vec<Cell>)| Task {
        source: Source::workload(&workload, args.corpus.corpus.as_deref()),
        cells,
    };
    Ok(by_workload.into_iter().map(task).collect())
}

/// Keys that the globs match; a glob without a star may also name a synthetic workload that no list has.
fn chosen_workloads(globs: &[String], catalog: &Catalog) -> Result<Vec<String>, Failure> {
    let keys = catalog.keys();
    let mut chosen = Vec::new();
    for pattern in globs {
        if pattern.contains('*') {
            chosen.extend(keys.iter().filter(|key| glob_matches(pattern, key)).cloned());
        } else {
            catalog.load(pattern)?;
            chosen.push(pattern.clone());
        }
    }
    Ok(chosen)
}

fn dry_run(args: &BenchArgs, tasks: &[Task], output: Output) -> Verdict {
    let rows = if args.out.exists() { read_records(&args.out)? } else { Vec::new() };
    let (known, unknown) = estimate(tasks, &rows);
    for cell in tasks.iter().flat_map(|task| &task.cells) {
        let limit = cell.wall.map(|wall| wall.as_secs_f64());
        let value = json!({
            "workload": cell.workload,
            "planner": cell.planner,
            "repetition": cell.repetition,
            "time_limit": limit,
        });
        output.put(&value, &format!("{}  {}\n", cell.workload, cell.planner))?;
    }
    let cells: usize = tasks.iter().map(|task| task.cells.len()).sum();
    note(&format!(
        "{cells} cells; {} by earlier rows, {unknown} cells have none (each at most its time limit)",
        quantity::seconds(known)
    ));
    Ok(Exit::Complete)
}

/// A height that the suite knows, and another one that was found.
struct Surprise {
    workload: String,
    planner: String,
    expected: u64,
    found: Option<u64>,
}

fn surprises(suite: Option<&Suite>, rows: &[Record]) -> Vec<Surprise> {
    let Some(suite) = suite else { return Vec::new() };
    let mut surprises = Vec::new();
    for expectation in &suite.expect {
        let row =
            rows.iter().find(|r| r.workload == expectation.workload && r.planner == expectation.planner);
        if let Some(row) = row.filter(|row| row.height != Some(expectation.height)) {
            surprises.push(Surprise {
                workload: row.workload.clone(),
                planner: row.planner.clone(),
                expected: expectation.height,
                found: row.height,
            });
        }
    }
    surprises
}

fn summarize(tally: &Tally, surprises: &[Surprise], out: &Path) {
    note(&format!("{} cells, {} run now; rows in {}", tally.rows.len(), tally.ran, out.display()));
    for (workload, reason) in &tally.unreadable {
        note(&format!("{workload} could not be read: {reason}"));
    }
    for row in tally.rows.iter().filter(|row| row.status.is_failure()) {
        note(&format!("{} on {}: {}: {}", row.planner, row.workload, row.status.name(), row.reason));
    }
    for surprise in surprises {
        let found = surprise.found.map_or_else(|| "none".to_owned(), |height| height.to_string());
        let (planner, workload) = (&surprise.planner, &surprise.workload);
        note(&format!("{planner} on {workload}: height {} is known, found {found}", surprise.expected));
    }
    if tally.interrupted {
        note("interrupted; the same command goes on from here");
    }
}

fn summary_table(tally: &Tally) -> String {
    let mut counts: BTreeMap<Status, usize> = BTreeMap::new();
    tally.rows.iter().for_each(|row| *counts.entry(row.status).or_default() += 1);
    let mut table = crate::table::Table::new(&["status", "cells"]);
    for (status, count) in counts {
        table.row([status.name().to_owned(), count.to_string()]);
    }
    table.render()
}

fn exit_of(tally: &Tally, surprises: &[Surprise]) -> Exit {
    let incomplete = |row: &Record| !row.status.is_answer() && row.status != Status::Unsupported;
    if tally.interrupted {
        Exit::Interrupted
    } else if tally.rows.iter().any(|row| row.status.is_lie()) {
        Exit::Invalid
    } else if !surprises.is_empty() {
        Exit::Regression
    } else if !tally.unreadable.is_empty() || tally.rows.iter().any(incomplete) {
        Exit::Incomplete
    } else {
        Exit::Complete
    }
}
