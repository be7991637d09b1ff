//! What all rows come to: how many of which status, on which machines, under which limits.

use std::collections::BTreeSet;

use planlab_dsa::Stop;
use polars::prelude::*;

use super::{Tables, collect, refused, rows};
use crate::StoreError;
use crate::columns::Table;
use crate::fields::Field as _;
use crate::record::{Provenance, Status};

/// A planner under its parameters and time limit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Variant {
    /// Planner key.
    pub planner: String,
    /// Parameters as a JSON object.
    pub parameters: String,
    /// Wall limit, nanoseconds.
    pub wall_limit_ns: Option<u64>,
}

/// A limit of time, nanoseconds, and one of memory, bytes.
pub type Limits = (Option<u64>, Option<u64>);

/// Rows that failed in one way on one workload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// Planner key.
    pub planner: String,
    /// How they ended.
    pub status: Status,
    /// What went wrong.
    pub reason: String,
    /// The workload's key.
    pub workload: String,
    /// How many there are.
    pub rows: u64,
    /// Exit code of the first.
    pub exit_code: Option<i32>,
    /// Signal that ended the first.
    pub signal: Option<i32>,
    /// The last of what the first wrote to stderr.
    pub stderr_tail: String,
}

impl Tables {
    fn small(&self, query: LazyFrame) -> Result<Table, StoreError> {
        Ok(Table::of_frame(std::path::Path::new("results"), collect(query)?))
    }

    /// How many rows there are of each variant and status.
    ///
    /// # Errors
    ///
    /// Whatever the store refuses when its rows are read; so of all that follow.
    pub fn statuses(&self) -> Result<Vec<(Variant, Status, u64)>, StoreError> {
        let by = [col("planner"), col("parameters"), col("wall_limit_ns"), col("status")];
        let counts = self.rows.clone().group_by_stable(by).agg([len().cast(DataType::UInt64).alias("rows")]);
        let table = self.small(counts)?;
        let counted = variants(&table)?.into_iter().zip(statuses(&table)?).zip(table.u64("rows")?);
        Ok(counted.map(|((variant, status), rows)| (variant, status, rows)).collect())
    }

    /// Planners that ran into a limit somewhere, and had several limits on one workload: their cells under different
    /// limits are different planners.
    ///
    /// # Errors
    ///
    /// As [`Tables::statuses`].
    pub fn limit_bound(&self) -> Result<BTreeSet<String>, StoreError> {
        let stopped = |stop: Stop| col("stop").eq(lit(stop.name())).fill_null(lit(false));
        let is_cut = col("status").eq(lit(Status::Timeout.name()));
        let is_cut = is_cut.or(stopped(Stop::Deadline)).or(stopped(Stop::WorkLimit));
        let limits = self
            .rows
            .clone()
            .group_by([col("planner"), col("workload")])
            .agg([col("wall_limit_ns").n_unique().alias("limits"), is_cut.any(true).alias("is_cut")])
            .group_by([col("planner")])
            .agg([col("limits").max().gt(lit(1_u32)).and(col("is_cut").any(true)).alias("is_bound")])
            .filter(col("is_bound"));
        Ok(self.small(limits)?.text("planner")?.into_iter().collect())
    }

    /// The variants that some plan of which hands memory over in place.
    ///
    /// # Errors
    ///
    /// As [`Tables::statuses`].
    pub fn in_place(&self) -> Result<BTreeSet<Variant>, StoreError> {
        let by = [col("planner"), col("parameters"), col("wall_limit_ns")];
        let handing = self.rows.clone().filter(col("hand_overs").gt(lit(0_u64))).group_by(by).agg([]);
        Ok(variants(&self.small(handing)?)?.into_iter().collect())
    }

    /// The suites that asked for rows.
    ///
    /// # Errors
    ///
    /// As [`Tables::statuses`].
    pub fn suites(&self) -> Result<BTreeSet<String>, StoreError> {
        let suites = self.small(self.rows.clone().group_by([col("suite")]).agg([]))?;
        Ok(suites.text("suite")?.into_iter().filter(|suite| !suite.is_empty()).collect())
    }

    /// The limits that rows had.
    ///
    /// # Errors
    ///
    /// As [`Tables::statuses`].
    pub fn limits(&self) -> Result<BTreeSet<Limits>, StoreError> {
        let by = [col("wall_limit_ns"), col("memory_limit_bytes")];
        let limits = self.small(self.rows.clone().group_by(by).agg([]))?;
        Ok(limits.opt_u64("wall_limit_ns")?.into_iter().zip(limits.opt_u64("memory_limit_bytes")?).collect())
    }

    /// The machines and builds that rows were made on (with their highest load average), what enforced their limits, and how
    /// many rows there are of each.
    ///
    /// # Errors
    ///
    /// As [`Tables::statuses`].
    pub fn machines(&self) -> Result<Vec<(Provenance, String, u64)>, StoreError> {
        let fields = [
            "host",
            "cpu",
            "cores",
            "kernel",
            "governor",
            "turbo",
            "concurrency",
            "git_commit",
            "git_dirty",
            "rustc",
            "flags",
        ];
        let mut by: Vec<Expr> = fields.iter().map(|field| col(format!("machine_{field}"))).collect();
        by.push(col("mechanism"));
        let counts = [len().cast(DataType::UInt64).alias("rows"), col("machine_load_average_milli").max()];
        let table = self.small(self.rows.clone().group_by(by).agg(counts))?;
        let machines = Provenance::read(&table, "")?.into_iter().zip(table.text("mechanism")?);
        Ok(machines.zip(table.u64("rows")?).map(|((machine, by), rows)| (machine, by, rows)).collect())
    }

    /// Rows of planners that crashed, were killed, ran out of memory or gave a false answer, those of one planner,
    /// status, reason and workload together.
    ///
    /// # Errors
    ///
    /// As [`Tables::statuses`].
    pub fn failures(&self) -> Result<Vec<Failure>, StoreError> {
        let order = ["parameters", "seed", "wall_limit_ns", "cell", "repetition"];
        let failed = self.rows.clone().filter(rows::is(Status::is_failure));
        let failed = failed.sort(order, SortMultipleOptions::default());
        let by = [col("planner"), col("status"), col("reason"), col("workload")];
        let first = ["exit_code", "signal", "stderr_tail"].map(|name| col(name).first());
        let mut values = vec![len().cast(DataType::UInt64).alias("rows")];
        values.extend(first);
        let table = self.small(failed.group_by_stable(by).agg(values))?;
        let (mut planner, mut status) = (table.text("planner")?.into_iter(), statuses(&table)?.into_iter());
        let (mut reason, mut workload) =
            (table.text("reason")?.into_iter(), table.text("workload")?.into_iter());
        let (mut rows, mut exit_code) =
            (table.u64("rows")?.into_iter(), table.opt_i32("exit_code")?.into_iter());
        let (mut signal, mut tail) =
            (table.opt_i32("signal")?.into_iter(), table.text("stderr_tail")?.into_iter());
        let failure = |_| {
            Some(Failure {
                planner: planner.next()?,
                status: status.next()?,
                reason: reason.next()?,
                workload: workload.next()?,
                rows: rows.next()?,
                exit_code: exit_code.next()?,
                signal: signal.next()?,
                stderr_tail: tail.next()?,
            })
        };
        Ok((0..table.height()).filter_map(failure).collect())
    }

    /// A digest of all rows, the same in whatever order and files they are.
    ///
    /// # Errors
    ///
    /// As [`Tables::statuses`].
    pub fn digest(&self) -> Result<String, StoreError> {
        let keys = collect(self.rows.clone().select([col("cell"), col("repetition")]))?;
        let order = order_of(&keys).map_err(refused)?;
        let schema = self.rows.clone().collect_schema().map_err(refused)?;
        let mut bytes = Vec::new();
        let mut parts = String::new();
        for (name, dtype) in schema.iter() {
            // A list has as many texts as values, and its length beside.
            let texts = match dtype {
                DataType::List(_) => col(name.clone())
                    .list()
                    .eval(element().cast(DataType::String).fill_null(lit("-")))
                    .list()
                    .join(lit(" "), false),
                _ => col(name.clone()).cast(DataType::String),
            };
            let column = collect(self.rows.clone().select([texts.alias("text")]))?;
            let column = column.column("text").and_then(|column| column.take(&order)).map_err(refused)?;
            bytes.clear();
            for text in column.str().map_err(refused)?.iter() {
                bytes.extend_from_slice(text.unwrap_or("\u{1}").as_bytes());
                bytes.push(0);
            }
            parts += &format!("{name} {}\n", planlab_dsa::Digest::of_bytes(&bytes));
        }
        Ok(planlab_dsa::Digest::of_bytes(parts.as_bytes()).short())
    }
}

/// The numbers of the rows by cell and repetition.
fn order_of(keys: &DataFrame) -> PolarsResult<IdxCa> {
    let (cells, repetitions) = (keys.column("cell")?.str()?, keys.column("repetition")?.u32()?);
    let mut rows: Vec<_> = cells.iter().zip(repetitions.iter()).zip(0..).collect();
    rows.sort_unstable();
    Ok(IdxCa::from_vec("order".into(), rows.into_iter().map(|(_, number)| number).collect()))
}

fn variants(table: &Table) -> Result<Vec<Variant>, StoreError> {
    let (planners, parameters) = (table.text("planner")?, table.text("parameters")?);
    let limits = table.opt_u64("wall_limit_ns")?;
    let variants = planners.into_iter().zip(parameters).zip(limits);
    Ok(variants
        .map(|((planner, parameters), wall_limit_ns)| Variant { planner, parameters, wall_limit_ns })
        .collect())
}

fn statuses(table: &Table) -> Result<Vec<Status>, StoreError> {
    let known = |name: String| {
        Status::from_name(&name).ok_or_else(|| table.bad(&format!("`{name}` is not a status")))
    };
    table.text("status")?.into_iter().map(known).collect()
}
