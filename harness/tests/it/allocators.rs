//! Compares our pools with real ones: bytes reserved for the same requests.

use crate::common::{assert_tells, folder_with, json, run};
use planlab_dsa::{OnlineAllocator, Simulated, Step, Usage};
use planlab_solvers::online::{ProfileGuided, Requests, Simulator, find_allocator};
use planlab_workloads::{Catalog, expected};
use tempfile::tempdir;

fn play(workload: &str, key: &str, iterations: u32, until: Option<u64>) -> Usage {
    let trace = Catalog::new(None).load(workload).unwrap_or_else(|error| panic!("{error}"));
    let mut requests = Requests::new(&trace.instance);
    if let Some(step) = until {
        requests = requests.with_until(Step::new(u32::try_from(step).expect("a step")));
    }
    let mut pool = find_allocator(key).expect("registered").build(Box::new(Simulated::new()));
    let mut simulator = Simulator::new(&requests, pool.as_mut()).with_audit();
    (0..iterations)
        .for_each(|_| simulator.run_iteration().unwrap_or_else(|error| panic!("{workload} {key}: {error}")));
    simulator.usage()
}

#[test]
fn both_cupy_pools_hold_what_the_real_ones_hold_after_five_propagations() {
    let expected = expected::expected_figures();
    assert_eq!(expected.propagation.len(), 16);
    for row in &expected.propagation {
        for (key, total) in [
            ("cupy1-pool", row.cupy1_pool),
            ("cupy2rc1-pool", row.cupy2_pool),
            ("cupy4-pool", row.cupy2_pool),
            ("network-wise", row.sum),
            ("device", row.load),
        ] {
            assert_eq!(play(&row.key, key, 5, None).reserved_peak, total, "{key} {}", row.key);
        }
    }
}

#[test]
fn the_cupy_pool_holds_what_the_real_one_holds_after_a_whole_process() {
    let expected = expected::expected_figures();
    assert_eq!(expected.process.len(), 14);
    for row in &expected.process {
        for key in ["cupy2rc1-pool", "cupy4-pool"] {
            let usage = play(&row.key, key, 1, Some(row.before_step));
            assert_eq!(usage.reserved, row.cupy2_pool_total, "{key} {}", row.key);
            assert_eq!(usage.used, row.cupy2_pool_used, "{key} {}", row.key);
        }
    }
}

/// Bytes that Chainer's requests reserve after five propagations, by an independent prototype of each pool's rules.
const PROPAGATIONS: [(&str, [u64; 5]); 7] = [
    ("alexnet/infer/b1", [25_165_824, 19_922_944, 10_622_464, 16_281_600, 20_328_448]),
    ("googlenet/infer/b1", [25_165_824, 15_728_640, 13_808_128, 36_311_040, 32_399_360]),
    ("resnet50/infer/b1", [27_262_976, 32_505_856, 22_639_104, 37_953_536, 42_110_976]),
    ("alexnet/train/b32", [488_636_416, 536_870_912, 392_278_016, 493_502_464, 637_943_808]),
    ("googlenet/train/b32", [1_556_086_784, 2_214_592_512, 1_150_837_248, 1_794_625_536, 1_877_897_216]),
    ("resnet50/train/b32", [3_227_516_928, 4_362_076_160, 3_076_393_472, 3_369_426_944, 3_977_601_024]),
    (
        "inception-resnet-v2/train/b32",
        [6_796_869_632, 8_589_934_592, 6_307_712_000, 7_992_172_544, 8_863_866_880],
    ),
];

/// The same after a whole process.
const PROCESSES: [(&str, [u64; 5]); 5] = [
    ("alexnet/process/b32", [1_231_028_224, 2_182_086_656, 1_186_676_736, 2_214_359_040, 2_278_899_712]),
    ("googlenet/process/b32", [1_654_652_928, 2_213_543_936, 1_467_146_240, 2_014_937_088, 2_052_345_856]),
    ("resnet50/process/b32", [3_443_523_584, 4_303_355_904, 3_475_682_304, 3_715_989_504, 4_370_620_416]),
    (
        "inception-resnet-v2/process/b32",
        [7_346_323_456, 8_589_934_592, 7_116_057_088, 8_703_287_296, 9_758_015_488],
    ),
    ("seq2seq/process/b32", [3_886_022_656, 8_589_934_592, 4_254_865_408, 7_729_049_600, 4_748_935_168]),
];

const POOLS: [&str; 5] =
    ["pytorch-caching", "tensorflow-bfc", "tensorflow-bfc/one-region", "mxnet-naive", "mxnet-rounded"];

#[test]
fn the_other_pools_hold_what_a_prototype_of_them_holds() {
    for (table, iterations) in [(&PROPAGATIONS[..], 5), (&PROCESSES, 1)] {
        for (workload, totals) in table {
            let workload = format!("chainer/{workload}");
            for (key, &total) in POOLS.into_iter().zip(totals) {
                let usage = play(&workload, key, iterations, None);
                assert_eq!(usage.reserved_peak.get(), total, "{key} {workload}");
            }
        }
    }
}

#[test]
fn a_planned_propagation_needs_the_plan_and_nothing_else() {
    for row in &expected::expected_figures().propagation {
        let usage = play(&row.key, "profile-guided", 5, None);
        assert_eq!(usage.reserved, row.best_fit_height, "{} {usage:?}", row.key);
    }
}

#[test]
fn sentences_of_other_lengths_are_planned_anew_and_served_soundly() {
    let load = |iteration: u32| {
        let key = format!("chainer/seq2seq/train/b64/iteration{iteration}");
        Requests::new(&Catalog::new(None).load(&key).unwrap_or_else(|error| panic!("{error}")).instance)
    };
    let iterations = [0, 1, 2, 9].map(load);
    let mut memory = ProfileGuided::new(Box::new(Simulated::new()));
    for round in 0..3 {
        for requests in &iterations {
            let mut simulator = Simulator::new(requests, &mut memory).with_audit();
            simulator
                .run_iteration()
                .and_then(|()| simulator.finish_propagation())
                .unwrap_or_else(|error| panic!("{error}"));
        }
        let planning = memory.planning().expect("it plans");
        assert_eq!(
            planning.planned + planning.missed.total(),
            (round + 1) * iterations.iter().map(Requests::request_count).sum::<u64>()
        );
    }
    let planning = memory.planning().expect("it plans");
    // A sentence longer than all before it causes a new plan; a shorter one does not.
    assert!((2..=4).contains(&planning.plans), "{planning:?}");
    assert!(planning.planned > 7 * planning.missed.total(), "{planning:?}");
    assert!(planning.time > std::time::Duration::ZERO, "{planning:?}");
}

#[test]
fn the_scan_of_a_propagation_is_as_long_as_that_of_the_real_pool() {
    // A steady iteration examines millions of bins; the real pool took 296 ms for it, and 0.35 ms for AlexNet's.
    for (workload, least, most) in [
        ("chainer/inception-resnet-v2/train/b32", 38_350_000, 38_450_000),
        ("chainer/alexnet/infer/b1", 1, 100_000),
    ] {
        let steps = |iterations| play(workload, "cupy2rc1-pool", iterations, None).search_steps;
        let steady = steps(5) - steps(4);
        assert!((least..=most).contains(&steady), "{workload}: {steady}");
        let sparse = play(workload, "cupy4-pool", 5, None).search_steps;
        assert!(sparse < steps(5) / 10, "{workload}: {sparse}");
    }
}

#[test]
fn simulate_prints_what_a_pool_reserves_and_costs() {
    let folder = tempdir().expect("a folder");
    let row = json(
        folder.path(),
        &["simulate", "chainer/alexnet/process/b32", "--allocator", "cupy2rc1-pool", "--until", "910"],
        0,
    );
    for (field, value) in [("reserved_end", 1_207_824_896_u64), ("live_end", 748_545_024), ("iterations", 1)]
    {
        assert_eq!(row[field], value, "{field}");
    }
    assert_eq!(row["status"], "complete");
    let (text, _) = run(folder.path(), &["simulate", "chainer/alexnet/infer/b1", "--allocator", "*"], 0);
    assert!(text.contains("tlsf") && text.contains("9.70 MiB (10169344) requested at once"), "{text}");
}

#[test]
fn simulate_names_the_buffer_that_ran_out_of_memory() {
    let folder = folder_with("t.csv", "id,lower,upper,size\nx,0,3,4096\ny,1,2,1024\nz,2,5,4096\n");
    let arguments = ["simulate", "t.csv", "--allocator", "cupy1-pool", "--capacity", "6000"];
    let row = json(folder.path(), &arguments, 3);
    assert_eq!((&row["status"], &row["reserved_peak"]), (&"out-of-memory".into(), &5120.into()));
    assert_tells(&folder, &arguments, 3, &["buffer 2: out of memory: 4096 bytes"]);
    assert_tells(&folder, &["simulate", "t.csv", "--allocator", "cupy2rc1-pol"], 2, &["cupy2rc1-pool"]);
}
