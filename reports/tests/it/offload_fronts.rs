//! The page on time against memory: ours beside the rivals in several capacities, and what the search buys.

use planlab_results::Status;
use planlab_results::schedule::{Improvement, ScheduleRow};

use crate::files::Parts;
use crate::offload::{report, row, without};

const GB: u64 = 1_000_000_000;
const BASE: u64 = 300_000_000;
/// What in-core training takes above the base.
const ROOM: u64 = 40 * GB;

/// A run in this percentage of the memory of in-core training, in which an iteration takes 2048 ms.
fn in_share(row: ScheduleRow, percent: u64) -> ScheduleRow {
    let capacity = BASE + ROOM / 100 * percent;
    row.with(|row| {
        row.cell = format!("{} in {percent}", row.cell);
        row.problem = format!("{capacity:064x}");
        row.capacity = capacity;
        row.base = BASE;
        row.in_core_bytes = Some(BASE + ROOM);
        row.bound_scope = "any".to_owned();
        row.live_peak = row.live_peak.map(|_| capacity);
        row.best_fit_height = row.best_fit_height.map(|_| capacity);
        row.height = row.height.map(|_| capacity);
        row.height_bound = row.height_bound.map(|_| capacity);
    })
}

fn scheduled(scheduler: &str, percent: u64, iteration_ms: u64) -> ScheduleRow {
    in_share(row(scheduler, 512, [66, 8, 31], iteration_ms), percent)
}

fn unscheduled(scheduler: &str, percent: u64) -> ScheduleRow {
    in_share(without(scheduler, 512, Status::Unknown, "out of memory"), percent)
}

/// In 90 % ours is fastest, in 50 % rotor is, in 30 % nobody has a schedule.
fn rows() -> Vec<ScheduleRow> {
    vec![
        scheduled("joint", 90, 2048),
        scheduled("rotor", 90, 2100),
        scheduled("pofo", 90, 2080),
        scheduled("joint", 50, 2300),
        scheduled("rotor", 50, 2200),
        unscheduled("pofo", 50),
        unscheduled("joint", 30),
        unscheduled("rotor", 30),
    ]
}

const CHART: &str = "plots/time-against-memory-resnet50-batch-512-on-x86-pcie3-12-gb.s.svg";

#[test]
fn a_front_has_ours_the_best_rival_and_the_bound_of_each_capacity() {
    let files = report(&rows());
    files.has("index.html", ["<a href=\"fronts.html\">What does less memory cost?</a>"]);
    insta::assert_snapshot!(files.text("tables/offload-fronts.csv"), @r"
    net,machine,copies_gb,capacity_gb,batch,in_core_share,in_core_gb,ours_ns,rival_ns,rival,times,bound_ns,gap
    resnet50,x86-pcie3,12,12.3,512,0.3,40.3,,,,,2048000000,
    resnet50,x86-pcie3,12,20.3,512,0.5,40.3,2300000000,2200000000,rotor,0.956521739,2048000000,0.123046875
    resnet50,x86-pcie3,12,36.3,512,0.9,40.3,2048000000,2080000000,pofo,1.015625,2048000000,0
    ");
    insta::assert_snapshot!(files.text("tables/offload-fronts-machines.csv"), @r"
    machine,cells,scheduled,fastest,median_gain,median_gap
    x86-pcie3 (12 GB/s),3,2,1,-0.01392663,0.061523438
    ");
    for name in ["offload-fronts", "offload-fronts-machines"] {
        assert!(files.contains_key(&format!("tables/{name}.tex")), "{name}");
    }
    files.has("fronts.html", [
        "joint is at least as fast as every rival in 1 of 2 (50.00 %) cells. The median gain over the best rival is \
         -1.39 %. The median gap to the proven bound is 6.15 %. Cells without any schedule: 1.",
        "The fastest rival: none in 12.3 GB, rotor in 20.3 GB, pofo in 36.3 GB.",
    ]);
}

#[test]
fn a_front_is_drawn_by_share_and_bytes_with_ours_thick() {
    let files = report(&rows());
    let chart = files.text(CHART);
    chart.has([
        ">joint (ours)<",
        ">rotor<",
        ">proven lower bound<",
        ">50 % (20.3 GB)<",
        "joint: 2.30 s in 50 % (20.3 GB), 1.123 times in-core",
    ]);
    assert_eq!(chart.matches("stroke-width=\"4\"").count(), 1, "{chart}");
}

#[test]
fn slow_rivals_are_left_out_of_the_chart_and_named() {
    let mut all = rows();
    all.extend((0..6).map(|number| scheduled(&format!("slow/{number}"), 50, 3000 + number)));
    let files = report(&all);
    let chart = files.text(CHART);
    assert!(chart.contains(">slow/3<") && !chart.contains(">slow/4<"), "{chart}");
    files.has("fronts.html", ["pofo in 36.3 GB. Not drawn: slow/4, slow/5."]);
}

#[test]
fn a_rival_counts_only_if_its_offsets_fit() {
    let mut all = rows();
    let misfit = scheduled("swap-all", 90, 2050);
    all.push(misfit.with(|row| row.height = Some(99 * GB)));
    let files = report(&all);
    files.has("tables/offload-fronts.csv", [",0.9,40.3,2048000000,2080000000,pofo,1.015625,"]);
    files.has("fronts.html", ["in 1 of 2 (50.00 %) cells."]);
}

#[test]
fn our_other_searches_are_no_rivals() {
    let mut all = rows();
    all.push(scheduled("local-search", 50, 2050));
    report(&all).has("tables/offload-fronts.csv", [",2300000000,2200000000,rotor,"]);
}

#[test]
fn one_capacity_enough_memory_or_rivals_alone_make_no_front() {
    let one = [scheduled("joint", 90, 2048), scheduled("rotor", 90, 2100)];
    let enough = [scheduled("joint", 90, 2048), scheduled("joint", 100, 2048), scheduled("joint", 120, 2048)];
    let fits = [scheduled("joint", 90, 2048), scheduled("joint", 50, 2100), scheduled("in-core", 90, 2048)];
    let rivals = [scheduled("rotor", 90, 2100), scheduled("rotor", 50, 2200)];
    for rows in [&one[..], &enough, &fits, &rivals] {
        let files = report(rows);
        assert!(!files.contains_key("fronts.html") && !files.contains_key("tables/offload-fronts.csv"));
        assert!(files.contains_key("offload.html"));
    }
}

#[test]
fn a_front_of_older_rows_has_bytes_alone() {
    let older = |row: ScheduleRow| row.with(|row| row.in_core_bytes = None);
    let files = report(&rows().into_iter().map(older).collect::<Vec<_>>());
    let table = files.text("tables/offload-fronts.csv");
    assert!(table.starts_with("net,machine,copies_gb,capacity_gb,batch,ours_ns,"), "{table}");
    files.has(CHART, [">20.3 GB<"]);
}

#[test]
fn links_make_fronts_of_their_own() {
    let slow = |row: ScheduleRow| {
        row.with(|row| {
            row.cell = format!("{} slow", row.cell);
            row.problem = row.problem.replacen('0', "1", 1);
            row.copy_out = 1e6;
            row.copy_in = 1e6;
        })
    };
    let all: Vec<ScheduleRow> = rows().into_iter().chain(rows().into_iter().map(slow)).collect();
    let files = report(&all);
    assert!(files.contains_key(CHART) && files.contains_key(&CHART.replace("12-gb", "0.001-gb")));
    files.has(
        "tables/offload-fronts-machines.csv",
        ["x86-pcie3 (0.001 GB/s),3,2,1,", "x86-pcie3 (12 GB/s),3,2,1,"],
    );
}

const FRONTS: &str = "tables/offload-fronts.csv";

#[test]
fn bound_of_a_failed_run_is_not_proven() {
    let lies = [Status::BoundRefuted, Status::BadOutput, Status::InvalidPlan].map(|status| {
        scheduled(status.name(), 50, 2400).with(|row| (row.status, row.bound_ns) = (status, 2_250_000_000))
    });
    let all: Vec<ScheduleRow> = rows().into_iter().chain(lies).collect();
    report(&all).has(FRONTS, [",2300000000,2200000000,rotor,0.956521739,2048000000,0.123046875\n"]);
}

#[test]
fn bound_that_a_schedule_of_another_refutes_is_shown() {
    let mut all = rows();
    all.push(scheduled("exact", 50, 2400).with(|row| row.bound_ns = 2_400_000_000));
    let files = report(&all);
    files.has(FRONTS, [",2300000000,2200000000,rotor,0.956521739,2400000000,-0.041666667\n"]);
    let claim =
        "exact claims that no iteration takes less than 2400000000 ns, but one of rotor takes 2200000000 ns";
    for page in ["fronts.html", "offload.html"] {
        let text = files.text(page);
        let mut alerts = text.split("<p class=\"alert\">").skip(1);
        assert!(
            alerts.any(|alert| alert.split("</p>").next().is_some_and(|alert| alert.contains(claim))),
            "{page}"
        );
    }
    assert!(!report(&rows()).text("fronts.html").contains("<p class=\"alert\">"));
}

/// The same run on another machine with the key of the first.
fn on_other_rates(row: ScheduleRow) -> ScheduleRow {
    row.with(|row| {
        row.cell = format!("{} on another", row.cell);
        row.problem = row.problem.replacen('0', "2", 1);
        row.rates_digest = Some("cd".repeat(32));
    })
}

#[test]
fn capacities_of_different_machines_make_no_front() {
    let first = || [scheduled("joint", 90, 2048), scheduled("rotor", 90, 2100)];
    let second = || [scheduled("joint", 50, 2300), scheduled("rotor", 50, 2200)];
    let with_all = |second: [ScheduleRow; 2]| report(&[first(), second].concat());
    assert!(with_all(second()).contains_key(FRONTS));
    assert!(!with_all(second().map(on_other_rates)).contains_key(FRONTS), "other rates");
    let planned = |row: ScheduleRow| row.with(|row| row.planner = "best-fit".to_owned());
    assert!(!with_all(second().map(planned)).contains_key(FRONTS), "another planner");
    let given = |row: ScheduleRow| row.with(|row| row.times = Some("given".to_owned()));
    assert!(!with_all(second().map(given)).contains_key(FRONTS), "other times");
    let faster = |row: ScheduleRow| row.with(|row| row.compute_ns = 2_000_000_000);
    assert!(!with_all(second().map(faster)).contains_key(FRONTS), "another time in-core");
}

#[test]
fn front_stays_whole_beside_other_machines_in_some_capacities() {
    let alone = report(&rows());
    let mut all = rows();
    all.push(on_other_rates(scheduled("joint", 90, 2048)));
    assert_eq!(report(&all).text(FRONTS), alone.text(FRONTS));
    let older = |row: ScheduleRow| {
        let is_older = row.capacity == BASE + ROOM / 2;
        if is_older { row.with(|row| (row.rates_digest, row.times) = (None, None)) } else { row }
    };
    let all: Vec<ScheduleRow> = rows().into_iter().map(older).collect();
    assert_eq!(report(&all).text(FRONTS), alone.text(FRONTS));
}

#[test]
fn fronts_of_machines_with_one_name_stay_separate() {
    let all: Vec<ScheduleRow> = rows().into_iter().chain(rows().into_iter().map(on_other_rates)).collect();
    let files = report(&all);
    files.has(
        "tables/offload-fronts-machines.csv",
        ["machine abababab)\",3,2,1,", "machine cdcdcdcd)\",3,2,1,"],
    );
    assert_eq!(files.text(FRONTS).lines().count(), 1 + 6);
    let faster = |row: ScheduleRow| row.with(|row| row.compute_ns = 2_000_000_000);
    let others = [scheduled("joint", 70, 2200), scheduled("joint", 40, 2400)].map(faster);
    let all: Vec<ScheduleRow> = rows().into_iter().chain(others).collect();
    let files = report(&all);
    assert!(files.contains_key(CHART) && files.contains_key(&CHART.replace(".svg", "-problem-2.svg")));
}

/// A run whose search finds schedules with these times in ms after these times in ms.
fn searched(scheduler: &str, percent: u64, found: &[(u64, u64)]) -> ScheduleRow {
    let last = found.last().expect("a schedule").1;
    let improvement = |&(elapsed, iteration): &(u64, u64)| Improvement {
        elapsed_ns: elapsed * 1_000_000,
        work: elapsed,
        iteration_ns: iteration * 1_000_000,
    };
    scheduled(scheduler, percent, last).with(|row| {
        row.trajectory = found.iter().map(improvement).collect();
        row.elapsed_ns = Some(100_000_000);
    })
}

#[test]
fn the_gap_of_searches_is_shown_over_their_time() {
    let all = [
        searched("joint", 90, &[(2, 2560), (50, 2048)]),
        searched("local-search", 90, &[(1, 2304), (10, 2176)]),
        searched("joint", 50, &[(30, 3072)]),
        searched("local-search", 50, &[(1, 4096)]),
        // Another search did not run here.
        searched("joint", 30, &[(1, 9000)]),
    ];
    let files = report(&all);
    insta::assert_snapshot!(files.text("tables/offload-search.csv"), @r"
    scheduler,elapsed_ns,problems,scheduled,median_gap
    joint,1000000,2,0,
    joint,3000000,2,1,
    joint,10000000,2,1,
    joint,30000000,2,2,0.375
    joint,100000000,2,2,0.25
    local-search,1000000,2,2,0.5625
    local-search,3000000,2,2,0.5625
    local-search,10000000,2,2,0.53125
    local-search,30000000,2,2,0.53125
    local-search,100000000,2,2,0.53125
    ");
    files.has("offload.html", ["What a second of search buys"]);
    files.has("plots/what-a-second-of-search-buys.svg", ["joint: 30.0 ms: 37.50 %, 2 of 2 with a schedule"]);
    assert!(!report(&rows()[1..3]).text("offload.html").contains("What a second"), "no search ran");
}

#[test]
fn search_below_a_refuted_bound_has_a_gap_below_0() {
    let all = [
        searched("joint", 90, &[(1, 2048)]),
        searched("local-search", 90, &[(1, 2304)]).with(|row| row.bound_ns = 2_304_000_000),
    ];
    let files = report(&all);
    files.has(
        "tables/offload-search.csv",
        ["joint,1000000,1,1,-0.111111111\n", "local-search,1000000,1,1,0\n"],
    );
    files.has("plots/what-a-second-of-search-buys.svg", ["joint: 1.00 ms: -11.11 %, 1 of 1 with a schedule"]);
}
