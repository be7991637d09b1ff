//! Simulates a schedule with operation times other than those that it was made for.
//!
//! A placed schedule records everything that an event waits for, so it stays valid with any times and only runs slower
//! or faster. Each draw multiplies the time of every operation and of every copy by a number between 1 - x and 1 + x,
//! drawn evenly. A recomputed function takes the same time as its first pass.

use planlab_graph::{Event, Schedule, SchedulingProblem, Task, Verified, simulate_schedule};
use planlab_results::schedule::Disturbance;
use rand::{RngExt as _, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::shell::quantity::nanoseconds_of;

/// The largest changes of the times, in per cent.
const LEVELS: [u32; 4] = [5, 10, 20, 50];
const DRAWS: usize = 50;

/// The times of a schedule at each level. The draws depend on the problem alone, so they are the same for all
/// schedulers. A level is left out if one of its draws has a time above the most that is permitted, 10^18 s.
pub(super) fn disturb_times(problem: &SchedulingProblem, schedule: &Verified) -> Vec<Disturbance> {
    LEVELS.iter().filter_map(|&percent| at_level(problem, schedule.schedule(), percent)).collect()
}

fn at_level(problem: &SchedulingProblem, schedule: &Schedule, percent: u32) -> Option<Disturbance> {
    let mut times = Vec::with_capacity(DRAWS);
    let mut least = Vec::with_capacity(DRAWS);
    for draw in 0..DRAWS {
        let factors = Factors::draw_factors(problem, percent, draw as u64);
        let moved = schedule.clone().with_times(|event| event.seconds * factors.factor_of(event));
        // No limit is needed: the order of events, not the number of bytes, keeps a placed schedule in its memory.
        times.push(simulate_schedule(&moved, None).ok()?.seconds);
        least.push(factors.compute_time(problem)?);
    }
    times.sort_by(f64::total_cmp);
    least.sort_by(f64::total_cmp);
    let middle = (DRAWS - 1) / 2;
    Some(Disturbance {
        percent: percent.into(),
        draws: DRAWS as u64,
        median_ns: nanoseconds_of(times[middle]),
        worst_ns: nanoseconds_of(*times.last()?),
        compute_ns: nanoseconds_of(least[middle]),
    })
}

/// The factors of one draw.
struct Factors {
    forward: Vec<f64>,
    backward: Vec<f64>,
    accumulate: Vec<f64>,
    out: Vec<f64>,
    back: Vec<f64>,
}

impl Factors {
    fn draw_factors(problem: &SchedulingProblem, percent: u32, draw: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(draw);
        let most = f64::from(percent) / 100.0;
        let mut list = |count: usize| -> Vec<f64> {
            (0..count).map(|_| 1.0 + most * random.random_range(-1.0..=1.0)).collect()
        };
        let (functions, maps) = (problem.net.functions().len(), problem.net.maps().len());
        Self {
            forward: list(functions),
            backward: list(functions),
            accumulate: list(maps),
            out: list(maps),
            back: list(maps),
        }
    }

    fn factor_of(&self, event: &Event) -> f64 {
        match event.task {
            Task::Forward(id) | Task::Recompute(id) => self.forward[id.index()],
            Task::Backward(id) => self.backward[id.index()],
            Task::Accumulate(id) => self.accumulate[id.index()],
            Task::CopyOut(id) => self.out[id.index()],
            Task::CopyIn(id) => self.back[id.index()],
        }
    }

    /// The time of an iteration in which nothing waits; `None` if a time is longer than any may be.
    fn compute_time(&self, problem: &SchedulingProblem) -> Option<f64> {
        let scaled = |times: &[f64], factors: &[f64]| {
            times.iter().zip(factors).map(|(time, factor)| time * factor).collect()
        };
        let times = &problem.times;
        let moved = planlab_graph::Times::new(
            &problem.net,
            scaled(times.forward(), &self.forward),
            scaled(times.backward(), &self.backward),
            scaled(times.accumulate_times(), &self.accumulate),
        );
        Some(planlab_graph::compute_bound(&problem.clone().with_times(moved.ok()?)).seconds)
    }
}
