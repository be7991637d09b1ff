//! Leads all threads of a replay through its steps.
//!
//! ```text
//!   check: to the peak, the rest   (once or twice, every block checked, untimed)
//!     -> warm-up, propagation by propagation, until reserved bytes were the same 20 times in a row
//!        (or, without a warm-up, a new memory)
//!     -> samples: many propagations each, timed
//!     -> split: the calls apart
//! ```
//!
//! After each step the threads meet; the first one looks at all their results and chooses the next step.

use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{process, thread};

use planlab_dsa::performance::{CallTime, End, Sample, Work};
use planlab_dsa::{AllocError, Planning, Usage};

use super::checker::{Checker, Fault};
use super::clock::{self, Resident, monotonic_ns};
use super::memory::Memory;
use super::order::{Contender, Order};
use super::player::{Batches, Player, Times};
use super::report::Report;
use crate::looks::{are_mostly_clock, as_nanoseconds};
use crate::planned::PlannedError;
use crate::sequence::Sequence;

/// Warm-up takes at least this many propagations...
const WARM_UP: u32 = 50;
/// ... and lasts until the reserved bytes were the same after this many in a row...
const STEADY: u32 = 20;
/// ... but not longer than this.
const WARM_UP_LIMIT: u32 = 1000;
/// Warm-up takes at most this many times the budget.
const WARM_UP_BUDGETS: u32 = 5;
/// The budget, or the number of iterations, is divided into this many samples.
const SAMPLES: u32 = 200;
/// At least this many samples are timed, however long a propagation takes.
const LEAST_SAMPLES: usize = 5;
/// The times of single calls get the budget divided by this.
const SPLIT_SHARE: u32 = 2;
/// How often each sequence is checked; sequences of `LARGE` bytes are checked once.
const CHECKS: u32 = 2;
const LARGE: u64 = 1 << 30;

/// Why a memory could not be made.
#[derive(Clone, Debug)]
pub(super) struct Obstacle {
    pub(super) end: End,
    pub(super) reason: String,
}

impl From<PlannedError> for Obstacle {
    fn from(error: PlannedError) -> Self {
        let end = match error {
            PlannedError::NoMemory { .. } => End::OutOfMemory,
            _ => End::Unavailable,
        };
        Self { end, reason: error.to_string() }
    }
}

impl From<String> for Obstacle {
    fn from(reason: String) -> Self {
        Self { end: End::Unavailable, reason }
    }
}

/// What all threads do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    CheckToPeak,
    CheckRest,
    /// Each thread makes a new memory.
    Renew,
    WarmUp,
    Sample(u32),
    Split(u32),
    Stop,
}

/// The result of a step on one thread.
#[derive(Clone, Debug, Default)]
struct Post {
    obstacle: Option<Obstacle>,
    fault: Option<Fault>,
    times: Times,
    usage: Usage,
    /// The most bytes held during the step.
    most_held: Option<u64>,
    refused_range: Option<u64>,
    planning: Option<Planning>,
    used_peak: u64,
}

/// Plays an order on memories that `build` makes, one for each thread.
pub(super) fn conduct_threads<M: Memory>(
    order: &Order<'_>,
    build: impl Fn() -> Result<M, Obstacle> + Sync,
) -> Report {
    let threads = order.threads.get() as usize;
    let crew = Crew::new::<M>(order, threads);
    let resident = Resident::watch_peak();
    let batches = thread::scope(|scope| {
        let work = |index| crew.run_thread(index, &build);
        let others: Vec<_> = (1..threads).map(|index| scope.spawn(move || work(index))).collect();
        let mut all = vec![work(0)];
        all.extend(
            others.into_iter().map(|other| other.join().expect("a thread that panics ends the process")),
        );
        all
    });
    let mut report = crew.conductor.into_inner().unwrap_or_else(PoisonError::into_inner).report;
    report.performance.physical_peak =
        resident.peak_growth().filter(|_| report.is_pattern_checked || order.work != Work::None);
    let (requests, frees): (Vec<_>, Vec<_>) = batches.into_iter().map(|[a, b]| (a, b)).unzip();
    report.performance.alloc = call_quantiles(requests);
    report.performance.free = call_quantiles(frees);
    report
}

/// Quantiles of all threads' batches; `None` if the clock takes more time than the calls.
fn call_quantiles(batches: Vec<Batches>) -> Option<CallTime> {
    let runs = batches.iter().map(|batches| batches.runs).sum();
    if are_mostly_clock(runs, batches.iter().map(|batches| batches.all_ns).sum()) {
        return None;
    }
    CallTime::from_times(batches.into_iter().flat_map(|batches| batches.per_call_ps).collect())
}

/// The threads and their meeting point.
struct Crew<'a> {
    order: &'a Order<'a>,
    fills: bool,
    barrier: Barrier,
    posts: Mutex<Vec<Post>>,
    conductor: Mutex<Conductor<'a>>,
    process_usage: fn() -> Option<Usage>,
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Crew<'a> {
    fn new<M: Memory>(order: &'a Order<'a>, threads: usize) -> Self {
        let fills = can_be_filled(order);
        Self {
            order,
            fills,
            barrier: Barrier::new(threads),
            posts: Mutex::new(vec![Post::default(); threads]),
            conductor: Mutex::new(Conductor::new(order, fills, M::process_usage(), M::lock_wait_ns)),
            process_usage: M::process_usage,
        }
    }

    /// One thread from its first step to its last.
    fn run_thread<M: Memory>(
        &self,
        index: usize,
        build: &(impl Fn() -> Result<M, Obstacle> + Sync),
    ) -> [Batches; 2] {
        let _guard = EndOnPanic;
        let mut batches = [Batches::default(), Batches::default()];
        let Some(mut player) = self.build_player(index, build) else { return batches };
        let mut checker = Checker::new(self.fills);
        let mut step = self.meet_others(index, Post::default());
        while step != Step::Stop {
            if step == Step::Renew {
                // There may be no room for two memories at once.
                drop(player);
                let Some(renewed) = self.build_player(index, build) else { return batches };
                player = renewed;
            }
            let mut post = Post::default();
            let work = self.order.work;
            let played = match step {
                Step::CheckToPeak => player.check_propagation(&mut checker, false),
                Step::CheckRest => player.check_propagation(&mut checker, true),
                Step::WarmUp => player.time_propagations(work, 1).map(|times| post.times = times),
                Step::Sample(count) => player.time_propagations(work, count).map(|times| post.times = times),
                Step::Split(count) => player.time_calls(work, count, &mut batches),
                Step::Renew | Step::Stop => Ok(()),
            };
            post.fault = played.err();
            post.usage = player.memory().usage();
            post.most_held = player.memory().take_most_held();
            post.refused_range = player.memory().refused_range();
            post.planning = player.memory().planning();
            post.used_peak = checker.usable_peak;
            step = self.meet_others(index, post);
        }
        batches
    }

    /// A player with a new memory; if that cannot be made, all threads learn of it.
    fn build_player<M: Memory>(
        &self,
        index: usize,
        build: &(impl Fn() -> Result<M, Obstacle> + Sync),
    ) -> Option<Player<'a, M>> {
        match build() {
            Ok(memory) => Some(Player::new(self.order.sequences, memory)),
            Err(obstacle) => {
                self.meet_others(index, Post { obstacle: Some(obstacle), ..Post::default() });
                None
            }
        }
    }

    /// Waits for all threads; the first one chooses the next step.
    fn meet_others(&self, index: usize, post: Post) -> Step {
        lock_ignoring_poison(&self.posts)[index] = post;
        self.barrier.wait();
        if index == 0 {
            let posts = lock_ignoring_poison(&self.posts);
            lock_ignoring_poison(&self.conductor).choose_next_step(&posts, (self.process_usage)());
        }
        self.barrier.wait();
        lock_ignoring_poison(&self.conductor).step
    }
}

/// Ends the process, because the other threads would wait forever for a thread that panicked.
struct EndOnPanic;

impl Drop for EndOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            process::abort();
        }
    }
}

/// Whether memory suffices to write all blocks, including what lies between them.
fn can_be_filled(order: &Order<'_>) -> bool {
    if matches!(order.contender, Contender::EmptyLoop) {
        return false;
    }
    let most =
        |sequence: &Sequence| sequence.total_bytes().get().min(sequence.peak_bytes().get().saturating_mul(3));
    let most = order.sequences.iter().map(most).max().unwrap_or(0);
    let needed = most.saturating_mul(order.threads.get().into());
    clock::available_memory().is_none_or(|available| needed <= available / 2)
}

/// The results of all threads so far.
struct Conductor<'a> {
    order: &'a Order<'a>,
    step: Step,
    report: Report,
    /// Whether blocks are written while they are checked.
    fills: bool,
    /// What the process held before the first request.
    before: Option<Usage>,
    lock_wait_ns: fn() -> Option<u64>,
    waited_before: Option<u64>,
    is_checked: bool,
    checks: u32,
    /// How often in a row the reserved bytes were the same, and their number.
    same: u32,
    reserved: u64,
    search_steps: u64,
    /// When the current part began, on the monotonic clock.
    began_ns: u64,
    per_sample: u32,
    left: Option<u32>,
}

impl<'a> Conductor<'a> {
    fn new(
        order: &'a Order<'a>,
        fills: bool,
        before: Option<Usage>,
        lock_wait_ns: fn() -> Option<u64>,
    ) -> Self {
        let is_checked = !matches!(order.contender, Contender::EmptyLoop);
        Self {
            order,
            step: Step::Stop,
            report: Report::default(),
            fills,
            before,
            lock_wait_ns,
            waited_before: None,
            is_checked,
            checks: check_count(order.sequences),
            same: 0,
            reserved: u64::MAX,
            search_steps: 0,
            began_ns: monotonic_ns(),
            per_sample: 1,
            left: order.effort.iterations.or_else(|| is_one_by_one(order).then_some(SAMPLES)),
        }
    }

    /// Records the results of a step, and chooses the next one.
    fn choose_next_step(&mut self, posts: &[Post], process: Option<Usage>) {
        if let Some(end) = first_failure(posts) {
            (self.report.performance.status, self.report.performance.reason) = end;
            self.report.refused_range = lack_of_addresses(posts);
            self.step = Step::Stop;
            return;
        }
        let reserved = self.record_usage(posts, process);
        self.step = match self.step {
            // All memories exist now.
            Step::Stop if self.is_checked => Step::CheckToPeak,
            Step::Stop => self.warm_up(),
            Step::CheckToPeak => Step::CheckRest,
            Step::CheckRest => self.after_check(posts),
            Step::Renew => self.begin_samples(posts),
            Step::WarmUp => self.warmed_up(posts, reserved),
            Step::Sample(count) => self.after_sample(posts, count, reserved),
            Step::Split(count) => self.split_step(count),
        };
    }

    /// Records the threads' usage; returns the bytes reserved now.
    fn record_usage(&mut self, posts: &[Post], process: Option<Usage>) -> u64 {
        let sum = |of: fn(&Usage) -> u64| posts.iter().map(|post| of(&post.usage)).sum::<u64>();
        let (mut reserved, mut peak) =
            (sum(|usage| usage.reserved.get()), sum(|usage| usage.reserved_peak.get()));
        if let Some((now, before)) = process.zip(self.before) {
            reserved = now.reserved.get().saturating_sub(before.reserved.get());
            peak = now.reserved_peak.get().saturating_sub(before.reserved.get()).max(reserved);
        }
        self.report.performance.reserved_peak = self.report.performance.reserved_peak.max(peak);
        self.report.performance.device_allocations = sum(|usage| usage.device_allocations);
        let steps = sum(|usage| usage.search_steps);
        match self.step {
            Step::WarmUp => self.report.performance.search_steps = steps - self.search_steps,
            Step::Sample(count) => {
                self.report.performance.search_steps = (steps - self.search_steps) / u64::from(count);
            }
            _ => {}
        }
        self.search_steps = steps;
        reserved
    }

    fn after_check(&mut self, posts: &[Post]) -> Step {
        self.report.performance.warm_up += 1;
        self.report.performance.used_peak = Some(posts.iter().map(|post| post.used_peak).sum());
        if self.report.performance.warm_up < self.checks {
            return Step::CheckToPeak;
        }
        self.report.is_pattern_checked = self.fills;
        self.warm_up()
    }

    fn warm_up(&mut self) -> Step {
        self.began_ns = monotonic_ns();
        if self.order.effort.warm_up == Some(0) {
            self.report.performance.warm_up = 0;
            return Step::Renew;
        }
        Step::WarmUp
    }

    fn warmed_up(&mut self, posts: &[Post], reserved: u64) -> Step {
        self.report.performance.warm_up += 1;
        self.watch_reserved(reserved);
        let least = self.order.effort.warm_up.unwrap_or(WARM_UP);
        let is_warm = self.report.performance.warm_up >= least && self.report.performance.is_steady;
        let limit = self.order.effort.budget.saturating_mul(WARM_UP_BUDGETS);
        if is_warm || self.report.performance.warm_up >= WARM_UP_LIMIT || self.elapsed() >= limit {
            return self.begin_samples(posts);
        }
        Step::WarmUp
    }

    /// Records whether the reserved bytes changed.
    fn watch_reserved(&mut self, reserved: u64) {
        self.same = if reserved == self.reserved { self.same + 1 } else { 0 };
        self.reserved = reserved;
        self.report.performance.is_steady = self.same + 1 >= STEADY;
    }

    fn begin_samples(&mut self, posts: &[Post]) -> Step {
        self.per_sample = self.propagations_per_sample(wall_span(posts));
        self.waited_before = (self.lock_wait_ns)();
        self.began_ns = monotonic_ns();
        self.next_sample()
    }

    fn elapsed(&self) -> Duration {
        Duration::from_nanos(monotonic_ns() - self.began_ns)
    }

    /// How many propagations make a sample if one takes `span_ns` nanoseconds.
    fn propagations_per_sample(&self, span_ns: u64) -> u32 {
        if is_one_by_one(self.order) {
            return 1;
        }
        if let Some(all) = self.order.effort.iterations {
            return (all / SAMPLES).max(1);
        }
        let sample_ns = (self.order.effort.budget / SAMPLES).as_nanos() / u128::from(span_ns.max(1));
        u32::try_from(sample_ns).unwrap_or(u32::MAX).clamp(1, 1 << 20)
    }

    fn next_sample(&mut self) -> Step {
        let is_short = self.elapsed() < self.order.effort.budget
            || self.report.performance.samples.len() < LEAST_SAMPLES;
        match self.left {
            Some(left @ 1..) => {
                let count = self.per_sample.min(left);
                self.left = Some(left - count);
                Step::Sample(count)
            }
            None if is_short => Step::Sample(self.per_sample),
            _ => self.begin_split(),
        }
    }

    fn after_sample(&mut self, posts: &[Post], propagations: u32, reserved: u64) -> Step {
        let cpu_ns = posts.iter().map(|post| post.times.cpu_ns).sum();
        let all = posts.iter().filter_map(|post| post.planning);
        let planning = all.reduce(Planning::combined_with);
        self.report.performance.missed = planning.map(|planning| planning.missed);
        self.report.performance.samples.push(Sample {
            propagations,
            wall_ns: wall_span(posts),
            cpu_ns: Some(cpu_ns),
            reserved: Some(reserved),
            reserved_peak: posts.iter().map(|post| post.most_held).sum(),
            plans: planning.map(|planning| planning.plans),
            planning_ns: planning.map(|planning| as_nanoseconds(planning.time)),
            planned: planning.map(|planning| planning.planned),
            missed: planning.map(|planning| planning.missed.total()),
            ..Sample::default()
        });
        if self.order.effort.warm_up == Some(0) {
            self.watch_reserved(reserved);
        }
        self.next_sample()
    }

    fn begin_split(&mut self) -> Step {
        let waited = (self.lock_wait_ns)().zip(self.waited_before);
        self.report.performance.lock_wait_ns = waited.map(|(now, before)| now.saturating_sub(before));
        self.began_ns = monotonic_ns();
        let all = u32::try_from(self.order.sequences.len()).unwrap_or(u32::MAX);
        Step::Split(self.per_sample.max(all))
    }

    fn split_step(&mut self, count: u32) -> Step {
        let is_long = self.elapsed() >= self.order.effort.budget / SPLIT_SHARE;
        if is_long || self.order.effort.iterations.is_some() { Step::Stop } else { Step::Split(count) }
    }
}

/// Whether each sample is one propagation, because propagations differ.
fn is_one_by_one(order: &Order<'_>) -> bool {
    order.sequences.len() > 1 || order.effort.warm_up == Some(0)
}

/// The number of propagations to check; each sequence is checked equally often.
fn check_count(sequences: &[Sequence]) -> u32 {
    let is_large = sequences.iter().any(|sequence| sequence.total_bytes().get() >= LARGE);
    let all = u32::try_from(sequences.len()).unwrap_or(u32::MAX);
    all.saturating_mul(if is_large { 1 } else { CHECKS })
}

/// Nanoseconds from the first thread's begin to the last thread's end.
fn wall_span(posts: &[Post]) -> u64 {
    let start = posts.iter().map(|post| post.times.start_ns).min().unwrap_or(0);
    let end = posts.iter().map(|post| post.times.end_ns).max().unwrap_or(0);
    end.saturating_sub(start)
}

/// The first thread's failure, if any; corruption takes precedence.
fn first_failure(posts: &[Post]) -> Option<(End, String)> {
    let ends = posts.iter().filter_map(|post| {
        let obstacle = post.obstacle.clone().map(|obstacle| (obstacle.end, obstacle.reason));
        obstacle.or_else(|| post.fault.map(|fault| (end_of(fault), fault.to_string())))
    });
    ends.min_by_key(|(end, _)| *end != End::Corrupt)
}

/// Bytes of addresses that were refused to a thread which ran out of memory.
fn lack_of_addresses(posts: &[Post]) -> Option<u64> {
    let has_ended = |post: &&Post| post.fault.is_some_and(|fault| end_of(fault) == End::OutOfMemory);
    posts.iter().filter(has_ended).find_map(|post| post.refused_range)
}

fn end_of(fault: Fault) -> End {
    match fault {
        Fault::Alloc { error: AllocError::OutOfMemory { .. }, .. } => End::OutOfMemory,
        Fault::Alloc { .. } => End::Unavailable,
        _ => End::Corrupt,
    }
}
