//! Which rows count, and in which figure.

use planlab_dsa::performance::{End, Performance};

use super::{ALEXNET, host, memory, options, report, report_with, row, stream, with};
use crate::files::Parts;

#[test]
fn iterations_have_curves_and_the_cost_of_plans() {
    let pool = stream("cupy2rc1-pool", &[1 << 30, 3 << 29, 2 << 30], None);
    let planned = stream("profile-guided", &[1 << 30, 1 << 29, 1 << 29], Some(2));
    let files = report(&[pool, planned]);
    let csv = files.text("tables/iterations.csv");
    let line = csv.lines().find(|line| line.contains("profile-guided")).expect("its line");
    line.has(["1073741824,1073741824,536870912", ",2,600,"]);
    let page = files.text("iterations.html");
    page.has([
        "Footprint over iterations: chainer/seq2seq/train/b64, simulated",
        "2.58 GiB more are kept",
        "x/iteration0, x/iteration1",
    ]);
    assert!(!files.contains_key("memory.html"), "a sequence is no net's propagation");
    // Kept bytes are in both: 1 - (2774190592 + 2^29) / (2774190592 + 2^31).
    line.has(["3311061504,at most,0.327248"]);
    page.has(["up to 49.5 %", "below the published figure"]);
}

#[test]
fn sequences_under_other_conditions_have_figures_of_their_own() {
    let pool = stream("cupy2rc1-pool", &[1 << 30, 2 << 30], None);
    let limited = pool.clone().with(|row| (row.cell, row.capacity) = ("limited".to_owned(), Some(4 << 30)));
    let sequence = ["x/iteration1", "x/iteration0"].map(str::to_owned).to_vec();
    let other = pool.clone().with(|row| (row.cell, row.sequence) = ("other".to_owned(), sequence));
    let planned = stream("profile-guided", &[1 << 30, 1 << 29], Some(2));
    let files = report(&[pool, limited, other, planned]);
    let page = files.text("iterations.html");
    let title = "Footprint over iterations: chainer/seq2seq/train/b64, simulated";
    for suffix in [", capacity 4.00 GiB", ", sequence 2"] {
        assert!(page.contains(&format!("{title}{suffix}")), "{suffix}: {page}");
    }
    let samples = files.text("tables/iterations-samples.csv");
    assert_eq!(samples.lines().filter(|line| line.contains("profile-guided")).count(), 2, "{samples}");
}

#[test]
fn the_summary_tells_of_replays_and_the_latest_build_counts() {
    let old = row(ALEXNET, "network-wise", &[1; 5]);
    let new = row(ALEXNET, "network-wise", &[754_562_048; 5])
        .with(|row| (row.cell, row.started_ns) = ("newer".to_owned(), 2));
    let mut little = options();
    little.command = "planlab report".to_owned();
    let files = report_with(&[old, new], little);
    let page = files.text("run.html");
    page.has(["1 rows of 1 online allocators"]);
    assert!(page.contains("and 1 replays (digest "), "the footer names the rows");
    assert!(files.text("tables/memory-by-net.csv").contains("1503106048"));
}

#[test]
fn a_part_or_a_shorter_play_replaces_no_figure() {
    let part = row(ALEXNET, "network-wise", &[7; 5]).with(|row| {
        row.cell = "part".to_owned();
        row.suite = String::new();
        row.until = Some(3);
        row.requested_peak = 7;
        row.started_ns = 9;
    });
    let short = part.clone().with(|row| (row.cell, row.until) = ("short".to_owned(), None));
    let short = with(short, |of| of.samples.truncate(1));
    let files = report(&[memory(), vec![part, short]].concat());
    assert!(files.text("tables/memory-by-net.csv").contains("1503106048"));
}

#[test]
fn the_same_rows_in_any_order_give_the_same_pages() {
    let mut rows = [memory(), vec![host("plan", 1, 2), host("plan", 4, 2)]].concat();
    let a = report(&rows);
    rows.reverse();
    let b = report(&rows);
    for name in ["memory.html", "time.html", "requests.html", "threads.html", "index.html"] {
        assert_eq!(a.text(name), b.text(name), "{name}");
    }
}

#[test]
fn all_processes_of_a_contender_count() {
    let process = |repetition: u32, ns: u64| host("glibc", 4, ns).with(|row| row.repetition = repetition);
    let died = |of: &mut Performance| {
        (of.status, of.reason) = (End::Failed, "signal 9".to_owned());
        (of.samples, of.alloc, of.free) = (Vec::new(), None, None);
    };
    let crashed = with(process(3, 0), died);
    let greater = with(process(1, 40), |of| (of.reserved_peak, of.lock_wait_ns) = (5 << 20, Some(0)));
    let files = report(&[process(0, 10), greater, process(2, 30), crashed]);
    let failures = files.text("tables/failures.csv");
    let line = failures.lines().find(|line| line.contains("glibc on host, pages")).expect("its line");
    line.has(["failed,1,", "signal 9"]);
    let threads = files.text("tables/threads.csv");
    let line = threads.lines().find(|line| line.contains("glibc")).expect("its line");
    // The median of 20, 60 and 80 ns for a request and its free, and the greatest memory.
    line.has([",60,", "5242880"]);
}

#[test]
fn what_was_not_served_is_shown_as_such() {
    let failed = with(row(ALEXNET, "tlsf", &[]), |of| {
        (of.status, of.reason) = (End::Failed, "signal 11".to_owned());
    });
    let limited = with(row(ALEXNET, "cupy4-pool", &[1 << 19]), |of| of.status = End::OutOfMemory);
    let limited = limited.with(|row| (row.capacity, row.cell) = (Some(1 << 20), "limited".to_owned()));
    let files = report(&[failed, limited]);
    assert!(files.text("tables/failures.csv").contains("tlsf on simulated,failed,1"));
    files.has("tables/memory-by-capacity.csv", ["cupy4-pool,simulated,1048576,out-of-memory"]);
}
