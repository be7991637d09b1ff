//! The search: finds plans from above and proofs from below.

use std::time::Duration;

use planlab_dsa::{Evidence, Halt, PlanError, Run, Stop};
use pumpkin_conflict_resolvers::resolvers::ResolutionResolver;
use pumpkin_core::branching::branchers::independent_variable_value_brancher::IndependentVariableValueBrancher;
use pumpkin_core::branching::branchers::warm_start::WarmStart;
use pumpkin_core::branching::tie_breaking::InOrderTieBreaker;
use pumpkin_core::branching::value_selection::InDomainMin;
use pumpkin_core::branching::variable_selection::Smallest;
use pumpkin_core::predicate;
use pumpkin_core::predicates::Predicate;
use pumpkin_core::results::{ProblemSolution, SatisfactionResultUnderAssumptions};
use pumpkin_core::termination::TerminationCondition;
use pumpkin_core::variables::DomainId;

use super::Switches;
use super::guide::Guide;
use super::model::{MOST_UNITS, Model, as_small};
use crate::pairs::{PairCourse, PairDraft, prove_bound};

/// Steps of each probe of the first round; the number doubles from round to round.
const FIRST_PROBE_STEPS: u64 = 200;
/// After this number of rounds a probe is as good as unlimited.
const MOST_ROUNDS: u32 = 40;

/// Improves the plan of a draft until it is optimal.
pub(super) fn solve_draft(
    run: &mut Run<'_>,
    course: &mut PairCourse,
    draft: PairDraft<'_>,
    switches: Switches,
) -> Result<(), Halt> {
    let draft = &draft.in_coarse_units(MOST_UNITS);
    let mut search = CpSearch::new(run, draft, switches)?;
    if switches.start {
        search.begin_with_plan(run)?;
    }
    search.at_most(search.best - 1);
    for round in 0.. {
        for height in [Height::Bound, Height::Halfway, Height::Lower] {
            if search.bound >= search.best {
                return Ok(());
            }
            let steps = FIRST_PROBE_STEPS << u32::min(round, MOST_ROUNDS);
            let (height, steps) = search.probe_height(height, steps, switches);
            search.look_for_lower(run, course, draft, height, steps)?;
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Height {
    /// The bound: a plan there is optimal.
    Bound,
    /// Halfway between the bound and the best plan.
    Halfway,
    /// Any height below that of the best plan.
    Lower,
}

/// The result of a look for a plan.
enum Verdict {
    /// Offsets in units, by place.
    Plan(Vec<u64>),
    /// There is no plan lower than this.
    None(u64),
    /// The allowed steps were not enough.
    Unknown,
}

struct CpSearch {
    model: Model,
    guide: Guide<Backup>,
    resolver: ResolutionResolver,
    /// Units of work for one step of the solver.
    work: u64,
    /// Time kept in reserve: to free the model, and for the longest step so far.
    margin: (Duration, Duration),
    /// No plan is lower, in units.
    bound: u64,
    /// The height of the best plan.
    best: u64,
}

impl CpSearch {
    fn new(run: &mut Run<'_>, draft: &PairDraft<'_>, switches: Switches) -> Result<Self, Halt> {
        let before = run.remaining_time();
        let model = Model::new(run, draft, switches)?;
        let guide = guide_search(&model, draft, switches);
        let built = before.zip(run.remaining_time()).map(|(before, after)| before.saturating_sub(after));
        let margin = (built.unwrap_or_default() / 2, Duration::ZERO);
        let work = draft.relations.len() as u64 + 16;
        let (bound, best) = (draft.floor, draft.ceiling);
        Ok(Self { model, guide, resolver: ResolutionResolver::default(), work, margin, bound, best })
    }

    /// Passes the solver the plan to start from, so that it decides alike if it can.
    fn begin_with_plan(&mut self, run: &mut Run<'_>) -> Result<(), Halt> {
        let shown = self.decide_height(run, None, None)?;
        self.guide.forget_start();
        match shown {
            Verdict::Plan(_) => Ok(()),
            _ => Err(PlanError::Failed("the solver refuses a plan that is valid".to_owned()).into()),
        }
    }

    /// The greatest height of a probe, and its steps. If there is no height between bound and plan, or probes are off:
    /// all lower heights, without a limit.
    fn probe_height(&self, height: Height, steps: u64, switches: Switches) -> (Option<u64>, Option<u64>) {
        if !switches.probe || self.bound + 1 >= self.best {
            return (None, None);
        }
        match height {
            Height::Bound => (Some(self.bound), Some(steps)),
            Height::Halfway => (Some(self.bound + (self.best - self.bound) / 2), Some(steps)),
            Height::Lower => (None, Some(steps)),
        }
    }

    /// Looks for a plan of at most `most` units, and uses what is found or proved.
    fn look_for_lower(
        &mut self,
        run: &mut Run<'_>,
        course: &mut PairCourse,
        draft: &PairDraft<'_>,
        most: Option<u64>,
        steps: Option<u64>,
    ) -> Result<(), Halt> {
        match self.decide_height(run, most, steps)? {
            Verdict::Plan(units) => {
                // A coarse plan's order may be higher than the plan itself; that plan is not searched for again.
                let said = draft.places.iter().zip(&units).map(|(place, offset)| offset + place.size);
                let said = said.max().unwrap_or(0);
                self.best = self.best.min(said).min(course.improve_incumbent(run, draft, &units)?);
                self.at_most(self.best - 1);
            }
            Verdict::None(bound) => {
                self.bound = bound;
                prove_bound(run, (draft.unit, bound), Evidence::Cp)?;
                self.at_least(bound);
            }
            Verdict::Unknown => {}
        }
        Ok(())
    }

    /// Excludes plans above `height` from now on.
    fn at_most(&mut self, height: u64) {
        let variable = self.model.height;
        self.post_fact(predicate![variable <= as_small(height)]);
    }

    /// Excludes plans below `height` from now on.
    fn at_least(&mut self, height: u64) {
        let variable = self.model.height;
        self.post_fact(predicate![variable >= as_small(height)]);
    }

    fn post_fact(&mut self, fact: Predicate) {
        if !self.model.solver.is_inconsistent() {
            self.model.solver.add_clause([fact], self.model.tag);
        }
    }

    /// Looks for a plan of at most `most` units, in at most `steps` steps.
    fn decide_height(
        &mut self,
        run: &mut Run<'_>,
        most: Option<u64>,
        steps: Option<u64>,
    ) -> Result<Verdict, Halt> {
        let (height, offsets) = (self.model.height, &self.model.offsets);
        let assumed = most.map(|most| predicate![height <= as_small(most)]);
        let left = run.remaining_time();
        let mut watch = Watch { run, halt: None, work: self.work, steps, left, margin: &mut self.margin };
        let solver = &mut self.model.solver;
        let (guide, resolver) = (&mut self.guide, &mut self.resolver);
        let found = match solver.satisfy_under_assumptions(guide, &mut watch, resolver, assumed.as_slice()) {
            SatisfactionResultUnderAssumptions::Satisfiable(found) => {
                let solution = found.solution();
                Some(offsets.iter().map(|&offset| solution.get_integer_value(offset)).collect::<Vec<i32>>())
            }
            SatisfactionResultUnderAssumptions::UnsatisfiableUnderAssumptions(_)
            | SatisfactionResultUnderAssumptions::Unsatisfiable(_) => None,
            SatisfactionResultUnderAssumptions::Unknown(_) => {
                return watch.halt.map_or(Ok(Verdict::Unknown), Err);
            }
        };
        let Some(steps) = found else { return Ok(Verdict::None(self.refuted_bound(most))) };
        let units = steps.into_iter().enumerate().map(|(place, steps)| self.model.units_of(place, steps));
        Ok(Verdict::Plan(units.collect()))
    }

    /// The bound if there is no plan up to `most`.
    fn refuted_bound(&self, most: Option<u64>) -> u64 {
        match most {
            Some(most) if !self.model.solver.is_inconsistent() => most + 1,
            _ => self.best,
        }
    }
}

/// Ends the solver when the run requires it, or after a number of steps. A step cannot be interrupted, so the last one
/// must not begin too late.
struct Watch<'r, 'i> {
    run: &'r mut Run<'i>,
    halt: Option<Halt>,
    work: u64,
    steps: Option<u64>,
    /// The time left at the last step.
    left: Option<Duration>,
    margin: &'r mut (Duration, Duration),
}

impl Watch<'_, '_> {
    fn check_limits(&mut self) -> Result<(), Halt> {
        self.run.tick(self.work)?;
        let Some((before, left)) = self.left.zip(self.run.remaining_time()) else { return Ok(()) };
        let (last, longest) = self.margin;
        *longest = before.saturating_sub(left).max(*longest);
        self.left = Some(left);
        if left < *last + *longest { Err(Halt::Stop(Stop::Deadline)) } else { Ok(()) }
    }
}

impl TerminationCondition for Watch<'_, '_> {
    fn should_stop(&mut self) -> bool {
        if let Some(steps) = &mut self.steps {
            if *steps == 0 {
                return true;
            }
            *steps -= 1;
        }
        if self.halt.is_none() {
            self.halt = self.check_limits().err();
        }
        self.halt.is_some()
    }
}

type Backup = IndependentVariableValueBrancher<
    DomainId,
    Smallest<DomainId, InOrderTieBreaker<DomainId, i32>>,
    InDomainMin,
>;

/// Begins with the plan to start from. Without recent conflicts, the buffer that can lie lowest (ties: the larger, then the
/// lower id) goes there.
fn guide_search(model: &Model, draft: &PairDraft<'_>, switches: Switches) -> Guide<Backup> {
    let starts: Vec<i32> =
        draft.places.iter().enumerate().map(|(at, place)| model.steps_of(at, place.start)).collect();
    let warm = switches.start.then(|| WarmStart::new(&model.offsets, &starts));
    let mut order: Vec<usize> = (0..draft.places.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(draft.places[at].size));
    let mut variables: Vec<DomainId> = order.into_iter().map(|at| model.offsets[at]).collect();
    variables.push(model.height);
    let backup = IndependentVariableValueBrancher::new(Smallest::new(&variables), InDomainMin);
    Guide::new(warm, backup)
}
