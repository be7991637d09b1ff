//! The changes of an annealing: how they are drawn, and what the changed states cost.
//!
//! A change depends on its number and on the position alone, because each number has random numbers of its own. So any
//! thread can try a change, before or after others.

use planlab_dsa::Bytes;
use planlab_graph::{MapId, Schedule, SchedulingProblem, Timeline, simulate_schedule};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use smallvec::SmallVec;

use crate::schedule::fates::{Changed, Fate, Fates, Gap, StageLimits, build_program};
use crate::schedule::packing::draw_slack;
use crate::schedule::program::{Prefetch, draft_schedule, least_room};

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

/// What the bytes of a state cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pricing {
    /// Bytes that states may need, the base included.
    pub(super) room: u64,
    /// Seconds for each byte that a state needs above the room.
    pub(super) price: f64,
}

impl Pricing {
    /// The price in seconds of the bytes for which there is no room.
    pub(super) fn excess_seconds(self, needed: u64) -> f64 {
        self.price * needed.saturating_sub(self.room) as f64
    }
}

/// What a state costs.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) seconds: f64,
    /// The bytes that it needs, the base included.
    pub(super) needed: u64,
    /// Its seconds, and the price of the bytes for which there is no room.
    pub(super) cost: f64,
    pub(super) gaps: Vec<Gap>,
}

/// Simulates a state. `None` if it costs more than `limit`, or does not run.
pub(super) fn simulate_fates(
    problem: &SchedulingProblem,
    fates: &Fates,
    pricing: Pricing,
    limit: f64,
) -> Option<(Trial, (Schedule, Timeline))> {
    let (program, gaps) = build_program(problem, fates);
    let needed = least_room(&program);
    let excess = pricing.excess_seconds(needed);
    let computing: f64 = program.compute_steps().iter().map(|event| event.seconds).sum();
    if computing + excess > limit {
        return None;
    }
    let room = Bytes::new(needed.max(pricing.room));
    let draft = draft_schedule(problem, program, Prefetch::AsRoomPermits, room).ok()?;
    let timeline = simulate_schedule(&draft, Some(room)).ok()?;
    let seconds = timeline.seconds;
    let trial = Trial { seconds, needed, cost: seconds + excess, gaps };
    (trial.cost <= limit).then_some((trial, (draft, timeline)))
}

/// The state whose changes are tried, and what they may cost.
#[derive(Clone, Debug)]
pub(super) struct Position {
    pub(super) fates: Fates,
    pub(super) gaps: Vec<Gap>,
    pub(super) cost: f64,
    pub(super) pricing: Pricing,
}

/// What all changes of a round have in common.
pub(super) struct Round<'p> {
    problem: &'p SchedulingProblem,
    /// What the order of the passes has to keep.
    limits: StageLimits,
    /// Whether passes can move.
    can_move: bool,
    /// Has a stream for each change.
    random: ChaCha8Rng,
    /// The heat in seconds at the first change.
    heat: f64,
    changes: usize,
}

impl<'p> Round<'p> {
    /// Round number `round` from a state with this many gaps that takes this many seconds.
    pub(super) fn new(
        problem: &'p SchedulingProblem,
        round: u32,
        gaps: usize,
        seconds: f64,
        seed: u64,
    ) -> Self {
        let limits = StageLimits::new(&problem.net);
        let changes = (CHANGES_PER_GAP * gaps).max(LEAST_CHANGES);
        let hot = HOT / gaps as f64 * COOLER.powi((round % REHEATED).cast_signed());
        Self {
            can_move: limits.leave_a_choice(),
            limits,
            random: ChaCha8Rng::seed_from_u64(seed),
            heat: seconds * hot,
            changes: changes.saturating_mul(1_usize.checked_shl(round).unwrap_or(usize::MAX)),
            problem,
        }
    }

    /// The number of changes.
    pub(super) const fn changes(&self) -> usize {
        self.changes
    }

    fn heat_at(&self, change: usize) -> f64 {
        self.heat * COLD.powf(change as f64 / self.changes as f64)
    }

    /// Tries a change of a position. `None` if it is rejected. `scratch` has the fates of the position, also afterwards.
    pub(super) fn try_change(
        &self,
        position: &Position,
        scratch: &mut Fates,
        change: usize,
    ) -> Option<Trial> {
        let (changed, mut rng) = self.make_change(scratch, &position.gaps, change);
        let slack = draw_slack(&mut rng, self.heat_at(change));
        let found = simulate_fates(self.problem, scratch, position.pricing, position.cost + slack);
        scratch.copy_changed(&changed, &position.fates);
        found.map(|(trial, _)| trial)
    }

    /// Changes the fates of a position, and of `scratch`, which has the same.
    pub(super) fn accept_change(&self, position: &mut Position, scratch: &mut Fates, change: usize) {
        let (changed, _) = self.make_change(&mut position.fates, &position.gaps, change);
        scratch.copy_changed(&changed, &position.fates);
    }

    /// Moves a pass, or changes the fates of one map or of two. Returns the generator of the change, too, for what else
    /// is drawn for it.
    fn make_change(&self, fates: &mut Fates, gaps: &[Gap], change: usize) -> (Changed, ChaCha8Rng) {
        let mut rng = self.random.clone();
        rng.set_stream(change as u64);
        let changed = if self.can_move && rng.random_bool(MOVES) {
            self.move_stage(fates, &mut rng);
            Changed::Order
        } else {
            Changed::Maps(self.change_maps(fates, gaps, &mut rng))
        };
        (changed, rng)
    }

    /// Changes the fates of one map or of two, and returns these maps.
    fn change_maps(&self, fates: &mut Fates, gaps: &[Gap], rng: &mut ChaCha8Rng) -> SmallVec<[MapId; 2]> {
        let is_pair = rng.random_bool(PAIRS);
        let is_whole = rng.random_bool(WHOLE_MAPS);
        let is_kept = rng.random_bool(0.5);
        let mut changed = SmallVec::new();
        for turn in 0..1 + usize::from(is_pair) {
            let gap = choose_gap(fates, gaps, is_kept == (turn == 0), is_whole, rng);
            let fate = self.choose_fate(gap.map, fates.fate(gap.map, gap.stage), rng);
            fates.set_fate(gap.map, gap.stage, gap.next, fate);
            if is_whole {
                let later = if rng.random_bool(DROPPED_AGAIN) { Fate::Drop } else { Fate::Keep };
                fates.set_fate(gap.map, gap.next, fates.stages(), later);
            }
            changed.push(gap.map);
        }
        changed
    }

    /// Moves a pass to another position, with those that it has to follow or that follow it. Short ways are as probable
    /// as long ones.
    fn move_stage(&self, fates: &mut Fates, rng: &mut ChaCha8Rng) {
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

    /// Another fate than before; inputs of the net cannot be recomputed.
    fn choose_fate(&self, map: MapId, before: Fate, rng: &mut ChaCha8Rng) -> Fate {
        let (keep, drop, swap) = (Fate::Keep, Fate::Drop, Fate::Swap);
        if self.problem.net.producer_of(map).is_none() {
            return if before == keep { swap } else { keep };
        }
        let others = match before {
            Fate::Keep => [drop, swap],
            Fate::Drop => [keep, swap],
            Fate::Swap => [keep, drop],
        };
        others[rng.random_range(0..2)]
    }
}

/// A gap: if one is found soon, in which the map is kept or not, and which lasts from the forward passes to the backward
/// passes if that is wanted.
fn choose_gap(fates: &Fates, gaps: &[Gap], is_kept: bool, is_across: bool, rng: &mut ChaCha8Rng) -> Gap {
    let functions = fates.stages() / 2;
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

/// The whole part of a size.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a size")]
pub(super) fn round_down(part: f64) -> u64 {
    part as u64
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// The first round, from a position in which every map is kept.
    pub(in crate::schedule::joint) fn start_round(problem: &SchedulingProblem) -> (Round<'_>, Position) {
        let fates = Fates::keep_all(&problem.net);
        let pricing = Pricing { room: problem.capacity.get(), price: 1e-3 };
        let (trial, _) = simulate_fates(problem, &fates, pricing, f64::INFINITY).expect("runs");
        let round = Round::new(problem, 0, trial.gaps.len(), trial.seconds, 5);
        (round, Position { fates, gaps: trial.gaps, cost: trial.cost, pricing })
    }
}

#[cfg(test)]
mod tests {
    use super::testing::start_round;
    use super::*;
    use crate::schedule::testing::branching_problem;

    #[test]
    fn change_depends_on_its_number_and_the_position_alone() {
        let problem = branching_problem();
        let (round, position) = start_round(&problem);
        let mut scratch = position.fates.clone();
        let mut costs = |changes: &mut dyn Iterator<Item = usize>| -> Vec<Option<f64>> {
            changes.map(|change| Some(round.try_change(&position, &mut scratch, change)?.cost)).collect()
        };
        let ascending = costs(&mut (0..round.changes()));
        let mut descending = costs(&mut (0..round.changes()).rev());
        descending.reverse();
        assert_eq!(ascending, descending);
        let accepted = ascending.iter().flatten().count();
        assert!(accepted > 0 && accepted < ascending.len(), "{accepted} of {}", ascending.len());
        assert_eq!(scratch, position.fates);
    }

    #[test]
    fn accepted_change_costs_what_its_trial_said() {
        let problem = branching_problem();
        let (round, start) = start_round(&problem);
        let mut accepted = 0;
        for change in 0..round.changes() {
            let (mut position, mut scratch) = (start.clone(), start.fates.clone());
            let Some(trial) = round.try_change(&start, &mut scratch, change) else { continue };
            round.accept_change(&mut position, &mut scratch, change);
            let again = simulate_fates(&problem, &position.fates, start.pricing, f64::INFINITY);
            assert_eq!(again.map(|(trial, _)| trial.cost), Some(trial.cost), "change {change}");
            assert_eq!(scratch, position.fates, "change {change}");
            accepted += 1;
        }
        assert!(accepted > 0);
    }
}
