//! An instance in its own unit of bytes: the same for every batch size of a net whose sizes all grow with the batch.
//!
//! The unit is the instance's [granularity](Instance::granularity): the greatest number that divides every size, pin
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
/// assert_eq!(Canonical::of(&small).digest(), Canonical::of(&large).digest());
/// assert_eq!(Canonical::of(&large).unit(), 512 * 128);
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
    pub fn of(original: &'i Instance) -> Self {
        let unit = original.granularity();
        let instance = if unit == 1 { Cow::Borrowed(original) } else { Cow::Owned(divided(original, unit)) };
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
    pub fn enlarge(&self, plan: &Plan) -> Plan {
        let offset = |offset: &Offset| Offset::new(offset.get().saturating_mul(self.unit));
        Plan { offsets: plan.offsets.iter().map(offset).collect(), in_place: plan.in_place.clone() }
    }

    /// Converts a plan of the original to units. Offsets are rounded down, which keeps a plan valid and lifts nothing.
    #[must_use]
    pub fn reduce(&self, plan: &VerifiedPlan<'_>) -> Plan {
        let offset = |offset: &Offset| Offset::new(offset.get() / self.unit);
        Plan { offsets: plan.offsets().iter().map(offset).collect(), in_place: plan.in_place().to_vec() }
    }

    /// Converts a bound in units to one in bytes.
    #[must_use]
    pub fn enlarge_bound(&self, bound: Bound) -> Bound {
        let mut enlarged = Bound::default();
        for scope in [Scope::NoHandOver, Scope::Any] {
            let Claim { value, evidence } = bound.of(scope);
            let value = Bytes::new(value.get().saturating_mul(self.unit));
            enlarged.raise(Claim { value, evidence }, scope);
        }
        enlarged
    }
}

fn divided(instance: &Instance, unit: u64) -> Instance {
    let arena = |arena: &Arena| Arena {
        name: arena.name.clone(),
        capacity: arena.capacity.map(|capacity| Bytes::new(capacity.get() / unit)),
    };
    let divided = Instance::builder()
        .buffers(instance.buffers().iter().map(|buffer| divided_buffer(buffer, unit)))
        .arenas(instance.arenas().iter().map(arena))
        .in_place(instance.in_place().iter().copied())
        .apart(instance.apart().iter().copied())
        .build();
    divided.expect("dividing by what divides all sizes keeps every rule")
}

fn divided_buffer(buffer: &Buffer, unit: u64) -> Buffer {
    let bytes = |bytes: Bytes| Bytes::new(bytes.get() / unit);
    let mut divided = buffer.clone();
    divided.size = bytes(buffer.size);
    divided.align = Alignment::new(buffer.align.get() / unit).unwrap_or_default();
    divided.pin = buffer.pin.map(|pin| Offset::new(pin.get() / unit));
    for pause in &mut divided.pauses {
        pause.window = pause.window.take().map(|window| bytes(window.start)..bytes(window.end));
    }
    divided
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::{Shape, brute_force, instances, plans};
    use proptest::prelude::*;

    use super::*;

    /// The instance with every number of bytes multiplied by `factor`.
    fn times(instance: &Instance, factor: u64) -> Instance {
        let bytes = |bytes: Bytes| Bytes::new(bytes.get() * factor);
        let enlarged = |buffer: &Buffer| {
            let mut buffer = buffer.clone();
            buffer.size = bytes(buffer.size);
            buffer.align = Alignment::new(buffer.align.get() * factor).expect("positive");
            buffer.pin = buffer.pin.map(|pin| Offset::new(pin.get() * factor));
            for pause in &mut buffer.pauses {
                pause.window = pause.window.take().map(|window| bytes(window.start)..bytes(window.end));
            }
            buffer
        };
        // Bytes above a multiple of the unit are useless.
        let capacity = |capacity: Bytes| Bytes::new(capacity.get() * factor + factor - 1);
        let arena =
            |arena: &Arena| Arena { name: arena.name.clone(), capacity: arena.capacity.map(capacity) };
        Instance::builder()
            .buffers(instance.buffers().iter().map(enlarged))
            .arenas(instance.arenas().iter().map(arena))
            .in_place(instance.in_place().iter().copied())
            .apart(instance.apart().iter().copied())
            .build()
            .expect("as valid as before")
    }

    #[test]
    fn alignments_become_units_or_vanish() {
        let live = planlab_dsa::LiveRange::new(0, 2).expect("not empty");
        let buffer = |size: u64, align: u64| {
            Buffer::new(Bytes::new(size), live).with_align(Alignment::new(align).expect("positive"))
        };
        let instance = Instance::from_buffers(vec![buffer(512, 256), buffer(1536, 1024), buffer(1024, 1)])
            .expect("valid");
        let canonical = Canonical::of(&instance);
        assert_eq!(canonical.unit(), 512);
        let rows: Vec<_> =
            canonical.instance().buffers().iter().map(|b| (b.size.get(), b.align.get())).collect();
        assert_eq!(rows, [(1, 1), (3, 2), (2, 1)]);
    }

    proptest! {
        #[test]
        fn multiples_of_an_instance_have_one_form(
            instance in instances(Shape::everything()),
            factor in 1_u64..1000,
        ) {
            let large = times(&instance, factor);
            let (form, of_large) = (Canonical::of(&instance), Canonical::of(&large));
            if !instance.is_empty() {
                prop_assert_eq!(of_large.unit(), form.unit() * factor);
            }
            prop_assert_eq!(form.instance().buffers(), of_large.instance().buffers());
            // A form is its own canonical form.
            prop_assert_eq!(Canonical::of(form.instance()).unit(), 1);
        }

        #[test]
        fn the_optimum_is_a_multiple_of_the_forms(instance in instances(Shape::everything())) {
            let form = Canonical::of(&instance);
            let enlarged = brute_force(form.instance()).map(|height| height.get() * form.unit());
            prop_assert_eq!(enlarged, brute_force(&instance).map(Bytes::get));
        }

        #[test]
        fn plans_go_both_ways(
            (instance, plan) in instances(Shape::everything().with_max_buffers(20)).prop_flat_map(|instance| {
                let plan = plans(&instance);
                (Just(instance), plan)
            }),
            factor in 1_u64..100,
        ) {
            let large = times(&instance, factor);
            let form = Canonical::of(&large);
            let offsets: Vec<Offset> =
                plan.offsets.iter().map(|offset| Offset::new(offset.get().saturating_mul(factor))).collect();
            let Ok(verified) = large.verify(Plan { offsets, in_place: plan.in_place }) else { return Ok(()) };
            let reduced = form.reduce(&verified);
            let small = form.instance().verify(reduced.clone());
            prop_assert!(small.is_ok(), "{:?}", small);
            let back = large.verify(form.enlarge(&reduced));
            prop_assert!(back.is_ok_and(|back| back.height() <= verified.height()));
        }
    }
}
