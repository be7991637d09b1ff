//! The search: plans from above, proofs from below.

use planlab_dsa::{Evidence, Halt, PlanError, Run};
use pumpkin_conflict_resolvers::resolvers::ResolutionResolver;
use pumpkin_core::branching::branchers::autonomous_search::AutonomousSearch;
use pumpkin_core::branching::branchers::independent_variable_value_brancher::IndependentVariableValueBrancher;
use pumpkin_core::branching::branchers::warm_start::WarmStart;
use pumpkin_core::branching::value_selection::InDomainMin;
use pumpkin_core::branching::variable_selection::Smallest;
use pumpkin_core::branching::tie_breaking::InOrderTieBreaker;
use pumpkin_core::branching::{Brancher, BrancherEvent, SelectionContext};
use pumpkin_core::predicate;
use pumpkin_core::predicates::Predicate;
use pumpkin_core::results::{ProblemSolution, SatisfactionResultUnderAssumptions, SolutionReference};
use pumpkin_core::termination::TerminationCondition;
use pumpkin_core::variables::DomainId;

use super::Switches;
use super::model::{Model, small};
use crate::pairs::{Course, Draft, prove};

/// Conflicts of the first probe at a height; twice as many at the next.
const PROBE: u64 = 200;

/// Improves the plan of a draft until nothing is lower.
pub(super) fn solve(
    run: &mut Run<'_>,
    course: &mut Course,
    draft: &Draft<'_>,
    switches: Switches,
) -> Result<(), Halt> {
    let model = Model::new(run, draft, switches)?;
    let guide = Guide::new(&model, draft, switches);
    let work = draft.relations.len() as u64 + 16;
    let mut search = Search { model, guide, resolver: ResolutionResolver::default(), work };
    let mut best = draft.ceiling;
    if switches.start {
        match search.decide(run, None, None)? {
            Verdict::Plan(_) => search.guide.warm = None,
            _ => return Err(PlanError::Failed("the solver refuses a plan that is valid".to_owned()).into()),
        }
    }
    search.below(best);
    let mut bound = draft.floor;
    let mode = std::env::var("MODE").unwrap_or("0".into());
    let modes: Vec<u64> = mode.split(',').map(|x| x.parse().unwrap()).collect();
    let first: u64 = std::env::var("PATIENCE").map_or(PROBE, |x| x.parse().unwrap());
    let mut round = 0_usize;
    loop {
        if bound >= best {
            return prove(run, (draft.unit, best), Evidence::Cp);
        }
        let share = modes[round % modes.len()];
        let patience = first << (round / modes.len()).min(40);
        round += 1;
        let at = bound + ((best - bound) as u128 * share as u128 / 100) as u64;
        let (most, limit) = if switches.probe && at + 1 < best { (Some(at), Some(patience)) } else { (None, if modes.len() > 1 && bound + 1 < best {Some(patience)} else {None}) };
        match search.decide(run, most, limit)? {
            Verdict::Plan(units) => {
                let height = course.improve(run, draft, &units)?;
                best = best.min(height);
                search.below(best);
            }
            Verdict::None => {
                bound = most.map_or(best, |most| most + 1);
                prove(run, (draft.unit, bound), Evidence::Cp)?;
                search.above(bound);
            }
            Verdict::Unknown => {},
        }
    }
}

/// What a look for a plan came to.
enum Verdict {
    /// Offsets in units, by place.
    Plan(Vec<u64>),
    /// There is none.
    None,
    /// The conflicts allowed were not enough.
    Unknown,
}

struct Search {
    model: Model,
    guide: Guide,
    resolver: ResolutionResolver,
    /// Units of work of a step of the solver.
    work: u64,
}

impl Search {
    /// Plans lower than `height` only, from now on.
    fn below(&mut self, height: u64) {
        let Model { solver, height: variable, tag, .. } = &mut self.model;
        let variable = *variable;
        if !solver.is_inconsistent() {
            solver.add_clause([predicate![variable <= small(height) - 1]], *tag);
        }
    }

    /// No plans lower than `height`, from now on.
    fn above(&mut self, height: u64) {
        let Model { solver, height: variable, tag, .. } = &mut self.model;
        let variable = *variable;
        if !solver.is_inconsistent() {
            solver.add_clause([predicate![variable >= small(height)]], *tag);
        }
    }

    /// Looks for a plan, at most `most` high, for at most `steps` steps.
    fn decide(&mut self, run: &mut Run<'_>, most: Option<u64>, steps: Option<u64>) -> Result<Verdict, Halt> {
        let Self { model, guide, resolver, work } = self;
        let height = model.height;
        let assumed: Vec<Predicate> = most.map(|most| predicate![height <= small(most)]).into_iter().collect();
        let mut watch = Watch { run, halt: None, work: *work, steps };
        let offsets = &model.offsets;
        let found = match model.solver.satisfy_under_assumptions(guide, &mut watch, resolver, &assumed) {
            SatisfactionResultUnderAssumptions::Satisfiable(found) => {
                let solution = found.solution();
                Some(Some(offsets.iter().map(|&offset| solution.get_integer_value(offset)).collect::<Vec<i32>>()))
            }
            SatisfactionResultUnderAssumptions::UnsatisfiableUnderAssumptions(_)
            | SatisfactionResultUnderAssumptions::Unsatisfiable(_) => Some(None),
            SatisfactionResultUnderAssumptions::Unknown(_) => None,
        };
        if let Some(halt) = watch.halt {
            return Err(halt);
        }
        Ok(match found {
            Some(Some(steps)) => Verdict::Plan(
                steps.into_iter().enumerate().map(|(place, steps)| model.units_of(place, steps)).collect(),
            ),
            Some(None) => Verdict::None,
            None => Verdict::Unknown,
        })
    }
}

/// Ends the solver where the run says so, or after a number of steps.
struct Watch<'r, 'i> {
    run: &'r mut Run<'i>,
    halt: Option<Halt>,
    work: u64,
    steps: Option<u64>,
}

impl TerminationCondition for Watch<'_, '_> {
    fn should_stop(&mut self) -> bool {
        if let Some(steps) = &mut self.steps {
            if *steps == 0 {
                return true;
            }
            *steps -= 1;
        }
        self.halt = self.halt.take().or_else(|| self.run.tick(self.work).err());
        self.halt.is_some()
    }
}

type Backup = IndependentVariableValueBrancher<DomainId, Smallest<DomainId, InOrderTieBreaker<DomainId, i32>>, InDomainMin>;

/// What is decided next: at first the plan to start from; then what conflicts speak of, as it was in the
/// best plan; where they are silent, the lowest offset.
#[derive(Debug)]
struct Guide {
    warm: Option<WarmStart<DomainId>>,
    search: AutonomousSearch<Backup>,
}

impl Guide {
    fn new(model: &Model, draft: &Draft<'_>, switches: Switches) -> Self {
        let starts: Vec<i32> =
            draft.places.iter().enumerate().map(|(at, place)| model.steps_of(at, place.start)).collect();
        let warm = switches.start.then(|| WarmStart::new(&model.offsets, &starts));
        let mut variables = model.offsets.clone();
        variables.push(model.height);
        let backup = IndependentVariableValueBrancher::new(Smallest::new(&variables), InDomainMin);
        Self { warm, search: AutonomousSearch::new(backup) }
    }
}

impl Brancher for Guide {
    fn next_decision(&mut self, context: &mut SelectionContext<'_>) -> Option<Predicate> {
        let warm = self.warm.as_mut().and_then(|warm| warm.next_decision(context));
        warm.or_else(|| self.search.next_decision(context))
    }

    fn on_conflict(&mut self) {
        self.search.on_conflict();
    }

    fn on_backtrack(&mut self) {
        self.search.on_backtrack();
    }

    fn on_solution(&mut self, solution: SolutionReference<'_>) {
        self.search.on_solution(solution);
    }

    fn on_unassign_integer(&mut self, variable: DomainId, value: i32) {
        self.search.on_unassign_integer(variable, value);
    }

    fn on_appearance_in_conflict_predicate(&mut self, predicate: Predicate) {
        self.search.on_appearance_in_conflict_predicate(predicate);
    }

    fn on_restart(&mut self) {
        self.search.on_restart();
    }

    fn synchronise(&mut self, context: &mut SelectionContext<'_>) {
        if let Some(warm) = &mut self.warm {
            warm.synchronise(context);
        }
        self.search.synchronise(context);
    }

    fn is_restart_pointless(&mut self) -> bool {
        false
    }

    fn subscribe_to_events(&self) -> Vec<BrancherEvent> {
        let mut events = self.search.subscribe_to_events();
        events.push(BrancherEvent::Synchronise);
        events
    }
}
