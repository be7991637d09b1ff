//! Pages: links, names, maps, and what the front page says.

use std::path::Path;

use planlab_dsa::{Offset, Plan};
use planlab_reports::{ReportOptions, ShowPage};
use planlab_results::Status;
use planlab_results::replay::append_rows;

use super::{NASTY, Row, append, empty_store, failure, instance, report_of, written};
use crate::files::{Files, Parts};

#[test]
fn pages_need_no_network_and_their_links_lead_somewhere() {
    let (_dir, files) = written();
    for (name, _) in files.iter().filter(|(name, _)| name.ends_with(".html")) {
        let page = files.text(name);
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
    let attributes = ["href=\"", "src=\""].into_iter();
    let links = attributes.flat_map(|attribute| page.split(attribute).skip(1));
    let links = links.filter_map(|rest| rest.split('"').next());
    links.filter(|link| !link.starts_with("data:")).map(str::to_owned).collect()
}

#[test]
fn names_are_escaped_everywhere() {
    let (_dir, files) = written();
    for (name, _) in files.iter().filter(|(name, _)| name.ends_with(".html") || name.ends_with(".svg")) {
        let page = files.text(name);
        for raw in ["<img src=x", "</script><img", "<SEGV>", "last <line>", "h<ost>", "<b>grad"] {
            assert!(!page.contains(raw), "{name} holds {raw}");
        }
    }
    let cells = files.text("cells.html");
    let start =
        cells.find("type=\"application/json\">").expect("has data") + "type=\"application/json\">".len();
    let end = start + cells[start..].find("</script>").expect("ends");
    let data: serde_json::Value = serde_json::from_str(&cells[start..end]).expect("is JSON");
    assert_eq!(data["rows"].as_array().map(Vec::len), Some(8));
    assert_eq!(data["words"]["workload"][2], NASTY);
    assert_eq!(data["pages"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_page_of_one_plan_is_a_single_file() {
    let (instance, labels) = instance();
    let plan = instance.verify(Plan::from_offsets([0, 64, 0].map(Offset::new))).expect("valid");
    let page = |plans: &[&str]| {
        let page = ShowPage::new(&instance, &labels, "a <title>", "planlab show x -o 'y z.html'");
        plans.iter().fold(page, |page, name| page.with_plan(name, &plan)).to_html().expect("draws")
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
fn small_workloads_have_maps_of_their_lowest_heights_and_all_cells_link_them() {
    let (dir, mut store) = empty_store();
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
        let files = Files::of_report(dir.path(), options);
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
    let worst = files.text("planners/fourth.html");
    worst.has(["Its worst map", "<figure class=\"viewer\""]);
    assert!(!worst.contains("Without a given capacity"), "{worst}");
    // The map of a plan that several planners found has the name of the page's own.
    let shared = files.text("planners/same-plan.html");
    shared.has([
        "Without a given capacity it is optimal on every workload of up to 2\u{202f}000 buffers that it ran on. The map \
         is of a/b/1. exact found the same plan.",
        "<a href=\"../cells/a.b.1--exact.html\">The plan in full</a> (under that name), ",
        "aria-label=\"Map of memory over time: same-plan\"",
        "\"name\":\"same-plan\"",
    ]);
    assert!(!shared.contains("worst map") && !shared.contains("\"name\":\"exact\""), "{shared}");
    assert!(files.text("cells/a.b.1--exact.html").contains("\"name\":\"exact\""));
    let table = files.text("tables/cells.csv");
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
fn a_planner_is_called_optimal_if_each_of_its_small_cells_is() {
    let (dir, mut store) = empty_store();
    // Each has one optimal plan with a map, and more rows without a stored plan.
    for planner in ["whole", "silent", "lost", "limited"] {
        append(&mut store, &Row { workload: "a/b/1", planner, offsets: [0, 64, 0], times: &[1] });
    }
    let large = failure("a/b/3", "whole", Status::Timeout, "").with(|row| row.buffers = 2_001);
    let silent = failure("a/b/2", "silent", Status::Timeout, "");
    let lost = failure("a/b/2", "lost", Status::Feasible, "").with(|row| row.height = Some(160));
    // What it left before its time was up does not count.
    let late = failure("a/b/4", "lost", Status::Timeout, "").with(|row| row.height = Some(96));
    let given = failure("a/b/2", "limited", Status::Unknown, "").with(|row| row.target_bytes = Some(100));
    for row in [large, silent, lost, late, given] {
        store.append(&row).expect("appends");
    }
    let files = Files::of_report(dir.path(), ReportOptions::default());
    let whole = "Without a given capacity it is optimal on every workload of up to 2\u{202f}000 buffers";
    let partly = "cells without a given capacity, on workloads of up to 2\u{202f}000 buffers, 1 is optimal.";
    for (planner, said) in [
        ("whole", format!("{whole} that it ran on.")),
        ("silent", format!("Of its 2 {partly}")),
        ("lost", format!("Of its 3 {partly}")),
        ("limited", format!("{whole} that it ran on.")),
    ] {
        let page = files.text(&format!("planners/{planner}.html"));
        assert!(page.contains(&format!("{said} The map is of a/b/1.")), "{said}\n{page}");
    }
}

#[test]
fn the_front_page_recommends_and_finds_from_rows() {
    let (dir, mut store) = empty_store();
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
    let files = Files::of_report(dir.path(), options);
    let page = files.text("index.html");
    page.has([
        "<p class=\"lead\">Use <a href=\"planners/exact.html\">exact</a>; <a href=\"planners/quick.a.html\">quick/a</a> \
         if a millisecond counts: no planner comes closer to the proven bounds on the 3 workloads compared here; if \
         several come equally close, this is the default, or else the quickest. For other nets use \
         <code>portfolio</code>: it searches until its plan is proved optimal or the time limit is over.</p>",
        "<strong>Every recorded net is proved optimal</strong>: on each of the 3, the best plan meets a proven bound.",
        "within 18.75 % of the bound</strong> on average (2 greedy planners, 3 recorded nets); the best, quick/a, has \
         a gap of 12.50 %.",
        "<strong>quick/a plans in 20.0 \u{b5}s</strong> on average and leaves a gap of 12.50 %; exact takes 50.0 ms and \
         leaves no gap.",
        "4 variants of planners on the same 3 of 3 recorded nets",
        "aria-label=\"Gap against planning time\"",
        "aria-label=\"Performance profile of heights\"",
    ]);
    // Without replays nothing is said of memory or allocators.
    assert!(!page.contains("Memory saved by net") && !page.contains("closest pool"), "{page}");
    let (before, after) = (page.find("Findings"), page.find("<table"));
    assert!(before.is_some() && before < after, "the findings come before any table");
    let planner = files.text("planners/quick.a.html");
    planner.has(["Places in &lt;turn&gt;.", "number 2 of 4 planners", "quick.b.html", "higher on 3."]);
    assert!(planner.contains("<a href=\"../planners/exact.html\">exact</a>"), "its rival: {planner}");
    assert_eq!(files.keys().filter(|name| name.starts_with("planners/")).count(), 5);
}

/// The report of a row for each planner and height, on two recorded nets and a synthetic workload with a bound of 96.
fn heights(planners: &[(&str, u64)]) -> Files {
    let mut rows = Vec::new();
    for workload in ["chainer/alexnet/train/b8", "torch/bert/train/b8", "synthetic/uniform/n9/s1"] {
        for &(planner, height) in planners {
            rows.push(failure(workload, planner, Status::Feasible, "").with(|row| row.height = Some(height)));
        }
    }
    report_of(&rows)
}

#[test]
fn planners_that_tie_share_their_rank() {
    let planners = [("a", 96), ("b", 96), ("c", 96), ("d", 108), ("e", 120), ("f", 120)];
    let files = heights(&planners);
    for (planner, rank) in [
        ("a", "number 1 of 6 planners, tied with 2 others, on the same 3 workloads"),
        ("c", "number 1 of 6 planners, tied with 2 others, on the same 3 workloads"),
        ("d", "number 4 of 6 planners on the same 3 workloads"),
        ("f", "number 5 of 6 planners, tied with 1 other, on the same 3 workloads"),
    ] {
        let page = files.text(&format!("planners/{planner}.html"));
        assert!(page.contains(rank), "{rank}\n{page}");
    }
}

#[test]
fn gaps_of_many_planners_begin_with_the_best() {
    let names: Vec<String> = (0..20).map(|number| format!("p{number:02}")).collect();
    let planners: Vec<(&str, u64)> = names.iter().map(String::as_str).zip(96..).collect();
    let files = heights(&planners);
    let page = files.text("gaps.html");
    let tables: Vec<&str> = page.split("<table").skip(1).collect();
    let columns = |table: &str| -> Vec<String> {
        let heads = table.split("</thead>").next().unwrap_or_default().split("<span>").skip(1);
        heads.filter_map(|head| head.split('<').next()).skip(1).map(str::to_owned).collect()
    };
    assert_eq!(tables.len(), 4, "{page}");
    for pair in tables.chunks(2) {
        assert_eq!(columns(pair[0]), names[..12]);
        assert_eq!(columns(pair[1]), names[12..]);
        assert!(pair[0].contains("<details><summary>8 more planners</summary>"), "{page}");
    }
    page.has(["Scroll sideways"]);
    assert_eq!(files.text("tables/gaps.csv").lines().next().map(|line| line.matches(',').count()), Some(20));
}

#[test]
fn models_have_their_costs_orders_and_curves() {
    let (dir, mut store) = empty_store();
    let mut put = |workload: &str, planner: &str, load: u64, height: u64| {
        let mut row = failure(workload, planner, Status::Feasible, "");
        (row.load, row.relaxed_load, row.bound, row.height) = (load, load, load, Some(height));
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
    let files = Files::of_report(dir.path(), options);
    let largest = files.text("tables/model_largest_batch.csv");
    largest.has([
        "vgg16/train,portfolio,1000,>= 4,>= 4,",
        "vgg16/train,pytorch-caching (allocator),1000,2 to 3,>= 4,",
    ]);
    assert!(files.text("nets/model.vgg16.train.b4.svg").contains("model/vgg16/train/b4"));
    assert!(files.text("models.html").contains("nets/model.vgg16.train.b4.svg"));
    files.has("tables/memory_cost.csv", ["model/vgg16/train/b4,900,700,600,451,60,410,400,0.1\n"]);
    files.has(
        "tables/model_orders.csv",
        ["model/vgg16/train/b4,best,290,400,300,-0.25,410,320,-0.219512195\n"],
    );
    files.has(
        "tables/model_safety.csv",
        ["model/vgg16/train/b4,pairs,100,7,0,400,400,0,410,500,0.219512195\n"],
    );
    files.has("tables/model_workspaces.csv", ["model/vgg16/train/b4,x20,410,420\n"]);
    for plot in ["vgg16.train-memory-by-batch", "model.vgg16.train.b4-memory-by-workspace-in-mib"] {
        let svg = files.text(&format!("plots/{plot}.svg"));
        assert!(svg.contains("load") && svg.contains("portfolio"), "{plot}");
    }
}
