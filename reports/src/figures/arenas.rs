//! What pictures say of an arena. Each has an axis of its own: addresses of two arenas do not compare, and their loads
//! peak at different steps.

use planlab_dsa::{ArenaId, Instance, Load};

#[derive(Clone, Debug)]
pub(crate) struct ArenaFacts {
    /// `arena sram`; `None` if there is no other.
    pub(crate) name: Option<String>,
    /// Bytes.
    pub(crate) capacity: Option<u64>,
    pub(crate) load: Load,
    pub(crate) buffers: usize,
}

impl ArenaFacts {
    pub(crate) fn list_arenas(instance: &Instance) -> Vec<Self> {
        let arenas = instance.arenas();
        let mut counts = vec![0; arenas.len()];
        instance.buffers().iter().for_each(|buffer| counts[buffer.arena.index()] += 1);
        let facts = |(number, (load, buffers)): (u16, (Load, usize))| {
            let id = ArenaId::new(number);
            let arena = &arenas[id.index()];
            Self {
                name: (arenas.len() > 1).then(|| format!("arena {}", instance.arena_name(id))),
                capacity: arena.capacity.map(|capacity| capacity.get()),
                load,
                buffers,
            }
        };
        (0..).zip(instance.arena_loads().into_iter().zip(counts)).map(facts).collect()
    }

    /// The top of an axis that shows `height` bytes: the capacity, unless the height would be less than half of it.
    pub(crate) fn axis_top(&self, height: u64) -> u64 {
        let is_near = |capacity: &u64| *capacity <= height.saturating_mul(2);
        height.max(self.capacity.filter(is_near).unwrap_or(0))
    }
}
