//! The pages of replays: present if there are rows for them, and equal whenever they are made again.

use std::fs;
use std::path::Path;

use planlab_dsa::performance::{CallTime, End, Performance, Sample, Work};
use planlab_reports::{PoolTotal, Report, ReportOptions};
use planlab_results::Provenance;
use planlab_results::replay::{REPLAY_SCHEMA, ReplayRow, append_rows};

const ALEXNET: &str = "chainer/alexnet/train/b32";
const RESNET: &str = "torch/resnet50/train/b64";
const PAGES: [&str; 6] =
    ["memory.html", "time.html", "requests.html", "threads.html", "iterations.html", "pytorch.html"];

pub(crate) fn row(workload: &str, contender: &str, reserved: &[u64]) -> ReplayRow {
    let sample = |&reserved: &u64| Sample {
        propagations: 1,
        wall_ns: 1000 + reserved % 7,
        reserved: Some(reserved),
        reserved_peak: Some(reserved),
        ..Sample::default()
    };
    ReplayRow {
        schema: REPLAY_SCHEMA,
        cell: format!("{workload} {contender}"),
        repetition: 0,
        suite: "test".to_owned(),
        workload: workload.into(),
        sequence: Vec::new(),
        until: None,
        instance: workload.to_owned(),
        requests: 80,
        contender: contender.to_owned(),
        planner: None,
        plan: None,
        device: "simulated".to_owned(),
        device_name: String::new(),
        work: Work::None,
        threads: 1,
        capacity: None,
        performance: Performance {
            is_steady: true,
            samples: reserved.iter().map(sample).collect(),
            reserved_peak: reserved.iter().copied().max().unwrap_or(0),
            device_allocations: 3,
            search_steps: 1200,
            ..Performance::default()
        },
        requested_peak: reserved.iter().copied().max().unwrap_or(0).min(355_707_904),
        retained: None,
        touched_bytes: None,
        l2_bytes: None,
        started_ns: 1,
        provenance: Provenance::default(),
    }
}

/// The row with other figures.
fn with(mut row: ReplayRow, change: impl FnOnce(&mut Performance)) -> ReplayRow {
    change(&mut row.performance);
    row
}

/// The rows of AlexNet from the simulator.
fn memory() -> Vec<ReplayRow> {
    let process = ReplayRow {
        requested_peak: 1_104_112_640,
        ..row("chainer/alexnet/process/b32", "cupy2rc1-pool", &[1_207_824_896])
    };
    vec![
        row(ALEXNET, "network-wise", &[754_562_048; 5]),
        row(ALEXNET, "cupy2rc1-pool", &[459_276_288; 5]),
        row(ALEXNET, "profile-guided", &[459_276_288, 355_707_904, 355_707_904]),
        process,
    ]
}

/// A contender on the host with this many threads: a request and a free take `ns` nanoseconds each.
fn host(contender: &str, threads: u32, ns: u64) -> ReplayRow {
    let call = CallTime { median_ps: ns * 1000, p99_ps: ns * 3000, batches: 100 };
    let plain = row(ALEXNET, contender, &[1 << 20; 2]);
    let cpu_ns = Some(2 * ns * plain.requests * u64::from(threads));
    let timed = |&sample: &Sample| Sample { cpu_ns, ..sample };
    let performance = Performance {
        samples: plain.performance.samples.iter().map(timed).collect(),
        warm_up: 50,
        alloc: Some(call),
        free: Some(call),
        lock_wait_ns: Some(u64::from(threads - 1) * 52_000),
        ..plain.performance
    };
    let (cell, device) = (format!("{contender} {threads}"), "host".to_owned());
    ReplayRow { performance, cell, device, work: Work::Pages, threads, ..plain }
}

fn stream(contender: &str, reserved: &[u64], plans: Option<u64>) -> ReplayRow {
    let mut row = ReplayRow {
        sequence: ["x/iteration0", "x/iteration1"].map(str::to_owned).to_vec(),
        retained: Some(2_774_190_592),
        ..row("chainer/seq2seq/train/b64", contender, reserved)
    };
    for (sample, number) in row.performance.samples.iter_mut().zip(0..) {
        (sample.plans, sample.planning_ns) =
            (plans.map(|plans| plans.min(number)), plans.map(|_| 300 * number));
    }
    row
}

fn options() -> ReportOptions {
    let mut options = ReportOptions::default();
    let total = PoolTotal {
        parameters: Some(748_544_000),
        process_pool: Some(1_207_824_896),
        pool_ns: Some(630_000),
        plan_ns: Some(10_000),
        ..PoolTotal::default()
    };
    options.totals.insert(ALEXNET.to_owned(), total);
    let torch = PoolTotal { torch_reserved: Some(2000), ..PoolTotal::default() };
    options.totals.insert(RESNET.to_owned(), torch);
    options
}

/// Writes a report of only these rows, in a folder `out`.
fn report(dir: &Path, rows: &[ReplayRow]) {
    append_rows(dir.join("store"), rows).expect("appends");
    let report = Report::from_store(dir.join("store"), options()).expect("reads");
    assert_eq!(report.findings(), []);
    report.write(dir.join("out")).expect("writes");
}

fn read(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join("out").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[test]
fn the_memory_page_has_the_papers_figures_from_rows() {
    let dir = folder();
    report(dir.path(), &memory());
    let csv = read(dir.path(), "tables/memory-by-net.csv");
    let line = csv.lines().find(|line| line.starts_with(ALEXNET)).expect("AlexNet");
    for figure in ["748544000", "1503106048", "1207824896", "1104251904", "0.085751662", "a process"] {
        assert!(line.contains(figure), "{figure}: {line}");
    }
    let published = read(dir.path(), "tables/memory-published.csv");
    for (figure, bytes) in [("network-wise,1.50 GB", "1503106048"), ("pool,1.21 GB", "1207824896")] {
        let line = published.lines().find(|line| line.contains(figure)).expect(figure);
        assert!(line.contains(bytes) && line.ends_with("within its rounding"), "{line}");
    }
    let page = read(dir.path(), "memory.html");
    assert!(page.contains("cupy2rc1-pool") && page.contains("<svg"), "bars of the net");
    assert!(page.contains("aria-label=\"Memory by net and batch: chainer, training\""));
    // The rows have one thread and one place: no pages on threads, sequences or PyTorch.
    for absent in &PAGES[3..] {
        assert!(!dir.path().join("out").join(absent).exists(), "{absent}");
        assert!(!page.contains(absent), "{absent} is in the navigation");
    }
    for there in &PAGES[..3] {
        assert!(page.contains(&format!("href=\"{there}\"")), "{there}");
    }
}

#[test]
fn profile_guided_is_shown_by_what_it_settles_at_and_its_first_propagation_apart() {
    let dir = folder();
    report(dir.path(), &memory()[1..3]);
    let csv = read(dir.path(), "tables/memory-by-allocator.csv");
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().expect("a head").split(',').collect();
    assert!(head.contains(&"profile-guided") && csv.contains("profile-guided (first propagation)"), "{csv}");
    // The pool, the steady state of the plan, and the bytes held during the first propagation.
    let line = lines.find(|line| line.starts_with(ALEXNET)).expect("AlexNet");
    assert!(line.ends_with(",0.291161323,0,0.291161323"), "{line}");
    assert!(read(dir.path(), "tables/memory-by-net.csv").contains("5 propagations"));
}

#[test]
fn the_papers_ratios_stand_beside_ours() {
    let dir = folder();
    let key = "chainer/inception-resnet-v2/train/b32";
    let large = ReplayRow { retained: Some(0), ..row(key, "cupy2rc1-pool", &[7_209_764_864; 5]) };
    append_rows(dir.path().join("store"), &[memory(), vec![large]].concat()).expect("appends");
    let mut options = options();
    options.totals.entry(key.to_owned()).or_default().pool_ns = Some(296_000_000);
    let report = Report::from_store(dir.path().join("store"), options).expect("reads");
    report.write(dir.path().join("out")).expect("writes");
    let published = read(dir.path(), "tables/memory-published.csv");
    let line = published.lines().find(|line| line.contains("12.5 x")).expect("the ratio");
    // 7209764864 / 1207824896.
    assert!(line.contains(",5.97 x,5.969213") && line.ends_with("below"), "{line}");
    let page = read(dir.path(), "requests.html");
    assert!(
        page.contains("gives 2.19 x for the speed of") && page.contains("took 296 ms on the CPU"),
        "{page}"
    );
}

#[test]
fn a_figure_that_lies_elsewhere_is_said_to() {
    let dir = folder();
    let mut rows = memory();
    rows[0].performance.reserved_peak += 1 << 30;
    report(dir.path(), &rows);
    let published = read(dir.path(), "tables/memory-published.csv");
    assert!(published.lines().any(|line| line.contains("network-wise,1.50 GB") && line.ends_with("above")));
}

#[test]
fn requests_have_the_real_pools_cost_beside_the_bins() {
    let dir = folder();
    report(dir.path(), &[memory(), vec![host("cupy4-pool", 1, 20)]].concat());
    let bins = read(dir.path(), "tables/bins.csv");
    // 630 microseconds / 1200 bins.
    assert!(bins.contains(&format!("{ALEXNET},80,1200,15,630000,525,10000")), "{bins}");
    let calls = read(dir.path(), "tables/requests-calls.csv");
    let line = calls.lines().nth(1).expect("the host's row");
    assert!(line.contains("cupy4-pool,host,pages,80,20,60,20,60,40"), "{line}");
    let page = read(dir.path(), "requests.html");
    assert!(page.contains("bins that the scan looks at"), "{page}");
}

#[test]
fn calls_cpu_time_and_wall_time_are_never_one_measure() {
    let dir = folder();
    // One without timed calls, one without CPU time, and one with both.
    let untimed = with(host("glibc", 1, 10), |of| (of.alloc, of.free) = (None, None));
    let mut silent = host("tlsf", 1, 30);
    silent.performance.samples.iter_mut().for_each(|sample| sample.cpu_ns = None);
    report(dir.path(), &[untimed, silent, host("plan", 1, 2)]);
    let (whole, calls) =
        (read(dir.path(), "tables/requests.csv"), read(dir.path(), "tables/requests-calls.csv"));
    let line = |csv: &str, key: &str| csv.lines().find(|line| line.contains(key)).map(str::to_owned);
    // CPU, above the loop, wall: 1004 ns over 80 requests.
    assert!(line(&whole, "glibc").expect("it was played").contains(",80,20,,12.6,"), "{whole}");
    assert!(line(&whole, "tlsf").expect("it was played").contains(",80,,,12.6,"), "{whole}");
    assert!(line(&calls, "glibc").is_none() && line(&calls, "tlsf").is_some(), "{calls}");
    let page = read(dir.path(), "requests.html");
    let figure = |title: &str| {
        let from = page.find(&format!("aria-label=\"{title}: host, pages\"")).expect(title);
        page[from..].split("</svg>").next().unwrap_or_default().to_owned()
    };
    let (cpu, calls) = (
        figure("CPU time of a request and its free"),
        figure("Time of the calls for a request and its free"),
    );
    assert!(cpu.contains("glibc") && !cpu.contains("tlsf"), "{cpu}");
    assert!(calls.contains("tlsf") && !calls.contains("glibc"), "{calls}");
    assert!(!page.contains("Wall time of a propagation over its requests: host"), "the CPU time is known");
}

#[test]
fn what_was_played_once_from_an_empty_pool_has_no_time() {
    let dir = folder();
    let key = format!("{RESNET}/process");
    let cold = row(&key, "cupy4-pool", &[1 << 20]);
    let warm = with(row(&key, "tlsf", &[1 << 20]), |of| of.warm_up = 50);
    report(dir.path(), &[cold, warm, row(RESNET, "cupy4-pool", &[1 << 20; 2])]);
    for table in ["times", "requests"] {
        let csv = read(dir.path(), &format!("tables/{table}.csv"));
        let has = |words: String| csv.contains(&words);
        assert!(!has(format!("{key},cupy4-pool,")) && has(format!("{key},tlsf,")), "{csv}");
        assert!(has(format!("{RESNET},cupy4-pool,")), "{csv}");
    }
    let page = read(dir.path(), "requests.html");
    assert!(page.contains(&format!("tlsf: {key}: ")) && page.contains(&format!("cupy4-pool: {RESNET}: ")));
    assert!(!page.contains(&format!("cupy4-pool: {key}")), "{page}");
}

#[test]
fn times_below_a_nanosecond_are_shown_as_they_are() {
    let dir = folder();
    let short = |threads: u32| {
        let mut row = host("plan", threads, 1);
        // A quarter of a nanosecond, or nothing, for each of 80 requests.
        let cpu_ns = if threads == 1 { 20 } else { 0 };
        row.performance.samples.iter_mut().for_each(|sample| sample.cpu_ns = Some(cpu_ns));
        row
    };
    report(dir.path(), &[short(1), short(4), host("glibc", 1, 10)]);
    for tip in ["plan: 1 threads: 0.25 ns", "plan: 4 threads: 0.00 ns"] {
        assert!(read(dir.path(), "threads.html").contains(tip), "{tip}");
    }
    let page = read(dir.path(), "requests.html");
    assert!(page.contains(&format!("plan: {ALEXNET}: 0.25 ns")) && page.contains(">0.25 ns<"), "{page}");
}

#[test]
fn the_empty_loop_of_the_same_run_is_taken_off() {
    let dir = folder();
    let on = |host: &str, row: ReplayRow| ReplayRow {
        cell: format!("{} {host}", row.cell),
        provenance: Provenance { host: host.to_owned(), ..Provenance::default() },
        ..row
    };
    let untouched = |row: ReplayRow| ReplayRow { work: Work::None, ..row };
    report(
        dir.path(),
        &[
            on("a", untouched(host("empty-loop", 1, 3))),
            on("a", untouched(host("empty-loop", 4, 4))),
            on("a", host("tlsf", 1, 30)),
            on("a", host("tlsf", 4, 40)),
            on("b", host("tlsf", 4, 50)),
        ],
    );
    let requests = read(dir.path(), "tables/requests.csv");
    assert!(requests.lines().any(|line| line.contains("tlsf") && line.contains(",80,60,54,")), "{requests}");
    assert!(requests.lines().any(|line| line.contains("empty-loop") && line.contains(",80,6,,")));
    let threads = read(dir.path(), "tables/threads.csv");
    let line = |host: &str| {
        let words = format!("tlsf,host (machine {host})");
        threads.lines().find(|line| line.contains(&words))
    };
    assert!(line("a").expect("one thread").contains(",1,60,54,"), "{threads}");
    assert!(threads.contains("tlsf,host (machine a),pages,4,80,72,"), "{threads}");
    assert!(line("b").expect("four threads").contains(",4,100,,"), "no loop of that machine: {threads}");
}

#[test]
fn machines_and_devices_share_no_figure() {
    let dir = folder();
    let on = |host: &str, cpu: &str, row: ReplayRow| ReplayRow {
        cell: format!("{} {host}", row.cell),
        provenance: Provenance { host: host.to_owned(), cpu: cpu.to_owned(), ..Provenance::default() },
        ..row
    };
    let gpu = |name: &str, row: ReplayRow| ReplayRow {
        cell: format!("{} {name}", row.cell),
        device: "cuda:0".to_owned(),
        device_name: name.to_owned(),
        work: Work::None,
        ..row
    };
    report(
        dir.path(),
        &[
            on("a1", "Fast", host("glibc", 1, 10)),
            on("a1", "Fast", host("glibc", 4, 20)),
            on("b2", "Slow", host("tlsf", 1, 100)),
            on("b2", "Slow", host("tlsf", 4, 200)),
            gpu("H1", row(ALEXNET, "plan", &[1 << 20; 3])),
            gpu("H2", row(ALEXNET, "cuda-malloc", &[1 << 20; 3])),
        ],
    );
    for (page, title, one, other) in [
        ("threads.html", "Latency by threads, host (Fast), pages", "glibc", "tlsf"),
        ("threads.html", "Latency by threads, host (Slow), pages", "tlsf", "glibc"),
        ("time.html", "Time of a propagation, cuda:0 (H1)", ">plan<", "cuda-malloc"),
        ("time.html", "Time of a propagation, cuda:0 (H2)", "cuda-malloc", ">plan<"),
        ("requests.html", "CPU time of a request and its free: host (Slow), pages", "tlsf", "glibc"),
        ("requests.html", "Wall time of a propagation over its requests: cuda:0 (H1)", "plan", "cuda-malloc"),
    ] {
        let text = read(dir.path(), page);
        let from = text.find(&format!("aria-label=\"{title}")).unwrap_or_else(|| panic!("{title}: {text}"));
        let figure = text[from..].split("</svg>").next().unwrap_or_default();
        assert!(figure.contains(one) && !figure.contains(other), "{title}: {figure}");
    }
}

#[test]
fn machines_of_one_name_are_told_apart_and_simulated_memory_has_one_row() {
    let dir = folder();
    let on = |host: &str, started_ns: u64, row: ReplayRow| ReplayRow {
        cell: format!("{} {host}", row.cell),
        started_ns,
        provenance: Provenance { host: host.to_owned(), cpu: "Same".to_owned(), ..Provenance::default() },
        ..row
    };
    let pool = || row(ALEXNET, "cupy4-pool", &[459_276_288; 5]);
    report(
        dir.path(),
        &[
            on("0123456789", 1, host("glibc", 4, 10)),
            on("abcdefghij", 2, host("glibc", 4, 20)),
            on("0123456789", 1, pool()),
            on("abcdefghij", 2, pool()),
        ],
    );
    let threads = read(dir.path(), "tables/threads.csv");
    for digits in ["01234567", "abcdefgh"] {
        assert!(threads.contains(&format!("host (Same, machine {digits})")), "{threads}");
    }
    assert_eq!(read(dir.path(), "tables/times.csv").matches("cupy4-pool,simulated,").count(), 1);
}

#[test]
fn threads_have_latency_and_the_wait_for_locks() {
    let dir = folder();
    let rows = [host("glibc", 1, 10), host("glibc", 4, 40), host("plan", 1, 2), host("plan", 4, 2)];
    report(dir.path(), &rows);
    let csv = read(dir.path(), "tables/threads.csv");
    let line = csv.lines().find(|line| line.contains("glibc,host,pages,4")).expect("four threads");
    // 3 x 52000 ns over 80 requests, 50 + 2 propagations, 4 threads.
    assert!(line.contains(",80,,120,") && line.contains(",9.4,"), "{line}");
    let page = read(dir.path(), "threads.html");
    assert!(page.contains("Latency by threads, host, pages: chainer/alexnet/train/b32"), "{page}");
    assert!(page.contains(">threads<"), "a name on the axis");
}

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
fn what_is_held_is_never_compared_with_what_is_left() {
    let dir = folder();
    let pool = stream("cupy2rc1-pool", &[1 << 30, 2 << 30], None);
    let mut planned = stream("profile-guided", &[0, 1 << 29], Some(2));
    // A pool serves the first propagation, and its cache is gone at the end.
    planned.performance.samples[0].reserved_peak = Some(1 << 30);
    planned.performance.reserved_peak = 1 << 30;
    let mut malloc = stream("glibc", &[3 << 30, 3 << 30], None);
    malloc.performance.samples.iter_mut().for_each(|sample| sample.reserved_peak = None);
    report(dir.path(), &[pool.clone(), planned.clone()]);
    let csv = read(dir.path(), "tables/iterations.csv");
    let line = csv.lines().find(|line| line.contains("profile-guided")).expect("its line");
    assert!(line.contains(",1073741824,1073741824,536870912,0,536870912,"), "{line}");
    assert!(line.contains(",3311061504,at most,0.327248"), "{line}");
    let ends = "Footprint at the end of iterations: chainer/seq2seq/train/b64, simulated";
    assert!(!read(dir.path(), "iterations.html").contains(ends), "what is held is known of all");
    let with_malloc = folder();
    report(with_malloc.path(), &[pool, planned, malloc]);
    let page = read(with_malloc.path(), "iterations.html");
    assert!(page.contains(ends), "{page}");
    let from = page.find("aria-label=\"Footprint over iterations").expect("the most that is held");
    assert!(!page[from..].split("</svg>").next().unwrap_or_default().contains("glibc"), "{page}");
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
fn our_pytorch_pool_stands_beside_pytorch() {
    let dir = folder();
    report(dir.path(), &[row(RESNET, "pytorch-caching", &[1900, 2100])]);
    let csv = read(dir.path(), "tables/pytorch.csv");
    assert!(csv.contains("torch/resnet50/train/b64,2000,1900,-0.05"), "{csv}");
    assert!(csv.trim_end().ends_with(",,,,,,0,process not played"), "{csv}");
    let page = read(dir.path(), "pytorch.html");
    assert!(page.contains("less on 1 and more on 0"), "{page}");
    assert!(page.contains("The process was played for 0"), "{page}");
}

#[test]
fn the_process_stands_beside_the_window_and_both_peaks_count() {
    let dir = folder();
    let process = row(&format!("{RESNET}/process"), "pytorch-caching", &[2000]);
    let process = with(process, |of| of.used_peak = Some(1700));
    let window = row(RESNET, "pytorch-caching", &[1900; 5]);
    append_rows(dir.path().join("store"), &[window, process]).expect("appends");
    for (allocated, both) in [(1700, 1), (1701, 0)] {
        let mut options = options();
        let total = options.totals.entry(RESNET.to_owned()).or_default();
        (total.torch_allocated, total.torch_iterations) = (Some(allocated), 1);
        let report = Report::from_store(dir.path().join("store"), options).expect("reads");
        report.write(dir.path().join("out")).expect("writes");
        let csv = read(dir.path(), "tables/pytorch.csv");
        assert!(csv.trim_end().ends_with(&format!(",2000,0,{allocated},,1700,1,warm-up")), "{csv}");
        let page = read(dir.path(), "pytorch.html");
        assert!(page.contains(&format!("on {both} both peaks are equal")), "{page}");
        for tip in ["window alone: torch/resnet50/train/b64", "process: torch/resnet50/train/b64"] {
            assert!(page.contains(tip), "{tip}: {page}");
        }
    }
    // A process is not another batch of the net.
    assert!(!read(dir.path(), "tables/memory-by-net.csv").contains("/process"));
}

#[test]
fn what_explains_a_difference_to_pytorch_comes_from_figures() {
    let explained = |process: u64, iterations: usize, differ: bool, is_tied: bool| {
        let dir = folder();
        let rows = [
            row(RESNET, "pytorch-caching", &[1900; 2]),
            row(&format!("{RESNET}/process"), "pytorch-caching", &[process]),
        ];
        append_rows(dir.path().join("store"), &rows).expect("appends");
        let mut options = options();
        let total = options.totals.entry(RESNET.to_owned()).or_default();
        (total.torch_iterations, total.torch_iterations_differ) = (iterations, differ);
        total.torch_tied_head = is_tied;
        let report = Report::from_store(dir.path().join("store"), options).expect("reads");
        report.write(dir.path().join("out")).expect("writes");
        let csv = read(dir.path(), "tables/pytorch.csv");
        csv.trim_end().rsplit(',').next().unwrap_or_default().to_owned()
    };
    assert_eq!(explained(2000, 1, false, false), "warm-up");
    assert_eq!(explained(2000, 1, false, true), "warm-up and tied head");
    assert_eq!(explained(1950, 5, true, false), "not explained: iterations differ");
    assert_eq!(explained(1950, 0, false, false), "not explained: no iteration marks");
    assert_eq!(explained(1950, 1, false, true), "not explained");
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
    let report = Report::from_store(dir.path().join("store"), little).expect("reads");
    report.write(dir.path().join("out")).expect("writes");
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

#[test]
fn what_a_plan_saves_is_said_by_request_and_by_propagation() {
    let dir = folder();
    // Processes differ far more than contenders do, so they are compared pairwise.
    let on_device = |contender: &str, l2_bytes: u64, times: [u64; 6]| -> Vec<ReplayRow> {
        let process = |(repetition, wall_ns): (u32, u64)| {
            let mut row = row(ALEXNET, contender, &[1 << 20; 3]);
            row.performance.samples.iter_mut().for_each(|sample| sample.wall_ns = wall_ns);
            row.performance.warm_up = 50;
            let (device, device_name) = ("cuda:0".to_owned(), "a GPU".to_owned());
            let (work, touched_bytes, l2_bytes) = (Work::Kernels, Some(1), Some(l2_bytes));
            ReplayRow { repetition, device, device_name, work, touched_bytes, l2_bytes, ..row }
        };
        (0..).zip(times).map(process).collect()
    };
    let times = [10_000, 20_000, 30_000, 40_000, 50_000, 60_000];
    let slower = |by: u64| times.map(|time| time + by);
    let mut other_run = on_device("cupy4-pool", 50 << 20, slower(800));
    other_run.iter_mut().for_each(|row| row.started_ns = 2);
    let near = [10_010, 19_990, 30_010, 39_990, 50_010, 59_990];
    report(
        dir.path(),
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
    let gains = read(dir.path(), "tables/gains.csv");
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
    let page = read(dir.path(), "time.html");
    assert!(page.contains("What planned addresses save"), "{page}");
}

#[test]
fn a_report_without_a_plan_on_real_memory_has_nothing_to_say_of_gains() {
    let dir = folder();
    report(dir.path(), &[memory(), vec![host("tlsf", 1, 30)]].concat());
    assert!(!dir.path().join("out/tables/gains.csv").exists());
}
