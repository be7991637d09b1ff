//! A summary of all rows: their statuses, machines and limits.

use std::collections::BTreeSet;

use polars::prelude::*;

use crate::StoreError;
use crate::columns::{Field as _, table};
use crate::files::frame::column_names;
use crate::rows::{Provenance, Status};
use crate::tables::{Tables, collect, read, refused, rows, small};

/// A time limit in nanoseconds, and a memory limit in bytes.
pub type Limits = (Option<u64>, Option<u64>);

table! {
    /// Rows that failed in the same way on one workload.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct Failure as "" {
        /// Planner key.
        pub planner: String,
        /// The status of the rows.
        pub status: Status,
        /// What went wrong.
        pub reason: String,
        /// The workload's key.
        pub workload: String,
        /// The number of rows.
        pub rows: u64,
        /// Exit code of the first row.
        pub exit_code: Option<i32>,
        /// Signal that ended the first row.
        pub signal: Option<i32>,
        /// The end of the first row's stderr.
        pub stderr_tail: String,
    }
}

impl Tables {
    /// The suites of the rows.
    ///
    /// # Errors
    ///
    /// Errors of the store when its rows are read, as for all functions below.
    pub fn suites(&self) -> Result<BTreeSet<String>, StoreError> {
        let suites = small(self.rows.clone().group_by([col("suite")]).agg([]))?;
        Ok(suites.text_column("suite")?.into_iter().filter(|suite| !suite.is_empty()).collect())
    }

    /// The limits of the rows.
    pub fn limits(&self) -> Result<BTreeSet<Limits>, StoreError> {
        let by = [col("wall_limit_ns"), col("memory_limit_bytes")];
        let limits = small(self.rows.clone().group_by(by).agg([]))?;
        Ok(limits.opt_u64("wall_limit_ns")?.into_iter().zip(limits.opt_u64("memory_limit_bytes")?).collect())
    }

    /// The machines and builds of the rows, each with its highest load average, the mechanism that enforced the limits,
    /// and the number of rows.
    pub fn machines(&self) -> Result<Vec<(Provenance, String, u64)>, StoreError> {
        let load = "machine_load_average_milli";
        let fields = column_names::<Provenance>().into_iter().filter(|name| name != load);
        let mut by: Vec<Expr> = fields.map(col).collect();
        by.push(col("mechanism"));
        let counts = [len().cast(DataType::UInt64).alias("rows"), col(load).max()];
        let table = small(self.rows.clone().group_by(by).agg(counts))?;
        let machines = Provenance::read(&table, "")?.into_iter().zip(table.text_column("mechanism")?);
        Ok(machines.zip(table.u64("rows")?).map(|((machine, by), rows)| (machine, by, rows)).collect())
    }

    /// Rows of planners that crashed, were killed, ran out of memory or gave a false answer, grouped by planner,
    /// status, reason and workload.
    pub fn failures(&self) -> Result<Vec<Failure>, StoreError> {
        let order = ["parameters", "seed", "wall_limit_ns", "cell", "repetition"];
        let failed = self.rows.clone().filter(rows::has_status(Status::is_failure));
        let failed = failed.sort(order, SortMultipleOptions::default());
        let by = [col("planner"), col("status"), col("reason"), col("workload")];
        let first = ["exit_code", "signal", "stderr_tail"].map(|name| col(name).first());
        let mut values = vec![len().cast(DataType::UInt64).alias("rows")];
        values.extend(first);
        read(failed.group_by_stable(by).agg(values))
    }

    /// A digest of all rows, independent of their order and files.
    pub fn rows_digest(&self) -> Result<String, StoreError> {
        let keys = collect(self.rows.clone().select([col("cell"), col("repetition")]))?;
        let order = order_of(&keys).map_err(refused)?;
        let schema = self.rows.clone().collect_schema().map_err(refused)?;
        let mut bytes = Vec::new();
        let mut parts = String::new();
        for (name, dtype) in schema.iter() {
            // A list contributes its length and one text per value.
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
        Ok(planlab_dsa::Digest::of_bytes(parts.as_bytes()).short_text())
    }
}

/// The positions of the rows, sorted by cell and repetition.
fn order_of(keys: &DataFrame) -> PolarsResult<IdxCa> {
    let (cells, repetitions) = (keys.column("cell")?.str()?, keys.column("repetition")?.u32()?);
    let mut rows: Vec<_> = cells.iter().zip(repetitions.iter()).zip(0..).collect();
    rows.sort_unstable();
    Ok(IdxCa::from_vec("order".into(), rows.into_iter().map(|(_, number)| number).collect()))
}
