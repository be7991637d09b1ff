//! An instance in its own unit of bytes: the same for every batch size of a net whose sizes all grow with the batch.
//!
//! The unit is the instance's [granularity](Instance::offset_granularity): the greatest number that divides every size, pin
//! and window, such that each alignment is a divisor or a multiple of it. Some optimal plan has only multiples of it as
//! offsets. So plans and bounds of the canonical instance, times the unit, are plans and bounds of the original, and
//! the optima correspond, too.
//!
//! Alignments that divide the unit become 1: every offset satisfies them. Capacities are rounded down to whole units,
//! since every height is a multiple of the unit.
//!
//! # Complexity
//!
//! O(n) for n buffers.

use std::borrow::Cow;

use planlab_dsa::{
    Alignment, Arena, Bound, Buffer, Bytes, Claim, Digest, Instance, Offset, Plan, Scope, VerifiedPlan,
};

/// An instance and its canonical form.
///
/// ```
/// use planlab_dsa::{Buffer, Bytes, Instance, LiveRange};
/// use planlab_solvers::placement::Canonical;
///
/// let net = |batch: u64| {
///     let buffers = [(3, 0, 2), (2, 1, 5), (2, 3, 6)].map(|(size, start, end)| {
///         Buffer::new(Bytes::new(512 * batch * size), LiveRange::new(start, end).expect("not empty"))
///     });
///     Instance::from_buffers(buffers.to_vec()).expect("valid")
/// };
/// let (small, large) = (net(32), net(128));
/// assert_eq!(Canonical::from_instance(&small).digest(), Canonical::from_instance(&large).digest());
/// assert_eq!(Canonical::from_instance(&large).unit(), 512 * 128);
/// ```
#[derive(Clone, Debug)]
pub struct Canonical<'i> {
    original: &'i Instance,
    unit: u64,
    instance: Cow<'i, Instance>,
}

impl<'i> Canonical<'i> {
    /// The canonical form of an instance.
    #[must_use]
    pub fn from_instance(original: &'i Instance) -> Self {
        let unit = original.offset_granularity();
        let instance = if unit == 1 {
            Cow::Borrowed(original)
        } else {
            Cow::Owned(with_bytes(original, |bytes| bytes / unit, |bytes| bytes / unit))
        };
        Self { original, unit, instance }
    }

    /// The instance whose form this is.
    #[must_use]
    pub const fn original(&self) -> &'i Instance {
        self.original
    }

    /// The unit in bytes; 1 if the instance is its own form.
    #[must_use]
    pub const fn unit(&self) -> u64 {
        self.unit
    }

    /// The instance in units: one byte of it is one unit of the original.
    #[must_use]
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// The digest of the instance in units: equal for instances that are multiples of each other.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.instance.digest()
    }

    /// Converts a plan in units to one of the original.
    #[must_use]
    pub fn enlarge_plan(&self, plan: &Plan) -> Plan {
        let offset = |offset: &Offset| Offset::new(offset.get().saturating_mul(self.unit));
        Plan { offsets: plan.offsets.iter().map(offset).collect(), in_place: plan.in_place.clone() }
    }

    /// Converts a plan of the original to units. Offsets are rounded down, which keeps a plan valid and lifts nothing.
    #[must_use]
    pub fn reduce_plan(&self, plan: &VerifiedPlan<'_>) -> Plan {
        let offset = |offset: &Offset| Offset::new(offset.get() / self.unit);
        Plan { offsets: plan.offsets().iter().map(offset).collect(), in_place: plan.in_place().to_vec() }
    }

    /// Converts a bound in units to one in bytes.
    #[must_use]
    pub fn enlarge_bound(&self, bound: Bound) -> Bound {
        let mut enlarged = Bound::default();
        for scope in [Scope::NoHandOver, Scope::Any] {
            let Claim { value, evidence } = bound.best_claim(scope);
            let value = Bytes::new(value.get().saturating_mul(self.unit));
            enlarged.raise_claim(Claim { value, evidence }, scope);
        }
        enlarged
    }
}

/// The instance with each number of bytes changed, and the capacities by a rule of their own.
fn with_bytes(instance: &Instance, bytes: impl Fn(u64) -> u64, capacity: impl Fn(u64) -> u64) -> Instance {
    let changed = |old: Bytes| Bytes::new(bytes(old.get()));
    let buffer = |old: &Buffer| {
        let mut buffer = old.clone();
        buffer.size = changed(old.size);
        buffer.align = Alignment::new(bytes(old.align.get())).unwrap_or_default();
        buffer.pin = old.pin.map(|pin| Offset::new(bytes(pin.get())));
        for pause in &mut buffer.pauses {
            pause.window = pause.window.take().map(|window| changed(window.start)..changed(window.end));
        }
        buffer
    };
    let arena = |old: &Arena| Arena {
        name: old.name.clone(),
        capacity: old.capacity.map(|bytes| Bytes::new(capacity(bytes.get()))),
    };
    let changed = Instance::builder()
        .buffers(instance.buffers().iter().map(buffer))
        .arenas(instance.arenas().iter().map(arena))
        .in_place(instance.in_place().iter().copied())
        .apart(instance.keep_apart_pairs().iter().copied())
        .build();
    changed.expect("one factor for all numbers of bytes keeps every rule")
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::{Shape, brute_force, instances, plans_for};
    use proptest::prelude::*;

    use super::*;
    use crate::placement::testing::aligned;

    /// The instance with every number of bytes multiplied by `factor`; bytes above a multiple of the unit are useless.
    fn times(instance: &Instance, factor: u64) -> Instance {
        with_bytes(instance, |bytes| bytes * factor, |bytes| bytes * factor + factor - 1)
    }

    #[test]
    fn alignments_become_units_or_vanish() {
        let buffers = [(512, 256), (1536, 1024), (1024, 1)].map(|(size, align)| aligned(size, 0, 2, align));
        let instance = Instance::from_buffers(buffers.to_vec()).expect("valid");
        let canonical = Canonical::from_instance(&instance);
        assert_eq!(canonical.unit(), 512);
        let rows: Vec<_> =
            canonical.instance().buffers().iter().map(|b| (b.size.get(), b.align.get())).collect();
        assert_eq!(rows, [(1, 1), (3, 2), (2, 1)]);
    }

    proptest! {
        #[test]
        fn multiples_of_an_instance_have_one_form(
            instance in instances(Shape::every_feature()),
            factor in 1_u64..1000,
        ) {
            let large = times(&instance, factor);
            let (form, of_large) = (Canonical::from_instance(&instance), Canonical::from_instance(&large));
            if !instance.is_empty() {
                prop_assert_eq!(of_large.unit(), form.unit() * factor);
            }
            prop_assert_eq!(form.instance().buffers(), of_large.instance().buffers());
            // A form is its own canonical form.
            prop_assert_eq!(Canonical::from_instance(form.instance()).unit(), 1);
        }

        #[test]
        fn the_optimum_is_a_multiple_of_the_forms(instance in instances(Shape::every_feature())) {
            let form = Canonical::from_instance(&instance);
            let enlarged = brute_force(form.instance()).map(|height| height.get() * form.unit());
            prop_assert_eq!(enlarged, brute_force(&instance).map(Bytes::get));
        }

        #[test]
        fn plans_go_both_ways(
            (instance, plan) in instances(Shape::every_feature().with_max_buffers(20)).prop_flat_map(|instance| {
                let plan = plans_for(&instance);
                (Just(instance), plan)
            }),
            factor in 1_u64..100,
        ) {
            let large = times(&instance, factor);
            let form = Canonical::from_instance(&large);
            let offsets: Vec<Offset> =
                plan.offsets.iter().map(|offset| Offset::new(offset.get().saturating_mul(factor))).collect();
            let Ok(verified) = large.verify(Plan { offsets, in_place: plan.in_place }) else { return Ok(()) };
            let reduced = form.reduce_plan(&verified);
            let small = form.instance().verify(reduced.clone());
            prop_assert!(small.is_ok(), "{:?}", small);
            let back = large.verify(form.enlarge_plan(&reduced));
            prop_assert!(back.is_ok_and(|back| back.height() <= verified.height()));
        }
    }
}
