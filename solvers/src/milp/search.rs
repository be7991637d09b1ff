//! Runs a solver: builds a model of each part, then uses what the solver found and proved.

use std::time::Duration;

use planlab_dsa::{Evidence, Halt, PlanError, Run, Stop};

use super::Strengthening;
use super::bound::{as_whole, whole_units};
use super::formulation::Formulation;
use crate::pairs::{PairCourse, PairDraft, follow_course, prove_bound};

pub(super) struct MilpAnswer {
    /// The value of each column in the best solution, if it has one.
    pub(super) columns: Option<Vec<f64>>,
    /// A lower bound on all solutions, in units; NaN if there is no bound.
    pub(super) dual: f64,
    pub(super) end: End,
}

/// Why a solver ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It has proved its solution optimal.
    Optimal,
    /// Its time was up.
    OutOfTime,
    /// It gave up for another reason.
    Stopped,
    /// It reports that there is no solution, although there is one.
    Infeasible,
}

/// A solver for a model, within a time limit.
pub(super) type Solver = fn(Formulation, Option<Duration>) -> Result<MilpAnswer, PlanError>;

/// The greatest height in units. If a solver treats 1e-6 as zero, a big M of more units lets buffers overlap by tens of
/// them. From about a billion on, solvers have proved bounds that a verified plan refutes.
const MOST_UNITS: u64 = 1 << 24;
/// Time kept in reserve for the work after the solver: a part of the time left, and a fixed time.
const MARGIN: (u32, Duration) = (33, Duration::from_millis(20));

pub(super) fn plan_with(run: &mut Run<'_>, switches: Strengthening, solve: Solver) -> Result<(), Halt> {
    follow_course(run, switches.reductions(), |run, course, draft| {
        let draft = draft.in_coarse_units(MOST_UNITS);
        let model = Formulation::new(&draft, switches);
        let answer = solve(model, time_left(run)?)?;
        take_answer(run, course, &draft, &answer)
    })
}

fn take_answer(
    run: &mut Run<'_>,
    course: &mut PairCourse,
    draft: &PairDraft<'_>,
    answer: &MilpAnswer,
) -> Result<(), Halt> {
    if let Some(columns) = &answer.columns {
        // The first column is the height.
        let places = draft.places.iter().zip(&columns[1..]);
        let units: Vec<u64> =
            places.map(|(place, value)| as_whole(value.round()).saturating_mul(place.step)).collect();
        course.improve_incumbent(run, draft, &units)?;
    }
    if answer.end == End::Infeasible {
        let height = draft.ceiling * draft.unit;
        let why = format!("the solver finds no solution, but there is a plan of height {height}");
        return Err(PlanError::Failed(why).into());
    }
    prove_bound(run, (draft.unit, whole_units(answer.dual, draft.ceiling)), Evidence::Mip)?;
    if answer.end == End::OutOfTime { Err(Halt::Stop(Stop::Deadline)) } else { Ok(()) }
}

/// The solver's share of the time left.
fn time_left(run: &mut Run<'_>) -> Result<Option<Duration>, Halt> {
    let Some(left) = run.remaining_time() else { return Ok(None) };
    let (part, least) = MARGIN;
    match left.checked_sub(left / part).and_then(|left| left.checked_sub(least)) {
        Some(left) if !left.is_zero() => Ok(Some(left)),
        _ => Err(Halt::Stop(Stop::Deadline)),
    }
}
