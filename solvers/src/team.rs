//! Several threads on one run.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use planlab_dsa::{Halt, PlanError, Run, Stop};

/// Signals to a worker that another one has ended the run.
pub(crate) struct RunOver<'o>(&'o AtomicBool);

impl RunOver<'_> {
    /// Returns [`Stop::Cancelled`] once the run is over.
    pub(crate) fn check_over(&self) -> Result<(), Halt> {
        if self.0.load(Ordering::Relaxed) { Err(Halt::Stop(Stop::Cancelled)) } else { Ok(()) }
    }
}

/// The least stack of a worker, in bytes.
pub(crate) const STACK: usize = 8 << 20;

/// Which workers end a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndsWith {
    /// The first that ends stops all others.
    First,
    /// One that returns `Ok` lets the others continue.
    All,
}

/// Calls `work` on as many threads as the run may use, each with a fork of the run and its number. Returns the result
/// of the first worker that stops the others.
///
/// `stack` is what each worker needs beyond the usual, in bytes.
///
/// # Errors
///
/// The error of the first worker to end; [`PlanError::Failed`] if a thread cannot be started.
pub(crate) fn run_team(
    run: &mut Run<'_>,
    stack: usize,
    ends_with: EndsWith,
    work: impl Fn(&mut Run<'_>, usize, &RunOver<'_>) -> Result<(), Halt> + Sync,
) -> Result<(), Halt> {
    let (over, work) = (AtomicBool::new(false), &work);
    let forks: Vec<Run<'_>> = (0..run.threads().get()).map(|_| run.fork()).collect();
    let ends = thread::scope(|scope| {
        let mut workers = Vec::new();
        for (number, mut fork) in forks.into_iter().enumerate() {
            let over = &over;
            let body = move || {
                let ended = work(&mut fork, number, &RunOver(over));
                let ends_all = ends_with == EndsWith::First || ended.is_err();
                (over.fetch_or(ends_all, Ordering::Relaxed) || !ends_all, ended)
            };
            let worker = spawn_with_stack(scope, STACK + stack, body);
            workers.push(worker.inspect_err(|_| over.store(true, Ordering::Relaxed))?);
        }
        Ok::<_, PlanError>(workers.into_iter().map(join_thread).collect::<Vec<_>>())
    })?;
    let error = ends.iter().find(|(_, ended)| matches!(ended, Err(Halt::Error(_))));
    let first = error.or(ends.iter().find(|(is_late, _)| !is_late));
    first.map_or(Ok(()), |(_, ended)| ended.clone())
}

/// Calls a function on a thread with `stack` bytes of stack; only the used part takes memory. Returns
/// [`PlanError::Failed`] if the thread cannot be started.
pub(crate) fn call_with_stack<T: Send>(
    stack: usize,
    call: impl FnOnce() -> T + Send,
) -> Result<T, PlanError> {
    thread::scope(|scope| spawn_with_stack(scope, stack, call).map(join_thread))
}

/// Starts a thread with `stack` bytes of stack; only the used part takes memory. Returns [`PlanError::Failed`] if the
/// thread cannot be started.
pub(crate) fn spawn_with_stack<'s, T: Send + 's>(
    scope: &'s thread::Scope<'s, '_>,
    stack: usize,
    call: impl FnOnce() -> T + Send + 's,
) -> Result<thread::ScopedJoinHandle<'s, T>, PlanError> {
    let started = thread::Builder::new().stack_size(stack).spawn_scoped(scope, call);
    started.map_err(|error| PlanError::Failed(format!("no thread: {error}")))
}

/// Waits for a thread; its panic goes on in this one.
fn join_thread<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::sync::atomic::AtomicUsize;

    use planlab_dsa::{Budget, Planner, execute};

    use super::*;
    use crate::placement::baseline::Bump;
    use crate::placement::testing::{scripted, test_instance};

    /// How a run of three threads ends.
    fn end(script: impl Fn(&mut Run<'_>) -> Result<(), Halt> + Send + Sync) -> Result<Stop, PlanError> {
        let budget = Budget { threads: NonZeroUsize::new(3), ..Budget::default() };
        execute(&scripted(Bump.descriptor(), script), &test_instance(&[(4, 0, 1)]), budget, 0).end
    }

    #[test]
    fn the_first_to_end_ends_all() {
        let ended = end(|run| {
            run_team(run, 0, EndsWith::First, |_, number, over| match number {
                1 => Err(Halt::Stop(Stop::WorkLimit)),
                _ => loop {
                    over.check_over()?;
                    std::thread::yield_now();
                },
            })
        });
        assert_eq!(ended, Ok(Stop::WorkLimit));
    }

    #[test]
    fn where_all_have_to_end_all_do() {
        let ended = AtomicUsize::new(0);
        let stop = end(|run| {
            run_team(run, 0, EndsWith::All, |_, _, over| {
                over.check_over()?;
                ended.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
        });
        assert_eq!((stop, ended.into_inner()), (Ok(Stop::Finished), 3));
    }

    #[test]
    fn an_error_outweighs_a_stop() {
        let ended = end(|run| {
            run_team(run, 0, EndsWith::First, |_, number, _| match number {
                2 => Err(PlanError::Failed("broken".into()).into()),
                _ => Err(Halt::Stop(Stop::WorkLimit)),
            })
        });
        assert_eq!(ended, Err(PlanError::Failed("broken".into())));
    }
}
