//! Where a framework put the buffers by itself: addresses of its own, which need not be a plan.

use planlab_dsa::Instance;

use crate::figures::layout::{Layout, Rectangle};

/// Where a framework put each buffer, as it says itself.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OwnPlacement {
    /// The framework's name.
    pub name: String,
    /// The address of each buffer, in bytes; `None` if that is not known.
    pub places: Vec<Option<u64>>,
    /// The pieces of memory that it held; empty if it does not say.
    pub held: Vec<Held>,
}

/// A piece of memory that a framework held for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its first byte.
    pub address: u64,
    /// Its bytes.
    pub size: u64,
    /// The steps of the instance in which it was held, half-open.
    pub steps: (u32, u32),
}

impl OwnPlacement {
    /// A placement; one address or `None` for each buffer.
    #[must_use]
    pub fn new(name: impl Into<String>, places: Vec<Option<u64>>, held: Vec<Held>) -> Self {
        Self { name: name.into(), places, held }
    }

    /// The rectangles of the buffers that have a place, and the memory that was held. Ranges of addresses that nothing ever
    /// used are cut out: a device hands out segments far from each other.
    pub(crate) fn layout_with_held(&self, instance: &Instance) -> (Layout, Vec<Held>) {
        let placed = || instance.buffers().iter().zip(instance.ids()).zip(&self.places);
        let buffers = placed().filter_map(|((buffer, _), place)| Some(((*place)?, buffer.size.get())));
        let held = self.held.iter().map(|held| (held.address, held.size));
        let ranges = Ranges::from_spans(buffers.chain(held).collect());
        let rectangles = placed().filter_map(|((buffer, id), place)| {
            let base = ranges.packed_address((*place)?);
            Some(buffer.active_pieces().map(move |piece| Rectangle {
                start: piece.steps.start().get(),
                end: piece.steps.end().get(),
                low: base.saturating_add(piece.window.start.get()),
                high: base.saturating_add(piece.window.end.get()),
                id,
            }))
        });
        let rectangles = rectangles.flatten().collect();
        let held =
            self.held.iter().map(|held| Held { address: ranges.packed_address(held.address), ..*held });
        let borders = ranges.0.iter().skip(1).map(|range| range.place).collect();
        let horizon = instance.horizon().get();
        (Layout { rectangles, height: ranges.packed_top(), horizon, borders }, held.collect())
    }
}

/// A range of addresses that something used at some time.
struct Range {
    from: u64,
    to: u64,
    /// Where it begins once the unused ranges below it are cut out.
    place: u64,
}

/// Used ranges, from the lowest.
struct Ranges(Vec<Range>);

impl Ranges {
    fn from_spans(mut spans: Vec<(u64, u64)>) -> Self {
        spans.sort_unstable();
        let mut ranges: Vec<Range> = Vec::new();
        for (from, size) in spans {
            let to = from.saturating_add(size);
            match ranges.last_mut() {
                Some(last) if from <= last.to => last.to = last.to.max(to),
                last => {
                    let place = last.map_or(0, |last| last.place + (last.to - last.from));
                    ranges.push(Range { from, to, place });
                }
            }
        }
        Self(ranges)
    }

    /// Where an address of one of the ranges lies.
    fn packed_address(&self, address: u64) -> u64 {
        let after = self.0.partition_point(|range| range.from <= address);
        let range = after.checked_sub(1).and_then(|at| self.0.get(at));
        range.map_or(0, |range| range.place + (address - range.from))
    }

    fn packed_top(&self) -> u64 {
        self.0.last().map_or(0, |last| last.place + (last.to - last.from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::samples;

    #[test]
    fn addresses_that_nothing_used_are_cut_out() {
        let instance = samples::instance(&[(4, 0, 2), (8, 1, 3), (2, 2, 4), (1, 0, 1)]);
        let held = vec![
            Held { address: 1_000, size: 16, steps: (0, 4) },
            Held { address: 9_000_000, size: 32, steps: (2, 4) },
        ];
        let places = vec![Some(1_002), Some(1_008), Some(9_000_004), None];
        let (layout, held) = OwnPlacement::new("PyTorch", places, held).layout_with_held(&instance);
        let lows: Vec<_> = layout.rectangles.iter().map(|r| (r.id.index(), r.low, r.high)).collect();
        assert_eq!(lows, [(0, 2, 6), (1, 8, 16), (2, 20, 22)], "the last one has no place");
        assert_eq!((layout.height, &layout.borders[..]), (48, &[16][..]));
        assert_eq!(held.iter().map(|held| held.address).collect::<Vec<_>>(), [0, 16]);
    }
}
