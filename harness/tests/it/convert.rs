//! `import` and `export` of other tools' files, as a user calls them.

use std::fs;
use std::path::Path;

use tempfile::{TempDir, tempdir};

use crate::common::{assert_tells, folder_with, json, outputs, planlab, run, sample, write};

#[test]
fn xlas_own_offsets_are_a_plan_beside_the_trace() {
    let folder = tempdir().expect("a folder");
    let dump = sample("jax_mlp.hlo.pb.zst");
    let told = json(folder.path(), &["import", &dump, "-o", "t.csv", "--plan", "own.csv"], 0);
    assert_eq!((told["buffers"].as_u64(), told["part"].as_str()), (Some(22), Some("heap-0")));
    assert_eq!(
        (told["framework"]["name"].as_str(), told["plan"]["height"].as_u64()),
        (Some("XLA"), Some(39_796_736))
    );
    let verified = json(folder.path(), &["verify", "t.csv", "own.csv"], 0);
    assert_eq!((verified["valid"].as_bool(), verified["height"].as_u64()), (Some(true), Some(39_796_736)));
    // The format can be said, and the file is a trace wherever one is asked for.
    run(folder.path(), &["import", "xla-hlo", &dump, "-o", "again.csv"], 0);
    assert_eq!(fs::read(folder.path().join("t.csv")).ok(), fs::read(folder.path().join("again.csv")).ok());
    assert_eq!(json(folder.path(), &["bound", &dump], 0)["load"], told["load"]);
}

#[test]
fn another_alignment_than_the_frameworks_can_be_asked_for() {
    let folder = tempdir().expect("a folder");
    let dump = sample("jax_mlp.hlo.pb.zst");
    assert_tells(&folder, &["import", &dump, "-o", "t.csv"], 0, &["; --align takes another"]);
    let (_, told) = run(folder.path(), &["import", &dump, "--align", "12KiB", "-o", "t.csv"], 0);
    assert!(!told.contains("--align"), "{told}");
    let load = |words: &[&str]| json(folder.path(), &[&["bound"], words].concat(), 0)["load"].clone();
    assert_eq!(load(&["t.csv"]), load(&[&dump, "--align", "12KiB"]));
    assert_ne!(load(&["t.csv"]), load(&[&dump]));
    assert_tells(&folder, &["import", &dump, "--align", "0", "-o", "t.csv"], 2, &["'0' for '--align <N>'"]);
}

#[test]
fn xlas_two_texts_come_through_a_pipe() {
    let folder = tempdir().expect("a folder");
    let texts =
        ["jax_mlp-buffer-assignment.txt", "jax_mlp-live-range.txt"].map(|name| fs::read(sample(name)));
    let joined = texts.map(|text| text.expect("readable")).concat();
    let mut command = planlab(folder.path());
    outputs(command.args(["import", "-", "-o", "t.csv", "--json"]).write_stdin(joined), 0);
    let (_, told) = run(folder.path(), &["import", &sample("jax_mlp-live-range.txt")], 2);
    assert!(told.contains("it does not say how large values are; join XLA's two texts"), "{told}");
}

#[test]
fn what_has_no_placement_gives_no_plan() {
    let folder = tempdir().expect("a folder");
    let model = sample("squeezenet1_0_noweights.onnx");
    let (_, told) = run(folder.path(), &["import", &model, "-o", "t.csv", "--plan", "own.csv"], 2);
    assert!(told.contains("ONNX says of no buffer where it lies: there is no plan for own.csv"), "{told}");
    assert!(!folder.path().join("t.csv").exists() && !folder.path().join("own.csv").exists());
    let (_, told) = run(folder.path(), &["import", &model, "--dim", "batch=2", "-o", "t.csv"], 2);
    assert!(told.contains("there is no dimension `batch` in it; it has no dynamic dimension"), "{told}");
    let (_, told) = run(folder.path(), &["import", &model, "-o", "t.csv"], 0);
    assert!(told.contains("35 inputs that are read as weights only (4985120 bytes)"), "{told}");
    assert!(told.contains("26 permissions to overwrite a buffer in place"), "{told}");
    assert_eq!(json(folder.path(), &["import", &model, "-o", "t.csv"], 0)["permissions"], 26);
}

#[test]
fn a_damaged_model_is_known_by_its_content_or_its_name() {
    let model = fs::read(sample("squeezenet1_0_noweights.onnx")).expect("readable");
    let folder = folder_with("cut.onnx", &model[..3000]);
    write(folder.path(), "text.onnx", "garbage\n");
    write(folder.path(), "cut.tflite", "TFL");
    for (file, byte, reason) in [
        (
            "cut.onnx",
            19,
            "cut.onnx: byte 19: field 7 of a message has 17182 bytes, but 2977 follow: the file is cut short",
        ),
        ("text.onnx", 0, "text.onnx: byte 0: wire type 7: no field of this format has it"),
        ("cut.tflite", 3, "cut.tflite: byte 3: there is no identifier TFL3"),
    ] {
        let import = ["import", file, "-o", "t.csv"];
        for words in [&import[..], &["plan", file], &["explain", file], &["bound", file]] {
            let error = json(folder.path(), words, 2);
            assert_eq!((&error["file"], &error["byte"]), (&file.into(), &byte.into()), "{words:?}: {error}");
            assert!(error["line"].is_null() && error["exit_code"] == 2, "{words:?}: {error}");
            assert!(error["error"].as_str().is_some_and(|text| text.contains(reason)), "{words:?}: {error}");
        }
    }
    assert!(!folder.path().join("t.csv").exists());
}

#[test]
fn a_full_disk_is_named_whatever_is_written() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let folder = tempdir().expect("a folder");
    let model = sample("squeezenet1_0_noweights.onnx");
    let (stdout, told) = run(folder.path(), &["import", &model, "-o", "/dev/full"], 3);
    assert!(
        stdout.starts_with("not written: 65 buffers") && told.contains("/dev/full: cannot be written"),
        "{told}"
    );
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_planlab"));
    let full = fs::File::options().write(true).open("/dev/full").expect("a device");
    let output = command.args(["import", &model, "-o", "-"]).stdout(full).output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("<stdout>: cannot be written: No space left"), "{told}");
}

/// A trace of three buffers and a plan of height 96.
fn planned() -> TempDir {
    let folder = folder_with("t.csv", "id,lower,upper,size\na,0,3,64\nb,1,4,32\nc,3,5,48\n");
    run(folder.path(), &["plan", "t.csv", "--planner", "exact", "-o", "p.csv"], 0);
    folder
}

#[test]
fn a_plan_leaves_in_every_form() {
    let folder = planned();
    let at = |name: &str| folder.path().join(name);
    for format in ["plan-json", "tflite-micro", "c-header", "perfetto", "requests"] {
        let told = json(folder.path(), &["export", format, "t.csv", "p.csv", "-o", format], 0);
        assert_eq!((told["buffers"].as_u64(), told["output"].as_str()), (Some(3), Some(format)));
    }
    let document: serde_json::Value =
        serde_json::from_slice(&fs::read(at("plan-json")).expect("written")).expect("JSON");
    assert_eq!((document["height"].as_u64(), document["load"].as_u64()), (Some(96), Some(96)));
    let words = fs::read(at("tflite-micro")).expect("written");
    assert_eq!((words.len(), &words[..12]), (24, &[1, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0][..]));
    let header = fs::read_to_string(at("c-header")).expect("written");
    assert!(header.contains("#define PLANLAB_ARENA_SIZE 96u"), "{header}");
    assert!(
        fs::read_to_string(at("requests"))
            .expect("written")
            .starts_with("# planlab: requests\n# height: 96\n")
    );
    for (format, code) in
        [("plan-json", 2), ("tflite-micro", 2), ("c-header", 2), ("requests", 2), ("perfetto", 0)]
    {
        run(folder.path(), &["export", format, "t.csv", "-o", "alone"], code);
    }
    write(
        folder.path(),
        "bad.csv",
        "# planlab: plan\nid,lower,upper,size,offset\na,0,3,64,0\nb,1,4,32,0\nc,3,5,48,0\n",
    );
    run(folder.path(), &["export", "c-header", "t.csv", "bad.csv", "-o", "bad.h"], 4);
    assert!(!at("bad.h").exists());
}

#[test]
fn an_offline_plan_goes_into_its_model() {
    let folder = tempdir().expect("a folder");
    let seed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/tflite/net.tflite");
    fs::copy(seed, folder.path().join("net.tflite")).expect("copied");
    run(folder.path(), &["import", "net.tflite", "-o", "t.csv"], 0);
    run(folder.path(), &["plan", "t.csv", "--planner", "exact", "--align", "16", "-o", "p.csv"], 0);
    let into = ["export", "tflite-micro", "t.csv", "p.csv", "--into", "net.tflite", "-o", "planned.tflite"];
    run(folder.path(), &into, 0);
    // What was put in comes out again as the model's own placement.
    run(folder.path(), &["import", "planned.tflite", "-o", "t2.csv", "--plan", "own.csv"], 0);
    assert_eq!(fs::read(folder.path().join("t.csv")).ok(), fs::read(folder.path().join("t2.csv")).ok());
    let height = |plan: &str| json(folder.path(), &["verify", "t.csv", plan], 0)["height"].as_u64();
    assert_eq!(height("own.csv"), height("p.csv"));
    let (_, told) = run(folder.path(), &["export", "requests", "t.csv", "p.csv", "--into", "net.tflite"], 2);
    assert!(told.contains("--into is for tflite-micro"), "{told}");
}

#[test]
fn a_plan_goes_into_no_other_model() {
    let folder = planned();
    let seed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/tflite/net.tflite");
    fs::copy(seed, folder.path().join("net.tflite")).expect("copied");
    let into = ["export", "tflite-micro", "t.csv", "p.csv", "--into", "net.tflite", "-o", "planned.tflite"];
    let error = json(folder.path(), &into, 2);
    let not = "net.tflite: the plan is not of this model: buffer `a` is no tensor that it places";
    assert_eq!((error["error"].as_str(), error["file"].as_str()), (Some(not), Some("net.tflite")));
    // A trace that was changed after it was read from the model.
    run(folder.path(), &["import", "net.tflite", "-o", "own.csv"], 0);
    let own = fs::read_to_string(folder.path().join("own.csv")).expect("written");
    let last = own.trim_end().rfind('\n').expect("rows") + 1;
    write(folder.path(), "shorter.csv", &own[..last]);
    run(folder.path(), &["plan", "shorter.csv", "--align", "16", "-o", "p.csv"], 0);
    let into =
        ["export", "tflite-micro", "shorter.csv", "p.csv", "--into", "net.tflite", "-o", "planned.tflite"];
    assert_tells(&folder, &into, 2, &["has no offset"]);
    assert!(!folder.path().join("planned.tflite").exists());
}
