//! Framework rows are read, refused, merged and audited.

use std::fs;
use std::path::Path;

use crate::common::{fixtures, sole_finding};
use planlab_dsa::performance::End;
use planlab_results::audit::{Fault, audit_ends, audit_frameworks};
use planlab_results::framework::{FrameworkRow, read_frameworks};
use planlab_results::{StoreError, merge_stores};

/// A line in the format of the script.
fn line(contender: &str, repetition: u32, started_ns: u64, digest: &str) -> String {
    fixtures::framework("resnet18", contender, [4; 3], 1, digest)
        .replace("\"repetition\":0", &format!("\"repetition\":{repetition}"))
        .replace("\"started_ns\":1", &format!("\"started_ns\":{started_ns}"))
}

/// A line of a training step within a budget.
fn step(contender: &str, digest: &str) -> String {
    fixtures::budget_step("resnet18", (contender, "share=0.6"), 4, (Some(2), 1, 1), digest)
}

fn folder(lines: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("frameworks.jsonl"), lines).expect("written");
    folder
}

fn read(folder: &Path) -> Vec<FrameworkRow> {
    read_frameworks(folder).expect("rows")
}

#[test]
fn of_a_cell_and_repetition_the_row_with_figures_counts_then_the_later() {
    let failed = line("glibc", 0, 9, "x").replace("complete", "failed");
    let lines = line("glibc", 0, 1, "x") + &failed + &line("glibc", 0, 2, "y") + &line("glibc", 1, 1, "x");
    let rows = read(folder(&lines).path());
    let kept: Vec<_> =
        rows.iter().map(|row| (row.repetition, row.started_ns, row.digest.as_deref())).collect();
    assert_eq!(kept, [(0, 2, Some("y")), (1, 1, Some("x"))]);
}

#[test]
fn a_bad_line_is_named_with_its_file_and_the_reason() {
    for (bad, reason) in [
        ("[]\n".to_owned(), "invalid type"),
        (line("glibc", 0, 1, "x").replace("\"net\":\"resnet18\",", ""), "missing field `net`"),
        (line("glibc", 0, 1, "x").replace("[1,3,2]", "[1]"), "different lengths"),
        (line("glibc", 0, 1, "x").replace("\"digest\":\"x\"", "\"digest\":null"), "no `digest`"),
        (step("torch/dp", "x").replace("\"counted_peak\":1048576", "\"counted_peak\":null"), "no peak"),
    ] {
        let folder = folder(&(line("tcmalloc", 0, 1, "x") + &bad));
        let error = read_frameworks(folder.path()).expect_err("a bad line");
        assert_eq!(error.line(), Some(2), "{error}");
        let text = error.to_string();
        let head = "frameworks.jsonl:2: not a valid framework row: ";
        assert!(text.contains(head) && text.contains(reason), "{text}");
    }
    let newer = folder(&line("glibc", 0, 1, "x").replace("\"schema\":1", "\"schema\":3"));
    let error = read_frameworks(newer.path()).expect_err("a newer row");
    assert!(matches!(error, StoreError::Schema { found: 3, known: 2, .. }), "{error}");
}

#[test]
fn torn_last_line_is_skipped_and_reported() {
    let whole = line("glibc", 0, 1, "x");
    let folder = folder(&(whole.clone() + &whole[..40]));
    assert_eq!(read(folder.path()).len(), 1);
    let torn = sole_finding(audit_ends(folder.path()).expect("looked at"), Fault::TornLine);
    assert!(
        torn.message.contains("frameworks.jsonl:2: the last line was cut short after 40 bytes"),
        "{torn}"
    );
}

#[test]
fn a_merge_carries_rows_along_and_keeps_what_counts() {
    let one = folder(&(line("glibc", 0, 1, "x") + &line("planlab", 0, 1, "x")));
    let two = folder(&(line("glibc", 0, 2, "y") + &line("tcmalloc", 0, 1, "x")));
    let into = tempfile::tempdir().expect("a folder");
    let merged = merge_stores(&[one.path(), two.path()], into.path()).expect("merged");
    assert_eq!((merged.read, merged.changed), (4, 3));
    let rows = read(into.path());
    let kept: Vec<_> = rows.iter().map(|row| (row.contender.as_str(), row.started_ns)).collect();
    assert_eq!(kept, [("glibc", 2), ("planlab", 1), ("tcmalloc", 1)]);
    let again = merge_stores(&[two.path()], into.path()).expect("merged");
    assert_eq!((again.read, again.changed), (2, 0));
}

#[test]
fn merge_into_a_file_that_was_cut_short_keeps_its_rows() {
    let failed = line("glibc", 0, 9, "x").replace("complete", "failed");
    let into = folder(&(line("planlab", 0, 1, "x") + &failed + &failed[..40]));
    let merged = merge_stores(&[folder(&line("glibc", 0, 1, "x")).path()], into.path()).expect("merged");
    assert_eq!(merged.changed, 1);
    let kept: Vec<_> = read(into.path()).iter().map(|row| (row.contender.clone(), row.started_ns)).collect();
    assert_eq!(kept, [("planlab".to_owned(), 1), ("glibc".to_owned(), 1)]);
    assert_eq!(audit_ends(into.path()).expect("looked at"), []);
}

#[test]
fn outputs_that_differ_are_found() {
    let equal = line("glibc", 0, 1, "x") + &line("planlab", 0, 1, "x");
    assert_eq!(audit_frameworks(&read(folder(&equal).path())), []);
    let other = equal + &line("tcmalloc", 0, 1, "y");
    let finding = sole_finding(audit_frameworks(&read(folder(&other).path())), Fault::InstanceMismatch);
    let text = finding.to_string();
    assert!(text.contains("x of glibc and planlab") && text.contains("y of tcmalloc"), "{text}");
    assert!(!finding.is_refutation());
}

#[test]
fn gradients_of_our_steps_must_be_those_without_a_limit() {
    let plain = line("glibc", 0, 1, "w") + &step("unconstrained", "x") + &step("planlab/eager", "x");
    let torch = plain + &step("torch/dp", "y");
    assert_eq!(audit_frameworks(&read(folder(&torch).path())), [], "PyTorch may repeat random operations");
    let ours = torch + &step("planlab/compiled", "z");
    let finding = sole_finding(audit_frameworks(&read(folder(&ours).path())), Fault::InstanceMismatch);
    let values = "x of unconstrained and planlab/eager, z of planlab/compiled";
    assert!(finding.message.ends_with(values), "{finding}");
}

#[test]
fn memory_of_a_step_is_read_and_merged_with_its_row() {
    let refused = step("planlab/eager", "x")
        .replace("\"complete\",\"reason\":\"\"", "\"out-of-memory\",\"reason\":\"it does not fit\"")
        .replace("\"least_peak\":null", "\"least_peak\":7");
    let source = folder(&(step("planlab/compiled", "x") + &refused));
    let into = tempfile::tempdir().expect("a folder");
    merge_stores(&[source.path()], into.path()).expect("merged");
    let rows = read(into.path());
    let budgets = rows.iter().filter_map(|row| row.budget.as_ref());
    let peaks: Vec<_> =
        budgets.map(|budget| (budget.capacity, budget.counted_peak, budget.least_peak)).collect();
    assert_eq!(peaks, [(Some(2 << 20), Some(1 << 20), None), (Some(2 << 20), Some(1 << 20), Some(7))]);
    assert_eq!(rows.iter().map(|row| row.status).collect::<Vec<_>>(), [End::Complete, End::OutOfMemory]);
}
