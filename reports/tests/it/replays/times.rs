//! Times of requests: which measure, which machine, how many threads.

use planlab_dsa::performance::Work;
use planlab_results::Provenance;
use planlab_results::replay::ReplayRow;

use super::{ALEXNET, RESNET, host, memory, report, row, with};
use crate::files::Parts;

/// A row of a machine.
fn on(host: &str, cpu: &str, row: ReplayRow) -> ReplayRow {
    let provenance = Provenance { host: host.to_owned(), cpu: cpu.to_owned(), ..Provenance::default() };
    row.with(|row| (row.cell, row.provenance) = (format!("{} {host}", row.cell), provenance))
}

#[test]
fn requests_have_the_real_pools_cost_beside_the_bins() {
    let files = report(&[memory(), vec![host("cupy4-pool", 1, 20)]].concat());
    let bins = files.text("tables/bins.csv");
    // 630 microseconds / 1200 bins.
    bins.has([&format!("{ALEXNET},80,1200,15,630000,525,10000")]);
    let calls = files.text("tables/requests-calls.csv");
    let line = calls.lines().nth(1).expect("the host's row");
    line.has(["cupy4-pool,host,pages,80,20,60,20,60,40"]);
    files.has("requests.html", ["bins that the scan looks at"]);
    assert!(!files.contains_key("tables/gains.csv"), "no plan on real memory, nothing to say of gains");
}

#[test]
fn calls_cpu_time_and_wall_time_are_never_one_measure() {
    // One without timed calls, one without CPU time, and one with both.
    let untimed = with(host("glibc", 1, 10), |of| (of.alloc, of.free) = (None, None));
    let mut silent = host("tlsf", 1, 30);
    silent.performance.samples.iter_mut().for_each(|sample| sample.cpu_ns = None);
    let files = report(&[untimed, silent, host("plan", 1, 2)]);
    let (whole, calls) = (files.text("tables/requests.csv"), files.text("tables/requests-calls.csv"));
    let line = |csv: &str, key: &str| csv.lines().find(|line| line.contains(key)).map(str::to_owned);
    // CPU, above the loop, wall: 1004 ns over 80 requests.
    assert!(line(&whole, "glibc").expect("it was played").contains(",80,20,,12.6,"), "{whole}");
    assert!(line(&whole, "tlsf").expect("it was played").contains(",80,,,12.6,"), "{whole}");
    assert!(line(&calls, "glibc").is_none() && line(&calls, "tlsf").is_some(), "{calls}");
    let page = files.text("requests.html");
    let figure = |title: &str| {
        let from = page.find(&format!("aria-label=\"{title}: host, pages\"")).expect(title);
        page[from..].split("</svg>").next().unwrap_or_default().to_owned()
    };
    let cpu = figure("CPU time of a request and its free");
    let calls = figure("Time of the calls for a request and its free");
    assert!(cpu.contains("glibc") && !cpu.contains("tlsf"), "{cpu}");
    assert!(calls.contains("tlsf") && !calls.contains("glibc"), "{calls}");
    assert!(!page.contains("Wall time of a propagation over its requests: host"), "the CPU time is known");
}

#[test]
fn what_was_played_once_from_an_empty_pool_has_no_time() {
    let key = format!("{RESNET}/process");
    let cold = row(&key, "cupy4-pool", &[1 << 20]);
    let warm = with(row(&key, "tlsf", &[1 << 20]), |of| of.warm_up = 50);
    let files = report(&[cold, warm, row(RESNET, "cupy4-pool", &[1 << 20; 2])]);
    for table in ["times", "requests"] {
        let csv = files.text(&format!("tables/{table}.csv"));
        let has = |words: String| csv.contains(&words);
        assert!(!has(format!("{key},cupy4-pool,")) && has(format!("{key},tlsf,")), "{csv}");
        assert!(has(format!("{RESNET},cupy4-pool,")), "{csv}");
    }
    let page = files.text("requests.html");
    assert!(page.contains(&format!("tlsf: {key}: ")) && page.contains(&format!("cupy4-pool: {RESNET}: ")));
    assert!(!page.contains(&format!("cupy4-pool: {key}")), "{page}");
}

#[test]
fn times_below_a_nanosecond_are_shown_as_they_are() {
    let short = |threads: u32| {
        let mut row = host("plan", threads, 1);
        // A quarter of a nanosecond, or nothing, for each of 80 requests.
        let cpu_ns = if threads == 1 { 20 } else { 0 };
        row.performance.samples.iter_mut().for_each(|sample| sample.cpu_ns = Some(cpu_ns));
        row
    };
    let files = report(&[short(1), short(4), host("glibc", 1, 10)]);
    for tip in ["plan: 1 threads: 0.25 ns", "plan: 4 threads: 0.00 ns"] {
        assert!(files.text("threads.html").contains(tip), "{tip}");
    }
    files.has("requests.html", [&format!("plan: {ALEXNET}: 0.25 ns"), ">0.25 ns<"]);
}

#[test]
fn empty_loop_of_the_same_run_is_subtracted() {
    let untouched = |row: ReplayRow| row.with(|row| row.work = Work::None);
    let files = report(&[
        on("a", "", untouched(host("empty-loop", 1, 3))),
        on("a", "", untouched(host("empty-loop", 4, 4))),
        on("a", "", host("tlsf", 1, 30)),
        on("a", "", host("tlsf", 4, 40)),
        on("b", "", host("tlsf", 4, 50)),
    ]);
    let requests = files.text("tables/requests.csv");
    assert!(requests.lines().any(|line| line.contains("tlsf") && line.contains(",80,60,54,")), "{requests}");
    assert!(requests.lines().any(|line| line.contains("empty-loop") && line.contains(",80,6,,")));
    let threads = files.text("tables/threads.csv");
    let line = |host: &str| {
        let words = format!("tlsf,host (machine {host})");
        threads.lines().find(|line| line.contains(&words))
    };
    assert!(line("a").expect("one thread").contains(",1,60,54,"), "{threads}");
    threads.has(["tlsf,host (machine a),pages,4,80,72,"]);
    assert!(line("b").expect("four threads").contains(",4,100,,"), "no loop of that machine: {threads}");
}

#[test]
fn machines_and_devices_share_no_figure() {
    let gpu = |name: &str, row: ReplayRow| {
        row.with(|row| {
            row.cell = format!("{} {name}", row.cell);
            row.device = "cuda:0".to_owned();
            row.device_name = name.to_owned();
            row.work = Work::None;
        })
    };
    let files = report(&[
        on("a1", "Fast", host("glibc", 1, 10)),
        on("a1", "Fast", host("glibc", 4, 20)),
        on("b2", "Slow", host("tlsf", 1, 100)),
        on("b2", "Slow", host("tlsf", 4, 200)),
        gpu("H1", row(ALEXNET, "plan", &[1 << 20; 3])),
        gpu("H2", row(ALEXNET, "cuda-malloc", &[1 << 20; 3])),
    ]);
    for (page, title, one, other) in [
        ("threads.html", "Latency by threads, host (Fast), pages", "glibc", "tlsf"),
        ("threads.html", "Latency by threads, host (Slow), pages", "tlsf", "glibc"),
        ("time.html", "Time of a propagation, cuda:0 (H1)", ">plan<", "cuda-malloc"),
        ("time.html", "Time of a propagation, cuda:0 (H2)", "cuda-malloc", ">plan<"),
        ("requests.html", "CPU time of a request and its free: host (Slow), pages", "tlsf", "glibc"),
        ("requests.html", "Wall time of a propagation over its requests: cuda:0 (H1)", "plan", "cuda-malloc"),
    ] {
        let text = files.text(page);
        let from = text.find(&format!("aria-label=\"{title}")).unwrap_or_else(|| panic!("{title}: {text}"));
        let figure = text[from..].split("</svg>").next().unwrap_or_default();
        assert!(figure.contains(one) && !figure.contains(other), "{title}: {figure}");
    }
}

#[test]
fn machines_of_one_name_have_rows_of_their_own() {
    let later = |row: ReplayRow| on("abcdefghij", "Same", row.with(|row| row.started_ns = 2));
    let pool = || row(ALEXNET, "cupy4-pool", &[459_276_288; 5]);
    let files = report(&[
        on("0123456789", "Same", host("glibc", 4, 10)),
        later(host("glibc", 4, 20)),
        on("0123456789", "Same", pool()),
        later(pool()),
    ]);
    let threads = files.text("tables/threads.csv");
    for digits in ["01234567", "abcdefgh"] {
        threads.has([&format!("host (Same, machine {digits})")]);
    }
    assert_eq!(files.text("tables/times.csv").matches("cupy4-pool,simulated,").count(), 1);
}

#[test]
fn threads_have_latency_and_the_wait_for_locks() {
    let rows = [host("glibc", 1, 10), host("glibc", 4, 40), host("plan", 1, 2), host("plan", 4, 2)];
    let files = report(&rows);
    let csv = files.text("tables/threads.csv");
    let line = csv.lines().find(|line| line.contains("glibc,host,pages,4")).expect("four threads");
    // 3 x 52000 ns over 80 requests, 50 + 2 propagations, 4 threads.
    line.has([",80,,120,", ",9.4,"]);
    let page = files.text("threads.html");
    page.has(["Latency by threads, host, pages: chainer/alexnet/train/b32"]);
    assert!(page.contains(">threads<"), "a name on the axis");
}

#[test]
fn savings_are_reported_by_request_and_by_propagation() {
    // Processes differ far more than contenders do, so they are compared pairwise.
    let on_device = |contender: &str, l2_bytes: u64, times: [u64; 6]| -> Vec<ReplayRow> {
        let process = |(repetition, wall_ns): (u32, u64)| {
            let mut row = row(ALEXNET, contender, &[1 << 20; 3]);
            row.performance.samples.iter_mut().for_each(|sample| sample.wall_ns = wall_ns);
            row.performance.warm_up = 50;
            let (device, device_name) = ("cuda:0".to_owned(), "a GPU".to_owned());
            let (work, touched_bytes, l2_bytes) = (Work::Kernels, Some(1), Some(l2_bytes));
            row.with(|row| {
                (row.repetition, row.device, row.device_name) = (repetition, device, device_name);
                (row.work, row.touched_bytes, row.l2_bytes) = (work, touched_bytes, l2_bytes);
            })
        };
        (0..).zip(times).map(process).collect()
    };
    let times = [10_000, 20_000, 30_000, 40_000, 50_000, 60_000];
    let slower = |by: u64| times.map(|time| time + by);
    let mut other_run = on_device("cupy4-pool", 50 << 20, slower(800));
    other_run.iter_mut().for_each(|row| row.started_ns = 2);
    let near = [10_010, 19_990, 30_010, 39_990, 50_010, 59_990];
    let files = report(
        &[
            on_device("plan", 50 << 20, times),
            on_device("plan/shuffled", 50 << 20, slower(5)),
            on_device("cupy2rc1-pool", 50 << 20, slower(800)),
            on_device("cuda-graph/plan", 50 << 20, times.map(|time| time - 160)),
            on_device("pytorch-caching", 50 << 20, near),
            on_device("tlsf", 50 << 20, slower(800)).into_iter().take(5).collect(),
            other_run,
        ]
        .concat(),
    );
    let gains = files.text("tables/gains.csv");
    let line = |contender: &str| {
        let words = format!("{ALEXNET},{contender},");
        gains.lines().find(|line| line.starts_with(&words)).map(str::to_owned)
    };
    // 800 ns over 80 requests.
    let pool = line("cupy2rc1-pool").expect("it was played");
    assert!(pool.contains(",kernels,faster,10,10,10,") && pool.ends_with(",6,,yes"), "{pool}");
    assert!(line("cuda-graph/plan").is_some_and(|line| line.contains(",slower,-2,-2,-2,-")), "{gains}");
    assert!(line("pytorch-caching").is_some_and(|line| line.contains(",no different,")), "{gains}");
    let few = line("tlsf").expect("it was played");
    assert!(few.contains(",not judged,10,,,") && few.ends_with(",5,,yes"), "{few}");
    assert!(line("cupy4-pool").is_none(), "no process of another run took turns with the plan: {gains}");
    assert!(line("plan/shuffled").is_none() && line("plan").is_none(), "{gains}");
    files.has("time.html", ["What planned addresses save"]);
}
