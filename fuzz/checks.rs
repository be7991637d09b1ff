// What holds for any bytes at all. The fuzz targets call this with what the fuzzer finds, and the tests
// of `planlab-workloads` with the seeds in `corpus/`.

use planlab_dsa::{Offset, Plan};
use planlab_workloads::formats::{
    Document, InputLimits, PlanFile, Trace, import, read_trace, recognise_document, with_offline_plan,
    write_minimalloc, write_plan, write_trace,
};
use planlab_workloads::waste::{Cause, Waste};
use planlab_workloads::{Dialect, ReadOptions};

/// Checks what a fuzz target is named after.
pub(crate) fn check(target: &str, bytes: &[u8]) {
    match target {
        "trace" => check_trace(bytes),
        "minimalloc" => check_minimalloc(bytes),
        "plan" => check_plan(bytes),
        "tflite" => check_tflite(bytes),
        "onnx" => check_onnx(bytes),
        "snapshot" => check_import("torch-snapshot", bytes),
        "profile" => check_import("torch-profiler", bytes),
        "hlo" => check_import("xla-hlo", bytes),
        "xla_text" => check_import("xla-text", bytes),
        format => check_import(format, bytes),
    }
}

fn read(bytes: &[u8], options: &ReadOptions) -> Option<Trace> {
    match read_trace("input", bytes, options) {
        Ok(trace) => Some(trace),
        Err(error) => {
            assert!(error.line() >= 1 && error.to_string().len() < 1000, "{error}");
            None
        }
    }
}

/// Checks that a trace is refused with a line, or comes back from its own text as it was.
fn check_trace(bytes: &[u8]) {
    for pins in [false, true] {
        let Some(trace) = read(bytes, &ReadOptions { pins, ..ReadOptions::default() }) else { continue };
        let written = write_trace(&trace);
        let again = read(&written, &ReadOptions::default()).expect("what is written can be read");
        assert_eq!(again.instance, trace.instance);
        assert_eq!(write_trace(&again), written);
    }
}

/// Every dialect is read without a panic; what can be exported keeps its buffers.
fn check_minimalloc(bytes: &[u8]) {
    for dialect in Dialect::ALL {
        let Some(trace) = read(bytes, &ReadOptions { dialect, ..ReadOptions::default() }) else { continue };
        let Ok(written) = write_minimalloc(&trace) else { continue };
        let again = read(&written, &ReadOptions::default()).expect("what is written can be read");
        assert_eq!(again.instance.buffers(), trace.instance.buffers());
    }
}

/// Checks that a plan is refused, or comes back as it was if it has an offset for every buffer.
fn check_plan(bytes: &[u8]) {
    let file = b"id,lower,upper,size,may_overwrite\na,0,3,8,\nb,2,4,8,a\nc,1,2,4,\n";
    let trace = read_trace("trace", file, &ReadOptions::default()).expect("valid");
    let rows = |name: &str, bytes: &[u8]| PlanFile::read_rows(name, bytes, InputLimits::default());
    let Ok(plan) = rows("input", bytes).and_then(|rows| rows.plan_for(&trace)) else { return };
    if plan.offsets.len() == trace.instance.len() {
        let written = write_plan(&trace, &plan);
        let mut again = rows("again", &written)
            .and_then(|rows| rows.plan_for(&trace))
            .expect("what is written can be read");
        again.in_place.sort_unstable();
        assert_eq!(again.offsets, plan.offsets);
    }
    let _ = trace.instance.verify(plan);
}

/// Checks that a file of another tool is refused with a place, or every trace in it comes back from its own text.
fn check_import(format: &str, bytes: &[u8]) {
    let reader = import::reader(format).expect("a format");
    let imported = match import::read("input", bytes, Some(reader), &ReadOptions::default()) {
        Ok(imported) => imported,
        Err(error) => {
            assert!(error.line() >= 1 && error.to_string().len() < 1000, "{error}");
            // Of compressed bytes the place is one of what they unpack to.
            let is_packed =
                matches!(bytes, [_, 0xB5, 0x2F, 0xFD, ..] | [_, 0x2A, 0x4D, 0x18, ..] | [0x1F, 0x8B, 8, ..]);
            assert!(is_packed || reader.has_lines || error.byte().is_some(), "{error}");
            assert!(is_packed || error.byte().is_none_or(|byte| byte <= bytes.len() as u64), "{error}");
            return;
        }
    };
    assert!(!imported.parts.is_empty());
    for part in imported.parts {
        let again =
            read(&write_trace(&part.trace), &ReadOptions::default()).expect("what is written can be read");
        assert_eq!(again.instance, part.trace.instance);
        let Some(framework) = part.framework else { continue };
        let load = part.trace.instance.load().bytes.get();
        if let Some(waste) = Waste::from_framework(&part.trace, &framework) {
            let parts = waste.parts_at(load);
            assert_eq!(
                parts.iter().map(|part| part.1).sum::<i128>(),
                i128::from(waste.reserved) - i128::from(load)
            );
            let is_cause = |&(cause, bytes): &(Cause, i128)| bytes >= 0 || cause == Cause::PlanAbove;
            assert!(parts.iter().all(is_cause), "{parts:?}");
        }
    }
}

/// Checks that a model is also refused as a net in training, or becomes one.
fn check_onnx(bytes: &[u8]) {
    check_import("onnx", bytes);
    match recognise_document("input", bytes, InputLimits::default()) {
        Ok(Document::Foreign(reader, input)) if reader.key == "onnx" => {
            match import::read_training_net(input, "net", None, &[]) {
                Ok(net) => assert!(!net.functions().is_empty() && net.batch() > 0),
                Err(error) => assert!(error.line() >= 1, "{error}"),
            }
        }
        _ => {}
    }
}

/// Checks that a model also takes a plan, and stays the model that it was.
fn check_tflite(bytes: &[u8]) {
    check_import("tflite", bytes);
    let read = |bytes: &[u8]| import::read("input", bytes, None, &ReadOptions::default());
    let Ok(before) = read(bytes) else { return };
    let trace = &before.parts[0].trace;
    // One behind the other.
    let offsets = trace.instance.buffers().iter().scan(0_u64, |end, buffer| {
        let offset = *end;
        *end = offset.checked_add(buffer.size.get())?.checked_next_multiple_of(16)?;
        Some(Offset::new(offset))
    });
    let plan = Plan::from_offsets(offsets.collect::<Vec<_>>());
    if plan.offsets.len() < trace.instance.len() {
        return;
    }
    let Ok(planned) = with_offline_plan("input", bytes, trace, &plan, InputLimits::default()) else { return };
    let after = read(&planned).expect("what was a model still is");
    let instances = |read: &import::Imported| {
        read.parts.iter().map(|part| part.trace.instance.clone()).collect::<Vec<_>>()
    };
    assert_eq!(instances(&before), instances(&after));
}
