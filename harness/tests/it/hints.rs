//! `plan` from hints: a trace's column `hint`, or an old plan.

use std::path::Path;

use crate::common::{assert_shows, assert_tells, folder_with, json, outputs, planlab, run, write};
use serde_json::Value;

/// `x` above `z`: as high as the load, but no planner finds this plan by itself.
const HINTED: &str = "id,lower,upper,size,hint\nx,0,3,4096,4096\ny,1,2,1024,0\nz,2,5,4096,0\n";
const PLAIN: &str = "id,lower,upper,size\nx,0,3,4096\ny,1,2,1024\nz,2,5,4096\n";
const START: &str =
    "# planlab: plan\nid,lower,upper,size,offset\nz,2,5,4096,0\nx,0,3,4096,4096\ny,1,2,1024,0\n";
const PLANNERS: [&str; 3] = ["exact", "portfolio", "lns"];

/// The offsets of a plan file, in its rows' order.
fn offsets(folder: &Path, name: &str) -> Vec<u64> {
    let text = std::fs::read_to_string(folder.join(name)).expect("a plan was written");
    let mut rows = text.lines().filter(|line| !line.starts_with('#'));
    let header: Vec<&str> = rows.next().expect("a header").split(',').collect();
    let column = header.iter().position(|name| *name == "offset").expect("a column `offset`");
    rows.map(|row| row.split(',').nth(column).and_then(|cell| cell.parse().ok()).expect("an offset"))
        .collect()
}

fn plan(folder: &Path, trace: &str, planner: &str, more: &[&str]) -> (Value, Vec<u64>) {
    let arguments = [&["plan", trace, "--planner", planner, "-o", "p.csv"], more].concat();
    let row = json(folder, &arguments, 0);
    assert_eq!(row["height"], 8192, "{row}");
    (row, offsets(folder, "p.csv"))
}

#[test]
fn the_column_is_used_unless_it_is_declined() {
    let folder = folder_with("t.csv", HINTED);
    for planner in PLANNERS {
        for more in [&[][..], &["--in-process"]] {
            let (row, offsets) = plan(folder.path(), "t.csv", planner, more);
            assert_eq!((offsets, &row["status"]), (vec![4096, 0, 0], &"optimal".into()), "{planner}");
            assert!(row["hints"].is_string(), "{row}");
        }
        let (row, offsets) = plan(folder.path(), "t.csv", planner, &["--no-hints"]);
        assert_eq!(row["hints"], Value::Null, "{row}");
        assert_ne!(offsets, [4096, 0, 0], "{planner}");
    }
    let (row, _) = plan(folder.path(), "t.csv", "best-fit", &[]);
    assert_eq!(row["hints"], Value::Null, "best-fit does not honour hints: {row}");
    assert_shows(&folder, &["plan", "t.csv", "--planner", "exact"], 0, &["hints"]);
}

#[test]
fn an_old_plan_is_a_start() {
    let folder = folder_with("t.csv", PLAIN);
    write(folder.path(), "hinted.csv", HINTED);
    write(folder.path(), "start.csv", START);
    for planner in PLANNERS {
        let (row, offsets) = plan(folder.path(), "t.csv", planner, &["--start", "start.csv"]);
        assert_eq!(offsets, [4096, 0, 0], "{planner}");
        let (same, _) = plan(folder.path(), "hinted.csv", planner, &[]);
        assert_eq!(row["hints"], same["hints"], "the same offsets");
    }
    // It replaces the column.
    write(folder.path(), "low.csv", START.replace("x,0,3,4096,4096", "x,0,3,4096,8192"));
    let (row, _) = plan(folder.path(), "hinted.csv", "exact", &["--start", "low.csv"]);
    assert_ne!(row["hints"], plan(folder.path(), "hinted.csv", "exact", &[]).0["hints"]);
    let (_, stderr) =
        run(folder.path(), &["plan", "t.csv", "--planner", "best-fit", "--start", "start.csv"], 0);
    assert!(stderr.contains("does not honour hints"), "{stderr}");
}

#[test]
fn a_plan_from_stdin_is_a_start() {
    let folder = folder_with("t.csv", PLAIN);
    let words = ["plan", "t.csv", "--planner", "exact", "--start", "-", "-o", "p.csv"];
    outputs(planlab(folder.path()).args(words).write_stdin(START), 0);
    assert_eq!(offsets(folder.path(), "p.csv"), [4096, 0, 0]);
}

#[test]
fn hints_that_are_no_plan_do_no_harm() {
    let folder = folder_with("t.csv", PLAIN);
    write(folder.path(), "overlap.csv", START.replace("x,0,3,4096,4096", "x,0,3,4096,1"));
    let arguments = ["plan", "t.csv", "--planner", "exact", "--start", "overlap.csv", "-o", "p.csv"];
    assert_tells(&folder, &arguments, 0, &["overlap.csv is not a valid plan"]);
    run(folder.path(), &["verify", "t.csv", "p.csv"], 0);
    let far = u64::MAX.to_string();
    for hint in ["1", "", "-1", far.as_str()] {
        write(folder.path(), "t.csv", HINTED.replace("x,0,3,4096,4096", &format!("x,0,3,4096,{hint}")));
        for planner in PLANNERS {
            let (row, _) = plan(folder.path(), "t.csv", planner, &[]);
            assert_eq!(row["status"], "optimal", "{planner}, {hint}: {row}");
        }
    }
}

#[test]
fn a_start_that_is_no_plan_of_the_trace_is_refused() {
    let folder = folder_with("t.csv", PLAIN);
    write(folder.path(), "start.csv", START);
    write(folder.path(), "two.csv", START.replace("y,1,2,1024,0\n", ""));
    write(folder.path(), "other.csv", START.replace("y,1,2,1024,0", "w,1,2,1024,0"));
    write(folder.path(), "size.csv", START.replace("y,1,2,1024,0", "y,1,2,1000,0"));
    for (arguments, word) in [
        (&["t.csv", "--start", "missing.csv"][..], "missing.csv"),
        (&["t.csv", "--start", "two.csv"], "`y`"),
        (&["t.csv", "--start", "other.csv"], "other.csv:5:"),
        (&["t.csv", "--start", "size.csv"], "size.csv:5:"),
        (&["t.csv", "--start", "t.csv"], "offset"),
        (&["-", "--start", "-"], "stdin"),
        (&["t.csv", "--start", "start.csv", "--no-hints"], "--no-hints"),
    ] {
        for planner in ["exact", "best-fit"] {
            let all = [&["plan"], arguments, &["--planner", planner, "-o", "p.csv"]].concat();
            assert_tells(&folder, &all, 2, &[word]);
            assert!(!folder.path().join("p.csv").exists(), "{arguments:?}");
        }
    }
}

#[test]
fn an_old_plan_with_hand_overs_keeps_them() {
    let folder = folder_with("t.csv", "id,lower,upper,size,may_overwrite\na,0,2,8,\nb,1,3,8,a\n");
    let start = "# planlab: plan\nid,lower,upper,size,offset,overwrites\na,0,2,8,0,\nb,1,3,8,0,a\n";
    write(folder.path(), "start.csv", start);
    let arguments = ["plan", "t.csv", "--planner", "exact", "--start", "start.csv"];
    let row = json(folder.path(), &arguments, 0);
    assert_eq!((&row["height"], &row["hand_overs"]), (&8.into(), &1.into()), "{row}");
}
