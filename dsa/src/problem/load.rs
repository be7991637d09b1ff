//! The load: how many bytes are in use at each step, and the most of them.
//!
//! A buffer that may overwrite another is not counted at its first step: its bytes can lie inside the other's, which are
//! counted. So no plan is lower than the load, whether it hands buffers over or not.

use crate::{ArenaId, Buffer, Bytes, Instance, LiveRange, Load, LoadCurve, Piece, Scope};

impl Instance {
    /// The load: the most bytes in use at one step, where a buffer that may overwrite another does not count at its
    /// first step. A lower bound on the height of every plan. Over several arenas: the sum of the arenas' loads, with the
    /// step of the largest. Computed once, in O(n log n).
    #[must_use]
    pub fn load(&self) -> Load {
        *self.load.get_or_init(|| over_arenas(self, Scope::Any))
    }

    /// The load with every buffer counted from its first step: a lower bound on the height of plans that hand nothing
    /// over. The same as [`load`](Self::load) if the instance permits no hand-over.
    #[must_use]
    pub fn load_without_in_place(&self) -> Load {
        if self.in_place().is_empty() {
            return self.load();
        }
        *self.load_without_in_place.get_or_init(|| over_arenas(self, Scope::NoHandOver))
    }

    /// For each buffer, whether it may overwrite another, so that its first step does not count towards the
    /// [load](Self::load). O(n).
    #[must_use]
    pub fn hand_over_outputs(&self) -> Vec<bool> {
        let mut may_overwrite = vec![false; self.len()];
        for permission in self.in_place() {
            may_overwrite[permission.output.index()] = true;
        }
        may_overwrite
    }

    /// The first arena in which more bytes must be live at one step than its capacity holds, and how
    /// many; no plan can be valid then. Buffers that may overwrite another do not count at their first step.
    #[must_use]
    pub fn overfull_arena(&self) -> Option<(ArenaId, Bytes)> {
        let limited = (0_u16..)
            .map(ArenaId::new)
            .zip(self.arenas())
            .filter_map(|(id, arena)| Some((id, arena.capacity?)));
        let loads =
            limited.map(|(id, capacity)| (id, capacity, sweep_load(self, Some(id), Scope::Any).peak().bytes));
        loads.filter(|&(_, capacity, load)| load > capacity).map(|(id, _, load)| (id, load)).next()
    }

    /// The bytes in use over time, counted like the [load](Self::load). Over several arenas: their sum at each step, whose
    /// peak may be lower than the load, as the arenas may peak at different steps.
    #[must_use]
    pub fn load_curve(&self) -> LoadCurve {
        sweep_load(self, None, Scope::Any)
    }

    /// The load of each arena; [`Instance::load`] is their sum. O(a n log n) for a arenas.
    #[must_use]
    pub fn arena_loads(&self) -> Vec<Load> {
        arena_peaks(self, Scope::Any)
    }

    /// The bytes in use over time in one arena.
    #[must_use]
    pub fn arena_load_curve(&self, arena: ArenaId) -> LoadCurve {
        sweep_load(self, Some(arena), Scope::Any)
    }
}

fn over_arenas(instance: &Instance, scope: Scope) -> Load {
    let peaks = arena_peaks(instance, scope);
    let sum = peaks.iter().map(|peak| peak.bytes.get()).sum();
    let step = peaks.iter().max_by_key(|peak| (peak.bytes, std::cmp::Reverse(peak.step)));
    Load { bytes: Bytes::new(sum), step: step.map(|peak| peak.step).unwrap_or_default() }
}

fn arena_peaks(instance: &Instance, scope: Scope) -> Vec<Load> {
    let arenas = instance.arenas().len();
    if arenas == 1 {
        return vec![sweep_load(instance, None, scope).peak()];
    }
    let ids = (0..arenas).map(|arena| ArenaId::new(u16::try_from(arena).expect("arena ids have 16 bits")));
    ids.map(|arena| sweep_load(instance, Some(arena), scope).peak()).collect()
}

fn sweep_load(instance: &Instance, arena: Option<ArenaId>, scope: Scope) -> LoadCurve {
    let mut changes: Vec<(u32, i128)> = Vec::with_capacity(2 * instance.len());
    for (buffer, piece) in counted_pieces(instance, scope) {
        if arena.is_none_or(|arena| arena == buffer.arena) {
            changes.push((piece.steps.start().get(), i128::from(piece.bytes())));
            changes.push((piece.steps.end().get(), -i128::from(piece.bytes())));
        }
    }
    changes.sort_unstable_by_key(|&(step, _)| step);
    LoadCurve::from_changes(&changes)
}

/// The pieces that share no address in any plan of the scope: over all plans, without the first step of each buffer that
/// may overwrite another.
pub(crate) fn counted_pieces(instance: &Instance, scope: Scope) -> impl Iterator<Item = (&Buffer, Piece)> {
    let outputs = if scope == Scope::Any { instance.hand_over_outputs() } else { Vec::new() };
    instance.buffers().iter().enumerate().flat_map(move |(index, buffer)| {
        let is_late = outputs.get(index).copied().unwrap_or(false);
        let first = buffer.live.start().get() + u32::from(is_late);
        buffer.active_pieces().filter_map(move |piece| {
            let (start, end) = (piece.steps.start().get().max(first), piece.steps.end().get());
            let steps = LiveRange::new(start, end).ok()?;
            Some((buffer, Piece { steps, ..piece }))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::test_buffer as buffer;
    use crate::{BufferId, InPlace, Step};

    #[test]
    fn the_load_leaves_out_a_buffer_that_may_overwrite_another() {
        let permission = InPlace { input: BufferId::new(0), output: BufferId::new(1) };
        let instance = Instance::builder()
            .buffers([buffer(8, 0, 2), buffer(8, 1, 3)])
            .in_place([permission])
            .build()
            .expect("valid");
        assert_eq!(instance.load(), Load { bytes: Bytes::new(8), step: Step::new(0) });
        assert_eq!(instance.load_curve().peak(), instance.load());
        assert_eq!(instance.load_without_in_place(), Load { bytes: Bytes::new(16), step: Step::new(1) });
        let counts = [0, 1, 2, 3].map(|step| instance.counts_at(BufferId::new(1), Step::new(step)));
        assert_eq!(counts, [false, false, true, false]);
    }

    #[test]
    fn no_buffers_no_load() {
        let empty = Instance::from_buffers(Vec::new()).expect("valid");
        assert_eq!(empty.load(), Load::default());
        assert!(empty.load_curve().points().is_empty());
    }
}
