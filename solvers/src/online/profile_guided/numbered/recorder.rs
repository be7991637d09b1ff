//! Records the requests and frees of a propagation.

use planlab_dsa::{Address, Buffer, Bytes, Instance};
use rustc_hash::FxHashMap;

use crate::online::blocks::UNIT;
use crate::online::profile_guided::Request;

/// The number of a request within its operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct RequestKey {
    pub(super) operation: u64,
    pub(super) number: u32,
}

/// The requests of a propagation, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Profile {
    pub(super) requests: Vec<Request<RequestKey>>,
}

impl Profile {
    /// The placement problem of the requests that are freed, sizes in units; `None` without such requests, or if they
    /// cannot be planned.
    pub(super) fn placement_problem(&self) -> Option<Instance> {
        let buffer = |request: &Request<RequestKey>| {
            Some(Buffer::new(Bytes::new(request.size / UNIT), request.live_range()?))
        };
        let buffers: Vec<Buffer> = self.requests.iter().filter_map(buffer).collect();
        if buffers.is_empty() { None } else { Instance::from_buffers(buffers).ok() }
    }
}

#[derive(Debug, Default)]
pub(super) struct Recorder {
    requests: Vec<Request<RequestKey>>,
    /// Steps so far: one for each request and each free.
    step: u32,
    /// The request of each block that is in use, by address.
    open: FxHashMap<Address, usize>,
    /// The operation of the following requests.
    pub(super) operation: u64,
    /// The number of requests of each operation so far.
    numbers: FxHashMap<u64, u32>,
}

impl Recorder {
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
        let but_size = |request: &Request<RequestKey>| (request.key, request.start, request.end);
        if old.iter().map(but_size).eq(requests.iter().map(but_size)) {
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
