//! The model: for each node, intervals in which its value is held, as integer variables.

use pumpkin_constraints::{cumulative, less_than_or_equals};
use pumpkin_core::options::SolverOptions;
use pumpkin_core::predicates::Predicate;
use pumpkin_core::proof::ConstraintTag;
use pumpkin_core::variables::{AffineView, DomainId, Literal, TransformableVariable};
use pumpkin_core::{Solver, predicate};

use super::retention::{Load, RetentionProblem};

/// The units of memory of all values: the solver adds up to four times as many in 32 bits.
const MOST_UNITS: u64 = 1 << 28;
/// The cost of running every node again.
const MOST_COST: f64 = 1e6;

/// The size of a model, and its additions.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModelOptions {
    /// The most intervals of a node.
    pub(super) computations: usize,
    /// Whether the memory during the own node of each stage is limited by a sum, too.
    pub(super) sums: bool,
}

/// A time in which a value is held: it starts with a run of its node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    /// The stage of the run; the number of stages if there is no such run.
    pub(super) stage: DomainId,
    /// The time after the last read.
    end: DomainId,
    present: Literal,
}

pub(super) struct Model {
    pub(super) solver: Solver,
    pub(super) tag: ConstraintTag,
    /// For each node, its intervals; the first starts with its first run.
    pub(super) intervals: Vec<Vec<Interval>>,
    /// What all further runs cost together.
    pub(super) overhead: DomainId,
    /// For each node, the cost of a run.
    pub(super) costs: Vec<i32>,
    /// The times of a stage: one for each node, and one after its own.
    width: i32,
    /// Always 0.
    zero: DomainId,
}

impl Model {
    pub(super) fn new(problem: &RetentionProblem, options: ModelOptions) -> Self {
        let problem = &problem.in_coarse_units(options.computations, MOST_UNITS);
        let mut solver =
            Solver::with_options(SolverOptions { memory_preallocated: 1, ..SolverOptions::default() });
        let tag = solver.new_constraint_tag();
        let costs = problem.whole_costs(MOST_COST);
        let repeats = as_index(options.computations - 1);
        let overhead = solver.new_bounded_integer(0, repeats * costs.iter().sum::<i32>());
        let width = as_index(problem.nodes.len() + 1);
        let zero = solver.new_bounded_integer(0, 0);
        let mut model = Self { solver, tag, intervals: Vec::new(), overhead, costs, width, zero };
        for (node, data) in problem.nodes.iter().enumerate() {
            let intervals = if data.may_repeat { options.computations } else { 1 };
            model.add_intervals(node, intervals);
        }
        model.post_reads(problem);
        model.post_overhead();
        if options.sums {
            model.post_sums(problem);
        }
        model.post_memory(problem);
        model
    }

    /// The number of stages, which stands for none.
    pub(super) const fn no_stage(&self) -> i32 {
        self.width - 1
    }

    /// The time at which a node runs in a stage.
    fn time_of_run(&self, stage: DomainId, node: usize) -> AffineView<DomainId> {
        stage.scaled(self.width).offset(as_index(node))
    }

    /// Posts that a sum is at most a bound, always or if a literal holds.
    fn post_at_most(&mut self, terms: Vec<AffineView<DomainId>>, bound: i32, condition: Option<Literal>) {
        let row = less_than_or_equals(terms, bound, self.tag);
        match condition {
            Some(literal) => self.solver.add_constraint(row).implied_by(literal),
            None => self.solver.add_constraint(row).post(),
        }
    }

    fn post_clause(&mut self, clause: impl IntoIterator<Item = Predicate>) {
        if !self.solver.is_inconsistent() {
            self.solver.add_clause(clause, self.tag);
        }
    }

    /// Adds the intervals of a node, one after another. One without a run is empty, and lies after the last stage.
    fn add_intervals(&mut self, node: usize, count: usize) {
        let (own, none) = (as_index(node), self.no_stage());
        let latest = self.width * none + none;
        let first = self.solver.new_bounded_integer(own, own);
        let end = self.solver.new_bounded_integer(self.width * own + own + 1, latest);
        let mut intervals = vec![Interval { stage: first, end, present: self.solver.get_true_literal() }];
        for _ in 1..count {
            let before = intervals[intervals.len() - 1].end;
            let stage = self.solver.new_bounded_integer(own + 1, none);
            let end = self.solver.new_bounded_integer(self.width * (own + 1) + own, latest);
            let present = self.solver.new_literal_for_predicate(predicate![stage <= none - 1], self.tag);
            let start = self.time_of_run(stage, node);
            self.post_at_most(vec![before.scaled(1), start.scaled(-1)], 0, None);
            self.post_at_most(vec![start, end.scaled(-1)], 0, None);
            self.post_at_most(vec![start, end.scaled(-1)], -1, Some(present));
            self.post_clause([present.get_true_predicate(), predicate![end <= self.width * none + own]]);
            intervals.push(Interval { stage, end, present });
        }
        self.intervals.push(intervals);
    }

    /// Every run of a node reads a value that is held, and every further run is read in its stage.
    fn post_reads(&mut self, problem: &RetentionProblem) {
        // For each further interval of each node: that the first of its readers run in its stage.
        let mut reads_in_stage: Vec<Vec<Vec<Predicate>>> =
            self.intervals.iter().map(|intervals| vec![Vec::new(); intervals.len()]).collect();
        for (reader, node) in problem.nodes.iter().enumerate() {
            for &input in &node.inputs {
                for run in self.intervals[reader].clone() {
                    self.post_read((reader, run), input, &mut reads_in_stage[input]);
                }
            }
        }
        for (node, clauses) in reads_in_stage.into_iter().enumerate() {
            for (place, mut clause) in clauses.into_iter().enumerate().skip(1) {
                clause.push(self.intervals[node][place].present.get_false_predicate());
                self.post_clause(clause);
            }
        }
    }

    /// If a run takes place, one of the intervals of an input has begun before it and lasts until then.
    fn post_read(
        &mut self,
        (reader, run): (usize, Interval),
        input: usize,
        reads_in_stage: &mut [Vec<Predicate>],
    ) {
        let mut covers = vec![run.present.get_false_predicate()];
        for (place, value) in self.intervals[input].clone().into_iter().enumerate() {
            let is_read = self.solver.new_literal();
            self.post_clause([is_read.get_false_predicate(), value.present.get_true_predicate()]);
            self.post_at_most(vec![value.stage.scaled(1), run.stage.scaled(-1)], 0, Some(is_read));
            let time = self.time_of_run(run.stage, reader);
            self.post_at_most(vec![time, value.end.scaled(-1)], -1, Some(is_read));
            covers.push(is_read.get_true_predicate());
            if place > 0 {
                let in_stage = self.solver.new_literal();
                self.post_clause([in_stage.get_false_predicate(), is_read.get_true_predicate()]);
                self.post_at_most(vec![run.stage.scaled(1), value.stage.scaled(-1)], 0, Some(in_stage));
                reads_in_stage[place].push(in_stage.get_true_predicate());
            }
        }
        self.post_clause(covers);
    }

    fn post_overhead(&mut self) {
        let mut terms = vec![self.overhead.scaled(-1)];
        for (intervals, &cost) in self.intervals.iter().zip(&self.costs).filter(|(_, cost)| **cost > 0) {
            let further = intervals.iter().skip(1);
            terms.extend(further.map(|interval| interval.present.get_integer_variable().scaled(cost)));
        }
        self.post_at_most(terms, 0, None);
    }

    /// Requires that the values held while the own node of a stage runs fit beside its load.
    fn post_sums(&mut self, problem: &RetentionProblem) {
        for (index, load) in problem.loads.iter().enumerate() {
            let stage = as_index(index);
            let time = self.width * stage + stage;
            let mut terms = Vec::new();
            for node in 0..=index {
                let bytes = problem.nodes[node].bytes;
                if bytes == 0 {
                    continue;
                }
                let is_held = self.solver.new_literal();
                for interval in self.intervals[node].clone() {
                    let [begins_later, ends_before] =
                        [predicate![interval.stage >= stage + 1], predicate![interval.end <= time]];
                    self.post_clause([begins_later, ends_before, is_held.get_true_predicate()]);
                }
                terms.push(is_held.get_integer_variable().scaled(as_units(bytes)));
            }
            if !terms.is_empty() && !self.solver.is_inconsistent() {
                self.post_at_most(terms, as_units(problem.budget) - as_units(load.during), None);
            }
        }
    }

    /// Requires that the values held at any time fit beside the loads.
    ///
    /// Tasks of the solver have constant durations. An interval is two: one from its start to beyond all times, and one
    /// from before all times to its end. Both together take its bytes outside of it, and twice as many inside. So the
    /// capacity is the budget and the bytes of all intervals.
    fn post_memory(&mut self, problem: &RetentionProblem) {
        let horizon = self.width * (self.width + 1);
        let (mut starts, mut durations, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        let mut capacity = as_units(problem.budget);
        for (node, data) in problem.nodes.iter().enumerate().filter(|(_, data)| data.bytes > 0) {
            for interval in &self.intervals[node] {
                starts.extend([self.time_of_run(interval.stage, node), interval.end.offset(-horizon)]);
                durations.extend([horizon; 2]);
                bytes.extend([as_units(data.bytes); 2]);
                capacity += as_units(data.bytes);
            }
        }
        for (index, &Load { before, during, after }) in problem.loads.iter().enumerate() {
            let stage = as_index(index);
            let (begin, rest) = (self.width * stage, self.width - stage - 1);
            let parts =
                [(begin, stage, before), (begin + stage, 1, during), (begin + stage + 1, rest, after)];
            for (start, duration, load) in parts.into_iter().filter(|part| part.1 > 0 && part.2 > 0) {
                starts.push(self.zero.offset(start));
                durations.push(duration);
                bytes.push(as_units(load));
            }
        }
        if !starts.is_empty() {
            let memory = cumulative(starts, durations, bytes, capacity, self.tag);
            self.solver.add_constraint(memory).post();
        }
    }
}

/// Units of memory as an integer of the solver.
fn as_units(units: u64) -> i32 {
    i32::try_from(units).expect("about MOST_UNITS at most")
}

/// A node, a stage or a number of them as an integer of the solver.
pub(super) fn as_index(index: usize) -> i32 {
    i32::try_from(index).expect("few passes")
}
