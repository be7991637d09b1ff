//! The page on allocators: how close each comes to the best plan, and what it does with little or real memory.

use planlab_dsa::performance::End;
use planlab_results::WorkloadKey;
use planlab_results::table::{CellValue, Column, Table, columns};

use crate::data::nets::pools;
use crate::data::replays::Case;
use crate::figures::plots::savings;
use crate::format::as_real;
use crate::site::Site;
use crate::site::page::{Menu, Page, Piece};

/// The page; `None` unless an allocator was played.
pub(crate) fn page(site: &Site<'_>) -> Option<Page> {
    let mut pieces = Vec::new();
    if let Some(close) = pools::allocator_closeness(site.model, site.replays) {
        pieces.push(Piece::text(format!(
            "{} comes closest to the best plans: it reserves {} more on average, over the {} workloads that are compared. \
             These are the workloads of all allocators that served at least half.",
            close.ranked[0].0,
            crate::format::format_percent(close.ranked[0].1),
            close.workloads,
        )));
        pieces.extend(savings::plot_closeness(&close.ranked).map(|drawing| {
            let caption = "Reserved memory over the height of the best plan, less 1: geometric mean over the same workloads.";
            Piece::chapter(drawing, caption)
        }));
    }
    let sections = [
        ("Each allocator beside the best plans", pools::summary_table(site.model, site.replays)),
        ("By workload", all_pools(site)),
        ("On a device of limited memory", limited(site)),
        ("On real memory", physical(site)),
    ];
    pieces.extend(sections.into_iter().flat_map(|(heading, table)| Piece::section(heading, table)));
    let question = "Which allocator comes closest?";
    let page = || Page::new("allocators.html", question).in_menu(Menu::Allocators, question);
    (!pieces.is_empty()).then(|| page().with(pieces))
}

/// The reserved bytes of each allocator divided by the requested peak.
fn all_pools(site: &Site<'_>) -> Table {
    let held = |case: &Case| case.held_bytes().into_iter().map(|(label, _)| label);
    let mut contenders: Vec<String> = site.replays.simulated_cases().flat_map(held).collect();
    contenders.sort_unstable();
    contenders.dedup();
    let mut workloads: Vec<&WorkloadKey> =
        site.replays.simulated_cases().map(|case| &case.summary_row().workload).collect();
    workloads.dedup();
    let mut table = Table::for_page(
        "memory-by-allocator",
        "The most that each allocator reserved over the most that was requested at once, less 1; the tooltip has the \
         bytes. profile-guided has two columns: what it settles at, and what it took with its first propagation, which a \
         pool serves. A cross: it did not serve all requests.",
        &[("workload", "Workload")],
    );
    table.turned = true;
    table.columns.extend(contenders.iter().map(|key| Column { key: key.clone(), title: key.clone() }));
    for workload in workloads {
        let of = |contender: &String| {
            let mut cases = site.replays.simulated_cases().filter(|case| *case.workload() == **workload);
            CellValue::or_missing(cases.find_map(|case| {
                let (_, held) = case.held_bytes().into_iter().find(|(label, _)| label == contender)?;
                Some(over(case, held))
            }))
        };
        let mut row = vec![site.workload_link(workload)];
        row.extend(contenders.iter().map(of));
        table.push(row);
    }
    table
}

fn over(case: &Case, held: u64) -> CellValue {
    let row = case.summary_row();
    if row.performance.status != End::Complete || row.requested_peak == 0 {
        return CellValue::text("\u{2717}");
    }
    let share = as_real(held) / as_real(row.requested_peak) - 1.0;
    CellValue::Heat(share.max(0.0), format!("{} bytes", crate::format::format_count(held)))
}

/// Replays with a memory limit.
fn limited(site: &Site<'_>) -> Table {
    Table::from_rows(
        "memory-by-capacity",
        "Allocators on a device of limited memory: whether all requests were served.",
        site.replays
            .cases
            .iter()
            .filter_map(|case| Some((case, &case.summary_row().performance, case.summary_row().capacity?))),
        columns!(|(case, performance, capacity)| [
            ("workload", "Workload", CellValue::text(case.workload())),
            ("allocator", "Allocator", CellValue::text(&case.series.label)),
            ("device", "Device", CellValue::text(case.place.name())),
            ("capacity_bytes", "Capacity", CellValue::Bytes(capacity)),
            ("status", "Status", CellValue::text(performance.status.name())),
            ("reserved_bytes", "Reserved", CellValue::Bytes(performance.reserved_peak)),
            ("device_allocations", "Calls to the device", CellValue::Count(performance.device_allocations)),
            ("reason", "Remark", CellValue::text(&performance.reason)),
        ]),
    )
}

/// Reserved bytes on real memory, by the allocator's own count and by that of the device or the system.
fn physical(site: &Site<'_>) -> Table {
    Table::from_rows(
        "memory-physical",
        "On real memory, all threads together: the most that the contender itself counted as reserved, and by how much the \
         memory of the process or the device grew at most. If no byte is touched, the system gives no pages.",
        site.replays.cases.iter().filter(|case| case.summary_row().device != "simulated"),
        columns!(|case| {
            let row = case.summary_row();
            let performance = &row.performance;
            let threads = u64::from(row.threads);
            [
                ("workload", "Workload", CellValue::text(case.workload())),
                ("contender", "Contender", CellValue::text(&case.series.label)),
                ("device", "Device", CellValue::text(case.place.name())),
                ("threads", "Threads", CellValue::Count(threads)),
                ("requested_bytes", "Requested at once", CellValue::Bytes(row.requested_peak * threads)),
                ("reserved_bytes", "Reserved", CellValue::Bytes(performance.reserved_peak)),
                ("used_bytes", "In use", CellValue::bytes(performance.used_peak)),
                ("physical_bytes", "Physical", CellValue::bytes(performance.physical_peak)),
                ("device_allocations", "Calls for memory", CellValue::Count(performance.device_allocations)),
            ]
        }),
    )
}
