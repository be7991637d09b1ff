//! Buffers and the boxes around them: what boxing works on.

use planlab_dsa::Instance;

/// A buffer or a box: steps `[start, end)` and a height, in units of the instance's granularity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) height: u64,
    /// Its number: the buffers of the instance first, by id, then the dummy, if there is one, then boxes.
    pub(super) number: usize,
}

/// The buffers of an instance. Sizes are divided by their common divisor: the theorems count in heights of 1, and the
/// plan must not depend on the unit.
pub(super) fn buffer_items(instance: &Instance) -> Vec<Item> {
    let grain = instance.offset_granularity();
    let item = |(number, buffer): (usize, &planlab_dsa::Buffer)| {
        let (start, end) = buffer.live.into();
        Item { start, end, height: buffer.size.get() / grain, number }
    };
    instance.buffers().iter().enumerate().map(item).collect()
}

/// The boxes of one round, with their contents.
#[derive(Clone, Debug)]
pub(super) struct Boxes {
    /// The number of items that are not boxes.
    pub(super) originals: usize,
    /// For each box, where its contents begin and end.
    ranges: Vec<(usize, usize)>,
    contents: Vec<Item>,
}

impl Boxes {
    pub(super) const fn new(originals: usize) -> Self {
        Self { originals, ranges: Vec::new(), contents: Vec::new() }
    }

    /// Puts a box of some height around items; it lives as long as any of them.
    pub(super) fn close_box(&mut self, height: u64, items: impl IntoIterator<Item = Item>) -> Item {
        let from = self.contents.len();
        self.contents.extend(items);
        let inside = &self.contents[from..];
        let start = inside.iter().map(|item| item.start).min().unwrap_or(0);
        let end = inside.iter().map(|item| item.end).max().unwrap_or(0);
        self.ranges.push((from, self.contents.len()));
        Item { start, end, height, number: self.originals + self.ranges.len() - 1 }
    }

    /// The contents of a box; `None` if the item is not a box.
    pub(super) fn box_contents(&self, item: Item) -> Option<&[Item]> {
        let (from, to) = *self.ranges.get(item.number.checked_sub(self.originals)?)?;
        Some(&self.contents[from..to])
    }
}

/// Items; some of them are boxes.
#[derive(Clone, Debug)]
pub(super) struct Boxed {
    pub(super) boxes: Boxes,
    pub(super) items: Vec<Item>,
}

/// Rounds down to a whole number; 0 for negative numbers, the greatest number for values too large.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
pub(super) const fn round_down(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_spans_what_lies_in_it() {
        let item = |start, end, number| Item { start, end, height: 1, number };
        let mut boxes = Boxes::new(2);
        let inner = boxes.close_box(4, [item(3, 5, 0)]);
        let outer = boxes.close_box(9, [inner, item(1, 2, 1)]);
        assert_eq!(outer, Item { start: 1, end: 5, height: 9, number: 3 });
        assert_eq!(boxes.box_contents(outer), Some(&[inner, item(1, 2, 1)][..]));
        assert_eq!(boxes.box_contents(inner), Some(&[item(3, 5, 0)][..]));
        assert_eq!(boxes.box_contents(item(1, 2, 1)), None);
    }

    #[test]
    fn whole_numbers_saturate() {
        assert_eq!([-1.0, 2.9, 1e300, f64::NAN].map(round_down), [0, 2, u64::MAX, 0]);
    }
}
