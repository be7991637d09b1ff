//! Computes tensors on a device that cannot hold all of them: what is missing is recomputed, and a rule makes room.
//!
//! A tensor is computed once its parents are on the device. All of them are pinned first, then those that are missing
//! are computed in turn, each with its own missing parents. So nothing that a computation waits for is evicted.

use super::tensors::TensorTable;

/// The owner of a piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A tensor, by index.
    Tensor(usize),
    /// Anything else, such as a gradient: it is released by its owner, and never evicted.
    Other(usize),
}

/// The answer to a request for memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// The offset in bytes; `None` if the rule counts bytes alone.
    pub offset: Option<u64>,
    /// The tensors that were evicted for it.
    pub evicted: Vec<usize>,
}

/// Why a computation cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Exhausted {
    /// No evictions make room.
    #[error("out of memory: no evictions make room for {asked} bytes")]
    Memory {
        /// The bytes that are asked for.
        asked: u64,
    },
    /// Tensors are recomputed again and again.
    #[error("out of memory: {limit} runs of functions are not enough")]
    Runs {
        /// The runs of functions that are permitted.
        limit: usize,
    },
}

/// A memory and the rule by which it evicts tensors.
pub trait Room {
    /// Takes `bytes`, which is above 0. Evicts tensors if it must; without an answer, none is evicted.
    ///
    /// # Errors
    ///
    /// [`Exhausted::Memory`] if no evictions make room.
    fn take_bytes(
        &mut self,
        tensors: &mut TensorTable,
        holder: Holder,
        bytes: u64,
    ) -> Result<Grant, Exhausted>;

    /// Takes back the `bytes` of a holder.
    fn release_bytes(&mut self, holder: Holder, bytes: u64);
}

/// What holds the values of tensors.
pub trait Device {
    /// Computes a tensor from its parents, which are on the device.
    fn compute_tensor(&mut self, tensor: usize, offset: Option<u64>);

    /// Forgets the value of a tensor.
    fn discard_tensor(&mut self, tensor: usize);
}

/// Tensors in a room.
#[derive(Clone, Debug)]
pub struct Runtime<R> {
    /// The tensors.
    pub tensors: TensorTable,
    room: R,
    /// The runs of functions that are permitted, and those that are left.
    runs: (usize, usize),
}

impl<R: Room> Runtime<R> {
    /// Tensors in a room; all are off the device. Functions may run `limit` times.
    #[must_use]
    pub const fn new(tensors: TensorTable, room: R, limit: usize) -> Self {
        Self { tensors, room, runs: (limit, limit) }
    }

    /// Puts an input on the device, for good, and returns its offset.
    ///
    /// # Errors
    ///
    /// As of [`Room::take_bytes`].
    pub fn hold_input(&mut self, tensor: usize, device: &mut impl Device) -> Result<Option<u64>, Exhausted> {
        let offset = self.reserve_bytes(Holder::Tensor(tensor), self.tensors.bytes(tensor), device)?;
        self.tensors.mark_resident(tensor);
        Ok(offset)
    }

    /// Pins some tensors, and computes those that are not on the device.
    ///
    /// # Errors
    ///
    /// [`Exhausted`] if that is not possible; tensors may then be pinned that were not before.
    pub fn fetch_tensors(&mut self, wanted: &[usize], device: &mut impl Device) -> Result<(), Exhausted> {
        wanted.iter().for_each(|&tensor| self.tensors.pin(tensor));
        for &tensor in wanted {
            if !self.tensors.is_resident(tensor) {
                self.compute_tensor(tensor, device)?;
            }
        }
        Ok(())
    }

    /// Computes a tensor that is not on the device, and before it what it takes.
    ///
    /// # Errors
    ///
    /// As of [`Runtime::fetch_tensors`].
    pub fn compute_tensor(&mut self, tensor: usize, device: &mut impl Device) -> Result<(), Exhausted> {
        self.tensors.pin_parents(tensor);
        // Tensors with the number of parents that were looked at.
        let mut open = vec![(tensor, 0)];
        while let Some((current, place)) = open.pop() {
            let Some(&parent) = self.tensors.parents(current).get(place) else {
                self.run_function(current, device)?;
                continue;
            };
            open.push((current, place + 1));
            if !self.tensors.is_resident(parent) {
                self.tensors.pin_parents(parent);
                open.push((parent, 0));
            }
        }
        Ok(())
    }

    /// Computes a tensor from its parents, which are on the device and pinned.
    fn run_function(&mut self, tensor: usize, device: &mut impl Device) -> Result<(), Exhausted> {
        let (limit, left) = self.runs;
        self.runs.1 = left.checked_sub(1).ok_or(Exhausted::Runs { limit })?;
        let offset = self.reserve_bytes(Holder::Tensor(tensor), self.tensors.bytes(tensor), device)?;
        self.tensors.touch_parents(tensor);
        device.compute_tensor(tensor, offset);
        self.tensors.advance_clock(self.tensors.seconds(tensor));
        self.tensors.mark_resident(tensor);
        self.tensors.unpin_parents(tensor);
        Ok(())
    }

    /// Takes memory, and returns its offset.
    ///
    /// # Errors
    ///
    /// As of [`Room::take_bytes`].
    pub fn reserve_bytes(
        &mut self,
        holder: Holder,
        bytes: u64,
        device: &mut impl Device,
    ) -> Result<Option<u64>, Exhausted> {
        let grant = self.room.take_bytes(&mut self.tensors, holder, bytes)?;
        grant.evicted.iter().for_each(|&tensor| device.discard_tensor(tensor));
        Ok(grant.offset)
    }

    /// Takes back the memory of what is no tensor.
    pub fn release_bytes(&mut self, holder: Holder, bytes: u64) {
        self.room.release_bytes(holder, bytes);
    }

    /// Evicts a tensor that the program does not need any more, unless it is pinned, an input, or not on the device.
    pub fn drop_tensor(&mut self, tensor: usize, device: &mut impl Device) {
        if self.tensors.is_evictable(tensor) {
            self.tensors.evict(tensor);
            self.room.release_bytes(Holder::Tensor(tensor), self.tensors.bytes(tensor));
            device.discard_tensor(tensor);
        }
    }
}
