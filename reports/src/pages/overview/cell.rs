//! The page of one planner on one workload.

use crate::data::planners::tables::describe_exit;
use crate::format::{as_real, exact_bytes, format_bytes, format_count, format_nanoseconds, format_percent};
use crate::site::page::{Page, Picture, Piece, Text};
use crate::site::{Mapped, Maps, Site};
use planlab_dsa::Bytes;
use planlab_results::Record;
use planlab_results::queries::CellRow;
use planlab_results::table::{CellValue, Table, columns};

pub(crate) fn page(site: &Site<'_>, map: &Mapped) -> Page {
    let model = site.model;
    let cell = &model.cells[map.cell];
    let (row, label) = (&map.row, &model.planner_of_cell(cell).label);
    let mut pieces = vec![Piece::text(result_sentence(cell, row))];
    pieces.extend(map_pieces(map));
    pieces.extend(map.why.iter().cloned());
    pieces.extend([Piece::heading("Figures"), Piece::facts(number_facts(cell, row))]);
    if row.trajectory.len() > 1 {
        pieces.extend([Piece::heading("Trajectory"), Piece::Table(trajectory_table(row))]);
    }
    if !row.stderr_tail.trim().is_empty() {
        pieces.extend([Piece::heading("Standard error"), Piece::Verbatim(row.stderr_tail.clone())]);
    }
    pieces.extend([Piece::heading("Identity"), Piece::facts(identity_facts(row))]);
    let mut page = Page::new(&map.page, format!("{label} on {}", row.workload)).with(pieces);
    page.heading = Text::from(format!("{label} on ")).link(&row.workload, site.page_of(cell.workload_number));
    page
}

/// The placement and what is free in it.
fn map_pieces(map: &Mapped) -> Vec<Piece> {
    match &map.maps {
        Maps::Viewer(viewer) => vec![Piece::Viewer(viewer.clone())],
        Maps::Pictures { placement, free, size } => {
            let picture = |file: &str, caption: &str| Piece::Picture(Picture::file(file, *size, caption));
            let free_caption = "Free memory below the height, by step and band of addresses; holes below a buffer in warm colours.";
            let caption = format!("Placement: time across, address up, {}.", map.colours);
            vec![picture(placement, &caption), picture(free, free_caption)]
        }
    }
}

fn result_sentence(cell: &CellRow, row: &Record) -> String {
    let height = row
        .height
        .map_or_else(|| "no plan".to_owned(), |height| format!("a height of {}", format_bytes(height)));
    let gap =
        cell.gap.map(|gap| format!(", {} above the best bound", format_percent(gap))).unwrap_or_default();
    let time =
        row.median_ns().map(|time| format!(", in {}", format_nanoseconds(as_real(time)))).unwrap_or_default();
    format!("{}: {height}{gap}{time}.", row.status.name())
}

/// The digests and the parameters that define the cell.
fn identity_facts(row: &Record) -> Vec<(&'static str, String)> {
    vec![
        ("parameters", row.parameters.clone()),
        ("cell", row.cell.clone()),
        ("plan", row.plan.clone().unwrap_or_else(|| "none".to_owned())),
        ("planner's version", row.planner_version.clone()),
    ]
}

fn number_facts(cell: &CellRow, row: &Record) -> Vec<(&'static str, String)> {
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
    let samples: Vec<String> = row.samples_ns.iter().map(|&ns| format_nanoseconds(as_real(ns))).collect();
    let lane =
        if row.lane == planlab_results::Lane::Timing { "alone" } else { "may have run beside other cells" };
    vec![
        ("status", format!("{} {}", row.status.name(), describe_exit(row.signal, row.exit_code))),
        ("why it stopped", or_none(row.stop.map(|stop| stop.to_string()))),
        ("height", or_none(row.height.map(exact_bytes))),
        ("load", load_of(cell)),
        ("own bound", format!("{}, by {}", exact_bytes(row.bound), row.bound_evidence)),
        ("best bound", exact_bytes(cell.best_bound)),
        ("gap to it", or_none(cell.gap.map(format_percent))),
        ("fragmentation", or_none(row.fragmentation().map(format_percent))),
        ("hand-overs", hand_overs(row)),
        ("planning times", format!("{} ({lane})", samples.join(", "))),
        ("peak memory", or_none(row.peak_rss_bytes.map(format_bytes))),
        ("seed", row.seed.to_string()),
        ("time limit", or_none(row.wall_limit_ns.map(|ns| format_nanoseconds(as_real(ns))))),
        ("memory limit", or_none(row.memory_limit_bytes.map(format_bytes))),
        ("capacity", or_none(row.target_bytes.map(exact_bytes))),
        ("limits by", row.mechanism.clone()),
        ("remark", if row.reason.is_empty() { "none".to_owned() } else { row.reason.clone() }),
    ]
}

/// The load, and what it would be without in-place permissions if these lower it.
fn load_of(cell: &CellRow) -> String {
    let (load, without) = (exact_bytes(cell.load), exact_bytes(cell.load_without_in_place));
    if cell.load < cell.load_without_in_place { format!("{load}; {without} without in-place") } else { load }
}

/// How many hand-overs the plan uses, or that the planner uses none although some are permitted.
fn hand_overs(row: &Record) -> String {
    match row.bound_without_in_place {
        Some(bound) => {
            format!("never, so that no plan of this planner is lower than {}", format_bytes(bound))
        }
        None => format_count(row.hand_overs),
    }
}

/// The trajectory as a table without files.
fn trajectory_table(row: &Record) -> Table {
    let gap = |height: u64, bound: u64| planlab_dsa::gap(Bytes::new(height), Bytes::new(bound));
    Table::from_rows(
        "",
        "Incumbent and bound over time.",
        &row.trajectory,
        columns!(|point| [
            ("elapsed_ns", "After", CellValue::Nanoseconds(as_real(point.elapsed_ns))),
            ("height_bytes", "Height", CellValue::bytes(point.height)),
            ("bound_bytes", "Bound", CellValue::Bytes(point.bound)),
            ("gap", "Gap", CellValue::share(point.height.map(|height| gap(height, point.bound)))),
        ]),
    )
}
