//! Online allocators beside the planners of a suite, and streams of propagations.

use crate::common::{assert_shows, assert_tells, folder_with, json, json_lines, run, write};
use planlab_dsa::performance::End;
use planlab_results::replay::{ReplayRow, read_rows};
use tempfile::tempdir;

const SUITE: &str = "name = \"pools\"
analysis = \"Two pools beside a planner.\"
[[group]]
workloads = [\"chainer/alexnet/infer/b1\", \"chainer/alexnet/train/b32\"]
planners = [\"best-fit\"]
allocators = [\"cupy2rc1-pool\", \"profile-guided\"]
[[group]]
workloads = [\"chainer/alexnet/process/b32\"]
allocators = [\"cupy2rc1-pool\"]
";

#[test]
fn bench_plays_the_allocators_of_a_suite_once() {
    let folder = folder_with("pools.toml", SUITE);
    let bench = ["bench", "--suite", "./pools.toml", "--out", "store", "--json"];
    let (stdout, stderr) = run(folder.path(), &bench, 0);
    let lines = json_lines(&stdout);
    let pools: Vec<_> = lines.iter().filter(|line| line["allocator"].is_string()).collect();
    assert_eq!((lines.len(), pools.len()), (7, 5), "{stdout}");
    assert!(stderr.contains("5 rows of online allocators, 5 played now"), "{stderr}");
    let (again, stderr) = run(folder.path(), &bench, 0);
    assert_eq!(json_lines(&again).len(), 7, "old rows are printed too");
    assert!(stderr.contains("5 rows of online allocators, 0 played now"), "{stderr}");

    let rows = read_rows(folder.path().join("store")).expect("rows");
    assert!(rows.iter().all(|row| row.performance.status == End::Complete && row.device == "simulated"));
    let peak = |workload: &str, contender: &str| {
        let row = rows.iter().find(|row| row.workload == workload && row.contender == contender);
        let looked_at =
            |row: &ReplayRow| row.performance.samples.iter().filter(|one| one.reserved.is_some()).count();
        row.map(|row| (looked_at(row), row.performance.reserved_peak))
    };
    assert_eq!(peak("chainer/alexnet/train/b32", "cupy2rc1-pool"), Some((5, 459_276_288)));
    assert_eq!(peak("chainer/alexnet/process/b32", "cupy2rc1-pool"), Some((1, 1_207_824_896)));
    let audit = json(folder.path(), &["audit", "store"], 0);
    assert_eq!((&audit["rows"], &audit["replays"]), (&2.into(), &5.into()));
}

#[test]
fn what_is_missing_alone_is_played_and_shards_share_it() {
    let folder = folder_with("pools.toml", SUITE);
    let bench = |words: &[&str]| {
        let all = [&["bench", "--suite", "./pools.toml"][..], words].concat();
        run(folder.path(), &all, 0)
    };
    let (listed, _) = bench(&["--out", "store", "--dry-run"]);
    assert_eq!(listed.matches("  allocator ").count(), 5, "{listed}");
    bench(&["--out", "store", "--workload", "chainer/alexnet/infer/b1"]);
    assert_eq!(read_rows(folder.path().join("store")).expect("rows").len(), 2);
    let (listed, _) = bench(&["--out", "store", "--dry-run"]);
    assert_eq!(listed.matches("  allocator ").count(), 3, "{listed}");
    let (_, stderr) = bench(&["--out", "store", "--workload", "chainer/alexnet/process/b32"]);
    assert!(stderr.contains("1 rows of online allocators, 1 played now"), "{stderr}");
    // If planners are named, only those run.
    let (_, stderr) = bench(&["--out", "other", "--planner", "best-fit"]);
    assert!(!stderr.contains("online allocators"), "{stderr}");

    let shards = ["1/2", "2/2"].map(|shard| {
        let out = format!("shard{}", &shard[..1]);
        bench(&["--out", &out, "--shard", shard]);
        read_rows(folder.path().join(out)).map_or(0, |rows| rows.len())
    });
    assert_eq!(shards.iter().sum::<usize>(), 5, "{shards:?}");
}

#[test]
fn traces_in_turn_are_a_stream_with_a_row_for_the_report() {
    let folder = tempdir().expect("a folder");
    let keys = [0, 1, 2, 9].map(|n| format!("chainer/seq2seq/train/b32/iteration{n}"));
    let mut words = vec!["simulate"];
    words.extend(keys.iter().map(String::as_str));
    words.extend(["--allocator", "profile-guided", "--iterations", "2", "--out", "store"]);
    let object = json(folder.path(), &words, 0);
    assert_eq!(object["workload"], "chainer/seq2seq/train/b32");
    assert_eq!((&object["iterations"], &object["sequence"][3]), (&2.into(), &keys[3].as_str().into()));
    let propagations = object["propagations"].as_array().expect("each of them");
    assert_eq!(propagations.len(), 8);
    let plans: Vec<u64> = propagations.iter().filter_map(|one| one["plans"].as_u64()).collect();
    assert!(plans[0] == 1 && plans[7] > 1 && plans.is_sorted(), "planned anew where they differ: {plans:?}");
    let planning = |at: usize| propagations[at]["planning_seconds"].as_f64();
    assert!(planning(7) > planning(0) && planning(0) >= Some(0.0), "{object}");
    let rows = read_rows(folder.path().join("store")).expect("rows");
    let samples = &rows[0].performance.samples;
    assert_eq!((rows.len(), samples.len(), rows[0].sequence.len()), (1, 8, 4));
    assert_eq!(object["requests"], 2 * rows[0].requests);
    assert!(samples.iter().all(|one| one.reserved > Some(0) && one.reserved_peak >= one.reserved));
    assert_eq!(rows[0].retained, Some(2_774_190_592));
    words.push("--samples");
    assert_shows(&folder, &words, 0, &["in 4 propagations", "planning so far"]);
    assert_eq!(read_rows(folder.path().join("store")).expect("rows").len(), 1, "the same cell again");
}

#[test]
fn what_cannot_be_a_stream_is_refused() {
    let folder = tempdir().expect("a folder");
    assert_tells(&folder, &["simulate", "-", "-", "--allocator", "tlsf"], 2, &["named twice"]);
    let two = ["simulate", "chainer/alexnet/infer/b1", "chainer/googlenet/infer/b1", "--allocator", "tlsf"];
    assert_tells(&folder, &[&two[..], &["--until", "3"]].concat(), 2, &["--until is a step of one trace"]);
    run(folder.path(), &["simulate", "--allocator", "tlsf"], 2);
    write(folder.path(), "taken", "");
    let (stdout, _) =
        run(folder.path(), &[&two[..2], &["--allocator", "tlsf", "--out", "taken"]].concat(), 2);
    assert!(stdout.is_empty(), "nothing is played for a folder that cannot be: {stdout}");
    let part = [&two[..2], &["--allocator", "tlsf", "--until", "3", "--out", "rows"]].concat();
    let (_, stderr) = run(folder.path(), &part, 2);
    assert!(stderr.contains("cannot be used with") && !folder.path().join("rows").exists(), "{stderr}");
}

#[cfg(feature = "reports")]
#[test]
fn a_report_of_simulated_pools_has_the_papers_totals() {
    let folder = folder_with(
        "pools.toml",
        SUITE.replace("\"profile-guided\"", "\"profile-guided\", \"network-wise\""),
    );
    run(folder.path(), &["bench", "--suite", "./pools.toml", "--out", "store"], 0);
    run(folder.path(), &["report", "store", "-o", "out"], 0);
    let read = |name: &str| std::fs::read_to_string(folder.path().join("out").join(name)).expect(name);
    let memory = read("tables/memory-by-net.csv");
    let line = memory.lines().find(|line| line.starts_with("chainer/alexnet/train/b32")).expect("AlexNet");
    crate::common::assert_has(line, &["748544000", "1503106048", "1207824896", "1104251904"]);
    assert_eq!(read("tables/memory-published.csv").matches("within its rounding").count(), 2);
    let pools = read("tables/online-allocators.csv");
    assert!(pools.contains("cupy2rc1-pool") && pools.contains("chainer/alexnet/infer/b1"), "{pools}");
    assert!(read("workloads/chainer.alexnet.train.b32.html").contains("Online allocators"));
    assert!(read("allocators.html").contains("Best plan saves"));
}
