//! The classes of feature maps: kept, swapped, recomputed.

use planlab_results::table::{Table, Value};

use super::{gb_or_missing, subject_of, time};
use crate::data::schedules::{Case, Run, Schedules};
use crate::figures::classes::{self, Cell, Row};
use crate::site::page::Piece;

pub(super) fn pieces(schedules: &Schedules) -> Vec<Piece> {
    let mut pieces = vec![Piece::heading("What is kept, swapped and recomputed")];
    pieces.extend(schedules.cases.iter().filter_map(figure));
    pieces.extend(super::shown_or_folded(table(schedules)));
    pieces
}

fn figure(case: &Case) -> Option<Piece> {
    let sizes = case.sizes();
    let cell = |run: Option<&Run>| match run {
        None => Cell::Absent,
        Some(run) => run.classes().map_or_else(|| Cell::Nothing(run.end().to_owned()), Cell::Counts),
    };
    let row = |label: &str| -> Row {
        (label.to_owned(), sizes.iter().map(|&size| cell(case.run(label, size))).collect())
    };
    let rows: Vec<Row> = case.schedulers().into_iter().map(|series| row(&series.label)).collect();
    let drawing = classes::plot(&format!("Feature maps: {}", case.name()), (case.noun(), &sizes), &rows)?;
    let maps = case.runs.first()?.row.maps;
    let caption = format!("How many of the {maps} feature maps a scheduler keeps, swaps and recomputes.");
    Some(Piece::figure(drawing, caption))
}

fn table(schedules: &Schedules) -> Table {
    let mut table = super::table(
        "offload-classes",
        "Feature maps by what becomes of them, the bytes that are copied to the host, and the time of what is computed again.",
        &[
            ("batch", "Batch"),
            ("scheduler", "Scheduler"),
            ("maps", "Maps"),
            ("kept", "Kept"),
            ("swapped", "Swapped"),
            ("recomputed", "Recomputed"),
            ("copied_out_gb", "Copied out, GB"),
            ("recompute_ns", "Recomputing"),
        ],
    );
    for (case, run) in schedules.runs() {
        let Some(counts) = run.classes() else { continue };
        let mut values = subject_of(case, run);
        values.extend([
            Value::Count(run.row.batch),
            Value::text(run.series.label.as_str()),
            Value::Count(run.row.maps),
        ]);
        values.extend(counts.map(Value::Count));
        values.extend([gb_or_missing(run.row.copied_out), time(run.row.recompute_ns)]);
        table.push(values);
    }
    table
}
