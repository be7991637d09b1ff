//! The page on frameworks: ratios that can be checked by hand, and its messages about problems.

use std::fs;

use planlab_reports::ReportOptions;

use crate::files::{Files, Parts};
use crate::fixtures::framework as row;

/// On `alexnet` ours is twice as fast as glibc and as fast as `tcmalloc`; on `resnet18` half as fast again as both.
fn rows() -> String {
    row("alexnet", "glibc", [200, 220, 180], 400, "x")
        + &row("alexnet", "tcmalloc", [100, 100, 100], 250, "x")
        + &row("alexnet", "planlab", [90, 100, 110], 200, "x")
        + &row("resnet18", "glibc", [600, 600, 600], 400, "y")
        + &row("resnet18", "tcmalloc", [600, 600, 600], 160, "y")
        + &row("resnet18", "planlab", [300, 400, 500], 200, "y")
}

pub(crate) fn report(lines: &str) -> Files {
    let dir = tempfile::tempdir().expect("a folder");
    let store = dir.path().join("store");
    fs::create_dir(&store).expect("made");
    fs::write(store.join("frameworks.jsonl"), lines).expect("written");
    Files::of_report(dir.path(), ReportOptions::default())
}

#[test]
fn ratios_are_those_of_the_medians() {
    let files = report(&rows());
    insta::assert_snapshot!(files.text("tables/frameworks-means.csv"), @"
    framework,mode,batch,threads,machine,contender,nets,cpu_speed,cpu_speed_least,cpu_speed_most,wall_speed,memory_share,memory_share_most,faults,our_faults
    torch-1.13.0a0,infer,16,1,,glibc,2,1.732050808,1.5,2,1.732050808,0.5,0.5,2,2
    torch-1.13.0a0,infer,16,1,,tcmalloc,2,1.224744871,1,1.5,1.224744871,1,1.25,2,2
    ");
    let page = files.text("frameworks.html");
    for told in [
        "1.73 times as fast as glibc (geometric mean of 2 nets, least 1.50: resnet18)",
        "1.22 times as fast as the fastest of the others on each net (least 1.00: alexnet, tcmalloc)",
        "Steady memory: 50.00 % of glibc's",
        "100 % of that of the smallest of the others on each net (at most 125 %: resnet18)",
        "each net puts out the same, bit by bit",
    ] {
        assert!(page.contains(&told.replace('\'', "&#39;")) || page.contains(told), "{told}: {page}");
    }
    // Quartiles, and what was planned.
    let table = files.text("tables/frameworks.csv");
    let ours =
        table.lines().find(|line| line.contains("resnet18") && line.contains("planlab")).expect("a row");
    insta::assert_snapshot!(
        ours,
        @"torch-1.13.0a0,resnet18,infer,16,1,,planlab,1,400000000,350000000,450000000,400000000,,2,900000000,100,209715200,209715200,,0.9,1,2000000,1048576,1048576"
    );
}

#[test]
fn other_outputs_and_failures_are_alerts() {
    let failed = row("bert", "mimalloc", [1, 1, 1], 1, "z")
        .replace("\"complete\",\"reason\":\"\"", "\"failed\",\"reason\":\"exit code 1\"");
    let files = report(&(rows() + &row("alexnet", "jemalloc", [100, 100, 100], 250, "other") + &failed));
    let page = files.text("frameworks.html");
    page.has(["rows disagree on what the net puts out", "bert infer b16, mimalloc: exit code 1"]);
    assert!(!page.contains("bit by bit"), "{page}");
}
