//! Tests of memory that goes back, and of blocks that spread over their pages.

use super::*;

#[test]
fn memory_goes_back_on_either_side() {
    let mut rig = planned_rig();
    assert_eq!((rig.threads[0].1.settled, rig.threads[0].1.rested), (1, 0));
    // After a long time far from the plan, the plan's memory goes back.
    (0..2000).for_each(|number| rig.alloc_and_free(0, 50_000 + 8 * number, 64));
    assert_eq!((rig.threads[0].1.settled, rig.threads[0].1.rested), (1, 1));
    // After a long time back on the plan, the memory of other rounds goes back.
    (0..40).for_each(|_| net(&mut rig, 0, 20, 1));
    assert_eq!((rig.threads[0].1.settled, rig.threads[0].1.rested), (2, 1));
}

#[test]
fn pages_may_be_given_back_between_two_rounds() {
    let mut rig = planned_rig();
    for _ in 0..3 {
        assert!(!rig.threads[0].1.is_claimed, "nothing is in use");
        rig.threads[0].1.is_given_back = true;
        assert_eq!(rig.count(0, |rig| net(rig, 0, 20, 1)), (41, 0));
        assert!(!rig.threads[0].1.is_given_back);
    }
    // A request that the plan does not serve claims nothing.
    let other = rig.alloc(0, 1 << 20, 64);
    assert!(!rig.threads[0].1.is_claimed);
    rig.free(0, other);
    net(&mut rig, 0, 20, 1);
    // A round that departs ends with its last block.
    let first = rig.alloc(0, 4096, 64);
    (0..8).for_each(|number| rig.alloc_and_free(0, (1 << 20) + number, 64));
    assert!(first.planned_by == Some(0) && rig.threads[0].1.is_claimed);
    rig.free(0, first);
    assert!(!rig.threads[0].1.is_claimed);
}

#[test]
fn pages_are_claimed_after_another_thread_freed_the_last_block() {
    let mut rig = Rig::new(2, config());
    let round = |rig: &mut Rig, freeing: usize| {
        for size in [200_000, 204_096, 208_192, 212_288] {
            let block = rig.alloc(0, size, 64);
            rig.free(freeing, block);
        }
    };
    (0..40).for_each(|_| round(&mut rig, 0));
    // Each block lies where the one before lay, which is drained first.
    assert_eq!(rig.count(0, |rig| round(rig, 1)), (4, 0));
}

/// Runs a net while a large block is live.
fn large_round(rig: &mut Rig) {
    let large = rig.alloc(0, 4 << 20, 64);
    net(rig, 0, 20, 1);
    rig.free(0, large);
}

#[test]
fn large_block_that_spreads_over_its_pages_leaves_the_plan() {
    let mut rig = Rig::new(1, config());
    rig.threads[0].1.sparsity = 16;
    (0..40).for_each(|_| large_round(&mut rig));
    assert_eq!(rig.count(0, large_round), (42, 0), "it uses the same places each time");
    rig.threads[0].1.sparsity = 6;
    (0..40).for_each(|_| large_round(&mut rig));
    assert_eq!(rig.count(0, large_round), (41, 1));
    assert_eq!(rig.threads[0].1.rested, 1, "what it had spread over is given back");
}

#[test]
fn dense_block_stays_in_the_plan() {
    let mut rig = Rig::new(1, config());
    for sparsity in [16, 2, 1] {
        rig.threads[0].1.sparsity = sparsity;
        (0..40).for_each(|_| large_round(&mut rig));
    }
    assert_eq!((rig.count(0, large_round), rig.threads[0].1.rested), ((42, 0), 0));
}

#[test]
fn round_of_a_block_that_spreads_alone_loses_its_plan() {
    let mut rig = Rig::new(1, Config { least_load: Bytes::new(1 << 20), ..config() });
    rig.threads[0].1.sparsity = 16;
    (0..10).for_each(|_| large_round(&mut rig));
    assert_eq!(rig.count(0, large_round), (42, 0));
    rig.threads[0].1.sparsity = 6;
    (0..40).for_each(|_| large_round(&mut rig));
    assert_eq!(rig.count(0, large_round), (0, 42), "without the block it is not worth one");
}
