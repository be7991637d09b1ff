//! Traces whose outputs may overwrite inputs: the same load and bound in every verb, permissions on and off, exports.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{assert_has, assert_tells, folder_with, json, run};

/// Three buffers that hand over one after another.
const CHAIN: &str = "id,lower,upper,size,may_overwrite\na,0,2,100000,\nb,1,3,100000,a\nc,2,4,100000,b\n";

/// The text of a command that succeeds.
fn text(folder: &Path, arguments: &[&str]) -> String {
    run(folder, arguments, 0).0
}

#[test]
fn every_verb_reports_the_same_load_and_bound() {
    let folder = folder_with("t.csv", CHAIN);
    let at = folder.path();
    let plan = json(at, &["plan", "t.csv", "-o", "p.csv"], 0);
    let bound = json(at, &["bound", "t.csv"], 0);
    let verified = json(at, &["verify", "t.csv", "p.csv"], 0);
    let compared = json(at, &["compare", "t.csv"], 0);
    let rows: Vec<&Value> = compared.as_array().expect("rows").iter().collect();
    for object in rows.iter().copied().chain([&plan, &bound, &verified]) {
        assert_eq!((&object["load"], &object["permissions"]), (&100_000.into(), &2.into()), "{object}");
        assert_eq!(object["load_without_in_place"], 200_000, "{object}");
        let fragmentation = object["fragmentation"].as_f64();
        assert!(fragmentation.is_none_or(|share| share >= 0.0), "{object}");
    }
    assert_eq!(
        (&plan["height"], &plan["status"], &plan["hand_overs"]),
        (&100_000.into(), &"optimal".into(), &2.into())
    );
    assert_eq!((&bound["bound"], &bound["bound_without_in_place"]), (&100_000.into(), &200_000.into()));
    let lowest = rows.iter().filter_map(|row| row["height"].as_u64()).min();
    assert_eq!(lowest, Some(100_000));
    for row in rows {
        assert_eq!((&row["bound"], &row["bound_scope"]), (&100_000.into(), &"any".into()), "{row}");
        let is_lowest = row["height"].as_u64() == lowest;
        assert_eq!((row["gap"] == 0.0, row["status"] == "optimal"), (is_lowest, is_lowest), "{row}");
    }
    let shown = text(at, &["plan", "t.csv"]);
    assert!(shown.contains("97.7 KiB (100000); 195 KiB (200000) without in-place"), "{shown}");
    assert!(shown.contains("2 permissions, used 2 (off with --in-place no)"), "{shown}");
    let shown = text(at, &["bound", "t.csv"]);
    assert!(shown.contains("\nbest: 97.7 KiB (100000), proof: load\n"), "{shown}");
    assert!(shown.contains("(--in-place no): 195 KiB (200000), proof: load\n"), "{shown}");
}

#[test]
fn a_planner_that_hands_nothing_over_is_marked_and_no_optimum() {
    let folder = folder_with("t.csv", CHAIN);
    let row = json(folder.path(), &["plan", "t.csv", "--planner", "best-fit"], 0);
    assert_eq!(
        (&row["status"], &row["stop"], &row["gap"]),
        (&"feasible".into(), &"finished".into(), &1.0.into())
    );
    assert_eq!((&row["height"], &row["bound_without_in_place"]), (&200_000.into(), &200_000.into()));
    let shown = text(folder.path(), &["plan", "t.csv", "--planner", "best-fit"]);
    assert!(shown.contains("feasible (finished, no plan without hand-overs is lower)"), "{shown}");
    assert!(shown.contains("2 permissions, this planner uses none"), "{shown}");
    let shown =
        text(folder.path(), &["compare", "t.csv", "--planner", "best-fit", "--planner", "first-fit/start"]);
    let line = |planner: &str| shown.lines().find(|line| line.starts_with(planner)).unwrap_or_default();
    assert!(line("best-fit").contains("never") && line("best-fit").contains("100.000 %"), "{shown}");
    assert!(
        line("first-fit/start").contains("0.000 %") && line("first-fit/start").contains("optimal"),
        "{shown}"
    );
}

#[test]
fn in_place_no_is_another_problem_in_every_verb() {
    let folder = folder_with("t.csv", CHAIN);
    let at = folder.path();
    for verb in ["plan", "bound"] {
        let object = json(at, &[verb, "t.csv", "--in-place", "no"], 0);
        assert_eq!((&object["load"], &object["permissions"]), (&200_000.into(), &0.into()), "{object}");
        assert_eq!(object["bound"], 200_000, "{object}");
    }
    let rows = json(at, &["compare", "t.csv", "--in-place", "no", "--planner", "best-fit"], 0);
    assert_eq!((&rows[0]["gap"], &rows[0]["status"]), (&0.0.into(), &"optimal".into()));
    let (_, told) = run(at, &["plan", "t.csv", "--in-place", "no", "-o", "p.csv"], 0);
    assert!(told.contains("permissions to overwrite a buffer in place were left out: 2"), "{told}");
    assert_eq!(json(at, &["verify", "t.csv", "p.csv"], 0)["hand_overs"], 0);
    run(at, &["plan", "t.csv", "-o", "handing.csv"], 0);
    let refused = json(at, &["verify", "t.csv", "handing.csv", "--in-place", "no"], 4);
    assert_eq!(refused["violation"], "hand-over", "{refused}");
    run(at, &["import", "t.csv", "--in-place", "no", "-o", "without.csv"], 0);
    assert!(!fs::read_to_string(at.join("without.csv")).expect("written").contains("may_overwrite"));
    let rows = json(at, &["bench", "t.csv", "--in-place", "no", "--planner", "best-fit", "--out", "r"], 0);
    assert_eq!((&rows["height"], &rows["status"]), (&200_000.into(), &"optimal".into()), "{rows}");
    assert_tells(at, &["plan", "t.csv", "--in-place", "maybe"], 2, &["maybe", "--in-place"]);
}

#[test]
fn graphs_and_workloads_lose_their_permissions_too() {
    let graph = concat!(
        r#"{"planlab":"graph","version":1,"tensors":[{"tensor":"x","bytes":64}]}"#,
        "\n",
        r#"{"op":"relu","reads":["x"],"writes":[{"tensor":"y","bytes":64,"output":true}],"inplace":[["x","y"]]}"#,
        "\n"
    );
    let folder = folder_with("g.jsonl", graph);
    for trace in ["g.jsonl", "model/squeezenet1-0/infer/b1"] {
        let with = json(folder.path(), &["bound", trace], 0);
        let without = json(folder.path(), &["bound", trace, "--in-place", "no"], 0);
        assert!(with["permissions"].as_u64() > Some(0) && with["load"].as_u64() < without["load"].as_u64());
        assert_eq!((&without["permissions"], &without["load"]), (&0.into(), &with["load_without_in_place"]));
        assert_eq!(without["bound_without_in_place"], Value::Null);
    }
}

#[test]
fn exports_refuse_hand_overs_or_mark_them() {
    let folder = folder_with("t.csv", CHAIN);
    let at = folder.path();
    run(at, &["plan", "t.csv", "-o", "p.csv"], 0);
    for format in ["c-header", "tflite-micro", "requests", "minimalloc"] {
        let (_, told) = run(at, &["export", format, "t.csv", "p.csv", "-o", "out"], 2);
        assert!(told.contains("p.csv: 2 buffers take the place of one that is still live"), "{told}");
        assert!(told.contains("(`b` overwrites `a`)") && told.contains("--in-place yes"), "{told}");
        assert!(!at.join("out").exists(), "{format}");
        let asked = json(at, &["export", format, "t.csv", "p.csv", "--in-place", "yes", "-o", "out"], 0);
        assert_eq!(asked["hand_overs"], 2, "{format}");
        fs::remove_file(at.join("out")).expect("it was written");
    }
    let header = text(at, &["export", "c-header", "t.csv", "p.csv", "--in-place", "yes"]);
    assert!(header.contains("#define PLANLAB_IN_PLACE 2u"), "{header}");
    assert!(
        header.contains(
            "/* b: steps [1, 3); overwrites a in place at step 1; overwritten in place by c at step 2 */"
        ),
        "{header}"
    );
    assert_has(&header, &["static const int32_t planlab_overwrites[3] = {\n    -1,\n    0,\n    1,\n};"]);
    run(at, &["export", "plan-json", "t.csv", "p.csv", "--in-place", "no"], 2);
    let object: Value =
        serde_json::from_str(&text(at, &["export", "plan-json", "t.csv", "p.csv"])).expect("JSON");
    assert_eq!((&object["load"], &object["buffers"][1]["overwrites"]), (&100_000.into(), &"a".into()));
    run(at, &["plan", "t.csv", "--in-place", "no", "-o", "plain.csv"], 0);
    let header = text(at, &["export", "c-header", "t.csv", "plain.csv"]);
    assert!(!header.contains("IN_PLACE") && !header.contains("overwrit"), "{header}");
}
