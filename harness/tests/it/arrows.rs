//! The crates' arrows point one way, and heavy dependencies stay where they belong.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// What each crate of the workspace may see of the others.
const ARROWS: [(&str, &[&str]); 12] = [
    ("planlab-files", &[]),
    ("planlab-dsa", &[]),
    ("planlab-graph", &["planlab-dsa", "planlab-files"]),
    ("planlab-solvers", &["planlab-dsa", "planlab-graph"]),
    ("planlab-workloads", &["planlab-dsa", "planlab-graph", "planlab-files"]),
    ("planlab-replay", &["planlab-dsa"]),
    ("planlab-results", &["planlab-dsa", "planlab-files"]),
    ("planlab-reports", &["planlab-dsa", "planlab-results", "planlab-files"]),
    ("planlab-interpose", &["planlab-dsa", "planlab-solvers", "planlab-replay"]),
    // The workloads are for its tests.
    ("planlab-capi", &["planlab-dsa", "planlab-solvers", "planlab-workloads"]),
    ("planlab-python", &["planlab-dsa", "planlab-graph", "planlab-solvers", "planlab-workloads"]),
    (
        "planlab",
        &[
            "planlab-files",
            "planlab-dsa",
            "planlab-graph",
            "planlab-solvers",
            "planlab-workloads",
            "planlab-replay",
            "planlab-results",
            "planlab-reports",
            // For its tests, which preload it.
            "planlab-interpose",
        ],
    ),
];

/// Dependencies that belong to few crates.
const HOMES: [(&str, &[&str]); 11] = [
    ("polars", &["planlab-results"]),
    ("polars-io", &["planlab-results"]),
    ("plotters", &["planlab-reports"]),
    ("good_lp", &["planlab-solvers"]),
    ("coin_cbc", &["planlab-solvers"]),
    ("highs", &["planlab-solvers"]),
    ("pumpkin-core", &["planlab-solvers"]),
    ("cudarc", &["planlab-replay"]),
    ("anyhow", &["planlab"]),
    ("pyo3", &["planlab-python"]),
    ("numpy", &["planlab-python"]),
];

/// Where unsafe code may be; elsewhere the workspace's lints deny it.
const UNSAFE_HOMES: [&str; 6] = [
    "replay",
    "interpose/src/preload",
    "interpose/src/planning",
    "interpose/src/signals.rs",
    "capi/src/border.rs",
    "capi/tests",
];

/// The lint that a file with unsafe code has to allow. In two pieces: this file must not look like one.
const UNSAFE_LINT: &str = concat!("unsafe", "_code");

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// For each crate of the workspace, all it depends on directly (for tests and builds too).
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let name = |value: &Value| value["name"].as_str().expect("a name").to_owned();
    let packages = metadata["packages"].as_array().expect("packages");
    packages
        .iter()
        .map(|package| {
            let all = package["dependencies"].as_array().expect("dependencies");
            (name(package), all.iter().map(name).collect())
        })
        .collect()
}

#[test]
fn arrows_point_one_way() {
    let found = dependencies();
    let known: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    assert_eq!(found.keys().map(String::as_str).collect::<BTreeSet<_>>(), known, "a crate without a place");
    for (name, allowed) in ARROWS {
        let sees: BTreeSet<&str> = found[name]
            .iter()
            .map(String::as_str)
            .filter(|other| known.contains(other) && *other != name)
            .collect();
        let allowed: BTreeSet<&str> = allowed.iter().copied().collect();
        assert!(sees.is_subset(&allowed), "{name} sees {:?}", sees.difference(&allowed));
    }
}

#[test]
fn heavy_dependencies_stay_at_home() {
    let found = dependencies();
    for (heavy, homes) in HOMES {
        let users: Vec<&String> =
            found.iter().filter(|(_, uses)| uses.contains(heavy)).map(|(name, _)| name).collect();
        assert!(!users.is_empty(), "nothing uses {heavy}");
        assert!(users.iter().all(|user| homes.contains(&user.as_str())), "{heavy} is used by {users:?}");
    }
}

/// The Rust files in a folder and those below, without what was built.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("readable").path());
    entries
        .flat_map(|path| match path.extension() {
            _ if path.is_dir() && !path.ends_with("target") => sources(&path),
            Some(ending) if ending == "rs" && path.is_file() => vec![path],
            _ => Vec::new(),
        })
        .collect()
}

#[test]
fn unsafety_stays_at_home() {
    let root = Path::new(ROOT);
    let homes = UNSAFE_HOMES.map(|home| root.join(home));
    let mut users = 0;
    for (name, _) in dependencies() {
        let folder = name.strip_prefix("planlab-").unwrap_or("harness");
        for file in sources(&root.join(folder)) {
            if std::fs::read_to_string(&file).expect("text").contains(UNSAFE_LINT) {
                assert!(
                    homes.iter().any(|home| file.starts_with(home)),
                    "{} has unsafe code",
                    file.display()
                );
                users += 1;
            }
        }
    }
    assert!(users > 0);
}
