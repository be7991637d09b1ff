//! Memory: what pools reserve beside plans, papers and PyTorch.

use super::{ALEXNET, PAGES, RESNET, memory, options, report, report_with, row, stream, with};
use crate::files::Parts;

#[test]
fn the_memory_page_has_the_papers_figures_from_rows() {
    let files = report(&memory());
    let csv = files.text("tables/memory-by-net.csv");
    let line = csv.lines().find(|line| line.starts_with(ALEXNET)).expect("AlexNet");
    line.has(["748544000", "1503106048", "1207824896", "1104251904", "0.085751662", "a process"]);
    let published = files.text("tables/memory-published.csv");
    for (figure, bytes) in [("network-wise,1.50 GB", "1503106048"), ("pool,1.21 GB", "1207824896")] {
        let line = published.lines().find(|line| line.contains(figure)).expect(figure);
        assert!(line.contains(bytes) && line.ends_with("within its rounding"), "{line}");
    }
    let page = files.text("memory.html");
    assert!(page.contains("cupy2rc1-pool") && page.contains("<svg"), "bars of the net");
    assert!(page.contains("aria-label=\"Memory by net and batch: chainer, training\""));
    // The rows have one thread and one place: no pages on threads, sequences or PyTorch.
    for absent in &PAGES[3..] {
        assert!(!files.contains_key(*absent), "{absent}");
        assert!(!page.contains(absent), "{absent} is in the navigation");
    }
    for there in &PAGES[..3] {
        assert!(page.contains(&format!("href=\"{there}\"")), "{there}");
    }
}

#[test]
fn profile_guided_is_shown_by_what_it_settles_at_and_its_first_propagation_apart() {
    let files = report(&memory()[1..3]);
    let csv = files.text("tables/memory-by-allocator.csv");
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().expect("a head").split(',').collect();
    assert!(head.contains(&"profile-guided") && csv.contains("profile-guided (first propagation)"), "{csv}");
    // The pool, the steady state of the plan, and the bytes held during the first propagation.
    let line = lines.find(|line| line.starts_with(ALEXNET)).expect("AlexNet");
    assert!(line.ends_with(",0.291161323,0,0.291161323"), "{line}");
    assert!(files.text("tables/memory-by-net.csv").contains("5 propagations"));
}

#[test]
fn the_papers_ratios_stand_beside_ours() {
    let key = "chainer/inception-resnet-v2/train/b32";
    let large = row(key, "cupy2rc1-pool", &[7_209_764_864; 5]).with(|row| row.retained = Some(0));
    let mut options = options();
    options.totals.entry(key.to_owned()).or_default().pool_ns = Some(296_000_000);
    let files = report_with(&[memory(), vec![large]].concat(), options);
    let published = files.text("tables/memory-published.csv");
    let line = published.lines().find(|line| line.contains("12.5 x")).expect("the ratio");
    // 7209764864 / 1207824896.
    assert!(line.contains(",5.97 x,5.969213") && line.ends_with("below"), "{line}");
    files.has("requests.html", ["gives 2.19 x for the speed of", "took 296 ms on the CPU"]);
}

#[test]
fn measured_memory_above_the_published_is_marked() {
    let mut rows = memory();
    rows[0].performance.reserved_peak += 1 << 30;
    let files = report(&rows);
    let published = files.text("tables/memory-published.csv");
    assert!(published.lines().any(|line| line.contains("network-wise,1.50 GB") && line.ends_with("above")));
}

#[test]
fn what_is_held_is_never_compared_with_what_is_left() {
    let pool = stream("cupy2rc1-pool", &[1 << 30, 2 << 30], None);
    let mut planned = stream("profile-guided", &[0, 1 << 29], Some(2));
    // A pool serves the first propagation, and its cache is gone at the end.
    planned.performance.samples[0].reserved_peak = Some(1 << 30);
    planned.performance.reserved_peak = 1 << 30;
    let mut malloc = stream("glibc", &[3 << 30, 3 << 30], None);
    malloc.performance.samples.iter_mut().for_each(|sample| sample.reserved_peak = None);
    let files = report(&[pool.clone(), planned.clone()]);
    let csv = files.text("tables/iterations.csv");
    let line = csv.lines().find(|line| line.contains("profile-guided")).expect("its line");
    line.has([",1073741824,1073741824,536870912,0,536870912,", ",3311061504,at most,0.327248"]);
    let ends = "Footprint at the end of iterations: chainer/seq2seq/train/b64, simulated";
    assert!(!files.text("iterations.html").contains(ends), "what is held is known of all");
    let page = report(&[pool, planned, malloc]).text("iterations.html");
    page.has([ends]);
    let from = page.find("aria-label=\"Footprint over iterations").expect("the most that is held");
    assert!(!page[from..].split("</svg>").next().unwrap_or_default().contains("glibc"), "{page}");
}

#[test]
fn our_pytorch_pool_stands_beside_pytorch() {
    let files = report(&[row(RESNET, "pytorch-caching", &[1900, 2100])]);
    let csv = files.text("tables/pytorch.csv");
    csv.has(["torch/resnet50/train/b64,2000,1900,-0.05"]);
    assert!(csv.trim_end().ends_with(",,,,,,0,process not played"), "{csv}");
    let page = files.text("pytorch.html");
    page.has(["less on 1 and more on 0", "The process was played for 0"]);
}

#[test]
fn the_process_stands_beside_the_window_and_both_peaks_count() {
    let process = row(&format!("{RESNET}/process"), "pytorch-caching", &[2000]);
    let process = with(process, |of| of.used_peak = Some(1700));
    let window = row(RESNET, "pytorch-caching", &[1900; 5]);
    for (allocated, both) in [(1700, 1), (1701, 0)] {
        let mut options = options();
        let total = options.totals.entry(RESNET.to_owned()).or_default();
        (total.torch_allocated, total.torch_iterations) = (Some(allocated), 1);
        let files = report_with(&[window.clone(), process.clone()], options);
        let csv = files.text("tables/pytorch.csv");
        assert!(csv.trim_end().ends_with(&format!(",2000,0,{allocated},,1700,1,warm-up")), "{csv}");
        let page = files.text("pytorch.html");
        page.has([&format!("on {both} both peaks are equal")]);
        page.has(["window alone: torch/resnet50/train/b64", "process: torch/resnet50/train/b64"]);
        // A process is not another batch of the net.
        assert!(!files.text("tables/memory-by-net.csv").contains("/process"));
    }
}

#[test]
fn what_explains_a_difference_to_pytorch_comes_from_figures() {
    let explained = |process: u64, iterations: usize, differ: bool, is_tied: bool| {
        let rows = [
            row(RESNET, "pytorch-caching", &[1900; 2]),
            row(&format!("{RESNET}/process"), "pytorch-caching", &[process]),
        ];
        let mut options = options();
        let total = options.totals.entry(RESNET.to_owned()).or_default();
        (total.torch_iterations, total.torch_iterations_differ) = (iterations, differ);
        total.torch_tied_head = is_tied;
        let csv = report_with(&rows, options).text("tables/pytorch.csv");
        csv.trim_end().rsplit(',').next().unwrap_or_default().to_owned()
    };
    assert_eq!(explained(2000, 1, false, false), "warm-up");
    assert_eq!(explained(2000, 1, false, true), "warm-up and tied head");
    assert_eq!(explained(1950, 5, true, false), "not explained: iterations differ");
    assert_eq!(explained(1950, 0, false, false), "not explained: no iteration marks");
    assert_eq!(explained(1950, 1, false, true), "not explained");
}
