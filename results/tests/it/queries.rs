//! SQL over a store: compares the queries of docs/QUERIES.md with figures computed from the rows, and tries invalid
//! SQL.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use planlab_dsa::performance::End;
use planlab_dsa::{Bytes, Evidence, Scope, gap};
use planlab_results::audit::{Fault, audit};
use planlab_results::queries::{Cell, QueryAnswer, Tables};
use planlab_results::replay::{ReplayRow, read_rows};
use planlab_results::statistics::median;
use planlab_results::{Lane, PlannerRun, Point, Record, Status, Store, StoreError, group_by, read_records};
use tempfile::TempDir;

use crate::common::{empty_store, folder, row, sole_finding, store_of};
use crate::records::copy_records;

/// The query under a heading of docs/QUERIES.md.
fn question(heading: &str) -> String {
    let page = include_str!("../../../docs/QUERIES.md");
    let section = page.split("\n## ").find(|section| section.starts_with(heading)).expect("the heading");
    let (_, rest) = section.split_once("```sql\n").expect("a question");
    rest.split_once("```").expect("its end").0.to_owned()
}

/// A store of curated records, and its rows.
pub(crate) fn curated() -> (TempDir, Vec<Record>) {
    let store = copy_records("2026-11-21-2-core-vm");
    let rows = read_records(store.path()).expect("rows");
    assert!(rows.len() > 1000, "{}", rows.len());
    (store, rows)
}

fn answer(store: &Path, sql: &str) -> QueryAnswer {
    let tables = Tables::open(store).unwrap_or_else(|error| panic!("{error}"));
    tables.query_sql(sql).unwrap_or_else(|error| panic!("{sql}\n{error}"))
}

fn text(cell: &Cell) -> &str {
    let Cell::Text(text) = cell else { panic!("not a text: {cell:?}") };
    text
}

fn whole(cell: &Cell) -> u64 {
    let Cell::Integer(number) = cell else { panic!("not a whole number: {cell:?}") };
    u64::try_from(*number).expect("not negative")
}

fn real(cell: &Cell) -> f64 {
    match cell {
        Cell::Real(number) => *number,
        Cell::Integer(_) => f64::from(u32::try_from(whole(cell)).expect("small")),
        other => panic!("not a number: {other:?}"),
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1.0)
}

/// The best proven bound on any plan, and the lowest height, for one instance.
#[derive(Clone, Copy, Debug)]
struct Best {
    bound: u64,
    height: Option<u64>,
}

/// By brute force over all pairs of rows.
fn bests(rows: &[Record]) -> BTreeMap<&str, Best> {
    let by_instance = group_by(rows, |row| row.instance.as_str());
    let best = |rows: &Vec<&Record>| {
        let height = rows.iter().filter_map(|row| row.height).min();
        let honest = rows.iter().filter(|row| row.status != Status::BoundRefuted);
        let claims = honest.flat_map(|row| [row.bound, row.relaxed_load]);
        let bound = claims.filter(|&bound| height.is_none_or(|height| bound <= height)).max();
        Best { bound: bound.unwrap_or(0), height }
    };
    by_instance.iter().map(|(instance, rows)| (*instance, best(rows))).collect()
}

fn gap_of(row: &Record, bests: &BTreeMap<&str, Best>) -> Option<f64> {
    Some(gap(Bytes::new(row.height?), Bytes::new(bests[row.instance.as_str()].bound)))
}

#[test]
fn best_planners_match_the_rows() {
    let (store, rows) = curated();
    let bests = bests(&rows);
    let counts = |row: &&Record| row.repetition == 0 && row.target_bytes.is_none() && row.status.is_answer();
    let planners = group_by(rows.iter().filter(counts), |row| row.planner.as_str());
    let answer = answer(store.path(), &question("Who plans best?"));
    assert_eq!(answer.columns, ["planner", "workloads", "mean_gap", "optimal"]);
    assert_eq!(answer.rows.len(), planners.len());
    for line in &answer.rows {
        let rows = &planners[text(&line[0])];
        let gaps: Vec<f64> = rows.iter().filter_map(|row| gap_of(row, &bests)).collect();
        let workloads: BTreeSet<&str> = rows.iter().map(|row| row.workload.as_str()).collect();
        assert_eq!(whole(&line[1]), workloads.len() as u64, "{line:?}");
        assert!(near(real(&line[2]), gaps.iter().sum::<f64>() / gaps.len() as f64), "{line:?}");
        assert_eq!(whole(&line[3]), gaps.iter().filter(|gap| **gap <= 0.0).count() as u64, "{line:?}");
    }
    let order: Vec<(std::cmp::Reverse<u64>, f64)> =
        answer.rows.iter().map(|line| (std::cmp::Reverse(whole(&line[1])), real(&line[2]))).collect();
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn which_workloads_are_open() {
    let (store, rows) = curated();
    let bests = bests(&rows);
    let open: BTreeMap<&str, &Best> = rows
        .iter()
        .filter_map(|row| Some((row.workload.as_str(), bests.get(row.instance.as_str())?)))
        .filter(|(_, best)| best.height.is_some_and(|height| height > best.bound))
        .collect();
    let answer = answer(store.path(), &question("Which workloads are still open?"));
    let shown: BTreeMap<&str, &Vec<Cell>> = answer.rows.iter().map(|line| (text(&line[0]), line)).collect();
    assert!(!shown.is_empty() && shown.keys().eq(open.keys()), "{:?} {:?}", shown.keys(), open.keys());
    for (workload, line) in shown {
        let Best { bound, height } = *open[workload];
        assert_eq!((whole(&line[2]), Some(whole(&line[3]))), (bound, height));
        assert!(near(real(&line[4]), gap(Bytes::new(whole(&line[3])), Bytes::new(bound))), "{line:?}");
    }
}

#[test]
fn how_planning_time_grows() {
    let (store, rows) = curated();
    let mut times: BTreeMap<(&str, u64), Vec<f64>> = BTreeMap::new();
    for row in &rows {
        let is_asked = row.lane == Lane::Timing && row.status.is_answer() && row.repetition == 0;
        if let (true, Some(ns)) =
            (is_asked && row.workload.starts_with("synthetic/uniform/"), row.median_ns())
        {
            times.entry((&row.planner, row.buffers)).or_default().push(ns as f64);
        }
    }
    let answer = answer(store.path(), &question("How does planning time grow?"));
    assert!(!times.is_empty());
    assert_eq!(answer.rows.len(), times.len());
    for (line, ((planner, buffers), times)) in answer.rows.iter().zip(times) {
        assert_eq!((text(&line[0]), whole(&line[1])), (planner, buffers));
        assert_eq!(whole(&line[2]), times.len() as u64);
        assert!(near(real(&line[3]), median(&times).expect("times") / 1e6), "{line:?}");
    }
}

#[test]
fn where_one_planner_beats_another() {
    let (store, rows) = curated();
    let of = |planner: &'static str| {
        rows.iter()
            .filter(move |row| row.planner == planner && row.repetition == 0 && row.target_bytes.is_none())
    };
    let mut pairs = Vec::new();
    for ours in of("best-fit") {
        for theirs in of("greedy-by-size") {
            if (&ours.instance, ours.seed) == (&theirs.instance, theirs.seed) {
                let (a, b) = (ours.height.expect("a plan"), theirs.height.expect("a plan"));
                pairs.push((ours.workload.as_str(), a, b));
            }
        }
    }
    let answer = answer(store.path(), &question("Where does one planner beat another?"));
    let mut shown: Vec<(&str, u64, u64)> =
        answer.rows.iter().map(|line| (text(&line[0]), whole(&line[1]), whole(&line[2]))).collect();
    assert!(answer.rows.iter().map(|line| real(&line[3])).is_sorted());
    for list in [&mut pairs, &mut shown] {
        list.sort_unstable();
    }
    assert!(!pairs.is_empty());
    assert_eq!(shown, pairs);
}

#[test]
fn which_allocator_wastes_the_most() {
    let store = copy_records("2026-11-22-2-core-vm-allocators");
    let rows = read_rows(store.path()).expect("replays");
    let counts = |row: &&ReplayRow| row.performance.status == End::Complete && row.capacity.is_none();
    let groups = group_by(rows.iter().filter(counts), |row| (row.contender.as_str(), row.device.as_str()));
    let answer = answer(store.path(), &question("Which allocator wastes the most memory?"));
    assert!(!groups.is_empty());
    assert_eq!(answer.rows.len(), groups.len());
    for line in &answer.rows {
        let rows = &groups[&(text(&line[0]), text(&line[1]))];
        let shares = rows.iter().map(|row| {
            let (reserved, requested) = (row.performance.reserved_peak as f64, row.requested_peak as f64);
            if requested == 0.0 { 0.0 } else { (reserved - requested) / requested }
        });
        let workloads: BTreeSet<&str> = rows.iter().map(|row| row.workload.as_str()).collect();
        assert_eq!(whole(&line[2]), workloads.len() as u64);
        assert!(near(real(&line[3]), shares.sum::<f64>() / rows.len() as f64), "{line:?}");
        assert_eq!(Some(whole(&line[4])), rows.iter().map(|row| row.performance.reserved_peak).max());
    }
}

/// Compares the cells, the rows by status and the audit with loops over the rows.
#[test]
fn tables_agree_with_loops_over_the_rows() {
    let (store, rows) = curated();
    let bests = bests(&rows);
    let tables = Tables::open(store.path()).expect("tables");
    let by_cell = group_by(&rows, |row| row.cell.as_str());
    let cells = tables.cells(str::cmp).expect("cells");
    let listing = tables.list_rows(&cells).expect("rows");
    let cells = cells.rows().expect("rows");
    assert_eq!(cells.len(), by_cell.len());
    assert!(cells.is_sorted_by_key(|cell| (cell.workload.clone(), cell.planner.clone())));
    for cell in &cells {
        let rows = &by_cell[&*cell.cell];
        let first = rows.iter().min_by_key(|row| row.repetition).expect("a row");
        assert_eq!(
            (cell.height, cell.status, cell.median_ns),
            (first.height, first.status, first.median_ns())
        );
        let gap = gap_of(first, &bests).filter(|_| first.target_bytes.is_none());
        assert_eq!((cell.gap, cell.fragmentation()), (gap, first.fragmentation()));
        let timed = rows.iter().filter(|row| row.lane == Lane::Timing && row.status.is_answer());
        let samples: Vec<f64> = timed.flat_map(|row| &row.samples_ns).map(|&ns| ns as f64).collect();
        assert_eq!(cell.time_ns, median(&samples), "{cell:?}");
    }
    assert_eq!(listing.row_count(), rows.len());
    for listed in listing.rows(0, listing.row_count()).expect("rows") {
        let row = by_cell[&*cells[listed.number as usize].cell]
            .iter()
            .find(|row| row.repetition == listed.repetition);
        let row = row.expect("the row");
        assert_eq!(
            (listed.height, listed.work, listed.plan.as_deref()),
            (row.height, row.work, row.plan.as_deref())
        );
        assert_eq!(
            (listed.status, listed.median_ns, &*listed.reason),
            (row.status, row.median_ns(), &*row.reason)
        );
    }
    let counted = tables.status_counts().expect("statuses");
    assert_eq!(counted.iter().map(|(_, _, count)| count).sum::<u64>(), rows.len() as u64);
    for (variant, status, count) in counted {
        let is_one = |row: &&Record| {
            (&row.planner, &row.parameters) == (&variant.planner, &variant.parameters)
                && (row.wall_limit_ns, row.status) == (variant.wall_limit_ns, status)
        };
        assert_eq!(rows.iter().filter(is_one).count() as u64, count);
    }
    let machines = tables.machines().expect("machines");
    assert_eq!(machines.iter().map(|(_, _, count)| count).sum::<u64>(), rows.len() as u64);
    let suites: BTreeSet<String> =
        rows.iter().map(|row| row.suite.clone()).filter(|suite| !suite.is_empty()).collect();
    assert_eq!(tables.suites().expect("suites"), suites);
    assert_eq!(
        tables.limits().expect("limits"),
        rows.iter().map(|row| (row.wall_limit_ns, row.memory_limit_bytes)).collect()
    );
    let failed: u64 = tables.failures().expect("failures").iter().map(|failure| failure.rows).sum();
    assert_eq!(failed, rows.iter().filter(|row| row.status.is_failure()).count() as u64);
    assert_eq!(tables.audit().expect("audited"), audit(&rows));
    assert!(!tables.growth_curves().expect("curves").is_empty());
}

#[test]
fn a_digest_knows_the_rows_and_not_their_order_or_files() {
    let rows = [row("a", 0), row("a", 1), row("b", 0)];
    let digest = |rows: &[Record]| Tables::of_records(rows).expect("tables").rows_digest().expect("a digest");
    let turned: Vec<Record> = rows.iter().rev().cloned().collect();
    assert_eq!(digest(&rows), digest(&turned));
    let (folder, mut store) = empty_store();
    store.append_all(&rows[..2]).expect("appended");
    store.compact().expect("a shard");
    store.append(&rows[2]).expect("appended");
    assert_eq!(Tables::open(folder.path()).expect("tables").rows_digest().expect("a digest"), digest(&rows));
    for change in [
        |row: &mut Record| row.samples_ns.push(1),
        |row: &mut Record| row.trajectory.truncate(1),
        |row: &mut Record| row.height = None,
        |row: &mut Record| row.provenance.kernel.push('x'),
    ] {
        let mut rows = rows.clone();
        change(&mut rows[1]);
        assert_ne!(digest(&rows), digest(&turned));
    }
}

/// A query sees the same rows as a reader: shards, the later journal, only the latest row of each key.
#[test]
fn the_latest_row_counts_wherever_it_is() {
    let (folder, mut store) = empty_store();
    let with = |cell: &str, height| row(cell, 0).with(|row| (row.height, row.load) = (Some(height), 100));
    store.append_all(&[with("a", 200), with("b", 120)]).expect("appended");
    store.compact().expect("a shard");
    store.append(&with("c", 150)).expect("appended");
    store.compact().expect("a shard");
    store.append(&with("a", 110)).expect("appended");
    let answer = answer(folder.path(), "SELECT cell, height, fragmentation FROM rows");
    let expected = [("a", 110, 0.1), ("b", 120, 0.2), ("c", 150, 0.5)];
    let expected = expected.map(|(cell, height, share)| {
        vec![Cell::Text(cell.to_owned()), Cell::Integer(height), Cell::Real(share)]
    });
    assert_eq!(answer.rows, expected);
    let count = "SELECT count(*) AS rows FROM rows WHERE height < 150";
    assert_eq!(self::answer(folder.path(), count).rows, [[Cell::Integer(2)]]);
}

/// A filter on rows must not affect values computed over all rows of an instance.
#[test]
fn a_bound_of_another_planner_counts_for_the_gap() {
    let with = |planner: &str, height, bound| {
        let planner = planner.to_owned();
        row(&planner, 0)
            .with(|row| (row.height, row.bound, row.planner) = (Some(height), bound, planner.clone()))
    };
    let folder = store_of(&[with("a", 150, 100), with("b", 120, 120)]);
    let answer = answer(folder.path(), "SELECT gap FROM rows WHERE planner = 'a'");
    assert_eq!(answer.rows, [[Cell::Real(0.25)]]);
}

#[test]
fn an_empty_store_has_empty_tables() {
    let folder = store_of(&[]);
    for table in ["rows", "replays", "instances"] {
        assert!(answer(folder.path(), &format!("SELECT * FROM {table}")).rows.is_empty(), "{table}");
    }
}

#[test]
fn invalid_query_is_an_error_that_names_its_cause() {
    let folder = store_of(&[row("a", 0)]);
    let tables = Tables::open(folder.path()).expect("tables");
    let named = [
        ("SELECT nothing FROM rows", "nothing"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELEC planner FROM rows", "SELEC"),
        ("SELECT frob(planner) FROM rows", "frob"),
        ("SELECT * FROM read_csv('/etc/passwd')", "read_csv"),
    ];
    for (sql, part) in named {
        let error = tables.query_sql(sql).expect_err(sql);
        assert!(
            matches!(error, StoreError::Query { .. }) && error.to_string().contains(part),
            "{sql}: {error}"
        );
    }
    let deep = [
        "",
        ";",
        "SELECT planner FROM rows GROUP BY workload ORDER BY",
        &format!("SELECT {}1{}", "(".repeat(2000), ")".repeat(2000)),
        &format!("SELECT {}true", "NOT ".repeat(3000)),
        &format!("SELECT '{}'", "x".repeat(30_000)),
        "DROP TABLE rows",
        "INSERT INTO rows VALUES (1)",
    ];
    for sql in deep {
        let error = tables.query_sql(sql).expect_err(sql);
        assert!(matches!(error, StoreError::Query { .. }), "{sql}: {error}");
    }
    // Long queries are answered without a stack overflow.
    for sql in [
        format!("SELECT 1{} AS n", "+1".repeat(1000)),
        format!("SELECT 1 AS n{}", " UNION ALL SELECT 1".repeat(40)),
    ] {
        assert!(!tables.query_sql(&sql).unwrap_or_else(|error| panic!("{error}")).rows.is_empty());
    }
}

/// An older row of a planner with the load 100, whose peak is not at a hand-over.
fn older(planner: &str, cell: &str, height: u64, bound: u64, bound_scope: Scope) -> Record {
    let status = if height == bound { Status::Optimal } else { Status::Feasible };
    let (planner, height) = (planner.to_owned(), Some(height));
    row(cell, 0).with(|row| {
        (row.planner, row.height, row.status) = (planner, height, status);
        (row.bound, row.bound_scope, row.relaxed_load) = (bound, bound_scope, 100);
    })
}

#[test]
fn older_rows_whose_load_is_not_lower_lose_no_scope() {
    let folder = folder();
    let plain = older("external/search", "fixed", 120, 115, Scope::NoHandOver).with(|row| {
        (row.target_bytes, row.status) = (Some(112), Status::Infeasible);
        row.trajectory = vec![Point { elapsed_ns: 1, height: Some(120), bound: 115 }];
    });
    let proof = older("external/search", "proof", 115, 115, Scope::NoHandOver);
    let low = older("portfolio", "low", 105, 101, Scope::Any).with(|row| row.hand_overs = 1);
    for (low, permits) in [
        (low.clone(), true),
        // No plan hands over, but its bound on any plan shows that some may.
        (low.clone().with(|row| (row.hand_overs, row.height) = (0, Some(115))), true),
        (
            low.with(|row| (row.hand_overs, row.height, row.bound_scope) = (0, Some(115), Scope::NoHandOver)),
            false,
        ),
    ] {
        let mut store = Store::open(folder.path()).expect("a store");
        store.append_all(&[plain.clone(), proof.clone(), low]).expect("writable");
        let rows = read_records(folder.path()).expect("rows");
        let of = |cell: &str| rows.iter().find(|row| row.cell == cell).expect("its row");
        let (fixed, proof) = (of("fixed"), of("proof"));
        let (bound, without, scope) =
            if permits { (100, Some(115), Scope::Any) } else { (115, None, Scope::NoHandOver) };
        assert_eq!((proof.bound, proof.bound_without_in_place, proof.bound_scope), (bound, without, scope));
        let statuses =
            if permits { (Status::Unknown, Status::Feasible) } else { (Status::Infeasible, Status::Optimal) };
        assert_eq!((fixed.status, proof.status, fixed.trajectory[0].bound), (statuses.0, statuses.1, bound));
        // SQL says the same, and the bound of the instance is not that of plans without hand-overs.
        let sql = "SELECT bound, best_bound FROM rows WHERE cell = 'proof'";
        let line = &answer(folder.path(), sql).rows[0];
        let best = if permits { 101 } else { 115 };
        assert_eq!([whole(&line[0]), whole(&line[1])], [bound, best]);
        let tables = Tables::open(folder.path()).expect("a store");
        let read = tables.cells(str::cmp).and_then(|cells| cells.rows()).expect("cells");
        assert_eq!(read.iter().find(|cell| &*cell.cell == "fixed").map(|cell| cell.status), Some(statuses.0));
        assert_eq!(tables.audit().expect("rows"), []);
    }
}

#[test]
fn older_rows_are_measured_against_the_bound_on_any_plan() {
    let of = |planner: &str, height: u64, bound: u64| {
        older(planner, planner, height, bound, Scope::NoHandOver).with(|row| row.relaxed_load = 90)
    };
    let low = of("in-place", 90, 90).with(|row| (row.hand_overs, row.bound_scope) = (1, Scope::Any));
    let old = of("exact", 110, 110).with(|row| row.bound_evidence = Evidence::Search);
    let (folder, mut store) = empty_store();
    store.append_all(&[old, low]).expect("writable");
    store.compact().expect("compacts");
    let rows = read_records(folder.path()).expect("rows");
    let PlannerRun { bound, bound_evidence, bound_scope, bound_without_in_place, status, .. } = rows[0].run;
    assert_eq!((bound, bound_evidence, bound_scope), (90, Evidence::Load, Scope::Any));
    assert_eq!((bound_without_in_place, status), (Some(110), Status::Feasible));
    let columns =
        "load, load_without_in_place, bound, bound_without_in_place, best_bound, gap, fragmentation";
    let sql = format!("SELECT {columns}, status FROM rows WHERE planner = 'exact'");
    let line = &answer(folder.path(), &sql).rows[0];
    assert_eq!([0, 1, 2, 3, 4].map(|at: usize| whole(&line[at])), [90, 100, 90, 110, 90]);
    let share = 20.0 / 90.0;
    assert!(near(real(&line[5]), share) && near(real(&line[6]), share), "{line:?}");
    assert_eq!(text(&line[7]), "feasible");
    let sql = "SELECT best_bound, best_bound_without_in_place, best_height, best_height_without_in_place FROM instances";
    let line = &answer(folder.path(), sql).rows[0];
    assert_eq!([0, 1, 2, 3].map(|at: usize| whole(&line[at])), [90, 110, 90, 110]);
    let tables = Tables::open(folder.path()).expect("a store");
    let cells = tables.cells(str::cmp).and_then(|cells| cells.rows()).expect("cells");
    let exact = cells.iter().find(|cell| &*cell.planner == "exact").expect("its cell");
    assert_eq!((exact.load, exact.best_bound, exact.status), (90, 90, Status::Feasible));
    assert_eq!(tables.audit().expect("rows"), []);
    // The claim about plans without hand-overs can still be refuted by one.
    store.append(&of("lower", 105, 100)).expect("writable");
    let findings = Tables::open(folder.path()).and_then(|tables| tables.audit()).expect("rows");
    let refuted = sole_finding(findings, Fault::RefutedBound);
    assert!(refuted.message.contains(" 110 bytes ") && refuted.message.ends_with(" 105 bytes"), "{refuted}");
}
