//! The seeds of the fuzz targets, as ordinary tests.

use std::fs;
use std::path::Path;

#[path = "../../../fuzz/checks.rs"]
mod checks;

fn replay(target: &str, corpus: &str) {
    let check = |bytes: &[u8]| checks::check(target, bytes);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(corpus);
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
    assert!(seeds >= 4, "{corpus} has {seeds} seeds");
}

macro_rules! replay {
    ($($test:ident: $targets:expr, $corpus:literal;)*) => {$(
        #[test]
        fn $test() {
            $targets.into_iter().for_each(|target| replay(target, $corpus));
        }
    )*};
}

replay! {
    traces: ["trace"], "trace";
    minimalloc_files: ["minimalloc"], "minimalloc";
    plans: ["plan"], "plan";
    snapshots: ["snapshot"], "snapshot";
    profiles: ["profile"], "profile";
    modules_of_xla: ["hlo"], "hlo";
    models_of_onnx: ["onnx"], "onnx";
    models_of_tflite: ["tflite"], "tflite";
    programs_of_executorch: ["executorch"], "executorch";
    // Each on the others' files, too.
    texts_of_compilers: ["xla_text", "glow", "iopddl", "ggml"], "texts";
}
