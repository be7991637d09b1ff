//! What all rows come to: how many of which status, on which machines, under which limits.

use std::collections::BTreeSet;

use polars::prelude::*;

use super::{Tables, collect, read, refused, rows, small};
use crate::StoreError;
use crate::fields::{Field as _, table};
use crate::frame::names;
use crate::record::{Provenance, Status};

/// A limit of time, nanoseconds, and one of memory, bytes.
pub type Limits = (Option<u64>, Option<u64>);

table! {
    /// Rows that failed in one way on one workload.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct Failure as "" {
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
}

impl Tables {
    /// The suites that asked for rows.
    ///
    /// # Errors
    ///
    /// Whatever the store refuses when its rows are read; so of all that follow.
    pub fn suites(&self) -> Result<BTreeSet<String>, StoreError> {
        let suites = small(self.rows.clone().group_by([col("suite")]).agg([]))?;
        Ok(suites.text("suite")?.into_iter().filter(|suite| !suite.is_empty()).collect())
    }

    /// The limits that rows had.
    pub fn limits(&self) -> Result<BTreeSet<Limits>, StoreError> {
        let by = [col("wall_limit_ns"), col("memory_limit_bytes")];
        let limits = small(self.rows.clone().group_by(by).agg([]))?;
        Ok(limits.opt_u64("wall_limit_ns")?.into_iter().zip(limits.opt_u64("memory_limit_bytes")?).collect())
    }

    /// The machines and builds that rows were made on (with their highest load average), what enforced their limits, and how
    /// many rows there are of each.
    pub fn machines(&self) -> Result<Vec<(Provenance, String, u64)>, StoreError> {
        let load = "machine_load_average_milli";
        let fields = names::<Provenance>().into_iter().filter(|name| name != load);
        let mut by: Vec<Expr> = fields.map(col).collect();
        by.push(col("mechanism"));
        let counts = [len().cast(DataType::UInt64).alias("rows"), col(load).max()];
        let table = small(self.rows.clone().group_by(by).agg(counts))?;
        let machines = Provenance::read(&table, "")?.into_iter().zip(table.text("mechanism")?);
        Ok(machines.zip(table.u64("rows")?).map(|((machine, by), rows)| (machine, by, rows)).collect())
    }

    /// Rows of planners that crashed, were killed, ran out of memory or gave a false answer, those of one planner,
    /// status, reason and workload together.
    pub fn failures(&self) -> Result<Vec<Failure>, StoreError> {
        let order = ["parameters", "seed", "wall_limit_ns", "cell", "repetition"];
        let failed = self.rows.clone().filter(rows::is(Status::is_failure));
        let failed = failed.sort(order, SortMultipleOptions::default());
        let by = [col("planner"), col("status"), col("reason"), col("workload")];
        let first = ["exit_code", "signal", "stderr_tail"].map(|name| col(name).first());
        let mut values = vec![len().cast(DataType::UInt64).alias("rows")];
        values.extend(first);
        read(failed.group_by_stable(by).agg(values))
    }

    /// A digest of all rows, the same in whatever order and files they are.
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
