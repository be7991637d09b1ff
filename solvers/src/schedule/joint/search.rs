//! The annealing over fates.

use planlab_graph::{Schedule, ScheduleHalt, ScheduleRun, Verified, compute_bound};
use rand::RngExt;

use super::changes::{Position, Pricing, Round, Trial, round_down, simulate_fates};
use super::speculation::{Trials, run_trials};
use crate::schedule::bound::claim_lp_bound;
use crate::schedule::exact::{Model, search_states};
use crate::schedule::fates::{Fate, Fates, build_program};
use crate::schedule::packing::{is_faster, offer_verified, pack_offsets};
use crate::schedule::starts::consult_quick_schedulers;

/// The scheduler's key.
pub(super) const KEY: &str = "joint";

/// The price of a byte at the start, the least and the highest, over that of filling the memory for an iteration.
const PRICES: [f64; 3] = [10.0, 5.0, 160.0];
/// The accepted states in a row that fit, or do not fit, before the price changes.
const STREAK_LENGTH: u32 = 40;
/// The factor by which the price changes.
const PRICE_STEP: f64 = 1.2;
/// The states between two that are placed.
const STATES_PER_PACKING: u32 = 200;
/// A state that takes less than this part of the best one's time is placed at once.
const MUCH_FASTER: f64 = 0.998;
/// The part of the memory that is given up if a state's offsets do not fit.
const ROOM_STEP: f64 = 0.002;

/// The most functions of a net for which all schedules are searched, and the states of that search.
const SMALL: usize = 16;
const STATES: usize = 300_000;

pub(super) struct Search<'r, 'p> {
    run: &'r mut ScheduleRun<'p>,
    /// The fastest fates that were placed, and their seconds.
    best: Option<(f64, Fates)>,
    /// The fastest fates that were not placed yet, and their seconds.
    waiting: Option<(f64, Fates)>,
    /// The start of the least cost.
    start: Option<(f64, Fates)>,
    /// The states since one was placed.
    since_packing: u32,
    pricing: Pricing,
    /// The least and the highest price.
    prices: [f64; 2],
}

impl<'r, 'p> Search<'r, 'p> {
    pub(super) fn new(run: &'r mut ScheduleRun<'p>) -> Self {
        let problem = run.problem();
        let seconds = compute_bound(problem).seconds;
        let free = problem.capacity.get().saturating_sub(problem.base().get()).max(1);
        let of_copies = 1.0 / problem.machine.copy_out + 1.0 / problem.machine.copy_in;
        let of_byte = if seconds > 0.0 { seconds / free as f64 } else { of_copies };
        let [price, least, most] = PRICES.map(|factor| factor * of_byte);
        Self {
            best: None,
            waiting: None,
            start: None,
            since_packing: STATES_PER_PACKING,
            pricing: Pricing { room: problem.capacity.get(), price },
            prices: [least, most],
            run,
        }
    }

    /// Offers the schedules of other schedulers, and begins with the fates of the best.
    pub(super) fn offer_starts(&mut self) -> Result<(), ScheduleHalt> {
        let problem = self.run.problem();
        claim_lp_bound(self.run)?;
        let kept = Fates::keep_all(&problem.net);
        self.try_start(&kept)?;
        let mut swapped = kept.clone();
        for gap in build_program(problem, &kept).1 {
            swapped.set_fate(gap.map, gap.stage, gap.next, Fate::Swap);
        }
        self.try_start(&swapped)?;
        let offers = consult_quick_schedulers(self.run, KEY)?;
        let mut before = None;
        for offer in &offers {
            offer_verified(self.run, KEY, offer)?;
            let fates = Fates::from_schedule(&problem.net, offer.schedule());
            if before.as_ref() != Some(&fates) {
                self.try_start(&fates)?;
            }
            before = Some(fates);
        }
        self.place_waiting()
    }

    /// Searches all schedules, if the net is small. A faster one that is not proved the fastest is a start, too.
    pub(super) fn search_small(&mut self) -> Result<(), ScheduleHalt> {
        let problem = self.run.problem();
        if problem.net.functions().len() > SMALL {
            return Ok(());
        }
        let Some(model) = Model::new(problem) else { return Ok(()) };
        let before = self.run.best_schedule().map(Verified::seconds);
        search_states(self.run, model, KEY, STATES)?;
        let Some(best) = self.run.best_schedule() else { return Ok(()) };
        if before.is_some_and(|seconds| best.seconds() >= seconds) {
            return Ok(());
        }
        let fates = Fates::from_schedule(&problem.net, best.schedule());
        self.try_start(&fates)?;
        self.place_waiting()
    }

    fn try_start(&mut self, fates: &Fates) -> Result<(), ScheduleHalt> {
        let Some(trial) = self.judge_fates(fates)? else { return Ok(()) };
        if self.start.as_ref().is_none_or(|(cost, _)| trial.cost < *cost) {
            self.start = Some((trial.cost, fates.clone()));
            if self.best.is_none() {
                let (needed, capacity) = (trial.needed, self.run.problem().capacity);
                self.run.fall_short(format!("out of memory: {needed} of {capacity} bytes"));
            }
        }
        self.consider_state(fates, &trial)
    }

    /// Counts a state that is about to be simulated.
    fn count_state(&mut self) -> Result<(), ScheduleHalt> {
        self.run.tick(1)?;
        self.since_packing += 1;
        Ok(())
    }

    /// Simulates a state at any cost. `None` if it does not run.
    fn judge_fates(&mut self, fates: &Fates) -> Result<Option<Trial>, ScheduleHalt> {
        self.count_state()?;
        let found = simulate_fates(self.run.problem(), fates, self.pricing, f64::INFINITY);
        Ok(found.map(|(trial, _)| trial))
    }

    /// Notes a state that fits and is the fastest so far. It is placed if it is much faster, or if it is time to.
    fn consider_state(&mut self, fates: &Fates, trial: &Trial) -> Result<(), ScheduleHalt> {
        let seconds =
            |known: &Option<(f64, Fates)>| known.as_ref().map_or(f64::INFINITY, |&(seconds, _)| seconds);
        let best = seconds(&self.best);
        if trial.needed > self.run.problem().capacity.get()
            || trial.seconds >= best.min(seconds(&self.waiting))
        {
            return Ok(());
        }
        self.waiting = Some((trial.seconds, fates.clone()));
        let is_much_faster = best.is_finite() && trial.seconds < best * MUCH_FASTER;
        if is_much_faster || self.since_packing >= STATES_PER_PACKING { self.place_waiting() } else { Ok(()) }
    }

    /// Places the state that waits, and offers it; leaves more room for gaps if its offsets do not fit.
    pub(super) fn place_waiting(&mut self) -> Result<(), ScheduleHalt> {
        let Some((seconds, fates)) = self.waiting.take() else { return Ok(()) };
        // Counts no work, so that it works after the run is over, too.
        let found = simulate_fates(self.run.problem(), &fates, self.pricing, f64::INFINITY);
        let Some((_, (draft, timeline))) = found else { return Ok(()) };
        self.since_packing = 0;
        let capacity = self.run.problem().capacity;
        match pack_offsets(self.run, &draft, &timeline) {
            Ok(offsets) => {
                self.best = Some((seconds, fates));
                if !is_faster(self.run, seconds) {
                    return Ok(());
                }
                let placed = draft.with_offsets(&timeline, &offsets);
                self.run.offer(Schedule { scheduler: KEY.to_owned(), ..placed })
            }
            Err(height) => {
                if self.best.is_none() {
                    let reason = format!("out of memory: the offsets take {height} of {capacity} bytes");
                    self.run.fall_short(reason);
                }
                let base = self.run.problem().base().get();
                let step = round_down(ROOM_STEP * capacity.get().saturating_sub(base) as f64);
                self.pricing.room = self.pricing.room.saturating_sub(step.max(1)).max(base);
                Ok(())
            }
        }
    }

    /// Anneals once; returns the number of changes.
    pub(super) fn anneal_fates(&mut self, round: u32) -> Result<usize, ScheduleHalt> {
        let Some((_, fates)) = self.best.clone().or_else(|| self.start.clone()) else { return Ok(0) };
        let Some(Trial { seconds, cost, gaps, .. }) = self.judge_fates(&fates)? else { return Ok(0) };
        if gaps.is_empty() {
            return Ok(0);
        }
        // What did not fit before may have been bad luck.
        self.pricing.room = self.pricing.room.midpoint(self.run.problem().capacity.get());
        let seed = self.run.rng().random();
        let round = Round::new(self.run.problem(), round, gaps.len(), seconds, seed);
        let position = Position { fates, gaps, cost, pricing: self.pricing };
        let threads = self.run.threads().get();
        run_trials(&round, position, threads, |trials| self.follow_trials(trials, round.changes()))?;
        self.place_waiting()?;
        Ok(round.changes())
    }

    /// Tries the changes of a round one after the other, and goes on from each that is accepted.
    fn follow_trials(&mut self, trials: &mut Trials<'_>, changes: usize) -> Result<(), ScheduleHalt> {
        let (mut fitting, mut excessive) = (0, 0);
        for change in 0..changes {
            self.count_state()?;
            let Some(trial) = trials.try_change(change) else { continue };
            let fates = trials.accept_change(change);
            if trial.needed <= self.pricing.room {
                (fitting, excessive) = (fitting + 1, 0);
                self.consider_state(fates, &trial)?;
            } else {
                (fitting, excessive) = (0, excessive + 1);
            }
            if fitting >= STREAK_LENGTH || excessive >= STREAK_LENGTH {
                let step = if fitting > 0 { 1.0 / PRICE_STEP } else { PRICE_STEP };
                self.pricing.price = (self.pricing.price * step).clamp(self.prices[0], self.prices[1]);
                (fitting, excessive) = (0, 0);
            }
            trials.update_costs(trial, self.pricing);
        }
        Ok(())
    }
}
