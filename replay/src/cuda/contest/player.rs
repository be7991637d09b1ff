//! Plays one propagation on a contender: addresses from its memory, kernels on the device.

#![allow(unsafe_code, reason = "kernels get addresses; they are looked up in the book of what is held")]

use planlab_dsa::{Address, AllocError, Bytes, NotLive, OnlineAllocator, Requests, Stream};

use super::contenders::Memory;
use crate::cuda::driver::{Driver, DriverError, GRANULE, Kernel, SLOTS, WORD, pattern};
use crate::{Kind, Sequence};

/// The requests of a propagation, and how long its operations take.
#[derive(Clone, Debug)]
pub struct Score {
    sequence: Sequence,
    /// Nanoseconds of device work after each buffer's request, by its id.
    operations: Option<Vec<u64>>,
}

impl Score {
    /// The requests of a trace.
    #[must_use]
    pub fn new(requests: &Requests) -> Self {
        Self { sequence: Sequence::new(requests), operations: None }
    }

    /// Adds the nanoseconds that the device works after each request, by the buffers' ids. Default: not known.
    ///
    /// # Panics
    ///
    /// If there is not one time for each buffer.
    #[must_use]
    pub fn with_operations(mut self, nanoseconds: Vec<u64>) -> Self {
        assert_eq!(nanoseconds.len(), self.sequence.sizes().len(), "one time for each buffer");
        self.operations = Some(nanoseconds);
        self
    }

    /// Whether the duration of operations is known.
    #[must_use]
    pub const fn has_operations(&self) -> bool {
        self.operations.is_some()
    }

    /// The requests and frees.
    #[must_use]
    pub const fn sequence(&self) -> &Sequence {
        &self.sequence
    }

    /// The number of kernels in a propagation.
    pub(super) fn kernel_count(&self, touch: Touch) -> usize {
        let touched = self.sequence.sizes().iter().filter(|&&size| size > 0).count();
        let busy = self.operations.iter().flatten().filter(|&&nanoseconds| nanoseconds > 0).count();
        match touch {
            Touch::Nothing => 0,
            Touch::Sum | Touch::Check(_) => 2 * touched,
            Touch::Operations => 2 * touched + busy,
        }
    }

    /// Adds to `slots` what the kernels of `propagations` propagations add to the counters.
    pub(super) fn add_sums(&self, propagations: u64, slots: &mut [u64]) {
        for (_, ids) in self.sequence.runs().filter(|(kind, _)| *kind == Kind::Free) {
            for &id in ids {
                let words = self.sequence.sizes()[id as usize].div_ceil(WORD);
                let sum = pattern::pattern_sum(pattern::block_seed(id, 0), words).wrapping_mul(propagations);
                let slot = &mut slots[id as usize % SLOTS];
                *slot = slot.wrapping_add(sum);
            }
        }
    }
}

/// What is done with the memory between a request and its free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    Nothing,
    /// One kernel writes, one adds up.
    Sum,
    /// As `Sum`, and the device works for the duration of the operations.
    Operations,
    /// One kernel writes a pattern that differs in each round, one counts the wrong words.
    Check(u32),
}

/// Why a propagation stopped early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Stop {
    #[error("buffer {buffer}: {error}")]
    Alloc { buffer: u32, error: AllocError },
    #[error("buffer {buffer}: {error}")]
    Free { buffer: u32, error: NotLive },
    #[error("buffer {buffer}: {size} bytes at {at} are not memory of the contender")]
    Stray { buffer: u32, at: Address, size: u64 },
    #[error("buffer {buffer}: address {at} is no multiple of 16 bytes")]
    Misaligned { buffer: u32, at: Address },
    #[error(transparent)]
    Device(#[from] DriverError),
}

/// The most that was held, checked at each request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Peaks {
    pub(super) used: u64,
    /// The least free memory of the device, counting all its users.
    pub(super) least_free: u64,
    /// The most that the contender had reserved, and its reserved bytes at the last question to the device.
    reserved: u64,
    asked_at: Option<u64>,
    /// How often the device was asked.
    questions: u32,
}

/// Some drivers take milliseconds to report the free memory; after this many questions, fewer are asked.
const QUESTIONS: u32 = 2000;

impl Peaks {
    /// No peaks yet; `free` bytes of the device are free.
    pub(super) fn new(free: u64) -> Self {
        Self { least_free: free, ..Self::default() }
    }

    /// The peaks of two players together.
    pub(super) fn combined_with(self, other: Self) -> Self {
        Self {
            used: self.used.max(other.used),
            least_free: self.least_free.min(other.least_free),
            reserved: self.reserved.max(other.reserved),
            asked_at: None,
            questions: self.questions + other.questions,
        }
    }

    /// Whether to ask the device: only if the reserved bytes have changed. After many questions, they must also be at
    /// most a granule below their peak.
    fn should_ask(&mut self, reserved: u64) -> bool {
        self.reserved = self.reserved.max(reserved);
        let is_near = reserved.saturating_add(GRANULE) > self.reserved;
        let asks = self.asked_at != Some(reserved) && (self.questions < QUESTIONS || is_near);
        if asks {
            (self.asked_at, self.questions) = (Some(reserved), self.questions + 1);
        }
        asks
    }
}

/// Where the buffers of a propagation lie.
pub(super) struct Player<'a> {
    driver: &'a dyn Driver,
    score: &'a Score,
    addresses: Vec<Address>,
    /// For each buffer, the address last found to be memory, and the memory's releases then.
    admitted: Vec<(Address, u64)>,
    /// The peaks, if they are wanted.
    pub(super) peaks: Option<Peaks>,
    /// The operation of each buffer, if the allocator needs it.
    operations: Option<&'a [u64]>,
    /// The operation named last in this propagation.
    entered: Option<u64>,
}

impl<'a> Player<'a> {
    pub(super) fn new(driver: &'a dyn Driver, score: &'a Score) -> Self {
        let buffers = score.sequence.sizes().len();
        Self {
            driver,
            score,
            addresses: vec![Address::NULL; buffers],
            admitted: vec![(Address::NULL, u64::MAX); buffers],
            peaks: None,
            operations: None,
            entered: None,
        }
    }

    /// Also records how much is held at each request, which takes time.
    pub(super) fn with_peaks(mut self, least_free: u64) -> Self {
        self.peaks = Some(Peaks::new(least_free));
        self
    }

    /// Plays one propagation without waiting. If it stops early, live buffers are freed.
    pub(super) fn play_propagation(&mut self, memory: &mut Memory, touch: Touch) -> Result<(), Stop> {
        let score = self.score;
        self.begin_propagation(memory.allocator.as_mut());
        let end = if touch == Touch::Nothing && self.peaks.is_none() {
            score
                .sequence
                .runs()
                .try_for_each(|(kind, ids)| self.play_calls(memory.allocator.as_mut(), kind, ids))
        } else {
            score.sequence.runs().try_for_each(|(kind, ids)| match kind {
                Kind::Alloc => ids.iter().try_for_each(|&id| self.alloc_buffer(memory, id, touch)),
                Kind::Free => ids.iter().try_for_each(|&id| self.free_buffer(memory, id, touch)),
            })
        };
        if end.is_err() {
            self.free_live_buffers(memory);
        }
        end
    }

    /// Announces the propagation's begin to the allocator.
    pub(super) fn begin_propagation<A: OnlineAllocator + ?Sized>(&mut self, allocator: &mut A) {
        allocator.begin_propagation(self.score.sequence.kind());
        self.operations = self.score.sequence.operations().filter(|_| allocator.wants_operations());
        self.entered = None;
    }

    /// Plays one run of calls without any work.
    #[inline]
    pub(super) fn play_calls<A>(&mut self, allocator: &mut A, kind: Kind, ids: &[u32]) -> Result<(), Stop>
    where
        A: OnlineAllocator + ?Sized,
    {
        let sizes = self.score.sequence.sizes();
        match kind {
            Kind::Alloc => ids.iter().try_for_each(|&buffer| {
                if let Some(operations) = self.operations {
                    let operation = operations[buffer as usize];
                    if self.entered.replace(operation) != Some(operation) {
                        allocator.enter_operation(operation);
                    }
                }
                let served = allocator.alloc(Bytes::new(sizes[buffer as usize]), Stream::default());
                self.addresses[buffer as usize] = served.map_err(|error| Stop::Alloc { buffer, error })?;
                Ok(())
            }),
            Kind::Free => ids.iter().try_for_each(|&buffer| {
                let address = std::mem::take(&mut self.addresses[buffer as usize]);
                allocator.free(address).map_err(|error| Stop::Free { buffer, error })
            }),
        }
    }

    fn alloc_buffer(&mut self, memory: &mut Memory, buffer: u32, touch: Touch) -> Result<(), Stop> {
        self.play_calls(memory.allocator.as_mut(), Kind::Alloc, &[buffer])?;
        self.check_fault(memory)?;
        let round = match touch {
            Touch::Nothing => return Ok(()),
            Touch::Check(round) => round,
            Touch::Sum | Touch::Operations => 0,
        };
        let seed = pattern::block_seed(buffer, round);
        self.launch_kernel(memory, buffer, |at, words| Kernel::Fill { at, words, seed })?;
        let times = self.score.operations.as_ref().filter(|_| touch == Touch::Operations);
        let nanoseconds = times.map_or(0, |times| times[buffer as usize]);
        if nanoseconds > 0 {
            // SAFETY: this kernel accesses no words.
            unsafe { self.driver.launch_kernel(Kernel::Spin { nanoseconds }) }?;
        }
        Ok(())
    }

    fn free_buffer(&mut self, memory: &mut Memory, buffer: u32, touch: Touch) -> Result<(), Stop> {
        #[expect(clippy::cast_possible_truncation, reason = "less than the number of counters")]
        let slot = (buffer as usize % SLOTS) as u32;
        match touch {
            Touch::Nothing => {}
            Touch::Sum | Touch::Operations => {
                self.launch_kernel(memory, buffer, |at, words| Kernel::Sum { at, words, slot })?;
            }
            Touch::Check(round) => {
                let seed = pattern::block_seed(buffer, round);
                self.launch_kernel(memory, buffer, |at, words| Kernel::Verify { at, words, seed, slot })?;
            }
        }
        self.play_calls(memory.allocator.as_mut(), Kind::Free, &[buffer])
    }

    /// Launches a kernel on all words of a live buffer.
    fn launch_kernel(
        &mut self,
        memory: &Memory,
        buffer: u32,
        kernel: impl FnOnce(Address, u64) -> Kernel,
    ) -> Result<(), Stop> {
        let words = self.score.sequence.sizes()[buffer as usize].div_ceil(WORD);
        if words == 0 {
            return Ok(());
        }
        let at = self.admit_address(memory, buffer, words * WORD)?;
        // SAFETY: the words are memory that the contender holds of this driver. It gives memory back by calls that
        // wait for running work, or that take effect after earlier launches.
        Ok(unsafe { self.driver.launch_kernel(kernel(at, words)) }?)
    }

    /// The address of a buffer, if it is memory. The answer for an address stays valid while no memory is released.
    #[inline]
    fn admit_address(&mut self, memory: &Memory, buffer: u32, size: u64) -> Result<Address, Stop> {
        let at = self.addresses[buffer as usize];
        let as_of = (at, memory.book.release_count());
        if at == Address::NULL || self.admitted[buffer as usize] != as_of {
            if at == Address::NULL || !memory.holds_block(at, size) {
                return Err(Stop::Stray { buffer, at, size });
            }
            if !at.get().is_multiple_of(WORD) {
                return Err(Stop::Misaligned { buffer, at });
            }
            self.admitted[buffer as usize] = as_of;
        }
        Ok(at)
    }

    fn check_fault(&mut self, memory: &Memory) -> Result<(), Stop> {
        if let Some(peaks) = &mut self.peaks {
            let usage = memory.allocator.usage();
            peaks.used = peaks.used.max(usage.used.get());
            if peaks.should_ask(usage.reserved.get()) {
                peaks.least_free = peaks.least_free.min(self.driver.device_memory()?.free.get());
            }
        }
        Ok(())
    }

    fn free_live_buffers(&mut self, memory: &mut Memory) {
        for address in &mut self.addresses {
            // The propagation has failed already; what cannot be freed goes back with the contender.
            let _ = memory.allocator.free(std::mem::take(address));
        }
    }
}
