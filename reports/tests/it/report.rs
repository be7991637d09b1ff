//! A report is one folder that opens from disk, the same if it is made again.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use planlab_dsa::{
    Buffer, Bytes, Evidence, InPlace, Instance, Label, Labels, LiveRange, Offset, Plan, Scope, Stop,
};
use planlab_files::FolderError;
use planlab_reports::{PoolTotal, Report, ReportError, ReportOptions, ShowPage};
use planlab_results::replay::append_rows;
use planlab_results::{Lane, Point, Provenance, Record, SCHEMA, Status, Store};

const NASTY: &str = "synthetic/</script><img src=x onerror=alert(1)>/n3";

fn instance() -> (Instance, Labels) {
    let buffer = |size, start, end| {
        let live = LiveRange::new(start, end).expect("not empty");
        Buffer::new(Bytes::new(size), live)
    };
    let id = planlab_dsa::BufferId::new;
    let instance = Instance::builder()
        .buffers([buffer(64, 0, 2), buffer(32, 1, 4), buffer(64, 3, 6)])
        .in_place([InPlace { input: id(0), output: id(1) }])
        .build()
        .expect("valid");
    let mut labels = Labels::numbered(3);
    labels.buffers[0] = Label { category: Some("<b>grad&".to_owned()), ..labels.buffers[0].clone() };
    (instance, labels)
}

struct Row<'a> {
    workload: &'a str,
    planner: &'a str,
    offsets: [u64; 3],
    times: &'a [u64],
}

/// Adds a row with a verified plan that the store keeps.
fn append(store: &mut Store, row: &Row<'_>) {
    let (instance, labels) = instance();
    let digest = store.put_instance(&instance, &labels).expect("kept").to_string();
    let plan = Plan::from_offsets(row.offsets.map(Offset::new));
    let height = instance.verify(plan.clone()).expect("valid").height().get();
    let mut record = failure(row.workload, row.planner, Status::Feasible, "");
    record.status = if height == 96 { Status::Optimal } else { Status::Feasible };
    record.instance = digest;
    record.height = Some(height);
    record.samples_ns = row.times.to_vec();
    record.plan = Some(store.put_plan(&plan).expect("kept").to_string());
    record.trajectory =
        [2 * height, height].map(|height| Point { elapsed_ns: 5, height: Some(height), bound: 96 }).to_vec();
    store.append(&record).expect("appends");
}

fn failure(workload: &str, planner: &str, status: Status, reason: &str) -> Record {
    let (instance, _) = instance();
    Record {
        schema: SCHEMA,
        cell: format!("{workload} {planner}"),
        repetition: 0,
        lane: Lane::Timing,
        suite: "test".to_owned(),
        workload: workload.into(),
        instance: instance.digest().to_string(),
        buffers: 3,
        planner: planner.to_owned(),
        planner_version: "v".to_owned(),
        parameters: "{}".to_owned(),
        seed: 7,
        wall_limit_ns: Some(1_000_000_000),
        memory_limit_bytes: None,
        work_limit: None,
        target_bytes: None,
        mechanism: "rlimit".to_owned(),
        status,
        stop: None,
        reason: reason.to_owned(),
        exit_code: None,
        signal: (status == Status::Crashed).then_some(11),
        stderr_tail: "first\nlast <line>\n".to_owned(),
        height: None,
        load: 96,
        relaxed_load: 64,
        bound: 96,
        bound_evidence: Evidence::Load,
        bound_scope: Scope::NoHandOver,
        hand_overs: 0,
        samples_ns: Vec::new(),
        cpu_ns: None,
        work: 3,
        peak_rss_bytes: Some(1 << 20),
        reported_ns: None,
        orders_run: None,
        orders_failed: None,
        order_bound: None,
        trajectory: Vec::new(),
        plan: None,
        started_ns: 0,
        provenance: Provenance { host: "h<ost>".to_owned(), ..Provenance::default() },
    }
}

fn store(dir: &Path) {
    let mut store = Store::open(dir).expect("opens");
    for workload in ["chainer/alexnet/train/b8", "chainer/alexnet/train/b32", NASTY] {
        let times = &[3_000, 1_000, 2_000][..];
        append(&mut store, &Row { workload, planner: "best-fit", offsets: [0, 64, 0], times });
        append(&mut store, &Row { workload, planner: "bump", offsets: [0, 64, 96], times: &[500] });
    }
    let crash = failure(NASTY, "crasher", Status::Crashed, "signal <SEGV>");
    store.append(&crash).expect("appends");
    store.append(&failure("chainer/alexnet/train/b8", "slow", Status::Timeout, "")).expect("appends");
    store.compact().expect("compacts");
}

fn options() -> ReportOptions {
    let mut options = ReportOptions::default();
    let (parameters, network_wise, pool) = (Some(100), Some(160), Some(128));
    let total = PoolTotal { parameters, network_wise, pool, ..PoolTotal::default() };
    options.totals.insert("chainer/alexnet/train/b8".to_owned(), total);
    options
}

fn written() -> (tempfile::TempDir, BTreeMap<String, Vec<u8>>) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    store(&dir.path().join("store"));
    let out = dir.path().join("out");
    let report = Report::from_store(dir.path().join("store"), options()).expect("reads");
    let written = report.write(&out).expect("writes");
    let files = read(&out);
    assert_eq!(written.files, files.len());
    assert_eq!(written.pages, files.keys().filter(|name| name.ends_with(".html")).count());
    (dir, files)
}

/// All files of a folder, by their relative path.
pub(crate) fn read(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("reads") {
            let path = entry.expect("reads").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).expect("lies inside").display().to_string();
                files.insert(name, fs::read(path).expect("reads"));
            }
        }
    }
    files
}

pub(crate) fn text(files: &BTreeMap<String, Vec<u8>>, name: &str) -> String {
    String::from_utf8(files[name].clone()).expect("is text")
}

#[test]
fn a_report_made_again_is_the_same_and_replaces_the_old_one() {
    let (dir, files) = written();
    let out = dir.path().join("out");
    // A page of an earlier report that this one lacks.
    fs::write(out.join("stale.html"), "old").expect("writes");
    let manifest = text(&files, "report.json").replacen("\"files\": [", "\"files\": [\"stale.html\",", 1);
    fs::write(out.join("report.json"), manifest).expect("writes");
    let report = Report::from_store(dir.path().join("store"), options()).expect("reads");
    report.write(&out).expect("writes");
    let again = read(&out);
    assert!(files.keys().eq(again.keys()), "{:?}", again.keys());
    for (name, content) in &files {
        assert!(again[name] == *content, "{name} differs");
    }
    let left: Vec<_> = fs::read_dir(dir.path()).expect("reads").collect();
    assert_eq!(left.len(), 2, "no temporary folder is left: {left:?}");
}

#[test]
fn a_folder_with_something_else_in_it_is_left_alone() {
    let (dir, _) = written();
    let home = dir.path().join("home");
    fs::create_dir(&home).expect("makes a folder");
    fs::write(home.join("thesis.tex"), "precious").expect("writes");
    let report = Report::from_store(dir.path().join("store"), options()).expect("reads");
    let error = report.write(&home).expect_err("refused");
    assert!(matches!(error, ReportError::Folder(FolderError::Foreign { .. })), "{error}");
    assert!(error.to_string().contains("thesis.tex"), "{error}");
    assert_eq!(fs::read_to_string(home.join("thesis.tex")).expect("is there"), "precious");
}

#[test]
fn notes_beside_a_report_stay() {
    let (dir, files) = written();
    let out = dir.path().join("out");
    fs::write(out.join("tables/notes.txt"), "precious").expect("writes");
    let report = Report::from_store(dir.path().join("store"), options()).expect("reads");
    let error = report.write(&out).expect_err("refused");
    assert!(error.to_string().contains("tables/notes.txt"), "{error}");
    assert_eq!(read(&out).len(), files.len() + 1);
}

#[test]
fn the_records_are_not_replaced_by_their_report() {
    let (dir, _) = written();
    let (store, out) = (dir.path().join("store"), dir.path().join("out"));
    fs::rename(&store, out.join("store")).expect("ours");
    for (store, out) in [("out/store", "out"), ("out/store", "out/store"), ("out/store", "out/store/pages")] {
        let (store, out) = (dir.path().join(store), dir.path().join(out));
        let report = Report::from_store(&store, options()).expect("reads");
        let error = report.write(&out).expect_err("refused");
        assert!(matches!(error, ReportError::Folder(FolderError::Nested { .. })), "{error}");
    }
}

#[test]
fn a_report_of_an_earlier_version_is_refused_with_a_way_out() {
    let (dir, _) = written();
    let out = dir.path().join("out");
    for marker in [r#"{"kind":"planlab report","command":"x","records":1,"schema":1}"#, ""] {
        fs::write(out.join("report.json"), marker).expect("writes");
        let report = Report::from_store(dir.path().join("store"), options()).expect("reads");
        let error = report.write(&out).expect_err("refused").to_string();
        assert!(error.contains("remove") && error.contains("name another folder"), "{error}");
    }
}

#[test]
fn pages_need_no_network_and_their_links_lead_somewhere() {
    let (_dir, files) = written();
    for (name, _) in files.iter().filter(|(name, _)| name.ends_with(".html")) {
        let page = text(&files, name);
        assert!(!page.contains("http"), "{name} names an address");
        let folder = Path::new(name).parent().expect("lies in a folder");
        for link in links(&page) {
            let target = link.split('#').next().unwrap_or_default();
            let path = folder.join(target);
            let mut parts: Vec<&str> = Vec::new();
            for part in path.to_str().expect("is text").split('/').filter(|part| !part.is_empty()) {
                if part == ".." { assert!(parts.pop().is_some(), "{name}: {link}") } else { parts.push(part) }
            }
            assert!(files.contains_key(&parts.join("/")), "{name}: {link}");
        }
        assert!(page.contains("planlab report") && page.contains("8 records (digest "), "{name}");
    }
}

fn links(page: &str) -> Vec<String> {
    let mut links = Vec::new();
    for attribute in ["href=\"", "src=\""] {
        for part in page.split(attribute).skip(1) {
            let link = part.split('"').next().unwrap_or_default();
            if !link.starts_with("data:") {
                links.push(link.to_owned());
            }
        }
    }
    links
}

#[test]
fn names_are_escaped_everywhere() {
    let (_dir, files) = written();
    for (name, _) in files.iter().filter(|(name, _)| name.ends_with(".html") || name.ends_with(".svg")) {
        let page = text(&files, name);
        for raw in ["<img src=x", "</script><img", "<SEGV>", "last <line>", "h<ost>", "<b>grad"] {
            assert!(!page.contains(raw), "{name} holds {raw}");
        }
    }
    let cells = text(&files, "cells.html");
    let start =
        cells.find("type=\"application/json\">").expect("has data") + "type=\"application/json\">".len();
    let end = start + cells[start..].find("</script>").expect("ends");
    let data: serde_json::Value = serde_json::from_str(&cells[start..end]).expect("is JSON");
    assert_eq!(data["rows"].as_array().map(Vec::len), Some(8));
    assert_eq!(data["words"]["workload"][2], NASTY);
    assert_eq!(data["pages"].as_array().map(Vec::len), Some(3));
}

#[test]
fn every_table_has_its_files_and_the_workloads_are_in_natural_order() {
    let (_dir, files) = written();
    for name in [
        "leaderboard",
        "pairs",
        "failures",
        "gaps",
        "gaps-by-group",
        "statuses",
        "machines",
        "workloads",
        "cells",
        "leaderboard-test",
        "leaderboard-test-chainer",
        "leaderboard-test-synthetic",
        "scale",
        "scale-fits",
        "claims",
    ] {
        for end in ["csv", "tex"] {
            assert!(files.contains_key(&format!("tables/{name}.{end}")), "{name}.{end}");
        }
    }
    let workloads = text(&files, "tables/workloads.csv");
    insta::assert_snapshot!(workloads, @r#"
    workload,buffers,load_bytes,height_bytes,gap,planner,cells
    chainer/alexnet/train/b8,3,96,96,0,best-fit,3
    chainer/alexnet/train/b32,3,96,96,0,best-fit,2
    synthetic/</script><img src=x onerror=alert(1)>/n3,3,96,96,0,best-fit,3
    "#);
}

#[test]
fn the_leaderboard_counts_answers_and_failures() {
    let (_dir, files) = written();
    insta::assert_snapshot!(text(&files, "tables/leaderboard.csv"), @r#"
    planner,workloads,cells,answers,optimal,proved,mean_gap,gap_count,no_answer,failures,mean_time_ns,time_count
    best-fit,3,3,3,3,3,0,3,0,0,2000,3
    bump,3,3,3,0,0,0.666666667,3,0,0,500,3
    crasher,1,1,0,0,0,,0,1,1,,0
    slow,1,1,0,0,0,,0,1,0,,0
    "#);
    insta::assert_snapshot!(text(&files, "tables/failures.csv"), @r#"
    planner,status,rows,workload,reason,exit,stderr
    crasher,crashed,1,synthetic/</script><img src=x onerror=alert(1)>/n3,signal <SEGV>,signal 11,last <line>
    "#);
    let index = text(&files, "index.html");
    assert!(index.contains("1 kind of failure needs an explanation."), "{index}");
    let run = text(&files, "run.html");
    let (failures, ran) = (run.find("Unexplained failures"), run.find("What ran"));
    assert!(failures.is_some() && failures < ran, "failures come first");
    let memory = text(&files, "memory.html");
    assert!(memory.contains("alexnet b8: framework's pool: 128 B"), "the figure of nets has the pool");
}

#[test]
fn leaderboards_by_suite_say_what_was_compared() {
    let (_dir, files) = written();
    insta::assert_snapshot!(text(&files, "tables/leaderboard-test.csv"), @r#"
    planner,common_gap,common_time_ns,workloads,cells,answers,optimal,mean_gap,mean_time_ns,failures
    best-fit,0,2000,3,3,3,3,0,2000,0
    bump,0.666666667,500,3,3,3,0,0.666666667,500,0
    crasher,,,1,1,0,0,,,1
    slow,,,1,1,0,0,,,0
    "#);
    let page = text(&files, "boards.html");
    assert!(page.contains("4 planners on 3 workloads of 3 to 3 buffers (chainer/alexnet 2, "), "{page}");
    assert!(page.contains("3 of the workloads are common; 2 variants did not run"), "{page}");
    assert!(page.contains("All 4 variants") && page.contains("href=\"planners/best-fit.html\""), "{page}");
    insta::assert_snapshot!(text(&files, "tables/families-test.csv"), @r#"
    family,best,variants,mean_gap,mean_time_ns,summary
    best-fit,best-fit,1,0,2000,
    bump,bump,1,0.666666667,500,
    "#);
    assert!(
        page.contains("Each cell had 1.00 s and no memory limit; seeds 7; 1 host; 8 of 8 cells ran alone.")
    );
}

#[test]
fn growth_has_its_page_with_exponents_and_time_outs() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut store = Store::open(dir.path().join("store")).expect("opens");
    let cells = [(100, 1_000), (1000, 10_000), (10_000, 100_000), (100_000, 0), (20_000, 1_000_000_000)];
    for (buffers, time) in cells {
        let mut row = failure(&format!("synthetic/chain/n{buffers}/s0"), "p", Status::Feasible, "");
        (row.buffers, row.height, row.samples_ns) = (buffers, Some(120), vec![time]);
        if time == 0 {
            (row.status, row.height, row.samples_ns) = (Status::Timeout, None, Vec::new());
        }
        if time == 1_000_000_000 {
            row.stop = Some(Stop::Deadline);
        }
        store.append(&row).expect("appends");
    }
    let report = Report::from_store(dir.path().join("store"), ReportOptions::default()).expect("reads");
    report.write(dir.path().join("out")).expect("writes");
    let files = read(&dir.path().join("out"));
    let fits = text(&files, "tables/scale-fits.csv");
    assert!(fits.contains("synthetic/chain,p,1,1,1,3,1,1,,,,"), "{fits}");
    let page = text(&files, "scale.html");
    assert!(page.contains("timeout after 1.00 s") && page.contains("n^1.00"), "{page}");
    assert!(page.contains("feasible, cut after 1.00 s"), "{page}");
    assert!(files.contains_key("plots/planning-time-against-size-synthetic.chain.svg"), "{:?}", files.keys());
}

#[test]
fn models_have_their_costs_orders_and_curves() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut store = Store::open(dir.path().join("store")).expect("opens");
    let mut put = |workload: &str, planner: &str, load: u64, height: u64| {
        let mut row = failure(workload, planner, Status::Feasible, "");
        (row.load, row.bound, row.height) = (load, load, Some(height));
        if planner == "portfolio" && workload.contains("train/b4") {
            let is_safe = workload.contains("safe-");
            (row.orders_run, row.orders_failed) = (Some(100), Some(if is_safe { 0 } else { 7 }));
            row.order_bound = workload.contains("order-").then_some(290);
        }
        store.append(&row).expect("appends");
    };
    for (batch, load) in [(1, 100), (2, 200), (4, 400)] {
        put(&format!("model/vgg16/train/b{batch}"), "portfolio", load, load + 10);
    }
    for (planner, height) in [
        ("bump", 900),
        ("mxnet-sharing/in-place-only", 700),
        ("mxnet-sharing/sharing-only", 600),
        ("mxnet-sharing", 451),
    ] {
        put("model/vgg16/train/b4", planner, 400, height);
    }
    put("model/vgg16/infer/b4", "mxnet-sharing", 50, 60);
    put("model/vgg16/train/b4/order-best", "portfolio", 300, 320);
    put("model/vgg16/train/b4/safe-pairs", "portfolio", 400, 500);
    for limit in ["1m", "8m", "16m", "x20"] {
        put(&format!("model/vgg16/train/b4/ws{limit}"), "portfolio", 410, 420);
    }
    let pool = |(batch, held): (u64, u64)| {
        crate::replays::row(&format!("model/vgg16/train/b{batch}"), "pytorch-caching", &[held; 2])
    };
    let rows = [(1, 150), (2, 300), (4, 9_000_000_000)].map(pool);
    append_rows(dir.path().join("store"), &rows).expect("appends");
    let mut options = ReportOptions::default();
    options.nets.kept_bytes = |_| Some(1_000);
    options.nets.draw = |key| Some(format!("<svg width=\"40pt\" height=\"80pt\">{key}</svg>"));
    let report = Report::from_store(dir.path().join("store"), options).expect("reads");
    report.write(dir.path().join("out")).expect("writes");
    let files = read(&dir.path().join("out"));
    let largest = text(&files, "tables/model_largest_batch.csv");
    assert!(largest.contains("vgg16/train,portfolio,1000,>= 4,>= 4,"), "{largest}");
    assert!(largest.contains("vgg16/train,pytorch-caching (allocator),1000,2 to 3,>= 4,"), "{largest}");
    assert!(text(&files, "nets/model.vgg16.train.b4.svg").contains("model/vgg16/train/b4"));
    assert!(text(&files, "models.html").contains("nets/model.vgg16.train.b4.svg"));
    let cost = text(&files, "tables/memory_cost.csv");
    assert!(cost.contains("model/vgg16/train/b4,900,700,600,451,60,410,400,0.1\n"), "{cost}");
    let orders = text(&files, "tables/model_orders.csv");
    assert!(
        orders.contains("model/vgg16/train/b4,best,290,400,300,-0.25,410,320,-0.219512195\n"),
        "{orders}"
    );
    let safety = text(&files, "tables/model_safety.csv");
    assert!(
        safety.contains("model/vgg16/train/b4,pairs,100,7,0,400,400,0,410,500,0.219512195\n"),
        "{safety}"
    );
    let workspaces = text(&files, "tables/model_workspaces.csv");
    assert!(workspaces.contains("model/vgg16/train/b4,x20,410,420\n"), "{workspaces}");
    for plot in ["vgg16.train-memory-by-batch", "model.vgg16.train.b4-memory-by-workspace-in-mib"] {
        let svg = text(&files, &format!("plots/{plot}.svg"));
        assert!(svg.contains("load") && svg.contains("portfolio"), "{plot}");
    }
}

#[test]
fn claims_stand_beside_the_figures_of_the_records() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut store = Store::open(dir.path().join("store")).expect("opens");
    let mut row = failure("chainer/alexnet/infer/b1", "mip/highs", Status::Optimal, "");
    (row.height, row.load, row.bound) = (Some(10_169_344), 10_169_344, 10_169_344);
    store.append(&row).expect("appends");
    let report = Report::from_store(dir.path().join("store"), ReportOptions::default()).expect("reads");
    report.write(dir.path().join("out")).expect("writes");
    let files = read(&dir.path().join("out"));
    let claims = text(&files, "tables/claims.csv");
    let line = claims.lines().find(|line| line.starts_with("cplex-alexnet,")).expect("the claim");
    assert!(line.contains("10169344 bytes (9.70 MiB),within,1,1,"), "{line}");
    assert!(claims.contains("not measured here"), "{claims}");
    assert!(text(&files, "claims.html").contains("workloads/chainer.alexnet.infer.b1.html"));
}

#[test]
fn limits_split_a_planner_only_where_one_was_reached() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut store = Store::open(dir.path().join("store")).expect("opens");
    for (planner, stop) in [("quick", Stop::Finished), ("exact", Stop::Deadline)] {
        for seconds in [1, 60] {
            let mut row = failure("a/b/c", planner, Status::Feasible, "");
            row.cell = format!("{planner} {seconds}");
            row.wall_limit_ns = Some(seconds * 1_000_000_000);
            (row.height, row.stop) = (Some(100 + seconds), Some(stop));
            store.append(&row).expect("appends");
        }
    }
    let report = Report::from_store(dir.path().join("store"), ReportOptions::default()).expect("reads");
    report.write(dir.path().join("out")).expect("writes");
    let board = text(&read(&dir.path().join("out")), "tables/leaderboard.csv");
    let names: Vec<&str> = board.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert_eq!(names, ["exact @ 1 s", "quick", "exact @ 60 s"]);
}

#[test]
fn a_bound_that_a_plan_refutes_does_not_count_and_is_reported() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut store = Store::open(dir.path().join("store")).expect("opens");
    for (planner, height, bound) in [("honest", 110, 100), ("liar", 120, 115), ("prover", 130, 105)] {
        let mut row = failure("a/b/c", planner, Status::Feasible, "");
        (row.height, row.bound, row.bound_evidence) = (Some(height), bound, Evidence::Mip);
        store.append(&row).expect("appends");
    }
    let report = Report::from_store(dir.path().join("store"), ReportOptions::default()).expect("reads");
    assert_eq!(report.findings().iter().filter(|finding| finding.is_refutation()).count(), 1);
    report.write(dir.path().join("out")).expect("writes");
    let files = read(&dir.path().join("out"));
    let gaps = text(&files, "tables/gaps.csv");
    assert_eq!(gaps.lines().nth(1), Some("a/b/c,0.047619048,0.142857143,0.238095238"), "all against 105");
    assert!(text(&files, "run.html").contains("liar claims that no plan is lower than 115 bytes (mip)"));
}

#[test]
fn a_report_of_nothing_is_a_report() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    drop(Store::open(dir.path().join("store")).expect("opens"));
    let report = Report::from_store(dir.path().join("store"), ReportOptions::default()).expect("reads");
    let written = report.write(dir.path().join("out")).expect("writes");
    assert_eq!(written.pages, 7);
}

#[test]
fn rows_whose_instance_is_not_in_the_store_have_pages_without_pictures() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut store = Store::open(dir.path().join("store")).expect("opens");
    let mut row = failure("a/b", "p", Status::Feasible, "");
    (row.height, row.plan) = (Some(100), Some("ab".repeat(32)));
    store.append(&row).expect("appends");
    let report = Report::from_store(dir.path().join("store"), ReportOptions::default()).expect("reads");
    report.write(dir.path().join("out")).expect("writes");
    let files = read(&dir.path().join("out"));
    assert!(text(&files, "workloads/a.b.html").contains("does not hold this instance"));
    assert!(files.keys().all(|name| !name.starts_with("maps/")));
}

#[test]
fn a_page_of_one_plan_is_a_single_file() {
    let (instance, labels) = instance();
    let plan = instance.verify(Plan::from_offsets([0, 64, 0].map(Offset::new))).expect("valid");
    let page = |plans: &[&str]| {
        let page = ShowPage::new(&instance, &labels, "a <title>", "planlab show x -o 'y z.html'");
        plans.iter().fold(page, |page, name| page.with_plan(name, &plan)).html().expect("draws")
    };
    for plans in [&[][..], &["<ours>"], &["<ours>", "theirs"]] {
        let page = page(plans);
        assert!(page.contains("a &lt;title&gt;") && !page.contains("http") && !page.contains("<ours>"));
        assert!(page.contains("planlab show x -o 'y z.html'"), "the command that makes it again");
        assert!(links(&page).is_empty());
        assert_eq!(page.matches("<canvas").count(), 1);
    }
}

#[test]
fn a_damaged_store_has_a_report_that_says_so() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let root = dir.path().join("store");
    store(&root);
    let mut plans: Vec<_> =
        fs::read_dir(root.join("plans")).expect("reads").map(|entry| entry.expect("reads").path()).collect();
    plans.sort_unstable();
    fs::remove_file(&plans[0]).expect("removes");
    fs::write(&plans[1], "damaged").expect("writes");
    let report = Report::from_store(&root, options()).expect("reads");
    assert_eq!(report.findings().len(), 2, "{:?}", report.findings());
    report.write(dir.path().join("out")).expect("writes");
    let files = read(&dir.path().join("out"));
    let run = text(&files, "run.html");
    assert!(run.contains("The store is damaged: 2 of the instances and plans"), "{run}");
    assert!(text(&files, "index.html").contains("2 instances or plans cannot be read."));
    assert!(text(&files, "tables/failures.csv").contains("missing file"));
    let instance = fs::read_dir(root.join("instances")).expect("reads").next().expect("has one");
    fs::write(instance.expect("reads").path(), "damaged").expect("writes");
    let report = Report::from_store(&root, options()).expect("reads");
    report.write(dir.path().join("out")).expect("writes");
    assert!(text(&read(&dir.path().join("out")), "run.html").contains("The store is damaged: 1 of"));
}

#[test]
fn a_plan_that_a_failed_run_left_behind_does_not_count_in_the_means() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut store = Store::open(dir.path().join("store")).expect("opens");
    for (workload, status, height) in [
        ("a/b/1", Status::Feasible, 120),
        ("a/b/2", Status::OutOfMemory, 96),
        ("a/b/3", Status::Timeout, 960),
    ] {
        let mut row = failure(workload, "p", status, "");
        row.height = Some(height);
        store.append(&row).expect("appends");
    }
    let report = Report::from_store(dir.path().join("store"), ReportOptions::default()).expect("reads");
    report.write(dir.path().join("out")).expect("writes");
    let files = read(&dir.path().join("out"));
    assert_eq!(
        text(&files, "tables/leaderboard.csv").lines().nth(1),
        Some("p,3,3,1,0,0,0.25,1,2,1,,0"),
        "one answer of three, and the gap of that one"
    );
    assert!(text(&files, "tables/gaps.csv").contains("a/b/2,out-of-memory"));
}

#[test]
fn small_workloads_have_maps_of_their_lowest_heights_and_all_cells_link_them() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut store = Store::open(dir.path().join("store")).expect("opens");
    let plans = [
        ("best-fit", [0, 64, 96]),
        ("exact", [0, 64, 0]),
        ("same-plan", [0, 64, 0]),
        ("same-height", [32, 0, 32]),
        ("second", [0, 70, 0]),
        ("third", [0, 80, 0]),
        ("fourth", [0, 90, 0]),
    ];
    for workload in ["a/b/1", "a/b/2"] {
        for (planner, offsets) in plans {
            append(&mut store, &Row { workload, planner, offsets, times: &[1] });
        }
    }
    let maps = |most: usize| {
        let mut options = ReportOptions::default();
        options.maps = most;
        let report = Report::from_store(dir.path().join("store"), options).expect("reads");
        report.write(dir.path().join("out")).expect("writes");
        let files = read(&dir.path().join("out"));
        let cells: Vec<String> = files.keys().filter(|name| name.starts_with("cells/")).cloned().collect();
        (cells, files)
    };
    let (cells, files) = maps(100);
    let of = |workload: &str, planners: &[&str]| -> Vec<String> {
        planners.iter().map(|planner| format!("cells/{workload}--{planner}.html")).collect()
    };
    // The worst plan of each planner has a map too, on the first of equal workloads.
    let all = ["best-fit", "exact", "fourth", "same-height", "second", "third"];
    assert_eq!(cells, [of("a.b.1", &all), of("a.b.2", &["best-fit", "exact", "second", "third"])].concat());
    let worst = text(&files, "planners/fourth.html");
    assert!(worst.contains("Its worst map") && worst.contains("<figure class=\"viewer\""), "{worst}");
    assert!(text(&files, "planners/same-plan.html").contains("../cells/a.b.1--exact.html"));
    let table = text(&files, "tables/cells.csv");
    let linked: Vec<&str> = table.lines().filter(|line| line.contains("cells/a.b.1--exact.html")).collect();
    assert_eq!(linked.len(), 2, "both planners with this plan: {linked:?}");
    assert_eq!(table.lines().filter(|line| line.contains("cells/")).count(), 12, "{table}");
    // With few maps each workload gets its first ones before any gets more.
    let (cells, _) = maps(4);
    let first = |workload: &str| ["best-fit", "exact"].map(|p| format!("cells/{workload}--{p}.html"));
    assert_eq!(cells, [first("a.b.1"), first("a.b.2")].concat());
    assert_eq!(maps(0).0, Vec::<String>::new());
}

#[test]
fn cells_with_a_capacity_are_another_question() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut store = Store::open(dir.path().join("store")).expect("opens");
    for (planner, height, capacity) in
        [("free", 120, None), ("asked", 100, Some(100_000)), ("both", 130, None), ("both", 110, Some(110))]
    {
        let mut row = failure("a/b/c", planner, Status::Feasible, "");
        row.cell = format!("{planner} {capacity:?}");
        row.parameters = r#"{"threads":2}"#.to_owned();
        (row.height, row.target_bytes, row.wall_limit_ns) = (Some(height), capacity, Some(2_500_000_000));
        store.append(&row).expect("appends");
    }
    let report = Report::from_store(dir.path().join("store"), ReportOptions::default()).expect("reads");
    report.write(dir.path().join("out")).expect("writes");
    let files = read(&dir.path().join("out"));
    let board = text(&files, "tables/leaderboard.csv");
    assert_eq!(board.lines().count(), 3, "two planners were asked for their best: {board}");
    assert!(!board.contains("asked"), "{board}");
    let workloads = text(&files, "tables/workloads.csv");
    let best = workloads.lines().nth(1).unwrap_or_default();
    assert!(best.starts_with("a/b/c,3,96,120,0.25,") && best.contains("free"), "{workloads}");
    let cells = text(&files, "tables/cells.csv");
    assert!(
        cells.starts_with("workload,planner,map,seed,repetition,capacity_bytes,time_limit_s,threads,"),
        "{cells}"
    );
    assert!(cells.contains(",7,0,100000,2.5,2,feasible,"), "{cells}");
    assert!(cells.contains(",7,0,,2.5,2,feasible,") && cells.contains("capacity 100000 bytes"), "{cells}");
}

#[test]
fn the_front_page_recommends_and_finds_from_rows() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut store = Store::open(dir.path().join("store")).expect("opens");
    // Height over the bound of 96, and time, of each planner on three recorded nets.
    let planners = [
        ("exact", 96, 50_000_000),
        ("quick/a", 108, 20_000),
        ("quick/b", 120, 10_000),
        ("poor", 192, 90_000),
    ];
    for net in ["chainer/alexnet/train/b8", "torch/bert/train/b8", "onnx/vgg16/infer/b1"] {
        for (planner, height, time) in planners {
            let mut row = failure(net, planner, Status::Feasible, "");
            (row.height, row.samples_ns) = (Some(height), vec![time]);
            store.append(&row).expect("appends");
        }
    }
    // A model is no recorded net, and a planner that ran on it alone is not compared.
    store.append(&failure("model/alexnet/train/b8", "lone", Status::Timeout, "")).expect("appends");
    let mut options = ReportOptions::default();
    for planner in ["quick/a", "quick/b"] {
        let (summary, kind) = ("places in <turn>".to_owned(), "greedy".to_owned());
        let known = planlab_reports::KnownPlanner { summary, kind, ..Default::default() };
        options.planners.insert(planner.to_owned(), known);
    }
    let report = Report::from_store(dir.path().join("store"), options).expect("reads");
    report.write(dir.path().join("out")).expect("writes");
    let files = read(&dir.path().join("out"));
    let page = text(&files, "index.html");
    for said in [
        "<p class=\"lead\">Use <a href=\"planners/exact.html\">exact</a>; <a href=\"planners/quick.a.html\">quick/a</a> \
         where a millisecond counts.</p>",
        "<strong>Every recorded net is proved optimal</strong>: the best plan of all 3 is as low as a proven bound.",
        "within 18.75 % of the bound</strong> on average (2 greedy planners, 3 recorded nets); the best, quick/a, within \
         12.50 %.",
        "<strong>A plan takes 20.0 \u{b5}s</strong> on average with quick/a and has a gap of 12.50 %; exact takes 50.0 ms \
         and has no gap.",
        "4 planners on the same 3 of 3 recorded nets",
        "aria-label=\"Gap against planning time\"",
        "aria-label=\"Performance profile of heights\"",
    ] {
        assert!(page.contains(said), "{said}\n{page}");
    }
    // Without replays nothing is said of memory or allocators.
    assert!(!page.contains("Memory saved by net") && !page.contains("closest allocator"), "{page}");
    let (before, after) = (page.find("Findings"), page.find("<table"));
    assert!(before.is_some() && before < after, "the findings come before any table");
    let planner = text(&files, "planners/quick.a.html");
    for said in ["Places in &lt;turn&gt;.", "number 2 of 4 planners", "quick.b.html", "higher on 3."] {
        assert!(planner.contains(said), "{said}\n{planner}");
    }
    assert!(planner.contains("<a href=\"../planners/exact.html\">exact</a>"), "its rival: {planner}");
    assert_eq!(files.keys().filter(|name| name.starts_with("planners/")).count(), 5);
}
