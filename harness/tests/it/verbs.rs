//! Every verb: help, JSON, and what it is for.

use crate::common::{
    self, assert_has, assert_shows, assert_tells, folder_with, json, json_lines, outputs, planlab, run,
    words, write,
};
use planlab_graph::Machine;
use serde_json::Value;
use tempfile::tempdir;

const VERBS: &str = "add-workload list bench plan compare verify bound simulate replay generate import export explain \
    show report merge audit doctor diff scale model graph sweep";

const TRACE: &str =
    "# alignment: 4\nid,lower,upper,size,category\nx,0,3,4096,act\ny,1,2,1022,ws\nz,2,5,4096,act\n";

#[test]
fn every_verb_has_help() {
    let folder = tempdir().expect("a folder");
    for verb in VERBS.split(' ') {
        assert_shows(&folder, &[verb, "--help"], 0, &["Usage:"]);
    }
}

#[test]
fn lists_have_keys_and_descriptions() {
    let folder = tempdir().expect("a folder");
    for (what, key) in [
        ("planners", "best-fit"),
        ("workloads", "chainer/alexnet/infer/b1"),
        ("suites", "all"),
        ("models", "alexnet"),
        ("families", "guillotine"),
        ("formats", "minimalloc"),
        ("allocators", "cupy2rc1-pool"),
        ("schedulers", "superneurons"),
        ("machines", "power9-nvlink2"),
    ] {
        let rows = json(folder.path(), &["list", what], 0);
        let rows = rows.as_array().expect("an array");
        assert!(rows.iter().any(|row| row["key"] == key), "{what}");
        assert!(
            rows.iter().all(|row| row["description"].as_str().is_some_and(|text| !text.is_empty())),
            "{what}"
        );
        assert_shows(&folder, &["list", what], 0, &[key]);
        let (card, _) = run(folder.path(), &["list", what, key], 0);
        assert!(card.lines().count() > 1 && card.contains(key), "{what}: {card}");
        assert_eq!(json(folder.path(), &["list", what, key], 0)["key"], key);
    }
    let (text, _) = run(folder.path(), &["list"], 0);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("GREEDY") && text.contains("w work limit"), "{text}");
    let (card, _) = run(folder.path(), &["list", "planners", "exact"], 0);
    assert!(card.contains("\nguarantee    exact\n") && !card.contains('['), "{card}");
    for (word, count) in [("skyline", 2), ("boxing*", 2), ("external/*", 0)] {
        let code = if count == 0 { 2 } else { 0 };
        let (text, _) = run(folder.path(), &["list", "planners", word], code);
        assert_eq!(text.lines().filter(|line| line.contains("heuristic")).count(), count, "{text}");
    }
    let (_, told) = run(folder.path(), &["list", "planners", "best-fti"], 2);
    assert!(told.contains("there is no `best-fti` in this list; did you mean `best-fit`"), "{told}");
}

#[test]
fn machine_in_full_becomes_its_file() {
    let folder = tempdir().expect("a folder");
    for key in Machine::BUILT_IN {
        let mut fields = json(folder.path(), &["list", "machines", key], 0);
        let fields = fields.as_object_mut().expect("an object");
        assert!(fields.remove("key").is_some() && fields.remove("description").is_some());
        let text: String = fields.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
        let machine = Machine::built_in(key).expect("built in");
        assert_eq!(Machine::from_toml("m.toml", &text).as_ref(), Ok(&machine), "{text}");
        let (card, _) = run(folder.path(), &["list", "machines", key], 0);
        for line in machine.to_toml().lines() {
            let (name, value) = line.split_once(" = ").expect("a field");
            let is_shown = |shown: &str| shown.split_whitespace().eq([name, value]);
            assert!(card.lines().any(is_shown), "{name} = {value}: {card}");
        }
    }
}

#[test]
fn a_trace_becomes_a_plan_that_verifies() {
    let folder = folder_with("t.csv", TRACE);
    let bound = json(folder.path(), &["bound", "t.csv"], 0);
    assert_eq!((&bound["load"], &bound["bound_evidence"]), (&Value::from(8192), &Value::from("load")));
    let plan = json(folder.path(), &["plan", "t.csv", "--planner", "best-fit", "-o", "p.csv"], 0);
    for (key, value) in [("height", 8192), ("bound", 8192), ("buffers", 3)] {
        assert_eq!(plan[key], value, "{key}");
    }
    assert_eq!(plan["status"], "optimal");
    assert!(plan["seconds"].as_f64().is_some_and(|seconds| seconds >= 0.0));
    let verified = json(folder.path(), &["verify", "t.csv", "p.csv"], 0);
    assert_eq!((&verified["valid"], &verified["height"]), (&Value::from(true), &Value::from(8192)));
    let in_process = json(folder.path(), &["plan", "t.csv", "--in-process", "--planner", "best-fit"], 0);
    assert_eq!(in_process["height"], plan["height"]);
    let (text, _) = run(folder.path(), &["plan", "t.csv", "-o", "-"], 0);
    assert!(text.starts_with("# planlab: plan"), "{text}");
}

#[test]
fn a_capacity_that_is_too_small_is_infeasible_and_one_that_is_large_enough_is_met() {
    let folder = folder_with("t.csv", TRACE);
    let small = json(folder.path(), &["plan", "t.csv", "--capacity", "8191", "-o", "p.csv"], 3);
    assert_eq!(small["status"], "infeasible");
    assert!(!folder.path().join("p.csv").exists());
    let unknown = json(folder.path(), &["plan", "t.csv", "--capacity", "8192", "--planner", "bump"], 3);
    assert_eq!(unknown["status"], "unknown");
    let met = json(folder.path(), &["plan", "t.csv", "--capacity", "8KiB"], 0);
    assert_eq!(met["status"], "optimal");
}

#[test]
fn bounds_on_plans_without_hand_overs_decide_nothing_about_others() {
    let header = "id,lower,upper,size,may_overwrite\n";
    let folder = folder_with("h.csv", format!("{header}a,0,2,8,\nb,1,3,8,a\n"));
    let plan = |name: &str, planner: &str, more: &[&str], code: i32| {
        json(folder.path(), &[&["plan", name, "--planner", planner], more].concat(), code)
    };
    // Without a hand-over 16 bytes are needed; that does not make a capacity of 10 infeasible.
    assert_eq!(plan("h.csv", "best-fit", &["--capacity", "10"], 3)["status"], "unknown");
    let met = plan("h.csv", "first-fit/start", &["--capacity", "10"], 0);
    assert_eq!((&met["height"], &met["hand_overs"]), (&Value::from(8), &Value::from(1)));
    let best_fit = plan("h.csv", "best-fit", &[], 0);
    assert_eq!((&best_fit["bound"], &best_fit["bound_without_in_place"]), (&8.into(), &16.into()));
    // All planners have the bound on any plan.
    write(folder.path(), "r.csv", format!("{header}b,1,3,8,a\na,0,2,8,\n"));
    let other = plan("r.csv", "first-fit/input", &[], 0);
    let optimal = other["height"] == 8;
    assert_eq!(other["status"] == "optimal", optimal, "{other}");
    assert_eq!(other["bound"], 8);
}

#[test]
fn an_arena_that_is_too_small_is_infeasible() {
    let folder =
        folder_with("a.csv", "# arena sram: 100\nid,lower,upper,size,arena\nx,0,2,80,sram\ny,1,3,80,sram\n");
    let plan = json(folder.path(), &["plan", "a.csv", "--planner", "bump"], 3);
    assert_eq!(plan["status"], "infeasible", "{plan}");
    assert!(plan["reason"].as_str().is_some_and(|reason| reason.contains("sram")), "{plan}");
}

#[test]
fn arenas_with_capacities_are_planned_or_proved_infeasible() {
    let folder = tempdir().expect("a folder");
    // The load of the first arena is 20; no plan of it is lower than 21.
    let rows: String = common::ABOVE.lines().skip(1).map(|row| format!("{row},sram\n")).collect();
    for (capacity, height, code) in [(20, None, 3), (21, Some(21 + 80), 0)] {
        let head = format!("# arena sram: {capacity}\n# arena dram: 1000\nid,lower,upper,size,arena\n");
        write(folder.path(), "a.csv", head + &rows + "x,0,2,80,dram\ny,4,6,70,dram\n");
        for planner in ["portfolio", "exact", "scaled"] {
            let plan = json(folder.path(), &["plan", "a.csv", "--planner", planner, "-o", "p.csv"], code);
            let status = if height.is_some() { "optimal" } else { "infeasible" };
            assert_eq!((&plan["status"], &plan["height"]), (&status.into(), &height.into()), "{plan}");
            let reason = plan["reason"].as_str().unwrap_or_default();
            assert_eq!(reason.contains("an arena cannot keep its capacity"), height.is_none(), "{plan}");
        }
        if height.is_some() {
            run(folder.path(), &["verify", "a.csv", "p.csv"], 0);
        }
    }
}

#[test]
fn a_bench_of_nothing_that_exists_is_refused() {
    let folder = tempdir().expect("a folder");
    for arguments in [
        vec!["bench", "--workload", "chainr/*", "--planner", "bump"],
        vec!["bench", "--workload", "chainer/alexnet/infer/b2"],
        vec!["bench", "--suite", "smoke", "--workload", "chainer/alexnett/infer/b1"],
    ] {
        assert_tells(&folder, &[&arguments[..], &["--out", "store"]].concat(), 2, &["no workload"]);
    }
    assert!(!folder.path().join("store").exists());
}

#[test]
fn compare_ranks_the_quick_planners() {
    let folder = folder_with("t.csv", TRACE);
    let rows = json(folder.path(), &["compare", "t.csv"], 0);
    let rows = rows.as_array().expect("an array");
    assert!(rows.len() >= 20, "{}", rows.len());
    assert!(rows.iter().all(|row| row["height"].as_u64() >= Some(8192)));
    run(folder.path(), &["compare", "t.csv"], 0);
}

#[test]
fn stdin_and_stdout_are_files_too() {
    let folder = folder_with("t.csv", TRACE);
    let with_stdin =
        |words: &[&str], text: String| outputs(planlab(folder.path()).args(words).write_stdin(text), 0).0;
    let plan = with_stdin(&["plan", "-", "--planner", "bump", "-o", "-"], TRACE.to_owned());
    with_stdin(&["verify", "t.csv", "-", "--json"], plan);
}

#[test]
fn generated_imported_and_exported_traces_are_the_same_problem() {
    let folder = tempdir().expect("a folder");
    let bound = |name: &str| json(folder.path(), &["bound", name], 0)["load"].clone();
    let made = json(folder.path(), &["generate", "chain", "n=200", "seed=3", "-o", "g.csv.zst"], 0);
    assert!(made["buffers"].as_u64().is_some_and(|n| (150..=250).contains(&n)), "{made}");
    run(folder.path(), &["export", "minimalloc", "g.csv.zst", "-o", "m.csv"], 0);
    run(folder.path(), &["import", "minimalloc", "m.csv", "-o", "i.csv"], 0);
    assert_eq!(bound("g.csv.zst"), bound("i.csv"));
    run(folder.path(), &["plan", "g.csv.zst", "-o", "p.csv"], 0);
    run(folder.path(), &["export", "lab", "g.csv.zst", "p.csv", "-o", "q.csv"], 0);
    run(folder.path(), &["verify", "g.csv.zst", "q.csv"], 0);
}

#[test]
fn pictures_are_written_whole() {
    let folder = folder_with("t.csv", TRACE);
    run(folder.path(), &["plan", "t.csv", "-o", "p.csv"], 0);
    for (name, start) in [("a.svg", b"<svg".as_slice()), ("a.png", b"\x89PNG"), ("a.html", b"<!DOCTYPE")] {
        json(folder.path(), &["show", "t.csv", "p.csv", "-o", name], 0);
        let bytes = std::fs::read(folder.path().join(name)).expect("written");
        let head = bytes[..bytes.len().min(200)].to_ascii_lowercase();
        let start = start.to_ascii_lowercase();
        assert!(head.windows(start.len()).any(|window| window == start), "{name}");
    }
    json(folder.path(), &["show", "t.csv", "-o", "load.png"], 0);
    run(folder.path(), &["show", "t.csv", "-o", "a.pdf"], 2);
    run(folder.path(), &["show", "t.csv", "p.csv", "-o", "a.svg", "--size", "440x360"], 0);
    let picture = std::fs::read_to_string(folder.path().join("a.svg")).expect("written");
    assert!(picture.contains("width=\"440\" height=\"360\""), "{picture}");
    for (arguments, reason) in [
        (&["p.csv", "-o", "a.svg", "--size", "440"][..], "--size"),
        (&["p.csv", "-o", "a.svg", "--size", "440x99999"], "--size"),
        (&["p.csv", "-o", "a.html", "--size", "440x360"], "planlab: --size needs a picture"),
        (
            &["-o", "a.svg", "--size", "440x360"],
            "planlab: --size needs a plan; a load curve has a fixed size",
        ),
    ] {
        assert_tells(&folder, &[&["show", "t.csv"], arguments].concat(), 2, &[reason]);
    }
}

#[test]
fn a_bench_becomes_a_report_an_audit_and_a_merge() {
    let folder = tempdir().expect("a folder");
    let bench = words("bench --workload chainer/alexnet/*/b* --planner best-fit --planner bump --json");
    for shard in ["1/2", "2/2"] {
        let out = format!("s{}", &shard[..1]);
        run(folder.path(), &[&bench[..], &["--shard", shard, "--out", &out]].concat(), 0);
    }
    let whole = json_lines(&run(folder.path(), &[&bench[..], &["--out", "whole"]].concat(), 0).0);
    json(folder.path(), &["merge", "s1", "s2", "-o", "merged"], 0);
    let merged = json_lines(&run(folder.path(), &[&bench[..], &["--out", "merged"]].concat(), 0).0);
    assert_eq!(merged.len(), whole.len());
    let audit = json(folder.path(), &["audit", "merged"], 0);
    assert_eq!(audit["rows"], whole.len());
    let report = json(folder.path(), &["report", "merged", "-o", "pages"], 0);
    assert!(report["pages"].as_u64().is_some_and(|pages| pages > 3), "{report}");
    assert!(folder.path().join("pages/index.html").exists());
    let dry = |out: &str| {
        json_lines(&run(folder.path(), &[&bench[..], &["--out", out, "--dry-run"]].concat(), 0).0).len()
    };
    assert_eq!((dry("nowhere"), dry("whole")), (whole.len(), 0));
}

#[test]
fn doctor_reports_what_enforces_limits() {
    let folder = tempdir().expect("a folder");
    let doctor = json(folder.path(), &["doctor"], 0);
    let topics: Vec<&str> =
        doctor["findings"].as_array().expect("findings").iter().filter_map(|f| f["topic"].as_str()).collect();
    assert!(topics.contains(&"limits"), "{topics:?}");
    assert!(doctor["provenance"]["rustc"].as_str().is_some_and(|text| text.contains("rustc")));
}

#[test]
fn a_dry_run_tells_cells_apart_and_how_long_they_may_take() {
    let folder = tempdir().expect("a folder");
    let bench = ["bench", "--dry-run", "--workload", "chainer/alexnet/infer/b1", "--planner", "best-fit"];
    let more = ["--capacity", "1GiB", "--capacity", "2GiB", "--reps", "3", "--time-limit", "20s"];
    let words = [&bench[..], &more].concat();
    let (text, told) = run(folder.path(), &words, 0);
    assert_eq!(text.lines().count(), 2, "{text}");
    assert_has(&text, &["capacity 1.00 GiB (1073741824)  1 thread  limit 20.000 s  3 repetitions"]);
    assert!(told.contains("6 runs") && told.contains("at most 120.000 s"), "{told}");
    let rows = json_lines(&run(folder.path(), &[&words[..], &["--json"]].concat(), 0).0);
    assert_eq!((rows.len(), &rows[1]["repetitions"]), (2, &3.into()));
}
