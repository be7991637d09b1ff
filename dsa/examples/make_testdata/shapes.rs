//! The hand-made instances of the corpus.

use planlab_dsa::testing::{FileCase, brute_force, brute_force_without_hand_over, lowest_height};
use planlab_dsa::{
    Alignment, Arena, ArenaId, Buffer, BufferId, Bytes, InPlace, Instance, InstanceBuilder, KeepApart,
    LiveRange, Offset, Pause,
};

/// All hand-made instances, each with its optimum.
pub(crate) fn shapes() -> Vec<FileCase> {
    let plain = plain().into_iter().map(|(name, why, rows)| {
        let instance = build(Instance::builder().buffers(rows.into_iter().map(buffer)));
        let optimum = lowest_height(&instance, 1_000_000).expect("small enough to search").get();
        FileCase::from_instance(name, why, &instance).with_optimum(optimum, optimum)
    });
    let special = special().into_iter().map(|(name, why, builder)| {
        let instance = build(builder);
        let optimum = brute_force(&instance).expect("it has a plan").get();
        let without = brute_force_without_hand_over(&instance).expect("it has a plan").get();
        FileCase::from_instance(name, why, &instance).with_optimum(optimum, without)
    });
    plain.chain(special).collect()
}

fn build(builder: InstanceBuilder) -> Instance {
    builder.build().expect("made to be valid")
}

fn range(start: u32, end: u32) -> LiveRange {
    LiveRange::new(start, end).expect("made to be not empty")
}

fn buffer((size, start, end): (u64, u32, u32)) -> Buffer {
    Buffer::new(Bytes::new(size), range(start, end))
}

fn aligned(row: (u64, u32, u32), align: u64) -> Buffer {
    buffer(row).with_align(Alignment::new(align).expect("positive"))
}

fn paused(row: (u64, u32, u32), steps: (u32, u32), window: Option<(u64, u64)>) -> Buffer {
    let window = window.map(|(low, high)| Bytes::new(low)..Bytes::new(high));
    buffer(row).with_pauses([Pause { steps: range(steps.0, steps.1), window }])
}

fn arena(capacity: Option<u64>) -> Arena {
    Arena { name: String::new(), capacity: capacity.map(Bytes::new) }
}

type Plain = (&'static str, &'static str, Vec<(u64, u32, u32)>);

fn plain() -> Vec<Plain> {
    const LARGE: u64 = 1 << 60;
    vec![
        ("empty", "no buffer: height 0, load 0, and nothing divides by either", vec![]),
        ("one-buffer", "the least instance that is not empty", vec![(4096, 3, 9)]),
        ("all-alike", "every buffer is every other: ties end at the id", vec![(64, 0, 4); 10]),
        (
            "alike-in-turn",
            "one size, three live at a time: interval colouring solves it",
            (0..18).map(|i| (64, i, i + 3)).collect(),
        ),
        ("staircase", "each overlaps the next only: two rows do", (0..16).map(|i| (32, i, i + 2)).collect()),
        (
            "growing-staircase",
            "each overlaps the next, and is larger",
            (0..16).map(|i| (8 * (u64::from(i) + 1), i, i + 2)).collect(),
        ),
        ("nested", "each lies within the one before: the load at the middle", {
            (0..10).map(|i| (10 + u64::from(i), i, 20 - i)).collect()
        }),
        ("two-components", "two halves that share no step; the optimum is the larger one's", {
            let half = [(6, 0, 3), (4, 2, 5), (5, 1, 4), (3, 0, 5)];
            half.into_iter().chain(half.map(|(size, start, end)| (size + 1, start + 10, end + 10))).collect()
        }),
        ("equal-intervals", "one live range, many sizes: the sum of the sizes", {
            [7, 1, 12, 5, 3, 9].map(|size| (size, 2, 6)).to_vec()
        }),
        ("zero-conflict", "no two are live together: everything at 0", {
            (0..12).map(|i| (100 - u64::from(i) * 5, 3 * i, 3 * i + 3)).collect()
        }),
        ("touching", "one ends where the next begins: half-open ranges share nothing", {
            vec![(8, 0, 5), (8, 5, 9), (8, 9, 10)]
        }),
        ("late-steps", "steps up to the last that fits 32 bits", {
            vec![(3, u32::MAX - 4, u32::MAX), (5, u32::MAX - 2, u32::MAX), (2, 0, u32::MAX - 3)]
        }),
        ("u64-sized", "sizes near 2^60: sums need all of 64 bits, and floating point loses bytes", {
            vec![
                (LARGE + 1, 0, 3),
                (LARGE - 3, 1, 4),
                (3 * LARGE + 7, 2, 6),
                (2 * LARGE + 5, 4, 8),
                (LARGE + 11, 5, 9),
                (LARGE - 9, 7, 9),
            ]
        }),
        ("byte-among-giants", "one byte beside 2^60: no tolerance may swallow it", {
            vec![(LARGE, 0, 4), (1, 1, 3), (LARGE, 2, 6), (1, 5, 7), (LARGE - 1, 3, 5)]
        }),
    ]
}

type Special = (&'static str, &'static str, InstanceBuilder);

fn special() -> Vec<Special> {
    [alignments(), pins(), pauses(), hand_overs(), several_arenas(), kept_apart()].concat()
}

fn alignments() -> Vec<Special> {
    let all = |buffers: &[Buffer]| Instance::builder().buffers(buffers.iter().cloned());
    vec![
        (
            "alignment-hole",
            "any two of three aligned buffers leave a hole that nothing fills: the optimum is above the load",
            all(&[aligned((5, 0, 2), 8), aligned((9, 0, 2), 8), aligned((3, 1, 3), 8)]),
        ),
        (
            "alignment-order",
            "the hole shrinks when the buffer that ends on a multiple lies below",
            all(&[aligned((6, 0, 2), 4), aligned((8, 0, 2), 4), aligned((3, 0, 2), 1)]),
        ),
        (
            "alignments-mixed",
            "alignments that do not divide each other",
            all(&[
                aligned((4, 0, 3), 6),
                aligned((5, 1, 4), 4),
                aligned((7, 2, 5), 1),
                aligned((2, 0, 5), 3),
            ]),
        ),
        (
            "alignment-page",
            "sizes are multiples of the alignment: it asks for nothing",
            all(&[aligned((1024, 0, 3), 512), aligned((512, 1, 5), 512), aligned((2048, 2, 4), 512)]),
        ),
    ]
}

fn pins() -> Vec<Special> {
    let at = |row, offset| buffer(row).with_pin(Offset::new(offset));
    let all = |buffers: &[Buffer]| Instance::builder().buffers(buffers.iter().cloned());
    vec![
        ("pin-high", "a pinned end is a bound above the load", all(&[at((3, 0, 2), 5), buffer((6, 1, 3))])),
        (
            "pin-in-the-middle",
            "the space below a pin is too small for what would fit above",
            all(&[at((4, 0, 4), 6), buffer((7, 1, 3)), buffer((5, 0, 2)), buffer((1, 0, 4))]),
        ),
        (
            "pins-everywhere",
            "every buffer is pinned: there is one plan",
            all(&[at((4, 0, 4), 0), at((4, 2, 6), 4), at((4, 4, 8), 0), at((2, 0, 2), 10)]),
        ),
        (
            "pin-aligned",
            "a pin beside aligned buffers",
            all(&[at((3, 0, 3), 5), aligned((4, 0, 3), 4), aligned((4, 1, 4), 8), buffer((1, 0, 4))]),
        ),
    ]
}

fn pauses() -> Vec<Special> {
    let all = |buffers: &[Buffer]| Instance::builder().buffers(buffers.iter().cloned());
    vec![
        (
            "pause",
            "a buffer that sleeps lends its place",
            all(&[paused((8, 0, 6), (2, 4), None), buffer((8, 2, 4)), buffer((4, 0, 1))]),
        ),
        (
            "pause-too-short",
            "the sleeper wakes before the other ends",
            all(&[paused((8, 0, 6), (2, 4), None), buffer((8, 2, 5))]),
        ),
        (
            "pause-window",
            "only a window stays in use: what fits below and above it may come in",
            all(&[
                paused((10, 0, 6), (2, 4), Some((4, 6))),
                buffer((4, 2, 4)),
                buffer((4, 2, 4)),
                buffer((3, 0, 2)),
            ]),
        ),
        (
            "pauses-all",
            "two windows that interlock, and a buffer that is never in use",
            all(&[
                paused((9, 0, 6), (1, 5), Some((0, 3))),
                paused((9, 1, 5), (1, 5), Some((6, 9))),
                paused((5, 2, 4), (2, 4), None),
                buffer((3, 1, 5)),
            ]),
        ),
    ]
}

fn hand_overs() -> Vec<Special> {
    let pair = |input, output| InPlace { input: BufferId::new(input), output: BufferId::new(output) };
    let all = |rows: &[(u64, u32, u32)]| Instance::builder().buffers(rows.iter().copied().map(buffer));
    vec![
        (
            "in-place-chain",
            "each overwrites the one before: the optimum lies at half the load",
            all(&[(8, 0, 2), (8, 1, 3), (8, 2, 4), (8, 3, 5)]).in_place([pair(0, 1), pair(1, 2), pair(2, 3)]),
        ),
        (
            "in-place-fork",
            "two want one place, and only one gets it",
            all(&[(8, 0, 2), (8, 1, 3), (8, 1, 3)]).in_place([pair(0, 1), pair(0, 2)]),
        ),
        (
            "in-place-join",
            "one may take either of two places",
            all(&[(6, 0, 3), (9, 1, 3), (6, 2, 5), (4, 3, 5)]).in_place([pair(0, 2), pair(1, 2)]),
        ),
        (
            "in-place-smaller",
            "what overwrites is smaller, and leaves room beside it",
            all(&[(12, 0, 2), (5, 1, 4), (7, 2, 4), (3, 0, 4)]).in_place([pair(0, 1)]),
        ),
        (
            "in-place-aligned",
            "the input's place is not aligned as the output asks",
            Instance::builder()
                .buffers([buffer((3, 0, 3)), buffer((8, 0, 2)), aligned((8, 1, 3), 4), buffer((1, 0, 3))])
                .in_place([pair(1, 2)]),
        ),
        (
            "in-place-circle",
            "buffers of one step that may overwrite each other; a circle holds no place",
            all(&[(4, 1, 2), (4, 1, 2), (4, 1, 2)]).in_place([pair(0, 1), pair(1, 2), pair(2, 0)]),
        ),
    ]
}

fn several_arenas() -> Vec<Special> {
    let within = |row, number| buffer(row).in_arena(ArenaId::new(number));
    vec![
        (
            "arenas",
            "two pools: heights add up",
            Instance::builder()
                .buffers([
                    within((4, 0, 3), 0),
                    within((5, 0, 3), 1),
                    within((3, 1, 4), 0),
                    within((2, 3, 5), 1),
                ])
                .arenas([arena(None), arena(None), arena(None)]),
        ),
        (
            "capacity",
            "a pool that only an optimal plan fits",
            Instance::builder()
                .buffers([(4, 0, 2), (2, 1, 4), (4, 3, 6), (2, 5, 7), (3, 2, 3)].map(buffer))
                .arenas([arena(Some(6))]),
        ),
    ]
}

fn kept_apart() -> Vec<Special> {
    let pair = |first, second| KeepApart { first: BufferId::new(first), second: BufferId::new(second) };
    vec![
        (
            "keep-apart",
            "two streams: buffers that never live together and still must not share",
            Instance::builder().buffers([(6, 0, 2), (5, 3, 5), (4, 1, 4)].map(buffer)).apart([pair(0, 1)]),
        ),
        (
            "keep-apart-middle",
            "one that must lie apart from both sides of a step",
            Instance::builder()
                .buffers([(4, 0, 2), (4, 2, 4), (3, 4, 6), (2, 0, 6)].map(buffer))
                .apart([pair(0, 2), pair(2, 1)]),
        ),
    ]
}
