//! Heights of every planner but the exact ones on small workloads, searches under a limit on their work;
//! changed only by `just bless`, with a line in the CHANGELOG.

use std::fmt::Write;
use std::path::Path;

use planlab_dsa::{Budget, Guarantee, execute};
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

/// Units of work of a search.
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
            // A search goes on until it is stopped.
            let work = descriptor.randomized.then_some(SEARCH_WORK);
            let outcome = execute(&*planner, instance, Budget { work, ..Budget::default() }, 0);
            let height = outcome.height().map_or("-".to_owned(), |height| height.to_string());
            let (buffers, load) = (instance.len(), instance.load().bytes);
            let _ = writeln!(table, "{workload},{buffers},{load},{},{height}", descriptor.key);
        }
    }
    table
}

#[test]
fn heights_are_as_blessed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/heights.csv");
    let found = heights();
    if std::env::var_os("PLANLAB_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        std::fs::write(&path, &found).expect("writable");
    }
    let blessed = std::fs::read_to_string(&path).expect("run `just bless` once");
    for (line, (found, blessed)) in found.lines().zip(blessed.lines()).enumerate() {
        assert_eq!(found, blessed, "line {} of {}", line + 1, path.display());
    }
    assert_eq!(found.lines().count(), blessed.lines().count(), "rows came or went: `just bless`");
}
