//! The page of one cell.

use maud::{Markup, html};

use super::layout::{facts, picture};
use super::tables::exit;
use super::workload::Mapped;
use crate::format::{bytes, count, nanoseconds, percent, real};
use crate::model::{Cell, Model};
use crate::table::{Table, Value};

/// The body of a cell's page.
pub(crate) fn body(model: &Model, map: &Mapped, workload_page: &str) -> Markup {
    let cell = &model.cells[map.cell];
    let row = model.row(cell);
    html! {
        h1 { (model.planner(cell).label) " on " a href=(format!("../{workload_page}")) { (row.workload) } }
        (facts(&numbers(model, cell)))
        (picture(&format!("../{}", map.placement), map.size, "Placement: time across, address up, colour by category."))
        (picture(&format!("../{}", map.free), map.size, "Free memory below the height, by step and band of addresses; holes below a buffer in warm colours."))
        @if row.trajectory.len() > 1 {
            h2 { "Trajectory" }
            (trajectory(model, cell))
        }
        @if !row.stderr_tail.trim().is_empty() {
            h2 { "Standard error" }
            pre { (row.stderr_tail) }
        }
    }
}

fn numbers(model: &Model, cell: &Cell) -> Vec<(&'static str, String)> {
    let row = model.row(cell);
    let exact = |number: u64| format!("{} ({} bytes)", bytes(number), count(number));
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
    let samples: Vec<String> = row.samples_ns.iter().map(|&ns| nanoseconds(real(ns))).collect();
    let lane = if row.lane == planlab_results::Lane::Timing { "alone" } else { "may have run beside others" };
    vec![
        ("status", format!("{} {}", row.status.name(), exit(row))),
        ("why it stopped", or_none(row.stop.map(|stop| stop.to_string()))),
        ("height", or_none(row.height.map(exact))),
        ("load", exact(row.load)),
        ("own bound", format!("{}, by {} ({})", exact(row.bound), row.bound_evidence, row.bound_scope)),
        ("best bound", exact(cell.bound)),
        ("gap to it", or_none(cell.gap.map(percent))),
        ("fragmentation", or_none(row.fragmentation().map(percent))),
        ("hand-overs", count(row.hand_overs)),
        ("planning times", format!("{} ({lane})", samples.join(", "))),
        ("peak memory", or_none(row.peak_rss_bytes.map(bytes))),
        ("parameters", row.parameters.clone()),
        ("seed", row.seed.to_string()),
        ("time limit", or_none(row.wall_limit_ns.map(|ns| nanoseconds(real(ns))))),
        ("memory limit", or_none(row.memory_limit_bytes.map(bytes))),
        ("capacity", or_none(row.target_bytes.map(exact))),
        ("limits by", row.mechanism.clone()),
        ("remark", row.reason.clone()),
        ("cell", row.cell.clone()),
        ("plan", or_none(row.plan.clone())),
        ("planner's version", row.planner_version.clone()),
    ]
}

fn trajectory(model: &Model, cell: &Cell) -> Markup {
    let columns =
        [("elapsed_ns", "After"), ("height_bytes", "Height"), ("bound_bytes", "Bound"), ("gap", "Gap")];
    let mut table = Table::new("trajectory", "Incumbent and bound over time.", &columns);
    for point in &model.row(cell).trajectory {
        let gap = point.height.map(|height| {
            planlab_dsa::gap(planlab_dsa::Bytes::new(height), planlab_dsa::Bytes::new(point.bound))
        });
        table.push(vec![
            Value::Nanoseconds(real(point.elapsed_ns)),
            Value::or_missing(point.height.map(Value::Bytes)),
            Value::Bytes(point.bound),
            Value::or_missing(gap.map(Value::Share)),
        ]);
    }
    table.to_html_alone()
}
