//! The audit as queries: they find the instances, workloads and cells whose rows disagree.
//! [`audit`](crate::audit::audit) then describes the problems, from these rows alone.

use std::path::Path;
use std::sync::Arc;

use planlab_dsa::{Digest, Instance, Scope};
use polars::prelude::*;

use crate::StoreError;
use crate::audit::{Fault, Finding, audit, by, or_none};
use crate::columns::table;
use crate::files::frame::{from_frame, names};
use crate::rows::{Record, Status};
use crate::store::{load_instance, load_plan};
use crate::tables::{Tables, collect, read, refused, rows};

table! {
    /// A row whose plan the store keeps.
    #[derive(Clone, Debug)]
    struct KeptPlan as "" {
        instance: Arc<str>,
        plan: Arc<str>,
        workload: Arc<str>,
        planner: Arc<str>,
        height: Option<u64>,
    }
}

impl Tables {
    /// All problems in the rows, refutations first, as [`audit`] finds them.
    ///
    /// # Errors
    ///
    /// Errors of the store when its rows are read.
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

    /// Verifies every stored plan in the store's folder again, and compares its height with its row's. Each unreadable
    /// instance or plan that rows name is one finding.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the folder itself cannot be read.
    pub fn audit_plans(&self, dir: impl AsRef<Path>) -> Result<Vec<Finding>, StoreError> {
        let dir = dir.as_ref();
        std::fs::read_dir(dir).map_err(StoreError::io("read", dir))?;
        let kept = self.rows.clone().filter(col("plan").is_not_null());
        let rows: Vec<KeptPlan> =
            read(kept.select(names::<KeptPlan>().into_iter().map(col).collect::<Vec<_>>()))?;
        let mut findings = Vec::new();
        for (digest, rows) in by(&rows, |row| &*row.instance) {
            match digest_of(dir, digest).and_then(|digest| load_instance(dir, digest)) {
                Ok((instance, _)) => plans_of(dir, &instance, &rows, &mut findings),
                Err(error) => findings.push(missing("instance", &rows, &error)),
            }
        }
        Ok(findings)
    }

    /// The rows of the cells in a frame.
    pub(super) fn records_of(&self, cells: &DataFrame) -> Result<Vec<Record>, StoreError> {
        if cells.height() == 0 {
            return Ok(Vec::new());
        }
        let cells =
            cells.column("cell").map_err(refused)?.as_materialized_series().implode().map_err(refused)?;
        let is_one = col("cell").is_in(lit(cells.into_series()), false);
        from_frame(collect(self.rows.clone().filter(is_one))?)
    }

    /// Instances that are claimed infeasible, or with a bound above the height of a verified plan in its scope.
    fn refuted(&self) -> LazyFrame {
        let is_any = || col("bound_scope").eq(lit(Scope::Any.name()));
        let lowest = when(is_any()).then(col("lowest_any")).otherwise(col("lowest_plain"));
        let is_claim = col("status").neq(lit(Status::BoundRefuted.name()));
        let above = |bound: &str, lowest: Expr| col(bound).gt(lowest).fill_null(lit(false));
        let is_above = above("bound", lowest).or(above("bound_without_in_place", col("lowest_plain")));
        let is_refuted = is_claim.and(is_above);
        let is_infeasible = col("status").eq(lit(Status::Infeasible.name()));
        rows::with_best_bound(self.rows.clone())
            .filter(is_refuted.or(is_infeasible))
            .select([col("instance")])
    }

    /// Instances with a row whose status reports a false result, or that contradicts itself.
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

    /// Subjects whose rows have different values of a field.
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

fn plans_of(dir: &Path, instance: &Instance, rows: &[&KeptPlan], findings: &mut Vec<Finding>) {
    for (plan, rows) in by(rows.iter().copied(), |row| &*row.plan) {
        let loaded = match digest_of(dir, plan).and_then(|digest| load_plan(dir, digest)) {
            Ok(loaded) => loaded,
            Err(error) => {
                findings.push(missing("plan", &rows, &error));
                continue;
            }
        };
        let verified = instance.verify(loaded).map(|verified| verified.height());
        for row in rows {
            let reason = match &verified {
                Err(violation) => violation.to_string(),
                Ok(height) if Some(height.get()) == row.height => continue,
                Ok(height) => format!("its height is {height}, the row says {}", or_none(row.height)),
            };
            let message = format!("{}: {}: plan {plan}: {reason}", row.workload, row.planner);
            findings.push(Finding::new(Fault::FalsePlan, message));
        }
    }
}

fn missing(kind: &str, rows: &[&KeptPlan], error: &StoreError) -> Finding {
    let workload = rows.first().map_or("", |row| &*row.workload);
    Finding::missing_file(kind, workload, rows.len(), &error.to_string())
}

fn digest_of(dir: &Path, text: &str) -> Result<Digest, StoreError> {
    text.parse().map_err(|error| StoreError::bad_file(dir, &error))
}
