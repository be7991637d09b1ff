//! `plan --cache`: one plan serves all batch sizes whose buffer sizes are in proportion.

use std::path::{Path, PathBuf};

use crate::common::{self, assert_shows, assert_tells, figure, folder_with, json, run, write};
use serde_json::Value;
use tempfile::tempdir;

/// A net whose sizes all grow with the batch.
fn net(batch: u64) -> String {
    let rows = [("x", 0, 3, 4096), ("y", 1, 2, 1024), ("z", 2, 5, 4096), ("w", 4, 6, 3072)];
    let row =
        |(id, lower, upper, size): (&str, u32, u32, u64)| format!("{id},{lower},{upper},{}\n", size * batch);
    format!("id,lower,upper,size\n{}", rows.map(row).concat())
}

fn plan(folder: &Path, trace: &str, more: &[&str]) -> Value {
    json(folder, &[&["plan", trace, "--cache", "kept", "-o", "p.csv"], more].concat(), 0)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.join("kept")).expect("the folder was made");
    entries.map(|entry| entry.expect("readable").path()).collect()
}

#[test]
fn one_plan_is_enough_for_all_batch_sizes() {
    let folder = tempdir().expect("a folder");
    for batch in [1, 2, 32] {
        write(folder.path(), &format!("b{batch}.csv"), net(batch));
    }
    for (trace, batch, cached) in
        [("b1.csv", 1, false), ("b1.csv", 1, true), ("b2.csv", 2, true), ("b32.csv", 32, true)]
    {
        let row = plan(folder.path(), trace, &[]);
        assert_eq!((&row["cached"], &row["height"]), (&cached.into(), &(8192 * batch).into()), "{row}");
        assert_eq!((&row["status"], &row["hints"]), (&"optimal".into(), &Value::Null), "{row}");
        run(folder.path(), &["verify", trace, "p.csv"], 0);
    }
    assert_eq!(files(folder.path()).len(), 1);
    // Another planner has a plan of its own.
    assert_eq!(plan(folder.path(), "b1.csv", &["--planner", "best-fit"])["cached"], false);
    assert_eq!(files(folder.path()).len(), 2);
    assert_shows(&folder, &["plan", "b2.csv", "--cache", "kept"], 0, &["cached"]);
    assert_eq!(json(folder.path(), &["plan", "b1.csv"], 0)["cached"], false);
}

#[test]
fn a_file_that_is_damaged_or_false_is_made_anew() {
    let folder = folder_with("t.csv", net(1));
    plan(folder.path(), "t.csv", &[]);
    let file = files(folder.path()).pop().expect("one");
    let kept = std::fs::read_to_string(&file).expect("text");
    let value: Value = serde_json::from_str(&kept).expect("JSON");
    let changed = |change: fn(&mut Value)| {
        let mut value = value.clone();
        change(&mut value);
        value.to_string()
    };
    let all_at_0 = changed(|value| value["plan"]["offsets"] = vec![0; 4].into());
    let later = changed(|value| value["version"] = 99.into());
    let torn = kept[..kept.len() / 2].to_owned();
    for bad in [all_at_0, later, torn, String::new()] {
        std::fs::write(&file, &bad).expect("writable");
        let arguments = ["plan", "t.csv", "--cache", "kept", "--json"];
        let (stdout, stderr) = run(folder.path(), &arguments, 0);
        let row: Value = serde_json::from_str(&stdout).expect("a row");
        assert_eq!((&row["cached"], &row["height"]), (&false.into(), &8192.into()), "{row}");
        assert!(stderr.contains("a new one is made"), "{bad}: {stderr}");
        assert_eq!(plan(folder.path(), "t.csv", &[])["cached"], true);
    }
}

#[test]
fn more_time_is_a_new_search_from_the_old_plan() {
    let folder = folder_with("t.csv", common::ABOVE);
    let limited = |work: &str| {
        let limits = ["--planner", "lns", "--threads", "1", "--time-limit", "60s", "--work-limit", work];
        plan(folder.path(), "t.csv", &limits)
    };
    let (first, again, less) = (limited("3000"), limited("3000"), limited("2000"));
    assert_eq!(
        (&first["cached"], &again["cached"], &less["cached"]),
        (&false.into(), &true.into(), &true.into())
    );
    let more = limited("4000");
    assert_eq!((&more["cached"], more["hints"].is_string()), (&false.into(), true), "{more}");
    assert!(figure(&more, "height") <= figure(&first, "height"));
    assert_eq!(limited("3500")["cached"], true);
    // Any plan that fits the capacity is an answer.
    let fits = plan(folder.path(), "t.csv", &["--planner", "lns", "--capacity", "1000"]);
    assert_eq!(fits["cached"], true, "{fits}");
}

#[test]
fn folder_that_cannot_be_created_is_reported() {
    let folder = folder_with("t.csv", net(1));
    write(folder.path(), "kept", "no folder");
    assert_tells(&folder, &["plan", "t.csv", "--cache", "kept"], 2, &["kept"]);
}

#[test]
fn a_plan_of_another_batch_size_is_a_start() {
    let weights = |batch: u64| net(batch) + "weight,0,6,5000\n";
    let folder = folder_with("b1.csv", weights(1));
    write(folder.path(), "b3.csv", weights(3));
    run(folder.path(), &["plan", "b1.csv", "-o", "old.csv"], 0);
    let arguments = ["plan", "b3.csv", "--carry", "old.csv", "--of", "b1.csv"];
    for planner in ["portfolio", "best-fit"] {
        let row = json(folder.path(), &[&arguments[..], &["--planner", planner]].concat(), 0);
        let carried = row["carried"].as_u64().expect("a height");
        assert!(carried >= 3 * 8192 + 5000, "{row}");
        assert_eq!(row["hints"].is_string(), planner == "portfolio", "{row}");
        assert!(planner != "portfolio" || figure(&row, "height") <= carried, "{row}");
    }
    assert_shows(&folder, &arguments, 0, &["carried over"]);
    assert_eq!(json(folder.path(), &["plan", "b1.csv"], 0)["carried"], Value::Null);
    write(folder.path(), "other.csv", weights(2).replace("weight,0,6", "weight,0,5"));
    for (trace, of, word) in [("b3.csv", "b3.csv", "old.csv"), ("other.csv", "b1.csv", "buffer 4")] {
        assert_tells(&folder, &["plan", trace, "--carry", "old.csv", "--of", of], 2, &[word]);
    }
}
