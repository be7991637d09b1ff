//! Dynamic tensor rematerialisation: evicts what costs least to lose, one tensor at a time, whenever memory is short.
//!
//! The passes run in their order. Before each one, operands that are missing are recomputed, and their operands first.
//! While the next outputs do not fit, the tensor with the least
//!
//! ```text
//! h(t) = (seconds(t) + seconds(evicted neighbourhood of t)) / (bytes(t) * seconds since the last use of t)
//! ```
//!
//! is evicted. A map that no later pass needs is evicted at once; if a recomputation needs it, it is recomputed, and
//! stays until it is evicted by the rule.
//!
//! # References
//!
//! 1. M. Kirisame et al.: Dynamic Tensor Rematerialization. ICLR 2021, arXiv:2006.09616.
//!
//! # Complexity
//!
//! For each eviction O(n m) for n maps on the device with neighbourhoods of m maps. At most 16 n + 64 functions run.
//!
//! # Deviations from the paper
//!
//! - Only feature maps are evicted: gradients stay until they are used.
//! - Seconds are those of the computing so far, not of a clock.
//! - Operands count as used when their function starts, its output when it ends, as in the authors' simulator.
//! - The neighbourhood is exact, not a union-find approximation.
//! - A map leaves after its last use before it is evicted, and not when the memory is needed. That takes less memory.

use planlab_graph::{ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor};

use super::player::{free_bytes, offer_iteration};
use super::runtime::{Exhausted, Grant, Holder, Room};
use super::tensors::TensorTable;

const KEY: &str = "dtr";

/// Evicts one tensor after another; key `dtr`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dtr;

impl Scheduler for Dtr {
    fn descriptor(&self) -> SchedulerDescriptor {
        SchedulerDescriptor {
            key: KEY.into(),
            summary: "evicts online the map with the least cost for its bytes and age; recomputes on demand"
                .into(),
            randomized: false,
            reference: "Kirisame et al. 2021",
            complexity: "n^2 for each eviction",
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let room = ByteRoom::new(free_bytes(run.problem()));
        offer_iteration(run, KEY, room)
    }
}

/// A memory in which only the number of bytes counts.
#[derive(Clone, Debug)]
pub struct ByteRoom {
    free: u64,
}

impl ByteRoom {
    /// An empty memory.
    #[must_use]
    pub const fn new(capacity: u64) -> Self {
        Self { free: capacity }
    }
}

/// The tensor with the least heuristic, the first of equal ones.
fn cheapest_tensor(tensors: &TensorTable) -> Option<usize> {
    let rated = tensors.evictable_tensors().map(|tensor| (tensors.loss_rate_per_byte(tensor), tensor));
    rated.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, tensor)| tensor)
}

impl Room for ByteRoom {
    fn take_bytes(
        &mut self,
        tensors: &mut TensorTable,
        _holder: Holder,
        bytes: u64,
    ) -> Result<Grant, Exhausted> {
        let mut available = self.free;
        for tensor in tensors.evictable_tensors() {
            available = available.saturating_add(tensors.bytes(tensor));
        }
        if available < bytes {
            return Err(Exhausted::Memory { asked: bytes });
        }
        let mut grant = Grant::default();
        while self.free < bytes {
            let victim = cheapest_tensor(tensors).ok_or(Exhausted::Memory { asked: bytes })?;
            tensors.evict(victim);
            self.free += tensors.bytes(victim);
            grant.evicted.push(victim);
        }
        self.free -= bytes;
        Ok(grant)
    }

    fn release_bytes(&mut self, _holder: Holder, bytes: u64) {
        self.free += bytes;
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Bytes;
    use planlab_graph::{Engine, ScheduleBudget, execute_scheduler};

    use super::*;
    use crate::schedule::online::runtime::{Device, Runtime};
    use crate::schedule::testing::{chain_problem, event_names};

    /// Notes what happens.
    #[derive(Default)]
    struct Log {
        computed: Vec<usize>,
        evicted: Vec<usize>,
    }

    impl Device for Log {
        fn compute_tensor(&mut self, tensor: usize, _offset: Option<u64>) {
            self.computed.push(tensor);
        }

        fn discard_tensor(&mut self, tensor: usize) {
            self.evicted.push(tensor);
        }
    }

    /// An input and five tensors of a byte in a chain, in 4 bytes; the first takes 3 seconds, the others one.
    #[test]
    fn chain_is_evicted_in_the_order_of_the_heuristic() {
        let mut tensors = TensorTable::default();
        tensors.add_tensor(1, None, &[]);
        for tensor in 1..=5 {
            tensors.add_tensor(1, Some(if tensor == 1 { 3.0 } else { 1.0 }), &[tensor - 1]);
        }
        let mut runtime = Runtime::new(tensors, ByteRoom::new(4), 100);
        let mut log = Log::default();
        runtime.hold_input(0, &mut log).expect("there is room");
        for tensor in 1..=5 {
            runtime.compute_tensor(tensor, &mut log).expect("there is room");
        }
        // For 4 at 5 s: h(1) = 3 / 2 and h(2) = 1. For 5 at 6 s: h(1) = (3 + 1) / 3 and h(3) = (1 + 1) / 1.
        assert_eq!(log.evicted, [2, 1]);
        runtime.compute_tensor(2, &mut log).expect("there is room");
        // For 1 at 7 s: h(3) = (1 + 1 + 3) / 2, h(4) = 1, and 5 is in use. For 2 at 10 s: h(3) = 3 / 5, h(5) = 2 / 3.
        assert_eq!(log.evicted, [2, 1, 4, 3]);
        assert_eq!(log.computed, [1, 2, 3, 4, 5, 1, 2]);
    }

    #[test]
    fn larger_tensor_is_evicted_first() {
        let mut tensors = TensorTable::default();
        for bytes in [2, 3, 2] {
            let tensor = tensors.add_tensor(bytes, Some(1.0), &[]);
            tensors.mark_resident(tensor);
        }
        tensors.advance_clock(1.0);
        let mut room = ByteRoom::new(0);
        let grant = room.take_bytes(&mut tensors, Holder::Other(0), 4).expect("there is room");
        assert_eq!(grant.evicted, [1, 0]);
        let refused = room.take_bytes(&mut tensors, Holder::Other(0), 4);
        assert_eq!(refused, Err(Exhausted::Memory { asked: 4 }));
        assert!(tensors.is_resident(2), "nothing is evicted in vain");
    }

    #[test]
    fn endless_recomputation_ends_at_the_limit() {
        let mut tensors = TensorTable::default();
        let first = tensors.add_tensor(1, Some(1.0), &[]);
        let mut runtime = Runtime::new(tensors, ByteRoom::new(1), 2);
        let mut log = Log::default();
        for expected in [Ok(()), Ok(()), Err(Exhausted::Runs { limit: 2 })] {
            assert_eq!(runtime.compute_tensor(first, &mut log), expected);
            runtime.drop_tensor(first, &mut log);
        }
    }

    /// An image of a byte, three maps of 4 and a loss of 1. Everything kept takes 17 bytes.
    #[test]
    fn chain_in_less_memory_recomputes_what_is_stale() {
        let steps = |capacity| {
            let problem = chain_problem(&[1, 4, 4, 4, 1]).with_capacity(Bytes::new(capacity));
            let outcome = execute_scheduler(&Dtr, &problem, ScheduleBudget::default(), 0);
            assert!(outcome.end.is_ok(), "{:?}", outcome.end);
            outcome.best.map(|best| event_names(best.schedule().events_of(Engine::Compute)))
        };
        assert_eq!(steps(17).as_deref(), Some("F0 F1 F2 F3 B3 B2 B1 B0"));
        assert_eq!(steps(13).as_deref(), Some("F0 F1 F2 F3 B3 B2 R0 B1 B0"));
        // The image, a map and the gradients of two.
        assert_eq!(steps(12), None);
    }
}
