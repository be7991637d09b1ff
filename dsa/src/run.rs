//! One run of a planner: clock, random numbers, incumbent, bound and trajectory.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::bound::initial_bound;
use crate::{
    ArenaId, Bound, Budget, Bytes, CancelToken, Claim, Event, Evidence, Halt, Instance, Mark, Offset,
    Outcome, Plan, PlanError, Planner, Scope, Stop, VerifiedPlan,
};

/// Part of the wall time that verification may take while the planner is still working.
const VERIFY_SHARE: u32 = 10;
/// Units of work between two looks at the clock.
const WORK_PER_LOOK: u64 = 256;

type Observer<'i> = Box<dyn FnMut(Event<'_>) + Send + 'i>;

struct State<'i> {
    best: Option<Arc<VerifiedPlan<'i>>>,
    pending: Option<(Plan, Bytes)>,
    bound: Bound,
    /// Bounds that somebody states without a proof.
    claimed: Bound,
    trajectory: Vec<Mark>,
    verifying: Duration,
    observer: Option<Observer<'i>>,
}

struct Shared<'i> {
    instance: &'i Instance,
    budget: Budget,
    scope: Scope,
    start: Instant,
    work: AtomicU64,
    /// The height below which a plan is worth offering; `u64::MAX` at first.
    below: AtomicU64,
    /// How a plan or a bound ended the run: for all forks, at their next tick.
    decided: OnceLock<Stop>,
    state: Mutex<State<'i>>,
}

impl<'i> Shared<'i> {
    fn state(&self) -> MutexGuard<'_, State<'i>> {
        // A worker that panicked leaves valid state behind: every field is replaced whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One run: instance, clock, random numbers, incumbent, bound, trajectory.
pub struct Run<'i> {
    shared: Arc<Shared<'i>>,
    rng: ChaCha8Rng,
    unread: u64,
}

impl<'i> Run<'i> {
    fn new(
        instance: &'i Instance,
        budget: Budget,
        seed: u64,
        scope: Scope,
        observer: Option<Observer<'i>>,
    ) -> Self {
        let state = State {
            best: None,
            pending: None,
            bound: Bound::default(),
            claimed: Bound::default(),
            trajectory: Vec::new(),
            verifying: Duration::ZERO,
            observer,
        };
        let shared = Shared {
            instance,
            budget,
            scope,
            start: Instant::now(),
            work: AtomicU64::new(0),
            below: AtomicU64::new(u64::MAX),
            decided: OnceLock::new(),
            state: Mutex::new(state),
        };
        Self { shared: Arc::new(shared), rng: ChaCha8Rng::seed_from_u64(seed), unread: 0 }
    }

    /// A second run on the same clock, incumbent and bound, with random numbers of its own: one for each
    /// worker of a parallel planner.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(self.rng.random());
        Self { shared: Arc::clone(&self.shared), rng, unread: 0 }
    }

    /// The problem.
    #[must_use]
    pub fn instance(&self) -> &'i Instance {
        self.shared.instance
    }

    /// Random numbers, seeded by whoever started the run.
    pub fn rng(&mut self) -> &mut ChaCha8Rng {
        &mut self.rng
    }

    /// Threads that the planner may use.
    #[must_use]
    pub fn threads(&self) -> NonZeroUsize {
        self.shared.budget.threads.unwrap_or(NonZeroUsize::MIN)
    }

    /// The wall time that is left, for solvers that keep a clock of their own.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.shared.budget.wall.map(|wall| wall.saturating_sub(self.shared.start.elapsed()))
    }

    /// The units of work that are left, where they are limited.
    #[must_use]
    pub fn remaining_work(&self) -> Option<u64> {
        let done = self.shared.work.load(Ordering::Relaxed) + self.unread;
        self.shared.budget.work.map(|limit| limit.saturating_sub(done))
    }

    /// The flag that ends the run from outside.
    #[must_use]
    pub fn cancel_token(&self) -> &CancelToken {
        &self.shared.budget.cancel
    }

    /// The capacity that was asked for.
    #[must_use]
    pub fn target(&self) -> Option<Bytes> {
        self.shared.budget.target
    }

    /// Offsets suggested as a start, by buffer. Nothing says that they are a valid plan. `None` where there
    /// are none, or not as many as buffers.
    #[must_use]
    pub fn hints(&self) -> Option<&[Option<Offset>]> {
        self.shared.budget.hints.as_deref().filter(|hints| hints.len() == self.shared.instance.len())
    }

    /// Whether plans with hand-overs count in this run.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.shared.scope
    }

    /// The best verified plan so far.
    #[must_use]
    pub fn best(&self) -> Option<Arc<VerifiedPlan<'i>>> {
        self.shared.state().best.clone()
    }

    /// The height of the lowest plan that was kept, whether it is verified already or waits for that: what
    /// a plan has to be lower than. Unlike [`Run::best`] it does not depend on how long verification took.
    #[must_use]
    pub fn height_to_beat(&self) -> Option<Bytes> {
        let below = self.shared.below.load(Ordering::Relaxed);
        (below != u64::MAX).then(|| Bytes::new(below)).or_else(|| self.best().map(|best| best.height()))
    }

    /// The best proven bounds so far.
    #[must_use]
    pub fn bound(&self) -> Bound {
        self.shared.state().bound
    }

    /// Counts work and, now and then, reads the clock.
    ///
    /// # Errors
    ///
    /// [`Halt::Stop`] when a limit is reached, the run was cancelled, or a plan or bound of another fork has
    /// ended it.
    pub fn tick(&mut self, work: u64) -> Result<(), Halt> {
        self.unread += work;
        if self.unread < WORK_PER_LOOK && self.shared.budget.work.is_none() {
            return Ok(());
        }
        let shared = &*self.shared;
        let done = shared.work.fetch_add(self.unread, Ordering::Relaxed) + self.unread;
        self.unread = 0;
        if let Some(&stop) = shared.decided.get() {
            return Err(Halt::Stop(stop));
        }
        if shared.budget.work.is_some_and(|limit| done >= limit) {
            return Err(Halt::Stop(Stop::WorkLimit));
        }
        if shared.budget.cancel.is_cancelled() {
            return Err(Halt::Stop(Stop::Cancelled));
        }
        if shared.budget.wall.is_some_and(|wall| shared.start.elapsed() >= wall) {
            return Err(Halt::Stop(Stop::Deadline));
        }
        Ok(())
    }

    /// Whether a plan of this height would be better than the incumbent.
    #[must_use]
    pub fn improves(&self, height: Bytes) -> bool {
        let below = self.shared.below.load(Ordering::Relaxed);
        // No plan yet looks like a plan of the greatest height there is.
        height.get() < below || (below == u64::MAX && self.best().is_none())
    }

    /// Hands a plan in. Its height is looked at first; only what is better is verified, then kept. Where
    /// verification has used its tenth of the time, the plan waits until the end of the run.
    ///
    /// # Errors
    ///
    /// [`PlanError::Invalid`] for a plan that the verifier refuses, [`PlanError::Refuted`] for one below
    /// the bound; [`Stop::Proved`] when its height equals the bound, [`Stop::TargetReached`] when it
    /// fits the target.
    pub fn offer(&mut self, plan: Plan) -> Result<(), Halt> {
        let height = plan.height(self.shared.instance);
        if height.is_some_and(|height| !self.improves(height)) {
            return Ok(());
        }
        let mut state = self.shared.state();
        let spent = state.verifying * VERIFY_SHARE > self.shared.start.elapsed();
        let decides = height.is_some_and(|height| self.decides(&state, height, plan.scope()));
        if let (Some(height), true, true, false) = (height, spent, state.best.is_some(), decides) {
            self.shared.below.fetch_min(height.get(), Ordering::Relaxed);
            state.pending = Some((plan, height));
            return Ok(());
        }
        self.keep(&mut state, plan)
    }

    /// Whether a plan of that height ends the run.
    fn decides(&self, state: &State<'_>, height: Bytes, scope: Scope) -> bool {
        let bound = state.bound.of(self.judged(scope)).value;
        height <= bound || self.shared.budget.target.is_some_and(|target| height <= target)
    }

    /// The scope in which the run is over once height meets bound: where hand-overs count, a plan without
    /// them is not optimal before no plan with them can be lower.
    fn judged(&self, scope: Scope) -> Scope {
        if self.shared.scope == Scope::Any { Scope::Any } else { scope }
    }

    fn keep(&self, state: &mut State<'i>, plan: Plan) -> Result<(), Halt> {
        let before = Instant::now();
        let verified = self.shared.instance.verify(plan);
        state.verifying += before.elapsed();
        let verified = Arc::new(verified.map_err(PlanError::Invalid)?);
        let height = verified.height();
        if state.best.as_ref().is_some_and(|best| best.height() <= height) {
            return Ok(());
        }
        self.shared.below.fetch_min(height.get(), Ordering::Relaxed);
        if let Some(observer) = &mut state.observer {
            observer(Event::Incumbent(&verified));
        }
        let scope = verified.scope();
        state.best = Some(verified);
        state.pending = None;
        self.mark(state);
        for bound in [state.bound.of(scope), state.claimed.of(scope)] {
            if height < bound.value {
                return Err(PlanError::Refuted { bound, height }.into());
            }
        }
        if self.is_out_of_reach(state) {
            return Err(self.decide(Stop::Infeasible));
        }
        if height == state.bound.of(self.judged(scope)).value {
            return Err(self.decide(Stop::Proved));
        }
        if self.shared.budget.target.is_some_and(|target| height <= target) {
            return Err(self.decide(Stop::TargetReached));
        }
        Ok(())
    }

    /// Ends the run, for every fork.
    fn decide(&self, stop: Stop) -> Halt {
        Halt::Stop(*self.shared.decided.get_or_init(|| stop))
    }

    fn mark(&self, state: &mut State<'_>) {
        let mark = Mark {
            elapsed: self.shared.start.elapsed(),
            work: self.shared.work.load(Ordering::Relaxed) + self.unread,
            height: state.best.as_ref().map(|best| best.height()),
            bound: state.bound.of(self.shared.scope).value,
        };
        state.trajectory.push(mark);
    }

    /// States that no plan of `scope` is lower than `value`. A bound that is only [`Evidence::Claimed`]
    /// can be refuted, but proves nothing: it neither closes the gap nor shows a target out of reach.
    ///
    /// # Errors
    ///
    /// [`Stop::Proved`] when the gap closes, [`Stop::Infeasible`] when the bound on *any* plan lies above
    /// the target, [`PlanError::Refuted`] when a verified plan is lower.
    pub fn raise_bound(&mut self, value: Bytes, scope: Scope, evidence: Evidence) -> Result<(), Halt> {
        let mut bound = Bound::default();
        bound.raise(Claim { value, evidence }, scope);
        self.raise(bound)
    }

    /// States that one arena is at least so high in every plan. Says nothing unless the arena has a capacity
    /// and the claim, which must be proven, lies above it.
    ///
    /// # Errors
    ///
    /// [`Stop::Infeasible`] where the capacity is out of reach, so that there is no plan at all;
    /// [`PlanError::Refuted`] where a verified plan says otherwise.
    ///
    /// # Panics
    ///
    /// If there is no arena of that id.
    pub fn raise_arena_bound(&mut self, arena: ArenaId, bound: Claim) -> Result<(), Halt> {
        let capacity = self.instance().arenas()[arena.index()].capacity;
        let Some(capacity) = capacity.filter(|&capacity| bound.value > capacity) else { return Ok(()) };
        if bound.evidence == Evidence::Claimed {
            return Ok(());
        }
        let mut state = self.shared.state();
        let pending = state.pending.take();
        if let Some((plan, _)) = pending {
            self.keep(&mut state, plan)?;
        }
        match &state.best {
            // Every verified plan keeps the capacity.
            Some(_) => Err(PlanError::Refuted { bound, height: capacity }.into()),
            None => Err(self.decide(Stop::Infeasible)),
        }
    }

    fn raise(&mut self, bound: Bound) -> Result<(), Halt> {
        let mut bound = bound;
        if self.shared.instance.in_place().is_empty() {
            // Where nothing may be handed over, these are all plans.
            bound.raise(bound.of(Scope::NoHandOver), Scope::Any);
        }
        let mut state = self.shared.state();
        let known = state.bound;
        let pending = state.pending.take();
        if let Some((plan, _)) = pending {
            self.keep(&mut state, plan)?;
        }
        if let Some(best) = &state.best {
            let claim = bound.of(best.scope());
            let height = best.height();
            if claim.value > height {
                return Err(PlanError::Refuted { bound: claim, height }.into());
            }
        }
        for scope in [Scope::Any, Scope::NoHandOver] {
            let claim = bound.of(scope);
            let kept =
                if claim.evidence == Evidence::Claimed { &mut state.claimed } else { &mut state.bound };
            kept.raise(claim, scope);
        }
        if state.bound == known {
            return Ok(());
        }
        let raised = state.bound;
        if let Some(observer) = &mut state.observer {
            observer(Event::Bound(raised));
        }
        self.mark(&mut state);
        self.judge(&state)
    }

    fn judge(&self, state: &State<'_>) -> Result<(), Halt> {
        if self.is_out_of_reach(state) {
            return Err(self.decide(Stop::Infeasible));
        }
        let closed = state
            .best
            .as_ref()
            .is_some_and(|best| best.height() == state.bound.of(self.judged(best.scope())).value);
        if closed { Err(self.decide(Stop::Proved)) } else { Ok(()) }
    }

    /// Whether no plan can fit the target.
    fn is_out_of_reach(&self, state: &State<'_>) -> bool {
        self.shared.budget.target.is_some_and(|target| state.bound.of(Scope::Any).value > target)
    }

    fn finish(self, ended: Result<(), Halt>, in_planner: Duration) -> Outcome<'i> {
        let mut end = match ended {
            Ok(()) => Ok(Stop::Finished),
            Err(Halt::Stop(stop)) => Ok(stop),
            Err(Halt::Error(error)) => Err(error),
        };
        let mut state = self.shared.state();
        let planning = in_planner.saturating_sub(state.verifying);
        let pending = state.pending.take();
        if let Some((plan, _)) = pending {
            match self.keep(&mut state, plan) {
                Err(Halt::Error(error)) => end = end.and(Err(error)),
                // The pending plan decided the run after the planner had left.
                Err(Halt::Stop(stop)) if end == Ok(Stop::Finished) => end = Ok(stop),
                _ => {}
            }
        }
        self.mark(&mut state);
        Outcome {
            best: state.best.take(),
            bound: state.bound,
            scope: self.shared.scope,
            end,
            trajectory: std::mem::take(&mut state.trajectory),
            elapsed: self.shared.start.elapsed(),
            planning,
            work: self.shared.work.load(Ordering::Relaxed) + self.unread,
        }
    }
}

/// Runs a planner on an instance.
///
/// A demand that the planner does not honour ends the run as [`PlanError::Unsupported`]. The initial
/// bounds (load, pins, alignment) are known before the planner starts, so a heuristic that meets the load
/// is thereby proved optimal.
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
    run(planner, instance, budget, seed, None)
}

/// As [`execute`], telling `observer` of every verified plan and every bound.
#[must_use]
pub fn execute_observed<'i>(
    planner: &dyn Planner,
    instance: &'i Instance,
    budget: Budget,
    seed: u64,
    observer: impl FnMut(Event<'_>) + Send + 'i,
) -> Outcome<'i> {
    run(planner, instance, budget, seed, Some(Box::new(observer)))
}

fn run<'i>(
    planner: &dyn Planner,
    instance: &'i Instance,
    budget: Budget,
    seed: u64,
    observer: Option<Observer<'i>>,
) -> Outcome<'i> {
    let honours = planner.descriptor().honours;
    let hands_over = honours.in_place && !instance.in_place().is_empty();
    let scope = if hands_over { Scope::Any } else { Scope::NoHandOver };
    let mut run = Run::new(instance, budget, seed, scope, observer);
    if let Some(feature) = honours.refuses(instance) {
        return run.finish(Err(PlanError::Unsupported(feature).into()), Duration::ZERO);
    }
    if let Err(halt) = run.raise(initial_bound(instance)) {
        return run.finish(Err(halt), Duration::ZERO);
    }
    let before = Instant::now();
    let ended = planner.plan(&mut run);
    run.finish(ended, before.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffer, Descriptor, Feature, Guarantee, Honours, InPlace, LiveRange, Violation};

    /// Does what the test says.
    struct Scripted<F>(F, Honours);

    impl<F: Fn(&mut Run<'_>) -> Result<(), Halt> + Send + Sync> Planner for Scripted<F> {
        fn descriptor(&self) -> Descriptor {
            Descriptor {
                key: "scripted".into(),
                summary: "does what the test says".into(),
                guarantee: Guarantee::Heuristic,
                honours: self.1,
                randomized: false,
                reference: "",
                complexity: "",
                practical: None,
            }
        }

        fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
            (self.0)(run)
        }
    }

    fn scripted<F: Fn(&mut Run<'_>) -> Result<(), Halt> + Send + Sync>(script: F) -> Scripted<F> {
        Scripted(script, Honours::default())
    }

    /// Three buffers of 4 bytes; the load is 8, one above the other needs 12.
    fn instance() -> Instance {
        let ranges = [(0, 2), (1, 3), (2, 4)];
        let buffers =
            ranges.map(|(s, e)| Buffer::new(Bytes::new(4), LiveRange::new(s, e).expect("not empty")));
        Instance::from_buffers(buffers.to_vec()).expect("valid")
    }

    fn plan(offsets: [u64; 3]) -> Plan {
        Plan::from_offsets(offsets.map(Offset::new))
    }

    #[test]
    fn a_plan_that_meets_the_load_is_proved_optimal() {
        let instance = instance();
        let outcome = execute(&scripted(|run| run.offer(plan([0, 4, 0]))), &instance, Budget::default(), 0);
        assert_eq!(outcome.end, Ok(Stop::Proved));
        assert!(outcome.is_optimal());
    }

    #[test]
    fn an_invalid_plan_is_an_error_and_keeps_the_incumbent() {
        let instance = instance();
        let script = |run: &mut Run<'_>| {
            run.offer(plan([0, 4, 8]))?;
            run.offer(plan([0, 3, 0]))
        };
        let outcome = execute(&scripted(script), &instance, Budget::default(), 0);
        assert!(matches!(outcome.end, Err(PlanError::Invalid(Violation::Overlap { .. }))));
        assert_eq!(outcome.height(), Some(Bytes::new(12)));
    }

    #[test]
    fn a_bound_above_a_verified_height_fails_the_run() {
        let instance = instance();
        let script = |run: &mut Run<'_>| {
            run.offer(plan([0, 4, 8]))?;
            run.raise_bound(Bytes::new(13), Scope::Any, Evidence::Claimed)
        };
        let outcome = execute(&scripted(script), &instance, Budget::default(), 0);
        assert!(matches!(outcome.end, Err(PlanError::Refuted { .. })));
        let script = |run: &mut Run<'_>| {
            run.raise_bound(Bytes::new(13), Scope::Any, Evidence::Claimed)?;
            run.offer(plan([0, 4, 8]))
        };
        let outcome = execute(&scripted(script), &instance, Budget::default(), 0);
        assert!(matches!(outcome.end, Err(PlanError::Refuted { .. })));
    }

    #[test]
    fn limits_end_a_run_that_would_not_end() {
        let instance = instance();
        let endless = scripted(|run| {
            loop {
                run.tick(1)?;
            }
        });
        let wall = Budget { wall: Some(Duration::from_millis(5)), ..Budget::default() };
        assert_eq!(execute(&endless, &instance, wall, 0).end, Ok(Stop::Deadline));
        let work = Budget { work: Some(1000), ..Budget::default() };
        let outcome = execute(&endless, &instance, work, 0);
        assert_eq!((outcome.end, outcome.work), (Ok(Stop::WorkLimit), 1000));
        let cancelled = Budget::default();
        cancelled.cancel.cancel();
        assert_eq!(execute(&endless, &instance, cancelled, 0).end, Ok(Stop::Cancelled));
    }

    #[test]
    fn targets_are_reached_or_proved_out_of_reach() {
        let instance = instance();
        let high = scripted(|run| {
            run.offer(plan([0, 4, 8]))?;
            run.offer(plan([0, 4, 0]))
        });
        let target = |bytes| Budget { target: Some(Bytes::new(bytes)), ..Budget::default() };
        let outcome = execute(&high, &instance, target(12), 0);
        assert_eq!((outcome.end.clone(), outcome.height()), (Ok(Stop::TargetReached), Some(Bytes::new(12))));
        assert_eq!(execute(&high, &instance, target(7), 0).end, Ok(Stop::Infeasible));
    }

    #[test]
    fn a_target_below_a_proven_bound_is_out_of_reach_whatever_the_scope() {
        let instance = instance();
        let proof = scripted(|run| {
            run.offer(plan([0, 4, 8]))?;
            run.raise_bound(Bytes::new(12), Scope::NoHandOver, Evidence::Search)
        });
        let target = |bytes| Budget { target: Some(Bytes::new(bytes)), ..Budget::default() };
        assert_eq!(execute(&proof, &instance, target(11), 0).end, Ok(Stop::Infeasible));
        let proof_first = scripted(|run| {
            run.raise_bound(Bytes::new(9), Scope::NoHandOver, Evidence::Search)?;
            run.offer(plan([0, 4, 8]))
        });
        assert_eq!(execute(&proof_first, &instance, target(8), 0).end, Ok(Stop::Infeasible));
    }

    #[test]
    fn an_arena_that_cannot_keep_its_capacity_leaves_no_plan() {
        let arena = crate::Arena { name: String::new(), capacity: Some(Bytes::new(11)) };
        let buffers = instance().buffers().to_vec();
        let instance = Instance::builder().buffers(buffers).arenas([arena]).build().expect("valid");
        let claim = |value, evidence| Claim { value: Bytes::new(value), evidence };
        let honours = Honours { arenas: true, ..Honours::default() };
        let end = |offers: bool, bound: Claim| {
            let script = move |run: &mut Run<'_>| {
                if offers {
                    run.offer(plan([0, 5, 1]))?;
                }
                run.raise_arena_bound(ArenaId::default(), bound)
            };
            execute(&Scripted(script, honours), &instance, Budget::default(), 0).end
        };
        assert_eq!(end(false, claim(12, Evidence::Search)), Ok(Stop::Infeasible));
        assert_eq!(end(false, claim(11, Evidence::Search)), Ok(Stop::Finished));
        assert_eq!(end(false, claim(12, Evidence::Claimed)), Ok(Stop::Finished));
        let refuted = end(true, claim(12, Evidence::Search));
        assert!(matches!(refuted, Err(PlanError::Refuted { .. })), "{refuted:?}");
    }

    #[test]
    fn what_is_left_of_the_work_is_told() {
        let instance = instance();
        let script = scripted(|run| {
            assert_eq!(run.remaining_work(), Some(1000));
            run.tick(400)?;
            assert_eq!((run.remaining_work(), run.fork().remaining_work()), (Some(600), Some(600)));
            assert!(!run.cancel_token().is_cancelled());
            Ok(())
        });
        let budget = Budget { work: Some(1000), ..Budget::default() };
        assert_eq!(execute(&script, &instance, budget, 0).end, Ok(Stop::Finished));
    }

    #[test]
    fn a_demand_that_is_not_honoured_is_unsupported() {
        let pinned =
            Buffer::new(Bytes::new(4), LiveRange::new(0, 1).expect("not empty")).with_pin(Offset::new(4));
        let instance = Instance::from_buffers(vec![pinned]).expect("valid");
        let outcome = execute(&scripted(|_| Ok(())), &instance, Budget::default(), 0);
        assert_eq!(outcome.end, Err(PlanError::Unsupported(Feature::Pins)));
    }

    #[test]
    fn where_hand_overs_count_a_plan_without_them_is_not_proved_by_its_own_bound() {
        let range = |s, e| LiveRange::new(s, e).expect("not empty");
        let permission = InPlace { input: crate::BufferId::new(0), output: crate::BufferId::new(1) };
        let instance = Instance::builder()
            .buffers([Buffer::new(Bytes::new(4), range(0, 2)), Buffer::new(Bytes::new(4), range(1, 3))])
            .in_place([permission])
            .build()
            .expect("valid");
        let script = |run: &mut Run<'_>| {
            run.offer(Plan::from_offsets([0, 4].map(Offset::new)))?;
            let offsets = [0, 0].map(Offset::new).to_vec();
            run.offer(Plan { offsets, in_place: vec![permission] })
        };
        let honours = Honours { in_place: true, ..Honours::default() };
        let outcome = execute(&Scripted(script, honours), &instance, Budget::default(), 0);
        assert_eq!((outcome.end.clone(), outcome.height()), (Ok(Stop::Proved), Some(Bytes::new(4))));
        let without = execute(&scripted(script), &instance, Budget::default(), 0);
        assert_eq!((without.end.clone(), without.height()), (Ok(Stop::Proved), Some(Bytes::new(8))));
    }

    #[test]
    fn hints_are_there_where_every_buffer_has_an_entry() {
        let instance = instance();
        let hinted = |count: usize| {
            let hints: Vec<_> = (0..).map(|at| Some(Offset::new(at))).take(count).collect();
            let script = move |run: &mut Run<'_>| {
                assert_eq!(run.hints().map(<[_]>::len), (count == 3).then_some(3));
                let fork = run.fork();
                assert_eq!(run.hints(), fork.hints());
                Ok(())
            };
            let budget = Budget { hints: Some(hints.into()), ..Budget::default() };
            execute(&scripted(script), &instance, budget, 0).end
        };
        for count in 0..5 {
            assert_eq!(hinted(count), Ok(Stop::Finished));
        }
    }

    #[test]
    fn forks_share_the_incumbent_and_draw_other_numbers() {
        let instance = instance();
        let outcome = execute(
            &scripted(|run| {
                let mut fork = run.fork();
                assert_ne!(fork.rng().random::<u64>(), run.rng().random::<u64>());
                fork.offer(plan([0, 4, 8]))?;
                assert_eq!(run.best().map(|best| best.height()), Some(Bytes::new(12)));
                Ok(())
            }),
            &instance,
            Budget::default(),
            7,
        );
        assert_eq!(outcome.end, Ok(Stop::Finished));
    }
}
