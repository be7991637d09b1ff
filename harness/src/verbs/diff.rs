//! `diff`: prints what changed between two results.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use planlab_results::diff::{CellName, Change, Diff, DiffOptions, PlannerChange, Sides, Summary, Verdict};
use serde_json::{Value, json};

use crate::bench::turns::{self, Measured, NamedCell};
use crate::cli::DiffArgs;
use crate::inputs::records;
use crate::shell::JSON_VERSION;
use crate::shell::exit::{Exit, Failure, Verdict as Outcome};
use crate::shell::output::{Output, merge_objects, print_note};
use crate::shell::quantity::format_memory;
use crate::shell::signals::cancel_token;
use crate::shell::text::{Text, titled_table};
use planlab_results::table::Table;

/// The most cells of one side alone that are named without `--all`.
const NAMED: usize = 20;

pub(crate) fn run(args: &DiffArgs, planners_file: Option<&Path>, output: Output) -> Outcome {
    let Measured { results: [a, b], alone, interrupted } = folders_to_compare(args, planners_file)?;
    if interrupted {
        print_note("interrupted; the same command continues from here");
        return Ok(Exit::Interrupted);
    }
    let [of_a, of_b] = [records::read_folder(&a)?, records::read_folder(&b)?];
    let missing = [of_a.missing, of_b.missing].concat();
    let (rows_a, rows_b) = (of_a.rows, of_b.rows);
    let mut options = DiffOptions::default();
    options.threshold = args.threshold;
    options.judge_times = !args.across_hosts || args.force;
    options.across_limits = args.force;
    let diff = Diff::new(&rows_a, &rows_b, &options);
    refuse_or_warn(args, &diff)?;
    diff.remarks.iter().for_each(|remark| print_note(&remark.to_string()));
    let head =
        format!("A: {} ({} rows)\nB: {} ({} rows)\n", a.display(), rows_a.len(), b.display(), rows_b.len());
    let left_out = not_run("A", &alone[0], args.all) + &not_run("B", &alone[1], args.all);
    let mut object = diff_object(args, [&a, &b], &alone, &diff);
    object["missing"] = json!(missing);
    output.print_either(&object, Text::from(head) + diff_text(args, &diff) + left_out)?;
    Ok(records::exit_with(exit_of(&diff), missing.is_empty()))
}

/// The exit code. A proof that a plan refutes is false, whichever side has it.
fn exit_of(diff: &Diff) -> Exit {
    Exit::first_of([
        (Exit::Invalid, diff.contradictions().next().is_some()),
        (Exit::Regression, diff.has_regression()),
    ])
}

/// The folders to compare, after measuring them if `--interleave` is given.
fn folders_to_compare(args: &DiffArgs, planners_file: Option<&Path>) -> Result<Measured, Failure> {
    if !args.turns.interleave && args.turns.limits.is_said() {
        return Err(Failure::from_usage(
            "limits and a seed are for --interleave: results that exist have their own",
        ));
    }
    if args.turns.interleave {
        return turns::measure_turns(&args.turns, planners_file, &cancel_token());
    }
    match (&args.before, &args.after) {
        (Some(a), Some(b)) => {
            let results = [a.clone(), b.clone()];
            Ok(Measured { results, alone: Default::default(), interrupted: false })
        }
        _ => Err(Failure::from_usage("diff compares two folders of results: planlab diff A B")),
    }
}

fn refuse_or_warn(args: &DiffArgs, diff: &Diff) -> Result<(), Failure> {
    for mismatch in &diff.mismatches {
        if args.force || (args.across_hosts && mismatch.is_of_hosts()) {
            print_note(&mismatch.to_string());
        } else {
            let way = if mismatch.is_of_hosts() { "--across-hosts or --force" } else { "--force" };
            return Err(Failure::from_usage(format!("{mismatch}; {way} compares them nevertheless")));
        }
    }
    if diff.changes.is_empty() {
        let (a, b) = (diff.only_a.len(), diff.only_b.len());
        return Err(Failure::from_usage(format!(
            "the two results have no cell in common ({a} cells in A, {b} in B): cells are paired by planner, parameters, \
             content of the workload, seed, capacity and limits"
        )));
    }
    Ok(())
}

fn diff_text(args: &DiffArgs, diff: &Diff) -> Text {
    let count = |keep: fn(&Change) -> bool| diff.changes.iter().filter(|change| keep(change)).count();
    let head = format!(
        "{} cells on both sides: {} worse, {} better{}; {} in A alone, {} in B alone\n\n",
        diff.changes.len(),
        count(Change::is_worse),
        count(Change::is_better),
        match count(Change::is_contradiction) {
            0 => String::new(),
            count => format!(", {count} with a proof that the other side refutes"),
        },
        diff.only_a.len(),
        diff.only_b.len(),
    );
    let mut text = Text::from(head) + planner_table(&diff.planners) + PLANNERS;
    let shown: Vec<&Change> = listed(args, diff).collect();
    if !shown.is_empty() {
        text = text + "\n" + cell_table(&shown) + CELLS;
    }
    text + named_list("in A alone", &diff.only_a, args.all) + named_list("in B alone", &diff.only_b, args.all)
}

/// The changes that are named; without `--all` this includes changed bounds and undecided times.
fn listed<'d>(args: &DiffArgs, diff: &'d Diff) -> impl Iterator<Item = &'d Change> {
    diff.changes.iter().filter(move |change| args.all || change.is_changed())
}

fn planner_table(planners: &[PlannerChange]) -> Table {
    let mut table = titled_table(
        "planner, cells, time B/A, 95 % from, 95 % to, +1 ms, p, times, height B/A, lower, higher, p, \
         heights, status +, status -, contradictions",
    );
    for planner in planners {
        let (times, heights) = (&planner.times, &planner.heights);
        table.push_texts([
            planner.label.clone(),
            planner.cells.to_string(),
            ratio_text(times.ratio),
            ratio_text(times.interval.map(|interval| interval.low)),
            ratio_text(times.interval.map(|interval| interval.high)),
            ratio_text(times.shifted_ratio),
            probability_text(times.p),
            judged_text(times.verdict),
            heights.ratio.map_or_else(String::new, |ratio| format!("{ratio:.5}")),
            count_text(heights.better),
            count_text(heights.worse),
            probability_text(heights.p),
            judged_text(heights.verdict),
            count_text(planner.status_better),
            count_text(planner.status_worse),
            count_text(planner.contradictions),
        ]);
    }
    table.without_empty_columns()
}

/// A count; blank if it is 0, so that a column without any is left out.
fn count_text(count: usize) -> String {
    if count == 0 { String::new() } else { count.to_string() }
}

/// What the columns of the planners mean.
const PLANNERS: &str = "
time B/A    geometric mean of the ratios of times over the cells, with its 95 % interval
+1 ms       the same with 1 ms added to every time, so that short times count less
p           the probability that chance alone makes such a change of times, or of heights
lower, higher, status +, status -    cells with a lower or higher height, a better or worse status
A blank verdict (times, heights) means no change beyond chance. Columns without a value are left out.
";

/// What the columns of the cells mean.
const CELLS: &str = "
B/A has its 95 % interval; chance alone makes ratios up to `noise`. A blank verdict (time, height, status) means no
change beyond chance.
";

fn cell_table(changes: &[&Change]) -> Table {
    let mut table = titled_table(
        "planner, workload, seed, time A, time B, B/A, 95 % from, 95 % to, noise, time, height A, \
         height B, height, bound A, bound B, status A, status B, status",
    );
    for change in changes {
        let time = change.time;
        let shown = |side: fn(Sides<f64>) -> f64| {
            time.map_or_else(String::new, |time| seconds_text(side(time.median_ns)))
        };
        let interval = time.and_then(|time| time.interval);
        let bytes = |value: Option<u64>| value.map_or_else(String::new, format_memory);
        table.push_texts([
            change.cell.label.clone(),
            cell_place(&change.cell),
            change.cell.seed.to_string(),
            shown(|sides| sides.a),
            shown(|sides| sides.b),
            ratio_text(time.map(|time| time.ratio)),
            ratio_text(interval.map(|interval| interval.low)),
            ratio_text(interval.map(|interval| interval.high)),
            ratio_text(time.and_then(|time| time.noise).map(|noise| 1.0 + noise)),
            judged_text(time.map(|time| time.verdict).unwrap_or_default()),
            bytes(change.height.a),
            bytes(change.height.b),
            judged_text(change.height_verdict),
            format_memory(change.bound.a),
            format_memory(change.bound.b),
            change.status.a.name().to_owned(),
            change.status.b.name().to_owned(),
            judged_text(change.status_verdict),
        ]);
    }
    table.without_empty_columns()
}

fn cell_place(cell: &CellName) -> String {
    match cell.target_bytes {
        Some(bytes) => format!("{}, capacity {}", cell.workload, format_memory(bytes)),
        None => cell.workload.clone(),
    }
}

fn judged_text(verdict: Verdict) -> String {
    if verdict == Verdict::Same { String::new() } else { verdict.name().to_owned() }
}

/// The cells of one build alone, which did not run.
fn not_run(side: &str, cells: &[NamedCell], all: bool) -> String {
    let cells: Vec<String> =
        cells.iter().map(|NamedCell { planner, workload }| format!("{planner} on {workload}")).collect();
    named_list(&format!("not run, as {side} alone has it"), &cells, all)
}

fn named_list<T: Display>(head: &str, cells: &[T], all: bool) -> String {
    if cells.is_empty() {
        return String::new();
    }
    let shown = if all { cells.len() } else { cells.len().min(NAMED) };
    let mut text = format!("\n{head}:\n");
    text.extend(cells[..shown].iter().map(|cell| format!("  {cell}\n")));
    if shown < cells.len() {
        text += &format!("  and {} more (--all)\n", cells.len() - shown);
    }
    text
}

fn ratio_text(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.3}"))
}

fn probability_text(value: Option<f64>) -> String {
    value.map_or_else(String::new, |p| if p < 0.001 { "0.000".to_owned() } else { format!("{p:.3}") })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "nanoseconds of a cell")]
fn seconds_text(nanoseconds: f64) -> String {
    crate::shell::quantity::format_seconds(nanoseconds as u64)
}

fn diff_object(args: &DiffArgs, [a, b]: [&PathBuf; 2], alone: &[Vec<NamedCell>; 2], diff: &Diff) -> Value {
    json!({
        "version": JSON_VERSION,
        "a": a,
        "b": b,
        "threshold": args.threshold,
        "regression": diff.has_regression(),
        "paired": diff.changes.len(),
        "worse": diff.regressions().count(),
        "better": diff.changes.iter().filter(|change| change.is_better()).count(),
        "contradictions": diff.contradictions().count(),
        "slower": planners_with(&diff.planners, Verdict::Worse),
        "faster": planners_with(&diff.planners, Verdict::Better),
        "mismatches": diff.mismatches.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "remarks": diff.remarks.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "planners": diff.planners.iter().map(planner_value).collect::<Vec<_>>(),
        "cells": listed(args, diff).map(cell_value).collect::<Vec<_>>(),
        "only_a": diff.only_a.iter().map(name_value).collect::<Vec<_>>(),
        "only_b": diff.only_b.iter().map(name_value).collect::<Vec<_>>(),
        "not_run_a": alone[0],
        "not_run_b": alone[1],
    })
}

/// The planners whose times have this verdict, over all their cells or in one.
fn planners_with(planners: &[PlannerChange], verdict: Verdict) -> Vec<&str> {
    let is_so = |times: &Summary| {
        let cells = if verdict == Verdict::Worse { times.worse } else { times.better };
        times.verdict == verdict || cells > 0
    };
    planners.iter().filter(|planner| is_so(&planner.times)).map(|planner| planner.label.as_str()).collect()
}

fn planner_value(planner: &PlannerChange) -> Value {
    json!({
        "planner": planner.label,
        "cells": planner.cells,
        "times": summary_value(&planner.times),
        "heights": summary_value(&planner.heights),
        "status_better": planner.status_better,
        "status_worse": planner.status_worse,
        "contradictions": planner.contradictions,
    })
}

fn summary_value(summary: &Summary) -> Value {
    json!({
        "cells": summary.cells,
        "settled": summary.settled,
        "better": summary.better,
        "worse": summary.worse,
        "undecided": summary.undecided,
        "ratio": summary.ratio,
        "interval": summary.interval.map(|interval| [interval.low, interval.high]),
        "shifted_ratio": summary.shifted_ratio,
        "p": summary.p,
        "verdict": summary.verdict.name(),
    })
}

fn cell_value(change: &Change) -> Value {
    let figures = json!({
        "time": change.time.map(|time| json!({
            "a_seconds": time.median_ns.a / 1e9,
            "b_seconds": time.median_ns.b / 1e9,
            "a_samples": time.samples.a,
            "b_samples": time.samples.b,
            "a_repetitions": time.repetitions.a,
            "b_repetitions": time.repetitions.b,
            "ratio": time.ratio,
            "interval": time.interval.map(|interval| [interval.low, interval.high]),
            "noise": time.noise,
            "verdict": time.verdict.name(),
        })),
        "height": { "a": change.height.a, "b": change.height.b, "verdict": change.height_verdict.name() },
        "bound": { "a": change.bound.a, "b": change.bound.b },
        "status": {
            "a": change.status.a.name(),
            "b": change.status.b.name(),
            "verdict": change.status_verdict.name(),
        },
    });
    merge_objects(name_value(&change.cell), &figures)
}

fn name_value(cell: &CellName) -> Value {
    json!({
        "planner": cell.label,
        "workload": cell.workload,
        "instance": cell.instance,
        "seed": cell.seed,
        "capacity": cell.target_bytes,
        "time_limit_ns": cell.wall_limit_ns,
        "memory_limit": cell.memory_limit_bytes,
    })
}
