//! The model: offsets and the height as integer variables, a disjunction for every relation, and a resource for every
//! section.

use planlab_dsa::{Halt, PlanError, Run};
use pumpkin_constraints::{disjunctive_strict, less_than_or_equals};
use pumpkin_core::Solver;
use pumpkin_core::options::SolverOptions;
use pumpkin_core::proof::ConstraintTag;
use pumpkin_core::variables::{AffineView, DomainId, Literal, TransformableVariable};
use pumpkin_propagators::disjunctive::ArgDisjunctiveTask;

use super::Switches;
use crate::pairs::{Below, PairDraft, Relation};

/// The greatest height in units: the solver adds and subtracts up to three heights in 32 bits.
pub(super) const MOST_UNITS: u64 = 1 << 29;
/// The most relations of a model: each is two propagators, about a kilobyte.
const MOST_RELATIONS: usize = 200_000;

pub(super) struct Model {
    pub(super) solver: Solver,
    pub(super) height: DomainId,
    /// For each place: the offset in steps of the place.
    pub(super) offsets: Vec<DomainId>,
    /// For each place: a step in units.
    steps: Vec<i32>,
    pub(super) tag: ConstraintTag,
}

impl Model {
    /// Everything that a plan of a draft has to satisfy.
    ///
    /// # Errors
    ///
    /// What [`Run::tick`] returns; [`PlanError::Failed`] for a model that is too large to build.
    pub(super) fn new(run: &mut Run<'_>, draft: &PairDraft<'_>, switches: Switches) -> Result<Self, Halt> {
        if draft.relations.len() > MOST_RELATIONS {
            let why = format!("the model has more than {MOST_RELATIONS} pairs of buffers");
            return Err(PlanError::Failed(why).into());
        }
        let mut solver =
            Solver::with_options(SolverOptions { memory_preallocated: 1, ..SolverOptions::default() });
        let tag = solver.new_constraint_tag();
        let floor = if switches.load { draft.floor } else { 0 };
        let height = solver.new_bounded_integer(as_small(floor), as_small(draft.ceiling));
        let places = draft.places.iter();
        let offsets = places
            .map(|p| solver.new_bounded_integer(as_small(p.low.div_ceil(p.step)), as_small(p.high / p.step)))
            .collect();
        let steps = draft.places.iter().map(|place| as_small(place.step.min(MOST_UNITS))).collect();
        let mut model = Self { solver, height, offsets, steps, tag };
        model.post_arena(draft);
        model.post_disjunctions(run, draft)?;
        if switches.sections {
            model.post_sections(run, draft)?;
        }
        Ok(model)
    }

    /// The offset of a place in units, plus a constant.
    fn offset_view(&self, place: usize, plus: u64) -> AffineView<DomainId> {
        self.offsets[place].scaled(self.steps[place]).offset(as_small(plus))
    }

    fn post_arena(&mut self, draft: &PairDraft<'_>) {
        for (index, place) in draft.places.iter().enumerate() {
            let terms = [self.offset_view(index, 0), self.height.scaled(-1)];
            let row = less_than_or_equals(terms, -as_small(place.size), self.tag);
            self.solver.add_constraint(row).post();
        }
    }

    fn post_disjunctions(&mut self, run: &mut Run<'_>, draft: &PairDraft<'_>) -> Result<(), Halt> {
        for (index, relation) in draft.relations.iter().enumerate() {
            run.tick(16)?;
            let below = match draft.forced_order(relation) {
                Below::Either => draft.chosen_order(index),
                forced => forced,
            };
            let order = match below {
                Below::First => self.solver.get_true_literal(),
                Below::Second => self.solver.get_false_literal(),
                Below::Either => self.solver.new_literal(),
            };
            self.post_disjunction(relation, below, order);
        }
        Ok(())
    }

    /// If the literal holds, the first lies below; otherwise the second.
    fn post_disjunction(&mut self, relation: &Relation, below: Below, order: Literal) {
        let (i, j) = relation.pair;
        let ((i_low, i_high), (j_low, j_high)) = relation.windows;
        for (is_first, a, high, b, low) in [(true, i, i_high, j, j_low), (false, j, j_high, i, i_low)] {
            let terms = [self.offset_view(a, 0), self.offsets[b].scaled(-self.steps[b])];
            let row = less_than_or_equals(terms, as_small(low) - as_small(high), self.tag);
            match (below, is_first) {
                (Below::Either, true) => self.solver.add_constraint(row).implied_by(order),
                (Below::Either, false) => self.solver.add_constraint(row).implied_by(!order),
                (Below::First, true) | (Below::Second, false) => self.solver.add_constraint(row).post(),
                (Below::First, false) | (Below::Second, true) => {}
            }
        }
    }

    fn post_sections(&mut self, run: &mut Run<'_>, draft: &PairDraft<'_>) -> Result<(), Halt> {
        for section in draft.fullest_sections().iter().filter(|section| section.len() > 2) {
            run.tick(16 * section.len() as u64)?;
            let task = |&(place, (low, high)): &(usize, (u64, u64))| ArgDisjunctiveTask {
                start_time: self.offset_view(place, low),
                processing_time: as_small(high - low),
            };
            let tasks: Vec<_> = section.iter().map(task).collect();
            self.solver.add_constraint(disjunctive_strict(tasks, self.tag)).post();
        }
        Ok(())
    }

    /// The value of an offset of a plan in the solver.
    pub(super) fn steps_of(&self, place: usize, units: u64) -> i32 {
        as_small(units) / self.steps[place]
    }

    /// The units of an offset of the solver.
    pub(super) fn units_of(&self, place: usize, steps: i32) -> u64 {
        u64::try_from(i64::from(steps) * i64::from(self.steps[place])).unwrap_or(0)
    }
}

/// Units as an integer of the solver.
pub(super) fn as_small(units: u64) -> i32 {
    i32::try_from(units).expect("at most MOST_UNITS")
}
