//! Leaderboards: the results of each planner over its cells. Cells with a given capacity do not count.

use polars::prelude::*;

use super::cells::{Cells, GAP_SHIFT, mean_of};
use crate::StoreError;
use crate::columns::{Field as _, table};
use crate::rows::Status;
use crate::statistics::ShiftedMean;
use crate::tables::{read, refused, rows, small};

/// 1 ms, in nanoseconds.
const TIME_SHIFT: f64 = 1e6;

table! {
    /// The results of a planner over some cells.
    #[derive(Clone, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct Leader as "" {
        /// The index of the planner.
        pub planner_number: usize,
        /// The number of its workloads.
        pub workloads: usize,
        /// The number of its cells.
        pub cells: usize,
        /// The cells with an answer.
        pub answers: usize,
        /// The cells at the best bound that any planner proved.
        pub optimal: usize,
        /// The cells that the planner itself proved optimal.
        pub proved: usize,
        /// The cells without an answer that were to have one; each counts with a penalty.
        pub unanswered: usize,
        /// The cells in which it broke its contract.
        pub failures: usize,
        /// The gaps that the mean counts: those of the answers, up to the penalty, and penalties.
        pub scored_gaps: Vec<f64>,
        /// The times that the mean counts: those of the answers, and the time limit where an answer lacks.
        pub scored_times: Vec<f64>,
    }
}

impl Leader {
    /// The geometric mean of the gaps, shifted by [`GAP_SHIFT`], of gaps up to [`PENALTY_GAP`](super::PENALTY_GAP), which also counts where an
    /// answer lacks. Its failures are the cells that were not to have one.
    #[must_use]
    pub fn mean_gap(&self) -> ShiftedMean {
        mean_of(&self.scored_gaps, self.cells, GAP_SHIFT)
    }

    /// The geometric mean of the times, shifted by 1 ms, with the time limit where an answer lacks; cells that did not
    /// run alone, or lack an answer and a limit, are its failures.
    #[must_use]
    pub fn mean_time(&self) -> ShiftedMean {
        mean_of(&self.scored_times, self.cells, TIME_SHIFT)
    }
}

/// The subject of a leaderboard: a suite, or the workloads of one route in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Board {
    /// The suite, or empty.
    pub suite: String,
    /// The first segment of the workloads' keys, if the board covers only those.
    pub route: Option<String>,
}

/// The lines of a leaderboard.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Leaders {
    /// All planners.
    pub all: Vec<Leader>,
    /// The planners that ran on all common workloads, over these alone.
    pub common: Vec<Leader>,
    /// The indices of the common workloads: those on which every planner with at least half of all workloads ran.
    pub common_workloads: Vec<usize>,
}

impl Cells {
    /// Each planner over all its cells, by planner.
    ///
    /// # Errors
    ///
    /// Like [`Cells::rows`], as for all functions below.
    pub fn planner_leaders(&self) -> Result<Vec<Leader>, StoreError> {
        read(rank_leaders(self.free()))
    }

    /// The boards with cells, by suite: one for the suite, and one for each route if its workloads have several.
    pub fn board_leaders(&self) -> Result<Vec<(Board, Leaders)>, StoreError> {
        let by = ["suite", "route"];
        let known = self.free().with_columns([workload_route()]).group_by(by.map(col)).agg([]);
        let known = small(known.sort(by, SortMultipleOptions::default()))?;
        let known: Vec<(String, String)> =
            known.text_column("suite")?.into_iter().zip(known.text_column("route")?).collect();
        let mut boards = Vec::new();
        for routes in known.chunk_by(|a, b| a.0 == b.0) {
            let one = routes.iter().map(|(_, route)| Some(route.clone())).filter(|_| routes.len() > 1);
            for route in std::iter::once(None).chain(one) {
                let board = Board { suite: routes[0].0.clone(), route };
                let lines = read_leaders(self.cells_on(&board))?;
                boards.push((board, lines));
            }
        }
        Ok(boards)
    }

    /// Each planner over the cells of these workloads, given by their indices.
    pub fn leaders_on(&self, workloads: &[usize]) -> Result<Leaders, StoreError> {
        let mut columns = Vec::new();
        usize::write("workload_number", &workloads.iter().collect::<Vec<_>>(), &mut columns);
        let chosen = DataFrame::new(workloads.len(), columns).map_err(refused)?.lazy();
        let by = [col("workload_number")];
        read_leaders(self.free().join(chosen, by.clone(), by, JoinArgs::new(JoinType::Semi)))
    }

    fn cells_on(&self, board: &Board) -> LazyFrame {
        let cells = self.free().filter(col("suite").eq(lit(board.suite.as_str())));
        match &board.route {
            Some(own) => cells.with_columns([workload_route()]).filter(col("route").eq(lit(own.as_str()))),
            None => cells,
        }
    }
}

/// The first segment of the workload's key.
fn workload_route() -> Expr {
    col("workload").str().extract(lit("^([^/]*)"), 1).alias("route")
}

fn rank_leaders(cells: LazyFrame) -> LazyFrame {
    let number = |count: Expr| count.cast(DataType::UInt64);
    let count = |is: Expr| is.cast(DataType::UInt64).sum();
    cells
        .group_by([col("planner_number")])
        .agg([
            number(col("workload_number").n_unique()).alias("workloads"),
            number(len()).alias("cells"),
            count(rows::has_status(Status::is_answer)).alias("answers"),
            count(col("answer_gap").lt_eq(lit(0.0))).alias("optimal"),
            count(col("status").eq(lit(Status::Optimal.name()))).alias("proved"),
            count(rows::has_status(Status::lacks_answer)).alias("unanswered"),
            count(rows::has_status(Status::is_failure)).alias("failures"),
            col("scored_gap").drop_nulls().alias("scored_gaps"),
            col("scored_time").drop_nulls().alias("scored_times"),
        ])
        .sort(["planner_number"], SortMultipleOptions::default())
}

fn read_leaders(cells: LazyFrame) -> Result<Leaders, StoreError> {
    let by = [col("workload_number")];
    let common = small(common_workloads(cells.clone()))?;
    let mut numbers = usize::read(&common, "workload_number")?;
    numbers.sort_unstable();
    let of_common = cells.clone().join(common.into_lazy(), by.clone(), by, JoinArgs::new(JoinType::Semi));
    let mut common: Vec<Leader> = read(rank_leaders(of_common))?;
    common.retain(|leader| leader.workloads == numbers.len());
    Ok(Leaders { all: read(rank_leaders(cells))?, common, common_workloads: numbers })
}

fn common_workloads(cells: LazyFrame) -> LazyFrame {
    let ran = cells.group_by([col("planner_number"), col("workload_number")]).agg([]);
    let own = len().over([col("planner_number")]).expect("a column");
    let broad = ran
        .with_columns([own.alias("own"), col("workload_number").n_unique().alias("all")])
        .filter((col("own") * lit(2_u32)).gt_eq(col("all")));
    broad
        .with_columns([col("planner_number").n_unique().alias("planners")])
        .group_by([col("workload_number")])
        .agg([len().alias("ran"), col("planners").first()])
        .filter(col("ran").eq(col("planners")))
        .select([col("workload_number")])
}
