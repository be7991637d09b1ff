//! From the events of a device to the lives of its buffers.
//!
//! Allocations and frees are paired by address. A life ends when its free is *completed*: until then another stream may
//! still use the memory. A free without an allocation, and a block that is in use at the end without one, belong to
//! buffers that are older than the history.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::life::{BEFORE, Life};
use crate::formats::import::Dropped;
use crate::formats::import::gather::Tally;

/// What did not fit the rules, counted.
#[derive(Debug, Default)]
struct Counts {
    /// Buffers from before the history that were freed in it, and their bytes.
    freed_before: Tally,
    /// The same that were never freed.
    lived_before: Tally,
    /// Frees that were completed but never requested: the history begins between the two.
    halves: u64,
    /// Buffers whose allocation is missing in the middle.
    lost_allocations: Tally,
    /// Buffers that were never freed, but another came to their address.
    lost_frees: Tally,
    /// Buffers of no bytes.
    empty: u64,
    /// Buffers that are live by the history and not by the final segments.
    not_final: Tally,
}

/// The buffers of a device, event by event.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    all: Vec<Life>,
    /// Address to buffer.
    live: FxHashMap<u64, usize>,
    /// Where the last life of an address ended.
    ended: FxHashMap<u64, u64>,
    requested: FxHashSet<u64>,
    counts: Counts,
}

impl Lives {
    /// Begins a buffer, whose `end` is not known yet.
    pub(crate) fn begin_buffer(&mut self, life: Life) {
        let step = life.start;
        if let Some(old) = self.live.remove(&life.address) {
            self.all[old].end = step;
            self.counts.lost_frees.add_bytes(self.all[old].size);
        }
        self.requested.remove(&life.address);
        if life.size == 0 {
            self.counts.empty += 1;
            return;
        }
        self.live.insert(life.address, self.all.len());
        self.all.push(life);
    }

    pub(crate) fn request_free(&mut self, address: u64) {
        self.requested.insert(address);
    }

    /// Ends a buffer at `life.end`. If it is unknown, all but its start is as in `life`.
    pub(crate) fn end_buffer(&mut self, life: Life) {
        let (step, address) = (life.end, life.address);
        let was_requested = self.requested.remove(&address);
        match self.live.remove(&address) {
            Some(buffer) => self.all[buffer].end = step,
            None => {
                self.counts.halves += u64::from(!was_requested);
                self.add_older(life, false);
            }
        }
        self.ended.insert(address, step);
    }

    /// Notes a block that is in use after the last event; it lives on to `life.end`.
    pub(crate) fn in_use(&mut self, life: Life) {
        if self.live.remove(&life.address).is_none() {
            self.add_older(life, true);
        }
    }

    /// Takes a buffer in whose allocation is not in the history.
    fn add_older(&mut self, mut life: Life, lives_on: bool) {
        if life.size == 0 {
            self.counts.empty += 1;
            return;
        }
        let start = self.ended.get(&life.address).copied();
        life.start = start.unwrap_or(0);
        life.category.get_or_insert_with(|| BEFORE.into());
        let counts = &mut self.counts;
        let tally = match (start, lives_on) {
            (Some(_), _) => &mut counts.lost_allocations,
            (None, false) => &mut counts.freed_before,
            (None, true) => &mut counts.lived_before,
        };
        tally.add_bytes(life.size);
        self.all.push(life);
    }

    /// Gives those that have no category one, in the order in which they were made.
    pub(crate) fn name_categories(&mut self, mut category: impl FnMut(&Life) -> Option<Arc<str>>) {
        for life in self.all.iter_mut().filter(|life| life.category.is_none()) {
            life.category = category(life);
        }
    }

    /// Ends what is live at `end`. `knows_final` says whether [`Self::in_use`] has named all blocks in use.
    pub(crate) fn finish_lives(
        mut self,
        end: u64,
        events: u64,
        knows_final: bool,
    ) -> (Vec<Life>, Vec<Dropped>) {
        for life in &mut self.all {
            if life.end == 0 {
                life.end = end;
            }
        }
        if knows_final {
            for &buffer in self.live.values() {
                self.counts.not_final.add_bytes(self.all[buffer].size);
            }
        }
        (self.all, self.counts.as_dropped(events))
    }
}

impl Counts {
    fn as_dropped(&self, events: u64) -> Vec<Dropped> {
        let older = self.freed_before.count + self.lived_before.count;
        let cut = (older > 0 && (self.halves > 0 || may_be_full(events))).then(|| {
            let why = if self.halves > 0 {
                "frees are completed in it that were requested before it: its oldest events are gone, or it began late"
            } else {
                "their number is a round one; if it is the most that may be kept (max_entries), the oldest are gone"
            };
            Dropped::new(events, "events of history", why)
        });
        [
            cut,
            self.freed_before
                .as_dropped("buffers from before the recording that it frees", "their lives begin at step 0"),
            self.lived_before.as_dropped(
                "buffers from before the recording that it never frees",
                "they live from step 0 to the end",
            ),
            self.lost_allocations.as_dropped(
                "buffers without an allocation, at addresses that were freed before",
                "the history has a hole; they begin where the address was free",
            ),
            self.lost_frees.as_dropped(
                "buffers without a free, whose address was given out again",
                "the history has a hole; they end there",
            ),
            Dropped::from_count(self.empty, "buffers of no bytes", "they were left out"),
            self.not_final.as_dropped(
                "buffers that are never freed, but not in use in the final segments",
                "they live to the end",
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Whether a history has a number of events that people choose as the most: a power of two, or one digit and zeros, or two
/// with a 5 behind. Snapshots do not say what was chosen, and a history may end there by chance.
fn may_be_full(events: u64) -> bool {
    let digits = |mut number: u64| {
        while number.is_multiple_of(10) && number > 0 {
            number /= 10;
        }
        number
    };
    let is_round = |digits: u64| digits < 10 || (digits < 100 && digits.is_multiple_of(5));
    events >= 1000 && (events.is_power_of_two() || is_round(digits(events)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alloc(address: u64, size: u64, start: u64) -> Life {
        Life { address, size, start, ..Life::default() }
    }

    fn free(address: u64, size: u64, end: u64) -> Life {
        Life { address, size, end, ..Life::default() }
    }

    /// Start, end and size of lives; number and bytes of what was dropped.
    type Shown = (Vec<(u64, u64, u64)>, Vec<(u64, Option<u64>)>);

    fn shown((lives, dropped): &(Vec<Life>, Vec<Dropped>)) -> Shown {
        (
            lives.iter().map(|life| (life.start, life.end, life.size)).collect(),
            dropped.iter().map(|dropped| (dropped.count, dropped.bytes)).collect(),
        )
    }

    #[test]
    fn an_address_is_used_again() {
        let mut lives = Lives::default();
        lives.begin_buffer(alloc(8, 100, 1));
        lives.request_free(8);
        assert!(lives.live.contains_key(&8));
        lives.end_buffer(free(8, 100, 3));
        lives.begin_buffer(alloc(8, 50, 4));
        lives.in_use(free(8, 50, 9));
        let made = lives.finish_lives(9, 4, true);
        assert_eq!(shown(&made), (vec![(1, 3, 100), (4, 9, 50)], vec![]));
    }

    #[test]
    fn what_is_older_than_the_history_lives_from_the_beginning() {
        let mut lives = Lives::default();
        lives.request_free(8);
        lives.end_buffer(free(8, 100, 2));
        lives.end_buffer(free(16, 10, 3));
        lives.in_use(free(24, 7, 9));
        let made = lives.finish_lives(9, 3, true);
        let expected = vec![(3, None), (2, Some(110)), (1, Some(7))];
        assert_eq!(shown(&made), (vec![(0, 2, 100), (0, 3, 10), (0, 9, 7)], expected));
        assert_eq!(made.0[2].category.as_deref(), Some(BEFORE));
    }

    #[test]
    fn holes_in_the_history_are_told() {
        let mut lives = Lives::default();
        lives.begin_buffer(alloc(8, 100, 1));
        lives.begin_buffer(alloc(8, 50, 2));
        lives.request_free(8);
        lives.end_buffer(free(8, 50, 4));
        lives.request_free(8);
        lives.end_buffer(free(8, 30, 6));
        lives.begin_buffer(alloc(16, 0, 7));
        lives.begin_buffer(alloc(24, 5, 8));
        let made = lives.finish_lives(9, 8, true);
        let told = vec![(1, Some(30)), (1, Some(100)), (1, None), (1, Some(5))];
        assert_eq!(shown(&made), (vec![(1, 2, 100), (2, 4, 50), (4, 6, 30), (8, 9, 5)], told));
    }

    #[test]
    fn a_history_of_a_round_number_of_events_may_be_full() {
        let round = [1000, 1024, 65_536, 100_000, 150_000, 250_000, 1_000_000];
        assert!(round.into_iter().all(may_be_full));
        let others = [0, 512, 900, 5166, 37_000, 101_000, 123_000, 1_234_000];
        assert!(!others.into_iter().any(may_be_full));
    }

    #[test]
    fn only_buffers_from_before_make_a_full_history_a_cut_one() {
        let told = |before: bool, events: u64| {
            let mut lives = Lives::default();
            lives.begin_buffer(alloc(8, 100, 1));
            if before {
                lives.in_use(free(24, 7, 9));
            }
            let dropped = lives.finish_lives(9, events, false).1;
            dropped.iter().any(|dropped| dropped.why.contains("if it is the most that may be kept"))
        };
        let told = [(true, 100_000), (false, 100_000), (true, 101_000)].map(|(b, e)| told(b, e));
        assert_eq!(told, [true, false, false]);
    }
}
