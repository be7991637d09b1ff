//! Buffers, instances and offsets for the tests of planners.

use std::sync::Mutex;

use planlab_dsa::testing::guillotine_instance;
use planlab_dsa::{
    Alignment, Budget, Buffer, BufferId, Bytes, Descriptor, Halt, Honours, InPlace, Instance, LiveRange,
    Planner, Run, execute,
};

/// A buffer of `size` bytes, live at the steps `[start, end)`.
pub(crate) fn test_buffer(size: u64, start: u32, end: u32) -> Buffer {
    Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"))
}

/// The same, aligned to multiples of `align`.
pub(crate) fn aligned(size: u64, start: u32, end: u32, align: u64) -> Buffer {
    test_buffer(size, start, end).with_align(Alignment::new(align).expect("positive"))
}

/// Permission for the second to overwrite the first.
pub(crate) fn in_place(input: u32, output: u32) -> InPlace {
    InPlace { input: BufferId::new(input), output: BufferId::new(output) }
}

/// Buffers by size, start and end.
pub(crate) fn test_instance(rows: &[(u64, u32, u32)]) -> Instance {
    let buffers = rows.iter().map(|&(size, start, end)| test_buffer(size, start, end));
    Instance::from_buffers(buffers.collect()).expect("valid")
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

struct Scripted<F>(Descriptor, F);

impl<F: Fn(&mut Run<'_>) -> Result<(), Halt> + Send + Sync> Planner for Scripted<F> {
    fn descriptor(&self) -> Descriptor {
        self.0.clone()
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        (self.1)(run)
    }
}

/// A planner that is a function of a test.
pub(crate) fn scripted(
    descriptor: Descriptor,
    plan: impl Fn(&mut Run<'_>) -> Result<(), Halt> + Send + Sync,
) -> impl Planner {
    Scripted(descriptor, plan)
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

/// Pseudo-random numbers below the argument: a linear congruential generator, the same for the same seed.
pub(crate) fn pseudo_random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
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
