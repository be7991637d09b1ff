//! The page on models: memory of nets by batch, savings of in-place and sharing, costs of other orders and of safety in
//! all orders.

use std::collections::{BTreeMap, BTreeSet};

use planlab_results::WorkloadKey;
use planlab_results::table::{CellValue, Table, columns};

use crate::data::nets::models::{BOTH, Case, IN_PLACE, NOTHING, Question, SHARING, model_cases};
use crate::data::rows::group_by;
use crate::figures::Series;
use crate::figures::coord::Axis;
use crate::figures::plots::curves::{self, Curve, HEIGHT, Point};
use crate::format::{as_real, format_bytes};
use crate::site::Site;
use crate::site::page::{Menu, Page, Picture, Piece, Text};

/// The page; `None` without a cell of a model.
pub(crate) fn page(site: &Site<'_>) -> Option<Page> {
    let cases = model_cases(site.model, site.replays);
    cases.first()?;
    let mut page =
        Page::new("models.html", "Models").in_menu(Menu::Memory, "What do other orders and sharing save?");
    page.heading = "Models: from a net to its memory".into();
    page.pieces.push(Piece::text(Text::from_marked(
        "Nets as graphs of operations (`planlab list models`, or a graph file). A tensor is live from the operation \
         that makes it to the last one that reads it. Parameters and their gradients are kept beside the plan and are \
         not counted, except under *Largest batch*.",
    )));
    let sections: [(&str, Vec<Piece>); 7] = [
        ("Memory cost", table_piece(memory_cost(&cases))),
        ("Largest batch", table_piece(largest_batches(site, &cases))),
        ("Memory by batch", by_batch(&cases)),
        ("Memory by workspace limit", by_workspace(&cases)),
        ("Other orders of the operations", table_piece(order_table(&cases))),
        ("Plans that hold in every legal order", table_piece(safety_table(&cases))),
        ("Nets drawn", drawing_pieces(site, &cases)),
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

/// The relative excess of a number over another; missing if there is no other.
fn relative_excess(number: Option<u64>, base: Option<u64>) -> CellValue {
    let share = |(number, base): (u64, u64)| {
        (base > 0).then(|| CellValue::Share(as_real(number) / as_real(base) - 1.0))
    };
    CellValue::or_missing(number.zip(base).and_then(share))
}

fn memory_cost(cases: &[Case<'_>]) -> Table {
    let plans: Vec<&Case<'_>> = cases.iter().filter(|case| case.question == Question::Plan).collect();
    let by_key: BTreeMap<&WorkloadKey, &Case<'_>> = plans.iter().map(|case| (&case.key, *case)).collect();
    Table::from_rows(
        "memory_cost",
        "Memory without optimisation, with in-place alone, with sharing of blocks alone, and with both (MXNet's rules \
         and its best match range); with both for inference, which is the forward pass alone; then the same lifetimes \
         with offsets: the lowest plan of all planners that ran, and the load, below which no plan without in-place \
         can be. Over: how much more memory both take than offsets.",
        plans.iter().filter(|case| case.heights.contains_key(NOTHING)),
        columns!(|case| {
            let height = |planner| case.heights.get(planner).copied();
            let forward = WorkloadKey::from(case.key.replacen("/train/", "/infer/", 1));
            let is_trained = forward != case.key;
            let forward =
                by_key.get(&forward).filter(|_| is_trained).and_then(|case| case.heights.get(BOTH).copied());
            [
                ("workload", "Workload", CellValue::text(case.key.as_str())),
                ("no_optimisation_bytes", "No optimisation", CellValue::bytes(height(NOTHING))),
                ("in_place_bytes", "In-place", CellValue::bytes(height(IN_PLACE))),
                ("sharing_bytes", "Sharing", CellValue::bytes(height(SHARING))),
                ("both_bytes", "Both", CellValue::bytes(height(BOTH))),
                ("forward_only_bytes", "Inference", CellValue::bytes(forward)),
                ("offsets_bytes", "Offsets", CellValue::bytes(case.lowest_height())),
                ("load_bytes", "Load", CellValue::Bytes(case.load)),
                ("over", "Over", relative_excess(height(BOTH), case.lowest_height())),
            ]
        }),
    )
}

/// Cases of a family that differ in a number: the batch or the workspace limit.
type Row<'c, 'm> = Vec<(u64, &'c Case<'m>)>;

fn by_batch(cases: &[Case<'_>]) -> Vec<Piece> {
    let plans = cases.iter().filter(|case| case.question == Question::Plan);
    let plans = plans.filter(|case| split_workspace(&case.key).is_none());
    let families = group_by(plans.map(|case| (case.batch, case)), |(_, case)| case.family.as_str());
    families.into_iter().filter_map(|(family, row)| memory_figure(family, "batch", row)).collect()
}

fn by_workspace(cases: &[Case<'_>]) -> Vec<Piece> {
    let mut families: BTreeMap<String, Row<'_, '_>> = BTreeMap::new();
    let plans = cases.iter().filter(|case| case.question == Question::Plan);
    let limited: Vec<(&Case<'_>, &str, &str)> = plans
        .filter_map(|case| split_workspace(&case.key).map(|(rest, limit)| (case, rest, limit)))
        .collect();
    for (case, rest, limit) in &limited {
        if let Some(mebibytes) = fixed_mebibytes(limit) {
            families.entry((*rest).to_owned()).or_default().push((mebibytes, case));
        }
    }
    let table = Table::from_rows(
        "model_workspaces",
        "Load, and the lowest height of all planners that ran, by the workspace of each convolution: bytes (8m is 8 MiB), \
         or multiples of its output (x20).",
        &limited,
        columns!(|(case, rest, limit)| [
            ("workload", "Workload", CellValue::text(*rest)),
            ("workspace", "Workspace", CellValue::text(*limit)),
            ("load_bytes", "Load", CellValue::Bytes(case.load)),
            ("height_bytes", "Height", CellValue::bytes(case.lowest_height())),
        ]),
    );
    let drawn =
        families.into_iter().filter_map(|(family, row)| memory_figure(&family, "workspace in MiB", row));
    drawn.chain(table_piece(table)).collect()
}

/// The key without its workspace, and the workspace (`.../ws8m`).
fn split_workspace(key: &WorkloadKey) -> Option<(&str, &str)> {
    let (rest, last) = key.rsplit_once('/')?;
    Some((rest, last.strip_prefix("ws")?))
}

/// The mebibytes of a fixed workspace: `8m` is 8. `None` for relative ones, and for smaller ones, which a logarithmic
/// axis cannot show.
fn fixed_mebibytes(limit: &str) -> Option<u64> {
    let mebibytes = match limit.strip_suffix('m') {
        Some(mebibytes) => mebibytes.parse::<u64>().ok()?,
        None => limit.parse::<u64>().ok()? >> 20,
    };
    Some(mebibytes).filter(|&mebibytes| mebibytes > 0)
}

/// Load and heights over a number; `None` for fewer than three numbers.
fn memory_figure(family: &str, title: &str, mut row: Row<'_, '_>) -> Option<Piece> {
    row.sort_by_key(|(number, _)| *number);
    row.dedup_by_key(|(number, _)| *number);
    if row.len() < 3 {
        return None;
    }
    let memory: Vec<BTreeMap<String, u64>> =
        row.iter().map(|(_, case)| case.memory_by_planner().collect()).collect();
    let names: BTreeSet<&String> = memory.iter().flat_map(BTreeMap::keys).collect();
    let curve = |label: &str, number: usize, bytes_of: &dyn Fn(usize) -> Option<u64>| {
        let series = Series { label: label.to_owned(), number };
        let point = |(at, (number, _)): (usize, &(u64, _))| {
            let value = bytes_of(at)?;
            let tip = format!("{title} {number}: {}", format_bytes(value));
            Some(Point::new(&series, as_real(*number), as_real(value), &tip))
        };
        let points = row.iter().enumerate().filter_map(point).collect();
        Curve::joined(series, points)
    };
    let mut curves = vec![curve("load", 0, &|at| Some(row[at].1.load))];
    let named = names.into_iter().zip(1..);
    let named = named.map(|(name, number)| curve(name, number, &|at| memory[at].get(name).copied()));
    curves.extend(named.filter(|curve| curve.points.len() > 1));
    let ((low, high), (_, most)) = curves::ranges(&curves)?;
    let axes = (Axis::log_counts(title, low, high), Axis::bytes("memory", most));
    let drawing = curves::plot(&format!("{family}: memory by {title}"), HEIGHT, axes, curves)?;
    let caption = format!("Load, heights of plans, and what allocators hold, by {title} (logarithmic axis).");
    Some(Piece::figure(drawing, caption))
}

/// Memory of devices in units of 10^9 bytes.
const CAPACITIES: [u64; 5] = [8, 16, 24, 40, 80];

fn largest_batches(site: &Site<'_>, cases: &[Case<'_>]) -> Table {
    let names = CAPACITIES.map(|capacity| (format!("batch_in_{capacity}_gb"), format!("{capacity} GB")));
    let mut columns = vec![("net", "Net"), ("memory_by", "Memory by"), ("kept_bytes", "Kept beside")];
    columns.extend(names.iter().map(|(name, title)| (name.as_str(), title.as_str())));
    let mut table = Table::for_page(
        "model_largest_batch",
        "The largest batch that was seen to fit into a memory, together with what is kept beside the plan: \
         parameters, and in training their gradients and a momentum. GB: 10^9 bytes. If not every batch was \
         measured, the table has a range: the first fits, the one after the last does not. >=: the largest that \
         was measured still fits. \
         planlab sweep NET --capacity 16GB finds the exact one.",
        &columns,
    );
    let trained = cases.iter().filter(|case| case.question == Question::Plan && case.is_trained());
    let families = group_by(trained, |case| case.family.as_str());
    for (family, cases) in families.into_iter().filter(|(_, cases)| cases.len() >= 3) {
        let Some(kept) = (site.options.nets.kept_bytes)(&cases[0].key) else { continue };
        let mut points: BTreeMap<String, BTreeMap<u64, u64>> = BTreeMap::new();
        for case in cases {
            points.entry("load".to_owned()).or_default().insert(case.batch, case.load);
            for (name, bytes) in case.memory_by_planner() {
                points.entry(name).or_default().insert(case.batch, bytes);
            }
        }
        for (name, points) in points.into_iter().filter(|(_, points)| points.len() >= 3) {
            let mut row = vec![CellValue::text(family), CellValue::text(name), CellValue::Bytes(kept)];
            let room = CAPACITIES.map(|capacity| (capacity * 1_000_000_000).checked_sub(kept));
            row.extend(room.map(|room| CellValue::text(batch_words(&points, room))));
            table.push(row);
        }
    }
    table
}

/// The largest batch that fits, in words.
fn batch_words(points: &BTreeMap<u64, u64>, room: Option<u64>) -> String {
    let fits = |&(_, &bytes): &(&u64, &u64)| room.is_some_and(|room| bytes <= room);
    let last = points.iter().take_while(fits).last().map(|(&batch, _)| batch);
    let next = points.iter().find(|point| !fits(point)).map(|(&batch, _)| batch);
    match (last, next) {
        (Some(last), None) => format!(">= {last}"),
        (Some(last), Some(next)) if next == last + 1 => last.to_string(),
        (Some(last), Some(next)) => format!("{last} to {}", next - 1),
        (None, Some(1)) => "none".to_owned(),
        (None, _) if room.is_none() => "none".to_owned(),
        (None, next) => format!("< {}", next.unwrap_or(1)),
    }
}

fn order_table(cases: &[Case<'_>]) -> Table {
    let mut best: BTreeMap<&WorkloadKey, (&str, &Case<'_>)> = BTreeMap::new();
    let mut least: BTreeMap<&WorkloadKey, Option<u64>> = BTreeMap::new();
    for case in cases {
        let Question::Order(search) = case.question else { continue };
        let bound = least.entry(&case.key).or_default();
        *bound = case.order_bound.max(*bound);
        let known = best.entry(&case.key).or_insert((search, case));
        let rank =
            |search, case: &Case<'_>| (case.lowest_height().unwrap_or(u64::MAX), search_position(search));
        if rank(search, case) < rank(known.0, known.1) {
            *known = (search, case);
        }
    }
    let found = beside_the_plan(cases).filter_map(|(case, plan)| {
        let (search, found) = best.get(&case.key)?;
        (found.question == case.question).then_some((case, plan, *search))
    });
    Table::from_rows(
        "model_orders",
        "The net's own order of its operations beside the order of the lowest plan that a search found: load, lowest height \
         of all planners that ran, and the change of each (below 0: less memory). Found by: the first search that came so \
         low. Least: no legal order needs less, as proved; if planners work in place, an output that takes its \
         input's place does not count. If it equals the height, no other order helps.",
        found,
        columns!(|(case, plan, search)| [
            ("workload", "Workload", CellValue::text(case.key.as_str())),
            ("order", "Found by", CellValue::text(search)),
            ("least_bytes", "Least", CellValue::bytes(least.get(&case.key).copied().flatten())),
            ("load_bytes", "Load", CellValue::Bytes(plan.load)),
            ("load_of_other_order_bytes", "Load in that order", CellValue::Bytes(case.load)),
            ("load_change", "Change", relative_excess(Some(case.load), Some(plan.load))),
            ("height_bytes", "Height", CellValue::bytes(plan.lowest_height())),
            ("height_of_other_order_bytes", "Height in that order", CellValue::bytes(case.lowest_height())),
            ("height_change", "Change", relative_excess(case.lowest_height(), plan.lowest_height())),
        ]),
    )
}

fn search_position(search: &str) -> usize {
    ["greedy", "local-search", "exact"].iter().position(|name| *name == search).unwrap_or(usize::MAX)
}

fn safety_table(cases: &[Case<'_>]) -> Table {
    let count = |number: Option<u64>| CellValue::or_missing(number.map(CellValue::Count));
    let safe = beside_the_plan(cases).filter_map(|(case, plan)| match case.question {
        Question::Safe(means) => Some((case, plan, means)),
        _ => None,
    });
    Table::from_rows(
        "model_safety",
        "The cost of a plan that holds in every order that the dependencies allow; operations that run in \
         parallel need one. Pairs: two buffers are kept apart if some order has both live. Ranges: live ranges are widened, so that any \
         planner can plan them. Fails: in how many random legal orders two live buffers of the plain plan, and of the safe \
         one, overlapped.",
        safe,
        columns!(|(case, plan, means)| [
            ("workload", "Workload", CellValue::text(case.key.as_str())),
            ("kept_apart_by", "Kept apart by", CellValue::text(means)),
            ("orders", "Orders run", count(case.orders.map(|(run, _)| run))),
            ("plain_fails", "Plain plan fails", count(plan.orders.map(|(_, failed)| failed))),
            ("safe_fails", "Safe plan fails", count(case.orders.map(|(_, failed)| failed))),
            ("load_bytes", "Load", CellValue::Bytes(plan.load)),
            ("safe_load_bytes", "Load of the safe one", CellValue::Bytes(case.load)),
            ("load_change", "Change", relative_excess(Some(case.load), Some(plan.load))),
            ("height_bytes", "Height", CellValue::bytes(plan.lowest_height())),
            ("safe_height_bytes", "Safe height", CellValue::bytes(case.lowest_height())),
            ("height_change", "Price", relative_excess(case.lowest_height(), plan.lowest_height())),
        ]),
    )
}

/// The cases, each with the plan of the same net in its own order.
fn beside_the_plan<'c, 'm>(cases: &'c [Case<'m>]) -> impl Iterator<Item = (&'c Case<'m>, &'c Case<'m>)> {
    let plans = cases.iter().filter(|case| case.question == Question::Plan);
    let plans: BTreeMap<&WorkloadKey, &Case<'_>> = plans.map(|case| (&case.key, case)).collect();
    cases.iter().filter_map(move |case| Some((case, *plans.get(&case.key)?)))
}

/// A table with links to all drawings, and the smallest drawing itself.
fn drawing_pieces(site: &Site<'_>, cases: &[Case<'_>]) -> Vec<Piece> {
    let Some(smallest) = site.drawn.iter().min_by_key(|net| net.size.1) else {
        let is_studied = cases.iter().any(|case| case.orders.is_some());
        let none =
            "None of the nets could be drawn: Graphviz (`dot`) is not installed, or they are too large.";
        return if is_studied { vec![Piece::note(Text::from_marked(none))] } else { Vec::new() };
    };
    let mut table = Table::new(&["Net", "Drawing"]);
    for net in &site.drawn {
        let (width, height) = net.size;
        let shown = format!("{width} x {height} pixels");
        table.push(vec![site.workload_link(&net.key), CellValue::Link(shown, net.file.clone())]);
    }
    let caption = format!(
        "{}: operations with their step and the bytes live while they run; those at the peak are filled. Edges are tensors; \
         parameters are not drawn.",
        smallest.key
    );
    let picture = Picture { is_tall: true, ..Picture::file(&smallest.file, smallest.size, caption) };
    vec![Piece::Picture(picture), Piece::Table(table)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_batch_is_exact_where_its_neighbour_was_measured() {
        let points = BTreeMap::from([(1, 10), (2, 20), (4, 40), (5, 50), (8, 80)]);
        let shown = [5, 10, 25, 40, 60, 80].map(|room| batch_words(&points, Some(room)));
        assert_eq!(shown, ["none", "1", "2 to 3", "4", "5 to 7", ">= 8"]);
        assert_eq!(batch_words(&points, None), "none");
        assert_eq!(batch_words(&BTreeMap::from([(4, 40)]), Some(1)), "< 4");
        assert_eq!(batch_words(&BTreeMap::from([(4, 40)]), None), "none");
    }
}
