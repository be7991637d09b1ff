//! Plans: claimed and verified.

use serde::{Deserialize, Serialize};

use crate::{Bytes, InPlace, Instance, Offset, Scope};

/// A claimed offset for every buffer. Anyone can make one; nothing trusts it before it is verified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The offset of each buffer, by id, relative to its arena.
    pub offsets: Vec<Offset>,
    /// The hand-overs that the plan uses.
    pub in_place: Vec<InPlace>,
}

impl Plan {
    /// A plan without hand-overs.
    #[must_use]
    pub fn from_offsets(offsets: impl Into<Vec<Offset>>) -> Self {
        Self { offsets: offsets.into(), in_place: Vec::new() }
    }

    /// The claimed height: the sum over the arenas of the largest end. `None` if the plan does not have one offset per
    /// buffer, or if an end exceeds 64 bits.
    #[must_use]
    pub fn height(&self, instance: &Instance) -> Option<Bytes> {
        self.arena_heights(instance)?.into_iter().try_fold(Bytes::ZERO, Bytes::checked_add)
    }

    /// The largest end in each arena: its height. `None` if the plan does not have one offset per buffer, or if an end
    /// exceeds 64 bits.
    #[must_use]
    pub fn arena_heights(&self, instance: &Instance) -> Option<Vec<Bytes>> {
        if self.offsets.len() != instance.len() {
            return None;
        }
        let mut tops = vec![Bytes::ZERO; instance.arenas().len()];
        for (buffer, offset) in instance.buffers().iter().zip(&self.offsets) {
            let top = &mut tops[buffer.arena.index()];
            *top = (*top).max(Bytes::new(offset.end_of(buffer.size)?.get()));
        }
        Some(tops)
    }

    /// The scope of the bounds that apply to the plan.
    #[must_use]
    pub fn bound_scope(&self) -> Scope {
        if self.in_place.is_empty() { Scope::NoHandOver } else { Scope::Any }
    }
}

/// A plan that [`Instance::verify`] has accepted; there is no other way to get one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedPlan<'i> {
    instance: &'i Instance,
    plan: Plan,
    height: Bytes,
}

impl<'i> VerifiedPlan<'i> {
    pub(crate) const fn new(instance: &'i Instance, plan: Plan, height: Bytes) -> Self {
        Self { instance, plan, height }
    }

    /// The problem that it solves.
    #[must_use]
    pub const fn instance(&self) -> &'i Instance {
        self.instance
    }

    /// The arena's size in bytes: the largest end; over several arenas, the sum of theirs.
    #[must_use]
    pub const fn height(&self) -> Bytes {
        self.height
    }

    /// The height of each arena; [`VerifiedPlan::height`] is their sum.
    #[must_use]
    pub fn arena_heights(&self) -> Vec<Bytes> {
        self.plan.arena_heights(self.instance).expect("the plan is verified")
    }

    /// The offset of each buffer, by id.
    #[must_use]
    pub fn offsets(&self) -> &[Offset] {
        &self.plan.offsets
    }

    /// The hand-overs that the plan uses.
    #[must_use]
    pub fn in_place(&self) -> &[InPlace] {
        &self.plan.in_place
    }

    /// The scope of the bounds that apply to the plan.
    #[must_use]
    pub fn bound_scope(&self) -> Scope {
        self.plan.bound_scope()
    }

    /// The plan itself.
    #[must_use]
    pub const fn as_plan(&self) -> &Plan {
        &self.plan
    }

    /// Converts back to a plain plan.
    #[must_use]
    pub fn into_plan(self) -> Plan {
        self.plan
    }
}
