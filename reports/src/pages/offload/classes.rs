//! The classes of feature maps: kept, swapped, recomputed.

use planlab_results::table::{Table, Value, columns};

use super::tables::{self, gb_or_missing, subject_of, time};
use crate::data::schedules::{Case, Run, Schedules};
use crate::figures::plots::classes::{self, Cell, Row};
use crate::site::page::Piece;

pub(super) fn pieces(schedules: &Schedules) -> Vec<Piece> {
    let mut pieces = vec![Piece::heading("What is kept, swapped and recomputed")];
    pieces.extend(schedules.cases.iter().filter_map(figure));
    pieces.extend(tables::shown_or_folded(table(schedules)));
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

fn table<'s>(schedules: &'s Schedules) -> Table {
    let classes = |(case, run): (&'s Case, &'s Run)| Some((subject_of(case, run), (run, run.classes()?)));
    tables::table(
        "offload-classes",
        "Feature maps by what becomes of them, the bytes that are copied to the host, and the time of what is computed again.",
        schedules.runs().filter_map(classes),
        columns!(|(run, [kept, swapped, recomputed])| [
            ("batch", "Batch", Value::Count(run.row.batch)),
            ("scheduler", "Scheduler", Value::text(run.series.label.as_str())),
            ("maps", "Maps", Value::Count(run.row.maps)),
            ("kept", "Kept", Value::Count(kept)),
            ("swapped", "Swapped", Value::Count(swapped)),
            ("recomputed", "Recomputed", Value::Count(recomputed)),
            ("copied_out_gb", "Copied out, GB", gb_or_missing(run.row.copied_out)),
            ("recompute_ns", "Recomputing", time(run.row.recompute_ns)),
        ]),
    )
}
