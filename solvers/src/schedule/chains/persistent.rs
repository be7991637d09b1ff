//! The least time of a chain in limited memory: a table over groups of segments and slots of memory.
//!
//! A group of segments runs from an input that is held until its backward pass is over. Either its first segment saves
//! what its backward pass reads, and the rest is a group in less memory; or the group is run up to a checkpoint, the
//! segments from there on are a group in less memory, and after them those before the checkpoint are a group that starts
//! again. What is saved or held stays until it has been used: the schedule is *persistent*. The table has the least time of
//! each group in each memory, so it contains the best persistent schedule.
//!
//! The input of a group is not in its memory, the gradient of its output is. Sizes are rounded up to slots.
//!
//! # References
//!
//! 1. J. Herrmann, O. Beaumont, L. Eyraud-Dubois, J. Hermann, A. Joly, A. Shilova: Optimal checkpointing for heterogeneous
//!    chains: how to train deep neural networks with limited memory. 2019. arXiv:1911.13214.
//!
//! # Complexity
//!
//! O(l^3 s) time and O(l^2 s) memory for l segments and s slots.
//!
//! # Deviations from the paper
//!
//! The tests of what fits are conservative: a backward pass has the input of its segment, what the segment saved, and the
//! gradients of output and input at once. Each segment has a peak of its own for each kind of run.

use planlab_dsa::greatest_common_divisor;

use super::chain::Segment;
use super::sequence::Step;

/// The entries of a table that are computed in one step: a few at once, and without a branch.
const ENTRIES_PER_STEP: u64 = 8;

/// What a segment takes, in slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    pub(super) output: usize,
    pub(super) gradient: usize,
    pub(super) saved: usize,
    pub(super) advance_peak: usize,
    pub(super) save_peak: usize,
    pub(super) backward_peak: usize,
    pub(super) forward: f64,
    pub(super) backward: f64,
}

impl Needs {
    fn new(segment: &Segment, slot: u64) -> Self {
        let round_up = |bytes: u64| usize::try_from(bytes.div_ceil(slot)).unwrap_or(usize::MAX / 8);
        Self {
            output: round_up(segment.output),
            gradient: round_up(segment.gradient),
            saved: round_up(segment.saved),
            advance_peak: round_up(segment.advance_peak),
            save_peak: round_up(segment.save_peak),
            backward_peak: round_up(segment.backward_peak),
            forward: segment.forward,
            backward: segment.backward,
        }
    }

    /// The slots to save the segment and to run it backward, beside `gradient` slots during the first.
    pub(super) fn slots_to_save(&self, gradient: usize) -> usize {
        (gradient + self.save_peak).max(self.backward_peak).max(self.saved)
    }
}

/// A run of the segments from the first of a group to a checkpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sweep {
    /// The segment that begins at the checkpoint.
    pub(super) end: usize,
    /// The slots that it takes, those of the checkpoint included.
    pub(super) slots: usize,
    pub(super) seconds: f64,
}

/// The least seconds of each group in each number of slots.
#[derive(Clone, Debug)]
pub(super) struct PersistentTable {
    needs: Vec<Needs>,
    slot: u64,
    room: usize,
    most: usize,
    /// For each group, by its last and then its first segment, and for each number of slots; infinite if it does not
    /// fit.
    seconds: Vec<f64>,
}

impl PersistentTable {
    /// The table of a chain for `room` bytes in at most `slots` slots, and for a quarter more: what is lost by rounding up
    /// may be found again. If that takes no more than four times as many slots, all sizes are whole numbers of slots. Calls
    /// `tick` with the steps of each group before them, and returns its error.
    pub(super) fn try_new<E>(
        segments: &[Segment],
        room: u64,
        slots: u32,
        mut tick: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<Self, E> {
        let slots = u64::from(slots.max(1));
        let unit = segments.iter().flat_map(Segment::sizes).fold(0, greatest_common_divisor).max(1);
        let slot = if room / unit <= 4 * slots { unit } else { room.div_ceil(slots) };
        let room = usize::try_from(room / slot).unwrap_or(usize::MAX);
        let most = room + room / 4;
        let count = segments.len();
        let needs = segments.iter().map(|segment| Needs::new(segment, slot)).collect();
        let seconds = vec![f64::INFINITY; count * (count + 1) / 2 * (most + 1)];
        let mut table = Self { needs, slot, room, most, seconds };
        for more in 0..count {
            for first in 0..count - more {
                tick(table.count_steps(more + 1))?;
                table.fill_group(first, first + more);
            }
        }
        Ok(table)
    }

    /// As [`Self::try_new`], without a stop.
    #[cfg(test)]
    pub(super) fn new(segments: &[Segment], room: u64, slots: u32) -> Self {
        let Ok(table) = Self::try_new(segments, room, slots, |_| Ok::<_, std::convert::Infallible>(()));
        table
    }

    /// For each segment, what it takes.
    pub(super) fn needs(&self) -> &[Needs] {
        &self.needs
    }

    /// The bytes of a slot.
    pub(super) const fn slot_bytes(&self) -> u64 {
        self.slot
    }

    /// The slots of the memory.
    pub(super) const fn room_slots(&self) -> usize {
        self.room
    }

    /// The most slots for which the table has seconds.
    pub(super) const fn most_slots(&self) -> usize {
        self.most
    }

    /// The steps to fill a group: for each slot, the ways to begin it, one for each of its segments.
    const fn count_steps(&self, segments: usize) -> u64 {
        segments as u64 * (self.most as u64 + 1) / ENTRIES_PER_STEP
    }

    fn row_start(&self, first: usize, last: usize) -> usize {
        (last * (last + 1) / 2 + first) * (self.most + 1)
    }

    /// For each number of slots, the least seconds of the segments from `first` to `last`; infinite if they do not fit.
    pub(super) fn group_seconds(&self, first: usize, last: usize) -> &[f64] {
        let start = self.row_start(first, last);
        &self.seconds[start..=start + self.most]
    }

    /// The runs from the first segment of a group to each checkpoint in it.
    pub(super) fn sweeps(&self, first: usize, last: usize) -> impl Iterator<Item = Sweep> {
        let gradient = self.needs[last].gradient;
        let start = Sweep { end: first, slots: 0, seconds: 0.0 };
        self.needs[first..last].iter().scan((start, 0), move |(sweep, input), needs| {
            sweep.end += 1;
            sweep.slots = sweep.slots.max(gradient + *input + needs.advance_peak).max(needs.output);
            sweep.seconds += needs.forward;
            *input = needs.output;
            Some(*sweep)
        })
    }

    fn fill_group(&mut self, first: usize, last: usize) {
        let mut row = vec![f64::INFINITY; self.most + 1];
        let needs = self.needs[first];
        let least = needs.slots_to_save(self.needs[last].gradient);
        if least <= self.most {
            let own = needs.forward + needs.backward;
            if first == last {
                row[least..].fill(own);
            } else {
                let rest = &self.group_seconds(first + 1, last)[least - needs.saved..];
                row[least..].iter_mut().zip(rest).for_each(|(best, rest)| *best = own + rest);
            }
        }
        for sweep in self.sweeps(first, last).take_while(|sweep| sweep.slots <= self.most) {
            let held = self.needs[sweep.end - 1].output;
            let after = &self.group_seconds(sweep.end, last)[sweep.slots - held..];
            let before = &self.group_seconds(first, sweep.end - 1)[sweep.slots..];
            for ((best, after), before) in row[sweep.slots..].iter_mut().zip(after).zip(before) {
                *best = best.min(sweep.seconds + after + before);
            }
        }
        let start = self.row_start(first, last);
        self.seconds[start..start + row.len()].copy_from_slice(&row);
    }

    /// The steps of a whole chain in some slots; `None` if it does not fit.
    pub(super) fn chain_steps(&self, slots: usize) -> Option<Vec<Step>> {
        let last = self.needs.len() - 1;
        let mut steps = Vec::new();
        if self.group_seconds(0, last)[slots].is_infinite() {
            return None;
        }
        self.push_steps(0, last, slots, &mut steps);
        Some(steps)
    }

    /// Appends the steps of a group that fits.
    pub(super) fn push_steps(&self, first: usize, last: usize, slots: usize, steps: &mut Vec<Step>) {
        let Some(sweep) = self.choose_sweep(first, last, slots) else {
            steps.push(Step::Save(first));
            if first < last {
                self.push_steps(first + 1, last, slots - self.needs[first].saved, steps);
            }
            steps.push(Step::Backward(first));
            return;
        };
        push_sweep(first, sweep.end, steps);
        self.push_steps(sweep.end, last, slots - self.needs[sweep.end - 1].output, steps);
        self.push_steps(first, sweep.end - 1, slots, steps);
    }

    /// The run with which the fastest schedule of a group begins; `None` if it saves the first segment.
    fn choose_sweep(&self, first: usize, last: usize, slots: usize) -> Option<Sweep> {
        let needs = self.needs[first];
        let mut best = (f64::INFINITY, None);
        if needs.slots_to_save(self.needs[last].gradient) <= slots {
            let rest =
                if first < last { self.group_seconds(first + 1, last)[slots - needs.saved] } else { 0.0 };
            best.0 = needs.forward + needs.backward + rest;
        }
        for sweep in self.sweeps(first, last).take_while(|sweep| sweep.slots <= slots) {
            let held = self.needs[sweep.end - 1].output;
            let after = self.group_seconds(sweep.end, last)[slots - held];
            let seconds = sweep.seconds + after + self.group_seconds(first, sweep.end - 1)[slots];
            if seconds < best.0 {
                best = (seconds, Some(sweep));
            }
        }
        best.1
    }
}

/// Appends the runs of the segments from `first` up to `end`; the input of the first is held.
pub(super) fn push_sweep(first: usize, end: usize, steps: &mut Vec<Step>) {
    steps.push(Step::Checkpoint(first));
    steps.extend((first + 1..end).map(Step::Advance));
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::schedule::chains::testing::{
        least_persistent_seconds, least_seconds, plain_segment, replay_steps,
    };

    /// A chain of `count` segments of one byte in a memory of that many bytes: seconds with the loss.
    fn unit_seconds(count: usize, room: u64) -> f64 {
        let segments = vec![plain_segment(1, 1, 1); count];
        let table = PersistentTable::new(&segments, room, 500);
        table.group_seconds(0, count - 1)[table.room_slots()] + 1.0
    }

    /// Optima of Checkmate's program, which does not hold the input of a backward pass that only reads its output.
    #[test]
    fn unit_chains_take_no_less_than_their_optima() {
        for (count, room, optimum, expected) in [
            (4, 4, 11.0, 14.0),
            (4, 5, 10.0, 11.0),
            (4, 6, 9.0, 9.0),
            (6, 4, 18.0, 27.0),
            (6, 5, 16.0, 18.0),
            (6, 6, 15.0, 16.0),
            (8, 4, 26.0, 44.0),
            (8, 5, 22.0, 27.0),
            (8, 6, 21.0, 23.0),
            (10, 5, 29.0, 37.0),
            (12, 8, 31.0, 33.0),
            (16, 8, 43.0, 46.0),
        ] {
            let seconds = unit_seconds(count, room);
            assert_eq!(seconds, expected, "{count} segments in {room}");
            assert!(seconds >= optimum, "{count} segments in {room}");
        }
        // With a byte for the input, most take as long as the optimum.
        for (count, room, optimum) in [(4, 4, 11.0), (6, 4, 18.0), (6, 5, 16.0), (8, 6, 21.0), (12, 8, 31.0)]
        {
            assert_eq!(unit_seconds(count, room + 1), optimum, "{count} segments in {room}");
        }
    }

    fn random_segments(rng: &mut ChaCha8Rng) -> Vec<Segment> {
        let mut before = 0;
        let count = rng.random_range(1..=5);
        let segment = |_| {
            let output = rng.random_range(1..=4);
            let mut segment = plain_segment(output, output + rng.random_range(0..=3), before);
            before = output;
            segment.advance_peak += rng.random_range(0..=1);
            segment.save_peak += rng.random_range(0..=1);
            segment.backward_peak += rng.random_range(0..=1);
            segment.forward = f64::from(rng.random_range(1..=4_u32));
            segment.backward = f64::from(rng.random_range(1..=4_u32));
            segment
        };
        (0..count).map(segment).collect()
    }

    /// Other sequences drop what is kept before it is used, and are seldom faster.
    #[test]
    fn random_chains_take_the_least_of_persistent_sequences() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (mut found, mut equal, mut worst) = (0, 0, 1.0_f64);
        while found < 300 {
            let segments = random_segments(&mut rng);
            let room = rng.random_range(6..=segments.iter().map(|segment| segment.saved).sum::<u64>() + 12);
            let table = PersistentTable::new(&segments, room, 500);
            let slots = table.room_slots();
            let seconds = table.group_seconds(0, segments.len() - 1)[slots];
            let persistent = least_persistent_seconds(&segments, room);
            assert_eq!(persistent.unwrap_or(f64::INFINITY), seconds, "{segments:?} in {room}");
            let Some(steps) = table.chain_steps(slots) else { continue };
            let optimum = least_seconds(&segments, room).expect("the steps of the table run");
            assert!(seconds >= optimum, "{segments:?} in {room}");
            assert_eq!(replay_steps(&segments, &steps, room), seconds, "{steps:?}");
            found += 1;
            equal += u32::from(seconds == optimum);
            worst = worst.max(seconds / optimum);
        }
        println!("{equal} of {found} are optimal, the worst takes {worst:.2} times the optimum");
        assert!(equal >= 240 && worst < 1.4, "{equal} of {found} are optimal, the worst by {worst}");
    }

    #[test]
    fn sizes_are_rounded_up_to_slots() {
        let segments = [plain_segment(101, 101, 0), plain_segment(100, 100, 101)];
        let table = PersistentTable::new(&segments[..1], 1000, 10);
        assert_eq!((table.slot_bytes(), table.room_slots()), (101, 9), "a whole number of slots");
        let table = PersistentTable::new(&segments, 1000, 10);
        assert_eq!((table.slot_bytes(), table.room_slots(), table.most_slots()), (100, 10, 12));
        let needs = table.needs()[0];
        assert_eq!((needs.output, needs.saved, needs.backward_peak), (2, 2, 3));
        // The gradient of the output and what is saved.
        assert_eq!(table.group_seconds(0, 0)[3..5], [f64::INFINITY, 2.0]);
        assert!(table.chain_steps(3).is_none());
    }

    #[test]
    fn table_is_stopped_between_groups() {
        let segments = vec![plain_segment(1, 1, 1); 4];
        let build = |most: u32| {
            let mut groups = 0;
            let tick = |_| {
                groups += 1;
                if groups <= most { Ok(()) } else { Err(groups) }
            };
            PersistentTable::try_new(&segments, 8, 10, tick).map(|table| table.room_slots())
        };
        assert_eq!((build(10), build(9)), (Ok(8), Err(10)));
    }
}
