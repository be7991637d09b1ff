//! The folder of a report: replaced as a whole, and nothing else in it is touched.

use std::fs;

use planlab_files::FolderError;
use planlab_reports::{Report, ReportError};
use planlab_results::Status;

use super::{empty_store, failure, options, report_of, store, written};
use crate::files::{Files, Parts};
use crate::replays::PAGES;

#[test]
fn a_report_made_again_is_the_same_and_replaces_the_old_one() {
    let (dir, files) = written();
    let out = dir.path().join("out");
    // A page of an earlier report that this one lacks.
    fs::write(out.join("stale.html"), "old").expect("writes");
    let manifest = files.text("report.json").replacen("\"files\": [", "\"files\": [\"stale.html\",", 1);
    fs::write(out.join("report.json"), manifest).expect("writes");
    files.assert_same(&Files::of_report(dir.path(), options()));
    let left: Vec<_> = fs::read_dir(dir.path()).expect("reads").collect();
    assert_eq!(left.len(), 2, "no temporary folder is left: {left:?}");
}

#[test]
fn a_folder_with_something_else_in_it_is_left_alone() {
    let (dir, _) = written();
    let home = dir.path().join("home");
    fs::create_dir(&home).expect("makes a folder");
    fs::write(home.join("thesis.tex"), "precious").expect("writes");
    let report = Report::from_store(dir.path().join("store"), options()).expect("reads");
    let error = report.write_to(&home).expect_err("refused");
    assert!(matches!(error, ReportError::Folder(FolderError::Foreign { .. })), "{error}");
    assert!(error.to_string().contains("thesis.tex"), "{error}");
    assert_eq!(fs::read_to_string(home.join("thesis.tex")).expect("is there"), "precious");
}

#[test]
fn notes_beside_a_report_stay() {
    let (dir, files) = written();
    let out = dir.path().join("out");
    fs::write(out.join("tables/notes.txt"), "precious").expect("writes");
    let report = Report::from_store(dir.path().join("store"), options()).expect("reads");
    let error = report.write_to(&out).expect_err("refused");
    assert!(error.to_string().contains("tables/notes.txt"), "{error}");
    assert_eq!(Files::read(&out).len(), files.len() + 1);
}

#[test]
fn the_records_are_not_replaced_by_their_report() {
    let (dir, _) = written();
    let (store, out) = (dir.path().join("store"), dir.path().join("out"));
    fs::rename(&store, out.join("store")).expect("ours");
    for (store, out) in [("out/store", "out"), ("out/store", "out/store"), ("out/store", "out/store/pages")] {
        let (store, out) = (dir.path().join(store), dir.path().join(out));
        let report = Report::from_store(&store, options()).expect("reads");
        let error = report.write_to(&out).expect_err("refused");
        assert!(matches!(error, ReportError::Folder(FolderError::Nested { .. })), "{error}");
    }
}

#[test]
fn a_report_of_an_earlier_version_is_refused_with_a_way_out() {
    let (dir, _) = written();
    let out = dir.path().join("out");
    for marker in [r#"{"kind":"planlab report","command":"x","records":1,"schema":1}"#, ""] {
        fs::write(out.join("report.json"), marker).expect("writes");
        let report = Report::from_store(dir.path().join("store"), options()).expect("reads");
        let error = report.write_to(&out).expect_err("refused").to_string();
        error.has(["remove", "name another folder"]);
    }
}

#[test]
fn a_report_of_nothing_lacks_the_pages_of_what_did_not_run() {
    let (dir, _store) = empty_store();
    let files = Files::of_report(dir.path(), options());
    assert_eq!(files.keys().filter(|name| name.ends_with(".html")).count(), 7);
    let index = files.text("index.html");
    for absent in PAGES.into_iter().chain(["offload.html", "What if it does not fit?"]) {
        assert!(!files.contains_key(absent) && !index.contains(absent), "{absent}");
    }
}

#[test]
fn rows_whose_instance_is_not_in_the_store_have_pages_without_pictures() {
    let mut row = failure("a/b", "p", Status::Feasible, "");
    (row.height, row.plan) = (Some(100), Some("ab".repeat(32)));
    let files = report_of(&[row]);
    assert!(files.text("workloads/a.b.html").contains("does not hold this instance"));
    assert!(files.keys().all(|name| !name.starts_with("maps/")));
}

#[test]
fn report_of_a_damaged_store_names_the_damage() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let root = dir.path().join("store");
    store(&root);
    let mut plans: Vec<_> =
        fs::read_dir(root.join("plans")).expect("reads").map(|entry| entry.expect("reads").path()).collect();
    plans.sort_unstable();
    fs::remove_file(&plans[0]).expect("removes");
    fs::write(&plans[1], "damaged").expect("writes");
    let report = Report::from_store(&root, options()).expect("reads");
    assert_eq!(report.audit_findings().len(), 2, "{:?}", report.audit_findings());
    let files = Files::of_report(dir.path(), options());
    files.has("run.html", ["The store is damaged: 2 of the instances and plans"]);
    assert!(files.text("index.html").contains("2 instances or plans cannot be read."));
    assert!(files.text("tables/failures.csv").contains("missing file"));
    let instance = fs::read_dir(root.join("instances")).expect("reads").next().expect("has one");
    fs::write(instance.expect("reads").path(), "damaged").expect("writes");
    Files::of_report(dir.path(), options()).has("run.html", ["The store is damaged: 1 of"]);
}
