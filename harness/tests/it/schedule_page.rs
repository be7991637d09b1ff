//! `show` and `export perfetto` of schedules.

use serde_json::{Value, json as object};
use tempfile::{TempDir, tempdir};

use crate::common::{assert_tells, folder_with, json, outputs, planlab, run, sample, write};

/// A map that goes to the host and comes back: for three of its five seconds nothing is computed.
const SWAP: &str = r#"{"planlab":"schedule","version":1,"scheduler":"mine","net":"n","batch":4,"machine":"m","base":2,"seconds":5.0,"resident":[]}
{"buffer":0,"map":1,"version":0,"bytes":8,"offset":2}
{"buffer":1,"map":1,"version":1,"bytes":8,"offset":4}
{"engine":"compute","task":"forward","of":0,"after":[0,0,0],"seconds":1.0,"reads":[],"writes":[0],"frees":[]}
{"engine":"compute","task":"backward","of":0,"after":[0,0,1],"seconds":1.0,"reads":[1],"writes":[],"frees":[1]}
{"engine":"out","task":"copy-out","of":1,"after":[1,0,0],"seconds":1.5,"reads":[0],"writes":[],"frees":[0]}
{"engine":"in","task":"copy-in","of":1,"after":[0,1,0],"seconds":1.5,"reads":[],"writes":[1],"frees":[]}
"#;

/// A folder with the schedule, and a slower one of the same net.
fn schedules() -> TempDir {
    let folder = folder_with("fast.jsonl", SWAP);
    let slow =
        SWAP.replace("\"seconds\":1.5", "\"seconds\":2.5").replace("\"seconds\":5.0", "\"seconds\":7.0");
    write(folder.path(), "slow.jsonl", slow);
    folder
}

/// The data of every viewer of a page.
fn viewers(folder: &TempDir, page: &str) -> Vec<Value> {
    let page = std::fs::read_to_string(folder.path().join(page)).expect("written");
    let parts = page.split("type=\"application/json\">").skip(1);
    let data = parts.map(|part| part.split_once("</script>").expect("ends").0);
    data.map(|data| serde_json::from_str(data).expect("JSON")).collect()
}

#[test]
fn schedule_page_has_events_buffers_and_totals() {
    let folder = schedules();
    let arguments = ["show", "fast.jsonl", "--capacity", "100", "-o", "page.html"];
    let told = json(folder.path(), &arguments, 0);
    let expected = object!([{
        "schedule": "fast.jsonl",
        "scheduler": "mine",
        "seconds": 5.0,
        "waiting_seconds": 3.0,
        "recompute_seconds": 0.0,
        "copied_out": 8,
        "copied_in": 8,
        "peak": 10,
        "height": 12,
    }]);
    assert_eq!(told["schedules"], expected);
    let data = &viewers(&folder, "page.html")[0];
    assert_eq!((&data["clock"], &data["horizon"]), (&"ns".into(), &5_000_000_000_u64.into()));
    assert_eq!((&data["capacity"], &data["load"]["bytes"]), (&100.into(), &10.into()));
    let buffers = &data["buffers"];
    assert_eq!(buffers["names"], object!(["parameters and workspace", "map 1", "map 1, version 1"]));
    assert_eq!(buffers["categories"], object!(["reserved", "copied"]));
    assert_eq!(buffers["ops"], object!(["forward 0", "backward 0", "copy-out 1", "copy-in 1"]));
    assert_eq!(data["streams"]["names"], object!(["compute", "copies out", "copies in"]));
    let page = std::fs::read_to_string(folder.path().join("page.html")).expect("written");
    for part in ["n at batch 4", "Compute waits", "planlab show fast.jsonl --capacity 100 -o page.html"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("http"), "the page names no address");
}

#[test]
fn memory_of_a_built_in_machine_is_drawn_on_demand_alone() {
    let folder = folder_with("s.jsonl", SWAP.replace("\"machine\":\"m\"", "\"machine\":\"x86-pcie3\""));
    let page = || std::fs::read_to_string(folder.path().join("page.html")).expect("written");
    run(folder.path(), &["show", "s.jsonl", "-o", "page.html"], 0);
    assert!(viewers(&folder, "page.html")[0]["capacity"].is_null() && !page().contains("Capacity"));
    run(folder.path(), &["show", "s.jsonl", "--capacity", "100", "-o", "page.html"], 0);
    assert_eq!(viewers(&folder, "page.html")[0]["capacity"], 100);
    assert!(page().contains("Capacity"));
}

/// A function of no duration has 1000 bytes for itself.
const INSTANT: &str = r#"{"planlab":"schedule","version":1,"scheduler":"mine","net":"n","batch":4,"machine":"m","base":2,"seconds":2.0,"resident":[]}
{"buffer":0,"map":1,"version":0,"bytes":1000,"offset":2}
{"buffer":1,"map":2,"version":0,"bytes":8,"offset":2}
{"engine":"compute","task":"forward","of":0,"after":[0,0,0],"seconds":1.0,"reads":[],"writes":[],"frees":[]}
{"engine":"compute","task":"forward","of":1,"after":[0,0,0],"seconds":0.0,"reads":[],"writes":[0],"frees":[0]}
{"engine":"compute","task":"forward","of":2,"after":[0,0,0],"seconds":1.0,"reads":[],"writes":[1],"frees":[1]}
"#;

#[test]
fn peak_of_an_instant_is_found_at_its_time() {
    let folder = folder_with("s.jsonl", INSTANT);
    let told = json(folder.path(), &["show", "s.jsonl", "-o", "page.html"], 0);
    assert_eq!(told["schedules"][0]["peak"], 1002);
    let load = &viewers(&folder, "page.html")[0]["load"];
    assert_eq!(load, &object!({ "bytes": 1002, "step": 1_000_000_000 }));
}

#[test]
fn schedules_of_one_net_share_an_axis() {
    let folder = schedules();
    run(folder.path(), &["show", "fast.jsonl", "slow.jsonl", "-o", "page.html"], 0);
    let horizons: Vec<_> =
        viewers(&folder, "page.html").iter().map(|data| data["horizon"].as_u64()).collect();
    assert_eq!(horizons, [Some(7_000_000_000); 2]);
}

#[test]
fn stored_schedules_are_shown() {
    let folder = tempdir().expect("a folder");
    let names =
        ["densenet161", "equal_parts", "inter2", "rnd_dag_1", "rt_growing24", "shared_sums", "trickD3"];
    for name in names {
        let file = sample(&format!("../schedules/refuters/{name}-schedule.jsonl.zst"));
        run(folder.path(), &["show", &file, "-o", "page.html"], 0);
        assert_eq!(viewers(&folder, "page.html").len(), 1, "{name}");
    }
    let file = sample("../schedules/refuters/rnd_dag_1-schedule.jsonl.zst");
    run(folder.path(), &["show", &file, "-o", "page.html"], 0);
    let data = &viewers(&folder, "page.html")[0];
    let kinds = data["buffers"]["categories"].as_array().expect("kinds");
    for kind in ["copied", "recomputed", "kept", "gradient"] {
        assert!(kinds.iter().any(|known| known == kind), "{kind}: {kinds:?}");
    }
}

const NET: &str = r#"{"planlab":"training-net","version":1,"name":"mine","batch":4,"parameters":10}
{"map":0,"name":"image","bytes":1000}
{"map":1,"name":"a","bytes":1000000}
{"map":2,"name":"loss","bytes":10}
{"function":0,"name":"conv","kind":"convolution","inputs":[0],"output":1,"needs":[0],"forward_seconds":0.01,"backward_seconds":0.02}
{"function":1,"name":"loss","kind":"other","inputs":[1],"output":2,"needs":[1],"forward_seconds":0.01,"backward_seconds":0.02}
"#;

#[test]
fn net_gives_events_and_buffers_their_names() {
    let folder = folder_with("mine.jsonl", NET);
    let schedule = ["schedule", "mine.jsonl", "--machine", "x86-pcie3", "--scheduler", "in-core"];
    run(folder.path(), &[schedule.as_slice(), &["-o", "s.jsonl"]].concat(), 0);
    run(folder.path(), &["show", "s.jsonl", "--net", "mine.jsonl", "-o", "page.html"], 0);
    let buffers = &viewers(&folder, "page.html")[0]["buffers"];
    assert_eq!(buffers["ops"][0], "forward conv");
    let names = buffers["names"].as_array().expect("names");
    for name in ["image", "a", "gradient of a"] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    let other = ["show", "s.jsonl", "--net", "alexnet", "-o", "page.html"];
    assert_tells(&folder, &other, 2, &["s.jsonl: the schedule is for mine, not for alexnet"]);
    let short: Vec<&str> = NET.lines().filter(|line| !line.contains("loss")).collect();
    write(folder.path(), "short.jsonl", short.join("\n"));
    let other = ["show", "s.jsonl", "--net", "short.jsonl", "-o", "page.html"];
    assert_tells(&folder, &other, 2, &["s.jsonl: forward 1 is not in the net"]);
}

#[test]
fn net_from_stdin_is_read_once_for_schedules_of_one_batch() {
    let folder = folder_with("mine.jsonl", NET);
    for file in ["a.jsonl", "b.jsonl"] {
        let schedule = ["schedule", "mine.jsonl", "--machine", "x86-pcie3", "--scheduler", "in-core"];
        run(folder.path(), &[schedule.as_slice(), &["-o", file]].concat(), 0);
    }
    let show = ["show", "a.jsonl", "b.jsonl", "--net", "-", "-o", "page.html"];
    outputs(planlab(folder.path()).args(show).write_stdin(NET), 0);
    let shown = viewers(&folder, "page.html");
    assert_eq!(shown.len(), 2);
    assert!(shown.iter().all(|data| data["buffers"]["ops"][0] == "forward conv"), "{shown:?}");
    let first = std::fs::read_to_string(folder.path().join("b.jsonl")).expect("written");
    write(folder.path(), "b.jsonl", first.replacen("\"batch\":4", "\"batch\":8", 1));
    assert_tells(&folder, &show, 2, &["--net -: the schedules have several batches"]);
}

/// A field of a message of ONNX: its number, and at most 127 bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).expect("short");
    [&[8 * number + 2, length][..], bytes].concat()
}

/// A model of two ReLUs whose input has the dimensions `batch` and `width`.
fn dynamic_model() -> Vec<u8> {
    let node = |input: &str, output: &str| {
        let names = [field(1, input.as_bytes()), field(2, output.as_bytes()), field(4, b"Relu")];
        field(1, &names.concat())
    };
    let dims = ["batch", "width"].map(|name| field(1, &field(2, name.as_bytes())));
    let floats = [vec![8, 1], field(2, &dims.concat())].concat();
    let input = [field(1, b"x"), field(2, &field(1, &floats))].concat();
    let output = field(12, &field(1, b"y"));
    let graph = [node("x", "a"), node("a", "y"), field(11, &input), output].concat();
    [vec![8, 8], field(7, &graph), field(8, &[16, 17])].concat()
}

#[test]
fn names_of_a_model_need_its_dynamic_dimensions() {
    let folder = folder_with("m.onnx", dynamic_model());
    let schedule = ["schedule", "m.onnx", "--batch", "4", "--dim", "width=8", "--scheduler", "in-core"];
    run(folder.path(), &[schedule.as_slice(), &["-o", "s.jsonl"]].concat(), 0);
    let show = ["show", "s.jsonl", "--net", "m.onnx", "-o", "page.html"];
    assert_tells(&folder, &show, 2, &["width"]);
    run(folder.path(), &[show.as_slice(), &["--dim", "width=8"]].concat(), 0);
    assert_eq!(viewers(&folder, "page.html")[0]["buffers"]["ops"][0], "forward 0:Relu");
    let alone = ["show", "s.jsonl", "--dim", "width=8", "-o", "page.html"];
    assert_tells(&folder, &alone, 2, &["--dim is for the net of a schedule: add --net"]);
    let built_in = ["show", "s.jsonl", "--net", "alexnet", "--dim", "width=8", "-o", "page.html"];
    assert_tells(&folder, &built_in, 2, &["alexnet: --dim is for models of ONNX"]);
}

#[test]
fn bad_schedule_is_named_with_file_and_reason() {
    let folder = schedules();
    let refused = |text: &str, reasons: &[&str]| {
        write(folder.path(), "bad.jsonl", text);
        assert_tells(&folder, &["show", "bad.jsonl", "-o", "page.html"], 2, reasons);
        assert_tells(&folder, &["export", "perfetto", "bad.jsonl", "-o", "trace.json"], 2, reasons);
        assert!(!folder.path().join("page.html").exists(), "{text}");
    };
    let cut = SWAP.lines().take(6).collect::<Vec<_>>().join("\n");
    refused(&format!("{cut}\n{{\"engine\":"), &["bad.jsonl:7: not JSON"]);
    refused(&SWAP.replacen("\"of\":0", "\"of\":-1", 1), &["bad.jsonl:4: not an event"]);
    refused(&SWAP.replace("5.0", "4.0"), &["bad.jsonl: the schedule claims 4e0 s"]);
    let endless = SWAP.replace("\"seconds\":1.0", "\"seconds\":1e308");
    refused(&endless, &["bad.jsonl: the events together take more seconds than a number can hold"]);
    refused(&SWAP.replace(",\"offset\":4", ""), &["bad.jsonl: buffer 1 has no offset"]);
    refused(&SWAP.replace("[0,0,1]", "[0,0,9]"), &["bad.jsonl: deadlock"]);
    let early = SWAP.replace("[0,1,0]", "[0,0,0]").replace("5.0", "2.5");
    refused(&early, &["bad.jsonl:", "overlap"]);
}

#[test]
fn what_does_not_go_with_a_schedule_is_named() {
    let folder = schedules();
    write(folder.path(), "t.csv", "id,lower,upper,size\na,0,2,64\n");
    write(folder.path(), "other.jsonl", SWAP.replace("\"net\":\"n\"", "\"net\":\"o\""));
    let cases: [(&[&str], &str); 8] = [
        (&["show", "fast.jsonl", "-o", "a.svg"], "a.svg: a page ends in .html"),
        (&["show", "fast.jsonl", "t.csv", "-o", "a.html"], "t.csv: this is not a schedule"),
        (
            &["show", "fast.jsonl", "other.jsonl", "-o", "a.html"],
            "other.jsonl: a schedule for o, and fast.jsonl is one for n",
        ),
        (&["show", "fast.jsonl", "--align", "8", "-o", "a.html"], "are for traces"),
        (&["show", "t.csv", "--capacity", "8", "-o", "a.html"], "--capacity and --net are for schedules"),
        (&["show", "fast.jsonl", "-o", "fast.jsonl"], "another file of this command"),
        (&["export", "lab", "fast.jsonl", "-o", "a.csv"], "as `perfetto` alone"),
        (&["export", "perfetto", "fast.jsonl", "t.csv", "-o", "a.json"], "it takes no plan"),
    ];
    for (words, reason) in cases {
        assert_tells(&folder, words, 2, &[reason]);
    }
}
