//! Bad input gets an error that names file, line and reason, and exit code 2; nothing is half-written.

use crate::common::{assert_tells, folder_with, json, planlab, run, words, write};
use tempfile::tempdir;

const HEADER: &str = "id,lower,upper,size\n";

#[test]
fn traces_that_are_wrong_are_named_by_file_and_line() {
    let folder = tempdir().expect("a folder");
    let long = format!("{HEADER}a,0,1,{}\n", "9".repeat(10_000_000));
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("missing column", b"id,lower,upper\na,0,1\n".to_vec(), "bad.csv:1:"),
        ("negative", format!("{HEADER}a,0,1,-5\n").into(), "bad.csv:2:"),
        ("overflow", format!("{HEADER}a,0,1,18446744073709551616\n").into(), "bad.csv:2:"),
        ("empty range", format!("{HEADER}a,3,3,5\n").into(), "bad.csv:2:"),
        ("reversed range", format!("{HEADER}a,4,3,5\n").into(), "bad.csv:2:"),
        ("size 0", format!("{HEADER}b,0,1,1\na,0,1,0\n").into(), "bad.csv:3:"),
        ("duplicate id", format!("{HEADER}a,0,1,4\na,1,2,4\n").into(), "bad.csv:3:"),
        ("NaN", format!("{HEADER}a,0,1,NaN\n").into(), "bad.csv:2:"),
        ("empty file", Vec::new(), "bad.csv:"),
        ("not UTF-8", [HEADER.as_bytes(), b"\xff\xfe,0,1,4\n"].concat(), "bad.csv:2:"),
        ("a line of 10 MB", long.into_bytes(), "bad.csv:2:"),
    ];
    for (what, content, place) in cases {
        write(folder.path(), "bad.csv", &content);
        let (stdout, stderr) = run(folder.path(), &["plan", "bad.csv", "-o", "plan.csv"], 2);
        assert!(stderr.contains(place), "{what}: {stderr}");
        assert!(stderr.len() < 1000, "{what}: {} bytes of message", stderr.len());
        assert!(stdout.is_empty(), "{what}: {stdout}");
        assert!(!folder.path().join("plan.csv").exists(), "{what}");
    }
}

#[test]
fn a_truncated_zst_is_refused() {
    let folder = tempdir().expect("a folder");
    run(folder.path(), &["generate", "uniform", "n=1000", "-o", "whole.csv.zst"], 0);
    let whole = std::fs::read(folder.path().join("whole.csv.zst")).expect("written");
    write(folder.path(), "torn.csv.zst", &whole[..whole.len() / 2]);
    assert_tells(&folder, &["bound", "torn.csv.zst"], 2, &["torn.csv.zst"]);
}

#[test]
fn crlf_and_a_bom_are_read() {
    let folder = folder_with("dos.csv", "\u{feff}id,lower,upper,size\r\na,0,2,4\r\n\r\nb,1,3,8\r\n");
    assert_eq!(json(folder.path(), &["bound", "dos.csv"], 0)["load"], 12);
}

#[test]
fn unknown_names_get_the_nearest_ones() {
    let folder = folder_with("ok.csv", format!("{HEADER}a,0,1,4\n"));
    assert_tells(&folder, &["plan", "ok.csv", "--planner", "bestfit"], 2, &["best-fit"]);
    assert_tells(&folder, &["plan", "chainer/alexnet/train/b33"], 2, &["chainer/alexnet/train/b32"]);
    assert_tells(&folder, &["bench", "--suite", "smok", "--out", "r"], 2, &["smoke"]);
    assert_tells(&folder, &["generate", "unifrom", "n=10"], 2, &["uniform"]);
    let (_, stderr) = run(folder.path(), &["generate", "uniform", "m=10"], 2);
    assert!(stderr.contains("`n`") || stderr.contains(" n"), "{stderr}");
    run(folder.path(), &["frobnicate"], 2);
    run(folder.path(), &["plan", "ok.csv", "--time-limit", "soon"], 2);
    run(folder.path(), &["plan", "missing.csv"], 2);
    assert!(!folder.path().join("r").exists(), "a bad suite made a folder");
}

#[test]
fn a_folder_that_cannot_be_written_is_bad_input() {
    let folder = tempdir().expect("a folder");
    // Not even root writes into /proc.
    for arguments in [
        words("generate uniform n=10 -o /proc/planlab/trace.csv"),
        words("bench --workload synthetic/uniform/n10/s1 --planner bump --out /proc/planlab"),
    ] {
        assert_tells(&folder, &arguments, 2, &["/proc/planlab"]);
    }
}

#[test]
fn a_full_disk_is_exit_code_3_and_leaves_nothing() {
    let folder = tempdir().expect("a folder");
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).expect("writable");
    let mount = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(&disk)
        .status();
    if !mount.is_ok_and(|status| status.success()) {
        eprintln!("skipped: a small disk cannot be mounted here");
        return;
    }
    let mut generate = planlab(folder.path());
    let output = generate.args(["generate", "uniform", "n=20000", "-o", "disk/trace.csv"]).output();
    let output = output.expect("the binary runs");
    let left = std::fs::read_dir(&disk).expect("readable").count();
    let unmounted = std::process::Command::new("umount").arg(&disk).status().expect("umount runs");
    assert!(unmounted.success());
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(left, 0, "something was left half-written");
}

#[test]
fn invalid_plan_exits_with_4_and_names_buffers_and_steps() {
    let folder = folder_with("t.csv", "id,lower,upper,size,alignment\na,0,4,8,4\nb,2,6,8,4\n");
    let plan = |a: &str, b: &str| {
        format!(
            "# planlab: plan\nid,lower,upper,size,alignment,offset,overwrites\na,0,4,8,4,{a},\nb,2,6,8,4,{b},\n"
        )
    };
    for (a, b, violation) in
        [("0", "4", "overlap"), ("0", "9", "misaligned"), ("0", "18446744073709551612", "overflow")]
    {
        write(folder.path(), "p.csv", plan(a, b));
        let found = json(folder.path(), &["verify", "t.csv", "p.csv"], 4);
        assert_eq!(found["valid"], false);
        assert_eq!(found["violation"], violation);
        assert!(
            found["buffers"].as_array().is_some_and(|names| names.iter().any(|name| name == "b")),
            "{found}"
        );
    }
    write(folder.path(), "p.csv", plan("0", "4"));
    let found = json(folder.path(), &["verify", "t.csv", "p.csv"], 4);
    assert_eq!(found["steps"], serde_json::json!([2, 4]));
    write(folder.path(), "p.csv", plan("0", "8"));
    assert_eq!(json(folder.path(), &["verify", "t.csv", "p.csv"], 0)["height"], 16);
    // One row too few: the plan belongs to another trace.
    write(folder.path(), "p.csv", "# planlab: plan\nid,lower,upper,size,offset\na,0,4,8,0\n");
    let output = planlab(folder.path()).args(["verify", "t.csv", "p.csv"]).output().expect("the binary runs");
    assert!(matches!(output.status.code(), Some(2 | 4)), "{output:?}");
}

#[test]
fn a_plan_given_as_a_trace_is_refused_unless_pins_are_meant() {
    let folder = folder_with("t.csv", format!("{HEADER}a,0,4,8\nb,2,6,8\n"));
    run(folder.path(), &["plan", "t.csv", "--planner", "bump", "-o", "p.csv"], 0);
    assert_tells(&folder, &["plan", "p.csv"], 2, &["pins"]);
    let pinned = json(folder.path(), &["plan", "p.csv", "--pins", "--planner", "first-fit/size"], 0);
    assert_eq!(pinned["height"], 16);
    let unsupported = json(folder.path(), &["plan", "p.csv", "--pins", "--planner", "best-fit"], 3);
    assert_eq!(unsupported["detail"], "unsupported");
}

#[test]
fn names_of_a_suite_that_stand_for_nothing_are_refused() {
    let folder = tempdir().expect("a folder");
    let suite = |text: &str, words: &[&str], code: i32| {
        write(folder.path(), "s.toml", format!("name = \"s\"\nanalysis = \"a\"\n{text}"));
        let bench = ["bench", "--suite", "s.toml", "--dry-run", "--out", "none"];
        run(folder.path(), &[&bench[..], words].concat(), code).1
    };
    let group = "[[group]]\nworkloads = [\"chainer/alexnet/infer/b1\"]\nplanners = [\"bump\", \"external/*\", \"mip/*\"]\n";
    let expect = "[[expect]]\nworkload = \"chainer/alexnet/infer/b1\"\nplanner = \"bump\"\nheight = 1\n";
    suite(&format!("{group}{expect}"), &[], 0);
    for (text, told) in [
        (group.replace("bump", "bupm"), "s.toml:5: there is no planner `bupm`; did you mean `bump`"),
        (
            group.replace("alexnet", "alexnot"),
            "s.toml:4: there is no workload `chainer/alexnot/infer/b1`; did you mean",
        ),
        (format!("{group}except = [\"bmup\"]\n"), "s.toml:6: there is no planner `bmup`"),
        (format!("{group}{}", expect.replace("bump", "bumb")), "s.toml:6: an expectation of `bumb`"),
        (format!("{group}{}", expect.replace("b1", "b9")), "s.toml:6: an expectation: there is no workload"),
        (
            format!("{group}{}", expect.replace("bump", "best-fit")),
            "s.toml:6: this `[[expect]]` is never checked",
        ),
    ] {
        let found = suite(&text, &[], 2);
        assert!(found.contains(told), "{told}: {found}");
    }
    let told = suite(group, &["--planner", "best-fit"], 2);
    assert!(told.contains("suite `s` does not run `best-fit`"), "{told}");
    assert!(suite(group, &["--planner", "best-fti"], 2).contains("did you mean `best-fit`"));
    assert!(
        suite(group, &["--workload", "chainer/alexnot/*"], 2)
            .contains("there is no workload `chainer/alexnot/*` in suite `s`")
    );
    assert!(
        suite(group, &["--planner", "bump", "--planner", "best-fit"], 0).contains("does not run `best-fit`")
    );
    // A suite may name instances that are not available.
    suite(&group.replace("chainer/alexnet/infer/b1", "minimalloc/*"), &[], 0);
}

#[test]
fn embedded_suites_name_what_there_is() {
    let folder = tempdir().expect("a folder");
    for name in ["all", "exact", "public", "recorded", "scale", "seeds", "smoke", "synthetic"] {
        // No instance is read: an unknown planner is refused once all names were checked.
        let bench = words("bench --planner mxnet-sharing/published --dry-run --out none --suite");
        let output = planlab(folder.path()).args(bench).arg(name).output().expect("the binary runs");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!told.contains(".toml:"), "{name}: {told}");
    }
}
