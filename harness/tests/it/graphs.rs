//! Nets and graph files on the command line: `model`, `graph`, `sweep`, and graphs in place of traces.

use std::num::NonZeroUsize;

use planlab_dsa::{Budget, execute};
use planlab_graph::{Dependencies, Lowered, Rehearsal, Safety, lower_for_all_orders, lower_graph};
use planlab_workloads::Catalog;
use planlab_workloads::models::{Mode, Spec, models};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use tempfile::tempdir;

use crate::common::{assert_tells, folder_with, json, run, write};

/// Two branches from `x`, joined at the end.
const BRANCHES: &str = r#"{"planlab":"graph","version":1,"tensors":[{"tensor":"x","bytes":64}]}
{"op":"f","reads":["x"],"writes":[{"tensor":"a","bytes":256}]}
{"op":"g","reads":["x"],"writes":[{"tensor":"b","bytes":256}]}
{"op":"h","reads":["a"],"writes":[{"tensor":"c","bytes":32}]}
{"op":"h","reads":["b"],"writes":[{"tensor":"d","bytes":32}]}
{"op":"j","reads":["c","d"],"writes":[{"tensor":"y","bytes":64,"output":true}]}
"#;

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn models_under_chainers_rules_are_the_recorded_propagations() {
    let folder = tempdir().expect("a folder");
    let catalog = Catalog::new(None);
    for net in ["alexnet", "googlenet", "resnet50", "inception-resnet-v2"] {
        for (mode, batch) in [("infer", "1"), ("train", "32"), ("train", "64"), ("train", "128")] {
            let shape = ["--mode", mode, "--batch", batch, "--allocator-model", "chainer"];
            let made = json(folder.path(), &[["model", net, "-o", "t.csv"].as_slice(), &shape].concat(), 0);
            let trace = catalog.load(&format!("chainer/{net}/{mode}/b{batch}")).expect("recorded");
            let recorded = (trace.instance.len() as u64, trace.instance.load().bytes.get());
            assert_eq!((number(&made["buffers"]), number(&made["load"])), recorded, "{net} {mode} b{batch}");
            // The same instance, except for the order of frees between two requests: `workloads/tests/it/models.rs`.
            let made = catalog.load(&format!("model/{net}/{mode}/b{batch}/chainer")).expect("by rule");
            assert_eq!(made.instance.total_size(), trace.instance.total_size(), "{net} {mode} b{batch}");
        }
    }
}

#[test]
fn a_model_is_written_as_trace_graph_and_drawing() {
    let folder = tempdir().expect("a folder");
    let at = |emit: &str, file: &str| {
        run(folder.path(), &["model", "alexnet", "--batch", "2", "--emit", emit, "-o", file], 0)
    };
    at("trace", "a.csv");
    at("graph", "a.jsonl");
    at("graph", "a.jsonl.gz");
    at("dot", "a.dot");
    let load = |file: &str| number(&json(folder.path(), &["bound", file], 0)["load"]);
    assert_eq!(load("a.csv"), load("a.jsonl"));
    assert_eq!(load("a.csv"), load("a.jsonl.gz"));
    let packed = std::fs::read(folder.path().join("a.jsonl.gz")).expect("written");
    assert_eq!(packed[..2], [0x1F, 0x8B]);
    assert_eq!(load("a.csv"), load("model/alexnet/train/b2"));
    let dot = std::fs::read_to_string(folder.path().join("a.dot")).expect("written");
    assert!(dot.starts_with("digraph") && dot.contains("fillcolor"), "{}", &dot[..200]);
    let card = json(folder.path(), &["model", "alexnet"], 0);
    assert_eq!(number(&card["parameters"]), 62_378_344);
}

#[test]
fn a_graph_is_planned_as_its_live_ranges() {
    let folder = folder_with("g.jsonl", BRANCHES);
    let planned = json(folder.path(), &["plan", "g.jsonl", "-o", "p.csv"], 0);
    // Step 2: a, b and c.
    assert_eq!((number(&planned["load"]), number(&planned["height"])), (576, 576));
    assert_eq!(json(folder.path(), &["verify", "g.jsonl", "p.csv"], 0)["valid"], true);
    let aligned = json(folder.path(), &["plan", "g.jsonl", "--align", "512"], 0);
    assert_eq!(number(&aligned["load"]), 1536);
}

#[test]
fn a_better_order_and_safety_in_all_orders() {
    let folder = folder_with("g.jsonl", BRANCHES);
    let found = json(
        folder.path(),
        &["graph", "g.jsonl", "--orders", "200", "-o", "best.jsonl", "--out", "store"],
        0,
    );
    let plan = |name: &str| {
        let plans = found["plans"].as_array().expect("plans").iter();
        plans
            .filter(|plan| plan["plan"].as_str().is_some_and(|plan| plan.starts_with(name)))
            .collect::<Vec<_>>()
    };
    assert_eq!(number(&plan("offsets")[0]["height"]), 576);
    assert!(number(&plan("offsets")[0]["orders_failed"]) > 0, "{found}");
    assert_eq!((plan("safe").len(), plan("order").len()), (2, 3), "{found}");
    for safe in plan("safe") {
        assert_eq!((number(&safe["orders_run"]), number(&safe["orders_failed"])), (200, 0));
        assert!(number(&safe["height"]) >= 576);
    }
    // One branch after the other: x, a, then c with x and b.
    let least = plan("order").iter().map(|order| number(&order["load"])).min();
    assert_eq!(least, Some(352), "{found}");
    assert_eq!(number(&json(folder.path(), &["bound", "best.jsonl"], 0)["load"]), 352);
    if cfg!(feature = "reports") {
        let sql = "SELECT workload, count(*) AS n FROM rows GROUP BY workload ORDER BY workload";
        let rows = json(folder.path(), &["query", "store", sql], 0);
        let count = |workload: &str| {
            let mut all = rows["rows"].as_array().expect("rows").iter();
            all.find(|row| row["workload"] == workload).map_or(0, |row| number(&row["n"]))
        };
        // Four means and the offsets. A search that found the same problem as another has its own row.
        assert_eq!(count("graph/g/b1"), 5, "{rows}");
        for question in ["order-greedy", "order-local-search", "order-exact", "safe-pairs", "safe-ranges"] {
            assert_eq!(count(&format!("graph/g/b1/{question}")), 1, "{question}: {rows}");
        }
    }
}

#[test]
fn streams_of_the_file_and_model_keys_are_used_unchanged() {
    // Both branches on one stream, the join on another: there is one legal order, in which every plan is valid.
    let streams = BRANCHES.replace("{\"op\":\"j\",", "{\"op\":\"j\",\"stream\":1,");
    let folder = folder_with("g.jsonl", streams);
    let found = json(folder.path(), &["graph", "g.jsonl", "--planner", "best-fit-gap/size"], 0);
    let offsets = found["plans"].as_array().expect("plans").iter().find(|plan| plan["plan"] == "offsets");
    assert_eq!(number(&offsets.expect("a row")["orders_failed"]), 0, "{found}");
    let key = "model/alexnet/infer/b3";
    let found = json(folder.path(), &["graph", key, "--planner", "best-fit", "--orders", "1"], 0);
    assert_eq!(found["workload"], key);
    std::fs::create_dir(folder.path().join("alexnet")).expect("a folder with the name of a net");
    json(folder.path(), &["sweep", "alexnet", "--batch", "1..2", "--planner", "bump"], 0);
}

#[test]
fn safe_plans_of_every_net_hold_in_random_legal_orders() {
    let planner = planlab_solvers::find_planner("first-fit/size").expect("registered");
    let mut rng = ChaCha8Rng::seed_from_u64(15);
    let mut failing = 0;
    for net in models() {
        let graph = Spec::new(net, Mode::Infer, 1)
            .build_graph()
            .unwrap_or_else(|error| panic!("{}: {error}", net.name));
        let (order, dependencies) = (graph.operation_order(), Dependencies::from_tensors(&graph));
        let mut fails = |lowered: &Lowered, runs: usize| {
            let outcome = execute(&*planner, &lowered.instance, Budget::default(), 0);
            let plan = outcome.best.expect("a plan").as_plan().clone();
            let rehearsal = Rehearsal::new(&graph, &dependencies, lowered, &plan);
            (0..runs).filter(|_| rehearsal.run_once(&mut rng, NonZeroUsize::MIN).is_err()).count()
        };
        let safe = lower_for_all_orders(&graph, &order, &dependencies, Safety::KeepApart).expect("lowers");
        assert_eq!(fails(&safe, 100), 0, "{}", net.name);
        failing += usize::from(fails(&lower_graph(&graph, &order).expect("lowers"), 10) > 0);
    }
    assert!(failing > 5, "plans for one order fail on {failing} nets alone");
}

#[test]
fn a_sweep_finds_the_largest_batch_that_fits() {
    let folder = tempdir().expect("a folder");
    let sweep = |capacity: u64| {
        let capacity = capacity.to_string();
        let arguments =
            ["sweep", "alexnet", "--batch", "1..64", "--planner", "best-fit", "--capacity", &capacity];
        json(folder.path(), &arguments, 0)
    };
    let all = sweep(1 << 40);
    assert_eq!(all["largest"]["best-fit"]["batch"], 64);
    assert_eq!(all["largest"]["best-fit"]["is_end_of_range"], true);
    let kept = number(&all["kept"]);
    let at = |batch: u64| {
        let key = format!("model/alexnet/train/b{batch}");
        number(&json(folder.path(), &["plan", &key, "--planner", "best-fit"], 0)["height"])
    };
    let (of, next) = (at(23), at(24));
    assert!(of < next);
    let found = sweep(kept + next - 1);
    assert_eq!(found["largest"]["best-fit"]["batch"], 23);
    assert_eq!(sweep(1000)["largest"]["load"]["batch"], 0);
    write(folder.path(), "g.jsonl", BRANCHES);
    let graph = json(folder.path(), &["sweep", "g.jsonl", "--batch", "1..3", "--capacity", "1200"], 0);
    assert_eq!(graph["largest"]["load"]["batch"], 2);
}

#[test]
fn sweep_without_in_place_measures_another_problem() {
    let folder = tempdir().expect("a folder");
    let sweep = ["sweep", "squeezenet1-0", "--mode", "infer", "--batch", "1..1", "--planner", "portfolio"];
    let without = [&sweep[..], &["--in-place", "no"]].concat();
    let (with, without) = (json(folder.path(), &sweep, 0), json(folder.path(), &without, 0));
    assert_eq!((&with["in_place"], &without["in_place"]), (&true.into(), &false.into()));
    let key = "model/squeezenet1-0/infer/b1";
    let plain = json(folder.path(), &["plan", key, "--in-place", "no"], 0);
    assert_eq!(without["points"][0]["bytes"]["portfolio"], plain["height"]);
    assert!(number(&with["points"][0]["bytes"]["load"]) < number(&without["points"][0]["bytes"]["load"]));
}

#[test]
fn a_sweep_has_allocators_parameters_and_a_store() {
    let folder = tempdir().expect("a folder");
    let sweep = |more: &[&str]| {
        let arguments =
            ["sweep", "squeezenet1-1", "--mode", "train", "--batch", "1..4", "--planner", "best-fit"];
        json(folder.path(), &[arguments.as_slice(), more].concat(), 0)
    };
    let found = sweep(&["--allocator", "pytorch-caching", "--allocator", "profile-guided", "--out", "store"]);
    for point in found["points"].as_array().expect("points") {
        let bytes = |column: &str| number(&point["bytes"][column]);
        assert!(bytes("load") <= bytes("best-fit"), "{point}");
        assert!(
            bytes("load") <= bytes("profile-guided") && bytes("load") < bytes("pytorch-caching"),
            "{point}"
        );
    }
    // For each parameter a momentum keeps one number more than plain descent, Adam two.
    let kept = |optimizer: &str| number(&sweep(&["--optimizer", optimizer])["kept"]);
    let parameters = number(&json(folder.path(), &["model", "squeezenet1-1"], 0)["parameters"]);
    let kept = ["sgd", "momentum", "adam"].map(kept);
    assert_eq!(kept, [2, 3, 4].map(|numbers| 4 * numbers * parameters));
    assert_eq!(number(&found["kept"]), kept[1]);
    if cfg!(feature = "reports") {
        run(folder.path(), &["report", "store", "-o", "pages"], 0);
        let table = std::fs::read_to_string(folder.path().join("pages/tables/model_largest_batch.csv"));
        let table = table.expect("the largest batches");
        let line = format!("squeezenet1-1/train,pytorch-caching (allocator),{},>= 4,", kept[1]);
        assert!(table.contains(&line), "{table}");
    }
}

#[test]
fn a_graph_file_grows_from_the_batch_that_it_was_made_for() {
    let folder = folder_with("g.jsonl", BRANCHES);
    let load = |batch: &str, of: &str| {
        let arguments = ["sweep", "g.jsonl", "--planner", "bump", "--batch", batch, "--graph-batch", of];
        let found = json(folder.path(), &arguments, 0);
        number(&found["points"][0]["bytes"]["load"])
    };
    assert_eq!([load("1", "1"), load("6", "2"), load("1", "2"), load("1", "32")], [576, 1728, 288, 18]);
    // External tensors do not scale, and are kept beside the plan.
    let external = BRANCHES.replace("\"x\",\"bytes\":64", "\"x\",\"external\":true,\"bytes\":64");
    write(folder.path(), "e.jsonl", external);
    let found = json(folder.path(), &["sweep", "e.jsonl", "--batch", "3", "--planner", "bump"], 0);
    assert_eq!((number(&found["kept"]), number(&found["points"][0]["bytes"]["load"])), (64, 3 * 544));
    assert_eq!(found["points"][0]["workload"], "graph/e/b3");
    for (arguments, reason) in [
        (["--graph-batch", "128", "--batch", "1..64"], "has no whole size at batch 1"),
        (["--optimizer", "adam", "--batch", "1..2"], "--optimizer is for nets"),
    ] {
        assert_tells(&folder, &[["sweep", "g.jsonl"].as_slice(), &arguments].concat(), 2, &[reason]);
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a case after another")]
fn what_is_wrong_with_a_net_or_a_graph_is_named() {
    let folder = tempdir().expect("a folder");
    let header = r#"{"planlab":"graph","version":1}"#;
    let any = r#"{"planlab":"graph","version":1,"order":"any"}"#;
    let files = [
        (
            "g1",
            format!(
                "{any}\n{{\"op\":\"f\",\"reads\":[\"b\"],\"writes\":[{{\"tensor\":\"a\",\"bytes\":1}}]}}\n\
                     {{\"op\":\"g\",\"reads\":[\"a\"],\"writes\":[{{\"tensor\":\"b\",\"bytes\":1}}]}}\n"
            ),
            "g1.jsonl:2: operations wait for each other in a cycle",
        ),
        (
            "g2",
            format!("{header}\n{{\"op\":\"f\",\"reads\":[\"nobody\"]}}\n"),
            "g2.jsonl:2: tensor `nobody` is unknown",
        ),
        (
            "g3",
            format!(
                "{header}\n{{\"op\":\"f\",\"reads\":[\"a\"]}}\n\
                     {{\"op\":\"g\",\"writes\":[{{\"tensor\":\"a\",\"bytes\":1}}]}}\n"
            ),
            "reads tensor `a` before",
        ),
        (
            "g4",
            format!(
                "{header}\n{{\"op\":\"f\",\"writes\":[{{\"tensor\":\"a\",\"bytes\":1}}]}}\n\
                     {{\"op\":\"g\",\"writes\":[{{\"tensor\":\"a\"}}]}}\n"
            ),
            "g4.jsonl:3: `f` (line 2) and `g` (line 3) both write tensor `a`",
        ),
        (
            "g5",
            format!(
                "{header}\n{{\"op\":\"f\",\"writes\":[{{\"tensor\":\"a\",\"bytes\":{0}}},\
                     {{\"tensor\":\"b\",\"bytes\":{0}}}]}}\n",
                u64::MAX
            ),
            "2^64",
        ),
    ];
    for (name, text, reason) in files {
        let file = format!("{name}.jsonl");
        write(folder.path(), &file, &text);
        for verb in ["plan", "graph", "sweep"] {
            assert_tells(&folder, &[verb, &file], 2, &[&file, reason]);
        }
    }
    for (arguments, reason) in [
        (["model", "alexnt"].as_slice(), "did you mean `alexnet`"),
        (&["model", "alexnet", "--batch", "0"], "'0' for '--batch"),
        (&["model", "alexnet", "--size", "8"], "call "),
        (&["model", "model/alexnet/infer/b2", "--batch", "4"], "contains its shape and batch"),
        (&["sweep", "model/alexnet/infer/b2"], "name the net alone"),
        (&["model", "alexnet", "--sequence", "8"], "sequence"),
        (&["model", "alexnet", "--batch", "18446744073709551615"], "2^56"),
        (&["model", "alexnet", "--workspace", "much"], "`much`"),
        (&["sweep", "alexnet", "--batch", "4..2"], "`4..2`"),
        (&["sweep", "alexnet", "--graph-batch", "2"], "--graph-batch is for graph files"),
        (&["sweep", "alexnet", "--capacity", "0.3"], "not a whole number of bytes"),
        (&["model", "alexnet", "--emit", "dot"], "--output"),
        (&["graph", "alexnet", "--allocator-model", "chainer"], "requests"),
        (&["graph", "model/alexnet/infer/b1/chainer"], "requests"),
        (&["model", "model/alexnet/infer/b1/chainer", "--emit", "dot", "-o", "a.dot"], "requests"),
    ] {
        assert_tells(&folder, arguments, 2, &[reason]);
    }
}
