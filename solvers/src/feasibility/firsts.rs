//! The two lowest offsets of each section, filled in ascending order 64 sections at a time.

use super::item::{NEVER, Span};

/// For each section, the two lowest offsets of its items, and the item of the first.
pub(super) struct Firsts {
    pub(super) item: Vec<u32>,
    pub(super) low: Vec<u64>,
    pub(super) second: Vec<u64>,
    /// Sections without a first item, and without a second.
    open: [Vec<u64>; 2],
}

impl Firsts {
    pub(super) fn new(sections: usize) -> Self {
        let open = vec![0; sections.div_ceil(64)];
        let offsets = vec![0; sections];
        Self { item: vec![0; sections], low: offsets.clone(), second: offsets, open: [open.clone(), open] }
    }

    /// Forgets the items of these sections.
    pub(super) fn clear(&mut self, hull: Span) {
        self.low[hull.sections()].fill(NEVER);
        self.second[hull.sections()].fill(NEVER);
        let words = hull.start as usize / 64..(hull.end as usize).div_ceil(64);
        for open in &mut self.open {
            for (word, bits) in words.clone().zip(&mut open[words.clone()]) {
                *bits = range_mask(hull, word);
            }
        }
    }

    /// Takes an item with its lowest offset; offsets come in ascending order.
    pub(super) fn take_item(&mut self, span: Span, item: u32, low: u64) {
        let [first, second] = &mut self.open;
        for word in span.start as usize / 64..(span.end as usize).div_ceil(64) {
            if second[word] == 0 {
                continue;
            }
            let mask = range_mask(span, word);
            let mut new = first[word] & mask;
            let mut seconds = second[word] & mask & !new;
            first[word] &= !new;
            second[word] &= !seconds;
            while new != 0 {
                let section = word * 64 + new.trailing_zeros() as usize;
                (self.item[section], self.low[section]) = (item, low);
                new &= new - 1;
            }
            while seconds != 0 {
                self.second[word * 64 + seconds.trailing_zeros() as usize] = low;
                seconds &= seconds - 1;
            }
        }
    }
}

/// The bits of a word that lie in the span.
fn range_mask(span: Span, word: usize) -> u64 {
    let from = (span.start as usize).saturating_sub(word * 64).min(63);
    let to = (span.end as usize - word * 64).min(64);
    let upto = if to == 64 { u64::MAX } else { (1 << to) - 1 };
    upto & (u64::MAX << from)
}
