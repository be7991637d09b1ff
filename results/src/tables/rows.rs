//! Columns that tables add to the rows: the best bound that any planner proved, the gap to it, times.

use planlab_dsa::{Evidence, Scope};
use polars::prelude::*;

use super::glossary::{ColumnDoc, columns_of};
use crate::rows::{SEARCHES, Status};

/// The table `rows` of SQL. Columns that a query does not use are not computed.
pub(super) fn rows_table(rows: LazyFrame) -> LazyFrame {
    let rows = with_gap(with_best_bound(rows)).with_columns(computed_columns());
    rows.with_columns(load_columns()).select(signed_columns("rows"))
}

/// The loads by their names outside of files: what counts is `load`.
pub(crate) fn load_columns() -> [Expr; 2] {
    [col("relaxed_load").alias("load"), col("load").alias("load_without_in_place")]
}

/// Rows with bounds on any plan, as [`against_any_plan`](crate::rows::against_any_plan) makes them.
pub(super) fn against_any_plan(rows: LazyFrame) -> LazyFrame {
    let is = |status: Status| col("status").eq(lit(status.name()));
    let is_old = || col("is_old");
    let is_above = col("height").gt(col("relaxed_load")).fill_null(lit(false));
    let is_between = col("target_bytes")
        .gt_eq(col("relaxed_load"))
        .and(col("target_bytes").lt(col("bound")))
        .fill_null(lit(false));
    let was_optimal = is_old().and(is(Status::Optimal)).and(is_above);
    let was_infeasible = is_old().and(is(Status::Infeasible)).and(is_between);
    let status = when(was_optimal).then(lit(Status::Feasible.name()));
    let status = status.when(was_infeasible).then(lit(Status::Unknown.name())).otherwise(col("status"));
    let old = |new: Expr, name: &str| when(is_old()).then(new).otherwise(col(name)).alias(name);
    rows.with_columns([bounds_plain().and(permits_hand_overs()).alias("is_old")])
        .with_columns([
            status.alias("status"),
            old(col("bound"), "bound_without_in_place"),
            old(col("relaxed_load"), "bound"),
            old(lit(Evidence::Load.name()), "bound_evidence"),
            old(lit(Scope::Any.name()), "bound_scope"),
        ])
        .drop(by_name(["is_old"], true, false))
}

/// Whether a row is of an older version and bounds plans without hand-overs.
fn bounds_plain() -> Expr {
    col("bound_scope").eq(lit(Scope::NoHandOver.name()))
}

/// Whether a row's instance permits hand-overs, as far as its rows show.
fn permits_hand_overs() -> Expr {
    let of_instance = |is: Expr| is.any(true).over([col("instance")]).expect("there is a column to group by");
    let is_by_search =
        || SEARCHES.map(|key| col("planner").eq(lit(key))).into_iter().reduce(Expr::or).unwrap_or(lit(false));
    let shown = col("relaxed_load").lt(col("load"));
    let shown = shown.or(col("hand_overs").gt(lit(0_u64))).or(col("bound_without_in_place").is_not_null());
    let bounds_any = is_by_search().and(bounds_plain().not()).and(has_status(Status::is_answer));
    let is_plain = is_by_search().and(bounds_plain());
    of_instance(shown).or(of_instance(bounds_any).and(of_instance(is_plain).not()))
}

/// The table `instances` of SQL.
pub(super) fn instances_table(rows: LazyFrame) -> LazyFrame {
    let first = |name: &str| col(name).first();
    with_best_bound(rows)
        .with_columns(load_columns())
        .group_by_stable([col("instance")])
        .agg([
            first("workload"),
            first("buffers"),
            first("load"),
            first("load_without_in_place"),
            first("best_bound"),
            col("bound_plain").first().alias("best_bound_without_in_place"),
            col("lowest_any").first().alias("best_height"),
            col("lowest_plain").first().alias("best_height_without_in_place"),
            col("cell").n_unique().alias("cells"),
            len().alias("rows"),
        ])
        .with_columns([workload_group()])
        .select(signed_columns("instances"))
}

/// The columns of a table, with unsigned numbers made signed, so that a difference in SQL may be negative. A seed is not
/// used in calculations and may need all its bits, so it stays unsigned.
pub(super) fn signed_columns(table: &str) -> Vec<Expr> {
    let signed = |column: &ColumnDoc| match column.unit {
        "bytes" | "ns" | "count" => col(column.name).cast(DataType::Int64),
        _ => col(column.name),
    };
    columns_of(table).map(signed).collect()
}

/// Columns computed from one row alone.
fn computed_columns() -> Vec<Expr> {
    vec![
        has_status(Status::is_answer).alias("is_answer"),
        has_status(Status::is_failure).alias("is_failure"),
        workload_group(),
        col("parameters")
            .str()
            .extract(lit(r#""threads":\s*(\d+)"#), 1)
            .cast(DataType::UInt64)
            .fill_null(lit(1_u64))
            .alias("threads"),
        excess_expr(col("height"), col("relaxed_load")).alias("fragmentation"),
        lower_middle("samples_ns").alias("time_ns"),
    ]
}

/// Whether a row's status is one of these.
pub(crate) fn has_status(statuses: fn(Status) -> bool) -> Expr {
    let names = Status::ALL.into_iter().filter(|status| statuses(*status)).map(Status::name);
    names.map(|name| col("status").eq(lit(name))).reduce(Expr::or).unwrap_or(lit(false))
}

/// The lower median of each list of a column, as in [`Record::median_ns`](crate::Record::median_ns); null if empty.
pub(crate) fn lower_middle(lists: &str) -> Expr {
    let lists = || col(lists).list();
    let middle = (lists().len().cast(DataType::Int64) + lit(1_i64)).floor_div(lit(2_i64)) - lit(1_i64);
    lists().sort(SortOptions::default()).list().get(middle, true)
}

/// The first two parts of the workload's key.
pub(crate) fn workload_group() -> Expr {
    let parts = col("workload").str().extract(lit("^([^/]*/[^/]*)"), 1);
    parts.fill_null(col("workload")).alias("workload_group")
}

/// `(height - base) / base`, or 0 for a base of 0, as in `planlab_dsa::gap`.
pub(super) fn excess_expr(height: Expr, base: Expr) -> Expr {
    let real = |bytes: &Expr| bytes.clone().cast(DataType::Float64);
    let share = (real(&height) - real(&base)) / real(&base);
    // A row without a height has no share, even with a base of 0.
    when(base.eq(lit(0_u64)).and(height.is_not_null())).then(lit(0.0)).otherwise(share)
}

/// Adds `gap`; null for cells with a given capacity.
pub(crate) fn with_gap(rows: LazyFrame) -> LazyFrame {
    let gap = excess_expr(col("height"), col("best_bound"));
    let gap = when(col("target_bytes").is_null()).then(gap).otherwise(lit(NULL));
    rows.with_columns([gap.alias("gap")])
}

/// Adds values over all rows of an instance. `lowest_any` and `lowest_plain` are the lowest heights of all plans and of
/// those without a hand-over; `best_bound` and `bound_plain` are the highest bounds on these. Every row is measured
/// against `best_bound`. A bound above a verified height in its scope is refuted and does not count.
pub(crate) fn with_best_bound(rows: LazyFrame) -> LazyFrame {
    let is_plain = || col("hand_overs").eq(lit(0_u64));
    let is_any = || col("bound_scope").eq(lit(Scope::Any.name()));
    let of_instance = |value: Expr, name: &str| {
        value.over([col("instance")]).expect("there is a column to group by").alias(name)
    };
    let stands = |bound: Expr, lowest: &str| {
        let is_met = col(lowest).is_null().or(bound.clone().lt_eq(col(lowest)));
        let is_claim = col("status").neq(lit(Status::BoundRefuted.name()));
        when(is_claim.and(is_met)).then(bound).otherwise(lit(0_u64)).max()
    };
    let plain_bound = when(is_any()).then(col("bound_without_in_place")).otherwise(col("bound"));
    rows.with_columns([
        of_instance(col("height").min(), "lowest_any"),
        of_instance(when(is_plain()).then(col("height")).otherwise(lit(NULL)).min(), "lowest_plain"),
    ])
    .with_columns([
        // An older row without permissions says that it speaks of plans without hand-overs; there are no others.
        of_instance(stands(col("bound"), "lowest_any"), "best_bound"),
        of_instance(stands(col("relaxed_load"), "lowest_any"), "least_bound"),
        of_instance(stands(plain_bound, "lowest_plain"), "bound_plain"),
    ])
    .with_columns([higher_of(col("best_bound"), col("least_bound")).alias("best_bound")])
    .with_columns([higher_of(col("bound_plain"), col("best_bound")).alias("bound_plain")])
}

fn higher_of(a: Expr, b: Expr) -> Expr {
    when(a.clone().gt_eq(b.clone())).then(a).otherwise(b)
}
