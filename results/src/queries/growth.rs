//! The growth of planners: the costs of each workload of a family, over all seeds of the run.

use planlab_dsa::Stop;
use polars::prelude::*;

use super::{Tables, refused, rows, small};
use crate::StoreError;
use crate::fields::Field as _;
use crate::record::{Lane, Record, Status};
use crate::scale::{Curve, ScalePoint, assemble};

/// The columns that identify a point.
const POINT: [&str; 3] = ["workload", "planner", "parameters"];

impl Tables {
    /// The curves of all planners over all families with at least two sizes, by family and planner. Cells with a given
    /// capacity do not count. If a workload was run under several limits, the longest counts; with several builds, the
    /// latest.
    ///
    /// # Errors
    ///
    /// Errors of the store when its rows are read.
    pub fn curves(&self) -> Result<Vec<Curve>, StoreError> {
        let points = small(self.points().map_err(refused)?)?;
        let labels = points.text("planner")?.into_iter().zip(points.text("parameters")?);
        let labels = labels.map(|(planner, parameters)| crate::planner_label(&planner, &parameters));
        Ok(assemble(labels.zip(ScalePoint::read(&points, "")?)))
    }

    /// Tables of rows in memory.
    ///
    /// # Errors
    ///
    /// Errors of polars; none are known to occur.
    pub fn of_records(records: &[Record]) -> Result<Self, StoreError> {
        let rows = crate::frame::to_frame(records).map_err(refused)?.lazy();
        let rows = super::rows::against_any_plan(rows);
        Ok(Self { rows, replays: DataFrame::empty().lazy(), schedules: DataFrame::empty().lazy() })
    }

    fn points(&self) -> PolarsResult<LazyFrame> {
        let rows = self.counted()?;
        let of_point = |frame: LazyFrame, value: Expr| frame.group_by(POINT.map(col)).agg([value]);
        let samples = rows.clone().filter(col("lane").eq(lit(Lane::Timing.name())));
        let options = ExplodeOptions { empty_as_null: false, keep_nulls: false };
        let samples = samples.explode(by_name(["samples_ns"], true, false), options);
        let times = of_point(samples, col("samples_ns").cast(DataType::Float64).median().alias("time_ns"));
        let mut by_seed = POINT.map(col).to_vec();
        by_seed.push(col("seed"));
        let heights = rows.clone().group_by(by_seed).agg([col("height").cast(DataType::Float64).median()]);
        let heights = of_point(heights, col("height").median().alias("middle_height"));
        let without = col("status").filter(rows::is(Status::is_answer).not()).first();
        let points =
            rows.sort(["seed", "repetition"], SortMultipleOptions::default()).group_by(POINT.map(col)).agg([
                col("buffers").first(),
                without.fill_null(col("status").first()).alias("status"),
                col("seed").n_unique().cast(DataType::UInt64).alias("seeds"),
                col("wall_limit_ns").first(),
                col("stop").eq(lit(Stop::Deadline.name())).fill_null(lit(false)).any(true).alias("is_cut"),
                col("peak_rss_bytes").max(),
                col("load").first(),
            ]);
        let join = |points: LazyFrame, other| {
            points.join(other, POINT.map(col), POINT.map(col), JoinArgs::new(JoinType::Left))
        };
        // Figures of some seeds say nothing about seeds without an answer.
        let answered = |value: Expr| when(rows::is(Status::is_answer)).then(value).otherwise(lit(NULL));
        let over_load = col("middle_height") / col("load").cast(DataType::Float64);
        let over_load = when(col("load").gt(lit(0_u64))).then(over_load).otherwise(lit(NULL));
        let derived =
            [answered(col("time_ns")).alias("time_ns"), answered(over_load).alias("height_over_load")];
        Ok(join(join(points, times), heights).with_columns(derived))
    }

    /// The rows that count, of workloads whose key states their size.
    fn counted(&self) -> PolarsResult<LazyFrame> {
        let build = ["workload", "planner", "parameters", "limit", "seed"].map(col);
        let is_plain = col("parameters").eq(lit("")).or(col("parameters").eq(lit("null")));
        let sized = col("workload").str().contains(lit(r"(^|/)n\d+(/|$)"), true);
        let rows = self.rows.clone().filter(col("target_bytes").is_null().and(sized)).with_columns([
            when(is_plain).then(lit("{}")).otherwise(col("parameters")).alias("parameters"),
            col("wall_limit_ns").fill_null(lit(u64::MAX)).alias("limit"),
            col("started_ns").max().over([col("cell")])?.alias("ran"),
        ]);
        let of_builds =
            |column: &str| col(column).eq(col(column).max().over(build.clone()).expect("columns"));
        Ok(rows
            .filter(of_builds("ran"))
            .filter(of_builds("cell"))
            .filter(col("limit").eq(col("limit").max().over(POINT.map(col))?)))
    }
}
