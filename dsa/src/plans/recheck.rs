//! A second check of the verifier's answer, pair by pair: slow, short and without a sweep.
//!
//! # Complexity
//!
//! O(n^2 p^2) for n buffers of up to p pieces.

use crate::{Buffer, Instance, Piece, Plan};

/// Instances with more buffers are not checked again.
const MOST_BUFFERS: usize = 2_000;

/// Panics if the verifier disagrees with the slow check.
pub(crate) fn assert_agrees(instance: &Instance, plan: &Plan, accepted: bool) {
    if instance.len() <= MOST_BUFFERS {
        assert_eq!(accepted, is_valid(instance, plan), "the verifier and the slow check differ on {plan:?}");
    }
}

fn is_valid(instance: &Instance, plan: &Plan) -> bool {
    if plan.offsets.len() != instance.len() || !hand_overs_hold(instance, plan) {
        return false;
    }
    let rows: Vec<Row<'_>> = (0..instance.len()).map(|index| Row::new(instance, plan, index)).collect();
    let are_apart = |a: usize, b: usize| rows[a].high <= rows[b].low || rows[b].high <= rows[a].low;
    rows.iter().all(Row::is_where_it_may_be)
        && (0..rows.len()).all(|a| (0..a).all(|b| !rows[a].collides_with(&rows[b])))
        && instance.keep_apart_pairs().iter().all(|pair| are_apart(pair.first.index(), pair.second.index()))
        && heights_fit(instance, &rows)
}

fn hand_overs_hold(instance: &Instance, plan: &Plan) -> bool {
    let mut seen = Vec::new();
    for pair in &plan.in_place {
        let clash = |other: &&crate::InPlace| other.input == pair.input || other.output == pair.output;
        if !instance.in_place().contains(pair) || seen.iter().any(clash) {
            return false;
        }
        let (outer, inner) =
            (plan.offsets[pair.input.index()].get(), plan.offsets[pair.output.index()].get());
        let (large, small) =
            (instance.buffer(pair.input).size.get(), instance.buffer(pair.output).size.get());
        if inner < outer || u128::from(inner) + u128::from(small) > u128::from(outer) + u128::from(large) {
            return false;
        }
        seen.push(pair);
    }
    // A chain that continues after as many hand-overs as there are runs in a circle.
    seen.iter().all(|pair| {
        let mut end = Some(pair.output);
        for _ in 0..seen.len() {
            end = end.and_then(|id| seen.iter().find(|next| next.input == id).map(|next| next.output));
        }
        end.is_none()
    })
}

/// A buffer at its offset.
struct Row<'a> {
    buffer: &'a Buffer,
    pieces: Vec<Piece>,
    low: u128,
    high: u128,
    /// The first step to check: one later if the buffer takes another's place.
    first: u32,
}

impl<'a> Row<'a> {
    fn new(instance: &'a Instance, plan: &Plan, index: usize) -> Self {
        let buffer = &instance.buffers()[index];
        let low = u128::from(plan.offsets[index].get());
        let late = plan.in_place.iter().any(|pair| pair.output.index() == index);
        Self {
            buffer,
            pieces: buffer.active_pieces().collect(),
            low,
            high: low + u128::from(buffer.size.get()),
            first: buffer.live.start().get() + u32::from(late),
        }
    }

    fn is_where_it_may_be(&self) -> bool {
        let pinned = self.buffer.pin.is_none_or(|pin| u128::from(pin.get()) == self.low);
        pinned
            && self.high <= u128::from(u64::MAX)
            && self.low.is_multiple_of(u128::from(self.buffer.align.get()))
    }

    fn collides_with(&self, other: &Self) -> bool {
        let meet = |a: &Piece, b: &Piece| {
            let from = a.steps.start().max(b.steps.start()).get().max(self.first).max(other.first);
            let bytes = |row: &Self, piece: &Piece| {
                (row.low + u128::from(piece.window.start.get()), row.low + u128::from(piece.window.end.get()))
            };
            let ((low, end), (start, high)) = (bytes(self, a), bytes(other, b));
            from < a.steps.end().min(b.steps.end()).get() && low < high && start < end
        };
        self.buffer.arena == other.buffer.arena
            && self.pieces.iter().any(|a| other.pieces.iter().any(|b| meet(a, b)))
    }
}

fn heights_fit(instance: &Instance, rows: &[Row<'_>]) -> bool {
    let mut tops = vec![0_u128; instance.arenas().len()];
    for row in rows {
        let top = &mut tops[row.buffer.arena.index()];
        *top = (*top).max(row.high);
    }
    let capacities = instance.arenas().iter().map(|arena| arena.capacity.map_or(u64::MAX, crate::Bytes::get));
    tops.iter().zip(capacities).all(|(&top, capacity)| top <= u128::from(capacity))
        && tops.iter().sum::<u128>() <= u128::from(u64::MAX)
}
