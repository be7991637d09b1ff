//! Rankings: who has no answer is named and counts with a penalty, who ran on few workloads comes behind.

use planlab_reports::ReportOptions;
use planlab_results::Status;

use super::{Row, append, empty_store, failure};
use crate::files::{Files, Parts};

/// Eight workloads: `late` is optimal on seven and out of time on the last, `easy` ran on the first two alone.
fn files() -> Files {
    let (dir, mut store) = empty_store();
    for number in 1..=8 {
        let workload = &format!("tool/net/{number}");
        let mut add = |planner: &str, offsets: [u64; 3]| {
            append(&mut store, &Row { workload, planner, offsets, times: &[1_000] });
        };
        add("close", [0, 70, 0]);
        add("far", [0, 64, 96]);
        add("wild", [0, 64, 196]);
        if number <= 2 {
            add("easy", [0, 64, 0]);
        }
        if number < 8 {
            add("late", [0, 64, 0]);
        }
    }
    store.append(&failure("tool/net/8", "late", Status::Timeout, "")).expect("appends");
    for number in 1..=8 {
        let workload = &format!("tool/net/{number}");
        if number < 8 {
            append(&mut store, &Row { workload, planner: "picky", offsets: [0, 64, 0], times: &[1_000] });
        } else {
            store.append(&failure(workload, "picky", Status::Unsupported, "no pins")).expect("appends");
        }
    }
    store.append(&failure("tool/net/8", "foreign", Status::Unsupported, "no pins")).expect("appends");
    store.compact().expect("compacts");
    Files::of_report(dir.path(), ReportOptions::default())
}

/// Where each of these comes first, in the order of the page.
fn places<'n>(page: &str, names: &[&'n str]) -> Vec<&'n str> {
    let place = |name: &&str| page.find(*name).unwrap_or_else(|| panic!("{name} is not in {page}"));
    let mut names = names.to_vec();
    names.sort_by_key(place);
    names
}

#[test]
fn front_page_names_planners_without_an_answer() {
    let files = files();
    let index = files.text("index.html");
    index.has(["1 row ended without an answer: late 1."]);
    assert!(!index.contains("Nothing failed"), "{index}");
    index.has([
        "A cell without an answer counts with a gap of 100 % and its time limit; no gap counts for more.",
        "Left out: easy, foreign (did not run on all of these); picky (do not support one of these, or were interrupted).",
    ]);
    // (0.01^7 * 1.01)^(1/8) - 0.01, 6 and 64 of 96 bytes; 164 of 96 count as 96.
    insta::assert_snapshot!(files.text("tables/families.csv"), @r"
    family,best,variants,mean_gap,mean_time_ns,no_answer,summary
    late,late,1,0.007804926,1373745.1,1,
    close,close,1,0.0625,1000,0,
    far,far,1,0.666666667,1000,0,
    wild,wild,1,1,1000,0,
    ");
}

#[test]
fn a_planner_on_few_workloads_does_not_lead() {
    let files = files();
    let page = files.text("gaps.html");
    let order = [">late<", ">close<", ">far<", ">easy (2 of 8)<"];
    assert_eq!(places(&page, &order), order);
    page.has(["the 8 of 8 workloads that all planners on at least half of them ran on"]);
    let svg = files.text("plots/gap-by-planner.svg");
    assert_eq!(places(&svg, &order), order);
}
