//! How plans are made, kept and left.

use planlab_dsa::Simulated;

use super::*;

/// A memory and the addresses of one propagation's requests.
struct Net {
    memory: ProfileGuided,
}

impl Net {
    fn new() -> Self {
        Self { memory: ProfileGuided::new(Box::new(Simulated::new())) }
    }

    fn alloc(&mut self, units: u64) -> Address {
        self.memory.alloc(Bytes::new(units * UNIT), Stream::default()).expect("no limit")
    }

    fn free(&mut self, blocks: impl IntoIterator<Item = Address>) {
        blocks.into_iter().for_each(|block| self.memory.free(block).expect("live"));
    }

    /// Each buffer lives until the next but one is there.
    fn propagate(&mut self, sizes: &[u64]) -> Vec<Address> {
        let mut blocks = Vec::new();
        for &size in sizes {
            let block = self.alloc(size);
            let before = blocks.len().checked_sub(1).map(|last| blocks[last]);
            blocks.push(block);
            self.free(before);
        }
        self.free(blocks.last().copied());
        self.memory.end_propagation();
        blocks
    }

    fn counts(&self) -> (u64, u64, u64) {
        let replay = self.memory.replay();
        (replay.plans, replay.planned, replay.pooled)
    }
}

#[test]
fn a_propagation_that_comes_again_lies_where_it_was_planned() {
    let mut net = Net::new();
    net.propagate(&[4, 2, 4]);
    let first = net.propagate(&[4, 2, 4]);
    assert_eq!(net.propagate(&[4, 2, 4]), first);
    assert_eq!(net.counts(), (1, 6, 3));
    assert_eq!(net.memory.usage().reserved, Bytes::new(6 * UNIT));
}

#[test]
fn smaller_and_fewer_requests_keep_the_plan() {
    let mut net = Net::new();
    net.propagate(&[4, 2, 4]);
    net.propagate(&[3, 2, 4]);
    net.propagate(&[4, 2]);
    assert_eq!(net.counts(), (1, 5, 3));
}

#[test]
fn a_larger_request_goes_to_the_pool_and_is_planned_for_the_next_time() {
    let mut net = Net::new();
    net.propagate(&[4, 2, 4]);
    net.propagate(&[4, 3, 4]);
    assert_eq!(net.counts(), (2, 2, 4));
    net.propagate(&[4, 3, 4]);
    // The larger of both sizes was planned.
    net.propagate(&[1, 1, 4]);
    assert_eq!(net.counts(), (2, 8, 4));
    assert_eq!(net.memory.usage().reserved, Bytes::new(7 * UNIT));
}

#[test]
fn a_buffer_that_lives_longer_than_planned_keeps_its_memory() {
    let mut net = Net::new();
    net.propagate(&[4, 2, 4]);
    let first = net.alloc(4);
    let second = net.alloc(2);
    let third = net.alloc(4);
    assert_ne!(first, third);
    net.free([first, second, third]);
    net.memory.end_propagation();
    assert_eq!(net.counts(), (2, 2, 4));
    // Now all three are planned to live at once.
    let blocks = [4, 2, 4].map(|size| net.alloc(size));
    net.free(blocks);
    assert_eq!(net.counts(), (2, 5, 4));
}

#[test]
fn what_outlives_its_propagation_is_left_to_the_pool() {
    let mut net = Net::new();
    let mut kept = Vec::new();
    for _ in 0..3 {
        let weight = net.alloc(8);
        kept.push(weight);
        net.propagate(&[4, 2]);
    }
    assert_eq!(net.counts(), (1, 4, 5));
    net.free(kept);
}

#[test]
fn a_block_of_an_earlier_propagation_is_not_overwritten() {
    let mut net = Net::new();
    net.propagate(&[4, 2]);
    let late = net.alloc(4);
    net.memory.end_propagation();
    let next = net.alloc(4);
    assert_ne!(next, late);
    net.free([late, next]);
    assert_eq!(net.memory.free(late), Err(NotLive { address: late }));
}

#[test]
fn interruptions_are_not_part_of_the_plan() {
    let mut net = Net::new();
    for round in 0..3 {
        let block = net.alloc(4);
        net.memory.interrupt();
        let other = net.alloc(100 + round);
        net.memory.resume();
        net.free([block, other]);
        net.memory.end_propagation();
    }
    assert_eq!(net.counts(), (1, 2, 4));
}

#[test]
fn an_operation_that_is_left_out_does_not_shift_the_others() {
    let mut net = Net::new();
    let mut run = |operations: &[u64]| {
        for &operation in operations {
            net.memory.enter(operation);
            let block = net.alloc(operation);
            net.free([block]);
        }
        net.memory.end_propagation();
        net.counts()
    };
    assert_eq!(run(&[1, 2, 9, 3]), (1, 0, 4));
    assert_eq!(run(&[1, 9, 3]), (1, 3, 4));
    // One more, that was never planned; the others still are.
    assert_eq!(run(&[1, 2, 7, 9, 3]), (2, 7, 5));
}

#[test]
fn every_kind_of_propagation_has_its_plan() {
    let mut net = Net::new();
    for round in 0..3 {
        net.memory.choose(1);
        net.propagate(&[4, 2, 4]);
        net.memory.choose(2);
        net.propagate(&[9, 1]);
        assert_eq!(net.counts(), (2, 5 * round, 5));
    }
}

#[test]
fn without_memory_for_the_plan_the_pool_goes_on() {
    let backing = Simulated::with_capacity(Bytes::new(8 * UNIT));
    let mut net = Net { memory: ProfileGuided::new(Box::new(backing)) };
    let weight = net.alloc(1);
    let blocks = [3, 4].map(|size| net.alloc(size));
    net.free(blocks);
    net.memory.end_propagation();
    let wall = net.alloc(1);
    let blocks = [3, 3].map(|size| net.alloc(size));
    net.free(blocks);
    net.free([wall, weight]);
    net.memory.release_cached();
    assert_eq!(net.memory.usage().reserved, Bytes::ZERO);
}
