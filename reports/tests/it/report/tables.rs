//! Tables: what counts in which row.

use planlab_dsa::{Evidence, Stop};
use planlab_reports::{Report, ReportOptions};
use planlab_results::Status;

use super::{empty_store, failure, report_of, written};
use crate::files::{Files, Parts};

#[test]
fn every_table_has_its_files_and_the_workloads_are_in_natural_order() {
    let (_dir, files) = written();
    let names = "leaderboard pairs failures gaps gaps-by-group statuses machines workloads cells leaderboard-test \
                 leaderboard-test-chainer leaderboard-test-synthetic scale scale-fits claims";
    for name in names.split(' ') {
        for end in ["csv", "tex"] {
            assert!(files.contains_key(&format!("tables/{name}.{end}")), "{name}.{end}");
        }
    }
    insta::assert_snapshot!(files.text("tables/workloads.csv"), @r#"
    workload,buffers,load_bytes,height_bytes,gap,planner,cells
    chainer/alexnet/train/b8,3,96,96,0,best-fit,3
    chainer/alexnet/train/b32,3,96,96,0,best-fit,2
    synthetic/</script><img src=x onerror=alert(1)>/n3,3,96,96,0,best-fit,3
    "#);
}

#[test]
fn the_leaderboard_counts_answers_and_failures() {
    let (_dir, files) = written();
    insta::assert_snapshot!(files.text("tables/leaderboard.csv"), @r#"
    planner,workloads,cells,answers,optimal,proved,mean_gap,gap_count,no_answer,failures,mean_time_ns,time_count
    best-fit,3,3,3,3,3,0,3,0,0,2000,3
    bump,3,3,3,0,0,0.666666667,3,0,0,500,3
    crasher,1,1,0,0,0,1,1,1,1,1000000000,1
    slow,1,1,0,0,0,1,1,1,0,1000000000,1
    "#);
    insta::assert_snapshot!(files.text("tables/failures.csv"), @r#"
    planner,status,rows,workload,reason,exit,stderr
    crasher,crashed,1,synthetic/</script><img src=x onerror=alert(1)>/n3,signal <SEGV>,signal 11,last <line>
    "#);
    files.has("index.html", ["1 kind of failure needs an explanation."]);
    let run = files.text("run.html");
    let (failures, ran) = (run.find("Unexplained failures"), run.find("What ran"));
    assert!(failures.is_some() && failures < ran, "failures come first");
    files.has("memory.html", ["alexnet b8: framework's pool: 128 B"]);
}

#[test]
fn leaderboards_by_suite_name_the_compared_cells() {
    let (_dir, files) = written();
    insta::assert_snapshot!(files.text("tables/leaderboard-test.csv"), @r#"
    planner,common_gap,common_time_ns,workloads,cells,answers,optimal,mean_gap,mean_time_ns,no_answer,failures
    best-fit,0,2000,3,3,3,3,0,2000,0,0
    bump,0.666666667,500,3,3,3,0,0.666666667,500,0,0
    crasher,,,1,1,0,0,1,1000000000,1,1
    slow,,,1,1,0,0,1,1000000000,1,0
    "#);
    let page = files.text("boards.html");
    page.has([
        "4 planners on 3 workloads of 3 buffers (chainer/alexnet 2, ",
        "Compared on 3 of these; left out: 2 variants, not run on all of those.",
        "All 4 variants",
        "href=\"planners/best-fit.html\"",
    ]);
    insta::assert_snapshot!(files.text("tables/families-test.csv"), @r#"
    family,best,variants,mean_gap,mean_time_ns,no_answer,summary
    best-fit,best-fit,1,0,2000,0,
    bump,bump,1,0.666666667,500,0,
    "#);
    assert!(
        page.contains("Each cell had 1.00 s and no memory limit; seeds 7; 1 host; 8 of 8 cells ran alone.")
    );
}

#[test]
fn growth_has_its_page_with_exponents_and_time_outs() {
    let cells = [(100, 1_000), (1000, 10_000), (10_000, 100_000), (100_000, 0), (20_000, 1_000_000_000)];
    let rows = cells.map(|(buffers, time)| {
        let mut row = failure(&format!("synthetic/chain/n{buffers}/s0"), "p", Status::Feasible, "");
        (row.buffers, row.height, row.samples_ns) = (buffers, Some(120), vec![time]);
        if time == 0 {
            (row.status, row.height, row.samples_ns) = (Status::Timeout, None, Vec::new());
        }
        if time == 1_000_000_000 {
            row.stop = Some(Stop::Deadline);
        }
        row
    });
    let files = report_of(&rows);
    files.has("tables/scale-fits.csv", ["synthetic/chain,p,1,1,1,3,1,1,,,,"]);
    files.has("scale.html", ["timeout after 1.00 s", "n^1.00", "feasible, cut after 1.00 s"]);
    assert!(files.contains_key("plots/planning-time-against-size-synthetic.chain.svg"), "{:?}", files.keys());
}

#[test]
fn claims_stand_beside_the_figures_of_the_records() {
    let mut row = failure("chainer/alexnet/infer/b1", "mip/highs", Status::Optimal, "");
    (row.height, row.load, row.bound) = (Some(10_169_344), 10_169_344, 10_169_344);
    let files = report_of(&[row]);
    let claims = files.text("tables/claims.csv");
    let line = claims.lines().find(|line| line.starts_with("cplex-alexnet,")).expect("the claim");
    line.has(["10169344 bytes (9.70 MiB),within,1,1,"]);
    claims.has(["not measured here"]);
    assert!(files.text("claims.html").contains("workloads/chainer.alexnet.infer.b1.html"));
}

#[test]
fn limits_split_a_planner_only_where_one_was_reached() {
    let mut rows = Vec::new();
    for (planner, stop) in [("quick", Stop::Finished), ("exact", Stop::Deadline)] {
        for seconds in [1, 60] {
            let mut row = failure("a/b/c", planner, Status::Feasible, "");
            row.cell = format!("{planner} {seconds}");
            row.wall_limit_ns = Some(seconds * 1_000_000_000);
            (row.height, row.stop) = (Some(100 + seconds), Some(stop));
            rows.push(row);
        }
    }
    let board = report_of(&rows).text("tables/leaderboard.csv");
    let names: Vec<&str> = board.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert_eq!(names, ["exact @ 1 s", "quick", "exact @ 60 s"]);
}

#[test]
fn a_bound_that_a_plan_refutes_does_not_count_and_is_reported() {
    let (dir, mut store) = empty_store();
    for (planner, height, bound) in [("honest", 110, 100), ("liar", 120, 115), ("prover", 130, 105)] {
        let mut row = failure("a/b/c", planner, Status::Feasible, "");
        (row.height, row.bound, row.bound_evidence) = (Some(height), bound, Evidence::Mip);
        store.append(&row).expect("appends");
    }
    let report = Report::from_store(dir.path().join("store"), ReportOptions::default()).expect("reads");
    assert_eq!(report.audit_findings().iter().filter(|finding| finding.is_refutation()).count(), 1);
    let files = Files::of_report(dir.path(), ReportOptions::default());
    let gaps = files.text("tables/gaps.csv");
    assert_eq!(gaps.lines().nth(1), Some("a/b/c,0.047619048,0.142857143,0.238095238"), "all against 105");
    assert!(files.text("run.html").contains("liar claims that no plan is lower than 115 bytes (mip)"));
}

#[test]
fn a_plan_that_a_failed_run_left_behind_does_not_count_in_the_means() {
    let ends = [
        ("a/b/1", Status::Feasible, 120),
        ("a/b/2", Status::OutOfMemory, 96),
        ("a/b/3", Status::Timeout, 960),
    ];
    let rows = ends.map(|(workload, status, height)| {
        failure(workload, "p", status, "").with(|row| row.height = Some(height))
    });
    let files = report_of(&rows);
    assert_eq!(
        files.text("tables/leaderboard.csv").lines().nth(1),
        Some("p,3,3,1,0,0,0.632498372,3,2,1,1000000000,2"),
        "one answer of three; the others count with a gap of 100 %"
    );
    assert!(files.text("tables/gaps.csv").contains("a/b/2,out-of-memory"));
}

#[test]
fn cells_with_a_capacity_are_another_question() {
    let cells =
        [("free", 120, None), ("asked", 100, Some(100_000)), ("both", 130, None), ("both", 110, Some(110))];
    let rows = cells.map(|(planner, height, capacity)| {
        let mut row = failure("a/b/c", planner, Status::Feasible, "");
        row.cell = format!("{planner} {capacity:?}");
        row.parameters = r#"{"threads":2}"#.to_owned();
        (row.height, row.target_bytes, row.wall_limit_ns) = (Some(height), capacity, Some(2_500_000_000));
        row
    });
    let files = report_of(&rows);
    let board = files.text("tables/leaderboard.csv");
    assert_eq!(board.lines().count(), 3, "two planners were asked for their best: {board}");
    assert!(!board.contains("asked"), "{board}");
    let workloads = files.text("tables/workloads.csv");
    let best = workloads.lines().nth(1).unwrap_or_default();
    assert!(best.starts_with("a/b/c,3,96,120,0.25,") && best.contains("free"), "{workloads}");
    let cells = files.text("tables/cells.csv");
    assert!(
        cells.starts_with("workload,planner,map,seed,repetition,capacity_bytes,time_limit_s,threads,"),
        "{cells}"
    );
    cells.has([",7,0,100000,2.5,2,feasible,", ",7,0,,2.5,2,feasible,", "capacity 100000 bytes"]);
}
