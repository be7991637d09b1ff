//! Checks heights of all but the exact planners on small workloads (searches with a work limit), and what planners
//! refuse. The tables change only by `just bless`, with a line in the CHANGELOG.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use planlab_dsa::{
    Arena, ArenaId, Budget, Buffer, BufferId, Bytes, Guarantee, Instance, KeepApart, LiveRange, execute,
};
use planlab_workloads::Catalog;

const WORKLOADS: [&str; 12] = [
    "chainer/alexnet/infer/b1",
    "chainer/googlenet/infer/b1",
    "chainer/resnet50/infer/b1",
    "chainer/resnet50/train/b32",
    "torch/resnet50/train/b64",
    "torch/gpt2-small/train/b8/s1024",
    "synthetic/uniform/n200/s1",
    "synthetic/power-law/n200/s1",
    "synthetic/chain/n200/s1",
    "synthetic/transformer/n200/s1",
    "synthetic/lstm/n200/s1",
    "synthetic/guillotine/n200/s1",
];

/// The work limit of a search.
const SEARCH_WORK: u64 = 300_000;

fn heights() -> String {
    let catalog = Catalog::new(None);
    let mut table = "# Made by `just bless`: workload, buffers, load, planner, height\n".to_owned();
    for workload in WORKLOADS {
        let trace = catalog.load(workload).unwrap_or_else(|error| panic!("{workload}: {error}"));
        let instance = &trace.instance;
        for planner in planlab_solvers::registry() {
            let descriptor = planner.descriptor();
            if descriptor.guarantee == Guarantee::Exact
                || descriptor.practical.is_some_and(|n| instance.len() > n as usize)
            {
                continue;
            }
            // A search runs until it is stopped.
            let work = descriptor.randomized.then_some(SEARCH_WORK);
            let outcome = execute(&*planner, instance, Budget { work, ..Budget::default() }, 0);
            let height = outcome.height().map_or("-".to_owned(), |height| height.to_string());
            let (buffers, load) = (instance.len(), instance.load().bytes);
            let _ = writeln!(table, "{workload},{buffers},{load},{},{height}", descriptor.key);
        }
    }
    table
}

/// Which planners refuse several arenas, and pairs to keep apart.
fn refusals() -> String {
    let buffer = |arena: u16| {
        let live = LiveRange::new(0, 2).expect("not empty");
        Buffer::new(Bytes::new(4), live).in_arena(ArenaId::new(arena))
    };
    let arena = Arena { name: String::new(), capacity: None };
    let pair = KeepApart { first: BufferId::new(0), second: BufferId::new(1) };
    let arenas = Instance::builder().buffers([0, 1].map(buffer)).arenas([arena.clone(), arena]).build();
    let apart = Instance::builder().buffers([0, 0].map(buffer)).apart([pair]).build();
    let instances = [arenas.expect("valid"), apart.expect("valid")];
    let mut table = "# Made by `just bless`: planner, refuses arenas, refuses pairs apart\n".to_owned();
    for planner in planlab_solvers::registry() {
        let descriptor = planner.descriptor();
        let [arenas, apart] =
            instances.each_ref().map(|instance| descriptor.honours.first_refused_feature(instance).is_some());
        let _ = writeln!(table, "{},{arenas},{apart}", descriptor.key);
    }
    table
}

/// Compares a table with the blessed one. Rows of a planner without blessed rows are new and do not fail.
fn check(file: &str, found: &str, planner: fn(&str) -> Option<&str>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    if std::env::var_os("PLANLAB_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        std::fs::write(&path, found).expect("writable");
    }
    let blessed = std::fs::read_to_string(&path).expect("run `just bless` once");
    let known: BTreeSet<Option<&str>> = blessed.lines().map(planner).collect();
    let there: BTreeSet<Option<&str>> = found.lines().map(planner).collect();
    // A lean build lacks the solvers of other projects.
    let is_optional = |line: &&str| ["mip/", "cp/"].iter().any(|family| line.starts_with(family));
    let found: Vec<&str> = found.lines().filter(|line| known.contains(&planner(line))).collect();
    let expected = blessed.lines().filter(|line| there.contains(&planner(line)) || !is_optional(line));
    let expected: Vec<&str> = expected.collect();
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected, "{}", path.display());
    }
    assert_eq!(found.len(), expected.len(), "rows went: `just bless`");
}

#[test]
fn heights_are_as_blessed() {
    check("heights.csv", &heights(), |line| line.split(',').nth(3));
}

#[test]
fn planners_refuse_what_is_blessed() {
    check("refusals.csv", &refusals(), |line| line.split(',').next());
}
