//! Writes `workloads/data/MANIFEST.toml` from the files beside it.
//!
//! Run from the repository's root: `cargo run -p planlab-workloads --example make_manifest`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use planlab_dsa::Digest;
use planlab_workloads::formats::{ReadOptions, Trace, read_trace, save};
use planlab_workloads::recorded::key_of;

const HEAD: &str = "\
# Made by: cargo run -p planlab-workloads --example make_manifest
#
# Everything here was produced by running the frameworks' own allocation code; there are no weights and
# no data sets in it. `digest` of a workload is that of the instance (sizes, live ranges, alignments), of
# a file that of its bytes as stored; `load` is in bytes.
";

fn main() -> Result<(), Box<dyn Error>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let mut workloads = BTreeMap::new();
    let mut files = BTreeMap::new();
    for folder in ["chainer", "torch", "schedules", "samples"] {
        for entry in fs::read_dir(data.join(folder))? {
            let entry = entry?;
            let name = entry.file_name().into_string().map_err(|_| "a file name that is not UTF-8")?;
            let file = format!("{folder}/{name}");
            let bytes = fs::read(entry.path())?;
            if name.ends_with(".csv.zst") {
                let trace = read_trace(&file, &bytes, &ReadOptions::default())?;
                let key = key_of(&file, &trace).ok_or_else(|| format!("{file}: no key"))?;
                if let Some(other) = workloads.insert(key.clone(), workload(&key, &file, &trace)) {
                    return Err(format!("{file}: the key {key} is taken by {other}").into());
                }
            } else {
                let line = format!(
                    "{{ file = {file:?}, digest = \"{}\", provenance = {:?} }}",
                    Digest::of_bytes(&bytes),
                    origin(&file)?
                );
                files.insert(file, line);
            }
        }
    }
    let mut out = HEAD.to_owned();
    for (name, lines) in [("workload", &workloads), ("file", &files)] {
        writeln!(out, "\n{name} = [")?;
        lines.values().try_for_each(|line| writeln!(out, "  {line},"))?;
        writeln!(out, "]")?;
    }
    save(&data.join("MANIFEST.toml"), out.as_bytes())?;
    Ok(())
}

fn workload(key: &str, file: &str, trace: &Trace) -> String {
    format!(
        "{{ key = {key:?}, file = {file:?}, digest = \"{}\", buffers = {}, load = {}, provenance = {:?} }}",
        trace.instance.digest(),
        trace.instance.len(),
        trace.instance.load().bytes,
        provenance(trace)
    )
}

fn provenance(trace: &Trace) -> String {
    let meta = |key| trace.labels.meta(key);
    let mut text = match (meta("route"), meta("version")) {
        (Some("nullcuda"), Some(version)) => {
            format!(
                "PyTorch {version}: its CUDA caching allocator and host code on device calls that do nothing"
            )
        }
        (Some("profiler"), Some(version)) => format!("PyTorch {version}: a CPU run under torch.profiler"),
        (Some("fake"), Some(version)) => format!("PyTorch {version}: storages followed under fake tensors"),
        (Some("onnx"), Some(version)) => format!("ONNX Runtime {version}'s graph in its node order"),
        _ => {
            let parts = [meta("framework"), meta("recorder"), meta("scope")];
            parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
        }
    };
    if let Some(assumption) = meta("assumption") {
        text = format!("{text}; {assumption}");
    }
    text
}

fn origin(file: &str) -> Result<&'static str, String> {
    let known = [
        ("chainer/expected.json", "loads, best-fit heights and the totals of CuPy's real pools for chainer/"),
        (
            "chainer/cupy2rc1-pool-cost.txt",
            "time of the real CuPy 2.0.0rc1 pool for one propagation, on a CPU",
        ),
        ("torch/", "the operations of the trace of the same name: buffers read and written, FLOPs"),
        (
            "schedules/pooch_expected",
            "expected results of out-of-core scheduling of ResNet-50 (roofline times)",
        ),
        ("schedules/resnet50_chainer", "ResNet-50's operations in Chainer: FLOPs and bytes per image"),
        (
            "schedules/pd_",
            "a net's layers measured on a V100: msr-fiddle/pipedream, MIT (PIPEDREAM_LICENSE.txt)",
        ),
        ("schedules/PIPEDREAM", "the licence of schedules/pd_*"),
        ("schedules/", "a graph of MXNet 0.11 with the memory total that MXNet itself prints for it"),
        (
            "samples/ggml",
            "the log of ggml's allocator (llama.cpp) for two layers like Llama's at 64, 1 and 64 tokens",
        ),
        ("samples/jax", "an XLA dump of a small net"),
        ("samples/mlp_cpu", "a Chrome trace of torch.profiler with memory events"),
        ("samples/resnet50", "torch.cuda.memory._snapshot of a ResNet-50 run, early or late recording"),
        ("samples/torch2", "torch.cuda.memory._snapshot with two streams and an out-of-memory event"),
        ("samples/squeezenet", "an ONNX model without weights"),
        ("samples/small_cnn", "a TensorFlow Lite model of ten operators, all weights 0"),
    ];
    let found = known.into_iter().find(|(prefix, _)| file.starts_with(prefix));
    found.map(|(_, origin)| origin).ok_or_else(|| format!("{file}: no provenance is known"))
}
