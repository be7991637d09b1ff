//! The page on schedules: what fits, at which price, and whether the offsets fit too.

use planlab_reports::ReportOptions;
use planlab_results::schedule::{Disturbance, MemoryStep, ScheduleRow, Timeline};
use planlab_results::{Status, Store};

use crate::files::{Files, Parts};
use crate::fixtures::{self, span};

const GB: u64 = 1_000_000_000;

/// A scheduler's run at a batch: kept, swapped, recomputed, and the time of an iteration in ms.
pub(crate) fn row(
    scheduler: &str,
    batch: u64,
    [kept, swapped, recomputed]: [u64; 3],
    iteration_ms: u64,
) -> ScheduleRow {
    let iteration_ns = iteration_ms * 1_000_000;
    fixtures::schedule(&format!("{scheduler} {batch}"), scheduler).with(|row| {
        row.workload = format!("model/resnet50/train/b{batch}").as_str().into();
        row.problem = format!("{batch:064x}");
        row.batch = batch;
        row.rates_digest = Some("ab".repeat(32));
        row.copy_in = 12e9;
        row.compute_ns = batch * 4_000_000;
        row.wall_limit_ns = None;
        row.work_limit = None;
        row.reason = String::new();
        row.iteration_ns = Some(iteration_ns);
        row.bound_ns = batch * 4_000_000;
        (row.kept, row.swapped, row.recomputed) = (Some(kept), Some(swapped), Some(recomputed));
        row.copied_out = Some(3 * GB);
        (row.live_peak, row.best_fit_height) = (Some(14 * GB), Some(14 * GB));
        (row.height, row.height_bound) = (Some(14 * GB), Some(14 * GB));
        row.disturbed = vec![Disturbance {
            percent: 20,
            draws: 50,
            median_ns: iteration_ns * 11 / 10,
            worst_ns: iteration_ns * 13 / 10,
            compute_ns: batch * 4_040_000,
        }];
        row.elapsed_ns = Some(5_000_000);
        row.work = 41;
        row.started_ns = batch;
    })
}

/// A run without a schedule.
pub(crate) fn without(scheduler: &str, batch: u64, status: Status, reason: &str) -> ScheduleRow {
    row(scheduler, batch, [0; 3], 1).with(|row| {
        row.status = status;
        row.reason = reason.to_owned();
        (row.iteration_ns, row.live_peak, row.best_fit_height) = (None, None, None);
        (row.kept, row.swapped, row.recomputed) = (None, None, None);
        (row.height, row.height_bound) = (None, None);
        row.disturbed = Vec::new();
    })
}

fn timeline() -> Timeline {
    Timeline {
        spans: vec![
            span("compute", "forward", 0, 1_000_000_000),
            span("out", "copy-out", 1_000_000_000, 1_500_000_000),
            span("compute", "recompute", 1_000_000_000, 2_100_000_000),
        ],
        memory: vec![MemoryStep { at_ns: 0, bytes: 300_000_000 }, MemoryStep { at_ns: 9, bytes: 14 * GB }],
        capacity: 14_950_000_000,
        iteration_ns: 2_100_000_000,
    }
}

/// In-core up to 128; `PoocH` up to 512, the discarding one with offsets that do not fit.
fn rows() -> Vec<ScheduleRow> {
    let schedule = "d".repeat(64);
    let retain = row("pooch/retain", 512, [66, 8, 31], 2_500).with(|row| row.schedule = Some(schedule));
    let discard = row("pooch/discard", 512, [66, 12, 27], 2_100).with(|row| {
        row.best_fit_height = Some(18 * GB);
        row.height = Some(16_243_000_000);
        row.schedule = Some("e".repeat(64));
    });
    let online = row("swap-all", 512, [0, 105, 0], 6_000).with(|row| row.best_fit_height = Some(16 * GB));
    vec![
        row("in-core", 128, [105, 0, 0], 512),
        without("in-core", 512, Status::Unknown, "out of memory: 41 of 14 bytes"),
        row("pooch/retain", 128, [105, 0, 0], 512),
        retain,
        discard,
        online,
    ]
}

fn store(rows: &[ScheduleRow], timelines: &[(String, Timeline)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut store = Store::open(dir.path().join("store")).expect("opens");
    for row in rows {
        store.append_schedule(row).expect("appends");
    }
    for (schedule, timeline) in timelines {
        store.put_timeline(schedule, timeline).expect("kept");
    }
    dir
}

fn report_with(rows: &[ScheduleRow], timelines: &[(String, Timeline)]) -> Files {
    Files::of_report(store(rows, timelines).path(), ReportOptions::default())
}

pub(crate) fn report(rows: &[ScheduleRow]) -> Files {
    report_with(rows, &[])
}

#[test]
fn first_screen_reports_what_fits_and_its_slowdown() {
    let files = report(&rows());
    files.has("offload.html", [
        "6 rows of training by 4 schedulers: 1 net (resnet50) on 1 machine (x86-pcie3), in 14.95 GB. 5 of 6 runs have a \
         schedule.",
        "No scheduler crashed",
        "resnet50 on x86-pcie3 (12 GB/s, 14.95 GB)</strong>: Everything stays on the device up to batch 128. The largest \
         batch that fits is 512, the largest that was asked for: <strong>pooch/retain</strong> at 205 images/s, 18.08 % \
         slower than if all of it fitted. By its bytes in use pooch/discard would fit, at 244 images/s, but its offsets need \
         16.243 GB. At the one batch that does not fit in-core, pooch/retain is fastest.",
        "By their bytes, 5 of 5 (100 %) schedules fit at every moment; with the offsets that an online best fit gives them \
         as they come, 2 of 5 (40.00 %) do not, and need up to 20.40 % more; with the best offsets found, 1 of 5 (20.00 %) \
         do not (as proved for 0; for the others no offsets that fit were found).",
    ]);
    files.has("index.html", ["<a href=\"offload.html\">What if it does not fit?</a>"]);
    files.has("run.html", ["6 rows of training by 4 schedulers"]);
}

#[test]
fn of_equals_the_one_that_does_nothing_is_named() {
    let all = ["checkpoints/chen", "in-core"].map(|scheduler| row(scheduler, 128, [105, 0, 0], 512));
    let said = "<strong>in-core</strong> at 250 images/s, as fast as if all of it fitted.";
    report(&all).has("offload.html", [said, "with the best offsets found, all fit."]);
}

#[test]
fn tables_have_the_figures_of_the_rows() {
    let files = report(&rows());
    insta::assert_snapshot!(files.text("tables/offload-speed.csv"), @r"
    net,machine,copies_gb,capacity_gb,batch,scheduler,status,images_per_second,at_most,lost,iteration_ns,fits,reason
    resnet50,x86-pcie3,12,14.95,128,in-core,feasible,250,250,0,512000000,yes,
    resnet50,x86-pcie3,12,14.95,128,pooch/retain,feasible,250,250,0,512000000,yes,
    resnet50,x86-pcie3,12,14.95,512,in-core,unknown,,250,,,,out of memory: 41 of 14 bytes
    resnet50,x86-pcie3,12,14.95,512,pooch/discard,feasible,243.80952381,250,0.024761905,2100000000,no,
    resnet50,x86-pcie3,12,14.95,512,pooch/retain,feasible,204.8,250,0.1808,2500000000,yes,
    resnet50,x86-pcie3,12,14.95,512,swap-all,feasible,85.333333333,250,0.658666667,6000000000,yes,
    ");
    insta::assert_snapshot!(files.text("tables/offload-memory.csv"), @r"
    net,machine,copies_gb,capacity_gb,batch,scheduler,live_peak_gb,best_fit_gb,height_gb,bound_gb,evidence,over,verdict
    resnet50,x86-pcie3,12,14.95,128,in-core,14,14,14,14,load,,yes
    resnet50,x86-pcie3,12,14.95,128,pooch/retain,14,14,14,14,load,,yes
    resnet50,x86-pcie3,12,14.95,512,pooch/discard,14,18,16.243,14,load,0.086488294,bytes alone
    resnet50,x86-pcie3,12,14.95,512,pooch/retain,14,14,14,14,load,,yes
    resnet50,x86-pcie3,12,14.95,512,swap-all,14,16,14,14,load,,planned ahead
    ");
    let misfits = files.text("tables/offload-misfits.csv");
    assert_eq!(misfits.lines().count(), 2, "{misfits}");
    misfits.has([",pooch/discard,14,18,16.243,14,load,0.086488294,bytes alone\n"]);
    files.has("tables/offload-robustness.csv", [",512,pooch/retain,50,0.1,0.3,0.01\n"]);
    let gap = ",pooch/retain,2,1,0.110351562,0.220703125,classes,lp,5000000,5000000,41\n";
    files.has("tables/offload-gaps.csv", [gap]);
    files.has("tables/offload-classes.csv", [",512,pooch/discard,105,66,12,27,3,1000\n"]);
    for name in
        ["speed", "memory", "misfits", "fits", "robustness", "gaps", "bounds", "classes", "table-3", "claims"]
    {
        assert!(files.contains_key(&format!("tables/offload-{name}.tex")), "{name}");
    }
}

#[test]
fn the_paper_stands_beside_its_own_machine_alone() {
    let files = report(&rows());
    let counts = [
        ",512,PoocH,66 / 12 / 27,pooch/discard,66 / 12 / 27,none\n",
        ",512,PoocH,66 / 12 / 27,pooch/retain,66 / 8 / 31,0 / \u{2212}4 / +4\n",
    ];
    files.has("tables/offload-table-3.csv", counts);
    let claims = [
        ",17,In-core fails from batch 256,fails,in-core,512,fails,agrees\n",
        ",17,PoocH's loss of speed beyond the memory,13 to 38 %,pooch/retain,512,18.08 %,within\n",
    ];
    files.has("tables/offload-claims.csv", claims);
    files.has("offload.html", ["figure 17 (images per second by batch"]);
    let elsewhere: Vec<ScheduleRow> =
        rows().into_iter().map(|row| row.with(|row| (row.copy_out, row.copy_in) = (48e9, 48e9))).collect();
    let files = report(&elsewhere);
    assert!(!files.contains_key("tables/offload-table-3.csv"));
    assert!(!files.text("offload.html").contains("Beside the paper"));
}

#[test]
fn a_figure_marks_what_does_not_fit() {
    let files = report(&rows());
    let name = "plots/speed-by-batch-resnet50-on-x86-pcie3-12-gb.s-14.95-gb.svg";
    let tip = "pooch/discard, batch 512: 244 images/s, 2.48 % lost, 66 kept, 12 swapped";
    files.has(name, [tip, "hollow: its offsets do not fit", "if all of it fitted"]);
    files.has(
        "plots/feature-maps-resnet50-on-x86-pcie3-12-gb.s-14.95-gb.svg",
        ["swap-all, batch 512: swap 105 of 105", ">does not fit<"],
    );
}

#[test]
fn failures_are_seen_on_both_pages_and_count_nowhere_else() {
    let mut all = rows();
    let mut crash = without("checkpoints/chen", 512, Status::Crashed, "signal <SEGV>");
    (crash.signal, crash.stderr_tail) = (Some(11), "first\nlast <line>\n".to_owned());
    // A false claim does not count, although its row has a time.
    let lie = row("liar", 512, [105, 0, 0], 1)
        .with(|row| (row.status, row.reason) = (Status::OverCapacity, "more than there is".to_owned()));
    all.extend([crash, lie, without("slow", 512, Status::Timeout, "no answer in time")]);
    let files = report(&all);
    let page = files.text("offload.html");
    page.has(["3 rows failed, 1 of them with a false answer."]);
    assert!(!page.contains("<SEGV>") && !page.contains("No scheduler crashed"));
    insta::assert_snapshot!(files.text("tables/offload-failures.csv"), @r"
    workload,machine,copies_gb,capacity_gb,scheduler,status,reason,exit,stderr
    model/resnet50/train/b512,x86-pcie3,12,14.95,liar,over-capacity,more than there is,,
    model/resnet50/train/b512,x86-pcie3,12,14.95,checkpoints/chen,crashed,signal <SEGV>,signal 11,last <line>
    model/resnet50/train/b512,x86-pcie3,12,14.95,slow,timeout,no answer in time,,
    ");
    files.has("tables/failures.csv", ["checkpoints/chen on x86-pcie3,crashed,1,model/resnet50/train/b512,"]);
    assert!(page.contains("<strong>pooch/retain</strong> at 205 images/s"), "the liar is not fastest");
    assert!(!files.text("tables/offload-fits.csv").contains("liar"));
}

#[test]
fn a_bound_that_a_schedule_refutes_is_seen() {
    let mut all = rows();
    for row in all.iter_mut().filter(|row| row.batch == 512) {
        (row.bound_scope, row.bound_ns) = ("any".to_owned(), 2_200_000_000);
    }
    let files = report(&all);
    let page = files.text("offload.html");
    assert!(!page.contains("No scheduler crashed"), "{page}");
    let alerts: Vec<&str> = page.split("<p class=\"alert\">").skip(1).collect();
    assert!(
        alerts.iter().any(|alert| alert.contains("2200000000") && alert.contains("pooch/discard")),
        "{alerts:?}"
    );
}

#[test]
fn bound_on_memory_that_a_schedule_refutes_is_shown() {
    let mut all = rows();
    all[4].least_memory = Some(15 * GB);
    let files = report(&all);
    let claim = "pooch/discard claims that every schedule needs 15000000000 bytes, but one of";
    files.text("offload.html").has([claim]);
}

#[test]
fn timelines_are_drawn_where_the_store_has_them() {
    let timelines = [("d".repeat(64), timeline())];
    let files = report_with(&rows(), &timelines);
    let page = files.text("offload.html");
    assert_eq!(page.matches("<figure class=\"timeline\"").count(), 1, "that of pooch/retain alone is kept");
    assert!(page.contains("Zooms the time axis"), "the script");
    page.has([
        "forward conv&lt;/title&gt;&lt;img&gt;: 2.00 KiB, 1.00 s, from 0.00 ns to 1.00 s",
        "3 events in 2.10 s (205 images/s), 18.08 % slower than if all of it fitted.",
    ]);
    let files = report(&rows());
    let page = files.text("offload.html");
    assert!(!page.contains("<figure class=\"timeline\"") && !page.contains("Zooms the time axis"));
    page.has(["The store has no timeline of 2 schedules"]);
}

#[test]
fn page_limits_drawn_events_and_counts_omitted_schedules() {
    let whole = timeline();
    let spans = vec![whole.spans[0].clone(); 23_999];
    let timelines = [("d".repeat(64), Timeline { spans, ..whole.clone() }), ("e".repeat(64), whole)];
    // swap-all is the fastest of another kind.
    let mut all = rows();
    all[5].schedule = Some("e".repeat(64));
    let files = report_with(&all, &timelines);
    let page = files.text("offload.html");
    assert_eq!(page.matches("<figure class=\"timeline\"").count(), 1);
    assert!(page.contains("1 more schedule not drawn, to keep the page small"), "{}", page.len());
}

#[test]
fn the_last_run_of_a_cell_counts_and_a_report_made_again_is_the_same() {
    let mut all = rows();
    let again = row("pooch/retain", 512, [66, 9, 30], 3_000)
        .with(|row| (row.cell, row.started_ns) = ("another seed".to_owned(), 9_999));
    all.push(again);
    let timelines = [("d".repeat(64), timeline())];
    let dir = store(&all, &timelines);
    let files = Files::of_report(dir.path(), ReportOptions::default());
    assert!(files.text("tables/offload-classes.csv").contains(",512,pooch/retain,105,66,9,30,3,1000\n"));
    files.assert_same(&Files::of_report(dir.path(), ReportOptions::default()));
    all.reverse();
    let turned = report_with(&all, &timelines);
    assert!(turned["offload.html"] == files["offload.html"], "rows in another order give the same page");
}
