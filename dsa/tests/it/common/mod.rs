//! Helpers that several of these tests share.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

pub use planlab_dsa::testing::test_buffer as buffer;
use planlab_dsa::testing::{Shape, instances, plans_for, scaled_and_shifted};
use planlab_dsa::{
    Arena, Buffer, BufferId, Bytes, InPlace, Instance, KeepApart, LiveRange, Offset, Pause, Plan,
};
use proptest::prelude::{Just, Strategy};
use proptest::test_runner::{Config, FileFailurePersistence};

/// A configuration with this many cases; failures are stored in the given file of this folder.
pub fn config(cases: u32, file: &'static str) -> Config {
    Config {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(file))),
        ..Config::default()
    }
}

/// Instances of a shape, each with a plan that may be wrong.
pub fn planned(shape: Shape) -> impl Strategy<Value = (Instance, Plan)> {
    instances(shape).prop_flat_map(|instance| {
        let plans = plans_for(&instance);
        (Just(instance), plans)
    })
}

pub fn range(start: u32, end: u32) -> LiveRange {
    LiveRange::new(start, end).expect("not empty")
}

pub fn pair(input: u32, output: u32) -> InPlace {
    InPlace { input: BufferId::new(input), output: BufferId::new(output) }
}

pub fn apart(first: u32, second: u32) -> KeepApart {
    KeepApart { first: BufferId::new(first), second: BufferId::new(second) }
}

pub fn arena(capacity: Option<u64>) -> Arena {
    Arena { name: "pool".to_owned(), capacity: capacity.map(Bytes::new) }
}

pub fn offsets(offsets: &[u64]) -> Plan {
    Plan::from_offsets(offsets.iter().map(|&offset| Offset::new(offset)).collect::<Vec<_>>())
}

/// The instance with every buffer changed; ids stay the same.
pub fn map_buffers(instance: &Instance, change: impl Fn(&mut Buffer)) -> Instance {
    let mut buffers = instance.buffers().to_vec();
    buffers.iter_mut().for_each(change);
    rebuild(instance, buffers, instance.arenas().to_vec(), |id| id)
}

/// The instance whose buffer `i` is the old buffer `order[i]`.
pub fn relabel(instance: &Instance, order: &[usize]) -> Instance {
    let buffers = order.iter().map(|&old| instance.buffers()[old].clone()).collect();
    rebuild(instance, buffers, instance.arenas().to_vec(), |id| new_id(order, id))
}

pub fn relabel_plan(plan: &Plan, order: &[usize]) -> Plan {
    let rename =
        |pair: &InPlace| InPlace { input: new_id(order, pair.input), output: new_id(order, pair.output) };
    let offsets = order.iter().map(|&old| plan.offsets[old]).collect();
    Plan { offsets, in_place: plan.in_place.iter().map(rename).collect() }
}

fn new_id(order: &[usize], id: BufferId) -> BufferId {
    order.iter().position(|&old| old == id.index()).map_or(id, BufferId::from_index)
}

/// The instance with all steps later.
pub fn shift(instance: &Instance, by: u32) -> Instance {
    scaled_and_shifted(instance, 1, by).expect("as valid as before")
}

/// The instance with time reversed. Only for instances without in-place permissions.
pub fn reverse(instance: &Instance) -> Instance {
    let horizon = instance.horizon().get();
    let back = |live: LiveRange| range(horizon - live.end().get(), horizon - live.start().get());
    map_buffers(instance, |buffer| {
        buffer.live = back(buffer.live);
        let pauses = buffer.pauses.iter().rev();
        buffer.pauses = pauses.map(|p| Pause { steps: back(p.steps), window: p.window.clone() }).collect();
    })
}

/// The instance with all bytes times `factor`: sizes, windows, alignments, pins, capacities.
pub fn scale(instance: &Instance, factor: u64) -> Instance {
    let bytes = |bytes: Bytes| Bytes::new(bytes.get() * factor);
    let mut buffers = instance.buffers().to_vec();
    for buffer in &mut buffers {
        buffer.size = bytes(buffer.size);
        buffer.align = planlab_dsa::Alignment::new(buffer.align.get() * factor).expect("positive");
        buffer.pin = buffer.pin.map(|pin| Offset::new(pin.get() * factor));
        for pause in &mut buffer.pauses {
            pause.window = pause.window.as_ref().map(|window| bytes(window.start)..bytes(window.end));
        }
    }
    let mut arenas = instance.arenas().to_vec();
    arenas.iter_mut().for_each(|arena| arena.capacity = arena.capacity.map(bytes));
    rebuild(instance, buffers, arenas, |id| id)
}

pub fn scale_plan(plan: &Plan, factor: u64) -> Plan {
    let offsets = plan.offsets.iter().map(|offset| Offset::new(offset.get().wrapping_mul(factor))).collect();
    Plan { offsets, in_place: plan.in_place.clone() }
}

fn rebuild(
    instance: &Instance,
    buffers: Vec<Buffer>,
    arenas: Vec<Arena>,
    rename: impl Fn(BufferId) -> BufferId,
) -> Instance {
    let permissions = instance.in_place().iter();
    let pairs = instance.keep_apart_pairs().iter();
    Instance::builder()
        .buffers(buffers)
        .arenas(arenas)
        .in_place(permissions.map(|p| InPlace { input: rename(p.input), output: rename(p.output) }))
        .apart(pairs.map(|p| KeepApart { first: rename(p.first), second: rename(p.second) }))
        .build()
        .expect("as valid as before")
}
