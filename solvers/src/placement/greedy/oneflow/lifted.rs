//! Offsets that can be raised together from an address on.
//!
//! Placed buffers are kept in ascending order of their offsets, cut into runs. Each run stores one number by which the
//! whole run has risen. So a lift changes the buffers of one run and one number for each run above it.
//!
//! # Complexity
//!
//! For n placed buffers in runs of k: O(log n + k) to place one, O(n / k + k) for a lift.

/// The most buffers of a run; a longer one is cut in two.
const LONGEST: usize = 512;
/// Marks a buffer that is not placed.
const NONE: u32 = u32::MAX;

/// A part of the order, never empty.
#[derive(Clone, Debug)]
struct Run {
    ids: Vec<u32>,
    lift: u64,
}

/// The offsets of the placed buffers, in several arenas.
#[derive(Clone, Debug)]
pub(super) struct Lifted {
    /// By buffer: its offset minus the lift of its run, modulo 2^64.
    bases: Vec<u64>,
    run_of: Vec<u32>,
    runs: Vec<Run>,
    /// By arena: its runs, ascending.
    orders: Vec<Vec<u32>>,
}

impl Lifted {
    /// An empty structure for `count` buffers.
    pub(super) fn new(count: usize, arenas: usize) -> Self {
        Self {
            bases: vec![0; count],
            run_of: vec![NONE; count],
            runs: Vec::new(),
            orders: vec![Vec::new(); arenas],
        }
    }

    /// The offset of a placed buffer.
    pub(super) fn offset_of(&self, id: u32) -> Option<u64> {
        let run = self.run_of[id as usize];
        (run != NONE).then(|| self.lifted_offset(id, run))
    }

    fn lifted_offset(&self, id: u32, run: u32) -> u64 {
        self.bases[id as usize].wrapping_add(self.runs[run as usize].lift)
    }

    pub(super) fn insert_at(&mut self, arena: usize, id: u32, offset: u64) {
        let at = self.orders[arena]
            .partition_point(|&run| self.lifted_offset(self.runs[run as usize].ids[0], run) <= offset);
        let at = at.saturating_sub(1);
        let run = match self.orders[arena].get(at) {
            Some(&run) => run,
            None => self.new_run(arena, at, Run { ids: Vec::new(), lift: 0 }),
        };
        let place =
            self.runs[run as usize].ids.partition_point(|&other| self.lifted_offset(other, run) <= offset);
        let Run { ids, lift } = &mut self.runs[run as usize];
        ids.insert(place, id);
        self.bases[id as usize] = offset.wrapping_sub(*lift);
        self.run_of[id as usize] = run;
        if ids.len() > LONGEST {
            let upper = Run { ids: ids.split_off(LONGEST / 2), lift: *lift };
            self.new_run(arena, at + 1, upper);
        }
    }

    fn new_run(&mut self, arena: usize, at: usize, run: Run) -> u32 {
        let number = u32::try_from(self.runs.len()).expect("there are fewer runs than buffers");
        for &id in &run.ids {
            self.run_of[id as usize] = number;
        }
        self.runs.push(run);
        self.orders[arena].insert(at, number);
        number
    }

    /// Lifts everything that begins at `from` or above by `bytes`; returns the work that it took.
    pub(super) fn lift_from(&mut self, arena: usize, from: u64, bytes: u64) -> u64 {
        let order = &self.orders[arena];
        let first = order.partition_point(|&run| {
            let last = self.runs[run as usize].ids.last().expect("runs are not empty");
            self.lifted_offset(*last, run) < from
        });
        let Some((&cut, whole)) = order[first..].split_first() else { return 1 };
        let Run { ids, lift } = &self.runs[cut as usize];
        for &id in ids.iter().rev() {
            let base = &mut self.bases[id as usize];
            if base.wrapping_add(*lift) < from {
                break;
            }
            *base = base.wrapping_add(bytes);
        }
        let work = (ids.len() + whole.len()) as u64;
        for &run in whole {
            self.runs[run as usize].lift += bytes;
        }
        work
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One operation: a buffer is placed at an offset, or everything from an offset on rises by some bytes.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Place(u64),
        Lift(u64, u64),
    }

    fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
        let step = prop_oneof![
            3 => (0..3_000_u64).prop_map(Step::Place),
            1 => (0..3_000_u64, 1..50_u64).prop_map(|(from, bytes)| Step::Lift(from, bytes)),
        ];
        prop::collection::vec((0..2_usize, step), 0..3_000)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn lifts_are_those_of_a_plain_list(steps in steps()) {
            let mut lifted = Lifted::new(steps.len() + 1, 2);
            let mut plain: Vec<(usize, u64)> = Vec::new();
            for (arena, step) in steps {
                match step {
                    Step::Place(offset) => {
                        lifted.insert_at(arena, u32::try_from(plain.len()).expect("few"), offset);
                        plain.push((arena, offset));
                    }
                    Step::Lift(from, bytes) => {
                        lifted.lift_from(arena, from, bytes);
                        let above = plain.iter_mut().filter(|other| other.0 == arena && other.1 >= from);
                        above.for_each(|other| other.1 += bytes);
                    }
                }
            }
            for (id, &(_, offset)) in (0..).zip(&plain) {
                prop_assert_eq!(lifted.offset_of(id), Some(offset));
            }
            prop_assert_eq!(lifted.offset_of(u32::try_from(plain.len()).expect("few")), None);
        }
    }
}
