//! What do nets take by batch, what do in-place and sharing save, and what do other orders and safety in all orders cost?

use std::collections::BTreeMap;

use planlab_results::WorkloadKey;
use planlab_results::table::{Table, Value};

use crate::data::models::{Case, Question, cases};
use crate::figures::Series;
use crate::figures::coord::Axis;
use crate::figures::lines::{self, Curve, Join, Point};
use crate::format::{bytes, real};
use crate::site::Site;
use crate::site::page::{Page, Piece, Text};

/// No buffer shares memory.
const NOTHING: &str = "bump";
const IN_PLACE: &str = "mxnet-sharing/in-place-only";
const SHARING: &str = "mxnet-sharing/sharing-only";
const BOTH: &str = "mxnet-sharing";

/// `None` without a cell of a model.
pub(super) fn page(site: &Site<'_>) -> Option<Page> {
    let cases = cases(site.model);
    cases.first()?;
    let mut page = Page::new("models.html", "Models").named("Models");
    page.heading = "Models: from a net to its memory".into();
    page.pieces.push(Piece::text(Text::marked(
        "Nets from their operations (`planlab list models`), each tensor live from the operation that makes it to the \
         last one that reads it. Parameters and their gradients are kept apart and are no part of these figures, unless \
         one says so.",
    )));
    let sections: [(&str, Vec<Piece>); 5] = [
        ("Memory cost", table_piece(memory_cost(&cases))),
        ("Memory by batch", by_batch(&cases)),
        ("Memory by workspace limit", by_workspace(&cases)),
        ("Other orders of the operations", table_piece(orders(&cases))),
        ("Plans that hold in every legal order", table_piece(safety(&cases))),
    ];
    for (heading, pieces) in sections {
        if !pieces.is_empty() {
            page.pieces.push(Piece::heading(heading));
            page.pieces.extend(pieces);
        }
    }
    Some(page)
}

fn table_piece(table: Table) -> Vec<Piece> {
    if table.rows.is_empty() { Vec::new() } else { vec![Piece::Table(table)] }
}

fn bytes_of(number: Option<u64>) -> Value {
    Value::or_missing(number.map(Value::Bytes))
}

/// How much larger a number is than another; missing where there is no other.
fn excess(number: Option<u64>, base: Option<u64>) -> Value {
    let share =
        |(number, base): (u64, u64)| (base > 0).then(|| Value::Share(real(number) / real(base) - 1.0));
    Value::or_missing(number.zip(base).and_then(share))
}

fn memory_cost(cases: &[Case<'_>]) -> Table {
    let mut table = Table::named(
        "memory_cost",
        "Bytes with neither, with in-place alone, with sharing of blocks alone, with both (MXNet's rules, the best match \
         range), with both and forward only; then what offsets make of the same lifetimes: the lowest plan of all \
         planners that ran, and the load below which no plan without in-place can come. Over: how much more both take \
         than the offsets.",
        &[
            ("workload", "Workload"),
            ("no_optimisation_bytes", "No optimisation"),
            ("in_place_bytes", "In-place"),
            ("sharing_bytes", "Sharing"),
            ("both_bytes", "Both"),
            ("forward_only_bytes", "Forward only"),
            ("offsets_bytes", "Offsets"),
            ("load_bytes", "Load"),
            ("over", "Over"),
        ],
    );
    let plans: Vec<&Case<'_>> = cases.iter().filter(|case| case.question == Question::Plan).collect();
    let by_key: BTreeMap<&WorkloadKey, &Case<'_>> = plans.iter().map(|case| (&case.key, *case)).collect();
    for case in plans.iter().filter(|case| case.heights.contains_key(NOTHING)) {
        let height = |planner| case.heights.get(planner).copied();
        let forward = WorkloadKey::from(case.key.replacen("/train/", "/infer/", 1));
        let is_trained = forward != case.key;
        let forward =
            by_key.get(&forward).filter(|_| is_trained).and_then(|case| case.heights.get(BOTH).copied());
        table.push(vec![
            Value::text(case.key.as_str()),
            bytes_of(height(NOTHING)),
            bytes_of(height(IN_PLACE)),
            bytes_of(height(SHARING)),
            bytes_of(height(BOTH)),
            bytes_of(forward),
            bytes_of(case.lowest()),
            Value::Bytes(case.load),
            excess(height(BOTH), case.lowest()),
        ]);
    }
    table
}

/// A family's cases that differ in a number: the batch, the workspace limit.
type Row<'c, 'm> = Vec<(u64, &'c Case<'m>)>;

fn by_batch(cases: &[Case<'_>]) -> Vec<Piece> {
    let mut families: BTreeMap<String, Row<'_, '_>> = BTreeMap::new();
    for case in cases.iter().filter(|case| case.question == Question::Plan) {
        let Some((net, family)) = case.key.net().zip(case.family()) else { continue };
        if workspace(&case.key).is_some() {
            continue;
        }
        families.entry(family).or_default().push((net.batch, case));
    }
    let drawn = families.into_iter().filter_map(|(family, row)| figure(&family, "batch", row));
    drawn.collect()
}

fn by_workspace(cases: &[Case<'_>]) -> Vec<Piece> {
    let mut families: BTreeMap<String, Row<'_, '_>> = BTreeMap::new();
    let mut table = Table::named(
        "model_workspaces",
        "Load, and the lowest height of all planners that ran, by the workspace of each convolution: bytes (8m is 8 MiB), \
         or multiples of its output (x20).",
        &[
            ("workload", "Workload"),
            ("workspace", "Workspace"),
            ("load_bytes", "Load"),
            ("height_bytes", "Height"),
        ],
    );
    for case in cases.iter().filter(|case| case.question == Question::Plan) {
        let Some((rest, limit)) = workspace(&case.key) else { continue };
        table.push(vec![
            Value::text(rest),
            Value::text(limit),
            Value::Bytes(case.load),
            bytes_of(case.lowest()),
        ]);
        if let Some(bytes) = fixed_bytes(limit) {
            families.entry(rest.to_owned()).or_default().push((bytes, case));
        }
    }
    let drawn = families.into_iter().filter_map(|(family, row)| figure(&family, "workspace in bytes", row));
    drawn.chain(table_piece(table)).collect()
}

/// The key without its workspace, and that (`.../ws8m`).
fn workspace(key: &WorkloadKey) -> Option<(&str, &str)> {
    let (rest, last) = key.rsplit_once('/')?;
    Some((rest, last.strip_prefix("ws")?))
}

/// Bytes of a workspace that is no multiple of something: `8m` is 8 MiB. None has no place on a logarithmic axis.
fn fixed_bytes(limit: &str) -> Option<u64> {
    let bytes = match limit.strip_suffix('m') {
        Some(mebibytes) => mebibytes.parse::<u64>().ok()?.checked_mul(1 << 20)?,
        None => limit.parse().ok()?,
    };
    Some(bytes).filter(|&bytes| bytes > 0)
}

/// Load and heights over a number; `None` for fewer than three numbers.
fn figure(family: &str, title: &str, mut row: Row<'_, '_>) -> Option<Piece> {
    row.sort_by_key(|(number, _)| *number);
    row.dedup_by_key(|(number, _)| *number);
    if row.len() < 3 {
        return None;
    }
    let point = |number: u64, value: u64| Point {
        x: real(number),
        y: real(value),
        tip: format!("{title} {number}: {}", bytes(value)),
    };
    let mut planners: Vec<&str> = row.iter().flat_map(|(_, case)| case.heights.keys().copied()).collect();
    planners.sort_unstable();
    planners.dedup();
    let series = |label: &str, number| Series { label: label.to_owned(), number };
    let load = row.iter().map(|&(number, case)| point(number, case.load)).collect();
    let mut curves = vec![Curve { series: series("load", 0), points: load }];
    for (at, planner) in planners.iter().enumerate() {
        let height = |(number, case): &(u64, &Case<'_>)| Some(point(*number, *case.heights.get(planner)?));
        let points = row.iter().filter_map(height).collect();
        curves.push(Curve { series: series(planner, at + 1), points });
    }
    let (low, high) = lines::range(&curves, |point| point.x)?;
    let most = lines::range(&curves, |point| point.y)?.1;
    let axes = (Axis::log_counts(title, low, high), Axis::bytes("memory", most));
    let drawing = lines::plot(&format!("{family}: memory by {title}"), axes, Join::Lines, &curves)?;
    let caption = format!("Load and heights by {title}, which is on a logarithmic axis.");
    Some(Piece::figure(drawing, caption))
}

fn orders(cases: &[Case<'_>]) -> Table {
    let table = Table::named(
        "model_orders",
        "The net's own order of its operations beside others that the dependencies allow: load, the lowest height of all \
         planners that ran, and what the other order saves of each (below 0: it takes less). A search that found a problem that \
         is there already (the net's own order, or that of an earlier search) has no row.",
        &[
            ("workload", "Workload"),
            ("order", "Order"),
            ("load_bytes", "Load"),
            ("load_of_other_order_bytes", "Load in that order"),
            ("load_change", "Change"),
            ("height_bytes", "Height"),
            ("height_of_other_order_bytes", "Height in that order"),
            ("height_change", "Change"),
        ],
    );
    beside_the_plan(table, cases, |question| match question {
        Question::Order(method) => Some(method),
        _ => None,
    })
}

fn safety(cases: &[Case<'_>]) -> Table {
    let table = Table::named(
        "model_safety",
        "What it costs that a plan holds in every order that the dependencies allow, as operations need that run side by \
         side. Pairs: two buffers are kept apart if some order has both live; ranges: live ranges are made longer, so \
         that every planner can plan it. A net whose own plan is safe has no row.",
        &[
            ("workload", "Workload"),
            ("kept_apart_by", "Kept apart by"),
            ("load_bytes", "Load"),
            ("safe_load_bytes", "Load of the safe one"),
            ("load_change", "Change"),
            ("height_bytes", "Height"),
            ("safe_height_bytes", "Safe height"),
            ("height_change", "Price"),
        ],
    );
    beside_the_plan(table, cases, |question| match question {
        Question::Safe(means) => Some(means),
        _ => None,
    })
}

/// Cases that answer a question, each beside the plan of the same net.
fn beside_the_plan<'m>(
    mut table: Table,
    cases: &[Case<'m>],
    answer: impl Fn(Question<'m>) -> Option<&'m str>,
) -> Table {
    let plans = cases.iter().filter(|case| case.question == Question::Plan);
    let plans: BTreeMap<&WorkloadKey, &Case<'_>> = plans.map(|case| (&case.key, case)).collect();
    for case in cases {
        let Some((how, plan)) = answer(case.question).zip(plans.get(&case.key)) else { continue };
        table.push(vec![
            Value::text(case.key.as_str()),
            Value::text(how),
            Value::Bytes(plan.load),
            Value::Bytes(case.load),
            excess(Some(case.load), Some(plan.load)),
            bytes_of(plan.lowest()),
            bytes_of(case.lowest()),
            excess(case.lowest(), plan.lowest()),
        ]);
    }
    table
}
