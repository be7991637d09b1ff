//! Turns a draft into a placed schedule: live ranges, offsets, and the waits that follow from them.

use std::collections::BTreeMap;

use planlab_dsa::{Buffer, Bytes, Instance, InstanceError, LiveRange, Offset};

use super::schedule::{Completions, Engine, Event, Schedule, ScheduledBuffer};
use super::timeline::Timeline;

impl Schedule {
    /// For each buffer, the half-open, non-empty range of a timeline's moments in which it is taken.
    #[must_use]
    pub fn buffer_lifetimes(&self, timeline: &Timeline) -> Vec<(u32, u32)> {
        let mut lives = vec![(0, 0); self.buffers.len()];
        for engine in Engine::ALL {
            for (event, span) in self.events_of(engine).iter().zip(timeline.spans_of(engine)) {
                event.writes.iter().for_each(|id| lives[id.index()].0 = span.began);
                for id in &event.frees {
                    lives[id.index()].1 = lives[id.index()].1.max(span.ended);
                }
            }
        }
        for (_, end) in lives.iter_mut().filter(|(_, end)| *end == 0) {
            *end = timeline.moments;
        }
        lives
    }

    /// The placement problem of a timeline: the buffers, by id, live from moment to moment. Offsets of its plans count
    /// from the [base](Schedule::base).
    ///
    /// # Errors
    ///
    /// [`InstanceError`] if the sum of the sizes exceeds 64 bits.
    pub fn placement_problem(&self, timeline: &Timeline) -> Result<Instance, InstanceError> {
        let lives = self.buffer_lifetimes(timeline);
        let buffer = |(buffer, (start, end)): (&ScheduledBuffer, (u32, u32))| {
            let live = LiveRange::new(start, end).expect("an event ends after it starts");
            Buffer::new(buffer.bytes, live)
        };
        Instance::from_buffers(self.buffers.iter().zip(lives).map(buffer).collect())
    }

    /// Adds offsets (one per buffer, counted from the base) and [`Event::room`]: an event that writes a buffer waits
    /// until its addresses are free. The schedule runs as in the timeline; with other times it keeps every order that
    /// matters.
    ///
    /// An event may wait in the timeline for bytes, not for addresses, if the offsets need more memory than the
    /// timeline had. It then waits for everything that is complete by that time.
    ///
    /// O(n log n + p) for p pairs of buffers that share an address.
    ///
    /// # Panics
    ///
    /// If there is not one offset per buffer.
    #[must_use]
    pub fn with_offsets(mut self, timeline: &Timeline, offsets: &[Offset]) -> Self {
        assert_eq!(offsets.len(), self.buffers.len(), "one offset for each buffer");
        let base = self.base.get();
        for (buffer, offset) in self.buffers.iter_mut().zip(offsets) {
            buffer.offset = Some(Offset::new(base.saturating_add(offset.get())));
        }
        let vacated = self.vacating_completions(timeline, offsets);
        for engine in Engine::ALL {
            for (place, span) in timeline.spans_of(engine).iter().enumerate() {
                let event = &mut self.events[engine.index()][place];
                event.room = event
                    .writes
                    .iter()
                    .fold([0; 3], |room, id| latest_completions(room, vacated[id.index()]));
                if event.ready_time(place, timeline) < span.start {
                    event.room = timeline.complete_at(span.began);
                }
            }
        }
        self.seconds = Some(timeline.seconds);
        self
    }

    /// For each buffer, the completions after which its addresses are free: those of the events that free earlier
    /// buffers there.
    fn vacating_completions(&self, timeline: &Timeline, offsets: &[Offset]) -> Vec<Completions> {
        let mut frees = vec![Completions::default(); self.buffers.len()];
        for engine in Engine::ALL {
            for (place, event) in self.events_of(engine).iter().enumerate() {
                let count = u32::try_from(place + 1).unwrap_or(u32::MAX);
                event.frees.iter().for_each(|id| frees[id.index()][engine.index()] = count);
            }
        }
        let lives = self.buffer_lifetimes(timeline);
        let end = |id: usize| offsets[id].get() + self.buffers[id].bytes.get();
        let mut by_offset: Vec<usize> = (0..self.buffers.len()).collect();
        by_offset.sort_unstable_by_key(|&id| offsets[id]);
        let mut vacated = vec![Completions::default(); self.buffers.len()];
        for (index, &low) in by_offset.iter().enumerate() {
            for &high in by_offset[index + 1..].iter().take_while(|&&high| offsets[high].get() < end(low)) {
                let (first, second) = if lives[low].1 <= lives[high].0 { (low, high) } else { (high, low) };
                if lives[first].1 <= lives[second].0 {
                    vacated[second] = latest_completions(vacated[second], frees[first]);
                }
            }
        }
        vacated
    }

    /// Offsets, from the base, of an allocator that serves the requests of a timeline online. It takes the smallest gap
    /// that fits, the lowest of equal ones, or else the top. O(n * gaps).
    #[must_use]
    pub fn best_fit(&self, timeline: &Timeline) -> Vec<Offset> {
        let lives = self.buffer_lifetimes(timeline);
        let mut heap = Heap::default();
        let mut offsets = vec![0; self.buffers.len()];
        let mut requests: Vec<_> = self.allocation_moments(timeline);
        let mut frees: Vec<_> = lives.iter().enumerate().map(|(id, life)| (life.1, id)).collect();
        frees.sort_unstable();
        let mut frees = frees.into_iter().peekable();
        requests.sort_by_key(|&(moment, _)| moment);
        for (moment, id) in requests {
            while let Some((_, freed)) = frees.next_if(|&(end, _)| end <= moment) {
                heap.free(offsets[freed], self.buffers[freed].bytes);
            }
            offsets[id] = heap.allocate(self.buffers[id].bytes);
        }
        offsets.into_iter().map(Offset::new).collect()
    }

    /// Moment and buffer of every allocation; within one moment in the order of the engines.
    fn allocation_moments(&self, timeline: &Timeline) -> Vec<(u32, usize)> {
        let mut requests: Vec<_> = self.resident.iter().map(|id| (0, id.index())).collect();
        for engine in Engine::ALL {
            for (event, span) in self.events_of(engine).iter().zip(timeline.spans_of(engine)) {
                requests.extend(event.writes.iter().map(|id| (span.began, id.index())));
            }
        }
        requests
    }
}

fn latest_completions(one: Completions, other: Completions) -> Completions {
    [0, 1, 2].map(|engine| one[engine].max(other[engine]))
}

impl Event {
    /// The time in a timeline at which an event's conditions are met, given its index on its engine.
    fn ready_time(&self, place: usize, timeline: &Timeline) -> f64 {
        let mut complete = self.awaited_events();
        let own = &mut complete[self.task.engine().index()];
        *own = (*own).max(u32::try_from(place).unwrap_or(u32::MAX));
        let end = |(engine, count): (Engine, u32)| match count.checked_sub(1) {
            Some(last) => timeline.spans_of(engine)[last as usize].end,
            None => 0.0,
        };
        let started = self.with.map_or(0.0, |with| timeline.spans_of(Engine::Compute)[with as usize].start);
        Engine::ALL.into_iter().zip(complete).map(end).fold(started, f64::max)
    }
}

/// An address range with gaps.
#[derive(Default)]
struct Heap {
    /// Gaps below the top: start and size. Gaps touch neither each other nor the top.
    gaps: BTreeMap<u64, u64>,
    top: u64,
}

impl Heap {
    fn allocate(&mut self, bytes: Bytes) -> u64 {
        let size = bytes.get();
        let fits = self.gaps.iter().filter(|&(_, &gap)| gap >= size);
        match fits.min_by_key(|&(&from, &gap)| (gap, from)).map(|(&from, &gap)| (from, gap)) {
            Some((from, gap)) => {
                self.gaps.remove(&from);
                if gap > size {
                    self.gaps.insert(from + size, gap - size);
                }
                from
            }
            None => self.extend_top(size),
        }
    }

    fn extend_top(&mut self, size: u64) -> u64 {
        let from = self.top;
        self.top += size;
        from
    }

    fn free(&mut self, offset: u64, bytes: Bytes) {
        let (mut from, mut to) = (offset, offset + bytes.get());
        if let Some((&before, &gap)) = self.gaps.range(..from).next_back()
            && before + gap == from
        {
            self.gaps.remove(&before);
            from = before;
        }
        if let Some(gap) = self.gaps.remove(&to) {
            to += gap;
        }
        if to == self.top {
            self.top = from;
        } else {
            self.gaps.insert(from, to - from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(size: u64) -> Bytes {
        Bytes::new(size)
    }

    #[test]
    fn the_heap_takes_the_smallest_gap_and_merges() {
        let mut heap = Heap::default();
        let offsets = [4, 2, 3, 1].map(|size| heap.allocate(bytes(size)));
        assert_eq!(offsets, [0, 4, 6, 9]);
        heap.free(0, bytes(4));
        heap.free(6, bytes(3));
        assert_eq!((heap.allocate(bytes(3)), heap.allocate(bytes(1))), (6, 0));
        heap.free(9, bytes(1));
        heap.free(6, bytes(3));
        heap.free(0, bytes(1));
        assert_eq!((heap.top, heap.gaps.clone()), (6, BTreeMap::from([(0, 4)])));
        heap.free(4, bytes(2));
        assert_eq!((heap.top, heap.gaps.len()), (0, 0));
    }
}
