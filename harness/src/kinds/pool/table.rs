//! Prints rows of replays, as a table and as JSON.

use planlab_dsa::Bytes;
use planlab_dsa::performance::{CallTime, End, Sample};
use planlab_results::replay::ReplayRow;
use planlab_results::statistics::median;
use serde_json::{Value, json};

use super::contender::EMPTY_LOOP;
use crate::shell::JSON_VERSION;
use crate::shell::quantity::{format_memory, format_percent, format_seconds};
use crate::shell::text::{Text, titled_table};

/// One process as `replay --json` prints it: its row and figures derived from it.
pub(crate) fn process_object(row: &ReplayRow, options: &str) -> Value {
    json!({
        "version": JSON_VERSION,
        "cpu_ns_per_request": median(&cpu_ns(row)),
        "seconds_per_propagation": median(&wall_ns(row)).map(|ns| ns / 1e9),
        "options": options,
        "row": row,
    })
}

/// The requests of one propagation; of several that differ, their mean.
#[expect(clippy::cast_precision_loss, reason = "a ratio")]
fn requests_per_propagation(row: &ReplayRow) -> f64 {
    row.requests as f64 / row.sequence.len().max(1) as f64
}

/// Wall time of a request with its free and the work on its memory, in nanoseconds. With several threads, each has this
/// many requests in that time.
pub(super) fn wall_per_request(row: &ReplayRow) -> Option<f64> {
    median(&wall_ns(row)).map(|ns| ns / requests_per_propagation(row)).filter(|time| time.is_finite())
}

/// Time that threads waited for locks per timed request, in nanoseconds; `None` if that is not counted.
#[expect(clippy::cast_precision_loss, reason = "a ratio")]
fn lock_wait(row: &ReplayRow) -> Option<f64> {
    let propagations: u32 = row.performance.samples.iter().map(|sample| sample.propagations).sum();
    let timed = requests_per_propagation(row) * f64::from(row.threads) * f64::from(propagations);
    row.performance.lock_wait_ns.map(|ns| ns as f64 / timed).filter(|time| time.is_finite())
}

/// CPU time of each request with its free, sample by sample, in nanoseconds.
#[expect(clippy::cast_precision_loss, reason = "a ratio")]
fn cpu_ns(row: &ReplayRow) -> Vec<f64> {
    let requests = requests_per_propagation(row) * f64::from(row.threads);
    let of = |cpu_ns: u64, propagations: u32| cpu_ns as f64 / (requests * f64::from(propagations));
    if !row.sequence.is_empty() {
        // The propagations differ in their requests, so the time is over all of them together.
        let cpu_ns: Option<u64> = row.performance.samples.iter().map(|sample| sample.cpu_ns).sum();
        let propagations = row.performance.samples.iter().map(|sample| sample.propagations).sum();
        let time = cpu_ns.map(|cpu_ns| of(cpu_ns, propagations)).filter(|time| time.is_finite());
        return time.into_iter().collect();
    }
    let times =
        row.performance.samples.iter().filter_map(|sample| Some(of(sample.cpu_ns?, sample.propagations)));
    times.filter(|time| time.is_finite()).collect()
}

/// Wall time of a propagation, sample by sample, in nanoseconds.
#[expect(clippy::cast_precision_loss, reason = "a ratio")]
fn wall_ns(row: &ReplayRow) -> Vec<f64> {
    let of = |sample: &Sample| sample.wall_ns as f64 / f64::from(sample.propagations.max(1));
    row.performance.samples.iter().map(of).collect()
}

/// A table of one replay with one line for each contender, over the rows of all its processes.
pub(crate) fn table(rows: &[ReplayRow]) -> Text {
    let mut table = titled_table(
        "contender, threads, CPU/request, above the loop, range, wall/request, alloc, free, propagation, \
         reserved peak, over requests, resident, lock wait, warm-up, status",
    );
    group_processes(rows)
        .iter()
        .for_each(|same| table.push_texts(contender_line(same, cpu_of_loop(rows, same))));
    Text::from(table.without_empty_columns()) + COLUMNS
}

const COLUMNS: &str = "\nCPU and wall time are those of a request with its free. `warm-up` propagations were played before the\n\
    measurement; `simulate` plays a trace once from an empty pool, so a pool can be smaller there.\n";

/// CPU time per request of the empty loop in the same number of threads, which the time of all others includes.
fn cpu_of_loop(rows: &[ReplayRow], same: &[&ReplayRow]) -> Option<f64> {
    let threads = same.first().filter(|row| row.contender != EMPTY_LOOP)?.threads;
    let own = rows.iter().filter(|row| row.contender == EMPTY_LOOP && row.threads == threads);
    median(&own.filter_map(|row| median(&cpu_ns(row))).collect::<Vec<f64>>())
}

/// The rows of each cell, one for each process; cells in the order of their first rows.
pub(crate) fn group_processes(rows: &[ReplayRow]) -> Vec<Vec<&ReplayRow>> {
    let mut cells: Vec<Vec<&ReplayRow>> = Vec::new();
    for row in rows {
        match cells.iter_mut().find(|same| same[0].cell == row.cell) {
            Some(same) => same.push(row),
            None => cells.push(vec![row]),
        }
    }
    cells
}

/// The line of a contender: medians over its processes of each one's median.
fn contender_line(rows: &[&ReplayRow], empty_loop: Option<f64>) -> Vec<String> {
    let Some(row) = rows.iter().max_by_key(|row| row.performance.status) else { return Vec::new() };
    let over_processes = |of: &dyn Fn(&ReplayRow) -> Option<f64>| -> Vec<f64> {
        rows.iter().filter_map(|row| of(row)).collect()
    };
    let time = |of: &dyn Fn(&ReplayRow) -> Option<f64>| {
        median(&over_processes(of)).map_or_else(String::new, time_text)
    };
    let highest = |of: &dyn Fn(&ReplayRow) -> Option<u64>| rows.iter().filter_map(|row| of(row)).max();
    let number = |value: Option<u64>| value.map_or_else(String::new, format_memory);
    let reserved =
        highest(&|row| (row.performance.status == End::Complete).then_some(row.performance.reserved_peak));
    // The empty loop reserves nothing.
    let reserved = reserved.filter(|&peak| peak > 0);
    let requested = Bytes::new(row.requested_peak.saturating_mul(row.threads.into()));
    let cpu = median(&over_processes(&|row| median(&cpu_ns(row))));
    vec![
        contender_words(row),
        row.threads.to_string(),
        time(&|row| median(&cpu_ns(row))),
        cpu.zip(empty_loop).map_or_else(String::new, |(cpu, empty_loop)| time_text(cpu - empty_loop)),
        process_range(&over_processes(&|row| median(&cpu_ns(row)))),
        time(&wall_per_request),
        time(&|row| row.performance.alloc.map(per_call)),
        time(&|row| row.performance.free.map(per_call)),
        time(&|row| median(&wall_ns(row))),
        number(reserved),
        format_percent(reserved.map(|peak| planlab_dsa::fragmentation(Bytes::new(peak), requested))),
        number(highest(&|row| row.performance.physical_peak)),
        median(&over_processes(&lock_wait)).map_or_else(|| "n/a".to_owned(), time_text),
        row.performance.warm_up.to_string() + if row.performance.is_steady { "" } else { " (not steady)" },
        table_notes(row),
    ]
}

pub(super) fn contender_words(row: &ReplayRow) -> String {
    match (&row.planner, &row.plan) {
        (Some(planner), Some(_)) => format!("{} ({planner})", row.contender),
        _ => row.contender.clone(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
pub(super) fn per_call(time: CallTime) -> f64 {
    time.median_ps as f64 / 1000.0
}

/// From the fastest to the slowest process.
pub(super) fn process_range(values: &[f64]) -> String {
    let low = values.iter().copied().reduce(f64::min);
    let high = values.iter().copied().reduce(f64::max);
    match low.zip(high).filter(|_| values.len() > 1) {
        Some((low, high)) => format!("{} to {}", time_text(low), time_text(high)),
        None => String::new(),
    }
}

pub(super) fn table_notes(row: &ReplayRow) -> String {
    let status = row.performance.status.name().to_owned();
    if row.performance.reason.is_empty() { status } else { format!("{status}: {}", row.performance.reason) }
}

/// A time in nanoseconds. Single calls take few nanoseconds, so small times have two decimals.
pub(super) fn time_text(time: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a time, and whole nanoseconds do"
    )]
    let whole = time as u64;
    if time < 1000.0 { format!("{time:.2} ns") } else { format_seconds(whole) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_calls_have_a_unit() {
        assert_eq!((time_text(1.5), time_text(2500.0)), ("1.50 ns".to_owned(), "2.500 us".to_owned()));
        assert_eq!(
            (process_range(&[1.0]), process_range(&[2.0, 1.0])),
            (String::new(), "1.00 ns to 2.00 ns".to_owned())
        );
    }
}
