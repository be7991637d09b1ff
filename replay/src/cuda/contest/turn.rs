//! One turn of a contender: it is checked, warmed up and timed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use planlab_dsa::performance::{End, Performance, Sample, Work};
use serde::{Deserialize, Serialize};

use super::act::Act;
use super::contenders::Strategy;
use super::failure::{Broken, broken, broken_device};
use super::player::{Score, Stop, Touch};
use super::tally::Tally;
use crate::cuda::driver::{Driver, SLOTS};

/// A sample without kernels takes about this long at least.
const SAMPLE: Duration = Duration::from_micros(100);

/// The most propagations of one sample.
const MOST_AT_ONCE: u32 = 1000;

/// Each phase plays at least this many propagations, whatever time they take.
const LEAST: u32 = 3;

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

/// One contender in one round.
pub(super) struct Turn<'a> {
    pub(super) driver: &'a Arc<dyn Driver>,
    pub(super) scores: &'a [Score],
    pub(super) strategy: &'a Strategy<'a>,
    pub(super) protocol: &'a Protocol,
}

impl<'a> Turn<'a> {
    pub(super) fn take_turn(&self, is_first: bool, tally: &mut Tally) -> Result<(), Broken> {
        self.refuse_orders()?;
        let free = self.driver.device_memory().map_err(broken_device)?.free.get();
        if is_first && !matches!(self.strategy, Strategy::EmptyLoop) {
            let mut act = Act::new(self.driver, self.scores, self.strategy, Touch::Check(0))?;
            let checked = self.check_buffers(&mut act, free, &mut *tally);
            act.end_act(checked)?;
        }
        let mut act = Act::new(self.driver, self.scores, self.strategy, touch(self.protocol.work))?;
        let played = self.play_turn(&mut act, free, tally);
        act.end_act(played)
    }

    /// Plays the warm-up and the timed part, and records what is held by then.
    fn play_turn(&self, act: &mut Act<'a>, free: u64, tally: &mut Tally) -> Result<(), Broken> {
        let end = self.measure_time(act, tally);
        tally.add_refusals(act.memory.book.refusal_count());
        let result = &mut tally.performance;
        let usage = act.memory.allocator.usage();
        result.device_allocations = result.device_allocations.max(usage.device_allocations);
        result.reserved_peak = result.reserved_peak.max(act.reserved_peak().map_err(broken_device)?);
        let now = self.driver.device_memory().map_err(broken_device)?.free.get();
        result.physical_peak = result.physical_peak.max(Some(free.saturating_sub(now)));
        act.drop_graph().map_err(broken_device)?;
        end.map_err(|stop| broken(&stop, &act.memory))?;
        act.check_sums()?;
        act.check_book()
    }

    /// Refuses orders that make no sense.
    fn refuse_orders(&self) -> Result<(), Broken> {
        let (work, is_graph) = (self.protocol.work, self.strategy.is_graph());
        let is_planned = matches!(self.strategy, Strategy::Plan(_) | Strategy::GraphPlan(_));
        let is_empty_loop = matches!(self.strategy, Strategy::EmptyLoop);
        let has_operations = self.scores.iter().all(Score::has_operations);
        let is_for_one = is_planned || is_graph;
        let refusals = [
            (!work.is_for_device(), "a device does no such work: it does none, kernels or operations"),
            (work == Work::Operations && !has_operations, "it is not known how long operations take"),
            (is_empty_loop && work != Work::None, "the empty loop hands out no memory: --work none"),
            (is_graph && work == Work::None, "a graph without kernels does nothing"),
            (is_for_one && self.scores.len() > 1, "it is made for one propagation, and there are several"),
        ];
        let refused = refusals.into_iter().find(|(is_refused, _)| *is_refused);
        refused.map_or(Ok(()), |(_, reason)| Err((End::Unavailable, reason.to_owned())))
    }

    /// Has the device verify every buffer before it is freed.
    fn check_buffers(&self, act: &mut Act<'a>, free: u64, tally: &mut Tally) -> Result<(), Broken> {
        self.driver.clear_slots().map_err(broken_device)?;
        let end = act.play_all(free);
        let peaks = act.peaks();
        let result = &mut tally.performance;
        result.used_peak = Some(peaks.used).filter(|&used| used > 0);
        result.physical_peak = Some(free.saturating_sub(peaks.least_free));
        result.reserved_peak = act.reserved_peak().map_err(broken_device)?;
        tally.add_refusals(act.memory.book.refusal_count());
        act.drop_graph().map_err(broken_device)?;
        end.map_err(|stop| broken(&stop, &act.memory))?;
        self.find_wrong()?;
        act.check_book()
    }

    fn find_wrong(&self) -> Result<(), Broken> {
        let slots = self.driver.read_slots().map_err(broken_device)?;
        let found = slots.iter().enumerate().find(|(_, wrong)| **wrong > 0);
        let Some((buffer, wrong)) = found else { return Ok(()) };
        let of = if self.scores.iter().all(|score| score.sequence().sizes().len() <= SLOTS) {
            format!("buffer {buffer}")
        } else {
            format!("one of the buffers {buffer} + n * {SLOTS}")
        };
        Err((End::Corrupt, format!("{of}: {wrong} words of 16 bytes are not what was written")))
    }

    fn measure_time(&self, act: &mut Act<'a>, tally: &mut Tally) -> Result<(), Stop> {
        self.driver.clear_slots()?;
        let batch = self.warm_up(act, &mut tally.performance)?;
        let steps = act.memory.allocator.usage().search_steps;
        let before = act.played;
        for _ in self.timed_rounds() {
            tally.performance.samples.push(act.time_sample(batch)?);
        }
        if self.protocol.warm_up == 0 {
            let steady = is_steady(&tally.performance.samples, self.protocol.steady);
            tally.performance.is_steady = steady;
        }
        let steps = act.memory.allocator.usage().search_steps - steps;
        tally.search_steps = (steps, act.played - before);
        if self.protocol.work == Work::None {
            for _ in self.timed_rounds() {
                act.time_calls(tally)?;
            }
        }
        Ok(())
    }

    /// As many rounds as are timed, unless the time is up before.
    fn timed_rounds(&self) -> impl Iterator<Item = u32> {
        let mut patience = Patience::new(self.protocol.budget);
        (0..self.protocol.timed).take_while(move |_| !patience.is_over())
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
            let sample = act.time_sample(1)?;
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
