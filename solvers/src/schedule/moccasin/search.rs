//! The search: cheaper and cheaper solutions of the model, until the last is proved cheapest.

use planlab_graph::ScheduleHalt;
use pumpkin_conflict_resolvers::resolvers::ResolutionResolver;
use pumpkin_core::branching::branchers::independent_variable_value_brancher::IndependentVariableValueBrancher;
use pumpkin_core::branching::branchers::warm_start::WarmStart;
use pumpkin_core::branching::value_selection::InDomainMax;
use pumpkin_core::branching::variable_selection::InputOrder;
use pumpkin_core::predicate;
use pumpkin_core::results::{ProblemSolution, SatisfactionResultUnderAssumptions};
use pumpkin_core::termination::TerminationCondition;
use pumpkin_core::variables::DomainId;

use super::model::{Interval, Model, ModelOptions, as_index};
use super::retention::{RetentionProblem, Runs};
use crate::cp::Guide;

/// The result of a search for a cheaper solution.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The stages in which each node runs.
    Cheaper(Runs),
    /// No solution is cheaper.
    NoneCheaper,
    /// The steps were not enough.
    Unknown,
}

/// Solutions of a model, each cheaper than the one before.
pub(super) struct RetentionSearch {
    model: Model,
    guide: Guide<Backup>,
    resolver: ResolutionResolver,
    /// Steps of the solver that are left.
    steps: u64,
    /// The last solution is the cheapest.
    is_finished: bool,
}

impl RetentionSearch {
    /// A search of at most `steps` steps of the solver, which begins with the runs of a hint.
    pub(super) fn new(
        problem: &RetentionProblem,
        options: ModelOptions,
        steps: u64,
        hint: Option<&Runs>,
    ) -> Self {
        let model = Model::new(problem, options);
        let guide = guide_search(&model, problem, hint);
        Self { model, guide, resolver: ResolutionResolver::default(), steps, is_finished: false }
    }

    /// Searches for a solution that is cheaper than the last one. `tick` is called at each step of the solver. Errors
    /// are those of `tick`.
    pub(super) fn find_cheaper(
        &mut self,
        tick: &mut dyn FnMut() -> Result<(), ScheduleHalt>,
    ) -> Result<Verdict, ScheduleHalt> {
        if self.is_finished {
            return Ok(Verdict::NoneCheaper);
        }
        let mut watch = Watch { tick, halt: None, steps: &mut self.steps };
        let (solver, intervals) = (&mut self.model.solver, &self.model.intervals);
        let (guide, resolver) = (&mut self.guide, &mut self.resolver);
        let stages = match solver.satisfy_under_assumptions(guide, &mut watch, resolver, &[]) {
            SatisfactionResultUnderAssumptions::Satisfiable(found) => {
                let solution = found.solution();
                let stages = |intervals: &Vec<Interval>| {
                    intervals.iter().map(|interval| solution.get_integer_value(interval.stage)).collect()
                };
                intervals.iter().map(stages).collect::<Vec<Vec<i32>>>()
            }
            SatisfactionResultUnderAssumptions::UnsatisfiableUnderAssumptions(_)
            | SatisfactionResultUnderAssumptions::Unsatisfiable(_) => {
                self.is_finished = true;
                return Ok(Verdict::NoneCheaper);
            }
            SatisfactionResultUnderAssumptions::Unknown(_) => {
                return watch.halt.map_or(Ok(Verdict::Unknown), Err);
            }
        };
        self.guide.forget_start();
        let none = self.model.no_stage();
        let runs: Runs = stages
            .into_iter()
            .map(|stages| stages.into_iter().filter(|&stage| stage < none).map(as_stage).collect())
            .collect();
        self.exclude_cost(&runs);
        Ok(Verdict::Cheaper(runs))
    }

    /// Excludes solutions that cost as much as these runs, or more.
    fn exclude_cost(&mut self, runs: &Runs) {
        let further = runs.iter().zip(&self.model.costs);
        let cost: i32 = further.map(|(stages, &cost)| as_index(stages.len() - 1) * cost).sum();
        let overhead = self.model.overhead;
        if cost == 0 {
            self.is_finished = true;
        } else if !self.model.solver.is_inconsistent() {
            self.model.solver.add_clause([predicate![overhead <= cost - 1]], self.model.tag);
        }
    }
}

fn as_stage(stage: i32) -> usize {
    usize::try_from(stage).expect("stages begin at 0")
}

/// Ends the solver when the run requires it, or after a number of steps.
struct Watch<'t> {
    tick: &'t mut dyn FnMut() -> Result<(), ScheduleHalt>,
    halt: Option<ScheduleHalt>,
    steps: &'t mut u64,
}

impl TerminationCondition for Watch<'_> {
    fn should_stop(&mut self) -> bool {
        if *self.steps == 0 {
            return true;
        }
        *self.steps -= 1;
        if self.halt.is_none() {
            self.halt = (self.tick)().err();
        }
        self.halt.is_some()
    }
}

type Backup = IndependentVariableValueBrancher<DomainId, InputOrder<DomainId>, InDomainMax>;

/// Begins with the runs of the hint. Without recent conflicts, the node whose run costs most for its bytes does not run
/// again. All else follows from the stages of runs.
fn guide_search(model: &Model, problem: &RetentionProblem, hint: Option<&Runs>) -> Guide<Backup> {
    let mut order: Vec<usize> = (0..problem.nodes.len()).collect();
    let price = |&index: &usize| problem.nodes[index].cost / problem.nodes[index].bytes.max(1) as f64;
    order.sort_by(|one, other| price(other).total_cmp(&price(one)));
    let further = |&node: &usize| (1..model.intervals[node].len()).map(move |place| (node, place));
    let choices: Vec<(usize, usize)> = order.iter().flat_map(further).collect();
    let stages: Vec<DomainId> =
        choices.iter().map(|&(node, place)| model.intervals[node][place].stage).collect();
    let warm = hint.map(|runs| {
        let value = |&(node, place): &(usize, usize)| {
            runs[node].get(place).map_or(model.no_stage(), |&stage| as_index(stage))
        };
        WarmStart::new(&stages, &choices.iter().map(value).collect::<Vec<i32>>())
    });
    let backup = IndependentVariableValueBrancher::new(InputOrder::new(&stages), InDomainMax);
    Guide::new(warm, backup)
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::{BTreeMap, BinaryHeap};

    use super::*;
    use crate::schedule::moccasin::retention::tests::{peak_bytes, unit_chain};

    const SUMS: ModelOptions = ModelOptions { computations: 2, sums: true };

    /// The number of runs in the cheapest solution.
    fn least_runs(problem: &RetentionProblem, options: ModelOptions) -> Option<usize> {
        let mut search = RetentionSearch::new(problem, options, u64::MAX, None);
        let mut least = None;
        loop {
            match search.find_cheaper(&mut || Ok(())).expect("no limit") {
                Verdict::Cheaper(runs) => {
                    let count = runs.iter().map(Vec::len).sum();
                    assert!(least.is_none_or(|least| count < least), "{count} after {least:?}");
                    assert!(runs.iter().all(|stages| stages.len() <= options.computations));
                    assert!(peak_bytes(problem, &runs) <= problem.budget, "{runs:?}");
                    least = Some(count);
                }
                Verdict::NoneCheaper => return least,
                Verdict::Unknown => panic!("no limit"),
            }
        }
    }

    /// A state of the exhaustive search: the stage, the next node in it, the nodes whose values are held, and how often
    /// each has run.
    type State = (usize, usize, u32, Vec<usize>);

    /// The states after a state, each with the runs that it takes.
    fn list_successors(problem: &RetentionProblem, most: usize, state: &State) -> Vec<(usize, State)> {
        let (stage, node, held, counts) = state;
        let bit = |node: usize| 1_u32 << node;
        let mut next: Vec<_> = (0..problem.nodes.len())
            .filter(|&value| held & bit(value) != 0)
            .map(|value| (0, (*stage, *node, held & !bit(value), counts.clone())))
            .collect();
        let has_inputs = problem.nodes[*node].inputs.iter().all(|&input| held & bit(input) != 0);
        let has_room = u64::from(held.count_ones()) < problem.budget;
        let is_own = node == stage;
        let may_run = is_own || problem.nodes[*node].may_repeat && counts[*node] < most;
        if may_run && has_inputs && has_room && held & bit(*node) == 0 {
            let mut counts = counts.clone();
            counts[*node] += usize::from(problem.nodes[*node].may_repeat);
            let (stage, node_after) = if is_own { (stage + 1, 0) } else { (*stage, node + 1) };
            next.push((1, (stage, node_after, held | bit(*node), counts)));
        }
        if !is_own {
            next.push((0, (*stage, node + 1, *held, counts.clone())));
        }
        next
    }

    /// The same by trying everything: any value may be dropped at any time, and any node may run again.
    fn least_runs_exhaustively(problem: &RetentionProblem, most: usize) -> Option<usize> {
        let start: State = (0, 0, 0, vec![0; problem.nodes.len()]);
        let mut least = BTreeMap::from([(start.clone(), 0)]);
        let mut open = BinaryHeap::from([Reverse((0, start))]);
        while let Some(Reverse((runs, state))) = open.pop() {
            if state.0 == problem.nodes.len() {
                return Some(runs);
            }
            if least[&state] < runs {
                continue;
            }
            for (more, next) in list_successors(problem, most, &state) {
                let known = least.entry(next.clone()).or_insert(usize::MAX);
                if runs + more < *known {
                    *known = runs + more;
                    open.push(Reverse((runs + more, next)));
                }
            }
        }
        None
    }

    #[test]
    fn optimum_of_short_chains_equals_an_exhaustive_search() {
        for (count, budget) in [(2, 3), (2, 4), (3, 3), (3, 4), (3, 5), (4, 3)] {
            let problem = unit_chain(count, budget);
            for computations in 1..=3 {
                let exhaustive = least_runs_exhaustively(&problem, computations);
                for sums in [true, false] {
                    let found = least_runs(&problem, ModelOptions { computations, sums });
                    assert_eq!(found, exhaustive, "{count} nodes in {budget}, {computations}, {sums}");
                }
            }
        }
    }

    /// Checkmate may run a node in every stage; where two runs are too few there is no solution, else the optima are
    /// equal.
    #[test]
    fn optimum_of_chains_equals_that_of_checkmate() {
        for (count, budget, checkmate, with_two) in [
            (4, 4, 11, Some(11)),
            (4, 5, 10, Some(10)),
            (4, 6, 9, Some(9)),
            (6, 4, 18, None),
            (6, 5, 16, Some(16)),
            (6, 6, 15, Some(15)),
        ] {
            let problem = unit_chain(count, budget);
            assert_eq!(least_runs(&problem, SUMS), with_two, "{count} nodes in {budget}");
            let options = ModelOptions { computations: 3, ..SUMS };
            assert_eq!(least_runs(&problem, options), Some(checkmate), "{count} nodes in {budget}");
        }
    }

    #[test]
    fn hint_is_the_first_solution() {
        let problem = unit_chain(4, 6);
        let mut hint = problem.run_once();
        // A backward node reads nodes 2 and 0 in these stages.
        hint[2].push(6);
        hint[0].push(8);
        let mut search = RetentionSearch::new(&problem, SUMS, 10_000, Some(&hint));
        let first = search.find_cheaper(&mut || Ok(())).expect("no limit");
        assert!(matches!(&first, Verdict::Cheaper(runs) if *runs == hint), "{first:?}");
    }

    #[test]
    fn search_without_steps_knows_nothing() {
        let mut search = RetentionSearch::new(&unit_chain(4, 4), SUMS, 1, None);
        assert!(matches!(search.find_cheaper(&mut || Ok(())), Ok(Verdict::Unknown)));
    }
}
