//! Records the requests and frees of a propagation.

use planlab_dsa::{Address, Buffer, Bytes, Instance, LiveRange};
use rustc_hash::FxHashMap;

use crate::online::blocks::UNIT;

/// The number of a request within its operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct RequestKey {
    pub(super) operation: u64,
    pub(super) number: u32,
}

/// A request, and the step at which it was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) key: RequestKey,
    /// The size in bytes, a multiple of the unit.
    pub(super) size: u64,
    pub(super) start: u32,
    /// `None`: not freed within the propagation.
    pub(super) end: Option<u32>,
}

impl Request {
    /// Its steps, if it is freed within the propagation: then it has a place in the plan.
    pub(super) fn live_range(&self) -> Option<LiveRange> {
        LiveRange::new(self.start, self.end?).ok()
    }

    /// Whether the other is the same request, possibly of another size.
    fn is_like(&self, other: &Self) -> bool {
        (self.key, self.start, self.end) == (other.key, other.start, other.end)
    }
}

/// The requests of a propagation, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Profile {
    pub(super) requests: Vec<Request>,
}

impl Profile {
    /// The placement problem of the requests that are freed, sizes in units; `None` without such requests, or if they
    /// cannot be planned.
    pub(super) fn placement_problem(&self) -> Option<Instance> {
        let buffers: Vec<Buffer> = self.requests.iter().filter_map(request_buffer).collect();
        if buffers.is_empty() { None } else { Instance::from_buffers(buffers).ok() }
    }
}

fn request_buffer(request: &Request) -> Option<Buffer> {
    Some(Buffer::new(Bytes::new(request.size / UNIT), request.live_range()?))
}

#[derive(Debug, Default)]
pub(super) struct Recorder {
    requests: Vec<Request>,
    /// Steps so far: one for each request and each free.
    step: u32,
    /// The request of each block that is in use, by address.
    open: FxHashMap<Address, usize>,
    operation: u64,
    /// The number of requests of each operation so far.
    numbers: FxHashMap<u64, u32>,
}

impl Recorder {
    /// Names the operation of the following requests.
    pub(super) fn enter_operation(&mut self, operation: u64) {
        self.operation = operation;
    }

    /// The current operation.
    pub(super) fn current_operation(&self) -> u64 {
        self.operation
    }

    /// The key of the next request.
    pub(super) fn next_key(&self) -> RequestKey {
        let number = self.numbers.get(&self.operation).copied().unwrap_or_default();
        RequestKey { operation: self.operation, number }
    }

    /// Records the block of the current request.
    pub(super) fn record_alloc(&mut self, size: u64, address: Address) {
        let key = self.next_key();
        self.numbers.insert(key.operation, key.number.saturating_add(1));
        self.open.insert(address, self.requests.len());
        self.requests.push(Request { key, size, start: self.step, end: None });
        self.step = self.step.saturating_add(1);
    }

    pub(super) fn record_free(&mut self, address: Address) {
        let Some(index) = self.open.remove(&address) else { return };
        self.requests[index].end = Some(self.step);
        self.step = self.step.saturating_add(1);
    }

    /// The recorded profile; if an older one differs only in sizes, with the larger size of each request.
    pub(super) fn recorded_profile(&self, old: Option<&Profile>) -> Profile {
        let mut requests = self.requests.clone();
        let old = old.map(|old| old.requests.as_slice()).unwrap_or_default();
        let is_alike = old.len() == requests.len() && old.iter().zip(&requests).all(|(a, b)| a.is_like(b));
        if is_alike {
            requests.iter_mut().zip(old).for_each(|(new, old)| new.size = new.size.max(old.size));
        }
        Profile { requests }
    }

    /// Forgets everything: a new propagation begins.
    pub(super) fn clear(&mut self) {
        self.requests.clear();
        self.open.clear();
        self.numbers.clear();
        self.step = 0;
        self.operation = 0;
    }
}
