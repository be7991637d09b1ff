//! Compares the published figures of the `PoocH` paper with ours.

use planlab_results::table::{CellValue, Table, columns};

use super::tables::{self, range, rate, subject, subject_of};
use crate::data::papers::published::{Claim, Measure, PAPER};
use crate::data::schedules::{Case, Run, Schedules, gigabytes};
use crate::format::format_percent;
use crate::site::page::Piece;

pub(super) fn paper_pieces(schedules: &Schedules) -> Vec<Piece> {
    let (counts, claims) = (count_table(schedules), claim_table(schedules));
    if counts.rows.is_empty() && claims.rows.is_empty() {
        return Vec::new();
    }
    let note = "Ito et al., Profiling based Out-of-core Hybrid Method for Large Neural Networks (2019), on a V100 with 16 GB. \
                The paper prints few numbers beside its curves; these are all. Its rates are measured, ours are simulated: \
                compare the order of the schedulers, the ratios and the counts rather than images per second. The capacity \
                and the rates of the links of these machines were chosen with table 3 in view. docs/claims.md says under \
                each id why ours differs, as far as it is known.";
    let mut pieces = vec![Piece::heading("Beside the paper"), Piece::note(note)];
    for table in [counts, claims] {
        if !table.rows.is_empty() {
            pieces.push(Piece::Table(tables::trimmed(table)));
        }
    }
    pieces
}

fn count_table(schedules: &Schedules) -> Table {
    let mut rows = Vec::new();
    for case in &schedules.cases {
        for line in PAPER.counts_of(case) {
            let runs = line.schedulers.iter().filter_map(|scheduler| case.run_of(scheduler, line.batch));
            rows.extend(runs.map(|run| (subject_of(case, run), (line, run))));
        }
    }
    tables::table(
        "offload-table-3",
        "Table 3 of the paper: feature maps that are kept, swapped and recomputed, and ours. Difference: ours less published.",
        rows,
        columns!(|(line, run)| {
            let classes = run.class_counts();
            let ours = classes.map_or_else(|| run.end_reason().to_owned(), slash_counts);
            let differs = classes.map(|ours| CellValue::text(count_difference(ours, line.counts)));
            [
                ("id", "Id", CellValue::text(line.id.as_str())),
                ("batch", "Batch", CellValue::Count(line.batch)),
                ("method", "Method", CellValue::text(line.method.as_str())),
                ("published", "Published", CellValue::text(slash_counts(line.counts))),
                ("scheduler", "Scheduler", CellValue::text(run.series.label.as_str())),
                ("ours", "Ours", CellValue::text(ours)),
                ("difference", "Difference", CellValue::or_missing(differs)),
            ]
        }),
    )
}

fn slash_counts(counts: [u64; 3]) -> String {
    counts.map(|count| count.to_string()).join(" / ")
}

fn count_difference(ours: [u64; 3], theirs: [u64; 3]) -> String {
    let signed = |at: usize| match (ours[at], theirs[at]) {
        (ours, theirs) if ours == theirs => "0".to_owned(),
        (ours, theirs) if ours > theirs => format!("+{}", ours - theirs),
        (ours, theirs) => format!("\u{2212}{}", theirs - ours),
    };
    if ours == theirs { "none".to_owned() } else { [0, 1, 2].map(signed).join(" / ") }
}

fn claim_table(schedules: &Schedules) -> Table {
    let mut rows = Vec::new();
    for case in &schedules.cases {
        for claim in PAPER.claims_of(case) {
            for scheduler in &claim.schedulers {
                let Some((runs, ours, lies)) = our_figure(claim, case, &claim.matching_runs(case, scheduler))
                else {
                    continue;
                };
                let batches = range(runs.iter().map(|run| run.row.batch)).unwrap_or_default();
                let inputs = range(runs.iter().filter_map(|run| run.input_extent()));
                let subject = subject(case, CellValue::or_missing(inputs.map(CellValue::Text)));
                rows.push((subject, (claim, scheduler, batches, ours, lies)));
            }
        }
    }
    tables::table(
        "offload-claims",
        "What the text prints of figures 15 to 22, and the same of our schedules, from the least to the greatest over the \
         sizes named. Lies: ours within, below or above what rounds to the published range.",
        rows,
        columns!(|(claim, scheduler, batches, ours, lies)| [
            ("id", "Id", CellValue::text(claim.id.as_str())),
            ("figure", "Figure", CellValue::Count(u64::from(claim.figure))),
            ("claim", "Claim", CellValue::text(claim.claim.as_str())),
            ("published", "Published", CellValue::text(claim.published.as_str())),
            ("scheduler", "Scheduler", CellValue::text(scheduler.as_str())),
            ("batches", "Batches", CellValue::text(batches)),
            ("ours", "Ours", CellValue::text(ours)),
            ("lies", "Lies", CellValue::text(lies)),
        ]),
    )
}

/// The runs behind our figure, the figure, and where it lies; `None` if there is no such run.
type Ours<'c> = Option<(Vec<&'c Run>, String, &'static str)>;

fn our_figure<'c>(claim: &Claim, case: &Case, runs: &[&'c Run]) -> Ours<'c> {
    if matches!(claim.measure, Measure::Runs | Measure::Fails) {
        return schedule_outcome(claim.measure == Measure::Runs, runs);
    }
    // At sizes that fit into the memory, nothing is lost or gained.
    let is_beyond = matches!(claim.measure, Measure::Loss | Measure::Ratio);
    let beyond = is_beyond.then(|| case.sizes_beyond_memory());
    let is_meant = |run: &&&Run| beyond.as_ref().is_none_or(|beyond| beyond.contains(&run.size));
    let values = runs.iter().filter(is_meant).filter_map(|run| Some((*run, claim.figure_of(case, run)?)));
    let values: Vec<(&Run, f64)> = values.collect();
    let least = values.iter().map(|(_, value)| *value).min_by(f64::total_cmp)?;
    let most = values.iter().map(|(_, value)| *value).max_by(f64::total_cmp)?;
    let (low, high) = (format_value(claim.measure, least), format_value(claim.measure, most));
    let text = if low == high { low } else { format!("{low} to {high}") };
    Some((values.into_iter().map(|(run, _)| run).collect(), text, claim.relative_position((least, most))))
}

fn format_value(measure: Measure, value: f64) -> String {
    match measure {
        Measure::Speed => format!("{} images/s", rate(value)),
        Measure::Loss => format_percent(value),
        Measure::Ratio | Measure::Runs | Measure::Fails => format!("{value:.2} times"),
    }
}

/// Whether schedules exist, and whether they have offsets that fit.
fn schedule_outcome<'c>(runs_there: bool, runs: &[&'c Run]) -> Ours<'c> {
    runs.first()?;
    let scheduled: Vec<&&Run> = runs.iter().filter(|run| run.iteration_ns().is_some()).collect();
    let text = match (scheduled.as_slice(), runs) {
        ([], _) => "fails".to_owned(),
        ([run], [_]) => {
            let needs = run.row.height.map_or(String::new(), |height| {
                format!(", offsets need {} of {}", gigabytes(height), gigabytes(run.row.capacity))
            });
            format!("runs{needs}")
        }
        (some, all) => format!("runs at {} of {} sizes", some.len(), all.len()),
    };
    let agrees = scheduled.len() == if runs_there { runs.len() } else { 0 };
    Some((runs.to_vec(), text, if agrees { "agrees" } else { "differs" }))
}
