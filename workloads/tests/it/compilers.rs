//! Files of compilers: the figures of XLA are those of its own texts, those of ONNX are from `scripts/count-onnx`, those of
//! the small nets of Glow and of the small problem are counted by hand. Public instances are read where `PLANLAB_CORPUS`
//! says that they are.

use std::fs;
use std::path::PathBuf;

use planlab_dsa::{Bytes, Instance};
use planlab_workloads::formats::import::{self, Imported, Part};
use planlab_workloads::formats::{FormatError, ReadOptions, read_trace, write_perfetto, write_trace};
use planlab_workloads::recorded::{data_file, stored_file};

const GGML: &str = "samples/ggml_two_layers.log.zst";
const HLO: &str = "samples/jax_mlp.hlo.pb.zst";
const ASSIGNMENT: &str = "samples/jax_mlp-buffer-assignment.txt";
const LIVE_RANGE: &str = "samples/jax_mlp-live-range.txt";
const NETS: &str = "samples/small_nets.glow.txt";
const PROBLEM: &str = "samples/small_problem.iopddl.json";
const TFLITE: &str = "samples/small_cnn.tflite.zst";
const PROGRAM: &str = "samples/small_mobilenet.pte.zst";
/// Its weights are made by nodes, of constants.
const ALEXNET: &str = "samples/light_bvlc_alexnet.onnx";
const SQUEEZENET: &str = "samples/squeezenet1_0_noweights.onnx";

fn sample(file: &str) -> Vec<u8> {
    stored_file(file).expect("it is embedded").to_vec()
}

fn import(file: &str, bytes: &[u8]) -> Result<Imported, FormatError> {
    import::read(file, bytes, None, &ReadOptions::default())
}

fn import_sample(file: &str) -> Imported {
    import(file, &sample(file)).expect("valid")
}

#[test]
fn a_table_with_the_words_of_a_log_in_it_is_a_table() {
    let log = "ggml_dyn_tallocr_alloc: allocating a (64 bytes) - block 0, offset 0";
    assert!(import::recognise("log", format!("{log}\nexec: ADD (a) <= w\n").as_bytes()).is_some());
    let table = format!("# clock: nodes\nid,lower,upper,size\n{},0,1,64\n", log.replace(',', ";"));
    assert!(import::recognise("table", table.as_bytes()).is_none());
}

fn only_part(imported: &Imported) -> &Part {
    assert_eq!(imported.parts.len(), 1);
    &imported.parts[0]
}

/// Height of the framework's own placement, as a verified plan.
fn own_height(part: &Part) -> u64 {
    let plan = part.own_plan().expect("every buffer is placed");
    part.trace.instance.verify(plan).expect("it is a plan").height().get()
}

fn dropped(imported: &Imported) -> Vec<(u64, &str, u64)> {
    imported.dropped.iter().map(|one| (one.count, one.what.as_str(), one.bytes.unwrap_or(0))).collect()
}

/// What XLA's text says of its allocations: kind and bytes.
fn allocations() -> Vec<(String, u64)> {
    let text = String::from_utf8(sample(ASSIGNMENT)).expect("text");
    let lines = text.lines().filter_map(|line| line.strip_prefix("allocation "));
    lines
        .map(|line| {
            let (_, line) = line.split_once(": size ").expect("a size");
            let (bytes, kind) = line.split_once(", ").expect("a kind");
            (kind.to_owned(), bytes.parse().expect("bytes"))
        })
        .collect()
}

#[test]
fn xlas_heap_is_planned_and_the_rest_is_told_to_the_byte() {
    let imported = import_sample(HLO);
    let part = only_part(&imported);
    // 28 values in the allocation; six of them share another's memory.
    assert_eq!(part.trace.instance.len(), 22);
    assert_eq!(part.framework.as_ref().expect("XLA").reserved_peak, Some(Bytes::new(39_796_736)));
    assert_eq!(own_height(part), 39_796_736);
    assert_eq!(dropped(&imported)[0], (6, "values that share another's memory", 0));
    let all = allocations();
    let of = |word: &str| -> (u64, u64) {
        let bytes = all.iter().filter(|(kind, _)| kind.starts_with(word)).map(|&(_, bytes)| bytes);
        (bytes.clone().count() as u64, bytes.sum())
    };
    let (outputs, live_out) = (of("output"), of("maybe-live-out"));
    for ((count, bytes), what) in [
        (of("parameter"), "allocations of parameters"),
        (of("constant"), "allocations of constants"),
        (of("thread-local"), "allocations of threads"),
        ((outputs.0 + live_out.0, outputs.1 + live_out.1), "allocations of outputs"),
    ] {
        assert!(dropped(&imported).contains(&(count, what, bytes)), "{what}: {:?}", dropped(&imported));
    }
    let left: u64 = imported.dropped.iter().filter_map(|one| one.bytes).sum();
    assert_eq!(left + 39_796_736, all.iter().map(|&(_, bytes)| bytes).sum::<u64>());
}

#[test]
fn xlas_texts_give_the_trace_of_its_dump() {
    let texts = [sample(ASSIGNMENT), sample(LIVE_RANGE)].concat();
    let text = import("joined.txt", &texts).expect("valid");
    let other_order = [sample(LIVE_RANGE), sample(ASSIGNMENT)].concat();
    let swapped = import("joined.txt", &other_order).expect("valid");
    let dump = import_sample(HLO);
    let rows = |part: &Part| {
        let places = part.framework.as_ref().expect("XLA").placement.clone();
        let buffers = part.trace.instance.buffers().iter().zip(&part.trace.labels.buffers).zip(places);
        let mut rows: Vec<(String, u64, Option<u64>)> =
            buffers.map(|((buffer, label), place)| (label.name.clone(), buffer.size.get(), place)).collect();
        rows.sort();
        rows
    };
    assert_eq!(rows(only_part(&text)), rows(only_part(&dump)));
    assert_eq!(only_part(&text).trace.instance, only_part(&swapped).trace.instance);
    let load = |imported: &Imported| only_part(imported).trace.instance.load().bytes;
    assert_eq!(load(&text), load(&dump));
    assert_eq!(own_height(only_part(&text)), 39_796_736);
    // Values at XLA's peak come to its own 90952616 bytes: nothing is reported about it.
    assert!(dropped(&text).iter().all(|(_, what, _)| !what.contains("peak")), "{:?}", dropped(&text));
}

#[test]
fn half_of_xlas_texts_asks_for_the_other() {
    for (file, what) in [(ASSIGNMENT, "when values are live"), (LIVE_RANGE, "how large values are")] {
        let error = import(file, &sample(file)).expect_err("half");
        assert!(error.to_string().contains(what), "{error}");
        assert!(error.to_string().contains("cat *-buffer-assignment.txt *-live-range.txt"), "{error}");
    }
}

#[test]
fn squeezenets_activations_are_those_of_an_independent_count() {
    let imported = import_sample(SQUEEZENET);
    let part = only_part(&imported);
    let instance = &part.trace.instance;
    assert_eq!(
        (instance.len(), instance.total_size().get(), instance.load_without_in_place().bytes.get()),
        (65, 48_385_504, 9_124_608)
    );
    // Every Relu takes the place of what it reads.
    assert_eq!(instance.in_place().len(), 26);
    let weights = (35, "inputs that are read as weights only", 4_985_120);
    assert!(dropped(&imported).contains(&weights), "{:?}", dropped(&imported));
    // Seventeen biases that are another's, and the Flatten.
    assert!(dropped(&imported).contains(&(18, "views", 0)), "{:?}", dropped(&imported));
    let labels = &part.trace.labels.buffers;
    assert_eq!((labels[0].name.as_str(), labels[0].category.as_deref()), ("input.1", Some("input")));
    assert_eq!(labels[1].op.as_deref(), Some("17:Conv"));
    assert_eq!(labels[64].category.as_deref(), Some("output"));
}

#[test]
fn weights_that_nodes_make_of_constants_are_no_buffers() {
    let imported = import_sample(ALEXNET);
    let instance = &only_part(&imported).trace.instance;
    assert_eq!(
        (instance.len(), instance.total_size().get(), instance.load().bytes.get(), instance.in_place().len()),
        (24, 7_743_296, 2_239_488, 7)
    );
    let dropped = dropped(&imported);
    assert!(dropped.contains(&(16, "values that follow from constants", 243_860_896)), "{dropped:?}");
}

#[test]
fn models_are_read_wherever_a_trace_is() {
    let options = ReadOptions { alignment: planlab_dsa::Alignment::new(64), ..ReadOptions::default() };
    for file in [HLO, SQUEEZENET] {
        let trace = read_trace(file, &sample(file), &options).expect("valid");
        assert!(trace.instance.buffers().iter().all(|buffer| buffer.size.get().is_multiple_of(64)));
        let again = read_trace("again.csv", &write_trace(&trace), &ReadOptions::default()).expect("valid");
        assert_eq!(again.instance, trace.instance);
    }
}

#[test]
fn damaged_messages_are_refused_at_their_byte() {
    let hlo = data_file(HLO).expect("it is embedded").into_owned();
    for (file, format, whole) in [("m.onnx", "onnx", sample(SQUEEZENET)), ("m.pb", "xla-hlo", hlo)] {
        let reader = import::reader(format).expect("a format");
        let read = |bytes: &[u8]| import::read(file, bytes, Some(reader), &ReadOptions::default());
        for cut in [1, 7, whole.len() / 3, whole.len() - 1] {
            let error = read(&whole[..cut]).expect_err("cut");
            assert!(error.byte().is_some_and(|byte| byte <= cut as u64), "{file} cut at {cut}: {error}");
        }
        // A length of 2^63.
        let far = [&[0x0A][..], &[0x80; 9], &[0x01]].concat();
        let error = read(&far).expect_err("far");
        assert!(error.to_string().starts_with(&format!("{file}: byte ")), "{error}");
    }
}

/// The figures are from a script that reads the model through TensorFlow's own classes (`schema_py_generated`).
#[test]
fn a_tflite_models_buffers_are_those_of_an_independent_count() {
    let imported = import_sample(TFLITE);
    let part = only_part(&imported);
    let instance = &part.trace.instance;
    let asked = part.trace.labels.buffers.iter().filter_map(|label| label.requested);
    assert_eq!(asked.map(Bytes::get).sum::<u64>(), 42_064);
    // One of 40 bytes and two of 4 are rounded up to 16, as in TensorFlow Lite Micro.
    assert_eq!(
        (instance.len(), instance.total_size().get(), instance.load().bytes.get()),
        (10, 42_080, 24_576)
    );
    assert!(instance.buffers().iter().all(|buffer| buffer.align.get() == 16));
    // The output of its one addition may take either operand's place.
    let permitted: Vec<(usize, usize)> =
        instance.in_place().iter().map(|pair| (pair.output.index(), pair.input.index())).collect();
    assert_eq!(permitted, [(4, 1), (4, 3)]);
    let told = [
        (1, "views", 0),
        (10, "buffers at multiples of 16 bytes, their sizes rounded up to them", 0),
        (8, "tensors with data", 33_336),
    ];
    assert_eq!(dropped(&imported), told);
    let meta = |key| part.trace.labels.meta_value(key);
    assert_eq!((meta("tflite-tensors"), meta("tflite-views")), (Some("19"), Some("16=15")));
    let ops: Vec<&str> = part.trace.labels.buffers.iter().filter_map(|label| label.op.as_deref()).collect();
    assert_eq!(ops.first().zip(ops.last()), Some((&"0:conv_2d", &"9:softmax")));
    assert!(part.own_plan().is_none(), "the model carries no offline plan");
}

/// `scripts/sample-pte` made it, and printed the bytes of ExecuTorch's own plan.
#[test]
fn an_executorch_programs_own_plan_has_the_bytes_that_executorch_says() {
    let imported = import_sample(PROGRAM);
    let part = only_part(&imported);
    assert_eq!((part.name.as_str(), own_height(part)), ("forward", 663_552));
    assert_eq!(part.framework.as_ref().expect("said").reserved_peak, Some(Bytes::new(663_552)));
    assert!(part.trace.instance.buffers().iter().all(|buffer| buffer.align.get() == 16));
}

/// ggml itself had buffers of 573696 and 7744 bytes for these graphs; it keeps the larger for the third.
#[test]
fn ggmls_graphs_need_the_buffer_that_ggml_makes() {
    let imported = import_sample(GGML);
    let figures = imported.parts.iter().map(|part| {
        let instance = &part.trace.instance;
        let own = part.own_plan().expect("every buffer is placed");
        let handed_over = own.in_place.len();
        assert_eq!(instance.in_place().len(), handed_over);
        let height = instance.verify(own).expect("it is a plan").height().get();
        (part.name.as_str(), instance.len(), handed_over, height, instance.load().bytes.get())
    });
    assert_eq!(
        figures.collect::<Vec<_>>(),
        [
            ("graph-0", 50, 16, 573_696, 508_160),
            ("graph-1", 50, 16, 7_744, 7_744),
            ("graph-2", 50, 16, 573_696, 508_160),
        ]
    );
}

/// The curve of what PyTorch held comes to the peak that it counted, in the counters as in its snapshot.
#[test]
fn what_a_framework_reserved_is_a_counter() {
    let file = "samples/resnet50_b64_3it_early.pickle.zst";
    let imported = import_sample(file);
    let part = only_part(&imported);
    let bytes = write_perfetto(&part.trace, None, part.framework.as_ref());
    let document: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
    let events = document["traceEvents"].as_array().expect("events").iter();
    let highest = |name: &str| {
        let of_name = events.clone().filter(|event| event["ph"] == "C" && event["name"] == name);
        of_name.filter_map(|event| event["args"]["bytes"].as_u64()).max()
    };
    assert_eq!((highest("reserved"), highest("load")), (Some(6_570_377_216), Some(5_762_142_352)));
}

/// Start, end and bytes of each buffer.
fn rows(instance: &Instance) -> Vec<(u32, u32, u64)> {
    let buffers = instance.buffers().iter();
    buffers.map(|b| (b.live.start().get(), b.live.end().get(), b.size.get())).collect()
}

/// The figures are counted by hand: in the file stands above each line what is live after it.
#[test]
fn nets_of_glow_have_the_loads_that_are_counted_by_hand() {
    let imported = import_sample(NETS);
    let loads =
        imported.parts.iter().map(|part| (part.name.as_str(), part.trace.instance.load().bytes.get()));
    assert_eq!(loads.collect::<Vec<_>>(), [("chain", 320), ("branches", 2112)]);
    let lives = [(0, 3, 1024), (1, 6, 512), (2, 5, 512), (4, 8, 64), (7, 9, 2048)];
    assert_eq!(rows(&imported.parts[1].trace.instance), lives);
    totals_are_those_of_plans(&imported);
}

/// Of five nodes, one is never live and one needs no bytes. At step 2, the least usages 10, 20 and 15 are live.
#[test]
fn a_problem_has_the_least_usages_of_its_nodes() {
    let imported = import_sample(PROBLEM);
    let instance = &only_part(&imported).trace.instance;
    assert_eq!(rows(instance), [(0, 3, 10), (1, 4, 20), (2, 6, 15)]);
    assert_eq!(instance.load().bytes, Bytes::new(45));
    assert_eq!(dropped(&imported), [(1, "buffers of no bytes", 0), (1, "buffers that are never live", 7)]);
}

/// A folder of the corpus of external instances; prints a notice if it is missing.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn corpus(folder: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PLANLAB_CORPUS").map(|root| PathBuf::from(root).join(folder));
    let there = path.filter(|path| path.is_dir());
    if there.is_none() {
        eprintln!("skipped: PLANLAB_CORPUS names no folder with {folder}");
    }
    there
}

#[test]
fn glows_nets_have_the_totals_that_glow_needs() {
    let Some(folder) = corpus("glow") else { return };
    let bytes = fs::read(folder.join("MemoryAllocatorTestModels.txt")).expect("readable");
    let imported = import("glow.txt", &bytes).expect("valid");
    assert_eq!(imported.parts.len(), 79);
    totals_are_those_of_plans(&imported);
}

/// Glow's total is that of a plan, whose efficiency is at least the ratio.
fn totals_are_those_of_plans(imported: &Imported) {
    for part in &imported.parts {
        let total =
            part.framework.as_ref().and_then(|framework| framework.reserved_peak).expect("a total").get();
        let ratio: f64 =
            part.trace.labels.meta_value("efficiency").and_then(|text| text.parse().ok()).expect("a ratio");
        let load = part.trace.instance.load().bytes.get();
        assert!(load <= total, "{}: load {load}, total {total}", part.name);
        assert!(load as f64 >= ratio * total as f64, "{}: load {load}, total {total}", part.name);
        if ratio == 1.0 {
            assert_eq!(load, total, "{}", part.name);
        }
    }
}

/// The contest's JSON files beside the instances that were made of them, `iopddl/json/A.json`.
#[test]
fn contest_problems_are_the_instances_made_of_them() {
    let Some(folder) = corpus("iopddl/json") else { return };
    let mut compared = 0;
    for entry in fs::read_dir(&folder).expect("readable") {
        let path = entry.expect("readable").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        let csv = folder.join(format!("../{name}.csv.zst"));
        let Ok(csv) = fs::read(csv) else { continue };
        let expected = read_trace("expected.csv.zst", &csv, &ReadOptions::default()).expect("valid");
        let imported = import("problem.json", &fs::read(&path).expect("readable")).expect("valid");
        assert_eq!(rows(&only_part(&imported).trace.instance), rows(&expected.instance), "{name}");
        compared += 1;
    }
    assert!(compared > 0, "no JSON file has its instance");
}
