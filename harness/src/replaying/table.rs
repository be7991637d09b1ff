//! Rows of replays as people and programs read them.

use planlab_results::replay::{CallTime, ReplayRow, ReplayStatus};
use serde_json::{Value, json};

use super::row::name;
use crate::quantity::seconds;
use crate::table::Table;
use crate::view::{JSON_VERSION, percent};

/// One process as `replay --json` prints it: its row, and what follows from it.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds and seconds as numbers")]
pub(crate) fn object(row: &ReplayRow, options: &str) -> Value {
    let per_request = median(&cpu_ps(row)).map(|ps| ps as f64 / 1000.0);
    let propagation = median(&wall_ns(row)).map(|ns| ns as f64 / 1e9);
    json!({
        "version": JSON_VERSION,
        "cpu_ns_per_request": per_request,
        "seconds_per_propagation": propagation,
        "options": options,
        "row": row,
    })
}

/// CPU time of each request with its free, sample by sample, in picoseconds.
fn cpu_ps(row: &ReplayRow) -> Vec<u64> {
    let requests = row.requests.saturating_mul(row.threads.into());
    let of = |cpu_ns: u64, propagations: u32| {
        let calls = u128::from(requests) * u128::from(propagations);
        u64::try_from(u128::from(cpu_ns) * 1000 / calls.max(1)).unwrap_or(u64::MAX)
    };
    row.samples.iter().filter_map(|sample| Some(of(sample.cpu_ns?, sample.propagations))).collect()
}

/// Wall time of a propagation, sample by sample, in nanoseconds.
fn wall_ns(row: &ReplayRow) -> Vec<u64> {
    row.samples.iter().map(|sample| sample.wall_ns / u64::from(sample.propagations.max(1))).collect()
}

/// The value in the middle; of an even number, the upper.
pub(super) fn median(values: &[u64]) -> Option<u64> {
    let mut values = values.to_vec();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// Contenders side by side: the rows of one, of all its processes, in one line.
pub(crate) fn table(rows: &[ReplayRow]) -> String {
    let mut table = Table::new(&[
        "contender",
        "threads",
        "CPU/request",
        "range",
        "alloc",
        "free",
        "propagation",
        "reserved peak",
        "over requests",
        "resident",
        "warm-up",
        "status",
    ]);
    let mut seen: Vec<&str> = Vec::new();
    for row in rows {
        if !seen.contains(&row.cell.as_str()) {
            seen.push(&row.cell);
            let same: Vec<&ReplayRow> = rows.iter().filter(|other| other.cell == row.cell).collect();
            table.row(line(&same));
        }
    }
    table.render()
}

/// The line of a contender's processes.
fn line(rows: &[&ReplayRow]) -> Vec<String> {
    let worst = rows.iter().max_by_key(|row| row.status);
    let Some(row) = worst else { return Vec::new() };
    let of = |value: &dyn Fn(&ReplayRow) -> Option<u64>| -> Vec<u64> {
        rows.iter().filter_map(|row| value(row)).collect()
    };
    let cpu = of(&|row| median(&cpu_ps(row)));
    let call = |time: fn(&ReplayRow) -> Option<CallTime>| {
        median(&of(&|row| time(row).map(|time| time.median_ps))).map_or_else(String::new, picoseconds)
    };
    let number = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    let requested = planlab_dsa::Bytes::new(row.requested_peak.saturating_mul(row.threads.into()));
    let reserved = of(&|row| (row.status == ReplayStatus::Complete).then_some(row.reserved_peak));
    let reserved = reserved.into_iter().max();
    let over = reserved.map(|peak| planlab_dsa::fragmentation(planlab_dsa::Bytes::new(peak), requested));
    vec![
        name_of(row),
        row.threads.to_string(),
        median(&cpu).map_or_else(String::new, picoseconds),
        range(&cpu),
        call(|row| row.alloc),
        call(|row| row.free),
        median(&of(&|row| median(&wall_ns(row)))).map_or_else(String::new, seconds),
        number(reserved),
        percent(over),
        number(of(&|row| row.physical_peak).into_iter().max()),
        row.warm_up.to_string() + if row.is_steady { "" } else { " (not steady)" },
        told(row),
    ]
}

/// What people see: `plan (portfolio)`.
pub(super) fn name_of(row: &ReplayRow) -> String {
    match row.planner.as_ref().filter(|_| row.plan.is_some()) {
        Some(planner) => format!("{} ({planner})", row.contender),
        None => row.contender.clone(),
    }
}

/// From the fastest to the slowest process.
fn range(values: &[u64]) -> String {
    match (values.iter().min(), values.iter().max()) {
        (Some(&low), Some(&high)) if values.len() > 1 => format!("{}..{}", picoseconds(low), picoseconds(high)),
        _ => String::new(),
    }
}

pub(super) fn told(row: &ReplayRow) -> String {
    let status = name(&row.status);
    if row.reason.is_empty() { status } else { format!("{status}: {}", row.reason) }
}

#[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
pub(super) fn picoseconds(ps: u64) -> String {
    if ps < 1_000_000 { format!("{:.2} ns", ps as f64 / 1000.0) } else { seconds(ps / 1000) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_a_value() {
        assert_eq!((median(&[]), median(&[3]), median(&[3, 1]), median(&[5, 1, 3])), (None, Some(3), Some(3), Some(3)));
    }

    #[test]
    fn times_of_calls_have_a_unit() {
        assert_eq!((picoseconds(1_500), picoseconds(2_500_000)), ("1.50 ns".to_owned(), "2.500 us".to_owned()));
        assert_eq!((range(&[1_000]), range(&[2_000, 1_000])), (String::new(), "1.00 ns..2.00 ns".to_owned()));
    }
}
