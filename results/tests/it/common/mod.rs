//! Makes rows and stores for tests.

pub(crate) mod fixtures;

use planlab_results::audit::{Fault, Finding};
use planlab_results::{Record, Store};
use tempfile::TempDir;

pub(crate) use fixtures::record as row;

pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// The one finding, which is of this kind.
#[track_caller]
pub(crate) fn sole_finding(mut findings: Vec<Finding>, fault: Fault) -> Finding {
    let faults: Vec<Fault> = findings.iter().map(|finding| finding.fault).collect();
    assert_eq!(faults, [fault], "{findings:?}");
    findings.remove(0)
}

/// An open store without rows.
pub(crate) fn empty_store() -> (TempDir, Store) {
    let dir = folder();
    let store = Store::open(dir.path()).expect("opens");
    (dir, store)
}

/// A store with these rows in its journal.
pub(crate) fn store_of(rows: &[Record]) -> TempDir {
    let (dir, mut store) = empty_store();
    store.append_all(rows).expect("appends");
    dir
}
