//! Prints the rows of a device's replay as a table.

use planlab_dsa::performance::{End, Sample};
use planlab_dsa::{Bytes, fragmentation};
use planlab_results::replay::ReplayRow;
use planlab_results::statistics::median;

use crate::kinds::pool::table::{
    contender_words, group_processes, per_call, process_range, table_notes, time_text, wall_per_request,
};
use crate::shell::quantity::{format_memory, format_percent};
use crate::shell::text::{Text, titled_table};

/// A table with one line for each contender, over the rows of all its processes. Times are for one propagation.
pub(super) fn table(rows: &[ReplayRow]) -> Text {
    let mut table = titled_table(
        "contender, wall/request, wall, range, enqueue, device, GB/s, alloc, free, reserved peak, \
         over requests, device memory, last: reserved peak, reserved at the end, plans, warm-up, status",
    );
    group_processes(rows).iter().for_each(|same| table.push_texts(contender_line(same)));
    Text::from(table.without_empty_columns()) + COLUMNS
}

const COLUMNS: &str = "\nTimes are those of one propagation. `warm-up` propagations were played before the measurement;\n\
    `simulate` plays a trace once from an empty pool, so a pool can be smaller there.\n";

/// The line of a contender's processes.
fn contender_line(rows: &[&ReplayRow]) -> Vec<String> {
    let Some(row) = rows.iter().max_by_key(|row| row.performance.status) else { return Vec::new() };
    let each = |of: &dyn Fn(&ReplayRow) -> Option<f64>| -> Vec<f64> {
        rows.iter().filter_map(|row| of(row)).collect()
    };
    let over_processes =
        |of: &dyn Fn(&ReplayRow) -> Option<f64>| median(&each(of)).map_or_else(String::new, time_text);
    let time = |of: fn(&Sample) -> Option<u64>| over_processes(&|row| median(&per_propagation(row, of)));
    let number = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    let bytes = |value: Option<u64>| value.map_or_else(String::new, format_memory);
    let complete = rows.iter().filter(|row| row.performance.status == End::Complete);
    // The empty loop reserves nothing.
    let reserved = complete.map(|row| row.performance.reserved_peak).max().filter(|&peak| peak > 0);
    let over = reserved.map(|peak| fragmentation(Bytes::new(peak), Bytes::new(row.requested_peak)));
    let last = row.performance.samples.last();
    let rate = median(&each(&device_throughput));
    vec![
        contender_words(row),
        over_processes(&wall_per_request),
        time(|sample| Some(sample.wall_ns)),
        process_range(&each(&|row| median(&per_propagation(row, |sample| Some(sample.wall_ns))))),
        time(|sample| sample.enqueue_ns),
        time(|sample| sample.device_ns),
        if row.fits_cache() {
            "in L2".to_owned()
        } else {
            rate.map_or_else(String::new, |rate| format!("{rate:.0}"))
        },
        over_processes(&|row| row.performance.alloc.map(per_call)),
        over_processes(&|row| row.performance.free.map(per_call)),
        bytes(reserved),
        format_percent(over),
        bytes(rows.iter().filter_map(|row| row.performance.physical_peak).max()),
        bytes(last.and_then(|sample| sample.reserved_peak)),
        bytes(last.and_then(|sample| sample.reserved)),
        number(last.and_then(|sample| sample.plans)),
        row.performance.warm_up.to_string() + if row.performance.is_steady { "" } else { " (not steady)" },
        table_notes(row) + &refused_mark(row),
    ]
}

/// Marks a contender whose requests the device first refused for lack of room; it is complete nevertheless.
fn refused_mark(row: &ReplayRow) -> String {
    match row.performance.refusals {
        None | Some(0) => String::new(),
        Some(count) => format!(" (the device had no room {count} times)"),
    }
}

/// Gigabytes that kernels wrote and read per second of the device's time. If everything fits in the cache, that is not
/// a rate of the memory.
#[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
fn device_throughput(row: &ReplayRow) -> Option<f64> {
    let bytes = row.touched_bytes? as f64 / row.sequence.len().max(1) as f64;
    let device_ns = median(&per_propagation(row, |sample| sample.device_ns))?;
    Some(bytes / device_ns).filter(|rate| rate.is_finite())
}

#[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
fn per_propagation(row: &ReplayRow, of: fn(&Sample) -> Option<u64>) -> Vec<f64> {
    let each = |sample: &Sample| Some(of(sample)? as f64 / f64::from(sample.propagations.max(1)));
    row.performance.samples.iter().filter_map(each).collect()
}
