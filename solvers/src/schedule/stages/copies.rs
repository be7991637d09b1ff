//! The copies of a program over stages, and the seconds of each stage.
//!
//! Columns are the parts of the result of node i that are copied out and back beside stage t, and those that are on the
//! host and have arrived from it when the stage begins. S and R are as of the [program](super::formulation):
//!
//! ```text
//! minimise the sum of all time
//! time[t] >= seconds of R[t,i]            and >= seconds of out[t,i], and >= seconds of back[t,i], each sum over all i
//! out[t,i] <= S[t,i]
//! host[t+1,i] <= host[t,i] + out[t,i]
//! arrived[t+1,i] <= arrived[t,i] + back[t,i]
//! arrived[t+1,i] <= host[t,i]             a copy back begins after the copy out
//! ```

use super::graph::{Link, NodeGraph};
use crate::milp::{Column, LinearProgram};

/// The weight of runs and copies beside time: it favours little work, and may outweigh a difference in time that is as small.
pub(super) const WORK_WEIGHT: f64 = 1e-5;

/// The columns of a result in a stage.
#[derive(Clone, Copy, Debug)]
struct CopyColumns {
    out: Column,
    back: Column,
    on_host: Column,
    arrived: Column,
}

impl CopyColumns {
    /// The columns of a node; nothing is on the host before the first stage after the node's own.
    fn new(program: &mut LinearProgram, seconds: Link, is_first: bool) -> Self {
        let most = if is_first { 0.0 } else { 1.0 };
        let mut add_part =
            |most: f64, seconds: f64| program.add_column((0.0, most), false, WORK_WEIGHT * seconds);
        Self {
            out: add_part(1.0, seconds.out),
            back: add_part(most, seconds.back),
            on_host: add_part(most, 0.0),
            arrived: add_part(most, 0.0),
        }
    }
}

/// The columns of copies, and of the time of stages in parts of the time of all nodes.
pub(super) struct CopyModel {
    /// For each node: the parts of the time of all nodes in which its result is copied out, and back.
    seconds: Vec<Link>,
    /// For each stage and each earlier node; `None` if the result may not leave.
    columns: Vec<Vec<Option<CopyColumns>>>,
    /// For each stage.
    pub(super) times: Vec<Column>,
}

impl CopyModel {
    /// Adds the columns, with their costs.
    pub(super) fn new(program: &mut LinearProgram, graph: &NodeGraph, link: Link) -> Self {
        let scale = graph.seconds_scale();
        let copy_seconds = |bytes: u64| {
            let bytes = bytes as f64 * scale;
            Link { out: bytes * link.out, back: bytes * link.back }
        };
        let seconds: Vec<Link> = graph.nodes().iter().map(|node| copy_seconds(node.bytes)).collect();
        let (mut columns, mut times) = (Vec::new(), Vec::new());
        for stage in 0..graph.count_stages() {
            times.push(program.add_column((0.0, f64::INFINITY), false, 1.0));
            let mut of_stage = Vec::with_capacity(stage);
            for (node, &seconds) in seconds[..stage].iter().enumerate() {
                let is_first = stage == node + 1;
                of_stage.push(graph.may_leave(node).then(|| CopyColumns::new(program, seconds, is_first)));
            }
            columns.push(of_stage);
        }
        Self { seconds, columns, times }
    }

    fn columns_of(&self, stage: usize, node: usize) -> Option<CopyColumns> {
        self.columns.get(stage)?.get(node).copied().flatten()
    }

    /// The part of a result that is copied out beside a stage.
    pub(super) fn out_part(&self, stage: usize, node: usize) -> Option<Column> {
        self.columns_of(stage, node).map(|columns| columns.out)
    }

    /// The part of a result that has arrived from the host when a stage begins.
    pub(super) fn arrived_part(&self, stage: usize, node: usize) -> Option<Column> {
        self.columns_of(stage, node).map(|columns| columns.arrived)
    }

    /// Copies what is there or on the host, and lets a stage take the time of its runs and of its copies.
    pub(super) fn limit_stage(
        &self,
        program: &mut LinearProgram,
        stage: usize,
        kept: &[Column],
        runs: &[(Column, f64)],
    ) {
        for (node, &kept) in kept.iter().enumerate() {
            let Some(now) = self.columns_of(stage, node) else { continue };
            program.limit_sum(&[(now.out, 1.0), (kept, -1.0)], 0.0);
            let Some(next) = self.columns_of(stage + 1, node) else { continue };
            program.limit_sum(&[(next.on_host, 1.0), (now.on_host, -1.0), (now.out, -1.0)], 0.0);
            program.limit_sum(&[(next.arrived, 1.0), (now.arrived, -1.0), (now.back, -1.0)], 0.0);
            program.limit_sum(&[(next.arrived, 1.0), (now.on_host, -1.0)], 0.0);
        }
        let outs = self.list_copies(stage, |columns, seconds| (columns.out, seconds.out));
        let backs = self.list_copies(stage, |columns, seconds| (columns.back, seconds.back));
        for mut engine in [runs.to_vec(), outs, backs] {
            engine.push((self.times[stage], -1.0));
            program.limit_sum(&engine, 0.0);
        }
    }

    /// A term for each result that may be copied beside a stage.
    fn list_copies(
        &self,
        stage: usize,
        term: impl Fn(&CopyColumns, Link) -> (Column, f64),
    ) -> Vec<(Column, f64)> {
        let results = self.columns[stage].iter().zip(&self.seconds);
        results.filter_map(|(columns, &seconds)| Some(term(columns.as_ref()?, seconds))).collect()
    }
}
