//! A run within a run: a planner on an instance that stands for all of another one, or for a part of it.
//!
//! The inner run has a share of what is left of the outer one's time and work, ends with it, and tells of
//! every plan and bound as they come. Whoever started it passes them on to the outer run, in whose terms
//! they have to be put.

use std::sync::Arc;
use std::time::Duration;

use planlab_dsa::{
    Bound, Budget, Bytes, Claim, Event, Halt, Instance, Offset, PlanError, Planner, Run, Scope, Stop,
    execute_observed,
};
use rand::RngExt;

/// What an inner run may use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Share {
    /// Wall time. Default: no limit.
    pub(crate) wall: Option<Duration>,
    /// Units of work. Default: no limit.
    pub(crate) work: Option<u64>,
    /// A height that is low enough, in bytes of the inner instance. Default: none.
    pub(crate) target: Option<Bytes>,
    /// Where to begin, for each buffer of the inner instance. Default: nowhere.
    pub(crate) hints: Option<Arc<[Option<Offset>]>>,
}

impl Share {
    /// All that the outer run has left.
    pub(crate) fn all(run: &Run<'_>) -> Self {
        Self { wall: run.remaining(), work: run.remaining_work(), ..Self::default() }
    }
}

/// How an inner run ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) end: Result<Stop, PlanError>,
    pub(crate) bound: Bound,
    /// Units of work, for the outer run to count.
    pub(crate) work: u64,
}

/// Whether an inner run is to go on.
pub(crate) enum Then {
    GoOn,
    End,
}

/// Runs a planner on another instance. `take` is told of what it finds, with the outer run.
///
/// # Errors
///
/// What `take` says.
pub(crate) fn nested<'o>(
    run: &mut Run<'o>,
    planner: &dyn Planner,
    instance: &Instance,
    share: Share,
    mut take: impl FnMut(&mut Run<'o>, &Event<'_>) -> Result<Then, Halt> + Send,
) -> Result<Ended, Halt> {
    let seed = run.rng().random();
    let cancel = run.cancel_token().child();
    let Share { wall, work, target, hints } = share;
    let budget = Budget { wall, work, target, cancel: cancel.clone(), threads: Some(run.threads()), hints };
    let mut over = None;
    let outer = &mut *run;
    let outcome = execute_observed(planner, instance, budget, seed, |event| {
        if over.is_some() {
            return;
        }
        let taken = take(outer, &event);
        if !matches!(taken, Ok(Then::GoOn)) {
            cancel.cancel();
        }
        over = taken.err();
    });
    let ended = Ended { end: outcome.end.clone(), bound: outcome.bound, work: outcome.work };
    drop(outcome);
    match over {
        Some(halt) => Err(halt),
        None => Ok(ended),
    }
}

/// Raises the bound of a run in both scopes.
///
/// # Errors
///
/// What the run says.
pub(crate) fn raise_both(run: &mut Run<'_>, bound: Bound) -> Result<(), Halt> {
    for scope in [Scope::Any, Scope::NoHandOver] {
        let Claim { value, evidence } = bound.of(scope);
        run.raise_bound(value, scope, evidence)?;
    }
    Ok(())
}
