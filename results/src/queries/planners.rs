//! Names planners for reports: with their parameters, and with their time limit if it made a difference.

use std::collections::{BTreeMap, BTreeSet};

use planlab_dsa::Stop;
use polars::prelude::*;

use crate::StoreError;
use crate::columns::{Field as _, table};
use crate::files::frame::frame_of;
use crate::rows::{Status, planner_label};
use crate::show::format::{as_real, format_nanoseconds};
use crate::tables::{Tables, read, refused, small};

/// A planner with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Planner {
    /// Its name in reports.
    pub label: String,
    /// Whether any of its plans uses a hand-over, so that it may be lower than planners that use none.
    pub is_in_place: bool,
}

table! {
    /// A planner with its parameters and time limit.
    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct Variant as "" {
        /// Planner key.
        pub planner: String,
        /// Parameters as a JSON object.
        pub parameters: String,
        /// Wall limit in nanoseconds.
        pub wall_limit_ns: Option<u64>,
    }
}

pub(super) struct Planners {
    /// The planners, by label.
    pub(super) planners: Vec<Planner>,
    /// The number of rows for each planner (by index) and status.
    pub(super) statuses: BTreeMap<(usize, Status), u64>,
    /// Each variant with its `planner_number`.
    pub(super) variants: DataFrame,
}

impl Tables {
    /// The number of rows for each variant and status.
    ///
    /// # Errors
    ///
    /// Errors of the store when its rows are read, as for all functions below.
    pub fn status_counts(&self) -> Result<Vec<(Variant, Status, u64)>, StoreError> {
        let by = [col("planner"), col("parameters"), col("wall_limit_ns"), col("status")];
        let counts = self.rows.clone().group_by_stable(by).agg([len().cast(DataType::UInt64).alias("rows")]);
        let table = small(counts)?;
        let counted = Variant::read(&table, "")?.into_iter().zip(Status::read(&table, "status")?);
        Ok(counted.zip(table.u64("rows")?).map(|((variant, status), rows)| (variant, status, rows)).collect())
    }

    /// Planners that ran into a limit on some workload and had several limits on one workload. Their cells under
    /// different limits count as different planners.
    fn limit_bound(&self) -> Result<BTreeSet<String>, StoreError> {
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
        Ok(small(limits)?.text_column("planner")?.into_iter().collect())
    }

    /// The variants with at least one plan that uses a hand-over.
    fn in_place(&self) -> Result<Vec<Variant>, StoreError> {
        let by = [col("planner"), col("parameters"), col("wall_limit_ns")];
        read(self.rows.clone().filter(col("hand_overs").gt(lit(0_u64))).group_by(by).agg([]))
    }

    pub(super) fn planners(&self) -> Result<Planners, StoreError> {
        let (counts, limit_bound) = (self.status_counts()?, self.limit_bound()?);
        let label = |variant: &Variant| label(variant, &limit_bound);
        let handing: BTreeSet<String> = self.in_place()?.iter().map(label).collect();
        let labels: BTreeSet<String> = counts.iter().map(|(variant, _, _)| label(variant)).collect();
        let numbers: BTreeMap<&String, usize> = labels.iter().zip(0..).collect();
        let (mut statuses, mut variants) = (BTreeMap::new(), BTreeMap::new());
        for (variant, status, rows) in &counts {
            let number = numbers[&label(variant)];
            *statuses.entry((number, *status)).or_default() += rows;
            variants.insert(variant, number);
        }
        let planner = |label: &String| Planner { label: label.clone(), is_in_place: handing.contains(label) };
        let planners: Vec<Planner> = labels.iter().map(planner).collect();
        let variants = number_variants(&variants).map_err(refused)?;
        Ok(Planners { planners, statuses, variants })
    }
}

fn number_variants(variants: &BTreeMap<&Variant, usize>) -> PolarsResult<DataFrame> {
    let mut frame = frame_of(variants.keys().copied())?;
    let mut columns = Vec::new();
    usize::write("planner_number", &variants.values().collect::<Vec<_>>(), &mut columns);
    frame.hstack_mut(&columns)?;
    Ok(frame)
}

fn label(Variant { planner, parameters, wall_limit_ns }: &Variant, limit_bound: &BTreeSet<String>) -> String {
    let label = planner_label(planner, parameters);
    if !limit_bound.contains(planner) {
        return label;
    }
    let limit = wall_limit_ns.map_or("no limit".to_owned(), |ns| {
        format_nanoseconds(as_real(ns)).replace(".00", "").replace(".0 ", " ")
    });
    format!("{label} @ {limit}")
}
