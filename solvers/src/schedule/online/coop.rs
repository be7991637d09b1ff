//! Coop: evicts a window of neighbouring addresses, so that what is evicted is where the next tensor goes.
//!
//! Tensors are computed as by [`Dtr`](super::Dtr), but in a memory with addresses. If no gap is large enough, a window
//! slides over the memory in the order of addresses. It covers tensors and the gaps between them, but nothing that
//! stays; it is as long as the request, and as short as its ends permit. The window whose tensors cost least to lose is
//! evicted.
//!
//! ```text
//!  |aaaa|bb|....|cccc| pinned |dd|eeee|..|    a request of 8 bytes:
//!   [---------]                               a, b and a gap
//!        [---------]                          b, a gap and c
//!                             [---------]     d, e and a gap
//! ```
//!
//! Cheap tensors are placed at low addresses and expensive ones at high ones, so that the windows of cheap tensors are
//! not split by expensive ones. Cheap are those that take at most the median number of seconds per byte.
//!
//! # References
//!
//! 1. J. Zhang, S. Ma, P. Liu, J. Yuan: Coop: Memory is not a Commodity. NeurIPS 2023, arXiv:2311.00591.
//! 2. M. Kirisame et al.: Dynamic Tensor Rematerialization. ICLR 2021, arXiv:2006.09616.
//!
//! # Complexity
//!
//! For each request O(n m) for n maps on the device with evicted neighbourhoods of m maps. At most 16 n + 64 functions
//! run.
//!
//! # Deviations from the paper
//!
//! - As of [`Dtr`](super::Dtr): only feature maps are evicted, and the neighbourhood is exact.
//! - A window costs the sum of seconds over staleness: its bytes are those of the request in any case, so they do not
//!   divide.
//! - Inputs of the net and gradients, which are never evicted, count as expensive. Parameters are in the base, so nothing
//!   is updated in place.

use planlab_graph::{ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor};

use super::player::{free_bytes, offer_iteration};
use super::runtime::{Exhausted, Grant, Holder, Room};
use super::tensors::TensorTable;

const KEY: &str = "coop";

/// Evicts windows of addresses; key `coop`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coop;

impl Scheduler for Coop {
    fn descriptor(&self) -> SchedulerDescriptor {
        SchedulerDescriptor {
            key: KEY.into(),
            summary: "evicts online the cheapest window of addresses; recomputes on demand; offsets fit"
                .into(),
            randomized: false,
            reference: "Zhang et al. 2023",
            complexity: "n^2 for each eviction",
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let problem = run.problem();
        let threshold = TensorTable::from_problem(problem).median_cost_density();
        offer_iteration(run, KEY, AddressRoom::new(free_bytes(problem), threshold))
    }
}

/// A memory with addresses.
#[derive(Clone, Debug)]
pub struct AddressRoom {
    capacity: u64,
    /// The highest number of seconds per byte of a cheap tensor.
    threshold: f64,
    /// What is taken, ascending and disjoint.
    blocks: Vec<Block>,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    start: u64,
    end: u64,
    holder: Holder,
}

/// A part of the memory: a gap or a block.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: u64,
    end: u64,
    content: PieceContent,
}

#[derive(Clone, Copy, Debug)]
enum PieceContent {
    Gap,
    /// It stays.
    Fixed,
    /// A tensor that can be evicted, and what its loss costs.
    Evictable {
        tensor: usize,
        cost: f64,
    },
}

/// Pieces that are vacated together.
#[derive(Clone, Debug)]
struct Window {
    start: u64,
    end: u64,
    cost: f64,
    tensors: Vec<usize>,
}

impl AddressRoom {
    /// An empty memory. Tensors that take up to `threshold` seconds per byte are cheap.
    #[must_use]
    pub const fn new(capacity: u64, threshold: f64) -> Self {
        Self { capacity, threshold, blocks: Vec::new() }
    }

    fn is_cheap(&self, tensors: &TensorTable, holder: Holder) -> bool {
        match holder {
            Holder::Tensor(tensor) => {
                tensors.cost_density(tensor).is_some_and(|density| density <= self.threshold)
            }
            Holder::Other(_) => false,
        }
    }

    /// All parts of the memory, ascending.
    fn list_pieces(&self, tensors: &TensorTable) -> Vec<Piece> {
        let mut pieces = Vec::with_capacity(2 * self.blocks.len() + 1);
        let mut top = 0;
        for block in &self.blocks {
            add_gap(&mut pieces, top, block.start);
            let content = match block.holder {
                Holder::Tensor(tensor) if tensors.is_evictable(tensor) => {
                    PieceContent::Evictable { tensor, cost: tensors.loss_rate(tensor) }
                }
                Holder::Tensor(_) | Holder::Other(_) => PieceContent::Fixed,
            };
            pieces.push(Piece { start: block.start, end: block.end, content });
            top = block.end;
        }
        add_gap(&mut pieces, top, self.capacity);
        pieces
    }

    fn insert_block(&mut self, block: Block) {
        let place = self.blocks.partition_point(|other| other.start < block.start);
        self.blocks.insert(place, block);
    }
}

fn add_gap(pieces: &mut Vec<Piece>, start: u64, end: u64) {
    if start < end {
        pieces.push(Piece { start, end, content: PieceContent::Gap });
    }
}

impl Window {
    /// # Panics
    ///
    /// If there are no pieces.
    fn from_pieces(pieces: &[Piece]) -> Self {
        let mut window =
            Self { start: pieces[0].start, end: pieces[0].start, cost: 0.0, tensors: Vec::new() };
        for piece in pieces {
            window.end = piece.end;
            if let PieceContent::Evictable { tensor, cost } = piece.content {
                window.cost += cost;
                window.tensors.push(tensor);
            }
        }
        window
    }

    /// Whether it costs less; of equal windows, whether it has fewer tensors, or is nearer to the request's end of the
    /// memory.
    fn is_better(&self, other: &Self, is_cheap: bool) -> bool {
        let order = self.cost.total_cmp(&other.cost).then(self.tensors.len().cmp(&other.tensors.len()));
        let nearer = if is_cheap { self.start.cmp(&other.start) } else { other.end.cmp(&self.end) };
        order.then(nearer).is_lt()
    }
}

/// The best window of at least `bytes` without a fixed piece. Only windows count that are too short without either end.
fn find_window(pieces: &[Piece], bytes: u64, is_cheap: bool) -> Option<Window> {
    let mut best: Option<Window> = None;
    let mut left = 0;
    for (right, piece) in pieces.iter().enumerate() {
        if matches!(piece.content, PieceContent::Fixed) {
            left = right + 1;
            continue;
        }
        while left < right && piece.end - pieces[left + 1].start >= bytes {
            left += 1;
        }
        if piece.end - pieces[left].start >= bytes {
            let window = Window::from_pieces(&pieces[left..=right]);
            if best.as_ref().is_none_or(|best| window.is_better(best, is_cheap)) {
                best = Some(window);
            }
        }
    }
    best
}

impl Room for AddressRoom {
    fn take_bytes(
        &mut self,
        tensors: &mut TensorTable,
        holder: Holder,
        bytes: u64,
    ) -> Result<Grant, Exhausted> {
        let is_cheap = self.is_cheap(tensors, holder);
        let window = find_window(&self.list_pieces(tensors), bytes, is_cheap)
            .ok_or(Exhausted::Memory { asked: bytes })?;
        for &tensor in &window.tensors {
            tensors.evict(tensor);
            self.release_bytes(Holder::Tensor(tensor), tensors.bytes(tensor));
        }
        let start = if is_cheap { window.start } else { window.end - bytes };
        self.insert_block(Block { start, end: start + bytes, holder });
        Ok(Grant { offset: Some(start), evicted: window.tensors })
    }

    fn release_bytes(&mut self, holder: Holder, _bytes: u64) {
        self.blocks.retain(|block| block.holder != holder);
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Bytes;
    use planlab_graph::{Engine, ScheduleBudget, execute_scheduler};

    use super::*;
    use crate::schedule::online::ByteRoom;
    use crate::schedule::testing::{chain_problem, event_names};

    /// Tensors of 2 bytes on the device, without parents, of these seconds; last used a second ago.
    fn independent_tensors(seconds: &[f64]) -> TensorTable {
        let mut tensors = TensorTable::default();
        for &seconds in seconds {
            let tensor = tensors.add_tensor(2, Some(seconds), &[]);
            tensors.mark_resident(tensor);
        }
        tensors.advance_clock(1.0);
        tensors
    }

    /// A memory in which these tensors lie one after another, all cheap.
    fn filled_room(tensors: &mut TensorTable) -> AddressRoom {
        let mut room = AddressRoom::new(2 * tensors.len() as u64, 100.0);
        for tensor in 0..tensors.len() {
            let grant = room.take_bytes(tensors, Holder::Tensor(tensor), 2).expect("there is room");
            assert_eq!(grant, Grant { offset: Some(2 * tensor as u64), evicted: Vec::new() });
        }
        room
    }

    #[test]
    fn window_is_contiguous_where_single_victims_are_not() {
        let seconds = [1.0, 4.0, 1.5, 2.0];
        let mut tensors = independent_tensors(&seconds);
        let mut by_bytes = ByteRoom::new(0);
        let grant = by_bytes.take_bytes(&mut tensors, Holder::Other(0), 4).expect("there is room");
        // Bytes 0 and 1, and bytes 4 and 5.
        assert_eq!(grant.evicted, [0, 2]);

        let mut tensors = independent_tensors(&seconds);
        let mut room = filled_room(&mut tensors);
        let grant = room.take_bytes(&mut tensors, Holder::Other(0), 4).expect("there is room");
        // Windows cost 5, 5.5 and 3.5.
        assert_eq!(grant, Grant { offset: Some(4), evicted: vec![2, 3] });
    }

    #[test]
    fn gaps_are_part_of_a_window() {
        let mut tensors = independent_tensors(&[1.0, 4.0, 1.5, 2.0]);
        let mut room = filled_room(&mut tensors);
        for tensor in [0, 2] {
            tensors.evict(tensor);
            room.release_bytes(Holder::Tensor(tensor), 2);
        }
        // The gaps of 2 bytes do not hold 3; with the last tensor the second one does.
        let grant = room.take_bytes(&mut tensors, Holder::Other(0), 3).expect("there is room");
        assert_eq!(grant, Grant { offset: Some(5), evicted: vec![3] });
        let grant = room.take_bytes(&mut tensors, Holder::Other(1), 2).expect("there is room");
        assert_eq!(grant, Grant { offset: Some(0), evicted: Vec::new() });
    }

    #[test]
    fn pinned_tensor_splits_the_memory() {
        let mut tensors = independent_tensors(&[1.0, 1.0, 1.0]);
        let mut room = filled_room(&mut tensors);
        tensors.pin(1);
        let refused = room.take_bytes(&mut tensors, Holder::Other(0), 3);
        assert_eq!(refused, Err(Exhausted::Memory { asked: 3 }));
        assert!(tensors.is_resident(0) && tensors.is_resident(2), "nothing is evicted in vain");
        tensors.unpin(1);
        let grant = room.take_bytes(&mut tensors, Holder::Other(0), 3).expect("there is room");
        assert_eq!(grant, Grant { offset: Some(3), evicted: vec![1, 2] });
    }

    #[test]
    fn cheap_and_expensive_tensors_grow_from_both_ends() {
        let mut tensors = TensorTable::default();
        for seconds in [Some(1.0), Some(9.0), None, Some(1.0), Some(9.0)] {
            tensors.add_tensor(2, seconds, &[]);
        }
        let mut room = AddressRoom::new(20, tensors.median_cost_density() / 2.0);
        let offsets: Vec<_> = (0..5)
            .map(|tensor| room.take_bytes(&mut tensors, Holder::Tensor(tensor), 2).expect("room").offset)
            .collect();
        assert_eq!(offsets, [0, 18, 16, 2, 14].map(Some));
    }

    #[test]
    fn chain_has_offsets_inside_the_capacity() {
        let problem = chain_problem(&[1, 4, 4, 4, 1]).with_capacity(Bytes::new(13));
        let outcome = execute_scheduler(&Coop, &problem, ScheduleBudget::default(), 0);
        assert!(outcome.end.is_ok(), "{:?}", outcome.end);
        let best = outcome.best.expect("a schedule");
        let steps = event_names(best.schedule().events_of(Engine::Compute));
        assert_eq!(steps, "F0 F1 F2 F3 B3 B2 R0 B1 B0");
        assert_eq!((best.seconds(), best.height()), (9.0, Bytes::new(13)));
        // The image, the three maps from the bottom, and the loss at the top of the first one's place.
        let offsets = best.schedule().buffers.iter().map(|buffer| buffer.offset.map(|offset| offset.get()));
        assert_eq!(offsets.take(5).collect::<Vec<_>>(), [12, 0, 4, 8, 3].map(Some));
    }
}
