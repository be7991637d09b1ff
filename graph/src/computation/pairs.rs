//! The pairs of operations in which one directly depends on the other.

use super::graph::Graph;
use super::parts::{OpId, Operation, TensorId};
use super::spans::{Span, subtract_spans, unite_spans};

/// All pairs in which the second operation directly depends on the first through a tensor; `None` if listing them takes
/// more than `limit` steps.
pub(crate) fn data_pairs(graph: &Graph, limit: usize) -> Option<Vec<(OpId, OpId)>> {
    let mut pairs = Vec::new();
    for (op, operation) in graph.operation_order().into_iter().zip(graph.operations()) {
        let mut sources: Vec<OpId> = Vec::new();
        for &tensor in &operation.reads {
            sources.extend(graph.source_operations(tensor));
            if pairs.len() + sources.len() > limit {
                return None;
            }
        }
        enter(op, sources, &mut pairs);
    }
    let updated = Updated::from_graph(graph);
    if updated.is_empty() { Some(pairs) } else { updated.add_update_pairs(graph, limit, pairs) }
}

fn enter(op: OpId, mut before: Vec<OpId>, pairs: &mut Vec<(OpId, OpId)>) {
    before.sort_unstable();
    before.dedup();
    pairs.extend(before.into_iter().map(|before| (before, op)));
}

/// The spans that an operation updates, and those that it reads without or with an update.
fn touched(graph: &Graph, operation: &Operation) -> [Vec<Span>; 2] {
    let spans = |tensors: &mut dyn Iterator<Item = TensorId>| {
        unite_spans(tensors.map(|tensor| graph.span(tensor)).collect())
    };
    [spans(&mut operation.updated_tensors()), spans(&mut operation.reads.iter().copied())]
}

/// A piece of a storage that each update writes either completely or not at all.
struct Segment {
    span: Span,
    /// The last update so far.
    last: Option<OpId>,
    /// The operations that have read it since then.
    readers: Vec<OpId>,
}

/// The pieces of storages that operations update, sorted.
struct Updated(Vec<Segment>);

impl Updated {
    fn from_graph(graph: &Graph) -> Self {
        let updates = graph.operations().iter().flat_map(|operation| {
            let is_any = !operation.writes.is_empty() && !operation.reads.is_empty();
            if is_any { touched(graph, operation)[0].clone() } else { Vec::new() }
        });
        let updates: Vec<Span> = updates.collect();
        let mut cuts: Vec<(TensorId, u64)> =
            updates.iter().flat_map(|span| [(span.root, span.start), (span.root, span.end)]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let all = unite_spans(updates);
        let between = cuts.windows(2).filter(|pair| pair[0].0 == pair[1].0);
        let spans = between.map(|pair| Span { root: pair[0].0, start: pair[0].1, end: pair[1].1 });
        let is_updated = |span: &Span| subtract_spans(*span, &all).is_empty();
        let segment = |span| Segment { span, last: None, readers: Vec::new() };
        Self(spans.filter(is_updated).map(segment).collect())
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn segments_within(&mut self, span: Span) -> &mut [Segment] {
        let key = |segment: &Segment| (segment.span.root, segment.span.start);
        let from = self
            .0
            .partition_point(|segment| (segment.span.root, segment.span.end) <= (span.root, span.start));
        let to = self.0.partition_point(|segment| key(segment) < (span.root, span.end));
        &mut self.0[from..to]
    }

    /// Adds the pairs of an update: with the operations that read its bytes since the last update, and with those that
    /// read or update them next.
    fn add_update_pairs(
        mut self,
        graph: &Graph,
        limit: usize,
        mut pairs: Vec<(OpId, OpId)>,
    ) -> Option<Vec<(OpId, OpId)>> {
        let mut looked = 0;
        for (op, operation) in graph.operation_order().into_iter().zip(graph.operations()) {
            let [updates, reads] = touched(graph, operation);
            let mut before = Vec::new();
            for span in updates {
                for segment in self.segments_within(span) {
                    looked += 1 + segment.readers.len();
                    if segment.readers.is_empty() {
                        before.extend(segment.last);
                    }
                    before.append(&mut segment.readers);
                    segment.last = Some(op);
                }
            }
            for span in reads {
                for segment in
                    self.segments_within(span).iter_mut().filter(|segment| segment.last != Some(op))
                {
                    looked += 1;
                    before.extend(segment.last);
                    segment.readers.push(op);
                }
                if pairs.len() + looked > limit {
                    return None;
                }
            }
            enter(op, before, &mut pairs);
        }
        Some(pairs)
    }
}
