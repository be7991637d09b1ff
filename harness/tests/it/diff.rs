//! `diff` and `scale` on the binary: exit codes, refusals, turns of two builds, a certain change.

use std::path::Path;

use crate::common::{assert_shows, assert_tells, json, run, words, write};
use planlab_results::{Lane, Record, Status, Store, read_records};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

/// Runs a bench of three sizes.
fn bench(folder: &Path, more: &str) {
    let sizes = "bench --workload synthetic/uniform/n10/s0 --workload synthetic/uniform/n100/s0 \
        --workload synthetic/uniform/n1000/s0";
    run(folder, &[words(sizes), words(more)].concat(), 0);
}

/// A folder with the rows of a small bench in `a`.
fn measured() -> TempDir {
    let folder = tempdir().expect("a folder");
    bench(folder.path(), "--planner first-fit/s* --reps 5 --out a");
    folder
}

/// Copies the rows of `a` to `b`, changed.
fn copy(folder: &Path, change: impl Fn(&mut Record)) {
    let mut rows = read_records(folder.join("a")).expect("rows");
    rows.iter_mut().for_each(change);
    let _ = std::fs::remove_dir_all(folder.join("b"));
    Store::open(folder.join("b")).expect("opens").append_all(&rows).expect("appends");
}

/// Gives a row another planner version, as another build would.
fn other_build(row: &mut Record) {
    row.planner_version = "another".to_owned();
    row.cell = format!("{}-another", row.cell);
}

#[test]
fn equal_rows_are_no_regression_and_higher_ones_are() {
    let folder = measured();
    copy(folder.path(), other_build);
    let same = json(folder.path(), &["diff", "a", "b"], 0);
    assert_eq!((&same["regression"], &same["worse"]), (&Value::from(false), &Value::from(0)), "{same}");
    assert_eq!(same["cells"].as_array().map(Vec::len), Some(0), "{same}");
    let all = json(folder.path(), &["diff", "a", "b", "--all"], 0);
    assert_eq!(all["cells"].as_array().map(|cells| cells.len() as u64), all["paired"].as_u64());
    copy(folder.path(), |row| {
        other_build(row);
        if row.planner == "first-fit/size" && row.buffers == 100 {
            row.height = row.height.map(|height| height + 512);
        }
    });
    let worse = json(folder.path(), &["diff", "a", "b"], 1);
    assert_eq!(worse["cells"].as_array().map(Vec::len), Some(1), "{worse}");
    assert_eq!(worse["cells"][0]["height"]["verdict"], "worse");
    assert_shows(&folder, &["diff", "a", "b"], 1, &["1 worse, 0 better", "synthetic/uniform/n100/s0"]);
    assert_eq!(json(folder.path(), &["diff", "b", "a"], 0)["better"], 1);
}

#[test]
fn a_slowdown_beyond_threshold_and_noise_is_a_regression() {
    let folder = measured();
    let slower = |factor: u64| {
        move |row: &mut Record| {
            other_build(row);
            row.samples_ns = [100, 101, 99, 102, 98].map(|percent| percent * factor * 10_000).to_vec();
        }
    };
    let path = folder.path();
    copy(path, slower(100));
    std::fs::rename(path.join("b"), path.join("even")).expect("renames");
    copy(path, slower(120));
    let found = json(path, &["diff", "even", "b"], 1);
    assert!(found["worse"].as_u64() > Some(3) && found["worse"] == found["paired"], "{found}");
    assert!(found["cells"][0]["time"]["ratio"].as_f64().is_some_and(|ratio| (ratio - 1.2).abs() < 1e-6));
    json(path, &["diff", "even", "b", "--threshold", "25%"], 0);
    copy(path, |row| {
        slower(200)(row);
        row.lane = Lane::Quality;
    });
    let beside = json(path, &["diff", "even", "b"], 0);
    assert!(beside["remarks"].to_string().contains("beside others"), "{beside}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let folder = measured();
    let path = folder.path();
    copy(path, |row| {
        other_build(row);
        row.provenance.host = "elsewhere".to_owned();
        row.samples_ns.iter_mut().for_each(|ns| *ns *= 3);
    });
    assert_tells(path, &["diff", "a", "b"], 2, &["the hosts differ", "--across-hosts"]);
    let shown = json(path, &["diff", "a", "b", "--across-hosts"], 0);
    assert!(shown["remarks"].to_string().contains("not judged"), "{shown}");
    assert_eq!(json(path, &["diff", "a", "b", "--force"], 1)["regression"], true);
    copy(path, |row| row.wall_limit_ns = Some(1_000_000_000));
    assert_tells(path, &["diff", "a", "b"], 2, &["limits"]);
    assert!(json(path, &["diff", "a", "b", "--force"], 0)["paired"].as_u64() > Some(0));
    copy(path, |row| row.provenance.flags = "debug".to_owned());
    assert_tells(path, &["diff", "a", "b", "--across-hosts"], 2, &["flags"]);
    copy(path, |row| row.seed = 9);
    assert_tells(path, &["diff", "a", "b"], 2, &["no cell in common"]);
    for words in
        [vec!["diff"], vec!["diff", "a"], vec!["diff", "a", "nowhere"], vec!["diff", "--suite", "smoke"]]
    {
        run(path, &words, 2);
    }
}

#[test]
fn cells_of_one_side_are_listed() {
    let folder = measured();
    copy(folder.path(), |row| {
        if row.planner == "first-fit/start" {
            row.planner = "new".to_owned();
        }
    });
    let (text, _) = run(folder.path(), &["diff", "a", "b"], 0);
    assert!(text.contains("in A alone:\n  first-fit/start on synthetic/uniform/n10/s0"), "{text}");
    assert!(text.contains("in B alone:\n  new on synthetic/uniform/n10/s0"), "{text}");
}

#[test]
fn two_benches_of_one_build_have_no_verdict() {
    let folder = tempdir().expect("a folder");
    for out in ["a", "b"] {
        bench(folder.path(), &format!("--planner first-fit/* --planner best-fit* --out {out}"));
    }
    let same = json(folder.path(), &["diff", "a", "b"], 0);
    assert_eq!((&same["worse"], &same["better"]), (&Value::from(0), &Value::from(0)), "{same}");
    assert!(same["remarks"].to_string().contains("one side was measured after the other"), "{same}");
}

/// Writes a script `b.sh` that runs a line of shell and then this build; returns the path of this build.
fn other_build_of(folder: &Path, line: &str) -> String {
    let binary = assert_cmd::cargo::cargo_bin("planlab").display().to_string();
    write(folder, "b.sh", format!("#!/bin/sh\nbinary={binary}\n{line}\nexec $binary \"$@\"\n"));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.join("b.sh"), mode).expect("executable");
    binary
}

#[test]
fn a_proof_that_the_other_side_refutes_has_an_exit_code_of_its_own() {
    let folder = measured();
    copy(folder.path(), |row| {
        other_build(row);
        if row.planner == "first-fit/size" && row.buffers == 100 {
            let above = row.height.expect("a plan") + 1;
            (row.status, row.height, row.bound) = (Status::Optimal, Some(above), above);
        }
    });
    let found = json(folder.path(), &["diff", "a", "b"], 4);
    assert_eq!(found["contradictions"], 1, "{found}");
    assert_eq!(found["cells"][0]["status"]["verdict"], "contradiction");
    assert_shows(&folder, &["diff", "b", "a"], 4, &["1 with a proof that the other side refutes"]);
}

#[test]
fn builds_that_differ_run_what_both_have() {
    let folder = tempdir().expect("a folder");
    // A build with another name for a planner, and without a workload of 100 buffers.
    let rename = "s#\"key\":\"first-fit/end\"#\"key\":\"first-fit/old\"#";
    let binary = other_build_of(
        folder.path(),
        &format!(
            "case \"$*\" in\n\
             list*) $binary \"$@\" | sed '{rename}'; exit ;;\n\
             *first-fit/end*|*uniform/n100/*) echo 'there is none' >&2; exit 2 ;;\n\
             esac"
        ),
    );
    let mut words = vec!["diff", "--interleave", "--a-binary", &binary, "--b-binary", "b.sh", "--reps", "1"];
    words.extend(["--out", "turns-of-two", "--planner", "bump", "--planner", "first-fit/*e*"]);
    words.extend(["--workload", "synthetic/uniform/n10/s0", "--workload", "synthetic/uniform/n100/s0"]);
    let diff = json(folder.path(), &[words.as_slice(), &["--threshold", "10000%"]].concat(), 0);
    let rows = read_records(folder.path().join("turns-of-two/b")).expect("rows");
    assert!(rows.iter().all(|row| row.buffers == 10) && rows.len() > 1, "{rows:?}");
    assert_eq!(diff["paired"].as_u64(), Some(rows.len() as u64), "{diff}");
    let named = |planner: &str, n: u32| {
        Value::from_iter([
            ("planner", Value::from(planner)),
            ("workload", Value::from(format!("synthetic/uniform/n{n}/s0"))),
        ])
    };
    let alone = diff["not_run_a"].as_array().expect("cells");
    assert!(alone.contains(&named("first-fit/end", 10)) && alone.contains(&named("bump", 100)), "{diff}");
    assert!(!alone.contains(&named("bump", 10)), "{diff}");
    assert_eq!(diff["not_run_b"].as_array().map(Vec::len), Some(0), "{diff}");
    let (_, told) = run(folder.path(), &[&words[..words.len() - 4], &["--planner", "nothing"]].concat(), 2);
    assert!(told.contains("neither build has a planner `nothing`"), "{told}");
}

#[test]
fn two_builds_are_measured_in_turns() {
    let folder = tempdir().expect("a folder");
    let binary =
        other_build_of(folder.path(), "case \"$*\" in *--dry-run*|list*) ;; *) echo turn >> turns ;; esac");
    let mut arguments = vec!["diff", "--interleave", "--a-binary", &binary, "--b-binary", "b.sh"];
    arguments.extend(words(
        "--workload synthetic/uniform/n10/s0 --workload synthetic/uniform/n100/s0 --planner bump --reps 3 \
         --out turns-of-two --threshold 10000%",
    ));
    let diff = json(folder.path(), &arguments, 0);
    assert_eq!((&diff["paired"], &diff["better"]), (&Value::from(2), &Value::from(0)), "{diff}");
    let turns = std::fs::read_to_string(folder.path().join("turns")).expect("told");
    assert_eq!(turns.lines().count(), 6, "a turn for each workload and repetition");
    for side in ["a", "b"] {
        let rows = read_records(folder.path().join("turns-of-two").join(side)).expect("rows");
        assert_eq!(rows.len(), 6, "{side}");
        assert!(rows.iter().all(|row| row.lane == Lane::Timing && row.status.is_answer()));
    }
    // The order alternates: on one workload A begins, then B, then A.
    let started = |side: &str, repetition: u32| {
        let rows = read_records(folder.path().join("turns-of-two").join(side)).expect("rows");
        let row = rows.iter().find(|row| row.buffers == 10 && row.repetition == repetition).expect("a row");
        row.started_ns
    };
    let a_first: Vec<bool> = (0..3).map(|at| started("a", at) < started("b", at)).collect();
    assert!(a_first[0] != a_first[1] && a_first[1] != a_first[2], "{a_first:?}");
    // The folder has the rows of these turns; other turns were not measured with them.
    assert_tells(&folder, &arguments, 2, &["turns-of-two: the folder has the results of other turns"]);
    let (_, told) =
        run(folder.path(), &["diff", "--interleave", "--a-binary", "nothing", "--b-binary", "b.sh"], 2);
    assert!(told.contains("--a-binary nothing"), "{told}");
    assert_tells(&folder, &["diff", "a", "b", "--time-limit", "5s"], 2, &["for --interleave"]);
}

#[test]
fn growth_becomes_tables() {
    let folder = tempdir().expect("a folder");
    let bench = "bench --suite scale --workload synthetic/chain/n1000/s0 --workload synthetic/chain/n10000/s0 \
        --planner bump --planner exact --planner best-fit --out s";
    run(folder.path(), &words(bench), 0);
    let rows = read_records(folder.path().join("s")).expect("rows");
    assert_eq!(rows.len(), 4, "a search is not quick");
    assert!(rows.iter().all(|row| row.status != Status::Timeout));
    let told = json(folder.path(), &["scale", "s", "-o", "tables"], 0);
    assert_eq!(told["curves"], 2, "{told}");
    let read =
        |name: &str| std::fs::read_to_string(folder.path().join("tables").join(name)).expect("written");
    let page = read("scale.md");
    assert!(page.contains("## synthetic/chain") && page.contains("n = 10000"), "{page}");
    assert!(page.contains("(2 points)") && page.contains("Made by `planlab scale s -o tables`"), "{page}");
    let latex = read("scale.tex");
    assert!(latex.contains("% synthetic/chain\n") && latex.contains("\\end{tabular}"), "{latex}");
    let points = read("scale.csv");
    assert!(points.lines().count() == 5 && points.contains(",time_ns,cut,peak_rss_bytes,"), "{points}");
    assert!(read("scale-fits.csv").starts_with("family,planner,figure,exponent,from,to,points,r_squared\n"));
    let (_, told) = run(folder.path(), &["scale", "s", "--suite", "none", "-o", "tables"], 2);
    assert!(told.contains("no row belongs to suite `none`"), "{told}");
}
