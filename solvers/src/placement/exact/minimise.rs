//! Minimisation: restarts at capacities between the bound and the incumbent, on every thread.
//!
//! Each restart has a capacity of its own. A plan lowers the incumbent, a refutation raises the bound,
//! and both are those of the run, which all workers share. A third of the restarts try the bound itself:
//! where it can be reached, the search that has no byte to waste is often the fastest.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use planlab_dsa::{Bytes, Evidence, Halt, Offset, Plan, PlanError, Run, Scope, Stop};

use super::kernel::{Problem, Restarts, Verdict};
use super::pruning::Pruning;

/// Where between the bound (0) and just below the incumbent (8) restarts look, in turn.
const EIGHTHS: [u64; 10] = [0, 0, 0, 8, 0, 4, 8, 0, 2, 6];
/// Stack of a worker, and what each item adds: the search goes as deep as there are items.
const STACK: usize = 8 << 20;
const STACK_PER_ITEM: usize = 4 << 10;

/// Searches until the gap is closed or the run is over, by as many threads as the run may use.
pub(crate) fn minimise(run: &mut Run<'_>, problem: &Problem, pruning: Pruning) -> Result<(), Halt> {
    run.raise_bound(problem.floor(), Scope::NoHandOver, Evidence::Load)?;
    let threads = run.threads();
    minimise_on(run, problem, pruning, threads)
}

/// The same by a given number of threads.
pub(crate) fn minimise_on(
    run: &mut Run<'_>,
    problem: &Problem,
    pruning: Pruning,
    threads: NonZeroUsize,
) -> Result<(), Halt> {
    let over = AtomicBool::new(false);
    let forks: Vec<Run<'_>> = (0..threads.get()).map(|_| run.fork()).collect();
    let stack = STACK + STACK_PER_ITEM * problem.items.len();
    let ends = thread::scope(|scope| {
        let mut workers = Vec::new();
        for (number, mut fork) in forks.into_iter().enumerate() {
            let over = &over;
            let work = move || {
                let seed = rand_seed(&mut fork);
                let mut worker = Worker { run: fork, problem, over, number };
                let ended = worker.search(Restarts::new(problem, pruning, seed));
                over.store(true, Ordering::Relaxed);
                ended
            };
            let worker = thread::Builder::new().stack_size(stack).spawn_scoped(scope, work);
            workers.push(worker.map_err(|error| PlanError::Failed(format!("no thread: {error}")))?);
        }
        let join = |worker: thread::ScopedJoinHandle<'_, Result<(), Halt>>| match worker.join() {
            Ok(ended) => ended,
            Err(panic) => resume_unwind(panic),
        };
        Ok::<_, PlanError>(workers.into_iter().map(join).collect::<Vec<_>>())
    })?;
    // What one worker came to, not that the others were told to stop.
    let told = |ended: &Result<(), Halt>| *ended == Err(Halt::Stop(Stop::Cancelled));
    ends.iter().find(|ended| !told(ended)).or(ends.first()).cloned().unwrap_or(Ok(()))
}

fn rand_seed(run: &mut Run<'_>) -> u64 {
    use rand::RngExt;
    run.rng().random()
}

struct Worker<'w, 'i> {
    run: Run<'i>,
    problem: &'w Problem,
    over: &'w AtomicBool,
    number: usize,
}

impl Worker<'_, '_> {
    fn search(&mut self, restarts: Restarts<'_>) -> Result<(), Halt> {
        let mut restarts = restarts.from_round(2 * self.number as u64);
        let mut best: Option<u64> = None;
        for turn in 0_usize.. {
            let Some(capacity) = self.capacity(turn, best) else { return Ok(()) };
            let (run, over) = (&mut self.run, self.over);
            let verdict = restarts.step(capacity, u64::MAX, &mut |work| {
                run.tick(work)?;
                if over.load(Ordering::Relaxed) { Err(Halt::Stop(Stop::Cancelled)) } else { Ok(()) }
            })?;
            match verdict {
                Verdict::Unknown => {}
                Verdict::Feasible(offsets) => {
                    let plan = Plan::from_offsets(offsets.into_iter().map(Offset::new).collect::<Vec<_>>());
                    best = plan.height(self.run.instance()).map(Bytes::get).or(best);
                    self.run.offer(plan)?;
                }
                Verdict::Infeasible => {
                    let unit = self.problem.unit();
                    let next = (capacity / unit + 1) * unit;
                    self.run.raise_bound(Bytes::new(next), Scope::NoHandOver, Evidence::Search)?;
                }
            }
        }
        Ok(())
    }

    /// The capacity of a restart in bytes; `None` where no plan can be better than the incumbent.
    fn capacity(&self, turn: usize, own_best: Option<u64>) -> Option<u64> {
        let unit = self.problem.unit();
        let bound = self.run.bound().of(Scope::NoHandOver).value.get();
        let least = bound.div_ceil(unit);
        let incumbent = self.run.best().map(|best| best.height().get()).into_iter().chain(own_best).min();
        let below = incumbent.map(|height| height.div_ceil(unit).saturating_sub(1));
        let target = self.run.target().map(|target| target.get() / unit);
        let most = match (below, target) {
            // Until the target is met, nothing but the target counts.
            (Some(below), Some(target)) => below.min(target),
            (below, target) => below.or(target).unwrap_or(2 * least),
        };
        if most < least {
            return None;
        }
        let eighth = EIGHTHS[(turn + 3 * self.number) % EIGHTHS.len()];
        Some((least + (most - least) * eighth / 8) * unit)
    }
}
