//! The seeds of the fuzz target for graph files, as an ordinary test.

use std::fs;
use std::path::Path;

#[path = "../../../fuzz/graph_checks.rs"]
mod checks;

#[test]
fn graph_files_are_refused_or_come_back() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/graph");
    let mut seeds = 0;
    for entry in fs::read_dir(&folder).expect("a corpus") {
        let bytes = fs::read(entry.expect("readable").path()).expect("readable");
        checks::check_graph(&bytes);
        // Every seed cut short, without a byte, and with a byte turned, is a neighbour that a fuzzer would try.
        for at in 0..bytes.len() {
            checks::check_graph(&bytes[..at]);
            checks::check_graph(&[&bytes[..at], &bytes[at + 1..]].concat());
            let mut turned = bytes.clone();
            for byte in b"xyabv01489-.#\"\n\xff" {
                turned[at] = *byte;
                checks::check_graph(&turned);
            }
        }
        seeds += 1;
    }
    assert!(seeds >= 5, "{seeds} seeds");
}
