//! Schedule rows are kept, merged, repaired and audited.

use std::fs;
use std::path::Path;

use crate::common::fixtures::{schedule as row, span};
use crate::common::folder;
use planlab_results::audit::audit_schedules;
use planlab_results::schedule::{
    Document, MemoryStep, ScheduleRow, Timeline, load_document, load_timeline, read_schedules,
};
use planlab_results::{Status, Store, StoreError, merge_stores, repair_store};

fn store(folder: &Path, rows: &[ScheduleRow]) -> Store {
    let mut store = Store::open(folder).expect("opens");
    rows.iter().for_each(|row| store.append_schedule(row).expect("appends"));
    store
}

#[test]
fn rows_come_back_as_they_were_and_the_latest_counts() {
    let dir = folder();
    let later = row("a", "pooch/retain").with(|row| (row.iteration_ns, row.status) = (None, Status::Crashed));
    let rows = [row("a", "pooch/retain"), row("b", "swap-all"), later.clone()];
    let store = store(dir.path(), &rows);
    assert_eq!(store.schedule("a", 0), Some(&later));
    drop(store);
    assert_eq!(read_schedules(dir.path()).expect("reads"), [later, rows[1].clone()]);
}

#[test]
#[cfg(feature = "parquet")]
fn compaction_loses_nothing_and_a_lost_shard_is_missed() {
    let dir = folder();
    let mut store = store(dir.path(), &[row("a", "pooch/retain"), row("b", "swap-all")]);
    let shard = store.compact_schedules().expect("compacts").expect("a shard");
    store.append_schedule(&row("c", "swap-opt")).expect("appends");
    drop(store);
    let cells: Vec<String> =
        read_schedules(dir.path()).expect("reads").into_iter().map(|row| row.cell).collect();
    assert_eq!(cells, ["a", "b", "c"]);
    assert_eq!(read_schedules(dir.path()).expect("reads")[0], row("a", "pooch/retain"));
    fs::remove_file(&shard).expect("removed");
    assert_eq!(planlab_results::missing_shards(dir.path()).expect("reads")[0].rows, 2);
    assert_eq!(Store::open(dir.path()).expect("opens").notices().len(), 1);
}

#[test]
fn a_damaged_line_is_named_and_set_aside() {
    let dir = folder();
    drop(store(dir.path(), &[row("a", "pooch/retain"), row("b", "swap-all")]));
    let journal = dir.path().join("schedules.jsonl");
    let text = fs::read_to_string(&journal).expect("text");
    fs::write(&journal, text.replacen("pooch", "pouch", 1)).expect("written");
    let error = read_schedules(dir.path()).expect_err("damaged");
    assert!(matches!(error, StoreError::BadLine { line: 1, .. }), "{error}");
    assert_eq!(repair_store(dir.path()).expect("repairs").len(), 1);
    assert_eq!(read_schedules(dir.path()).expect("reads"), [row("b", "swap-all")]);
}

#[test]
fn a_merge_takes_rows_and_documents() {
    let (one, two, all) = (folder(), folder(), folder());
    let worse = row("a", "swap-all")
        .with(|row| (row.status, row.iteration_ns, row.started_ns) = (Status::Timeout, None, 9));
    let store_one = store(one.path(), &[row("a", "swap-all")]);
    let digest = store_one.put_document(Document::Schedule, "{}\n").expect("kept");
    let timeline = Timeline {
        spans: vec![span("compute", "forward", 0, 5)],
        memory: vec![MemoryStep { at_ns: 0, bytes: 8 }],
        capacity: 10,
        iteration_ns: 5,
    };
    store_one.put_timeline(&digest, &timeline).expect("kept");
    drop((store_one, store(two.path(), &[worse, row("b", "swap-opt")])));
    let into = all.path().join("merged");
    let merged = merge_stores(&[one.path(), two.path()], &into).expect("merges");
    assert_eq!((merged.read, merged.changed, merged.files), (3, 2, 2));
    let rows = read_schedules(&into).expect("reads");
    assert_eq!(rows, [row("a", "swap-all"), row("b", "swap-opt")]);
    assert_eq!(load_document(&into, Document::Schedule, &digest).expect("there"), "{}\n");
    assert_eq!(load_timeline(&into, &digest).expect("there"), timeline);
    fs::write(into.join("events").join(format!("{digest}.jsonl")), "{ }\n").expect("written");
    let error = load_document(&into, Document::Schedule, &digest).expect_err("damaged").to_string();
    assert!(error.contains("another digest"), "{error}");
}

#[test]
fn infeasible_row_needs_a_proof_that_no_schedule_refutes() {
    let infeasible = |least_memory| {
        row("a", "joint").with(|row| {
            row.status = Status::Infeasible;
            row.problem = "ef".repeat(32);
            row.capacity = 1_000_000_000;
            row.iteration_ns = None;
            row.live_peak = None;
            row.least_memory = least_memory;
        })
    };
    let proved = infeasible(Some(1_000_000_001));
    assert_eq!(audit_schedules(&[proved.clone(), row("b", "swap-all")]), []);
    let only_finding = |rows: &[ScheduleRow]| {
        let findings = audit_schedules(rows);
        assert_eq!(findings.len(), 1, "{findings:?}");
        (findings[0].is_refutation(), findings[0].to_string())
    };
    for least_memory in [None, Some(1_000_000_000)] {
        let (_, text) = only_finding(&[infeasible(least_memory)]);
        assert!(text.contains("is not above its capacity of 1000000000 bytes"), "{text}");
    }
    let (_, text) = only_finding(&[proved.clone().with(|row| row.iteration_ns = Some(2_000_000_000))]);
    assert!(text.contains("it is infeasible, but has a schedule"), "{text}");
    let small = row("b", "swap-all").with(|row| row.live_peak = Some(950_000_000));
    let (is_refuted, text) = only_finding(&[proved, small]);
    let claim =
        "joint claims that every schedule needs 1000000001 bytes, but one of swap-all takes 950000000";
    assert!(is_refuted && text.contains(claim), "{text}");
}

#[test]
fn rows_that_contradict_each_other_or_themselves_are_found() {
    let good = [row("a", "pooch/retain"), row("b", "swap-all")];
    assert_eq!(audit_schedules(&good), []);
    let broken = |change: &dyn Fn(&mut ScheduleRow)| {
        let mut rows = good.clone();
        change(&mut rows[0]);
        let findings = audit_schedules(&rows);
        assert_eq!(findings.len(), 1, "{findings:?}");
        (findings[0].is_refutation(), findings[0].to_string())
    };
    let (is_refuted, text) = broken(&|row| {
        row.bound_scope = "any".to_owned();
        row.bound_ns = 2_500_000_000;
        row.iteration_ns = Some(3_000_000_000);
    });
    assert!(is_refuted && text.contains("but one of swap-all takes 2000000000 ns"), "{text}");
    let mut fast = good.clone();
    fast[0].iteration_ns = Some(1_650_000_000);
    let findings = audit_schedules(&fast);
    let claims: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(findings.len() == 2 && findings.iter().all(|finding| finding.is_refutation()), "{claims:?}");
    assert!(claims.iter().all(|claim| claim.contains("takes 1650000000 ns")), "{claims:?}");
    let (is_refuted, text) = broken(&|row| {
        // A problem with more memory: the other row's schedule fits into it.
        row.problem = "ef".repeat(32);
        row.capacity += 1_000_000_000;
        row.bound_scope = "any".to_owned();
        (row.bound_ns, row.iteration_ns) = (2_000_000_010, Some(3_000_000_000));
    });
    assert!(is_refuted && text.contains("but one of swap-all takes 2000000000 ns"), "{text}");
    let mut unrelated = good.clone();
    unrelated[0].problem = "ef".repeat(32);
    (unrelated[0].bound_ns, unrelated[0].iteration_ns) = (2_500_000_000, Some(3_000_000_000));
    unrelated[0].bound_scope = "any".to_owned();
    let changes: [fn(&mut ScheduleRow); 4] = [
        |row| (row.capacity, row.live_peak, row.height) = (14_900_000_000, Some(14_900_000_000), None),
        |row| row.rates_digest = Some("ef".repeat(32)),
        |row| row.batch = 256,
        |row| row.bound_ns = 2_000_000_001,
    ];
    for change in changes {
        let mut rows = unrelated.clone();
        change(&mut rows[0]);
        assert_eq!(audit_schedules(&rows), []);
    }
    let (is_refuted, text) = broken(&|row| row.status = Status::InvalidPlan);
    assert!(is_refuted && text.contains("invalid-plan"), "{text}");
    for (change, reason) in [
        ((|row| row.kept = Some(65)) as fn(&mut ScheduleRow), "of 105"),
        (|row| row.live_peak = Some(15_000_000_000), "are in use at most"),
        (|row| row.height = Some(14_000_000_000), "are in use at once"),
        (|row| row.height_bound = Some(14_946_000_000), "below the proven"),
        (|row| row.iteration_ns = None, "has no time of an iteration"),
        (|row| row.compute_ns = 5, "rows disagree on the problem"),
    ] {
        let (is_refuted, text) = broken(&change);
        assert!(!is_refuted && text.contains(reason), "{reason}: {text}");
    }
}
