//! The classes of feature maps: kept, swapped, recomputed.

use planlab_results::table::{CellValue, Table, columns};

use super::tables::{self, gb_or_missing, subject_of, time_value};
use crate::data::schedules::{Case, Run, Schedules};
use crate::figures::plots::classes::{self, Cell, Row};
use crate::site::page::Piece;

pub(super) fn class_pieces(schedules: &Schedules) -> Vec<Piece> {
    let mut pieces = vec![Piece::heading("What is kept, swapped and recomputed")];
    pieces.extend(schedules.cases.iter().filter_map(class_figure));
    pieces.extend(tables::shown_or_folded(class_table(schedules)));
    pieces
}

fn class_figure(case: &Case) -> Option<Piece> {
    let sizes = case.sizes();
    let cell = |run: Option<&Run>| match run {
        None => Cell::Absent,
        Some(run) => {
            run.class_counts().map_or_else(|| Cell::Nothing(run.end_reason().to_owned()), Cell::Counts)
        }
    };
    let row = |label: &str| -> Row {
        (label.to_owned(), sizes.iter().map(|&size| cell(case.run_of(label, size))).collect())
    };
    let rows: Vec<Row> = case.schedulers().into_iter().map(|series| row(&series.label)).collect();
    let drawing =
        classes::plot(&format!("Feature maps: {}", case.name()), (case.size_noun(), &sizes), &rows)?;
    let maps = case.runs.first()?.row.maps;
    let caption = format!("How many of the {maps} feature maps a scheduler keeps, swaps and recomputes.");
    Some(Piece::figure(drawing, caption))
}

fn class_table<'s>(schedules: &'s Schedules) -> Table {
    let classes =
        |(case, run): (&'s Case, &'s Run)| Some((subject_of(case, run), (run, run.class_counts()?)));
    tables::table(
        "offload-classes",
        "Feature maps by what becomes of them, the bytes that are copied to the host, and the time of what is computed again.",
        schedules.all_runs().filter_map(classes),
        columns!(|(run, [kept, swapped, recomputed])| [
            ("batch", "Batch", CellValue::Count(run.row.batch)),
            ("scheduler", "Scheduler", CellValue::text(run.series.label.as_str())),
            ("maps", "Maps", CellValue::Count(run.row.maps)),
            ("kept", "Kept", CellValue::Count(kept)),
            ("swapped", "Swapped", CellValue::Count(swapped)),
            ("recomputed", "Recomputed", CellValue::Count(recomputed)),
            ("copied_out_gb", "Copied out, GB", gb_or_missing(run.row.copied_out)),
            ("recompute_ns", "Recomputing", time_value(run.row.recompute_ns)),
        ]),
    )
}
