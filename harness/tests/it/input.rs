//! Endless inputs, ids that look like comments, events with demands: none is dropped silently, none exhausts the
//! machine.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{assert_tells, folder_with, json, run, write};

const TRACE: &str = "id,lower,upper,size\na,0,2,64\nb,1,3,32\n";
const LIMIT: &str = "the limit of a line (--input-limit raises it)";

/// Writes a file of 64 kB that unpacks to 2 GiB of zeros.
fn bomb(folder: &Path, name: &str) {
    let file = File::create(folder.join(name)).expect("writable");
    zstd::stream::copy_encode(io::repeat(0).take(2 << 30), file, 1).expect("compressed");
}

/// Runs a program that must end with exit code 2, in 1.5 GB of address space.
fn refused(folder: &Path, arguments: &[&str], stdin: Stdio) -> String {
    let binary = assert_cmd::cargo::cargo_bin("planlab");
    // `ulimit -v` is in kiB.
    let output = Command::new("sh")
        .args(["-c", "ulimit -Sv 1500000; exec \"$@\"", "sh"])
        .arg(binary)
        .args(arguments)
        .current_dir(folder)
        .stdin(stdin)
        .output()
        .expect("a shell");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert!(!stderr.contains("damaged") && stderr.len() < 1000, "{arguments:?}: {stderr}");
    stderr
}

#[test]
fn what_has_no_end_is_refused_quickly_with_little_memory() {
    let folder = folder_with("t.csv", TRACE);
    let at = folder.path();
    bomb(at, "bomb.csv.zst");
    bomb(at, "bomb.json.zst");
    assert!(std::fs::metadata(at.join("bomb.csv.zst")).expect("there").len() < 100_000);
    let zero = || Stdio::from(File::open("/dev/zero").expect("a device"));
    for (arguments, file) in [
        (&["bound", "/dev/zero"][..], "/dev/zero:1:"),
        (&["bound", "bomb.csv.zst"], "bomb.csv.zst:1:"),
        (&["plan", "bomb.csv.zst", "--in-process"], "bomb.csv.zst:1:"),
        (&["import", "lab", "bomb.csv.zst"], "bomb.csv.zst:1:"),
        (&["verify", "t.csv", "bomb.csv.zst"], "bomb.csv.zst:1:"),
        (&["verify", "t.csv", "/dev/zero"], "/dev/zero:1:"),
        (&["plan", "t.csv", "--start", "/dev/zero"], "/dev/zero:1:"),
    ] {
        let stderr = refused(at, arguments, Stdio::null());
        assert!(stderr.contains(file) && stderr.contains(LIMIT), "{arguments:?}: {stderr}");
    }
    for arguments in [["bound", "-"], ["plan", "-"]] {
        let stderr = refused(at, &arguments, zero());
        assert!(stderr.contains("<stdin>:1:") && stderr.contains(LIMIT), "{arguments:?}: {stderr}");
    }
    let packed = Stdio::from(File::open(at.join("bomb.csv.zst")).expect("there"));
    assert!(refused(at, &["bound", "-"], packed).contains(LIMIT));
    for arguments in [
        &["verify", "t.csv", "--certificate", "bomb.json.zst"][..],
        &["verify", "t.csv", "--certificate", "/dev/zero"],
        &["list", "planners", "--planners", "/dev/zero"],
        &["bench", "--suite", "/dev/zero", "--out", "results"],
    ] {
        let stderr = refused(at, arguments, Stdio::null());
        assert!(stderr.contains("the limit of an input"), "{arguments:?}: {stderr}");
    }
    assert!(!at.join("results").exists());
}

#[test]
fn an_option_raises_the_limits() {
    let folder = folder_with("t.csv", TRACE);
    let (_, stderr) = run(folder.path(), &["plan", "t.csv", "--input-limit", "20"], 2);
    assert!(stderr.contains("t.csv:2: the file has more than 20 bytes, the limit of an input"), "{stderr}");
    // Children read the trace as well.
    run(folder.path(), &["plan", "t.csv", "--input-limit", "1KiB"], 0);
    let long = format!("# note: {}\n{TRACE}", "x".repeat(17 << 20));
    write(folder.path(), "long.csv", long);
    assert_tells(&folder, &["bound", "long.csv"], 2, &["long.csv:1:", LIMIT]);
    assert_eq!(json(folder.path(), &["bound", "long.csv", "--input-limit", "64GiB"], 0)["load"], 96);
    assert_eq!(json(folder.path(), &["plan", "long.csv", "--input-limit", "64GiB"], 0)["load"], 96);
}

#[test]
fn events_are_planned_with_their_alignment() {
    let rows = "step,event,id,size,alignment\n0,alloc,a,4,64\n0,alloc,b,4,64\n";
    let folder = folder_with("e.csv", rows);
    assert_eq!(json(folder.path(), &["plan", "e.csv", "-o", "p.csv"], 0)["height"], 68);
    run(folder.path(), &["verify", "e.csv", "p.csv"], 0);
    write(folder.path(), "e.csv", format!("{rows}1,free,a,4,64\n"));
    assert_tells(&folder, &["plan", "e.csv"], 2, &["e.csv:4: a free has `64` in the column `alignment`"]);
    write(folder.path(), "e.csv", format!("# alignment: 64\n# alignment: 8\n{TRACE}"));
    let (_, stderr) = run(folder.path(), &["plan", "e.csv"], 2);
    assert!(stderr.contains("e.csv:2: `# alignment` is there twice, in lines 1 and 2"), "{stderr}");
}

#[test]
fn ids_that_begin_with_a_hash_are_no_comments() {
    let folder = folder_with("t.csv", format!("{TRACE}#1,0,3,4096\n"));
    assert_tells(&folder, &["plan", "t.csv"], 2, &["t.csv:4:", "`\"#1\",0,3,4096`"]);
    write(folder.path(), "t.csv", format!("{TRACE}\"#1\",0,3,4096\n"));
    assert_eq!(json(folder.path(), &["plan", "t.csv", "-o", "p.csv"], 0)["buffers"], 3);
    assert_eq!(json(folder.path(), &["verify", "t.csv", "p.csv"], 0)["valid"], true);
    run(folder.path(), &["import", "lab", "t.csv", "-o", "again.csv"], 0);
    assert_eq!(json(folder.path(), &["bound", "again.csv"], 0)["buffers"], 3);
    let plan = std::fs::read_to_string(folder.path().join("p.csv")).expect("written");
    write(folder.path(), "p.csv", plan.replace("\"#1\"", "#1"));
    assert_tells(&folder, &["verify", "t.csv", "p.csv"], 2, &["p.csv:5:", "in quotes"]);
}

#[test]
fn control_sequences_never_reach_the_terminal() {
    let (name, trace) = ("t\x1b[2J.csv", "id,lower,upper,size\na\x1b[31m,0,2,64\nb\u{9b}2J,1,3,32\n");
    let folder = folder_with(name, trace);
    write(folder.path(), "p.csv", "id,offset\na\x1b[31m,0\nb\u{9b}2J,0\n");
    let is_clean = |text: &str| text.chars().all(|letter| letter == '\n' || !letter.is_control());
    for (arguments, code) in [
        (&["plan", name][..], 0),
        (&["compare", name], 0),
        (&["bound", name], 0),
        (&["simulate", name, "--allocator", "cupy2rc1-pool"], 0),
        (&["verify", name, "p.csv"], 4),
        (&["verify", name, "p.csv", "--json"], 4),
        (&["plan", name, "--planner", "no\x1b[31m"], 2),
        (&["plan", "gone\x1b[2J.csv"], 2),
        (&["plan", name, "--no\x1b[31m"], 2),
        (&["plan", name, "--no\x1b[31m", "--json"], 2),
        (&["generate", "uniform", "n=10", "-o", "out\x1b[2J.csv"], 0),
    ] {
        let (stdout, stderr) = run(folder.path(), arguments, code);
        assert!(is_clean(&stdout) && is_clean(&stderr), "{arguments:?}: {stdout:?} {stderr:?}");
    }
    let (stdout, _) = run(folder.path(), &["plan", name], 0);
    assert!(stdout.contains("t\\u{1b}[2J.csv"), "{stdout}");
    // A file keeps its ids, even on stdout.
    let (plan, _) = run(folder.path(), &["plan", name, "-o", "-"], 0);
    assert!(plan.contains("\na\x1b[31m,0,2,64,") && plan.contains("\nb\u{9b}2J,1,3,32,"), "{plan:?}");
}
