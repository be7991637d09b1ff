//! Records which addresses are in use at which times: the structure under every greedy planner.
//!
//! Placed rectangles (a run of columns times a range of addresses) live in a segment tree over the columns. A node
//! keeps two merged unions of address ranges: `cover`, of the rectangles that cover the node's columns but not its
//! parent's, and `touch`, of every rectangle that meets the node's columns. A run of columns is blocked by `touch` of
//! the O(log n) nodes that make it up and by `cover` of the nodes above them. Leaves are several columns wide and keep
//! the rectangles that meet only a part of them one by one.
//!
//! ```text
//!            [-------- 0..8 --------]        query 2..6: touch of (2..4) and (4..6),
//!       [--- 0..4 ---]    [--- 4..8 ---]     cover of (0..4), (4..8) and (0..8)
//!      [0..2]   [2..4]    [4..6]   [6..8]
//! ```
//!
//! There is no list of conflicts: if plans are dense the unions are short, no matter how many buffers they contain. On
//! traces like a net's (a thousand buffers live at a step), 1,000,000 buffers take 2 to 20 s, depending on order and
//! rule, and under 400 MiB.
//!
//! It is slow if a large part of all buffers is live at one step, as with live ranges drawn at random over the whole
//! horizon: the unions hold thousands of spans, and every buffer has hundreds of holes to compare. 100,000 such buffers
//! take about 5 s by first fit and 15 s by best fit, 1,000,000 a hundred times as long. The same holds for best fit in
//! orders by size on nets so deep that tens of thousands of activations are live at once.
//!
//! # Complexity
//!
//! For n rectangles and unions of at most k ranges: insertion O(log n * (log k + k / 64)) (the moved bytes of a sorted
//! array). The lowest free offset takes O(j * log n * log k) if it is pushed up j times. O(n log n) memory at worst.

use std::borrow::Cow;
use std::ops::Range;

use planlab_dsa::Alignment;

const LEAF: usize = 16;

/// A range of addresses, `start < end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Span {
    const fn bytes(self) -> u64 {
        self.end - self.start
    }
}

/// A union of spans: ascending, disjoint and not adjacent.
#[derive(Clone, Debug, Default)]
struct Union {
    spans: Vec<Span>,
    bytes: u64,
}

impl Union {
    fn add_span(&mut self, new: Span) {
        let spans = &mut self.spans;
        let first = spans.partition_point(|span| span.end < new.start);
        let over = first + spans[first..].partition_point(|span| span.start <= new.end);
        if first == over {
            spans.insert(first, new);
            self.bytes += new.bytes();
            return;
        }
        let (low, high) = (spans[first], spans[over - 1]);
        let all = Span { start: low.start.min(new.start), end: high.end.max(new.end) };
        let known: u64 = spans[first..over].iter().map(|span| span.bytes()).sum();
        spans[first] = all;
        spans.drain(first + 1..over);
        self.bytes += all.bytes() - known;
    }
}

#[derive(Clone, Debug, Default)]
struct Node {
    cover: Union,
    touch: Union,
}

/// A rectangle that meets a leaf's columns without covering them.
#[derive(Clone, Copy, Debug)]
struct Loose {
    span: Span,
    columns: (u32, u32),
}

/// The rectangles placed so far, over a fixed number of columns.
#[derive(Clone, Debug)]
pub(crate) struct Occupancy {
    /// A perfect binary tree: the root at 1, the leaves in the last half.
    nodes: Vec<Node>,
    loose: Vec<Vec<Loose>>,
}

impl Occupancy {
    /// An empty structure over `columns` columns.
    pub(crate) fn new(columns: usize) -> Self {
        let leaves = columns.div_ceil(LEAF).next_power_of_two();
        Self { nodes: vec![Node::default(); 2 * leaves], loose: vec![Vec::new(); leaves] }
    }

    fn width(&self) -> usize {
        self.loose.len() * LEAF
    }

    /// Places a rectangle. Rectangles may overlap.
    pub(crate) fn insert_rectangle(&mut self, columns: Range<usize>, span: Span) {
        let all = 0..self.width();
        self.insert_below(1, &all, &columns, span);
    }

    fn insert_below(&mut self, node: usize, own: &Range<usize>, columns: &Range<usize>, span: Span) {
        if columns.end <= own.start || own.end <= columns.start {
            return;
        }
        self.nodes[node].touch.add_span(span);
        if columns.start <= own.start && own.end <= columns.end {
            self.nodes[node].cover.add_span(span);
        } else if node >= self.loose.len() {
            self.insert_loose(node - self.loose.len(), columns, span);
        } else {
            let middle = own.start.midpoint(own.end);
            self.insert_below(2 * node, &(own.start..middle), columns, span);
            self.insert_below(2 * node + 1, &(middle..own.end), columns, span);
        }
    }

    fn insert_loose(&mut self, leaf: usize, columns: &Range<usize>, span: Span) {
        let number = |column: usize| u32::try_from(column).expect("there are fewer columns than buffers");
        let columns = (number(columns.start), number(columns.end));
        let list = &mut self.loose[leaf];
        let at = list.partition_point(|loose| loose.span < span);
        list.insert(at, Loose { span, columns });
    }

    /// Adds what is placed in `columns` to the barriers of one part of a buffer: the bytes `window`, relative to the
    /// buffer's offset.
    pub(crate) fn block_window<'o>(&'o self, columns: Range<usize>, window: Span, blocked: &mut Blocked<'o>) {
        let mut gather = Gather { columns, window, loose: Vec::new(), blocked };
        self.block_below(1, 0..self.width(), &mut gather);
        let Gather { loose, blocked, .. } = gather;
        blocked.add_spans(loose, window);
    }

    fn block_below<'o>(&'o self, node: usize, own: Range<usize>, gather: &mut Gather<'_, 'o>) {
        let Range { start, end } = gather.columns;
        let here = &self.nodes[node];
        if end <= own.start || own.end <= start || here.touch.spans.is_empty() {
            return;
        }
        if start <= own.start && own.end <= end {
            gather.blocked.push_union(&here.touch, gather.window);
            return;
        }
        if !here.cover.spans.is_empty() {
            gather.blocked.push_union(&here.cover, gather.window);
        }
        if node >= self.loose.len() {
            let overlaps = |l: &&Loose| (l.columns.0 as usize) < end && start < l.columns.1 as usize;
            let loose = &self.loose[node - self.loose.len()];
            gather.loose.extend(loose.iter().filter(overlaps).map(|loose| loose.span));
        } else {
            let middle = own.start.midpoint(own.end);
            self.block_below(2 * node, own.start..middle, gather);
            self.block_below(2 * node + 1, middle..own.end, gather);
        }
    }
}

struct Gather<'b, 'o> {
    columns: Range<usize>,
    window: Span,
    loose: Vec<Span>,
    blocked: &'b mut Blocked<'o>,
}

/// One union of spans, and the bytes of the buffer that must stay clear of it.
#[derive(Clone, Debug)]
struct Barrier<'o> {
    spans: Cow<'o, [Span]>,
    bytes: u64,
    window: Span,
    /// Every span before it ends at or below the window; queries come with ascending offsets.
    at: usize,
}

impl Barrier<'_> {
    /// The first span that ends above the window at `offset`.
    fn next_span(&mut self, offset: u64) -> Option<Span> {
        let low = offset + self.window.start;
        let spans = &self.spans[self.at..];
        if spans.first().is_some_and(|span| span.end <= low) {
            // Most steps are short: look nearby first.
            let mut reach = 1;
            while reach < spans.len() && spans[reach].end <= low {
                reach *= 2;
            }
            let near = &spans[reach / 2..spans.len().min(reach + 1)];
            self.at += reach / 2 + near.partition_point(|span| span.end <= low);
        }
        self.spans.get(self.at).copied()
    }

    /// The lowest aligned offset, from `offset` on, that is clear.
    fn lowest_clear(&mut self, mut offset: u64, align: Alignment) -> u64 {
        while let Some(span) = self.next_span(offset)
            && span.start < offset + self.window.end
        {
            // Skip all gaps that are too small at once.
            let too_small = |pair: &[Span]| pair[1].start - pair[0].end < self.window.bytes();
            self.at += self.spans[self.at..].windows(2).take_while(|pair| too_small(pair)).count();
            offset = round_up(align, self.spans[self.at].end - self.window.start);
        }
        offset
    }

    /// The highest offset up to which it stays clear, from `offset`, which must be clear; `None`: there is no limit.
    fn clear_ceiling(&mut self, offset: u64) -> Option<u64> {
        Some(self.next_span(offset)?.start - self.window.end)
    }
}

fn round_up(align: Alignment, offset: u64) -> u64 {
    if align == Alignment::ONE {
        return offset; // Spares the division in the innermost loop.
    }
    align.round_up(offset).expect("an instance leaves room for all padding")
}

/// The offsets that a buffer cannot take, as barriers from what blocks its parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocked<'o> {
    /// The one that blocks most comes first: it is the most likely to block the next offset, too.
    barriers: Vec<Barrier<'o>>,
    looks: u64,
}

/// A maximal range of free offsets, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) low: u64,
    /// The highest; `None` above everything that is placed.
    pub(crate) high: Option<u64>,
}

impl<'o> Blocked<'o> {
    fn push_barrier(&mut self, spans: Cow<'o, [Span]>, bytes: u64, window: Span) {
        let at = self.barriers.partition_point(|barrier| barrier.bytes >= bytes);
        self.barriers.insert(at, Barrier { spans, bytes, window, at: 0 });
    }

    fn push_union(&mut self, union: &'o Union, window: Span) {
        self.push_barrier(Cow::Borrowed(&union.spans), union.bytes, window);
    }

    /// Adds spans in any order.
    pub(crate) fn add_spans(&mut self, mut spans: Vec<Span>, window: Span) {
        if spans.is_empty() {
            return;
        }
        // Two ascending runs, one of each leaf: a stable sort merges them.
        spans.sort();
        spans.dedup_by(|next, last| {
            let meets = next.start <= last.end;
            if meets {
                last.end = last.end.max(next.end);
            }
            meets
        });
        let bytes = spans.iter().map(|span| span.bytes()).sum();
        self.push_barrier(Cow::Owned(spans), bytes, window);
    }

    /// How often a barrier was examined: the work done so far.
    pub(crate) const fn look_count(&self) -> u64 {
        self.looks
    }

    /// The lowest free aligned offset from `from` on. Later queries must not ask for a lower one.
    pub(crate) fn lowest_free(&mut self, from: u64, align: Alignment) -> u64 {
        let mut offset = round_up(align, from);
        let (mut index, mut cleared) = (0, None);
        while index < self.barriers.len() {
            if cleared != Some(index) {
                self.looks += 1;
                let next = self.barriers[index].lowest_clear(offset, align);
                if next != offset {
                    (offset, cleared, index) = (next, Some(index), 0);
                    continue;
                }
            }
            index += 1;
        }
        offset
    }

    /// The free offsets from `from` on as rooms, ascending; the last has no end. Each room costs a look at every
    /// barrier; a buffer meets as many rooms as there are holes of its size below it.
    pub(crate) fn free_rooms(&mut self, from: u64) -> impl Iterator<Item = Room> + use<'_, 'o> {
        let mut from = Some(from);
        std::iter::from_fn(move || {
            let low = self.lowest_free(from?, Alignment::ONE);
            self.looks += self.barriers.len() as u64;
            let high = self.barriers.iter_mut().filter_map(|barrier| barrier.clear_ceiling(low)).min();
            from = high.map(|high| high + 1);
            Some(Room { low, high })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::testing::pseudo_random;

    fn span(start: u64, end: u64) -> Span {
        Span { start, end }
    }

    #[test]
    fn unions_merge_what_touches() {
        let mut union = Union::default();
        for (new, expected) in [
            (span(4, 6), vec![span(4, 6)]),
            (span(8, 9), vec![span(4, 6), span(8, 9)]),
            (span(0, 2), vec![span(0, 2), span(4, 6), span(8, 9)]),
            (span(6, 8), vec![span(0, 2), span(4, 9)]),
            (span(1, 1 + 2), vec![span(0, 3), span(4, 9)]),
            (span(0, 20), vec![span(0, 20)]),
        ] {
            union.add_span(new);
            assert_eq!(union.spans, expected);
            assert_eq!(union.bytes, expected.iter().map(|span| span.bytes()).sum::<u64>());
        }
    }

    fn rooms(occupancy: &Occupancy, columns: Range<usize>, size: u64) -> Vec<(u64, Option<u64>)> {
        let mut blocked = Blocked::default();
        occupancy.block_window(columns, span(0, size), &mut blocked);
        blocked.free_rooms(0).map(|room| (room.low, room.high)).collect()
    }

    #[test]
    fn every_room_equals_a_search_of_all_rectangles() {
        let mut draw = pseudo_random(1);
        let index = |value: u64| usize::try_from(value).expect("small");
        let columns = 70;
        let mut occupancy = Occupancy::new(columns);
        let mut placed: Vec<(Range<usize>, Span)> = Vec::new();
        for _ in 0..200 {
            let start = index(draw(columns as u64));
            let end = start + 1 + index(draw((columns - start) as u64));
            let low = draw(300);
            let new = (start..end, span(low, low + 1 + draw(6)));
            occupancy.insert_rectangle(new.0.clone(), new.1);
            placed.push(new);
            let from = index(draw(columns as u64));
            let query = from..from + 1 + index(draw((columns - from) as u64));
            let size = 1 + draw(9);
            let is_free = |offset: u64| {
                placed.iter().all(|(columns, span)| {
                    columns.end <= query.start
                        || query.end <= columns.start
                        || span.end <= offset
                        || offset + size <= span.start
                })
            };
            let found = rooms(&occupancy, query.clone(), size);
            let in_room = |offset: u64| {
                found.iter().any(|&(low, high)| low <= offset && high.is_none_or(|high| offset <= high))
            };
            for offset in 0..330 {
                assert_eq!(is_free(offset), in_room(offset), "{offset} in {query:?}");
            }
        }
    }
}
