//! Ranges of bytes within storages.

use super::parts::TensorId;

/// The bytes `start..end` of the storage of `root`; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) root: TensorId,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Span {
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.root == other.root && self.start < other.end && other.start < self.end
    }
}

/// The union of spans: sorted, without overlapping or adjacent ones.
pub(crate) fn unite_spans(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    spans.dedup_by(|next, last| {
        let is_joined = next.root == last.root && next.start <= last.end;
        last.end = if is_joined { last.end.max(next.end) } else { last.end };
        is_joined
    });
    spans
}

/// The parts of a span outside a union of others.
pub(crate) fn subtract_spans(span: Span, others: &[Span]) -> Vec<Span> {
    let mut left = Vec::new();
    let mut start = span.start;
    let from = others.partition_point(|other| (other.root, other.end) <= (span.root, span.start));
    for other in others[from..].iter().take_while(|other| other.overlaps(&span)) {
        if start < other.start {
            left.push(Span { start, end: other.start, ..span });
        }
        start = other.end;
    }
    if start < span.end {
        left.push(Span { start, ..span });
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(ends: &[(usize, u64, u64)]) -> Vec<Span> {
        let span = |&(root, start, end): &_| Span { root: TensorId::from_index(root), start, end };
        ends.iter().map(span).collect()
    }

    #[test]
    fn a_union_joins_what_touches() {
        let joined =
            unite_spans(spans(&[(1, 4, 6), (0, 4, 9), (0, 0, 4), (0, 5, 7), (1, 0, 3), (0, 10, 11)]));
        assert_eq!(joined, spans(&[(0, 0, 9), (0, 10, 11), (1, 0, 3), (1, 4, 6)]));
        assert_eq!(unite_spans(Vec::new()), []);
    }

    #[test]
    fn what_is_left_lies_between_the_others() {
        let others = spans(&[(0, 0, 20), (1, 2, 4), (1, 6, 7), (2, 0, 1)]);
        let left = |start, end| subtract_spans(spans(&[(1, start, end)])[0], &others);
        assert_eq!(left(0, 9), spans(&[(1, 0, 2), (1, 4, 6), (1, 7, 9)]));
        assert_eq!(left(3, 6), spans(&[(1, 4, 6)]));
        assert_eq!(left(2, 4), []);
        assert_eq!(left(4, 6), spans(&[(1, 4, 6)]));
    }
}
