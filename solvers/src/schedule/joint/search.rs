//! The annealing over fates.

use planlab_dsa::Bytes;
use planlab_graph::{
    MapId, Schedule, ScheduleHalt, ScheduleRun, Timeline, Verified, compute_bound, simulate_schedule,
};
use rand::RngExt;
use smallvec::SmallVec;

use crate::schedule::bound::claim_lp_bound;
use crate::schedule::exact::search_states;
use crate::schedule::fates::{Changed, Fate, Fates, Gap, StageLimits, build_program};
use crate::schedule::packing::{draw_slack, is_faster, offer_verified, pack_offsets};
use crate::schedule::program::{Prefetch, draft_schedule, least_room};
use crate::schedule::starts::consult_quick_schedulers;

/// The scheduler's key.
pub(super) const KEY: &str = "joint";

/// The heat of all gaps together at the first change, as a part of the time of the start. Of 0.1 and 0.4, this gave the
/// faster schedules of ResNet-50, GPT-2 and ViT-B/16 within 20 s, and a slower one of DenseNet-161.
const HOT: f64 = 0.4;
/// The heat at the last change of a round, as a part of that at its first.
const COLD: f64 = 0.01;
/// The heat of a round, as a part of that of the round before.
const COOLER: f64 = 0.6;
/// The rounds after which one is as hot as the first again.
const REHEATED: u32 = 5;
/// The changes of the first round for each gap.
const CHANGES_PER_GAP: usize = 20;
/// The least changes of the first round.
const LEAST_CHANGES: usize = 200;
/// The part of the changes that concern two maps.
const PAIRS: f64 = 0.45;
/// The part of the changes that concern all later fates of a map, too.
const WHOLE_MAPS: f64 = 0.7;
/// The part of the changes that move a pass, if the net leaves a choice.
const MOVES: f64 = 0.15;
/// The part of those after which the map is dropped after each later access, too.
const DROPPED_AGAIN: f64 = 0.1;
/// The gaps that are looked at to find one of the wanted kind.
const GAPS_TO_CHOOSE_FROM: usize = 13;
/// The price of a byte at the start, the least and the highest, over that of filling the memory for an iteration.
const PRICES: [f64; 3] = [10.0, 5.0, 160.0];
/// The accepted states in a row that fit, or do not fit, before the price changes.
const PATIENCE: u32 = 40;
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

/// What a state costs.
struct Trial {
    seconds: f64,
    /// The bytes that it needs, the base included.
    needed: u64,
    /// Its seconds, and the price of the bytes for which there is no room.
    cost: f64,
    gaps: Vec<Gap>,
    schedule: (Schedule, Timeline),
}

pub(super) struct Search<'r, 'p> {
    run: &'r mut ScheduleRun<'p>,
    /// The fastest fates that were placed, and their seconds.
    best: Option<(f64, Fates)>,
    /// The fastest fates that were not placed yet, and their seconds.
    waiting: Option<(f64, Fates)>,
    /// The start of the least cost.
    start: Option<(f64, Fates)>,
    /// What the order of the passes has to keep.
    limits: StageLimits,
    /// Whether passes can move.
    can_move: bool,
    /// The states since one was placed.
    since_packing: u32,
    /// Bytes that states may need, the base included.
    room: u64,
    /// Seconds for each byte that a state needs above the room.
    price: f64,
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
        let limits = StageLimits::new(&problem.net);
        Self {
            can_move: limits.leave_a_choice(),
            limits,
            best: None,
            waiting: None,
            start: None,
            since_packing: STATES_PER_PACKING,
            room: problem.capacity.get(),
            price,
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
        let before = self.run.best_schedule().map(Verified::seconds);
        search_states(self.run, KEY, STATES)?;
        let Some(best) = self.run.best_schedule() else { return Ok(()) };
        if before.is_some_and(|seconds| best.seconds() >= seconds) {
            return Ok(());
        }
        let fates = Fates::from_schedule(&problem.net, best.schedule());
        self.try_start(&fates)?;
        self.place_waiting()
    }

    fn try_start(&mut self, fates: &Fates) -> Result<(), ScheduleHalt> {
        let Some(trial) = self.judge_fates(fates, f64::INFINITY)? else { return Ok(()) };
        if self.start.as_ref().is_none_or(|(cost, _)| trial.cost < *cost) {
            self.start = Some((trial.cost, fates.clone()));
            if self.best.is_none() {
                let (needed, capacity) = (trial.needed, self.run.problem().capacity);
                self.run.fall_short(format!("out of memory: {needed} of {capacity} bytes"));
            }
        }
        self.consider_state(fates, &trial)
    }

    /// Simulates a state. `None` if it costs more than `limit`, or does not run.
    fn judge_fates(&mut self, fates: &Fates, limit: f64) -> Result<Option<Trial>, ScheduleHalt> {
        self.run.tick(1)?;
        self.since_packing += 1;
        Ok(self.simulate_fates(fates, limit))
    }

    /// As [`Self::judge_fates`], but counts no work: works after the run is over, too.
    fn simulate_fates(&self, fates: &Fates, limit: f64) -> Option<Trial> {
        let problem = self.run.problem();
        let (program, gaps) = build_program(problem, fates);
        let needed = least_room(&program);
        let excess = self.price * needed.saturating_sub(self.room) as f64;
        let computing: f64 = program.compute_steps().iter().map(|event| event.seconds).sum();
        if computing + excess > limit {
            return None;
        }
        let room = Bytes::new(needed.max(self.room));
        let draft = draft_schedule(problem, program, Prefetch::AsRoomPermits, room).ok()?;
        let timeline = simulate_schedule(&draft, Some(room)).ok()?;
        let seconds = timeline.seconds;
        let trial = Trial { seconds, needed, cost: seconds + excess, gaps, schedule: (draft, timeline) };
        (trial.cost <= limit).then_some(trial)
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
        let Some(trial) = self.simulate_fates(&fates, f64::INFINITY) else { return Ok(()) };
        self.since_packing = 0;
        let capacity = self.run.problem().capacity;
        let (draft, timeline) = trial.schedule;
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
                self.room = self.room.saturating_sub(step.max(1)).max(base);
                Ok(())
            }
        }
    }

    /// Anneals once; returns the number of changes.
    pub(super) fn anneal_fates(&mut self, round: u32) -> Result<usize, ScheduleHalt> {
        let Some((_, mut fates)) = self.best.clone().or_else(|| self.start.clone()) else { return Ok(0) };
        let Some(mut state) = self.judge_fates(&fates, f64::INFINITY)? else { return Ok(0) };
        if state.gaps.is_empty() {
            return Ok(0);
        }
        // What did not fit before may have been bad luck.
        self.room = self.room.midpoint(self.run.problem().capacity.get());
        let mut current = fates.clone();
        let changes = (CHANGES_PER_GAP * state.gaps.len()).max(LEAST_CHANGES);
        let changes = changes.saturating_mul(1_usize.checked_shl(round).unwrap_or(usize::MAX));
        let start = state.seconds;
        let hot = HOT / state.gaps.len() as f64 * COOLER.powi((round % REHEATED).cast_signed());
        let (mut fitting, mut excessive) = (0, 0);
        for change in 0..changes {
            let heat = start * hot * COLD.powf(change as f64 / changes as f64);
            let slack = draw_slack(self.run, heat);
            let changed = self.change_fates(&mut fates, &state);
            let Some(trial) = self.judge_fates(&fates, state.cost + slack)? else {
                fates.copy_changed(&changed, &current);
                continue;
            };
            current.copy_changed(&changed, &fates);
            state = trial;
            if state.needed <= self.room {
                (fitting, excessive) = (fitting + 1, 0);
                self.consider_state(&fates, &state)?;
            } else {
                (fitting, excessive) = (0, excessive + 1);
            }
            if fitting >= PATIENCE || excessive >= PATIENCE {
                self.price *= if fitting > 0 { 1.0 / PRICE_STEP } else { PRICE_STEP };
                self.price = self.price.clamp(self.prices[0], self.prices[1]);
                (fitting, excessive) = (0, 0);
            }
            state.cost = state.seconds + self.price * state.needed.saturating_sub(self.room) as f64;
        }
        self.place_waiting()?;
        Ok(changes)
    }

    /// Moves a pass, or changes the fates of one map or of two.
    fn change_fates(&mut self, fates: &mut Fates, state: &Trial) -> Changed {
        if self.can_move && self.run.rng().random_bool(MOVES) {
            self.move_stage(fates);
            return Changed::Order;
        }
        let is_pair = self.run.rng().random_bool(PAIRS);
        let is_whole = self.run.rng().random_bool(WHOLE_MAPS);
        let is_kept = self.run.rng().random_bool(0.5);
        let mut changed = SmallVec::new();
        for turn in 0..1 + usize::from(is_pair) {
            let gap = self.choose_gap(fates, &state.gaps, is_kept == (turn == 0), is_whole);
            let fate = self.choose_fate(gap.map, fates.fate(gap.map, gap.stage));
            fates.set_fate(gap.map, gap.stage, gap.next, fate);
            if is_whole {
                let is_dropped = self.run.rng().random_bool(DROPPED_AGAIN);
                let later = if is_dropped { Fate::Drop } else { Fate::Keep };
                fates.set_fate(gap.map, gap.next, fates.stages(), later);
            }
            changed.push(gap.map);
        }
        Changed::Maps(changed)
    }

    /// Moves a pass to another position, with those that it has to follow or that follow it. Short ways are as probable
    /// as long ones.
    fn move_stage(&mut self, fates: &mut Fates) {
        let rng = self.run.rng();
        let count = fates.order.stages().len();
        let from = rng.random_range(0..count);
        let stage = fates.order.stages()[from];
        let way = usize::try_from(round_down((count as f64).powf(rng.random()))).unwrap_or(count);
        if rng.random_bool(0.5) {
            fates.order.pull_stage(stage, from.saturating_sub(way), &self.limits);
        } else {
            fates.order.push_stage(stage, (from + way).min(count - 1), &self.limits);
        }
    }

    /// A gap: if one is found soon, in which the map is kept or not, and which lasts from the forward passes to the
    /// backward passes if that is wanted.
    fn choose_gap(&mut self, fates: &Fates, gaps: &[Gap], is_kept: bool, is_across: bool) -> Gap {
        let functions = fates.stages() / 2;
        let rng = self.run.rng();
        let mut gap = gaps[rng.random_range(0..gaps.len())];
        for _ in 1..GAPS_TO_CHOOSE_FROM {
            let lasts = gap.stage < functions && gap.next >= functions;
            if (fates.fate(gap.map, gap.stage) == Fate::Keep) == is_kept && (lasts || !is_across) {
                break;
            }
            gap = gaps[rng.random_range(0..gaps.len())];
        }
        gap
    }

    /// Another fate than before; inputs of the net cannot be recomputed.
    fn choose_fate(&mut self, map: MapId, before: Fate) -> Fate {
        let (keep, drop, swap) = (Fate::Keep, Fate::Drop, Fate::Swap);
        if self.run.problem().net.producer_of(map).is_none() {
            return if before == keep { swap } else { keep };
        }
        let others = match before {
            Fate::Keep => [drop, swap],
            Fate::Drop => [keep, swap],
            Fate::Swap => [keep, drop],
        };
        others[self.run.rng().random_range(0..2)]
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a size")]
fn round_down(part: f64) -> u64 {
    part as u64
}
