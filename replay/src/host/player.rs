//! Plays propagations on a memory, and times them.
//!
//! Several sequences are played in turn, each as one propagation. The address of each block is stored in a table
//! through `black_box`, so the optimiser keeps the store, as for a real caller. Two things are timed, in nanoseconds:
//!
//! - *Propagations* ([`Player::time_propagations`]): thread CPU time and wall time of several in a row, with all calls, the work
//!   on the blocks and the loop over the runs.
//! - *Calls* ([`Player::time_calls`]): wall time around each run of requests and each run of frees, in batches of at least
//!   [`BATCH`] calls. The time excludes the work on the blocks and includes the clock, read twice for a run.
#![allow(unsafe_code, reason = "blocks are raw memory")]

use std::hint::black_box;
use std::mem;

use planlab_dsa::performance::Work;
use planlab_dsa::{Address, Bytes};

use super::checker::{Checker, Fault};
use super::clock::{monotonic_ns, thread_cpu_ns};
use super::memory::Memory;
use crate::pattern;
use crate::sequence::{Kind, Sequence};

/// The least number of calls that are timed together.
pub(super) const BATCH: u64 = 64;

pub(super) struct Player<'s, M> {
    /// The propagations in order.
    sequences: &'s [Sequence],
    /// The index of the current propagation, and its sequence.
    which: usize,
    sequence: &'s Sequence,
    memory: M,
    /// The address of each buffer's live block; 0 if it is not live.
    addresses: Vec<u64>,
    /// For each buffer, the address last found to be memory, and the memory's releases then.
    admitted: Vec<(u64, u64)>,
    /// The same for the sequences that are not being played.
    resting: Vec<Vec<(u64, u64)>>,
    /// The number of propagations so far.
    number: u64,
    /// Whether the memory needs the operation of each request.
    wants_operations: bool,
    /// The operation named last in this propagation.
    entered: Option<u64>,
}

/// Begin, end and CPU time of timed propagations.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) cpu_ns: u64,
}

/// Times of calls of one kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Batches {
    calls: u64,
    ns: u64,
    /// The number of runs so far, each between two looks at the clock, and their total time.
    pub(super) runs: u64,
    pub(super) all_ns: u64,
    /// Picoseconds per call of each batch.
    pub(super) per_call_ps: Vec<u64>,
}

impl Batches {
    fn add_batch(&mut self, calls: usize, ns: u64) {
        self.calls += calls as u64;
        self.ns += ns;
        self.runs += 1;
        self.all_ns += ns;
        if self.calls >= BATCH {
            self.per_call_ps.push(self.ns.saturating_mul(1000) / self.calls);
            (self.calls, self.ns) = (0, 0);
        }
    }
}

/// The work on a block between its request and its free.
trait Toil {
    const TOUCHES: bool;

    /// Default: does nothing.
    ///
    /// # Safety
    ///
    /// The block may be written.
    unsafe fn begin_block(_address: u64, _size: u64, _key: u64) {}

    /// Returns the distance of the first wrong byte, if there is one. Default: looks at none.
    ///
    /// # Safety
    ///
    /// The block may be read, and was given to [`begin_block`](Self::begin_block).
    unsafe fn end_block(_address: u64, _size: u64, _key: u64) -> Option<u64> {
        None
    }
}

struct Nothing;
struct Pages;
struct Patterns;

impl Toil for Nothing {
    const TOUCHES: bool = false;
}

impl Toil for Pages {
    const TOUCHES: bool = true;

    unsafe fn begin_block(address: u64, size: u64, _: u64) {
        // SAFETY: the caller guarantees it.
        unsafe { pattern::touch_pages(address, size) };
    }
}

impl Toil for Patterns {
    const TOUCHES: bool = true;

    unsafe fn begin_block(address: u64, size: u64, key: u64) {
        // SAFETY: the caller guarantees it.
        unsafe { pattern::fill_block(address, size, key) };
    }

    unsafe fn end_block(address: u64, size: u64, key: u64) -> Option<u64> {
        // SAFETY: the caller guarantees it.
        unsafe { pattern::first_wrong(address, size, key) }
    }
}

impl<'s, M: Memory> Player<'s, M> {
    /// # Panics
    ///
    /// If there are no sequences.
    pub(super) fn new(sequences: &'s [Sequence], mut memory: M) -> Self {
        let nowhere = |sequence: &Sequence| vec![(u64::MAX, u64::MAX); sequence.sizes().len()];
        let mut resting: Vec<_> = sequences.iter().map(nowhere).collect();
        let most = resting.iter().map(Vec::len).max().unwrap_or(0);
        let admitted = mem::take(&mut resting[0]);
        let (sequence, addresses) = (&sequences[0], vec![0; most]);
        memory.begin_propagation(sequence.kind());
        let wants_operations = memory.wants_operations();
        Self {
            sequences,
            which: 0,
            sequence,
            memory,
            addresses,
            admitted,
            resting,
            number: 0,
            wants_operations,
            entered: None,
        }
    }

    pub(super) fn memory(&self) -> &M {
        &self.memory
    }

    /// Plays a propagation's runs up to its peak, or the rest, and checks every block.
    pub(super) fn check_propagation(&mut self, checker: &mut Checker, is_rest: bool) -> Result<(), Fault> {
        let sequence = self.sequence;
        let [first, second] = sequence.halves_at_peak();
        let half = if is_rest { second } else { first };
        for (kind, buffers) in half {
            for &buffer in buffers {
                let at = buffer as usize;
                match kind {
                    Kind::Alloc => {
                        self.name_operation(self.needed_operations(), buffer);
                        self.addresses[at] =
                            checker.alloc_block(&mut self.memory, buffer, sequence.sizes()[at])?;
                    }
                    Kind::Free => {
                        let address = mem::take(&mut self.addresses[at]);
                        if !checker.free_block(&mut self.memory, address)? {
                            // The checker does not record the result of a request for no bytes.
                            self.addresses[at] = address;
                            release_block(&mut self.memory, &mut self.addresses, buffer)?;
                        }
                    }
                }
            }
        }
        if is_rest {
            self.finish_propagations();
        }
        Ok(())
    }

    /// Plays `propagations` propagations and times them together.
    pub(super) fn time_propagations(&mut self, work: Work, propagations: u32) -> Result<Times, Fault> {
        let (cpu, start_ns) = (thread_cpu_ns(), monotonic_ns());
        for _ in 0..propagations {
            match work {
                Work::Pages => self.run_propagation(Self::play_runs::<Pages>),
                Work::Pattern => self.run_propagation(Self::play_runs::<Patterns>),
                _ => self.run_propagation(Self::play_runs::<Nothing>),
            }?;
        }
        let end_ns = monotonic_ns();
        Ok(Times { start_ns, end_ns, cpu_ns: thread_cpu_ns() - cpu })
    }

    fn run_propagation(
        &mut self,
        play: impl FnOnce(&mut Self, &mut [u64]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        // A local of the loop, so that its place is not looked up again at every call.
        let mut addresses = mem::take(&mut self.addresses);
        let played = play(self, &mut addresses);
        self.addresses = addresses;
        played?;
        self.finish_propagations();
        Ok(())
    }

    fn play_runs<T: Toil>(&mut self, addresses: &mut [u64]) -> Result<(), Fault> {
        let sequence = self.sequence;
        let (sizes, operations) = (sequence.sizes(), self.needed_operations());
        for (kind, buffers) in sequence.runs() {
            match kind {
                Kind::Alloc if operations.is_some() => {
                    for &buffer in buffers {
                        self.name_operation(operations, buffer);
                        request_block(&mut self.memory, addresses, sizes, buffer)?;
                        self.begin_propagation::<T>(buffer, addresses)?;
                    }
                }
                Kind::Alloc => {
                    for &buffer in buffers {
                        request_block(&mut self.memory, addresses, sizes, buffer)?;
                        self.begin_propagation::<T>(buffer, addresses)?;
                    }
                }
                Kind::Free => {
                    for &buffer in buffers {
                        self.end_toil::<T>(buffer, addresses)?;
                        release_block(&mut self.memory, addresses, buffer)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Plays propagations and times the calls of each run together, without the work: requests, then frees.
    pub(super) fn time_calls(
        &mut self,
        work: Work,
        propagations: u32,
        batches: &mut [Batches; 2],
    ) -> Result<(), Fault> {
        let play = match work {
            Work::Pages => Self::play_runs_apart::<Pages>,
            Work::Pattern => Self::play_runs_apart::<Patterns>,
            _ => Self::play_runs_apart::<Nothing>,
        };
        (0..propagations)
            .try_for_each(|_| self.run_propagation(|player, addresses| play(player, batches, addresses)))
    }

    fn play_runs_apart<T: Toil>(
        &mut self,
        [requests, frees]: &mut [Batches; 2],
        addresses: &mut [u64],
    ) -> Result<(), Fault> {
        let sequence = self.sequence;
        let (sizes, operations) = (sequence.sizes(), self.needed_operations());
        for (kind, buffers) in sequence.runs() {
            let mut all = buffers.iter().copied();
            match kind {
                Kind::Alloc => {
                    let start = monotonic_ns();
                    if operations.is_some() {
                        all.try_for_each(|buffer| {
                            self.name_operation(operations, buffer);
                            request_block(&mut self.memory, addresses, sizes, buffer)
                        })?;
                    } else {
                        all.try_for_each(|buffer| request_block(&mut self.memory, addresses, sizes, buffer))?;
                    }
                    requests.add_batch(buffers.len(), monotonic_ns() - start);
                    buffers.iter().try_for_each(|&buffer| self.begin_propagation::<T>(buffer, addresses))?;
                }
                Kind::Free => {
                    buffers.iter().try_for_each(|&buffer| self.end_toil::<T>(buffer, addresses))?;
                    let start = monotonic_ns();
                    all.try_for_each(|buffer| release_block(&mut self.memory, addresses, buffer))?;
                    frees.add_batch(buffers.len(), monotonic_ns() - start);
                }
            }
        }
        Ok(())
    }

    /// The operation of each buffer, if the memory needs them.
    fn needed_operations(&self) -> Option<&'s [u64]> {
        self.sequence.operations().filter(|_| self.wants_operations)
    }

    /// Names the operation of the next request if it differs from the last one's.
    #[inline]
    fn name_operation(&mut self, operations: Option<&[u64]>, buffer: u32) {
        let Some(operations) = operations else { return };
        let operation = operations[buffer as usize];
        if self.entered.replace(operation) != Some(operation) {
            self.memory.enter_operation(operation);
        }
    }

    fn finish_propagations(&mut self) {
        self.memory.end_propagation();
        self.entered = None;
        self.number += 1;
        if self.sequences.len() > 1 {
            mem::swap(&mut self.admitted, &mut self.resting[self.which]);
            self.which = (self.which + 1) % self.sequences.len();
            mem::swap(&mut self.admitted, &mut self.resting[self.which]);
            self.sequence = &self.sequences[self.which];
        }
        self.memory.begin_propagation(self.sequence.kind());
    }

    #[inline]
    fn begin_propagation<T: Toil>(&mut self, buffer: u32, addresses: &[u64]) -> Result<(), Fault> {
        if T::TOUCHES {
            let (address, size) = self.admit_address(buffer, addresses[buffer as usize])?;
            // SAFETY: the block is live, and the memory backs it.
            unsafe { T::begin_block(address, size, self.block_key(buffer)) };
        }
        Ok(())
    }

    #[inline]
    fn end_toil<T: Toil>(&mut self, buffer: u32, addresses: &[u64]) -> Result<(), Fault> {
        if T::TOUCHES {
            let (address, size) = self.admit_address(buffer, addresses[buffer as usize])?;
            // SAFETY: the block is live, the memory backs it, and `begin` received it when it was handed out.
            if let Some(at) = unsafe { T::end_block(address, size, self.block_key(buffer)) } {
                return Err(Fault::Changed { buffer, at });
            }
        }
        Ok(())
    }

    /// The block of a buffer, if it is memory. The answer for an address stays valid while no memory is released.
    #[inline]
    fn admit_address(&mut self, buffer: u32, address: u64) -> Result<(u64, u64), Fault> {
        let at = buffer as usize;
        let size = self.sequence.sizes()[at];
        let as_of = (address, self.memory.release_count());
        if self.admitted[at] != as_of && size > 0 {
            if !self.memory.is_backed(address, size) {
                return Err(Fault::Outside {
                    buffer,
                    address: Address::new(address),
                    size: Bytes::new(size),
                });
            }
            self.admitted[at] = as_of;
        }
        Ok((address, size))
    }

    #[inline]
    fn block_key(&self, buffer: u32) -> u64 {
        pattern::block_key((self.number << 32) ^ u64::from(buffer))
    }
}

#[inline]
fn request_block<M: Memory>(
    memory: &mut M,
    addresses: &mut [u64],
    sizes: &[u64],
    buffer: u32,
) -> Result<(), Fault> {
    let at = buffer as usize;
    let answer = memory.alloc(sizes[at]);
    addresses[at] = black_box(answer.map_err(|error| Fault::Alloc { buffer, error })?);
    Ok(())
}

#[inline]
fn release_block<M: Memory>(memory: &mut M, addresses: &mut [u64], buffer: u32) -> Result<(), Fault> {
    let address = mem::take(&mut addresses[buffer as usize]);
    // SAFETY: it was taken out of `addresses`, which contains only addresses that this memory handed out, each once.
    unsafe { memory.free(address) }.map_err(|error| Fault::Free { buffer, error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_whole_runs_of_enough_calls() {
        let mut batches = Batches::default();
        batches.add_batch(60, 60);
        assert!(batches.per_call_ps.is_empty());
        batches.add_batch(40, 140);
        batches.add_batch(64, 640);
        assert_eq!(batches.per_call_ps, [2000, 10_000]);
        assert_eq!((batches.runs, batches.all_ns), (3, 840));
    }
}
