//! The seeds of the fuzz targets, as ordinary tests.

use std::fs;
use std::path::Path;

#[path = "../../../fuzz/checks.rs"]
mod checks;

fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let mut seeds = 0;
    for entry in fs::read_dir(&folder).expect("a corpus") {
        let bytes = fs::read(entry.expect("readable").path()).expect("readable");
        check(&bytes);
        // Every seed cut short, and with a byte turned, is a neighbour that a fuzzer would try.
        for at in 0..bytes.len() {
            check(&bytes[..at]);
            let mut turned = bytes.clone();
            for byte in [b',', b'\n', b'0', b'-', b'"', b'#', 0xff] {
                turned[at] = byte;
                check(&turned);
            }
        }
        seeds += 1;
    }
    assert!(seeds >= 4, "{target} has {seeds} seeds");
}

#[test]
fn traces() {
    replay("trace", checks::check_trace);
}

#[test]
fn minimalloc_files() {
    replay("minimalloc", checks::check_minimalloc);
}

#[test]
fn plans() {
    replay("plan", checks::check_plan);
}

#[test]
fn snapshots() {
    replay("snapshot", checks::check_snapshot);
}

#[test]
fn modules_of_xla() {
    replay("hlo", checks::check_hlo);
}

#[test]
fn models_of_onnx() {
    replay("onnx", checks::check_onnx);
}

#[test]
fn models_of_tflite() {
    replay("tflite", checks::check_tflite);
}

#[test]
fn programs_of_executorch() {
    replay("executorch", checks::check_executorch);
}

#[test]
fn texts_of_compilers() {
    let checks = [checks::check_xla_text, checks::check_glow, checks::check_iopddl, checks::check_ggml];
    // Each on the others' files, too.
    checks.into_iter().for_each(|check| replay("texts", check));
}

#[test]
fn profiles() {
    replay("profile", checks::check_profile);
}
