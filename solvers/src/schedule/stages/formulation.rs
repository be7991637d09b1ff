//! The program: its columns and rows, for a graph and a budget of bytes.
//!
//! The bytes in use after a node are a column in parts of the budget. A run adds the result of the node, and what the
//! node before it frees is subtracted. A node k of stage t frees its input i if none of these is 1:
//!
//! ```text
//! hazards = (1 - R[t,k]) + S[t+1,i] + sum of R[t,j] over the readers j of i with k < j <= t
//! 1 - free <= hazards <= most * (1 - free)        most: the number of terms
//! ```
//!
//! A graph with a link has [copies](super::copies), too. Then S[t,i] may arrive from the host, and the cost is the time of
//! the stages. What is copied out beside a stage is not freed in it; what has arrived takes memory in the stage before.

use planlab_graph::ScheduleHalt;

use super::copies::{CopyModel, WORK_WEIGHT};
use super::graph::NodeGraph;
use super::plan::StageValues;
use crate::milp::{Column, End, LinearProgram, LinearSolution, SolverLimits};
use crate::schedule::milp_solver::solve_program;

/// The program or its relaxation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::schedule) enum Form {
    /// Every choice is 0 or 1.
    Whole,
    /// Every choice is a number from 0 to 1.
    Relaxed,
}

/// The program of a graph.
pub(super) struct Formulation<'g> {
    graph: &'g NodeGraph,
    budget: f64,
    form: Form,
    program: LinearProgram,
    /// For each stage and each node up to its own: whether it runs.
    runs: Vec<Vec<Column>>,
    /// For each stage and each earlier node: whether its result is there at the start.
    kept: Vec<Vec<Column>>,
    copies: Option<CopyModel>,
}

impl<'g> Formulation<'g> {
    /// The program for `budget` bytes, which are not 0.
    pub(super) fn new(graph: &'g NodeGraph, budget: f64, form: Form) -> Self {
        let (runs, kept) = (Vec::new(), Vec::new());
        let mut program = LinearProgram::new();
        let copies = graph.link().map(|link| CopyModel::new(&mut program, graph, link));
        let mut formulation = Self { graph, budget, form, program, runs, kept, copies };
        formulation.add_choices();
        for stage in 0..graph.count_stages() {
            formulation.require_inputs(stage);
            formulation.require_origins(stage);
            if graph.is_lazy() {
                formulation.require_readers(stage);
            }
            formulation.limit_memory(stage);
            formulation.limit_copies(stage);
        }
        formulation
    }

    /// How the solver ends, and the values of the best solution that it finds. Errors are as of [`solve_program`].
    pub(super) fn solve(self, limits: SolverLimits) -> Result<(End, Option<StageValues>), ScheduleHalt> {
        let stages = self.graph.count_stages();
        let (end, solution) = solve_program(self.program, limits)?;
        let values = solution.map(|solution| StageValues {
            kept: read_columns(&solution, |stage, node| self.kept.get(stage)?.get(node).copied(), stages),
            arrived: read_columns(
                &solution,
                |stage, node| self.copies.as_ref()?.arrived_part(stage, node),
                stages,
            ),
        });
        Ok((end, values))
    }

    fn add_choice(&mut self, range: (f64, f64), cost: f64) -> Column {
        self.program.add_column(range, self.form == Form::Whole, cost)
    }

    /// Adds the columns of runs and of kept results. Costs are parts of the time of all nodes.
    fn add_choices(&mut self) {
        let graph = self.graph;
        let weight = if self.copies.is_some() { WORK_WEIGHT } else { 1.0 };
        let scale = weight * graph.seconds_scale();
        for stage in 0..graph.count_stages() {
            let mut runs = Vec::with_capacity(stage + 1);
            let mut kept = Vec::with_capacity(stage);
            for (index, node) in graph.nodes()[..stage].iter().enumerate() {
                let is_awaited = graph.last_reader(index) >= stage;
                let (run, keep) = match (node.runs_once, is_awaited) {
                    (false, _) => ((0.0, 1.0), (0.0, 1.0)),
                    (true, false) => ((0.0, 0.0), (0.0, 0.0)),
                    (true, true) => ((0.0, 0.0), (1.0, 1.0)),
                };
                runs.push(self.add_choice(run, node.seconds * scale));
                kept.push(self.add_choice(keep, 0.0));
            }
            runs.push(self.add_choice((1.0, 1.0), graph.nodes()[stage].seconds * scale));
            self.runs.push(runs);
            self.kept.push(kept);
        }
    }

    /// Lets a node run only if its inputs are there or run.
    fn require_inputs(&mut self, stage: usize) {
        let graph = self.graph;
        for (index, node) in graph.nodes()[..=stage].iter().enumerate() {
            for &input in &node.inputs {
                let (runs, kept) = (&self.runs[stage], &self.kept[stage]);
                let row = [(runs[index], 1.0), (runs[input], -1.0), (kept[input], -1.0)];
                self.program.limit_sum(&row, 0.0);
            }
        }
    }

    /// Keeps only what was there in the stage before, ran in it, or has arrived.
    fn require_origins(&mut self, stage: usize) {
        for node in 0..stage {
            let mut row = vec![(self.kept[stage][node], 1.0), (self.runs[stage - 1][node], -1.0)];
            row.extend(self.kept[stage - 1].get(node).map(|&kept| (kept, -1.0)));
            row.extend(self.arrived_part(stage, node).map(|arrived| (arrived, -1.0)));
            self.program.limit_sum(&row, 0.0);
        }
    }

    /// Lets a node run again only if a node of the stage reads it.
    fn require_readers(&mut self, stage: usize) {
        let graph = self.graph;
        for node in (0..stage).filter(|&node| !graph.nodes()[node].runs_once) {
            let readers = graph.readers_of(node).iter().filter(|&&reader| reader <= stage);
            let mut row = vec![(self.runs[stage][node], 1.0)];
            row.extend(readers.map(|&reader| (self.runs[stage][reader], -1.0)));
            self.program.limit_sum(&row, 0.0);
        }
    }

    /// Limits the bytes in use after each node of a stage, in parts of the budget.
    fn limit_memory(&mut self, stage: usize) {
        let graph = self.graph;
        let part = |node: usize| graph.nodes()[node].bytes as f64 / self.budget;
        let parts: Vec<f64> = (0..=stage).map(part).collect();
        let mut before = self.program.add_column((0.0, 1.0), false, 0.0);
        let mut row = vec![(before, 1.0), (self.runs[stage][0], -parts[0])];
        row.extend(self.kept[stage].iter().zip(&parts).map(|(&kept, &part)| (kept, -part)));
        let arriving =
            (0..stage).filter_map(|node| Some((self.arrived_part(stage + 1, node)?, -parts[node])));
        row.extend(arriving);
        self.program.fix_sum(&row, 0.0);
        for node in 1..=stage {
            let after = self.program.add_column((0.0, 1.0), false, 0.0);
            let mut row = vec![(after, 1.0), (before, -1.0), (self.runs[stage][node], -parts[node])];
            for &input in &graph.nodes()[node - 1].inputs {
                row.push((self.add_release(stage, input, node - 1), parts[input]));
            }
            self.program.fix_sum(&row, 0.0);
            before = after;
        }
    }

    /// The column that says whether a node of a stage frees one of its inputs.
    fn add_release(&mut self, stage: usize, input: usize, node: usize) -> Column {
        let graph = self.graph;
        let free = self.add_choice((0.0, 1.0), 0.0);
        let is_later = |reader: &&usize| (node + 1..=stage).contains(*reader);
        let later = graph.readers_of(input).iter().filter(is_later);
        let mut hazards: Vec<(Column, f64)> = later.map(|&reader| (self.runs[stage][reader], 1.0)).collect();
        hazards.extend(self.kept.get(stage + 1).map(|kept| (kept[input], 1.0)));
        let others = hazards.len() as f64;
        hazards.push((self.runs[stage][node], -1.0));
        let mut row: Vec<_> = hazards.iter().map(|&(column, sign)| (column, -sign)).collect();
        row.push((free, -1.0));
        self.program.limit_sum(&row, 0.0);
        hazards.push((free, others + 1.0));
        self.program.limit_sum(&hazards, others);
        if let Some(out) = self.copies.as_ref().and_then(|copies| copies.out_part(stage, input)) {
            self.program.limit_sum(&[(free, 1.0), (out, 1.0)], 1.0);
        }
        free
    }

    /// The part of a result that has arrived from the host when a stage begins.
    fn arrived_part(&self, stage: usize, node: usize) -> Option<Column> {
        self.copies.as_ref()?.arrived_part(stage, node)
    }

    /// Adds the rows of the copies beside a stage, and of its time.
    fn limit_copies(&mut self, stage: usize) {
        let Some(copies) = &self.copies else { return };
        let scale = self.graph.seconds_scale();
        let runs = self.runs[stage].iter().zip(self.graph.nodes());
        let runs: Vec<_> = runs.map(|(&run, node)| (run, node.seconds * scale)).collect();
        copies.limit_stage(&mut self.program, stage, &self.kept[stage], &runs);
    }
}

/// For each stage and each earlier node, the value of a column; 0 without one.
fn read_columns(
    solution: &LinearSolution,
    column: impl Fn(usize, usize) -> Option<Column>,
    stages: usize,
) -> Vec<Vec<f64>> {
    let value = |stage, node| column(stage, node).map_or(0.0, |column| solution.value(column));
    (0..stages).map(|stage| (0..stage).map(|node| value(stage, node)).collect()).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use planlab_dsa::testing::is_deep_run;

    use super::*;
    use crate::schedule::stages::graph::Link;
    use crate::schedule::stages::graph::tests::unit_chain;

    /// The least seconds of all runs.
    pub(in crate::schedule::stages) fn least_seconds(graph: &NodeGraph, budget: f64, form: Form) -> f64 {
        let formulation = Formulation::new(graph, budget, form);
        let (end, solution) = formulation.program.solve(SolverLimits::default()).expect("a model");
        assert_eq!(end, End::Optimal);
        let solution = solution.expect("a solution");
        let stages = formulation.runs.iter();
        let seconds = |runs: &Vec<Column>| -> f64 {
            runs.iter().zip(graph.nodes()).map(|(&run, node)| node.seconds * solution.value(run)).sum()
        };
        stages.map(seconds).sum()
    }

    /// Unit chains by their length, budget, optimum and the optimum of the relaxation.
    const CHAINS: [(usize, f64, &str, &str); 11] = [
        (4, 4.0, "11.00", "10.11"),
        (4, 5.0, "10.00", "9.44"),
        (4, 6.0, "9.00", "9.00"),
        (6, 4.0, "18.00", "16.00"),
        (6, 5.0, "16.00", "15.00"),
        (6, 6.0, "15.00", "14.11"),
        (8, 4.0, "26.00", "22.00"),
        (8, 5.0, "22.00", "21.00"),
        (8, 6.0, "21.00", "20.00"),
        (10, 5.0, "29.00", "27.00"),
        (12, 8.0, "31.00", "30.00"),
    ];

    fn least_of_chain(length: usize, budget: f64, form: Form) -> String {
        format!("{:.2}", least_seconds(&unit_chain(length), budget, form))
    }

    /// Longer chains have their turn in a deep run.
    #[test]
    fn optimum_of_a_chain_is_the_published_one() {
        let longest = if is_deep_run() { 12 } else { 6 };
        for (length, budget, least, _) in CHAINS.into_iter().filter(|&(length, ..)| length <= longest) {
            assert_eq!(least_of_chain(length, budget, Form::Whole), least, "{length} in {budget}");
        }
    }

    #[test]
    fn relaxation_of_a_chain_is_the_published_one() {
        for (length, budget, _, least) in CHAINS {
            assert_eq!(least_of_chain(length, budget, Form::Relaxed), least, "{length} in {budget}");
        }
    }

    /// The least seconds of all stages of a unit chain over a link, if its backward passes run once.
    fn least_over_link(length: usize, budget: f64, link: Link) -> f64 {
        let mut nodes = unit_chain(length).nodes().to_vec();
        nodes[length + 1..].iter_mut().for_each(|node| node.runs_once = true);
        let graph = NodeGraph::new(nodes).with_link(link);
        let Formulation { program, copies, .. } = Formulation::new(&graph, budget, Form::Whole);
        let (end, solution) = program.solve(SolverLimits::default()).expect("a model");
        assert_eq!(end, End::Optimal);
        let (copies, solution) = (copies.expect("a link"), solution.expect("a solution"));
        let parts: f64 = copies.times.iter().map(|&time| solution.value(time)).sum();
        parts / graph.seconds_scale()
    }

    /// A slow link leaves the optima of the chains without copies; a fast one, the time of all nodes.
    #[test]
    fn chain_over_a_link_takes_the_longest_of_runs_and_copies() {
        for (length, budget, out, back, least) in [
            (3, 4.0, 1.0, 1.0, "7.00"),
            (3, 4.0, 2.0, 2.0, "8.00"),
            (3, 4.0, 1e3, 1e3, "8.00"),
            (4, 4.0, 1.0, 1.0, "9.00"),
            (4, 4.0, 3.0, 1.0, "10.00"),
            (4, 4.0, 2.0, 2.0, "11.00"),
            (4, 4.0, 1e3, 1e3, "11.00"),
            (4, 5.0, 2.0, 2.0, "9.00"),
            (4, 5.0, 1e3, 1e3, "10.00"),
        ] {
            let found = format!("{:.2}", least_over_link(length, budget, Link { out, back }));
            assert_eq!(found, least, "{length} in {budget}, {out} s out and {back} s back");
        }
    }

    #[test]
    fn chain_in_too_little_memory_is_infeasible() {
        let graph = unit_chain(4);
        // The first backward pass takes three bytes: its result and its two inputs.
        let (end, values) =
            Formulation::new(&graph, 2.9, Form::Whole).solve(SolverLimits::default()).expect("a model");
        assert!(end == End::Infeasible && values.is_none(), "{end:?}");
    }

    /// The paper's model of 8 layers has 614 columns and 805 rows: for each of the 24 edges a column and two rows more,
    /// which say what the last node of a stage frees.
    #[test]
    fn model_of_a_chain_has_the_published_size() {
        let graph = unit_chain(8);
        assert_eq!(graph.nodes().iter().map(|node| node.inputs.len()).sum::<usize>(), 24);
        let formulation = Formulation::new(&graph, 4.0, Form::Whole);
        assert_eq!(formulation.program.size(), (614 - 24, 805 - 2 * 24));
    }

    #[test]
    fn node_that_runs_once_stays_until_its_last_reader() {
        let mut nodes = unit_chain(3).nodes().to_vec();
        nodes[3..].iter_mut().for_each(|node| node.runs_once = true);
        let graph = NodeGraph::new(nodes);
        let (_, values) =
            Formulation::new(&graph, 4.0, Form::Whole).solve(SolverLimits::default()).expect("a model");
        let kept = values.expect("a solution").kept;
        let stages =
            |node: usize| -> Vec<usize> { (node + 1..7).filter(|&stage| kept[stage][node] > 0.5).collect() };
        assert_eq!([3, 4, 5, 6].map(stages), [vec![4], vec![5], vec![6], vec![]]);
    }
}
