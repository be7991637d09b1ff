//! The audit as queries: they find the instances, workloads and cells whose rows do not agree; what is wrong with them
//! is then said by [`audit`](crate::audit::audit), from these rows alone.

use std::path::Path;

use planlab_dsa::Scope;
use polars::prelude::*;

use super::{Tables, collect, refused, rows};
use crate::StoreError;
use crate::audit::{Finding, KeptPlan, audit, audit_kept_plans};
use crate::record::{Record, Status};

impl Tables {
    /// Everything wrong with the rows, refutations first, as [`audit`] finds it.
    ///
    /// # Errors
    ///
    /// Whatever the store refuses when its rows are read.
    pub fn audit(&self) -> Result<Vec<Finding>, StoreError> {
        let instances = [self.refuted(), self.false_rows(), self.unlike("instance", "buffers")];
        let loads = [self.unlike("instance", "load"), self.unlike("instance", "relaxed_load")];
        let mut cells = vec![self.of_workloads_with_two_instances(), self.lacking_repetitions()];
        let all = self.rows.clone();
        for query in instances.into_iter().chain(loads) {
            let by = [col("instance")];
            cells.push(
                all.clone().join(query, by.clone(), by, JoinArgs::new(JoinType::Semi)).select([col("cell")]),
            );
        }
        let cells = concat(cells, UnionArgs::default()).map_err(refused)?;
        let cells = collect(cells.group_by([col("cell")]).agg([]))?;
        Ok(audit(&self.records_of(&cells)?))
    }

    /// Verifies every stored plan again, as [`audit_plans`](crate::audit::audit_plans) does, in the store's folder.
    ///
    /// # Errors
    ///
    /// [`StoreError`] where the folder itself cannot be read.
    pub fn audit_plans(&self, dir: impl AsRef<Path>) -> Result<Vec<Finding>, StoreError> {
        let names = ["instance", "plan", "workload", "planner", "height"];
        let kept = self.rows.clone().filter(col("plan").is_not_null()).select(names.map(col));
        let kept = collect(kept)?;
        let text = |name: &str| kept.column(name).and_then(|column| column.str()).map_err(refused);
        let heights = kept.column("height").and_then(|column| column.u64()).map_err(refused)?;
        let (instances, plans) = (text("instance")?.iter(), text("plan")?.iter());
        let texts = instances.zip(plans).zip(text("workload")?.iter()).zip(text("planner")?.iter());
        let row = |((((instance, plan), workload), planner), height)| {
            Some(KeptPlan {
                instance: instance?,
                plan: plan?,
                workload: workload?,
                planner: planner?,
                height,
            })
        };
        let rows: Vec<KeptPlan<'_>> = texts.zip(heights.iter()).filter_map(row).collect();
        audit_kept_plans(dir.as_ref(), &rows)
    }

    /// The rows of the cells that a frame has.
    pub(super) fn records_of(&self, cells: &DataFrame) -> Result<Vec<Record>, StoreError> {
        if cells.height() == 0 {
            return Ok(Vec::new());
        }
        let cells =
            cells.column("cell").map_err(refused)?.as_materialized_series().implode().map_err(refused)?;
        let is_one = col("cell").is_in(lit(cells.into_series()), false);
        crate::frame::from_frame(collect(self.rows.clone().filter(is_one))?)
    }

    /// Instances with a bound above the height of a verified plan in its scope, or said to be infeasible.
    fn refuted(&self) -> LazyFrame {
        let is_any = || col("bound_scope").eq(lit(Scope::Any.name()));
        let lowest = when(is_any()).then(col("lowest_any")).otherwise(col("lowest_plain"));
        let is_claim = col("status").neq(lit(Status::BoundRefuted.name()));
        let is_refuted = is_claim.and(col("bound").gt(lowest)).fill_null(lit(false));
        let is_infeasible = col("status").eq(lit(Status::Infeasible.name()));
        rows::with_best_bound(self.rows.clone())
            .filter(is_refuted.or(is_infeasible))
            .select([col("instance")])
    }

    /// Instances with a row that says that it is false, or contradicts itself.
    fn false_rows(&self) -> LazyFrame {
        let is = |status: Status| col("status").eq(lit(status.name()));
        let height = || col("height");
        let contradictions = [
            rows::is(Status::is_lie),
            is(Status::Optimal).or(is(Status::Feasible)).and(height().is_null()),
            is(Status::Optimal).and(height().neq(col("bound"))),
            is(Status::Feasible).and(height().lt_eq(col("bound"))),
            height().lt(col("load")).and(col("hand_overs").eq(lit(0_u64))),
        ];
        let any = contradictions.into_iter().map(|found| found.fill_null(lit(false)));
        let any = any.reduce(Expr::or).unwrap_or(lit(false));
        self.rows.clone().filter(any).select([col("instance")])
    }

    /// Subjects whose rows have several values of a field.
    fn unlike(&self, subject: &str, field: &str) -> LazyFrame {
        let values = self.rows.clone().group_by([col(subject)]).agg([col(field).n_unique().alias("values")]);
        values.filter(col("values").gt(lit(1_u32))).select([col(subject)])
    }

    fn of_workloads_with_two_instances(&self) -> LazyFrame {
        let by = [col("workload")];
        let unlike = self.unlike("workload", "instance");
        self.rows.clone().join(unlike, by.clone(), by, JoinArgs::new(JoinType::Semi)).select([col("cell")])
    }

    fn lacking_repetitions(&self) -> LazyFrame {
        let counts = [col("repetition").max().alias("last"), len().alias("rows")];
        let counts = self.rows.clone().group_by([col("cell")]).agg(counts);
        counts.filter((col("last") + lit(1_u32)).gt(col("rows"))).select([col("cell")])
    }
}
