//! Plans that outlive change: operations in another legal order, sentences of other lengths.

use planlab_dsa::{Digest, OnlineAllocator, Planning, Simulated};
use planlab_solvers::online::{Requests, Simulator, find_allocator};
use planlab_workloads::Catalog;
use serde_json::Value;
use tempfile::tempdir;

use crate::common::{folder_with, json, json_lines, outputs, planlab, run};

const NETS: [&str; 3] =
    ["model/googlenet/infer/b1", "model/inception-v3/infer/b1", "model/squeezenet1-0/train/b1"];

fn requests(key: &str) -> Requests {
    let trace = Catalog::new(None).load(key).unwrap_or_else(|error| panic!("{error}"));
    let op = |op: Option<&str>| Digest::of_bytes(op.unwrap_or_default().as_bytes()).as_number();
    let operations = trace.labels.buffers.iter().map(|label| op(label.op.as_deref())).collect();
    Requests::new(&trace.instance).with_operations(operations)
}

/// Plays propagations in turn under an audit; returns the planning counts before and after.
fn play(memory: &mut dyn OnlineAllocator, propagations: &[Requests]) -> [Planning; 2] {
    let planning = |memory: &dyn OnlineAllocator| memory.planning().expect("it plans");
    let before = planning(memory);
    for requests in propagations {
        let mut simulator = Simulator::new(requests, memory).with_audit();
        simulator
            .run_iteration()
            .and_then(|()| simulator.finish_propagation())
            .unwrap_or_else(|error| panic!("{error}"));
    }
    [before, planning(memory)]
}

fn orders(net: &str, seeds: std::ops::Range<u32>) -> Vec<Requests> {
    seeds.map(|seed| requests(&format!("{net}/order{seed}"))).collect()
}

#[test]
fn a_legal_order_breaks_the_counter_and_not_the_plan_by_operations() {
    for net in NETS {
        let planned = |key: &str| {
            let mut memory = find_allocator(key).expect("registered").build(Box::new(Simulated::new()));
            // The plan is made in the net's own order, and learns from thirty others.
            play(memory.as_mut(), &[requests(net), requests(net)]);
            play(memory.as_mut(), &orders(net, 0..30));
            let [before, after] = play(memory.as_mut(), &orders(net, 30..40));
            let all = (after.planned + after.missed.total()) - (before.planned + before.missed.total());
            (after.planned - before.planned, all, after.plans - before.plans)
        };
        let ((counter, all, plans), (scoped, ..)) =
            (planned("profile-guided"), planned("profile-guided/scoped"));
        assert!(
            5 * counter < 4 * all && plans == 10,
            "{net}: the counter serves {counter} of {all}, {plans} plans"
        );
        assert!(100 * scoped >= 98 * all, "{net}: operations serve {scoped} of {all}");
    }
}

#[test]
fn legal_orders_are_played_in_turn_and_misses_counted() {
    let folder = tempdir().expect("a folder");
    let keys: Vec<String> = (0..6).map(|seed| format!("model/googlenet/infer/b1/order{seed}")).collect();
    let mut words = vec!["simulate", "--json", "--allocator", "profile-guided*", "--iterations", "2"];
    words.extend(keys.iter().map(String::as_str));
    let (stdout, _) = run(folder.path(), &words, 0);
    let objects = json_lines(&stdout);
    let last = |key: &str| {
        let object = objects.iter().find(|object| object["allocator"] == key).expect("played");
        let last = object["propagations"].as_array().expect("each").last().expect("one").clone();
        let [planned, missed] = ["planned", "missed"].map(|field| last[field].as_u64().expect("a number"));
        assert_eq!(planned + missed, object["requests"].as_u64().expect("a number"), "{object}");
        let sum: u64 =
            object["missed"].as_object().expect("reasons").values().filter_map(Value::as_u64).sum();
        assert_eq!(sum, missed, "{object}");
        (planned, missed)
    };
    let (counter, kinds, scoped) =
        (last("profile-guided"), last("profile-guided/kinds"), last("profile-guided/scoped"));
    // Each order is a kind: unknown in the first round, planned in the second.
    assert_eq!(kinds.0, kinds.1);
    assert!(scoped.0 > kinds.0 && scoped.0 > counter.0, "{scoped:?} {kinds:?} {counter:?}");
    let (_, stderr) =
        run(folder.path(), &["simulate", "model/alexnet/infer/b1/chainer/order3", "--allocator", "tlsf"], 2);
    assert!(stderr.contains("has no graph"), "{stderr}");
}

#[test]
fn what_a_plan_by_operations_holds_of_sentences_is_less_than_the_pool() {
    let folder = tempdir().expect("a folder");
    let keys: Vec<String> = (0..10).map(|n| format!("model/seq2seq/train/b128/iteration{n}")).collect();
    let mut words = vec!["simulate", "--json"];
    for key in ["cupy4-pool", "profile-guided", "profile-guided/kinds", "profile-guided/scoped"] {
        words.extend(["--allocator", key]);
    }
    words.extend(keys.iter().map(String::as_str));
    let (stdout, _) = run(folder.path(), &words, 0);
    let end: Vec<u64> =
        json_lines(&stdout).iter().map(|object| object["reserved_end"].as_u64().expect("bytes")).collect();
    let [pool, counter, kinds, scoped] = end[..] else { panic!("{end:?}") };
    assert!(scoped < pool && kinds < pool && counter > pool, "{end:?}");
}

#[test]
fn trace_without_operations_is_unavailable_with_a_reason() {
    let folder = folder_with("t.csv", "id,lower,upper,size\nx,0,3,4096\ny,1,2,1024\n");
    let object = json(folder.path(), &["simulate", "t.csv", "--allocator", "profile-guided/scoped"], 3);
    assert_eq!(
        (&object["status"], &object["propagations"]),
        (&"unavailable".into(), &Value::Array(Vec::new()))
    );
    let (_, stderr) = run(folder.path(), &["simulate", "t.csv", "--allocator", "profile-guided/scoped"], 3);
    assert!(stderr.contains("names no operations"), "{stderr}");
    for device in ["host", "simulated-cuda"] {
        let mut command = planlab(folder.path());
        let words = ["replay", "t.csv", "--json", "--iterations", "3", "--device", device];
        command.args(words).args(["--allocator", "profile-guided/scoped"]);
        let rows = json_lines(&outputs(&mut command, 3).0);
        let row = &rows[0]["row"];
        assert_eq!(row["status"], "unavailable", "{row}");
        assert!(row["reason"].as_str().is_some_and(|reason| reason.contains("names no operations")), "{row}");
    }
}

#[test]
fn on_real_memory_operations_are_named_and_every_byte_is_checked() {
    let folder = tempdir().expect("a folder");
    let keys: Vec<String> = (0..4).map(|seed| format!("model/squeezenet1-0/infer/b1/order{seed}")).collect();
    for (device, work) in [("host", "pattern"), ("simulated-cuda", "kernels")] {
        let mut words = vec!["replay", "--json", "--device", device, "--work", work, "--warm-up", "0"];
        words.extend(["--iterations", "24", "--allocator", "profile-guided*"]);
        words.extend(keys.iter().map(String::as_str));
        let (stdout, _) = run(folder.path(), &words, 0);
        let planned = |key: &str| {
            let rows = json_lines(&stdout);
            let row = rows
                .iter()
                .map(|one| &one["row"])
                .find(|row| row["contender"] == key)
                .expect("a row")
                .clone();
            assert_eq!(row["status"], "complete", "{row}");
            row["samples"].as_array().and_then(|all| all.last()?["planned"].as_u64()).expect("a number")
        };
        let [scoped, kinds, counter] =
            ["profile-guided/scoped", "profile-guided/kinds", "profile-guided"].map(planned);
        assert!(scoped > kinds && scoped > counter, "{device}: {scoped} {kinds} {counter}");
        // Five of six rounds: each order is a kind.
        assert_eq!(kinds, 5 * 260, "{device}");
    }
}
