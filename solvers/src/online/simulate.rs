//! Plays the requests of a trace on an online allocator.
//!
//! A trace records when buffers live; a pool sees requests and frees. At one step the frees come first, then the
//! requests, each in the order of the ids. Only what comes *before* the last step is played: a trace does not record
//! whether a buffer that ends there was freed or lives on, so it counts as live at the end. Before the next iteration
//! it is freed. If an allocator asks for operations, it receives that of each request, if the requests have them.

use planlab_dsa::{
    Address, AllocError, Audit, AuditError, BufferId, Bytes, Call, NotLive, OnlineAllocator, Requests,
    Stream, Usage,
};

/// An allocator that serves the requests of a trace.
pub struct Simulator<'a> {
    requests: &'a Requests,
    allocator: &'a mut dyn OnlineAllocator,
    /// The address of each buffer; null if it is not live.
    addresses: Vec<Address>,
    audit: Option<Audit>,
    /// The most bytes in use seen by the audit so far, as the allocator rounds them.
    used_peak: Bytes,
    /// Whether an iteration was played and is not finished.
    is_open: bool,
    /// The operation of each buffer, if the allocator asks for it.
    operations: Option<&'a [u64]>,
    /// The last operation passed to the allocator in this iteration.
    entered: Option<u64>,
}

/// Why a trace could not be played to its end.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SimulationError {
    /// A request was refused.
    #[error("buffer {buffer}: {error}")]
    Alloc { buffer: BufferId, error: AllocError },
    /// A live block could not be freed: the allocator is wrong.
    #[error("buffer {buffer}: {error}")]
    Free { buffer: BufferId, error: NotLive },
    /// Live memory was handed out again: the allocator is wrong.
    #[error("buffer {buffer}: {error}")]
    Unsound { buffer: BufferId, error: AuditError },
}

impl<'a> Simulator<'a> {
    /// Plays `requests` on `allocator`.
    #[must_use]
    pub fn new(requests: &'a Requests, allocator: &'a mut dyn OnlineAllocator) -> Self {
        let addresses = vec![Address::NULL; requests.sizes().len()];
        let operations = requests.requesting_operations().filter(|_| allocator.wants_operations());
        Self {
            requests,
            allocator,
            addresses,
            audit: None,
            used_peak: Bytes::ZERO,
            is_open: false,
            operations,
            entered: None,
        }
    }

    /// Checks every answer as well, which takes longer than the answers. Default: no.
    #[must_use]
    pub fn with_audit(mut self) -> Self {
        self.audit = Some(Audit::default());
        self
    }

    /// Plays one more iteration. Blocks that are live at its end stay live until the next one begins.
    ///
    /// # Errors
    ///
    /// [`SimulationError`] at the first request that is refused.
    pub fn run_iteration(&mut self) -> Result<(), SimulationError> {
        if self.is_open {
            self.finish_propagation()?;
        }
        self.is_open = true;
        self.entered = None;
        let requests = self.requests;
        self.allocator.begin_propagation(requests.kind());
        requests.calls_in_order().try_for_each(|event| match event {
            Call::Alloc(buffer) => self.alloc_buffer(buffer),
            Call::Free(buffer) => self.free_buffer(buffer),
        })
    }

    /// Frees all live blocks, and ends the propagation.
    ///
    /// # Errors
    ///
    /// [`SimulationError`] if the allocator does not know its own blocks.
    pub fn finish_propagation(&mut self) -> Result<(), SimulationError> {
        self.is_open = false;
        for index in 0..self.addresses.len() {
            if self.addresses[index] != Address::NULL {
                self.free_buffer(BufferId::from_index(index))?;
            }
        }
        self.allocator.end_propagation();
        Ok(())
    }

    fn alloc_buffer(&mut self, buffer: BufferId) -> Result<(), SimulationError> {
        let size = self.requests.sizes()[buffer.index()];
        if let Some(operations) = self.operations
            && self.entered.replace(operations[buffer.index()]) != Some(operations[buffer.index()])
        {
            self.allocator.enter_operation(operations[buffer.index()]);
        }
        let served = self.allocator.alloc(size, Stream::default());
        let address = served.map_err(|error| SimulationError::Alloc { buffer, error })?;
        self.addresses[buffer.index()] = address;
        if self.audit.is_some() {
            self.used_peak = self.used_peak.max(self.allocator.usage().used);
        }
        match self.audit.as_mut().filter(|_| size > Bytes::ZERO) {
            Some(audit) => {
                audit.handed_out(address, size).map_err(|error| SimulationError::Unsound { buffer, error })
            }
            None => Ok(()),
        }
    }

    fn free_buffer(&mut self, buffer: BufferId) -> Result<(), SimulationError> {
        let address = std::mem::take(&mut self.addresses[buffer.index()]);
        if let Some(audit) = &mut self.audit {
            audit.remove_block(address);
        }
        self.allocator.free(address).map_err(|error| SimulationError::Free { buffer, error })
    }

    /// What the allocator holds, and its cost so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.allocator.usage()
    }

    /// The most bytes in use at once, including what the allocator adds to the requests; 0 bytes without an audit,
    /// which measures it.
    #[must_use]
    pub const fn used_peak(&self) -> Bytes {
        self.used_peak
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::{Simulated, Step};

    use super::*;
    use crate::online::{DeviceOnly, NetworkWise};
    use crate::placement::testing::test_instance;

    fn requests() -> Requests {
        Requests::new(&test_instance(&[(10, 0, 2), (20, 2, 4), (30, 1, 5), (40, 4, 5)]))
    }

    #[test]
    fn frees_come_before_requests_and_the_last_step_is_not_played() {
        let requests = requests();
        assert_eq!((requests.request_count(), requests.live_bytes()), (4, (Bytes::new(70), Bytes::new(70))));
        let early = requests.clone().with_until(Step::new(4));
        assert_eq!((early.request_count(), early.live_bytes()), (3, (Bytes::new(50), Bytes::new(50))));
        let sizes = vec![Bytes::new(1); 4];
        assert_eq!(requests.with_sizes(sizes).live_bytes().0, Bytes::new(2));
    }

    #[test]
    fn device_calls_alone_reserve_what_is_live() {
        let requests = requests();
        let mut device = DeviceOnly::new(Box::new(Simulated::new()));
        let mut simulator = Simulator::new(&requests, &mut device).with_audit();
        for _ in 0..3 {
            simulator.run_iteration().expect("no limit");
        }
        let usage = simulator.usage();
        assert_eq!((usage.reserved_peak, usage.reserved), (Bytes::new(70), Bytes::new(70)));
        assert_eq!((usage.device_allocations, usage.device_releases), (12, 10));
        assert_eq!(simulator.used_peak(), Bytes::new(70));
        simulator.finish_propagation().expect("its own blocks");
        assert_eq!((simulator.usage().reserved, simulator.usage().device_releases), (Bytes::ZERO, 12));
    }

    #[test]
    fn without_reuse_a_propagation_needs_the_sum() {
        let requests = requests();
        let mut memory = NetworkWise::new(Box::new(Simulated::new()));
        let mut simulator = Simulator::new(&requests, &mut memory);
        for _ in 0..3 {
            simulator.run_iteration().expect("no limit");
            assert_eq!(simulator.usage().reserved_peak, Bytes::new(100));
        }
    }

    #[test]
    fn the_request_that_is_not_served_is_named() {
        let requests = requests();
        let mut device = DeviceOnly::new(Box::new(Simulated::with_capacity(Bytes::new(60))));
        let error = Simulator::new(&requests, &mut device).run_iteration().expect_err("too small");
        assert!(
            matches!(error, SimulationError::Alloc { buffer, .. } if buffer == BufferId::new(3)),
            "{error}"
        );
    }
}
