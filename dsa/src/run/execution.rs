//! Executes a planner, from the initial bounds to the outcome.

use std::time::Duration;

use super::state::{Observer, Run};
use crate::{Budget, Event, Halt, Instance, Outcome, PlanError, Planner, Scope, Stop, initial_bound};

/// Runs a planner on an instance.
///
/// A demand that the planner does not honour ends the run with [`PlanError::Unsupported`]. The initial bounds (load,
/// pins, alignment) are known before the planner starts, so a heuristic that meets the load is thereby proved optimal.
///
/// ```
/// use planlab_dsa::{execute, Budget, Buffer, Bytes, Descriptor, Halt, Instance, LiveRange, Plan, Planner, Run};
/// # use planlab_dsa::{Guarantee, Honours, Offset};
/// struct Stack;
///
/// impl Planner for Stack {
///     # fn descriptor(&self) -> Descriptor {
///     #     Descriptor { key: "stack".into(), summary: "".into(), guarantee: Guarantee::Heuristic,
///     #         honours: Honours::default(), randomized: false, reference: "", complexity: "n", practical: None }
///     # }
///     fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
///         let mut top = 0;
///         let offsets: Vec<Offset> = run.instance().buffers().iter().map(|buffer| {
///             top += buffer.size.get();
///             Offset::new(top - buffer.size.get())
///         }).collect();
///         run.offer(Plan::from_offsets(offsets))
///     }
/// }
///
/// let one = Buffer::new(Bytes::new(8), LiveRange::new(0, 1)?);
/// let instance = Instance::from_buffers(vec![one])?;
/// let outcome = execute(&Stack, &instance, Budget::default(), 0);
/// assert!(outcome.is_optimal());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn execute<'i>(planner: &dyn Planner, instance: &'i Instance, budget: Budget, seed: u64) -> Outcome<'i> {
    run_planner(planner, instance, budget, seed, None)
}

/// Like [`execute`], but calls `observer` for every verified plan and every bound, with the units of work done by then.
/// If a planner forks its run, uncounted work of other forks is missing, so this number may decrease.
#[must_use]
pub fn execute_observed<'i>(
    planner: &dyn Planner,
    instance: &'i Instance,
    budget: Budget,
    seed: u64,
    observer: impl FnMut(Event<'_>, u64) + Send + 'i,
) -> Outcome<'i> {
    run_planner(planner, instance, budget, seed, Some(Box::new(observer)))
}

fn run_planner<'i>(
    planner: &dyn Planner,
    instance: &'i Instance,
    budget: Budget,
    seed: u64,
    observer: Option<Observer<'i>>,
) -> Outcome<'i> {
    let honours = planner.descriptor().honours;
    let hands_over = honours.in_place && !instance.in_place().is_empty();
    let scope = if hands_over { Scope::Any } else { Scope::NoHandOver };
    let mut run = Run::new((instance, scope), budget, seed, honours.work_limit, observer);
    if let Some(feature) = honours.first_refused_feature(instance) {
        return run.finish_outcome(Err(PlanError::Unsupported(feature).into()), Duration::ZERO);
    }
    if let Err(halt) = run.raise_any_bound(initial_bound(instance)) {
        return run.finish_outcome(Err(halt), Duration::ZERO);
    }
    let before = run.shared.elapsed();
    let ended = planner.plan(&mut run);
    let in_planner = run.shared.elapsed().saturating_sub(before);
    run.finish_outcome(ended, in_planner)
}

impl<'i> Run<'i> {
    fn finish_outcome(self, ended: Result<(), Halt>, in_planner: Duration) -> Outcome<'i> {
        let mut end = match ended {
            Ok(()) => Ok(Stop::Finished),
            Err(Halt::Stop(stop)) => Ok(stop),
            Err(Halt::Error(error)) => Err(error),
        };
        let mut state = self.shared.lock_state();
        let planning = in_planner.saturating_sub(state.verifying);
        match self.verify_pending(&mut state) {
            Err(Halt::Error(error)) => end = end.and(Err(error)),
            // The pending plan decided the run after the planner had returned.
            Err(Halt::Stop(stop)) if end == Ok(Stop::Finished) => end = Ok(stop),
            _ => {}
        }
        self.mark_trajectory(&mut state);
        Outcome {
            best: state.best.take(),
            bound: state.bound,
            scope: self.shared.scope,
            end,
            trajectory: std::mem::take(&mut state.trajectory),
            elapsed: self.shared.elapsed(),
            planning,
            work: self.work_done(),
        }
    }
}
