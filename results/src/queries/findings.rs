//! The audit of a store: of its rows and of the plans that it keeps.

use std::path::Path;
use std::sync::Arc;

use planlab_dsa::{Digest, Instance};
use polars::prelude::*;

use crate::StoreError;
use crate::audit::{Claim, Fault, Finding, audit_claims, or_none};
use crate::columns::table;
use crate::rows::group_by;
use crate::store::{load_instance, load_plan};
use crate::tables::{Tables, columns_of, read};

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
    /// All problems in the rows, refutations first, as [`audit`](crate::audit::audit) finds them.
    ///
    /// # Errors
    ///
    /// Errors of the store when its rows are read.
    pub fn audit(&self) -> Result<Vec<Finding>, StoreError> {
        Ok(audit_claims(&read(self.rows.clone().select(columns_of::<Claim>()))?))
    }

    /// Verifies every stored plan in the store's folder again, and compares its height with its row's. Each unreadable
    /// instance or plan that rows name is one finding.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the folder itself cannot be read.
    pub fn audit_plans(&self, dir: impl AsRef<Path>) -> Result<Vec<Finding>, StoreError> {
        let dir = dir.as_ref();
        std::fs::read_dir(dir).map_err(StoreError::from_io("read", dir))?;
        let kept = self.rows.clone().filter(col("plan").is_not_null());
        let rows: Vec<KeptPlan> = read(kept.select(columns_of::<KeptPlan>()))?;
        let mut findings = Vec::new();
        for (digest, rows) in group_by(&rows, |row| &*row.instance) {
            match digest_of(dir, digest).and_then(|digest| load_instance(dir, digest)) {
                Ok((instance, _)) => plans_of(dir, &instance, &rows, &mut findings),
                Err(error) => findings.push(missing("instance", &rows, &error)),
            }
        }
        Ok(findings)
    }
}

fn plans_of(dir: &Path, instance: &Instance, rows: &[&KeptPlan], findings: &mut Vec<Finding>) {
    for (plan, rows) in group_by(rows.iter().copied(), |row| &*row.plan) {
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
