//! Which memory the allocator held, and when.
//!
//! Whole segments come and go by `segment_alloc` and `segment_free`; segments that grow by `segment_map` and
//! `segment_unmap`, whose ranges need not be the same. What is taken back but was never seen to come, and what the
//! final segments have beyond that, was there before the recording.

use std::collections::BTreeMap;

use crate::formats::import::Segment;

/// Memory that is held now, and all that was.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// By the first byte, each with the step at which it came; they do not overlap.
    now: BTreeMap<u64, (Piece, u64)>,
    all: Vec<Segment>,
}

/// A range of addresses that an event or a final segment names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) stream: u64,
    pub(crate) pool: (u64, u64),
    pub(crate) is_mapped: bool,
}

impl Piece {
    const fn end(self) -> u64 {
        self.address.saturating_add(self.size)
    }

    /// The part between two addresses.
    const fn part(self, from: u64, to: u64) -> Self {
        Self { address: from, size: to - from, ..self }
    }

    fn as_segment(self, steps: (u64, u64)) -> Segment {
        let Self { address, size, stream, pool, is_mapped } = self;
        Segment { address, size, steps, stream, pool, is_mapped }
    }
}

impl Held {
    /// Memory comes at a step.
    pub(crate) fn take_piece(&mut self, piece: Piece, step: u64) {
        // What a hole in the history kept from being given back was given back by now.
        self.cut_range(piece, step);
        self.keep(piece.part(piece.address, piece.end()), step);
    }

    fn keep(&mut self, piece: Piece, since: u64) {
        if piece.size > 0 {
            self.now.insert(piece.address, (piece, since));
        }
    }

    /// Memory goes at a step. What is not known to be there was there from the beginning.
    pub(crate) fn give_back(&mut self, piece: Piece, step: u64) {
        for gap in self.cut_range(piece, step) {
            self.all.push(gap.as_segment((0, step)));
        }
    }

    /// Ends what lies in a range; gives the parts of the range in which nothing lay.
    fn cut_range(&mut self, piece: Piece, step: u64) -> Vec<Piece> {
        let before = self.now.range(..piece.address).next_back().map(|(_, &held)| held);
        let before = before.filter(|(held, _)| held.end() > piece.address);
        let inside = self.now.range(piece.address..piece.end()).map(|(_, &held)| held);
        let inside: Vec<(Piece, u64)> = before.into_iter().chain(inside).collect();
        let mut gaps = Vec::new();
        let mut at = piece.address;
        for (held, since) in inside {
            self.now.remove(&held.address);
            let (low, high) = (held.address.max(piece.address), held.end().min(piece.end()));
            self.end_range(held.part(low, high), since, step);
            self.keep(held.part(held.address, low), since);
            self.keep(held.part(high, held.end()), since);
            if at < low {
                gaps.push(piece.part(at, low));
            }
            at = high;
        }
        if at < piece.end() {
            gaps.push(piece.part(at, piece.end()));
        }
        gaps
    }

    fn end_range(&mut self, piece: Piece, since: u64, step: u64) {
        if since < step {
            self.all.push(piece.as_segment((since, step)));
        }
    }

    /// All that was held until `end`, given what is held then.
    pub(crate) fn finish_segments(mut self, last: &[Piece], end: u64) -> Vec<Segment> {
        let mut held = std::mem::take(&mut self.now);
        for &(piece, since) in held.values() {
            self.end_range(piece, since, end);
        }
        for &piece in last {
            self.now = held;
            for gap in self.cut_range(piece, 0) {
                self.all.push(gap.as_segment((0, end)));
            }
            held = std::mem::take(&mut self.now);
        }
        self.all.sort_by_key(|segment| (segment.steps, segment.address));
        self.all
    }
}

/// The most bytes that were held at once.
pub(crate) fn reserved_peak(segments: &[Segment]) -> u64 {
    most_at_once(segments.iter().map(|segment| (segment.steps, segment.size)))
}

/// The most bytes at once of what has steps and a size.
pub(crate) fn most_at_once(all: impl Iterator<Item = ((u64, u64), u64)>) -> u64 {
    let both = |((start, end), size)| [(start, i128::from(size)), (end, -i128::from(size))];
    let mut changes: Vec<(u64, i128)> = all.flat_map(both).collect();
    changes.sort_unstable();
    let (mut held, mut most) = (0_i128, 0_i128);
    for group in changes.chunk_by(|a, b| a.0 == b.0) {
        held += group.iter().map(|(_, bytes)| bytes).sum::<i128>();
        most = most.max(held);
    }
    u64::try_from(most).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(address: u64, size: u64) -> Piece {
        Piece { address, size, stream: 0, pool: (0, 0), is_mapped: false }
    }

    fn shown(segments: &[Segment]) -> Vec<(u64, u64, u64, u64)> {
        segments.iter().map(|one| (one.address, one.size, one.steps.0, one.steps.1)).collect()
    }

    #[test]
    fn segments_come_and_go() {
        let mut held = Held::default();
        held.take_piece(piece(100, 50), 1);
        held.take_piece(piece(200, 10), 2);
        held.give_back(piece(100, 50), 4);
        let all = held.finish_segments(&[piece(200, 10), piece(300, 5)], 9);
        assert_eq!(shown(&all), [(300, 5, 0, 9), (100, 50, 1, 4), (200, 10, 2, 9)]);
        assert_eq!(reserved_peak(&all), 65);
    }

    #[test]
    fn what_goes_without_having_come_was_there() {
        let mut held = Held::default();
        held.give_back(piece(100, 50), 3);
        held.take_piece(piece(100, 20), 5);
        let all = held.finish_segments(&[piece(100, 20)], 6);
        assert_eq!(shown(&all), [(100, 50, 0, 3), (100, 20, 5, 6)]);
        assert_eq!(reserved_peak(&all), 50);
    }

    #[test]
    fn mapped_ranges_are_cut_and_joined() {
        let mut held = Held::default();
        held.take_piece(piece(0, 10), 1);
        held.take_piece(piece(10, 10), 2);
        held.give_back(piece(5, 10), 3);
        held.give_back(piece(18, 4), 4);
        let all = held.finish_segments(&[piece(0, 5), piece(15, 3), piece(30, 2)], 9);
        let expected = [
            (20, 2, 0, 4),
            (30, 2, 0, 9),
            (5, 5, 1, 3),
            (0, 5, 1, 9),
            (10, 5, 2, 3),
            (18, 2, 2, 4),
            (15, 3, 2, 9),
        ];
        assert_eq!(shown(&all), expected);
        assert_eq!(reserved_peak(&all), 24);
    }

    #[test]
    fn the_end_of_all_addresses_is_an_end() {
        let mut held = Held::default();
        held.take_piece(piece(u64::MAX - 1, 100), 1);
        held.give_back(piece(0, u64::MAX), 2);
        assert_eq!(shown(&held.finish_segments(&[], 3)), [(0, u64::MAX - 1, 0, 2), (u64::MAX - 1, 1, 1, 2)]);
    }
}
