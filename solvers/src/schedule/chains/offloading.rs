//! The first forward sweep of a chain with offloading: a table over segments, memory and the time until which the link is
//! busy.
//!
//! From a segment on, the sweep either saves what the segment's backward pass reads, or runs a group of segments up to the
//! next checkpoint; the group is run again before its backward pass, as a [`PersistentTable`] has it. What is saved, or
//! the checkpoint, stays, or goes to the host. What stays takes memory from all that follows. What goes takes memory
//! until its copy is complete, and again while its own segment or the group of its reader runs backward.
//!
//! The time of the sweep is known, as it runs each segment once, so the time until which the link is busy says how much is
//! still on its way.
//!
//! # Complexity
//!
//! O(l^2 s t) time and O(l s t) memory for l segments, s slots of memory and t of time.

use super::persistent::{PersistentTable, Sweep, push_sweep};
use super::sequence::{ChainPlan, Step};

/// The part of the sweep's time by which copies may end after it.
const AFTER_SWEEP: f64 = 0.25;

/// The state of the sweep before a segment.
#[derive(Clone, Copy, Debug)]
struct State {
    segment: usize,
    /// Whether the input of the segment goes to the host.
    is_input_away: bool,
    /// The slot of time until which the link is busy.
    busy: usize,
    /// The slots of memory for this segment and those that follow.
    slots: usize,
}

/// What the sweep does next.
#[derive(Clone, Copy, Debug)]
enum Choice {
    /// Saves the segment, and whether that goes to the host.
    Save { moves: bool },
    /// Runs a group, and whether the checkpoint at its end goes to the host.
    Group { sweep: Sweep, moves: bool },
}

/// The least seconds from each state on, the backward passes included.
#[derive(Clone, Debug)]
pub(super) struct OffloadTable<'t> {
    table: &'t PersistentTable,
    /// For each segment, the seconds of the sweep before it.
    elapsed: Vec<f64>,
    /// The seconds to copy a slot of memory.
    slot_seconds: f64,
    /// The seconds of a slot of time.
    time_slot: f64,
    times: usize,
    seconds: Vec<f64>,
}

impl<'t> OffloadTable<'t> {
    /// The table for a link that copies a slot of memory in `slot_seconds`, with `times` slots of time. Calls `tick` with the
    /// steps of each segment before them, and returns its error.
    pub(super) fn try_new<E>(
        table: &'t PersistentTable,
        slot_seconds: f64,
        times: usize,
        mut tick: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<Self, E> {
        let count = table.needs().len();
        let elapsed = table.needs().iter().scan(0.0, |sum, needs| {
            *sum += needs.forward;
            Some(*sum - needs.forward)
        });
        let elapsed: Vec<f64> = elapsed.collect();
        let sweep = elapsed[count - 1] + table.needs()[count - 1].forward;
        let time_slot = (sweep * (1.0 + AFTER_SWEEP) / times as f64).max(f64::MIN_POSITIVE);
        let states = (count + 1) * 2 * (times + 1) * (table.most_slots() + 1);
        let mut offload = Self { table, elapsed, slot_seconds, time_slot, times, seconds: vec![0.0; states] };
        for segment in (0..count).rev() {
            for is_input_away in [false, true] {
                tick(offload.count_steps(segment))?;
                offload.fill_segment(segment, is_input_away);
            }
        }
        Ok(offload)
    }

    /// As [`Self::try_new`], without a stop.
    #[cfg(test)]
    pub(super) fn new(table: &'t PersistentTable, slot_seconds: f64, times: usize) -> Self {
        let Ok(offload) =
            Self::try_new(table, slot_seconds, times, |_| Ok::<_, std::convert::Infallible>(()));
        offload
    }

    /// Whether the link is idle when a segment begins, though it was used.
    fn is_idle_again(&self, busy: usize, segment: usize) -> bool {
        busy > 0 && busy as f64 * self.time_slot <= self.elapsed[segment]
    }

    /// The steps to fill a segment: for each state, the choices if all end at a segment of their own.
    fn count_steps(&self, segment: usize) -> u64 {
        let rows = (0..=self.times).filter(|&busy| !self.is_idle_again(busy, segment)).count();
        let choices = self.elapsed.len() - segment;
        (rows * (self.table.most_slots() + 1) * choices) as u64
    }

    fn index_of(&self, state: State) -> usize {
        let row = (state.segment * 2 + usize::from(state.is_input_away)) * (self.times + 1) + state.busy;
        row * (self.table.most_slots() + 1) + state.slots
    }

    fn fill_segment(&mut self, segment: usize, is_input_away: bool) {
        for busy in 0..=self.times {
            let start = self.index_of(State { segment, is_input_away, busy, slots: 0 });
            if self.is_idle_again(busy, segment) {
                // The link is idle, as it is at the start.
                let idle = self.index_of(State { segment, is_input_away, busy: 0, slots: 0 });
                self.seconds.copy_within(idle..=idle + self.table.most_slots(), start);
                continue;
            }
            for slots in 0..=self.table.most_slots() {
                let best = self.choose_next(State { segment, is_input_away, busy, slots });
                self.seconds[start + slots] = best.map_or(f64::INFINITY, |(seconds, _)| seconds);
            }
        }
    }

    /// The slots of memory that are still on their way to the host when a segment begins.
    fn slots_in_flight(&self, busy: usize, segment: usize) -> usize {
        let left = busy as f64 * self.time_slot - self.elapsed[segment];
        if left > 0.0 { round_up(left / self.slot_seconds).min(self.table.most_slots() + 1) } else { 0 }
    }

    /// The slot of time until which the link is busy if `slots` of memory go to the host before a segment; `None` if that
    /// is too late.
    fn busy_after(&self, busy: usize, segment: usize, slots: usize) -> Option<usize> {
        let start = (busy as f64 * self.time_slot).max(self.elapsed[segment]);
        let end = (start + slots as f64 * self.slot_seconds) / self.time_slot;
        // The nearest slot: rounding up would lose part of a slot at each copy.
        Some(round_up(end - 0.5)).filter(|&end| end <= self.times)
    }

    /// The fastest choice in a state, and the seconds from there on; `None` if nothing fits.
    fn choose_next(&self, state: State) -> Option<(f64, Choice)> {
        let saved = self.choices_to_save(state);
        let groups = self.choices_of_group(state);
        let all = saved.into_iter().flatten().chain(groups).filter(|(seconds, _)| seconds.is_finite());
        all.min_by(|one, other| one.0.total_cmp(&other.0))
    }

    /// The seconds after a choice that leads to the given state.
    fn seconds_from(&self, state: State) -> f64 {
        self.seconds[self.index_of(state)]
    }

    /// The slots that the input takes while it is back.
    fn returned_slots(&self, state: State) -> usize {
        match state.segment.checked_sub(1) {
            Some(before) if state.is_input_away => self.table.needs()[before].output,
            _ => 0,
        }
    }

    fn choices_to_save(&self, state: State) -> [Option<(f64, Choice)>; 2] {
        let State { segment, busy, slots, .. } = state;
        let needs = self.table.needs()[segment];
        let last = self.table.needs().len() - 1;
        let beside = self.returned_slots(state).max(self.slots_in_flight(busy, segment));
        if needs.slots_to_save(self.table.needs()[last].gradient) + beside > slots {
            return [None, None];
        }
        let own = needs.forward + needs.backward;
        let next = State { segment: segment + 1, is_input_away: false, busy, slots: slots - needs.saved };
        let kept = (own + self.seconds_from(next), Choice::Save { moves: false });
        let moved = (segment < last).then(|| self.busy_after(busy, segment + 1, needs.saved)).flatten();
        let moved = moved.map(|busy| {
            let next = State { segment: segment + 1, is_input_away: true, busy, slots };
            (own + self.seconds_from(next), Choice::Save { moves: true })
        });
        [Some(kept), moved]
    }

    fn choices_of_group(&self, state: State) -> impl Iterator<Item = (f64, Choice)> {
        let State { segment, busy, slots, .. } = state;
        let last = self.table.needs().len() - 1;
        let [returned, in_flight] = [self.returned_slots(state), self.slots_in_flight(busy, segment)];
        let sweeps = self.table.sweeps(segment, last);
        let sweeps = sweeps.take_while(move |sweep| sweep.slots + returned.max(in_flight) <= slots);
        sweeps.flat_map(move |sweep| {
            let end = sweep.end;
            let held = self.table.needs()[end - 1].output;
            let own = sweep.seconds + self.table.group_seconds(segment, end - 1)[slots - returned];
            let kept = State { segment: end, is_input_away: false, busy, slots: slots - held };
            let kept = (own + self.seconds_from(kept), Choice::Group { sweep, moves: false });
            let moved = self.busy_after(busy, end, held).map(|busy| {
                let next = State { segment: end, is_input_away: true, busy, slots };
                (own + self.seconds_from(next), Choice::Group { sweep, moves: true })
            });
            [Some(kept), moved].into_iter().flatten()
        })
    }

    /// The plan of the whole chain in some slots of memory; `None` if it does not fit.
    pub(super) fn chain_plan(&self, slots: usize) -> Option<ChainPlan> {
        let count = self.elapsed.len();
        let mut plan = ChainPlan::new(Vec::new(), count);
        let mut backward = Vec::new();
        let mut state = State { segment: 0, is_input_away: false, busy: 0, slots };
        while state.segment < count {
            let (_, choice) = self.choose_next(state)?;
            backward.push((state, choice));
            state = self.follow_choice(state, choice, &mut plan);
        }
        for (state, choice) in backward.into_iter().rev() {
            match choice {
                Choice::Save { .. } => plan.steps.push(Step::Backward(state.segment)),
                Choice::Group { sweep, .. } => {
                    let slots = state.slots - self.returned_slots(state);
                    self.table.push_steps(state.segment, sweep.end - 1, slots, &mut plan.steps);
                }
            }
        }
        Some(plan)
    }

    /// Appends the forward steps of a choice. Returns the state after them.
    fn follow_choice(&self, state: State, choice: Choice, plan: &mut ChainPlan) -> State {
        let (end, bytes, moves) = match choice {
            Choice::Save { moves } => {
                plan.steps.push(Step::Save(state.segment));
                plan.moves_saved[state.segment] = moves;
                (state.segment + 1, self.table.needs()[state.segment].saved, moves)
            }
            Choice::Group { sweep, moves } => {
                push_sweep(state.segment, sweep.end, &mut plan.steps);
                plan.moves_input[sweep.end] = moves;
                (sweep.end, self.table.needs()[sweep.end - 1].output, moves)
            }
        };
        let busy = if moves { self.busy_after(state.busy, end, bytes) } else { None };
        State {
            segment: end,
            is_input_away: moves,
            busy: busy.unwrap_or(state.busy),
            slots: if moves { state.slots } else { state.slots - bytes },
        }
    }
}

/// The whole number that is not below; 0 for a number below 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "too large a number is the largest"
)]
fn round_up(number: f64) -> usize {
    number.ceil() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::chains::testing::{plain_segment, replay_steps};

    #[test]
    fn without_a_link_the_table_is_that_of_chains_that_keep_everything() {
        let segments =
            [plain_segment(2, 3, 0), plain_segment(1, 4, 2), plain_segment(3, 3, 1), plain_segment(2, 5, 3)];
        for room in 10..24 {
            let table = PersistentTable::new(&segments, room, 100);
            let offload = OffloadTable::new(&table, 1e9, 16);
            for slots in 0..=table.most_slots() {
                let expected = table.group_seconds(0, 3)[slots];
                let start = State { segment: 0, is_input_away: false, busy: 0, slots };
                assert_eq!(offload.seconds_from(start), expected, "{slots} slots");
                let plan = offload.chain_plan(slots);
                assert_eq!(plan.is_some(), expected.is_finite());
                let Some(plan) = plan else { continue };
                let room = u64::try_from(slots).expect("few");
                assert_eq!(replay_steps(&segments, &plan.steps, room), expected);
            }
        }
    }

    #[test]
    fn fast_link_leaves_nothing_to_run_again() {
        let segments = vec![plain_segment(1, 1, 1); 8];
        // The input, which is back, output, and the gradients of both; a slot for what is in flight.
        let table = PersistentTable::new(&segments, 5, 100);
        assert_eq!(table.group_seconds(0, 7)[5], 26.0);
        let offload = OffloadTable::new(&table, 0.5, 64);
        let plan = offload.chain_plan(5).expect("it fits");
        assert!(plan.steps.iter().all(|step| matches!(step, Step::Save(_) | Step::Backward(_))));
        assert!(plan.moves_saved.iter().filter(|&&moves| moves).count() >= 5, "{plan:?}");
    }
}
