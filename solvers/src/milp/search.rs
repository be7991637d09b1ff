//! The way around a solver: a model of each part, then what the solver found and proved.

use std::time::Duration;

use planlab_dsa::{Evidence, Halt, PlanError, Run, Stop};

use super::Strengthening;
use super::bound::{as_whole, whole_units};
use super::formulation::Formulation;
use crate::pairs::{Course, Draft, follow, prove};

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

/// The greatest height in units. Where a solver takes 1e-6 for nothing, a big M of more units lets buffers
/// overlap by tens of them; and from about a billion on, solvers have been seen to prove bounds that a
/// verified plan refutes.
const MOST_UNITS: u64 = 1 << 24;
/// Part of the time left, and a time, that are kept back for what comes after the solver.
const MARGIN: (u32, Duration) = (33, Duration::from_millis(20));

/// Plans with a solver.
pub(super) fn plan_with(run: &mut Run<'_>, switches: Strengthening, solve: Solver) -> Result<(), Halt> {
    follow(run, switches.reductions(), |run, course, draft| {
        let draft = draft.coarse(MOST_UNITS);
        let model = Formulation::new(&draft, switches);
        let answer = solve(model, time_left(run)?)?;
        take(run, course, &draft, &answer)
    })
}

fn take(run: &mut Run<'_>, course: &mut Course, draft: &Draft<'_>, answer: &Answer) -> Result<(), Halt> {
    if let Some(columns) = &answer.columns {
        // The first column is the height.
        let places = draft.places.iter().zip(&columns[1..]);
        let units: Vec<u64> =
            places.map(|(place, value)| as_whole(value.round()).saturating_mul(place.step)).collect();
        course.improve(run, draft, &units)?;
    }
    if answer.end == End::Infeasible {
        let height = draft.ceiling * draft.unit;
        let why = format!("the solver finds no solution, but there is a plan of height {height}");
        return Err(PlanError::Failed(why).into());
    }
    prove(run, (draft.unit, whole_units(answer.dual, draft.ceiling)), Evidence::Mip)?;
    if answer.end == End::OutOfTime { Err(Halt::Stop(Stop::Deadline)) } else { Ok(()) }
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
