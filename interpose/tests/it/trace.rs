//! Tests `PLANLAB_RECORD`, which writes the requests as a trace.

use std::collections::BTreeMap;

use crate::common::record;

/// Checks a trace row by row; returns the number of requests and the most bytes live at once.
fn peak(trace: &str) -> (usize, u64) {
    let rows = trace.lines().filter(|line| !line.starts_with('#'));
    let (mut live, mut peak, mut count): (BTreeMap<&str, u64>, u64, usize) = (BTreeMap::new(), 0, 0);
    for (number, row) in rows.skip(1).enumerate() {
        let cells: Vec<&str> = row.split(',').collect();
        assert_eq!((cells.len(), cells[0]), (5, (number + 1).to_string().as_str()), "{row}");
        let size: u64 = cells[3].parse().expect("bytes");
        if cells[1] == "alloc" {
            assert_eq!(live.insert(cells[2], size), None, "{row}");
            assert!(cells[4].parse::<u64>().is_ok_and(u64::is_power_of_two), "{row}");
            count += 1;
        } else {
            assert_eq!((live.remove(cells[2]), cells[4]), (Some(size), ""), "{row}");
        }
        peak = peak.max(live.values().sum());
    }
    (count, peak)
}

#[test]
fn every_large_request_is_a_row() {
    let traces = record("calls", "period");
    assert_eq!(traces.len(), 1);
    let (requests, peak) = peak(&traces[0]);
    // 56 rounds of 81, and the buffer of stdout.
    assert!((56 * 81..=56 * 81 + 2).contains(&requests), "{requests}");
    // Two neighbouring blocks of the last layers, and the workspace between them.
    assert!((461_000..470_000).contains(&peak), "{peak}");
}

#[test]
fn requests_of_all_threads_are_in_one_trace() {
    let traces = record("calls", "threads");
    let (requests, _) = peak(&traces[0]);
    assert!(requests >= 8 * 60 * 24, "{requests}");
}

#[test]
fn the_child_of_a_fork_is_not_recorded() {
    let traces = record("calls", "forks");
    assert_eq!(traces.len(), 1);
}
