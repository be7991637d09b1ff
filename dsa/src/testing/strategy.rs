//! Random instances and plans for property tests; every case shrinks towards few, small, plain buffers.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::Config;

use super::first_fit::first_fit;
use crate::{
    Alignment, Arena, ArenaId, Buffer, BufferId, Bytes, InPlace, Instance, KeepApart, LiveRange, Offset,
    Pause, Plan,
};

/// Whether slow tests run all their cases: the environment contains `PLANLAB_TEST_DEEP`, as under `just test-deep`.
#[must_use]
pub fn is_deep_run() -> bool {
    std::env::var_os("PLANLAB_TEST_DEEP").is_some()
}

/// The configuration of a slow property test: runs a quarter of the cases, or all of them in a
/// [deep run](is_deep_run).
#[must_use]
pub fn deep_config(cases: u32) -> Config {
    Config::with_cases(cases / if is_deep_run() { 1 } else { 4 })
}

/// The features of random instances. Default: at most 8 plain buffers of at most 16 bytes over 12 steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a table of independent features")]
pub struct Shape {
    max_buffers: usize,
    max_steps: u32,
    max_size: u64,
    pins: bool,
    alignment: bool,
    in_place: bool,
    pauses: bool,
    windows: bool,
    arenas: bool,
    apart: bool,
}

impl Shape {
    /// Plain buffers; the default.
    #[must_use]
    pub fn plain_buffers() -> Self {
        Self::default()
    }

    /// Every feature.
    #[must_use]
    pub fn every_feature() -> Self {
        Self::plain_buffers()
            .with_pins(true)
            .with_alignment(true)
            .with_in_place(true)
            .with_pauses(true)
            .with_windows(true)
            .with_arenas(true)
            .with_apart(true)
    }
}

/// Defaults and setters of a shape; `least` is the least value that a number may have.
macro_rules! setters {
    ($(
        $(#[$doc:meta])*
        $setter:ident($field:ident: $kind:ty = $default:literal $(, least $least:literal)?);
    )*) => {
        impl Default for Shape {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl Shape {
            $($(#[$doc])*
            #[must_use]
            pub fn $setter(mut self, $field: $kind) -> Self {
                self.$field = $field$(.max($least))?;
                self
            })*
        }
    };
}

setters! {
    /// The most buffers.
    with_max_buffers(max_buffers: usize = 8);
    /// Live ranges lie between step 0 and this step; at least 1.
    with_max_steps(max_steps: u32 = 12, least 1);
    /// The largest size in bytes; at least 1.
    with_max_size(max_size: u64 = 16, least 1);
    /// Whether buffers may be pinned (always at the offsets of some valid plan).
    with_pins(pins: bool = false);
    /// Whether alignments of 2, 3, 4 and 8 bytes may appear.
    with_alignment(alignment: bool = false);
    /// Whether buffers may overwrite others.
    with_in_place(in_place: bool = false);
    /// Whether there may be pauses without a window.
    with_pauses(pauses: bool = false);
    /// Whether there may be pauses that keep a window.
    with_windows(windows: bool = false);
    /// Whether there may be up to three arenas, and capacities that some valid plan keeps.
    with_arenas(arenas: bool = false);
    /// Whether there may be pairs to keep apart.
    with_apart(apart: bool = false);
}

/// Steps before the pause, steps in it, and the two ends of its window.
type DraftPause = (u32, u32, Option<(u64, u64)>);

/// The random values that define one buffer.
#[derive(Clone, Debug)]
struct Draft {
    size: u64,
    steps: (u32, u32),
    /// Begins at the last step of the buffer this many rows earlier.
    follows: Option<usize>,
    align: u64,
    arena: u16,
    pinned: bool,
    pauses: Vec<DraftPause>,
    /// One bit per earlier row (modulo 8): whether that row may be overwritten, if possible.
    overwrites: u8,
    /// One bit per earlier row (modulo 8): whether to keep the two apart.
    apart: u8,
}

/// Random valid instances of a shape. Each has a valid plan.
pub fn instances(shape: Shape) -> impl Strategy<Value = Instance> {
    let slack = vec(option::of(0..16_u64), if shape.arenas { 1..=3 } else { 1..=1 });
    (vec(buffer_drafts(shape), 0..=shape.max_buffers), slack)
        .prop_map(move |(drafts, slack)| assemble_instance(shape, &drafts, &slack))
}

fn buffer_drafts(shape: Shape) -> impl Strategy<Value = Draft> {
    let size = prop_oneof![4 => 1..=shape.max_size, 1 => 1..=shape.max_size.min(4)];
    let steps = (0..shape.max_steps, 0..shape.max_steps);
    let follows = if_wanted(shape.in_place, option::of(1..4_usize).boxed(), None);
    let align = if_wanted(shape.alignment, prop::sample::select(vec![1, 2, 4, 8, 3]).boxed(), 1);
    let arena = if_wanted(shape.arenas, (0..3_u16).boxed(), 0);
    let pinned = if_wanted(shape.pins, prop::bool::weighted(0.25).boxed(), false);
    let bytes = (0..shape.max_size, 0..shape.max_size);
    let window = match (shape.windows, shape.pauses) {
        (false, _) => Just(None).boxed(),
        (true, false) => bytes.prop_map(Some).boxed(),
        (true, true) => option::of(bytes).boxed(),
    };
    let paused = shape.windows || shape.pauses;
    let pauses = if_wanted(paused, vec((0..4_u32, 1..4_u32, window), 0..3).boxed(), Vec::new());
    let overwrites = if_wanted(shape.in_place, any::<u8>().boxed(), 0);
    let sparse = prop_oneof![3 => Just(0), 1 => any::<u8>()];
    let apart = if_wanted(shape.apart, sparse.boxed(), 0);
    (size, steps, follows, align, arena, pinned, pauses, overwrites, apart).prop_map(
        |(size, steps, follows, align, arena, pinned, pauses, overwrites, apart)| Draft {
            size,
            steps,
            follows,
            align,
            arena,
            pinned,
            pauses,
            overwrites,
            apart,
        },
    )
}

fn if_wanted<T: Clone + std::fmt::Debug + 'static>(
    yes: bool,
    strategy: BoxedStrategy<T>,
    otherwise: T,
) -> BoxedStrategy<T> {
    if yes { strategy } else { Just(otherwise).boxed() }
}

fn assemble_instance(shape: Shape, drafts: &[Draft], slack: &[Option<u64>]) -> Instance {
    let mut buffers: Vec<Buffer> = Vec::new();
    for draft in drafts {
        let buffer = draft_buffer(draft, &buffers, slack.len());
        buffers.push(buffer);
    }
    let arenas = vec![Arena::default(); slack.len()];
    let builder = || {
        Instance::builder().in_place(draft_permissions(&buffers, drafts)).apart(draft_pairs(&buffers, drafts))
    };
    let free =
        builder().buffers(buffers.clone()).arenas(arenas.clone()).build().expect("valid by construction");
    if !shape.pins && !shape.arenas {
        return free;
    }
    let plan = first_fit(&free, &[], &[]);
    let tops = plan.arena_heights(&free).expect("totals of an instance fit 64 bits");
    let name = |number: usize| format!("arena-{number}");
    let arenas = slack.iter().zip(&tops).enumerate().map(|(number, (slack, top))| Arena {
        name: name(number),
        capacity: slack.filter(|_| shape.arenas).map(|slack| Bytes::new(top.get() + slack)),
    });
    let pinned = buffers.iter().zip(drafts).zip(&plan.offsets).map(|((buffer, draft), &offset)| {
        if draft.pinned { buffer.clone().with_pin(offset) } else { buffer.clone() }
    });
    builder().buffers(pinned).arenas(arenas).build().expect("pinned as in a valid plan")
}

fn draft_buffer(draft: &Draft, before: &[Buffer], arenas: usize) -> Buffer {
    let (mut start, mut end) = (draft.steps.0.min(draft.steps.1), draft.steps.0.max(draft.steps.1) + 1);
    let mut size = draft.size;
    let mut arena = ArenaId::new(draft.arena % u16::try_from(arenas).expect("three at most"));
    let followed = draft.follows.and_then(|back| before.len().checked_sub(back)).map(|row| &before[row]);
    if let Some(followed) = followed {
        start = followed.live.end().get() - 1;
        end = end.max(start + 1);
        size = size.min(followed.size.get());
        arena = followed.arena;
    }
    Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("start is below end"))
        .with_align(Alignment::new(draft.align).expect("positive"))
        .in_arena(arena)
        .with_pauses(draft_pauses(draft, size, start, end))
}

fn draft_pauses(draft: &Draft, size: u64, start: u32, end: u32) -> Vec<Pause> {
    let mut at = start;
    let mut pauses = Vec::new();
    for &(before, width, window) in &draft.pauses {
        let Ok(steps) = LiveRange::new((at + before).min(end), (at + before + width).min(end)) else { break };
        let window = window.map(|(a, b)| {
            let (a, b) = (a % size, b % size);
            Bytes::new(a.min(b))..Bytes::new(a.max(b) + 1)
        });
        pauses.push(Pause { steps, window });
        at = steps.end().get();
    }
    pauses
}

fn has_bit(bits: u8, row: usize) -> bool {
    bits >> (row % 8) & 1 == 1
}

/// The pairs that can hand over and that the drafts select.
fn draft_permissions(buffers: &[Buffer], drafts: &[Draft]) -> Vec<InPlace> {
    let mut permissions = Vec::new();
    for (b, (output, draft)) in buffers.iter().zip(drafts).enumerate() {
        for (a, input) in buffers.iter().enumerate() {
            let step = output.live.start();
            let can = a != b
                && input.live.end().get() == step.get() + 1
                && output.size <= input.size
                && output.arena == input.arena
                && input.is_whole_at(step)
                && output.is_whole_at(step);
            if can && has_bit(draft.overwrites, a) {
                permissions.push(InPlace { input: BufferId::from_index(a), output: BufferId::from_index(b) });
            }
        }
    }
    permissions
}

fn draft_pairs(buffers: &[Buffer], drafts: &[Draft]) -> Vec<KeepApart> {
    let mut pairs = Vec::new();
    for (b, draft) in drafts.iter().enumerate() {
        for a in (0..b).filter(|&a| has_bit(draft.apart, a) && buffers[a].arena == buffers[b].arena) {
            pairs.push(KeepApart { first: BufferId::from_index(a), second: BufferId::from_index(b) });
        }
    }
    pairs
}

/// A change to a valid plan.
#[derive(Clone, Debug)]
enum Nudge {
    Move(prop::sample::Index, i64),
    Put(prop::sample::Index, u64),
    Onto(prop::sample::Index, prop::sample::Index),
    Unsay(prop::sample::Index),
    Say(prop::sample::Index),
    Claim(u32, u32),
    Drop,
    Extra(u64),
}

/// Plans for an instance: valid ones, nearly valid ones and arbitrary ones.
pub fn plans_for(instance: &Instance) -> BoxedStrategy<Plan> {
    let total = instance.total_size().get();
    let count = u32::try_from(instance.len()).expect("ids have 32 bits");
    let (one, other) = (instance.clone(), instance.clone());
    let right =
        (Just(instance.ids().collect::<Vec<_>>()).prop_shuffle(), vec(any::<bool>(), one.in_place().len()))
            .prop_map(move |(order, used)| {
                let permissions = one.in_place().iter().zip(used).filter(|(_, used)| *used);
                first_fit(&one, &order, &permissions.map(|(&pair, _)| pair).collect::<Vec<_>>())
            })
            .boxed();
    let nudged = (right.clone(), vec(plan_nudges(total, count), 1..3)).prop_map(move |(mut plan, nudges)| {
        nudges.iter().for_each(|nudge| apply_nudge(&other, &mut plan, nudge));
        plan
    });
    let wild =
        vec((0..=total.saturating_mul(2)).prop_map(Offset::new), instance.len()).prop_map(Plan::from_offsets);
    prop_oneof![2 => right, 4 => nudged, 1 => wild].boxed()
}

fn plan_nudges(total: u64, count: u32) -> impl Strategy<Value = Nudge> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        6 => (index(), -9..=9_i64).prop_map(|(row, by)| Nudge::Move(row, by)),
        3 => (index(), prop_oneof![4 => 0..=total, 1 => u64::MAX - 20..=u64::MAX])
            .prop_map(|(row, offset)| Nudge::Put(row, offset)),
        3 => (index(), index()).prop_map(|(row, onto)| Nudge::Onto(row, onto)),
        2 => index().prop_map(Nudge::Unsay),
        3 => index().prop_map(Nudge::Say),
        1 => (0..=count, 0..=count).prop_map(|(input, output)| Nudge::Claim(input, output)),
        1 => Just(Nudge::Drop),
        1 => (0..=total).prop_map(Nudge::Extra),
    ]
}

fn apply_nudge(instance: &Instance, plan: &mut Plan, nudge: &Nudge) {
    let rows = plan.offsets.len();
    match *nudge {
        Nudge::Move(row, by) if rows > 0 => {
            let offset = &mut plan.offsets[row.index(rows)];
            *offset = Offset::new(offset.get().saturating_add_signed(by));
        }
        Nudge::Put(row, offset) if rows > 0 => plan.offsets[row.index(rows)] = Offset::new(offset),
        Nudge::Onto(row, onto) if rows > 0 => plan.offsets[row.index(rows)] = plan.offsets[onto.index(rows)],
        Nudge::Unsay(pair) if !plan.in_place.is_empty() => {
            plan.in_place.swap_remove(pair.index(plan.in_place.len()));
        }
        Nudge::Say(pair) if !instance.in_place().is_empty() => {
            plan.in_place.push(*pair.get(instance.in_place()));
        }
        Nudge::Claim(input, output) => {
            plan.in_place.push(InPlace { input: BufferId::new(input), output: BufferId::new(output) });
        }
        Nudge::Drop => drop(plan.offsets.pop()),
        Nudge::Extra(offset) => plan.offsets.push(Offset::new(offset)),
        _ => {}
    }
}
