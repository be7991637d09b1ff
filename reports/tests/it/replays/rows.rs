//! Which rows count, and in which figure.

use planlab_dsa::performance::{End, Performance};
use planlab_results::replay::{ReplayRow, append_rows};

use crate::report::write_report;

use super::{ALEXNET, PAGES, folder, host, memory, options, read, report, row, stream, with};

#[test]
fn iterations_have_curves_and_the_cost_of_plans() {
    let dir = folder();
    let pool = stream("cupy2rc1-pool", &[1 << 30, 3 << 29, 2 << 30], None);
    let planned = stream("profile-guided", &[1 << 30, 1 << 29, 1 << 29], Some(2));
    report(dir.path(), &[pool, planned]);
    let csv = read(dir.path(), "tables/iterations.csv");
    let line = csv.lines().find(|line| line.contains("profile-guided")).expect("its line");
    assert!(line.contains("1073741824,1073741824,536870912") && line.contains(",2,600,"), "{line}");
    let page = read(dir.path(), "iterations.html");
    assert!(page.contains("Footprint over iterations: chainer/seq2seq/train/b64, simulated"), "{page}");
    assert!(page.contains("2.58 GiB more are kept") && page.contains("x/iteration0, x/iteration1"), "{page}");
    assert!(!dir.path().join("out/memory.html").exists(), "a sequence is no net's propagation");
    // Kept bytes are in both: 1 - (2774190592 + 2^29) / (2774190592 + 2^31).
    assert!(line.contains("3311061504,at most,0.327248"), "{line}");
    assert!(page.contains("up to 49.5 %") && page.contains("below the published figure"), "{page}");
}

#[test]
fn sequences_under_other_conditions_have_figures_of_their_own() {
    let dir = folder();
    let pool = stream("cupy2rc1-pool", &[1 << 30, 2 << 30], None);
    let limited = ReplayRow { cell: "limited".to_owned(), capacity: Some(4 << 30), ..pool.clone() };
    let sequence = ["x/iteration1", "x/iteration0"].map(str::to_owned).to_vec();
    let other = ReplayRow { cell: "other".to_owned(), sequence, ..pool.clone() };
    let planned = stream("profile-guided", &[1 << 30, 1 << 29], Some(2));
    report(dir.path(), &[pool, limited, other, planned]);
    let page = read(dir.path(), "iterations.html");
    let title = "Footprint over iterations: chainer/seq2seq/train/b64, simulated";
    for suffix in [", capacity 4.00 GiB", ", sequence 2"] {
        assert!(page.contains(&format!("{title}{suffix}")), "{suffix}: {page}");
    }
    let samples = read(dir.path(), "tables/iterations-samples.csv");
    assert_eq!(samples.lines().filter(|line| line.contains("profile-guided")).count(), 2, "{samples}");
}

#[test]
fn the_summary_tells_of_replays_and_the_latest_build_counts() {
    let dir = folder();
    let old = row(ALEXNET, "network-wise", &[1; 5]);
    let new = ReplayRow {
        cell: "newer".to_owned(),
        started_ns: 2,
        ..row(ALEXNET, "network-wise", &[754_562_048; 5])
    };
    append_rows(dir.path().join("store"), &[old, new]).expect("appends");
    let mut little = options();
    little.command = "planlab report".to_owned();
    write_report(dir.path(), little);
    let page = read(dir.path(), "run.html");
    assert!(page.contains("1 rows of 1 online allocators"), "{page}");
    assert!(page.contains("and 1 replays (digest "), "the footer names the rows");
    assert!(read(dir.path(), "tables/memory-by-net.csv").contains("1503106048"));
}

#[test]
fn a_part_or_a_shorter_play_replaces_no_figure() {
    let dir = folder();
    let part = ReplayRow {
        cell: "part".to_owned(),
        suite: String::new(),
        until: Some(3),
        requested_peak: 7,
        started_ns: 9,
        ..row(ALEXNET, "network-wise", &[7; 5])
    };
    let short = ReplayRow { cell: "short".to_owned(), until: None, ..part.clone() };
    let short = with(short, |of| of.samples.truncate(1));
    report(dir.path(), &[memory(), vec![part, short]].concat());
    assert!(read(dir.path(), "tables/memory-by-net.csv").contains("1503106048"));
}

#[test]
fn the_same_rows_in_any_order_give_the_same_pages() {
    let (a, b) = (folder(), folder());
    let mut rows = [memory(), vec![host("plan", 1, 2), host("plan", 4, 2)]].concat();
    report(a.path(), &rows);
    rows.reverse();
    report(b.path(), &rows);
    for name in ["memory.html", "time.html", "requests.html", "threads.html", "index.html"] {
        assert_eq!(read(a.path(), name), read(b.path(), name), "{name}");
    }
}

#[test]
fn without_rows_there_are_no_such_pages() {
    let dir = folder();
    report(dir.path(), &[]);
    let page = read(dir.path(), "index.html");
    for absent in PAGES {
        assert!(!dir.path().join("out").join(absent).exists() && !page.contains(absent), "{absent}");
    }
}

#[test]
fn all_processes_of_a_contender_count() {
    let dir = folder();
    let process = |repetition: u32, ns: u64| ReplayRow { repetition, ..host("glibc", 4, ns) };
    let died = |of: &mut Performance| {
        (of.status, of.reason) = (End::Failed, "signal 9".to_owned());
        (of.samples, of.alloc, of.free) = (Vec::new(), None, None);
    };
    let crashed = with(process(3, 0), died);
    let greater = with(process(1, 40), |of| (of.reserved_peak, of.lock_wait_ns) = (5 << 20, Some(0)));
    report(dir.path(), &[process(0, 10), greater, process(2, 30), crashed]);
    let failures = read(dir.path(), "tables/failures.csv");
    let line = failures.lines().find(|line| line.contains("glibc on host, pages")).expect("its line");
    assert!(line.contains("failed,1,") && line.contains("signal 9"), "{line}");
    let threads = read(dir.path(), "tables/threads.csv");
    let line = threads.lines().find(|line| line.contains("glibc")).expect("its line");
    // The median of 20, 60 and 80 ns for a request and its free, and the greatest memory.
    assert!(line.contains(",60,") && line.contains("5242880"), "{line}");
}

#[test]
fn what_was_not_served_is_shown_as_such() {
    let dir = folder();
    let failed = with(row(ALEXNET, "tlsf", &[]), |of| {
        (of.status, of.reason) = (End::Failed, "signal 11".to_owned());
    });
    let limited = with(row(ALEXNET, "cupy4-pool", &[1 << 19]), |of| of.status = End::OutOfMemory);
    let limited = ReplayRow { capacity: Some(1 << 20), cell: "limited".to_owned(), ..limited };
    report(dir.path(), &[failed, limited]);
    assert!(read(dir.path(), "tables/failures.csv").contains("tlsf on simulated,failed,1"));
    assert!(
        read(dir.path(), "tables/memory-by-capacity.csv")
            .contains("cupy4-pool,simulated,1048576,out-of-memory")
    );
}
