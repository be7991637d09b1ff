//! The contenders that serve requests on a device.
//!
//! | key | who |
//! |---|---|
//! | `plan` | a plan: one segment, offsets |
//! | `plan/shuffled` | the same buffers at random places, a control for the effect of places |
//! | `cuda-malloc` | `cudaMalloc` and `cudaFree` for each request |
//! | `cuda-malloc-async/keep` | the driver's pool, which keeps all it has |
//! | `cuda-malloc-async/release` | the same, which gives back what is idle at each synchronisation: the default |
//! | `cuda-graph/plan` | the kernels at planned addresses, captured as a graph |
//! | `cuda-graph/async` | the same with the driver's own requests in the graph: it plans itself |
//! | `empty-loop` | nobody: what the loop and the clock take, without kernels |
//!
//! All others are online allocators over segments from `cudaMalloc`; the caller provides them.

use std::collections::BTreeMap;
use std::sync::Arc;

use planlab_dsa::{
    Address, AllocError, Backing, Bytes, Meter, Metered, NotLive, OnlineAllocator, Stream, Usage,
    VerifiedPlan,
};

use super::memory::{Book, Segments};
use crate::cuda::driver::{Driver, DriverError, PoolMemory, WORD};
use crate::{Planned, PlannedError};

/// Makes an online allocator over a backing.
pub type Builder = dyn Fn(Box<dyn Backing>) -> Box<dyn OnlineAllocator>;

/// A contender: who serves the requests, and how.
pub struct Contender<'a> {
    /// The key in the rows.
    pub key: String,
    /// How it serves requests.
    pub strategy: Strategy<'a>,
}

/// How requests are served.
#[derive(Clone, Copy)]
pub enum Strategy<'a> {
    /// From a plan.
    Plan(&'a VerifiedPlan<'a>),
    /// By a call of the device for each request.
    Malloc,
    /// From the driver's pool.
    MallocAsync(Idle),
    /// By an online allocator over segments of the device.
    Pool(&'a Builder),
    /// A graph of kernels at planned addresses.
    GraphPlan(&'a VerifiedPlan<'a>),
    /// A graph in which the driver allocates.
    GraphAsync,
    /// Not at all: measures the loop and the clock alone, which every other contender's times include.
    EmptyLoop,
}

/// What the driver's pool does with idle memory at a synchronisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// It keeps the memory.
    Keep,
    /// It gives the memory back.
    Release,
}

impl Strategy<'_> {
    /// Whether it is launched as a graph.
    pub(super) const fn is_graph(&self) -> bool {
        matches!(self, Self::GraphPlan(_) | Self::GraphAsync)
    }
}

/// A contender at work.
pub(super) struct Memory {
    pub(super) allocator: Box<dyn OnlineAllocator>,
    /// What is held, and faults of the device.
    pub(super) book: Arc<Book>,
    /// Whether the driver provided the addresses. Otherwise the book vouches for them, because an allocator may be wrong.
    /// The driver's calls are launches themselves, which must be waited for.
    pub(super) is_driver: bool,
    /// Counts what the allocator holds; `None` if only the driver can.
    meter: Option<Arc<Meter>>,
}

impl Memory {
    /// A new contender that holds nothing but what its plan needs.
    pub(super) fn new(strategy: &Strategy<'_>, driver: &Arc<dyn Driver>) -> Result<Self, BuildError> {
        match strategy {
            Strategy::Plan(plan) | Strategy::GraphPlan(plan) => {
                Self::over_segments(driver, |backing, book| {
                    let planned =
                        Planned::new(plan, backing).map_err(|error| BuildError::of_plan(error, book))?;
                    Ok(Box::new(planned))
                })
            }
            Strategy::Pool(build) => Self::over_segments(driver, |backing, _| Ok(build(backing))),
            Strategy::Malloc => {
                let direct = Direct::new(Arc::clone(driver));
                let (book, meter) = (Arc::clone(&direct.book), Some(Arc::clone(&direct.meter)));
                Ok(Self { allocator: Box::new(direct), book, is_driver: true, meter })
            }
            Strategy::MallocAsync(idle) => Self::stream_ordered(driver, *idle),
            Strategy::GraphAsync => Self::stream_ordered(driver, Idle::Release),
            Strategy::EmptyLoop => {
                let allocator = Box::new(EmptyLoop::default());
                Ok(Self { allocator, book: Arc::default(), is_driver: false, meter: None })
            }
        }
    }

    /// An allocator that `build` makes over segments of the device.
    fn over_segments(
        driver: &Arc<dyn Driver>,
        build: impl FnOnce(Box<dyn Backing>, &Book) -> Result<Box<dyn OnlineAllocator>, BuildError>,
    ) -> Result<Self, BuildError> {
        let segments = Segments::new(Arc::clone(driver));
        let book = segments.shared_book();
        let (segments, meter) = Metered::new(segments);
        let allocator = build(Box::new(segments), &book)?;
        Ok(Self { allocator, book, is_driver: false, meter: Some(meter) })
    }

    fn stream_ordered(driver: &Arc<dyn Driver>, idle: Idle) -> Result<Self, BuildError> {
        let ordered = StreamOrdered::new(driver, idle)?;
        let book = Arc::clone(&ordered.book);
        Ok(Self { allocator: Box::new(ordered), book, is_driver: true, meter: None })
    }

    /// The most bytes held since the last call; `None` for the driver's pool.
    pub(super) fn take_most_held(&self) -> Option<u64> {
        self.meter.as_ref().map(|meter| meter.take_most().get())
    }

    /// Whether the allocator holds the `size` bytes at an address that it returned and that is not freed. The answer
    /// stays valid while [`Book::release_count`] does not change.
    pub(super) fn holds_block(&self, at: Address, size: u64) -> bool {
        self.is_driver
            || at.get().checked_add(size).is_some_and(|end| end <= self.book.range_around(at.get()).1)
    }

    /// Gives back all that it holds; a failure to do so is recorded as a fault.
    pub(super) fn give_back(&mut self) {
        self.allocator = Box::new(EmptyLoop::default());
    }
}

/// Why a contender cannot begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BuildError {
    /// There is no memory for it.
    #[error("{0}")]
    OutOfMemory(String),
    /// It does not support what was asked.
    #[error("{0}")]
    Unavailable(String),
    /// The device failed.
    #[error("{0}")]
    Failed(#[from] DriverError),
}

impl BuildError {
    fn of_plan(error: PlannedError, book: &Book) -> Self {
        match (error, book.fault()) {
            (_, Some(fault)) => Self::Failed(fault),
            (PlannedError::NoMemory { .. }, None) => Self::OutOfMemory(error.to_string()),
            _ => Self::Unavailable(error.to_string()),
        }
    }
}

/// The size rounded up to whole words, as kernels touch whole words.
fn whole_words(size: Bytes) -> Result<Bytes, DriverError> {
    let bytes = size.get().checked_next_multiple_of(WORD);
    bytes.map(Bytes::new).ok_or(DriverError::OutOfMemory { size })
}

/// Hands out numbers without memory; key `empty-loop`.
#[derive(Debug, Default)]
struct EmptyLoop {
    next: u64,
}

impl OnlineAllocator for EmptyLoop {
    fn alloc(&mut self, size: Bytes, _: Stream) -> Result<Address, AllocError> {
        self.next = self.next.wrapping_add(size.get());
        Ok(Address::new(self.next))
    }

    fn free(&mut self, _: Address) -> Result<(), NotLive> {
        Ok(())
    }

    fn usage(&self) -> Usage {
        Usage::default()
    }
}

/// Calls the device for each request; key `cuda-malloc`.
struct Direct {
    driver: Arc<dyn Driver>,
    book: Arc<Book>,
    /// Bytes of each live block, by address.
    live: BTreeMap<u64, u64>,
    usage: Usage,
    meter: Arc<Meter>,
}

impl Direct {
    fn new(driver: Arc<dyn Driver>) -> Self {
        let (live, usage) = (BTreeMap::new(), Usage::default());
        Self { driver, book: Arc::default(), live, usage, meter: Arc::default() }
    }

    fn hold_bytes(&mut self, bytes: u64) {
        self.usage.reserved = Bytes::new(bytes);
        self.usage.used = Bytes::new(bytes);
        self.usage.reserved_peak = self.usage.reserved_peak.max(self.usage.reserved);
    }
}

impl OnlineAllocator for Direct {
    fn alloc(&mut self, size: Bytes, _: Stream) -> Result<Address, AllocError> {
        if size == Bytes::ZERO {
            return Ok(Address::NULL);
        }
        let refused = AllocError::OutOfMemory { size, reserved: self.usage.reserved };
        let at = whole_words(size).and_then(|bytes| self.driver.malloc(bytes));
        let at = at.map_err(|error| {
            self.book.record_refusal(error);
            refused
        })?;
        self.live.insert(at.get(), size.get());
        self.meter.add_held(size);
        self.usage.device_allocations += 1;
        self.hold_bytes(self.usage.reserved.get() + size.get());
        Ok(at)
    }

    fn free(&mut self, address: Address) -> Result<(), NotLive> {
        if address == Address::NULL {
            return Ok(());
        }
        let size = self.live.remove(&address.get()).ok_or(NotLive { address })?;
        self.usage.device_releases += 1;
        self.meter.subtract_held(Bytes::new(size));
        self.hold_bytes(self.usage.reserved.get() - size);
        self.driver.free(address).map_err(|error| {
            self.book.record_refusal(error);
            NotLive { address }
        })
    }

    fn usage(&self) -> Usage {
        self.usage
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        self.live.keys().for_each(|&at| self.book.note_end(self.driver.free(Address::new(at))));
    }
}

/// The driver's pool; keys `cuda-malloc-async/...`. The driver keeps the book: it refuses to free what is not live.
struct StreamOrdered {
    driver: Arc<dyn Driver>,
    book: Arc<Book>,
}

impl StreamOrdered {
    fn new(driver: &Arc<dyn Driver>, idle: Idle) -> Result<Self, DriverError> {
        driver.keep_in_pool(Bytes::ZERO)?;
        driver.reset_pool()?;
        if idle == Idle::Keep {
            driver.keep_in_pool(Bytes::new(u64::MAX))?;
        }
        Ok(Self { driver: Arc::clone(driver), book: Arc::default() })
    }

    /// The pool's figures. If the driver cannot report them, the book records a fault, so nobody uses the zeros.
    fn pool_figures(&self) -> PoolMemory {
        self.driver.pool_memory().unwrap_or_else(|error| {
            self.book.record_refusal(error);
            PoolMemory::default()
        })
    }
}

impl OnlineAllocator for StreamOrdered {
    fn alloc(&mut self, size: Bytes, _: Stream) -> Result<Address, AllocError> {
        if size == Bytes::ZERO {
            return Ok(Address::NULL);
        }
        whole_words(size).and_then(|bytes| self.driver.malloc_async(bytes)).map_err(|error| {
            self.book.record_refusal(error);
            AllocError::OutOfMemory { size, reserved: Bytes::new(self.pool_figures().reserved) }
        })
    }

    fn free(&mut self, address: Address) -> Result<(), NotLive> {
        if address == Address::NULL {
            return Ok(());
        }
        self.driver.free_async(address).map_err(|error| {
            self.book.record_refusal(error);
            NotLive { address }
        })
    }

    fn release_cached(&mut self) {
        // The peaks are kept, because they are the result. Idle memory goes back when the contender ends.
    }

    fn usage(&self) -> Usage {
        let figures = self.pool_figures();
        Usage {
            reserved: Bytes::new(figures.reserved),
            reserved_peak: Bytes::new(figures.reserved_peak),
            used: Bytes::new(figures.used),
            ..Usage::default()
        }
    }
}

impl Drop for StreamOrdered {
    fn drop(&mut self) {
        self.book.note_end(self.driver.keep_in_pool(Bytes::ZERO));
        self.book.note_end(self.driver.reset_pool());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::driver::SimulatedDriver;

    const MIB: u64 = 1 << 20;

    fn device() -> Arc<dyn Driver> {
        Arc::new(SimulatedDriver::new(Bytes::new(64 * MIB)))
    }

    fn memory(strategy: &Strategy<'_>, driver: &Arc<dyn Driver>) -> Memory {
        Memory::new(strategy, driver).expect("room")
    }

    fn alloc(memory: &mut Memory, size: u64) -> Result<Address, AllocError> {
        memory.allocator.alloc(Bytes::new(size), Stream::default())
    }

    #[test]
    fn what_is_not_live_is_refused_by_the_driver_too() {
        for strategy in
            [Strategy::Malloc, Strategy::MallocAsync(Idle::Keep), Strategy::MallocAsync(Idle::Release)]
        {
            let driver = device();
            let mut memory = memory(&strategy, &driver);
            let first = alloc(&mut memory, 1000).expect("room");
            let second = alloc(&mut memory, 1000).expect("room");
            let stranger = Address::new(first.get() + 16);
            assert_eq!(memory.allocator.free(stranger), Err(NotLive { address: stranger }));
            assert_eq!(memory.allocator.free(first), Ok(()));
            assert_eq!(memory.allocator.free(first), Err(NotLive { address: first }));
            assert_eq!(alloc(&mut memory, 0), Ok(Address::NULL));
            assert_eq!(memory.allocator.free(Address::NULL), Ok(()));
            assert!(memory.holds_block(second, 1000), "the driver gave it");
            assert!(matches!(alloc(&mut memory, u64::MAX), Err(AllocError::OutOfMemory { .. })));
            assert!(matches!(alloc(&mut memory, 80 * MIB), Err(AllocError::OutOfMemory { .. })));
            assert_eq!(memory.book.refusal_count(), 2);
            if memory.allocator.free(second).is_ok() {
                drop(memory);
            }
            assert_eq!(driver.device_memory().expect("no fault").free, Bytes::new(64 * MIB));
        }
    }

    #[test]
    fn what_is_live_goes_back_with_the_contender() {
        let driver = device();
        let mut memory = memory(&Strategy::Malloc, &driver);
        for _ in 0..3 {
            alloc(&mut memory, 5 * MIB).expect("room");
        }
        assert_eq!(memory.allocator.usage().reserved_peak, Bytes::new(15 * MIB));
        drop(memory);
        assert_eq!(driver.device_memory().expect("no fault").free, Bytes::new(64 * MIB));
    }

    #[test]
    fn what_cannot_be_given_back_is_a_fault() {
        let driver = device();
        let mut memory = memory(&Strategy::Malloc, &driver);
        let blocks = [0; 3].map(|_| alloc(&mut memory, MIB).expect("room"));
        for at in &blocks[1..] {
            driver.free(*at).expect("behind its back");
        }
        assert_eq!(memory.book.fault(), None);
        memory.give_back();
        let says = memory.book.take_fault().map(|fault| fault.to_string()).unwrap_or_default();
        assert!(says.starts_with("free: ") && says.contains("the first of 2 calls"), "{says}");
        assert_eq!(memory.book.fault(), None, "it was told");
        assert_eq!(driver.device_memory().expect("no fault").free, Bytes::new(64 * MIB));
    }
}
