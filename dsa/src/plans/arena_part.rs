//! Arenas one by one: an instance for each, and its part of a plan.
//!
//! Buffers of different arenas never meet, so loads and heights of the whole are sums.

use std::borrow::Cow;

use crate::{ArenaId, BufferId, InPlace, Instance, KeepApart, Plan, VerifiedPlan};

/// An arena as a separate instance: one arena without a name or a capacity.
#[derive(Clone, Debug)]
pub struct ArenaPart {
    /// The arena's buffers.
    pub instance: Instance,
    /// The id of each of them in the whole instance.
    pub ids: Vec<BufferId>,
}

impl Instance {
    /// Splits into one instance per arena, in the order of the arenas. O(n).
    #[must_use]
    pub fn split_arenas(&self) -> Vec<ArenaPart> {
        let count = self.arenas().len();
        let arena = |id: BufferId| self.buffer(id).arena.index();
        let mut ids = vec![Vec::new(); count];
        let mut new = Vec::with_capacity(self.len());
        for id in self.ids() {
            let members: &mut Vec<BufferId> = &mut ids[arena(id)];
            new.push(BufferId::from_index(members.len()));
            members.push(id);
        }
        let name = |id: BufferId| new[id.index()];
        let (mut in_place, mut apart) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for pair in self.in_place() {
            in_place[arena(pair.input)].push(InPlace { input: name(pair.input), output: name(pair.output) });
        }
        for pair in self.keep_apart_pairs() {
            apart[arena(pair.first)].push(KeepApart { first: name(pair.first), second: name(pair.second) });
        }
        let all = ids.into_iter().zip(in_place).zip(apart);
        all.map(|((ids, in_place), apart)| self.arena_part(ids, in_place, apart)).collect()
    }

    fn arena_part(&self, ids: Vec<BufferId>, in_place: Vec<InPlace>, apart: Vec<KeepApart>) -> ArenaPart {
        let buffers = ids.iter().map(|&id| self.buffer(id).clone().in_arena(ArenaId::default()));
        let alone = Self::builder().buffers(buffers).in_place(in_place).apart(apart).build();
        ArenaPart { instance: alone.expect("an arena of a valid instance is one"), ids }
    }

    /// The name of an arena, or its number if it has no name.
    ///
    /// # Panics
    ///
    /// If there is no such arena.
    #[must_use]
    pub fn arena_name(&self, arena: ArenaId) -> Cow<'_, str> {
        match self.arenas()[arena.index()].name.as_str() {
            "" => Cow::Owned(arena.index().to_string()),
            name => Cow::Borrowed(name),
        }
    }
}

impl VerifiedPlan<'_> {
    /// The plan of one arena of [`Instance::split_arenas`].
    #[must_use]
    pub fn in_part(&self, part: &ArenaPart) -> Plan {
        let mut new = vec![None; self.instance().len()];
        for (at, id) in part.ids.iter().enumerate() {
            new[id.index()] = Some(BufferId::from_index(at));
        }
        let pair = |pair: &InPlace| {
            let (input, output) = (new[pair.input.index()]?, new[pair.output.index()]?);
            Some(InPlace { input, output })
        };
        Plan {
            offsets: part.ids.iter().map(|id| self.offsets()[id.index()]).collect(),
            in_place: self.in_place().iter().filter_map(pair).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::test_buffer;
    use crate::{Arena, Bytes, Load, Offset, Step};

    fn three_arenas() -> Instance {
        let id = BufferId::new;
        let within = |arena, (size, start, end)| test_buffer(size, start, end).in_arena(ArenaId::new(arena));
        let buffers =
            [within(1, (4, 0, 2)), within(0, (8, 5, 9)), within(1, (2, 1, 3)), within(1, (6, 5, 7))];
        let arena = |name: &str| Arena { name: name.to_owned(), capacity: Some(Bytes::new(20)) };
        Instance::builder()
            .buffers(buffers)
            .in_place([InPlace { input: id(0), output: id(2) }])
            .apart([KeepApart { first: id(3), second: id(0) }])
            .arenas([arena("a"), arena("b"), arena("c")])
            .build()
            .expect("valid")
    }

    #[test]
    fn parts_keep_what_belongs_to_an_arena() {
        let id = BufferId::new;
        let parts = three_arenas().split_arenas();
        let ids: Vec<_> = parts.iter().map(|part| part.ids.clone()).collect();
        assert_eq!(ids, [vec![id(1)], vec![id(0), id(2), id(3)], vec![]]);
        assert!(parts.iter().all(|part| part.instance.arenas() == [Arena::default()]));
        assert_eq!(parts[1].instance.in_place(), [InPlace { input: id(0), output: id(1) }]);
        assert_eq!(parts[1].instance.keep_apart_pairs(), [KeepApart { first: id(0), second: id(2) }]);
        assert!(parts[0].instance.in_place().is_empty() && parts[2].instance.is_empty());
    }

    #[test]
    fn loads_and_heights_of_arenas_add_up() {
        let instance = three_arenas();
        let at = |bytes, step| Load { bytes: Bytes::new(bytes), step: Step::new(step) };
        assert_eq!(instance.arena_loads(), [at(8, 5), at(6, 5), at(0, 0)]);
        assert_eq!(instance.load().bytes, Bytes::new(14));
        let plan = Plan {
            offsets: [0, 3, 2, 8].map(Offset::new).to_vec(),
            in_place: vec![InPlace { input: BufferId::new(0), output: BufferId::new(2) }],
        };
        let plan = instance.verify(plan).expect("valid");
        assert_eq!(plan.arena_heights(), [11, 14, 0].map(Bytes::new));
        assert_eq!(plan.height(), Bytes::new(25));
        for (part, height) in instance.split_arenas().iter().zip(plan.arena_heights()) {
            let alone = part.instance.verify(plan.in_part(part)).expect("valid");
            assert_eq!(alone.height(), height);
        }
    }
}
