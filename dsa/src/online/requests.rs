//! Turns a trace into the requests that an allocator receives.
//!
//! A trace gives live ranges; an allocator sees requests and frees. At one step the frees come first, then the
//! requests, each in the order of the ids.
//!
//! Only calls *before* the last step are played. A trace does not say whether a buffer that ends at the last step was
//! freed then or lives on, so it counts as live at the end.

use crate::{BufferId, Bytes, Instance, Step};

/// The requests and frees of one iteration of a trace.
#[derive(Clone, Debug)]
pub struct Requests {
    /// Bytes of each buffer.
    sizes: Vec<Bytes>,
    /// The calls with their steps; ascending.
    events: Vec<(Step, Call)>,
    until: Step,
    /// The operation of each buffer, if known.
    operations: Option<Vec<u64>>,
    kind: u64,
}

/// One call to an allocator. At one step the frees come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// Frees the buffer's memory.
    Free(BufferId),
    /// Requests memory for the buffer.
    Alloc(BufferId),
}

impl Requests {
    /// The requests of an instance up to its last step, with the sizes of its buffers.
    #[must_use]
    pub fn new(instance: &Instance) -> Self {
        let mut events = Vec::with_capacity(2 * instance.len());
        for (id, buffer) in instance.ids().zip(instance.buffers()) {
            events.push((buffer.live.start(), Call::Alloc(id)));
            events.push((buffer.live.end(), Call::Free(id)));
        }
        events.sort_unstable();
        let sizes = instance.buffers().iter().map(|buffer| buffer.size).collect();
        Self { sizes, events, until: instance.horizon(), operations: None, kind: 0 }
    }

    /// Sets other sizes, one for each buffer, such as those before rounding. Default: the buffers' sizes.
    ///
    /// # Panics
    ///
    /// If there is not one size for each buffer.
    #[must_use]
    pub fn with_sizes(mut self, sizes: Vec<Bytes>) -> Self {
        assert_eq!(sizes.len(), self.sizes.len(), "one size for each buffer");
        self.sizes = sizes;
        self
    }

    /// Keeps only the calls before a step. Default: the last step.
    #[must_use]
    pub fn with_until(mut self, step: Step) -> Self {
        self.until = step;
        self
    }

    /// Sets the operation that requests each buffer. Default: not known.
    ///
    /// # Panics
    ///
    /// If there is not one operation for each buffer.
    #[must_use]
    pub fn with_operations(mut self, operations: Vec<u64>) -> Self {
        assert_eq!(operations.len(), self.sizes.len(), "one operation for each buffer");
        self.operations = Some(operations);
        self
    }

    /// Sets the kind: propagations of one kind make the same requests. Default: 0.
    #[must_use]
    pub const fn with_kind(mut self, kind: u64) -> Self {
        self.kind = kind;
        self
    }

    /// The operation that requests each buffer, by id, if known.
    #[must_use]
    pub fn requesting_operations(&self) -> Option<&[u64]> {
        self.operations.as_deref()
    }

    /// The kind of propagation.
    #[must_use]
    pub const fn kind(&self) -> u64 {
        self.kind
    }

    /// The number of requests in one iteration.
    #[must_use]
    pub fn request_count(&self) -> u64 {
        self.calls_in_order().filter(|event| matches!(event, Call::Alloc(_))).count() as u64
    }

    /// The most requested bytes live at once, and those live at the end.
    #[must_use]
    pub fn live_bytes(&self) -> (Bytes, Bytes) {
        let (mut live, mut peak) = (0, 0);
        for event in self.calls_in_order() {
            match event {
                Call::Alloc(id) => live += self.sizes[id.index()].get(),
                Call::Free(id) => live -= self.sizes[id.index()].get(),
            }
            peak = live.max(peak);
        }
        (Bytes::new(peak), Bytes::new(live))
    }

    /// Requested bytes of each buffer, by id.
    #[must_use]
    pub fn sizes(&self) -> &[Bytes] {
        &self.sizes
    }

    /// The calls of one iteration in order. Buffers live at its end are not freed.
    pub fn calls_in_order(&self) -> impl Iterator<Item = Call> + '_ {
        self.events.iter().take_while(|(step, _)| *step < self.until).map(|&(_, event)| event)
    }
}
