//! Searches for instances on which a property is hard to achieve.

use planlab_dsa::testing::{lowest_height, test_instance};
use planlab_dsa::{Bytes, Instance};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Size, first step, step after the last.
type Row = (u64, u32, u32);

fn row(rng: &mut ChaCha8Rng, steps: u32, most: u64) -> Row {
    let start = rng.random_range(0..steps);
    let width = rng.random_range(1..=steps - start);
    (rng.random_range(1..=most), start, start + width)
}

/// A random instance of `buffers` buffers whose optimum lies above its load, and that optimum.
pub(crate) fn above_load(buffers: usize, seed: u64) -> (Instance, Bytes) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let steps = u32::try_from(buffers).expect("few buffers");
    let mut rows: Vec<Row> = (0..buffers).map(|_| row(&mut rng, steps, 12)).collect();
    let mut best = 0;
    loop {
        let before = rows.clone();
        let at = rng.random_range(0..buffers);
        rows[at] = row(&mut rng, steps, 12);
        let candidate = test_instance(&rows);
        // Only candidates that are cheap to decide make good tests.
        let Some(optimum) = lowest_height(&candidate, 200_000) else { continue };
        let excess = optimum.get() - candidate.load().bytes.get();
        if excess > 0 {
            return (candidate, optimum);
        }
        // Prefers full sheets: a step at full load leaves no room to dodge.
        let filled: u64 = rows.iter().map(|&(size, start, end)| size * u64::from(end - start)).sum();
        let fill = filled * 1000 / (candidate.load().bytes.get() * u64::from(steps));
        if fill < best && rng.random_range(0..20) > 0 {
            rows = before;
        } else {
            best = fill;
        }
    }
}

/// The instance of the given number of buffers on which a heuristic is worst, and its optimum; found by `tries` random
/// changes.
pub(crate) fn worst(
    buffers: usize,
    seed: u64,
    tries: u32,
    heuristic: fn(&Instance) -> Bytes,
) -> (Instance, Bytes) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut rows: Vec<Row> = (0..buffers).map(|_| row(&mut rng, 9, 9)).collect();
    let mut best = (1, 1);
    let mut known = (test_instance(&rows), Bytes::ZERO);
    for _ in 0..tries {
        let before = rows.clone();
        for _ in 0..rng.random_range(1..=2) {
            let at = rng.random_range(0..buffers);
            rows[at] = row(&mut rng, 9, 9);
        }
        let candidate = test_instance(&rows);
        let height = heuristic(&candidate).get();
        // No optimum lies below the load, so most candidates need no search.
        let hopeless = height * best.1 < best.0 * candidate.load().bytes.get();
        match (!hopeless).then(|| lowest_height(&candidate, 100_000)).flatten() {
            Some(optimum) if height * best.1 >= best.0 * optimum.get() => {
                best = (height, optimum.get());
                known = (candidate, optimum);
            }
            _ => rows = before,
        }
    }
    assert!(best.0 > best.1, "no instance found on which the heuristic is not optimal");
    known
}
