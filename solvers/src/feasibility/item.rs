//! What the search places: a buffer in units and sections.

use planlab_dsa::{Buffer, LiveRange};

use crate::trees::Columns;

/// More than any offset.
pub(super) const NEVER: u64 = 1 << 62;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Span {
    pub(super) const fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    pub(super) const fn sections(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    pub(super) fn join(self, other: Self) -> Self {
        if self.start == self.end {
            return other;
        }
        if other.start == other.end {
            return self;
        }
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// One buffer that takes part.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// The index of the buffer in the instance.
    pub(super) buffer: usize,
    /// Size in units.
    pub(super) size: u64,
    /// Alignment in units.
    pub(super) align: u64,
    /// Steps of its live range.
    pub(super) width: u64,
    /// Its fixed offset, in units.
    pub(super) pin: Option<u64>,
    /// From its first section to its last.
    pub(super) hull: Span,
    /// The sections in which it is active, if they are not the whole hull.
    pub(super) spans: Box<[Span]>,
    /// Items that it is kept apart from.
    pub(super) apart: Box<[u32]>,
    /// Offsets, in units, that pinned items rule out: ascending, half-open.
    pub(super) holes: Box<[(u64, u64)]>,
    /// The next item that is identical to it.
    pub(super) twin: Option<u32>,
    /// The sections that must stay in one part until it is placed.
    pub(super) link: Span,
}

impl Item {
    /// Buffer number `at`. `None` if it is never active and not kept apart from anything.
    pub(super) fn new(
        (at, buffer): (usize, &Buffer),
        unit: u64,
        columns: &Columns,
        is_apart: bool,
    ) -> Option<Self> {
        let span = |steps: LiveRange| {
            let range = columns.columns_of(steps);
            Span { start: to_u32(range.start), end: to_u32(range.end) }
        };
        let mut spans: Vec<Span> = Vec::new();
        for span in buffer.active_pieces().map(|piece| span(piece.steps)).filter(|span| span.start < span.end)
        {
            match spans.last_mut() {
                Some(last) if last.end == span.start => last.end = span.end,
                _ => spans.push(span),
            }
        }
        let hull = match (spans.first(), spans.last()) {
            (Some(first), Some(last)) => first.join(*last),
            _ if is_apart => Span { start: 0, end: 0 },
            _ => return None,
        };
        Some(Self {
            buffer: at,
            size: buffer.size.get() / unit,
            align: (buffer.align.get() / unit).max(1),
            width: u64::from(buffer.live.width()),
            pin: buffer.pin.map(|pin| pin.get() / unit),
            hull,
            spans: if spans.len() <= 1 { Box::default() } else { spans.into() },
            apart: Box::default(),
            holes: Box::default(),
            twin: None,
            link: hull,
        })
    }

    /// The sections in which it is active.
    pub(super) fn spans(&self) -> &[Span] {
        if self.spans.is_empty() { std::slice::from_ref(&self.hull) } else { &self.spans }
    }

    /// The lowest multiple of the alignment that is not below `offset`.
    pub(super) const fn round_up(&self, offset: u64) -> u64 {
        if self.align == 1 { offset } else { offset.next_multiple_of(self.align) }
    }

    /// The lowest offset, not below `offset`, that pinned items leave free.
    pub(super) fn lift_offset(&self, offset: u64) -> u64 {
        let mut offset = offset;
        for &(low, high) in &self.holes {
            if low <= offset && offset < high {
                offset = self.round_up(high);
            }
        }
        offset
    }

    /// Whether it is simple enough to be set aside.
    pub(super) fn can_be_peeled(&self) -> bool {
        self.pin.is_none() && self.apart.is_empty() && self.spans.is_empty()
    }

    pub(super) fn is_alike(&self, other: &Self) -> bool {
        let kind = |item: &Self| (item.hull, item.size, item.align, item.pin);
        let is_plain = |item: &Self| item.pin.is_none() && item.apart.is_empty();
        kind(self) == kind(other) && is_plain(self) && is_plain(other) && self.spans == other.spans
    }
}

pub(super) fn to_u32(number: usize) -> u32 {
    u32::try_from(number).expect("there are at most a million items")
}
