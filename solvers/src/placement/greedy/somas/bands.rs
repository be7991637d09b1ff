//! The address space in bands, each as high as its first block.
//!
//! ```text
//!   address
//!     ^  . . . . . . . . .   open: a block that no band takes begins a new one here
//!     |  [===] [======]      band 2: the rest
//!     |  [==]  [====] [==]   band 1, as high as its first block
//!     |  [=========] [===]   band 0
//!     +------------------> step
//! ```
//!
//! A single object is one band without an end.
//!
//! # Complexity
//!
//! For b bands and r rooms that are free for a block: O(log b) for each room to find the band in which it begins, then
//! a look at each band that it spans and that may hold the block. A run of 64 bands is skipped at once if all are too
//! low. So O(r (log b + b / 64 + 64)) if few bands are high enough, O(r b) at worst. A new band is O(1); bands take
//! O(b) of memory.

use planlab_dsa::Alignment;

use crate::trees::Room;

/// The number of bands that are skipped at once if all of them are too low.
const RUN: usize = 64;

/// The gap of a band that a block takes; ties go to the lower gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fitting {
    /// The smallest.
    Best,
    /// The one with the lowest edge.
    Smallest,
}

impl Fitting {
    /// The fittings of a release build, in its order.
    pub(super) const ALL: [Self; 2] = [Self::Best, Self::Smallest];
}

/// A gap of a band that holds the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spot {
    band: usize,
    /// The lower edge of the gap.
    edge: u64,
    /// Bytes of the gap minus the block's.
    slack: u64,
    /// The lowest aligned offset in the gap.
    offset: u64,
}

impl Spot {
    /// The smaller, the better.
    const fn key(&self, fitting: Fitting) -> (u64, u64) {
        match fitting {
            Fitting::Best => (self.slack, self.edge),
            Fitting::Smallest => (self.edge, self.slack),
        }
    }
}

/// Bands from address 0 up, stacked without gaps.
#[derive(Clone, Debug, Default)]
pub(super) struct Bands {
    ends: Vec<u64>,
    /// The height of the highest band in each run of bands.
    highest: Vec<u64>,
}

impl Bands {
    /// One band without an end.
    pub(super) fn single_object() -> Self {
        Self { ends: vec![u64::MAX], highest: vec![u64::MAX] }
    }

    /// The start of the space above the last band.
    fn top_offset(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    fn start_of(&self, band: usize) -> u64 {
        band.checked_sub(1).map_or(0, |below| self.ends[below])
    }

    /// The offset of a block: in the lowest band that has a gap for it, at the gap that the band's fitting prefers. If
    /// no band has one, the block lies above all bands and begins a new one. `rooms` are the offsets that are free for
    /// the block, ascending; the last has no end.
    pub(super) fn take_spot(
        &mut self,
        rooms: impl Iterator<Item = Room>,
        size: u64,
        align: Alignment,
        fitting: impl Fn(usize) -> Fitting,
    ) -> u64 {
        let mut best: Option<Spot> = None;
        for room in rooms {
            if best.is_some_and(|best| self.is_last(best, room, fitting(best.band))) {
                break;
            }
            let Some(spot) = self.first_spot(room, size, align) else { continue };
            let key = |spot: &Spot| (spot.band, spot.key(fitting(spot.band)));
            if best.is_none_or(|best| key(&spot) < key(&best)) {
                best = Some(spot);
            }
        }
        let Spot { band, offset, .. } = best.expect("the last room has no end");
        if band == self.ends.len() {
            self.push_band(offset + size);
        }
        offset
    }

    /// Whether no spot in `room` or above can be better than `best`.
    fn is_last(&self, best: Spot, room: Room, fitting: Fitting) -> bool {
        match self.ends.get(best.band) {
            Some(&end) => end <= room.low || fitting == Fitting::Smallest || best.slack == 0,
            None => true,
        }
    }

    /// The spot of a room in the lowest band in which it has one.
    fn first_spot(&self, room: Room, size: u64, align: Alignment) -> Option<Spot> {
        let high = room.high.unwrap_or(u64::MAX);
        let mut band = self.ends.partition_point(|&end| end - size.min(end) < room.low);
        while band < self.ends.len() && self.start_of(band) <= high {
            if band.is_multiple_of(RUN) && self.highest[band / RUN] < size {
                band += RUN;
                continue;
            }
            let last = self.ends[band].checked_sub(size);
            let spot = last.and_then(|last| self.spot_in_band(band, room.low, high.min(last), align));
            if spot.is_some() {
                return spot;
            }
            band += 1;
        }
        self.spot_in_band(self.ends.len(), room.low, high, align)
    }

    /// The gap from `low` to the last offset `high`, cut off at the start of a band.
    fn spot_in_band(&self, band: usize, low: u64, high: u64, align: Alignment) -> Option<Spot> {
        let edge = low.max(self.start_of(band));
        let offset = align.round_up(edge).filter(|&offset| offset <= high)?;
        Some(Spot { band, edge, slack: high - edge, offset })
    }

    fn push_band(&mut self, end: u64) {
        let height = end - self.top_offset();
        if self.ends.len().is_multiple_of(RUN) {
            self.highest.push(height);
        } else if let Some(highest) = self.highest.last_mut() {
            *highest = height.max(*highest);
        }
        self.ends.push(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(low: u64, high: Option<u64>) -> Room {
        Room { low, high }
    }

    fn take(bands: &mut Bands, rooms: &[Room], size: u64) -> u64 {
        bands.take_spot(rooms.iter().copied(), size, Alignment::ONE, |_| Fitting::Best)
    }

    /// A band for each size.
    fn bands(sizes: impl Iterator<Item = u64>) -> Bands {
        let mut bands = Bands::default();
        for size in sizes {
            let top = bands.top_offset();
            assert_eq!(take(&mut bands, &[room(top, None)], size), top);
        }
        bands
    }

    #[test]
    fn what_no_band_takes_begins_a_new_one() {
        let mut bands = bands([10, 8, 6].into_iter());
        let rooms = [room(5, Some(5)), room(12, Some(12)), room(20, None)];
        assert_eq!(take(&mut bands, &rooms, 7), 24);
        assert_eq!(bands.ends, [10, 18, 24, 31]);
        let align = Alignment::new(16).expect("positive");
        assert_eq!(bands.take_spot([room(25, None)].into_iter(), 3, align, |_| Fitting::Best), 32);
        assert_eq!(bands.ends, [10, 18, 24, 31, 35]);
    }

    #[test]
    fn runs_of_low_bands_are_passed_over() {
        let mut bands = bands((0..200).map(|band| if band == 150 { 5 } else { 1 }));
        assert_eq!(take(&mut bands, &[room(0, None)], 4), 150);
        assert_eq!(take(&mut bands, &[room(0, None)], 6), 204);
    }
}
