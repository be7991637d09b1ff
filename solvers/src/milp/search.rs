//! The way around a solver: greedy plans first, then the model, then what the solver found and proved.

use std::time::Duration;

use planlab_dsa::{
    BufferId, Bytes, Evidence, Halt, Offset, Plan, PlanError, Planner, Run, Scope, Stop, VerifiedPlan,
};

use super::Strengthening;
use super::bound::{as_whole, whole_units};
use super::formulation::Formulation;
use crate::placement::Order;
use crate::placement::greedy::{Rule, place_in_order, plan_in_order};
use crate::placement::skyline::{BestFit, best_fit};

/// What a solver came back with.
pub(super) struct Answer {
    /// The value of each column in the best solution, where it has one.
    pub(super) columns: Option<Vec<f64>>,
    /// No solution is lower, in units; not a number where it says nothing.
    pub(super) dual: f64,
    /// Why it ended.
    pub(super) end: End,
}

/// Why a solver ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It has proved its solution optimal.
    Optimal,
    /// Its time was up.
    OutOfTime,
    /// It gave up for another reason.
    Stopped,
    /// It says that there is no solution, although there is one.
    Infeasible,
}

/// A solver for a model, within a time limit.
pub(super) type Solver = fn(Formulation, Option<Duration>) -> Result<Answer, PlanError>;

/// Part of the time left, and a time, that are kept back for what comes after the solver.
const MARGIN: (u32, Duration) = (33, Duration::from_millis(20));

/// Plans with a solver.
pub(super) fn plan_with(run: &mut Run<'_>, switches: Strengthening, solve: Solver) -> Result<(), Halt> {
    offer_greedy_plan(run)?;
    let Some(best) = run.best() else { return Ok(()) };
    let floor = run.bound().of(Scope::NoHandOver).value.get();
    let model = Formulation::new(run, &best, floor, switches)?;
    let (unit, ceiling, places) = (model.unit, model.ceiling, model.places.clone());
    let answer = solve(model, time_left(run)?)?;
    if let Some(columns) = &answer.columns {
        offer_solution(run, &best, unit, &places, columns)?;
    }
    if answer.end == End::Infeasible {
        let height = best.height();
        let why = format!("the solver finds no solution, but a verified plan has height {height}");
        return Err(PlanError::Failed(why).into());
    }
    let bound = Bytes::new(whole_units(answer.dual, ceiling) * unit);
    if bound > run.bound().of(Scope::NoHandOver).value {
        run.raise_bound(bound, Scope::NoHandOver, Evidence::Mip)?;
    }
    if answer.end == End::OutOfTime { Err(Halt::Stop(Stop::Deadline)) } else { Ok(()) }
}

/// Offers the best plan of the skyline and of every order and rule. The best alone, so that it is verified
/// at once: [`Run::best`] does not know of plans that wait for the verifier.
fn offer_greedy_plan(run: &mut Run<'_>) -> Result<(), Halt> {
    let instance = run.instance();
    let mut plans = Vec::new();
    if BestFit.descriptor().honours.refuses(instance).is_none() {
        plans.push(best_fit(run)?);
    }
    for order in Order::ALL {
        let ids = order.of(instance);
        for rule in [Rule::FirstFit, Rule::BestFit] {
            plans.extend(place_in_order(run, &ids, rule)?);
        }
    }
    let best = plans.into_iter().min_by_key(|plan| plan.height(instance));
    best.map_or(Ok(()), |plan| run.offer(plan))
}

/// The solver's share of what is left of the time.
fn time_left(run: &mut Run<'_>) -> Result<Option<Duration>, Halt> {
    let Some(left) = run.remaining() else { return Ok(None) };
    let (part, least) = MARGIN;
    match left.checked_sub(left / part).and_then(|left| left.checked_sub(least)) {
        Some(left) if !left.is_zero() => Ok(Some(left)),
        _ => Err(Halt::Stop(Stop::Deadline)),
    }
}

/// Places every buffer in the order of the solution; those outside the model in the order of the plan
/// known before.
fn offer_solution(
    run: &mut Run<'_>,
    best: &VerifiedPlan<'_>,
    unit: u64,
    places: &[(BufferId, u64)],
    columns: &[f64],
) -> Result<(), Halt> {
    let mut offsets: Vec<Offset> = best.offsets().to_vec();
    let mut keys: Vec<(u64, BufferId)> =
        best.instance().ids().map(|id| (offsets[id.index()].get(), id)).collect();
    // The first column is the height.
    for (&(id, step), &value) in places.iter().zip(&columns[1..]) {
        let bytes = as_whole(value.round()).saturating_mul(step).saturating_mul(unit);
        offsets[id.index()] = Offset::new(bytes);
        keys[id.index()].0 = bytes;
    }
    keys.sort_unstable();
    let order: Vec<BufferId> = keys.into_iter().map(|(_, id)| id).collect();
    plan_in_order(run, &order, Rule::FirstFit)?;
    let rounded = Plan { offsets, in_place: best.in_place().to_vec() };
    let is_better = rounded.height(run.instance()).is_some_and(|height| run.improves(height));
    if is_better && run.instance().verify(rounded.clone()).is_ok() { run.offer(rounded) } else { Ok(()) }
}
