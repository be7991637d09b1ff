//! The seeds of the fuzz targets for graph files, profiles, training nets and schedules, as ordinary tests.

use std::fs;
use std::path::Path;

#[path = "../../../fuzz/graph_checks.rs"]
mod graph_checks;
#[path = "../../../fuzz/measured_checks.rs"]
mod measured_checks;
#[path = "../../../fuzz/schedule_checks.rs"]
mod schedule_checks;

use graph_checks::check_graph;
use measured_checks::check_measured;
use schedule_checks::check_schedule;

/// Checks every seed of a corpus, and variants that a fuzzer would try: truncated, without one byte, and with one byte
/// changed. Returns the number of seeds.
fn check_neighbours(corpus: &str, check: fn(&[u8])) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(corpus);
    let mut seeds = 0;
    for entry in fs::read_dir(&folder).expect("a corpus") {
        let bytes = fs::read(entry.expect("readable").path()).expect("readable");
        check(&bytes);
        for at in 0..bytes.len() {
            check(&bytes[..at]);
            check(&[&bytes[..at], &bytes[at + 1..]].concat());
            let mut turned = bytes.clone();
            for byte in b"xyabv01489-.#\"\n\xff" {
                turned[at] = *byte;
                check(&turned);
            }
        }
        seeds += 1;
    }
    seeds
}

#[test]
fn graph_files_are_refused_or_come_back() {
    let seeds = check_neighbours("graph", check_graph);
    assert!(seeds >= 5, "{seeds} seeds");
}

#[test]
fn profiles_are_refused_or_become_nets() {
    let seeds = check_neighbours("measured", check_measured);
    assert!(seeds >= 4, "{seeds} seeds");
}

#[test]
fn nets_and_schedules_are_refused_or_come_back() {
    let seeds = check_neighbours("schedule", check_schedule);
    assert!(seeds >= 3, "{seeds} seeds");
}
