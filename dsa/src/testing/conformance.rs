//! The contract of a [`Planner`], checked on the corpus.

use std::time::Duration;

use super::corpus::{Case, corpus};
use super::oracle::oracle_height;
use super::stopwatch::Stopwatch;
use crate::{
    Alignment, Budget, Buffer, Bytes, CancelToken, Descriptor, Guarantee, Instance, LiveRange, Offset,
    Outcome, PlanError, Planner, Scope, Stop, execute,
};

/// The oracle is skipped above this many buffers.
const ORACLE_BUFFERS: usize = 300;
/// Up to this many buffers, an exact planner that finishes must find the optimum.
const EXACT_BUFFERS: usize = 12;
/// Up to this many buffers, a run is repeated with scaled sizes, shifted steps and another seed.
const REPEATED_BUFFERS: usize = 60;
/// The wall limit of an ordinary run.
const WALL: Duration = Duration::from_secs(3);
/// How long a run may continue after its limit, without waiting for a core; generous, because tests run unoptimised.
const REASON: Duration = Duration::from_secs(3);

/// Runs a planner over the corpus and panics if it breaks its contract.
///
/// On every case of at most [`practical`](Descriptor::practical) buffers:
/// - a demand that it does not honour gives [`PlanError::Unsupported`], and there is no other error;
/// - the best plan is valid for the oracle, and as high as it claims; in either scope, no plan lies below the optimum
///   and no bound above it; incumbent and bound only improve;
/// - a planner that finishes has a plan, an exact one has the optimum (up to 12 buffers), and a guaranteed ratio to the
///   load holds;
/// - the same seed and work limit give the same plan, and so does any seed if the planner is not randomised;
/// - a heuristic gives the same plan if all steps are later, or if all sizes are three times as large (unless its key
///   ends in `/published`: such a rule may depend on the unit);
/// - a time limit of a millisecond and a cancelled run end soon and without an error.
///
/// Its descriptor is complete, and its key is kebab-case.
pub fn check_conformance(planner: &dyn Planner) {
    conformance_on(planner, &corpus());
}

/// Like [`check_conformance`], on other cases.
pub fn conformance_on(planner: &dyn Planner, cases: &[Case]) {
    let descriptor = planner.descriptor();
    check_descriptor(&descriptor);
    let judge = Judge { planner, descriptor };
    let practical = |case: &&Case| judge.is_practical(case);
    for case in cases.iter().filter(practical) {
        judge.check_case(case);
    }
    let supported = |case: &&Case| judge.descriptor.honours.first_refused_feature(&case.instance).is_none();
    let largest = cases.iter().filter(practical).filter(supported).max_by_key(|case| case.instance.len());
    if let Some(largest) = largest {
        judge.check_limits(largest);
    }
}

fn check_descriptor(descriptor: &Descriptor) {
    let key = descriptor.key.as_ref();
    let parts = || key.split('/').flat_map(|part| part.split('-'));
    let is_word = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.')
    };
    assert!(parts().all(is_word), "the key `{key}` is not kebab-case");
    let texts = [
        ("summary", descriptor.summary.as_ref()),
        ("reference", descriptor.reference),
        ("complexity", descriptor.complexity),
    ];
    for (field, text) in texts {
        assert!(!text.trim().is_empty(), "{key}: its descriptor has no {field}");
    }
    if let Guarantee::Ratio(ratio) = descriptor.guarantee {
        assert!(ratio.is_finite() && ratio >= 1.0, "{key}: no planner can guarantee {ratio} times the load");
    }
}

struct Judge<'p> {
    planner: &'p dyn Planner,
    descriptor: Descriptor,
}

impl Judge<'_> {
    fn is_practical(&self, case: &Case) -> bool {
        let most = self.descriptor.practical.unwrap_or(u32::MAX);
        case.instance.len() <= usize::try_from(most).unwrap_or(usize::MAX)
    }

    fn case_budget(&self, instance: &Instance) -> Budget {
        let buffers = u64::try_from(instance.len()).unwrap_or(u64::MAX);
        let work = self.descriptor.honours.work_limit.then(|| 20_000 + buffers.saturating_mul(2_000));
        Budget { wall: Some(WALL), work, ..Budget::default() }
    }

    fn run_case<'i>(&self, instance: &'i Instance, seed: u64) -> Outcome<'i> {
        execute(self.planner, instance, self.case_budget(instance), seed)
    }

    fn fail_case(&self, case: &Case, what: impl std::fmt::Display) -> ! {
        panic!("{} breaks its contract on `{}`: {what}", self.descriptor.key, case.name)
    }

    fn assert_kept(&self, is_kept: bool, case: &Case, breach: impl std::fmt::Display) {
        if !is_kept {
            self.fail_case(case, breach);
        }
    }

    fn check_case(&self, case: &Case) {
        let outcome = self.run_case(&case.instance, 7);
        let refused = self.descriptor.honours.first_refused_feature(&case.instance);
        match (&outcome.end, refused) {
            (Err(PlanError::Unsupported(feature)), Some(refused)) if *feature == refused => return,
            (Ok(_), None) => {}
            (end, _) => self.fail_case(case, format_args!("it ends with {end:?}; unsupported: {refused:?}")),
        }
        self.check_plan(case, &outcome);
        self.check_bounds(case, &outcome);
        self.check_trajectory(case, &outcome);
        self.check_guarantee(case, &outcome);
        if case.instance.len() <= REPEATED_BUFFERS {
            self.check_repeats(case, &outcome);
            self.check_scaled_and_shifted(case, &outcome);
        }
    }

    fn check_plan(&self, case: &Case, outcome: &Outcome<'_>) {
        let Some(best) = &outcome.best else {
            let limited = case.instance.arenas().iter().any(|arena| arena.capacity.is_some());
            let ended = matches!(outcome.end, Ok(Stop::Finished | Stop::Proved));
            self.assert_kept(!ended || limited, case, "it ended by itself, but has no plan");
            return;
        };
        let height = best.height();
        if case.instance.len() <= ORACLE_BUFFERS {
            match oracle_height(&case.instance, best.as_plan()) {
                Ok(true_height) if true_height == height => {}
                Ok(other) => self.fail_case(case, format_args!("its plan is {other} high, not {height}")),
                Err(fault) => self.fail_case(case, format_args!("its plan is not valid: {fault}")),
            }
        }
        let least = if best.in_place().is_empty() { case.without_hand_over } else { case.optimum };
        if let Some(least) = least.filter(|&least| height < least) {
            self.fail_case(case, format_args!("a height of {height} lies below the optimum {least}"));
        }
        let is_permitted = self.descriptor.honours.in_place || best.in_place().is_empty();
        self.assert_kept(is_permitted, case, "it hands over in place, which its descriptor denies");
    }

    fn check_bounds(&self, case: &Case, outcome: &Outcome<'_>) {
        let scopes = [(Scope::Any, case.optimum), (Scope::NoHandOver, case.without_hand_over)];
        for (scope, optimum) in scopes {
            let claim = outcome.bound.best_claim(scope);
            if let Some(optimum) = optimum.filter(|&optimum| claim.value > optimum) {
                let bound = format!("{claim} ({}, {scope:?})", claim.evidence);
                self.fail_case(case, format_args!("bound {bound} lies above the optimum {optimum}"));
            }
        }
    }

    fn check_trajectory(&self, case: &Case, outcome: &Outcome<'_>) {
        for pair in outcome.trajectory.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            let lower = before.height.is_none_or(|old| after.height.is_some_and(|new| new <= old));
            let is_kept = lower && after.bound >= before.bound && after.elapsed >= before.elapsed;
            let breach = format!("its trajectory goes back from {before:?} to {after:?}");
            self.assert_kept(is_kept, case, breach);
        }
    }

    fn check_guarantee(&self, case: &Case, outcome: &Outcome<'_>) {
        let ended = matches!(outcome.end, Ok(Stop::Finished | Stop::Proved));
        let Some(height) = outcome.height().filter(|_| ended) else { return };
        let hands_over = self.descriptor.honours.in_place;
        let load =
            if hands_over { case.instance.load() } else { case.instance.load_without_in_place() }.bytes;
        match self.descriptor.guarantee {
            Guarantee::Ratio(ratio) if is_plain(&case.instance) => {
                let is_kept = as_float(height) <= ratio * as_float(load);
                let breach = format!("a height of {height} exceeds {ratio} times the load {load}");
                self.assert_kept(is_kept, case, breach);
            }
            Guarantee::Exact if self.sees_all(&case.instance) && case.instance.len() <= EXACT_BUFFERS => {
                let optimum = if hands_over { case.optimum } else { case.without_hand_over };
                if let Some(optimum) = optimum.filter(|&optimum| height != optimum) {
                    self.fail_case(case, format_args!("it ended at {height}, not at the optimum {optimum}"));
                }
            }
            _ => {}
        }
    }

    /// Whether the planner uses every pause, so that the instance's optimum is also its own.
    fn sees_all(&self, instance: &Instance) -> bool {
        self.descriptor.honours.pauses || instance.buffers().iter().all(|buffer| buffer.pauses.is_empty())
    }

    /// Whether a second run must give the same plan. That requires that no clock influenced the result, not even a
    /// solver's own clock that stops it shortly before the limit.
    fn is_repeatable(&self, outcome: &Outcome<'_>) -> bool {
        match outcome.end {
            Ok(Stop::Deadline | Stop::Cancelled) | Err(_) => false,
            Ok(_) if outcome.elapsed > WALL / 2 => false,
            Ok(_) => self.descriptor.honours.work_limit || !self.descriptor.randomized,
        }
    }

    fn check_repeats(&self, case: &Case, outcome: &Outcome<'_>) {
        if !self.is_repeatable(outcome) {
            return;
        }
        let plan = |outcome: &Outcome<'_>| outcome.best.as_ref().map(|best| best.as_plan().clone());
        let again = self.run_case(&case.instance, 7);
        if self.is_repeatable(&again) && plan(&again) != plan(outcome) {
            let ends = [outcome, &again].map(|run| (run.end.clone(), run.height(), run.elapsed));
            self.fail_case(case, format_args!("the same seed gives another plan: {ends:?}"));
        }
        if !self.descriptor.randomized {
            let other = self.run_case(&case.instance, 8);
            let is_same = !self.is_repeatable(&other) || plan(&other) == plan(outcome);
            let breach = "another seed gives another plan, but it says that it is not randomised";
            self.assert_kept(is_same, case, breach);
        }
    }

    fn check_scaled_and_shifted(&self, case: &Case, outcome: &Outcome<'_>) {
        let buffers = case.instance.buffers();
        let fixed = buffers.iter().any(|buffer| buffer.align.get() > 1 || buffer.pin.is_some());
        if fixed || self.descriptor.guarantee != Guarantee::Heuristic || !self.is_repeatable(outcome) {
            return;
        }
        let Some(best) = &outcome.best else { return };
        let is_published = self.descriptor.key.ends_with("/published");
        let variants = [("three times the sizes", 3, 0), ("all steps 1000 later", 1, 1000)];
        for (what, factor, shift) in variants.into_iter().skip(usize::from(is_published)) {
            let Some(variant) = scaled_and_shifted(&case.instance, factor, shift) else { continue };
            let other = self.run_case(&variant, 7);
            let offsets: Vec<Offset> = best.offsets().iter().map(|o| Offset::new(o.get() * factor)).collect();
            let same = other.best.as_ref().is_some_and(|plan| plan.offsets() == offsets);
            let is_kept = same || !self.is_repeatable(&other);
            self.assert_kept(is_kept, case, format_args!("{what} give another plan"));
        }
    }

    fn check_limits(&self, case: &Case) {
        let wall = Budget { wall: Some(Duration::from_millis(1)), ..Budget::default() };
        let cancelled = Budget { cancel: CancelToken::default(), ..Budget::default() };
        cancelled.cancel.cancel();
        for (what, budget) in [("a limit of 1 ms", wall), ("a cancelled run", cancelled)] {
            let stopwatch = Stopwatch::start();
            let outcome = execute(self.planner, &case.instance, budget, 7);
            let took = stopwatch.elapsed();
            if let Err(error) = &outcome.end {
                self.fail_case(case, format_args!("{what} is an error: {error}"));
            }
            self.assert_kept(took <= REASON, case, format_args!("{what} took {took:?}"));
        }
    }
}

/// Whether an instance has neither alignments nor pauses.
fn is_plain(instance: &Instance) -> bool {
    instance.buffers().iter().all(|buffer| buffer.align == Alignment::ONE && buffer.pauses.is_empty())
}

#[expect(clippy::cast_precision_loss, reason = "a ratio of byte counts needs 52 bits at most")]
fn as_float(bytes: Bytes) -> f64 {
    bytes.get() as f64
}

/// The instance with all sizes, windows and capacities times `factor` and all steps `shift` later; `None` if the numbers
/// overflow.
#[must_use]
pub fn scaled_and_shifted(instance: &Instance, factor: u64, shift: u32) -> Option<Instance> {
    let bytes = |bytes: Bytes| bytes.get().checked_mul(factor).map(Bytes::new);
    let steps = |live: LiveRange| {
        LiveRange::new(live.start().get().checked_add(shift)?, live.end().get().checked_add(shift)?).ok()
    };
    let changed = |buffer: &Buffer| {
        let mut buffer = buffer.clone();
        buffer.size = bytes(buffer.size)?;
        buffer.live = steps(buffer.live)?;
        for pause in &mut buffer.pauses {
            pause.steps = steps(pause.steps)?;
            if let Some(window) = &mut pause.window {
                *window = bytes(window.start)?..bytes(window.end)?;
            }
        }
        Some(buffer)
    };
    let buffers: Vec<Buffer> = instance.buffers().iter().map(changed).collect::<Option<_>>()?;
    let mut arenas = instance.arenas().to_vec();
    for arena in &mut arenas {
        arena.capacity = arena.capacity.map(|capacity| bytes(capacity).unwrap_or(Bytes::new(u64::MAX)));
    }
    let changed = Instance::builder().buffers(buffers).arenas(arenas);
    changed.in_place(instance.in_place().to_vec()).apart(instance.keep_apart_pairs().to_vec()).build().ok()
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;
    use crate::{Evidence, Halt, Honours, Plan, Run};

    /// A correct planner in which a test can plant an error.
    struct Saboteur {
        descriptor: Descriptor,
        plan: fn(&mut Run<'_>) -> Result<(), Halt>,
    }

    impl Planner for Saboteur {
        fn descriptor(&self) -> Descriptor {
            self.descriptor.clone()
        }

        fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
            (self.plan)(run)
        }
    }

    fn descriptor() -> Descriptor {
        Descriptor {
            key: "stack".into(),
            summary: "everything on top of each other".into(),
            honours: Honours::default(),
            reference: "folklore",
            complexity: "n",
            ..Descriptor::default()
        }
    }

    fn stack(run: &mut Run<'_>) -> Result<(), Halt> {
        let mut top = 0;
        let mut offsets = Vec::new();
        for buffer in run.instance().buffers() {
            run.tick(1)?;
            offsets.push(Offset::new(top));
            top += buffer.size.get();
        }
        run.offer(Plan::from_offsets(offsets))
    }

    fn message(descriptor: Descriptor, plan: fn(&mut Run<'_>) -> Result<(), Halt>) -> String {
        let saboteur = Saboteur { descriptor, plan };
        let panic = catch_unwind(|| check_conformance(&saboteur)).expect_err("it breaks the contract");
        panic.downcast::<String>().map(|text| *text).expect("the message is formatted")
    }

    #[test]
    fn a_planner_that_keeps_the_contract_passes() {
        check_conformance(&Saboteur { descriptor: descriptor(), plan: stack });
    }

    #[test]
    fn each_breach_is_named() {
        let exact = Descriptor { guarantee: Guarantee::Exact, ..descriptor() };
        assert!(message(exact, stack).contains("not at the optimum"));
        let ratio = Descriptor { guarantee: Guarantee::Ratio(1.5), ..descriptor() };
        assert!(message(ratio, stack).contains("1.5 times the load"));
        let nameless = Descriptor { key: "Stack It".into(), ..descriptor() };
        assert!(message(nameless, stack).contains("kebab-case"));
        let unread = Descriptor { reference: " ", ..descriptor() };
        assert!(message(unread, stack).contains("no reference"));
        assert!(message(descriptor(), |_| Ok(())).contains("has no plan"));
        let overlapping = |run: &mut Run<'_>| {
            let zeros = vec![Offset::default(); run.instance().len()];
            run.offer(Plan::from_offsets(zeros))
        };
        assert!(message(descriptor(), overlapping).contains("Invalid"));
        let boasting = |run: &mut Run<'_>| {
            let more = Bytes::new(run.instance().load().bytes.get() + 1);
            run.raise_bound(more, Scope::Any, Evidence::Search)?;
            Err(Halt::Stop(Stop::WorkLimit))
        };
        assert!(message(descriptor(), boasting).contains("lies above the optimum"));
    }

    #[test]
    fn a_plan_that_depends_on_the_seed_or_the_scale_is_noticed() {
        let seeded = |run: &mut Run<'_>| {
            let shift = rand::RngExt::random::<u8>(run.rng());
            shifted(run, u64::from(shift))
        };
        assert!(message(descriptor(), seeded).contains("another seed"));
        assert!(message(descriptor(), |run| shifted(run, 1)).contains("three times the sizes"));
        let published = Descriptor { key: "stack/published".into(), ..descriptor() };
        check_conformance(&Saboteur { descriptor: published, plan: |run| shifted(run, 1) });
    }

    fn shifted(run: &mut Run<'_>, mut top: u64) -> Result<(), Halt> {
        let mut offsets = Vec::new();
        for buffer in run.instance().buffers() {
            offsets.push(Offset::new(top));
            top = top.saturating_add(buffer.size.get());
        }
        if top == u64::MAX { stack(run) } else { run.offer(Plan::from_offsets(offsets)) }
    }

    #[test]
    fn a_planner_that_ignores_the_clock_is_noticed() {
        let deaf = |run: &mut Run<'_>| {
            if run.instance().len() >= 1000
                && run.remaining_time().is_none_or(|left| left < Duration::from_secs(1))
            {
                std::thread::sleep(REASON + Duration::from_millis(50));
            }
            stack(run)
        };
        assert!(message(descriptor(), deaf).contains("took"));
    }
}
