//! Buffers, instances and offsets for the tests of planners.

use std::sync::Mutex;

use planlab_dsa::testing::guillotine_instance;
pub(crate) use planlab_dsa::testing::{pseudo_random, test_buffer, test_instance};
use planlab_dsa::{
    Alignment, Arena, Budget, Buffer, BufferId, Bytes, Descriptor, Halt, Honours, InPlace, Instance, Planner,
    Run, execute,
};

use crate::arenas::{has_arenas, plan_each_arena};

/// A buffer of `size` bytes, live at the steps `[start, end)`, aligned to multiples of `align`.
pub(crate) fn aligned(size: u64, start: u32, end: u32, align: u64) -> Buffer {
    test_buffer(size, start, end).with_align(Alignment::new(align).expect("positive"))
}

/// Permission for the second to overwrite the first.
pub(crate) fn in_place(input: u32, output: u32) -> InPlace {
    InPlace { input: BufferId::new(input), output: BufferId::new(output) }
}

/// The records in the tests of the public code of shared objects.
pub(crate) fn published_records() -> Instance {
    test_instance(&[
        (32, 0, 2),
        (32, 1, 5),
        (8, 2, 6),
        (16, 3, 6),
        (8, 4, 6),
        (64, 5, 8),
        (8, 6, 9),
        (8, 7, 9),
        (16, 8, 10),
    ])
}

/// An arena without a name.
pub(crate) fn test_arena(capacity: Option<u64>) -> Arena {
    Arena { name: String::new(), capacity: capacity.map(Bytes::new) }
}

/// The offsets that a planner gives without limits, with seed 0.
pub(crate) fn planned_offsets(planner: &dyn Planner, instance: &Instance) -> Vec<u64> {
    let best = execute(planner, instance, Budget::default(), 0).best.expect("a plan");
    best.offsets().iter().map(|offset| offset.get()).collect()
}

/// The same for buffers that are not yet an instance.
pub(crate) fn place_buffers(planner: &dyn Planner, buffers: Vec<Buffer>) -> Vec<u64> {
    planned_offsets(planner, &Instance::from_buffers(buffers).expect("valid"))
}

/// The descriptor of a planner that exists only in a test.
pub(crate) fn test_descriptor(key: &'static str, honours: Honours) -> Descriptor {
    Descriptor {
        key: key.into(),
        summary: "a planner of a test".into(),
        honours,
        reference: "none",
        complexity: "unknown",
        ..Descriptor::default()
    }
}

struct Scripted<F> {
    descriptor: Descriptor,
    plan: F,
    splits_arenas: bool,
}

impl<F: Fn(&mut Run<'_>) -> Result<(), Halt> + Send + Sync> Planner for Scripted<F> {
    fn descriptor(&self) -> Descriptor {
        self.descriptor.clone()
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        if self.splits_arenas && has_arenas(run.instance()) {
            return plan_each_arena(self, run);
        }
        (self.plan)(run)
    }
}

/// A planner that is a function of a test.
pub(crate) fn scripted(
    descriptor: Descriptor,
    plan: impl Fn(&mut Run<'_>) -> Result<(), Halt> + Send + Sync,
) -> impl Planner {
    Scripted { descriptor, plan, splits_arenas: false }
}

/// The same with a key alone; it is called for one arena after the other.
pub(crate) fn scripted_by_arena(
    key: &'static str,
    plan: impl Fn(&mut Run<'_>) -> Result<(), Halt> + Send + Sync,
) -> impl Planner {
    let honours = Honours { arenas: true, work_limit: true, ..Honours::default() };
    Scripted { descriptor: test_descriptor(key, honours), plan, splits_arenas: true }
}

/// The result of a function in a run without limits.
pub(crate) fn in_a_run<T: Send>(
    descriptor: Descriptor,
    instance: &Instance,
    seed: u64,
    call: impl Fn(&mut Run<'_>) -> Result<T, Halt> + Send + Sync,
) -> T {
    let result = Mutex::new(None);
    let planner = scripted(descriptor, |run| {
        *result.lock().expect("one thread") = Some(call(run)?);
        Ok(())
    });
    let end = execute(&planner, instance, Budget::default(), seed).end;
    drop(planner);
    result.into_inner().expect("one thread").unwrap_or_else(|| panic!("it ended with {end:?}"))
}

/// Random buffers: sizes, starts and widths up to these limits, starts from 0 on and the others from 1 on.
pub(crate) fn random_instance(seed: u64, count: usize, [size, start, width]: [u64; 3]) -> Instance {
    let mut draw = pseudo_random(seed);
    let steps = |value: u64| u32::try_from(value).expect("small");
    let row = |_| {
        let (size, start, width) = (1 + draw(size), steps(draw(start)), 1 + steps(draw(width)));
        (size, start, start + width)
    };
    test_instance(&(0..count).map(row).collect::<Vec<_>>())
}

/// Guillotine cuts. Every buffer lacks up to a tenth, so that little fits exactly; those of one step keep their sizes,
/// and the load.
pub(crate) fn almost_tight(count: u32, seed: u64) -> Instance {
    let (tight, _) = guillotine_instance(count, Bytes::new(1 << 30), seed);
    let full = tight.buffers()[0].live.start();
    let loosen = |(index, buffer): (usize, &Buffer)| {
        let lacks = !buffer.live.contains(full);
        let part = if lacks { (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57 } else { 0 };
        let size = buffer.size.get() - buffer.size.get() / 1280 * part;
        Buffer { size: Bytes::new(size), ..buffer.clone() }
    };
    Instance::from_buffers(tight.buffers().iter().enumerate().map(loosen).collect()).expect("valid")
}
