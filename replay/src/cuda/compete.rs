//! Plays contenders in turns on one device, each turn from an empty memory to its figures.
//!
//! ```text
//!   turn:  check (not timed)  ->  new contender  ->  warm-up  ->  timed propagations  ->  sums checked, all given back
//!   round: one turn of each contender, in an order that is drawn again
//! ```
//!
//! *Check.* A separate instance of the contender plays each propagation three times. The device verifies every
//! buffer's pattern before the buffer is freed. These propagations also show the most bytes in use, and how far the
//! device's free memory fell.
//!
//! *Warm-up.* At least a given number of propagations, and until the reserved bytes were the same a given number of
//! times in a row, up to a limit. If none is wanted, the contender's first propagations are timed, too.
//!
//! *Timed.* One propagation is one sample. The host's clock is read when everything is enqueued, and after the one
//! synchronisation at the end; the device's time lies between two events. Without kernels, several short propagations
//! make one sample, and only contenders whose calls are the driver's own are waited for. The sums of the kernels over
//! all propagations must match what was written.
//!
//! *Given back.* Calls that give back memory or graphs return no result; their failures are counted. A turn with such
//! a failure is no success, even if it comes at the very end.
//!
//! *Time.* Each phase has a time limit; the rows of slow contenders have fewer samples.
//!
//! *Calls.* Without kernels, the same number of propagations follows, in which each run of requests or of frees is
//! timed by itself. That time includes reading a clock twice. Runs of fewer than 4 calls are left out if there are
//! longer ones.

use std::sync::Arc;
use std::time::{Duration, Instant};

use planlab_dsa::performance::{CallTime, End, Performance, Sample, Work};
use planlab_dsa::{AllocError, NO_OPERATIONS};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::Device;
use super::contenders::{BuildError, Contender, Memory, Strategy};
use super::driver::{Driver, DriverError, Graph, Mark, SLOTS};
use super::player::{Peaks, Player, Score, Stop, Touch};
use crate::Kind;
use crate::looks::{are_mostly_clock, nanoseconds};

/// Runs of at least this many calls are long.
const LONG_RUN: usize = 4;

/// A sample without kernels takes about this long at least.
const SAMPLE: Duration = Duration::from_micros(100);

/// The most propagations of one sample.
const MOST_AT_ONCE: u32 = 1000;

/// Each phase plays at least this many propagations, whatever time they take.
const LEAST: u32 = 3;

/// Launches that a driver keeps pending on a stream; the next one waits until one of them is done. Current drivers
/// keep about 1024.
const QUEUE: usize = 1000;

/// How often each propagation is played to be checked: the first time cold, then in a running contender.
const CHECKED: usize = 3;

const fn touch(work: Work) -> Touch {
    match work {
        Work::Kernels => Touch::Sum,
        Work::Operations => Touch::Operations,
        // Pages and patterns are refused before a turn begins.
        Work::None | Work::Pages | Work::Pattern => Touch::Nothing,
    }
}

/// How often contenders play, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protocol {
    /// What is done with the memory.
    pub work: Work,
    /// The least number of propagations before the timed ones; 0: no warm-up.
    pub warm_up: u32,
    /// The most of these propagations.
    pub warm_up_most: u32,
    /// How often in a row the reserved bytes must be the same.
    pub steady: u32,
    /// The most timed propagations (samples, without kernels) in each round.
    pub timed: u32,
    /// The time of each phase of a turn (warm-up, timed propagations, timed calls); a longer phase ends early, but
    /// after at least 3 propagations.
    pub budget: Duration,
    /// Turns of each contender.
    pub rounds: u32,
    /// The seed of the random orders.
    pub seed: u64,
}

/// The results of a contender's turns so far.
#[derive(Default)]
struct Tally {
    /// All samples in order; for figures that differ between rounds, the largest.
    performance: Performance,
    /// Picoseconds per request and per free, one entry for each batch.
    calls: [Vec<u64>; 2],
    /// The number of runs in `calls`, each between two looks at the clock, and their total nanoseconds.
    timed_runs: [(u64, u64); 2],
    /// Free-list entries looked at during the last round's timed propagations, and the number of these propagations.
    search_steps: (u64, u64),
}

impl Tally {
    fn new() -> Self {
        let performance = Performance {
            is_steady: true,
            physical_peak: Some(0),
            refusals: Some(0),
            ..Performance::default()
        };
        Self { performance, ..Self::default() }
    }

    fn performance(&self) -> Performance {
        let [alloc, free] = [0, 1].map(|of: usize| {
            let (runs, all_ns) = self.timed_runs[of];
            if are_mostly_clock(runs, all_ns) { None } else { CallTime::of(self.calls[of].clone()) }
        });
        let (steps, propagations) = self.search_steps;
        let is_complete = self.performance.status == End::Complete;
        Performance {
            is_steady: self.performance.is_steady && is_complete,
            alloc,
            free,
            search_steps: steps / propagations.max(1),
            ..self.performance.clone()
        }
    }

    fn add_refusals(&mut self, count: u64) {
        self.performance.refusals = self.performance.refusals.map(|known| known + count);
    }
}

/// An event of a competition, passed to an observer.
#[derive(Clone, Debug)]
pub enum News<'a> {
    /// The contender with this index begins a turn.
    Begins(usize),
    /// The contender with this index has ended the turn, with its results so far.
    Ended(usize, Box<Performance>),
    /// The turn has broken the device, which answers no further call of this process: there are no more turns.
    Broken(&'a DriverError),
}

/// Plays the propagations in order, again and again, on each contender.
///
/// # Panics
///
/// If there are no propagations.
#[must_use]
pub fn compete(
    device: &Device,
    scores: &[Score],
    contenders: &[Contender<'_>],
    protocol: &Protocol,
) -> Vec<Performance> {
    compete_and_tell(device, scores, contenders, protocol, &mut |_| {})
}

/// As [`compete`], and passes `tell` the news of each turn before and after it.
///
/// # Panics
///
/// If there are no propagations.
#[must_use]
pub fn compete_and_tell(
    device: &Device,
    scores: &[Score],
    contenders: &[Contender<'_>],
    protocol: &Protocol,
    tell: &mut dyn FnMut(News<'_>),
) -> Vec<Performance> {
    assert!(!scores.is_empty(), "something to play");
    let mut tallies: Vec<Tally> = contenders.iter().map(|_| Tally::new()).collect();
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(protocol.seed);
    for round in 0..protocol.rounds {
        order.shuffle(&mut rng);
        for &index in &order {
            let tally = &mut tallies[index];
            if tally.performance.status == End::Complete {
                tell(News::Begins(index));
                let strategy = &contenders[index].strategy;
                let turn = Turn { driver: device.driver(), scores, strategy, protocol };
                if let Err(broken) = turn.take(round == 0, tally) {
                    (tally.performance.status, tally.performance.reason) = broken;
                }
                tell(News::Ended(index, Box::new(tally.performance())));
                let is_suspect = matches!(tally.performance.status, End::Failed | End::Corrupt);
                if let Some(error) = is_suspect.then(|| device.ask().err()).flatten() {
                    tell(News::Broken(&error));
                    return without_device(performances(&tallies), &error);
                }
            }
        }
    }
    performances(&tallies)
}

fn performances(tallies: &[Tally]) -> Vec<Performance> {
    tallies.iter().map(Tally::performance).collect()
}

/// A device that refuses every call is no contender's fault; contenders without a turn have no results.
fn without_device(mut results: Vec<Performance>, error: &DriverError) -> Vec<Performance> {
    let is_new = |result: &&mut Performance| result.status == End::Complete && result.samples.is_empty();
    for result in results.iter_mut().filter(is_new) {
        result.status = End::Failed;
        result.reason = format!("not played, as the device had failed before: {error}");
    }
    results
}

/// One contender in one round.
struct Turn<'a> {
    driver: &'a Arc<dyn Driver>,
    scores: &'a [Score],
    strategy: &'a Strategy<'a>,
    protocol: &'a Protocol,
}

type Broken = (End, String);

impl<'a> Turn<'a> {
    fn take(&self, is_first: bool, tally: &mut Tally) -> Result<(), Broken> {
        self.refuse()?;
        let free = self.driver.memory().map_err(broken_device)?.free.get();
        if is_first && !matches!(self.strategy, Strategy::EmptyLoop) {
            let mut act = Act::new(self, Touch::Check(0))?;
            let checked = self.check(&mut act, free, &mut *tally);
            act.end(checked)?;
        }
        let mut act = Act::new(self, touch(self.protocol.work))?;
        let played = self.play(&mut act, free, tally);
        act.end(played)
    }

    /// Plays the warm-up and the timed part, and records what is held by then.
    fn play(&self, act: &mut Act<'a>, free: u64, tally: &mut Tally) -> Result<(), Broken> {
        let end = self.measure(act, tally);
        tally.add_refusals(act.memory.refusals());
        let result = &mut tally.performance;
        let usage = act.memory.allocator.usage();
        result.device_allocations = result.device_allocations.max(usage.device_allocations);
        result.reserved_peak = result.reserved_peak.max(act.reserved_peak().map_err(broken_device)?);
        let now = self.driver.memory().map_err(broken_device)?.free.get();
        result.physical_peak = result.physical_peak.max(Some(free.saturating_sub(now)));
        act.drop_graph().map_err(broken_device)?;
        end.map_err(|stop| broken(&stop, &act.memory))?;
        act.check_sums()?;
        act.check_book()
    }

    /// Refuses orders that make no sense.
    fn refuse(&self) -> Result<(), Broken> {
        let unavailable = |reason: &str| Err((End::Unavailable, reason.to_owned()));
        if !self.protocol.work.is_for_device() {
            return unavailable("a device does no such work: it does none, kernels or operations");
        }
        if self.protocol.work == Work::Operations && !self.scores.iter().all(Score::has_operations) {
            return unavailable("it is not known how long operations take");
        }
        if matches!(self.strategy, Strategy::EmptyLoop) && self.protocol.work != Work::None {
            return unavailable("the empty loop hands out no memory: --work none");
        }
        if self.strategy.is_graph() && self.protocol.work == Work::None {
            return unavailable("a graph without kernels does nothing");
        }
        let is_planned = matches!(self.strategy, Strategy::Plan(_) | Strategy::GraphPlan(_));
        if self.scores.len() > 1 && (is_planned || self.strategy.is_graph()) {
            return unavailable("it is made for one propagation, and there are several");
        }
        Ok(())
    }

    /// Has the device verify every buffer before it is freed.
    fn check(&self, act: &mut Act<'a>, free: u64, tally: &mut Tally) -> Result<(), Broken> {
        self.driver.clear_slots().map_err(broken_device)?;
        let end = act.play_all(free);
        let peaks = act.peaks();
        let result = &mut tally.performance;
        result.used_peak = Some(peaks.used).filter(|&used| used > 0);
        result.physical_peak = Some(free.saturating_sub(peaks.least_free));
        result.reserved_peak = act.reserved_peak().map_err(broken_device)?;
        tally.add_refusals(act.memory.refusals());
        act.drop_graph().map_err(broken_device)?;
        end.map_err(|stop| broken(&stop, &act.memory))?;
        self.find_wrong()?;
        act.check_book()
    }

    fn find_wrong(&self) -> Result<(), Broken> {
        let slots = self.driver.slots().map_err(broken_device)?;
        let found = slots.iter().enumerate().find(|(_, wrong)| **wrong > 0);
        let Some((buffer, wrong)) = found else { return Ok(()) };
        let of = if self.scores.iter().all(|score| score.sequence().sizes().len() <= SLOTS) {
            format!("buffer {buffer}")
        } else {
            format!("one of the buffers {buffer} + n * {SLOTS}")
        };
        Err((End::Corrupt, format!("{of}: {wrong} words of 16 bytes are not what was written")))
    }

    fn measure(&self, act: &mut Act<'a>, tally: &mut Tally) -> Result<(), Stop> {
        self.driver.clear_slots()?;
        let batch = self.warm_up(act, &mut tally.performance)?;
        let steps = act.memory.allocator.usage().search_steps;
        let before = act.played;
        let mut patience = Patience::new(self.protocol.budget);
        for _ in 0..self.protocol.timed {
            if patience.is_over() {
                break;
            }
            tally.performance.samples.push(act.sample(batch)?);
        }
        if self.protocol.warm_up == 0 {
            let steady = is_steady(&tally.performance.samples, self.protocol.steady);
            tally.performance.is_steady = steady;
        }
        let steps = act.memory.allocator.usage().search_steps - steps;
        tally.search_steps = (steps, act.played - before);
        if self.protocol.work == Work::None {
            let mut patience = Patience::new(self.protocol.budget);
            for _ in 0..self.protocol.timed {
                if patience.is_over() {
                    break;
                }
                act.time_calls(tally)?;
            }
        }
        Ok(())
    }

    /// Plays until the reserved bytes are steady; returns the number of propagations per sample.
    fn warm_up(&self, act: &mut Act<'a>, result: &mut Performance) -> Result<u32, Stop> {
        let Protocol { warm_up, warm_up_most, steady, work, budget, .. } = *self.protocol;
        let (mut same, mut count, mut last) = (0, 0, Sample::default());
        let mut patience = Patience::new(budget);
        while warm_up > 0 && count < warm_up_most.max(warm_up) && (count < warm_up || same < steady) {
            if patience.is_over() {
                break;
            }
            let sample = act.sample(1)?;
            same = if count > 0 && sample.reserved == last.reserved { same + 1 } else { 0 };
            last = sample;
            count += 1;
        }
        result.warm_up = result.warm_up.max(count);
        result.is_steady &= same >= steady;
        let is_alone = work == Work::None && self.scores.len() == 1 && count > 0;
        let fits = SAMPLE.as_nanos() / u128::from(last.wall_ns.max(1));
        Ok(if is_alone { u32::try_from(fits).unwrap_or(MOST_AT_ONCE).clamp(1, MOST_AT_ONCE) } else { 1 })
    }
}

/// The time limit of a phase.
struct Patience {
    end: Option<Instant>,
    asked: u32,
}

impl Patience {
    fn new(budget: Duration) -> Self {
        Self { end: Instant::now().checked_add(budget), asked: 0 }
    }

    /// Whether the time is up before the next propagation; never before the first three.
    fn is_over(&mut self) -> bool {
        self.asked += 1;
        self.asked > LEAST && self.end.is_some_and(|end| Instant::now() >= end)
    }
}

/// Whether the reserved bytes were the same at the end of the last `steady + 1` samples.
fn is_steady(samples: &[Sample], steady: u32) -> bool {
    let mut last = samples.iter().rev().map(|sample| sample.reserved);
    let end = last.next();
    let same = last.take_while(|reserved| Some(*reserved) == end).count();
    end.is_some() && same >= steady as usize
}

/// A contender and what it plays.
struct Act<'a> {
    driver: &'a Arc<dyn Driver>,
    scores: &'a [Score],
    players: Vec<Player<'a>>,
    memory: Memory,
    graph: Option<Graph>,
    is_graph: bool,
    touch: Touch,
    /// Whether all of a propagation fits in the driver's queue, for each propagation.
    fits_queue: Vec<bool>,
    /// The number of propagations so far.
    played: u64,
}

impl<'a> Act<'a> {
    fn new(turn: &Turn<'a>, touch: Touch) -> Result<Self, Broken> {
        let memory = Memory::new(turn.strategy, turn.driver).map_err(broken_build)?;
        let is_nameless = turn.scores.iter().any(|score| score.sequence().operations().is_none());
        if is_nameless && memory.allocator.wants_operations() {
            return Err((End::Unavailable, NO_OPERATIONS.to_owned()));
        }
        let player = |score| Player::new(turn.driver.as_ref(), score);
        let mut act = Self {
            driver: turn.driver,
            scores: turn.scores,
            players: turn.scores.iter().map(player).collect(),
            memory,
            graph: None,
            is_graph: turn.strategy.is_graph(),
            touch,
            fits_queue: turn
                .scores
                .iter()
                .map(|score| launches(turn.strategy, score, touch) <= QUEUE)
                .collect(),
            played: 0,
        };
        let captured = if act.is_graph { act.capture() } else { Ok(()) };
        match captured {
            Ok(()) => Ok(act),
            Err(stop) => {
                let broken = broken(&stop, &act.memory);
                Err(with_lost(broken, act.give_back()))
            }
        }
    }

    /// Ends the turn. If something was not given back, the turn fails, or its failure's reason mentions that, too.
    fn end(mut self, played: Result<(), Broken>) -> Result<(), Broken> {
        match (played, self.give_back()) {
            (played, None) => played,
            (Ok(()), Some(lost)) => Err((End::Failed, lost)),
            (Err(broken), lost) => Err(with_lost(broken, lost)),
        }
    }

    /// Gives everything back; returns what failed.
    fn give_back(&mut self) -> Option<String> {
        // Earlier faults were reported by now.
        drop(self.memory.take_fault());
        // Launched kernels may still use the memory.
        self.memory.note(self.driver.synchronise());
        let dropped = self.drop_graph();
        self.memory.note(dropped);
        self.memory.give_back();
        let fault = self.memory.take_fault()?;
        Some(format!("not all was given back at the end: {fault}"))
    }

    fn capture(&mut self) -> Result<(), Stop> {
        self.driver.begin_capture()?;
        let played = self.players[0].play(&mut self.memory, self.touch);
        let captured = self.driver.end_capture();
        self.graph = captured.as_ref().ok().copied();
        played?;
        captured?;
        Ok(())
    }

    /// Enqueues the next propagation.
    #[allow(unsafe_code, reason = "a graph is launched")]
    fn perform(&mut self) -> Result<(), Stop> {
        let which = self.next();
        let touch = match self.touch {
            #[expect(clippy::cast_possible_truncation, reason = "any number that differs will do")]
            Touch::Check(_) => Touch::Check(self.played as u32),
            other => other,
        };
        self.played += 1;
        if let Some(graph) = self.graph {
            // SAFETY: its kernels touch memory that `memory` holds and gives back only when it is dropped, or the
            // graph's own
            // memory.
            return Ok(unsafe { self.driver.launch_graph(graph) }?);
        }
        self.players[which].play(&mut self.memory, touch)?;
        self.memory.allocator.end_propagation();
        if self.touch == Touch::Nothing && self.memory.is_driver() {
            self.driver.synchronise()?;
        }
        Ok(())
    }

    /// The index of the next propagation.
    fn next(&self) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "less than the number of propagations")]
        let next = (self.played % self.scores.len() as u64) as usize;
        next
    }

    /// Times some propagations together.
    fn sample(&mut self, propagations: u32) -> Result<Sample, Stop> {
        let has_kernels = self.touch != Touch::Nothing;
        let fits_queue = self.fits_queue[self.next()];
        // Forget what was held before.
        let _ = self.memory.take_most_held();
        let start = Instant::now();
        if has_kernels {
            self.driver.record(Mark::Begin)?;
        }
        for _ in 0..propagations {
            self.perform()?;
        }
        if has_kernels {
            self.driver.record(Mark::End)?;
        }
        let enqueue = Some(start.elapsed()).filter(|_| has_kernels && fits_queue);
        if has_kernels {
            self.driver.synchronise()?;
        }
        let wall = start.elapsed();
        let device = if has_kernels { Some(self.driver.between_marks()?) } else { None };
        let planning = self.memory.allocator.planning();
        Ok(Sample {
            propagations,
            wall_ns: nanoseconds(wall),
            cpu_ns: None,
            enqueue_ns: enqueue.map(nanoseconds),
            device_ns: device.map(nanoseconds),
            reserved: Some(self.reserved()?),
            reserved_peak: self.memory.take_most_held(),
            plans: planning.map(|planning| planning.plans),
            planning_ns: planning.map(|planning| nanoseconds(planning.time)),
            planned: planning.map(|planning| planning.planned),
            missed: planning.map(|planning| planning.missed.total()),
        })
    }

    fn reserved(&self) -> Result<u64, DriverError> {
        let own = self.memory.allocator.usage().reserved.get();
        Ok(if self.is_graph { own.max(self.driver.graph_memory()?.reserved) } else { own })
    }

    fn reserved_peak(&self) -> Result<u64, DriverError> {
        let own = self.memory.allocator.usage().reserved_peak.get();
        Ok(if self.is_graph { own.max(self.driver.graph_memory()?.reserved_peak) } else { own })
    }

    /// Plays each propagation `CHECKED` times and waits; the players record how much is held.
    fn play_all(&mut self, free: u64) -> Result<(), Stop> {
        let players = std::mem::take(&mut self.players);
        self.players = players.into_iter().map(|player| player.with_peaks(free)).collect();
        for _ in 0..CHECKED * self.scores.len() {
            self.perform()?;
        }
        self.driver.synchronise()?;
        let free = self.driver.memory()?.free.get();
        if let Some(peaks) = &mut self.players[0].peaks {
            peaks.least_free = peaks.least_free.min(free);
            peaks.used = peaks.used.max(self.memory.allocator.usage().used.get());
        }
        Ok(())
    }

    fn peaks(&self) -> Peaks {
        let seen = self.players.iter().filter_map(|player| player.peaks);
        seen.fold(Peaks::new(u64::MAX), Peaks::and)
    }

    /// Times every run of calls of each propagation by itself.
    fn time_calls(&mut self, tally: &mut Tally) -> Result<(), Stop> {
        for which in 0..self.scores.len() {
            let sequence = self.scores[which].sequence();
            let player = &mut self.players[which];
            let allocator = self.memory.allocator.as_mut();
            player.begin(allocator);
            let longest = |of: Kind| {
                sequence.runs().filter(|(kind, _)| *kind == of).map(|(_, ids)| ids.len()).max().unwrap_or(0)
            };
            let least = [longest(Kind::Alloc), longest(Kind::Free)].map(|longest| longest.min(LONG_RUN));
            for (kind, ids) in sequence.runs() {
                let start = Instant::now();
                player.call(allocator, kind, ids)?;
                let time = start.elapsed();
                if ids.len() >= least[kind as usize] {
                    let picoseconds = time.as_nanos() * 1000 / ids.len() as u128;
                    tally.calls[kind as usize].push(u64::try_from(picoseconds).unwrap_or(u64::MAX));
                    let (runs, all_ns) = &mut tally.timed_runs[kind as usize];
                    *runs += 1;
                    *all_ns += nanoseconds(time);
                }
            }
            allocator.end_propagation();
            self.driver.synchronise()?;
        }
        Ok(())
    }

    /// Checks that the counters hold the sums of what was written.
    fn check_sums(&self) -> Result<(), Broken> {
        if self.touch == Touch::Nothing {
            return Ok(());
        }
        let mut expected = vec![0; SLOTS];
        let count = self.scores.len() as u64;
        for (which, score) in (0..count).zip(self.scores) {
            score.add_sums((self.played + count - 1 - which) / count, &mut expected);
        }
        let found = self.driver.slots().map_err(broken_device)?;
        match expected.iter().zip(&found).position(|(expected, found)| expected != found) {
            None => Ok(()),
            Some(buffer) => {
                let says = "the sum of what was read is not that of what was written";
                Err((End::Corrupt, format!("buffer {buffer}: {says}")))
            }
        }
    }

    /// Checks that the driver did all that the contender asked: calls that give memory back return no result.
    fn check_book(&self) -> Result<(), Broken> {
        self.memory.fault().map_or(Ok(()), |fault| Err(broken_device(fault)))
    }

    fn drop_graph(&mut self) -> Result<(), DriverError> {
        self.graph.take().map_or(Ok(()), |graph| self.driver.drop_graph(graph))
    }
}

impl Drop for Act<'_> {
    fn drop(&mut self) {
        // Turns end by `end`; this is for what a panic leaves.
        drop(self.give_back());
    }
}

/// The number of entries that a contender puts into the driver's queue in one propagation.
fn launches(strategy: &Strategy<'_>, score: &Score, touch: Touch) -> usize {
    let kernels = score.kernels(touch);
    match strategy {
        _ if strategy.is_graph() => 1,
        // Its requests and frees enter the stream, too.
        Strategy::MallocAsync(_) => kernels + 2 * score.sequence().sizes().len(),
        _ => kernels,
    }
}

/// Why a turn failed, with what was not given back at its end.
fn with_lost((end, reason): Broken, lost: Option<String>) -> Broken {
    match lost {
        Some(lost) => (end, format!("{reason}; {lost}")),
        None => (end, reason),
    }
}

fn broken(stop: &Stop, memory: &Memory) -> Broken {
    if let Some(fault) = memory.fault() {
        return broken_device(fault);
    }
    let end = match stop {
        Stop::Alloc { error: AllocError::OutOfMemory { .. }, .. }
        | Stop::Device(DriverError::OutOfMemory { .. }) => End::OutOfMemory,
        Stop::Stray { .. } => End::Corrupt,
        _ => End::Failed,
    };
    (end, stop.to_string())
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` gives it")]
fn broken_device(error: DriverError) -> Broken {
    let is_full = matches!(error, DriverError::OutOfMemory { .. });
    (if is_full { End::OutOfMemory } else { End::Failed }, error.to_string())
}

fn broken_build(error: BuildError) -> Broken {
    match error {
        BuildError::OutOfMemory(reason) => (End::OutOfMemory, reason),
        BuildError::Unavailable(reason) => (End::Unavailable, reason),
        BuildError::Failed(error) => broken_device(error),
    }
}

#[cfg(test)]
mod tests;
