//! What a trace asks of an allocator.
//!
//! A trace says when buffers live; an allocator sees requests and frees. At one step the frees come first, then the
//! requests, each in the order of the ids. Only what comes *before* the last step is played: whether a buffer that
//! ends there was freed then or lives on, a trace does not say, so it counts as live at the end.

use crate::{BufferId, Bytes, Instance, Step};

/// The requests and frees of one iteration of a trace.
#[derive(Clone, Debug)]
pub struct Requests {
    /// Bytes of each buffer.
    sizes: Vec<Bytes>,
    /// What happens, and when; ascending.
    events: Vec<(Step, Call)>,
    until: Step,
    /// The operation of each buffer, where that is known.
    operations: Option<Vec<u64>>,
    kind: u64,
}

/// One call to an allocator. At one step the frees come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// The buffer's memory is given back.
    Free(BufferId),
    /// Memory for the buffer is asked for.
    Alloc(BufferId),
}

impl Requests {
    /// The requests of an instance, for its buffers' sizes, up to its last step.
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

    /// The same with other sizes, one for each buffer: what was asked for before sizes were rounded, say.
    /// Default: the buffers' sizes.
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

    /// The same, only what comes before a step. Default: before the last step.
    #[must_use]
    pub fn with_until(mut self, step: Step) -> Self {
        self.until = step;
        self
    }

    /// The same with the operation that asks for each buffer. Default: not known.
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

    /// The same, of a kind: propagations of one kind make the same requests. Default: 0.
    #[must_use]
    pub const fn with_kind(mut self, kind: u64) -> Self {
        self.kind = kind;
        self
    }

    /// The operation that asks for each buffer, by its id, where that is known.
    #[must_use]
    pub fn operations(&self) -> Option<&[u64]> {
        self.operations.as_deref()
    }

    /// The kind of propagation.
    #[must_use]
    pub const fn kind(&self) -> u64 {
        self.kind
    }

    /// The number of requests in one iteration.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.events().filter(|event| matches!(event, Call::Alloc(_))).count() as u64
    }

    /// The most bytes of requests that are live at once, and those that are live at the end.
    #[must_use]
    pub fn live(&self) -> (Bytes, Bytes) {
        let (mut live, mut peak) = (0, 0);
        for event in self.events() {
            match event {
                Call::Alloc(id) => live += self.sizes[id.index()].get(),
                Call::Free(id) => live -= self.sizes[id.index()].get(),
            }
            peak = live.max(peak);
        }
        (Bytes::new(peak), Bytes::new(live))
    }

    /// Bytes that each buffer asks for, by its id.
    #[must_use]
    pub fn sizes(&self) -> &[Bytes] {
        &self.sizes
    }

    /// The calls of one iteration in their order. What is live at its end is not freed.
    pub fn events(&self) -> impl Iterator<Item = Call> + '_ {
        self.events.iter().take_while(|(step, _)| *step < self.until).map(|&(_, event)| event)
    }
}
