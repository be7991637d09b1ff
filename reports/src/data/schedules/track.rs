//! One schedule in full: what its streams do over time, and where its buffers lie.

/// A schedule's iteration, for a page to draw. Times are nanoseconds from its start, bytes are on the device.
#[derive(Clone, Debug, Default)]
pub struct ScheduleTrack {
    /// What the page calls it, such as its file.
    pub name: String,
    /// Its net, with the batch.
    pub net: String,
    /// The scheduler that made it.
    pub scheduler: String,
    /// Its machine.
    pub machine: String,
    /// Bytes at the bottom of the memory that are always taken.
    pub base: u64,
    /// Bytes of the memory, if they are known.
    pub capacity: Option<u64>,
    /// The bytes taken from each time on, base included; ascending in time. Of equal times all count for the curve, the last
    /// for what follows.
    pub memory: Vec<(u64, u64)>,
    /// The most bytes taken at once, base included, and the first time at which they are.
    pub peak: (u64, u64),
    /// Memory that the offsets need, base included.
    pub height: u64,
    /// The time of the last completion.
    pub iteration_ns: u64,
    /// Nanoseconds in which nothing is computed.
    pub waiting_ns: u64,
    /// Nanoseconds of recomputation.
    pub recompute_ns: u64,
    /// Bytes copied to the host.
    pub copied_out: u64,
    /// Bytes copied from the host.
    pub copied_in: u64,
    /// The events, stream by stream and in the order of their stream.
    pub events: Vec<StreamEvent>,
    /// The buffers.
    pub buffers: Vec<PlacedBuffer>,
}

/// An event of a stream.
#[derive(Clone, Debug, Default)]
pub struct StreamEvent {
    /// 0 for computing, 1 for copies to the host, 2 for copies back.
    pub stream: u8,
    /// `forward`, `recompute`, `backward`, `accumulate`, `copy-out` or `copy-in`.
    pub task: &'static str,
    /// The name of its function or feature map, or its index.
    pub of: String,
    /// Bytes copied or written.
    pub bytes: u64,
    /// Start.
    pub start_ns: u64,
    /// Completion.
    pub end_ns: u64,
    /// The events, by index, that have to be complete before it starts; at most one of each stream.
    pub after: [Option<usize>; 3],
    /// The later events that have to be complete so that its addresses are free.
    pub room: [Option<usize>; 3],
    /// The event that has to have started.
    pub with: Option<usize>,
}

/// A buffer at its place.
#[derive(Clone, Debug, Default)]
pub struct PlacedBuffer {
    /// `map 7`.
    pub name: String,
    /// What the schedule does with its value: `copied`.
    pub kind: &'static str,
    /// Its size.
    pub bytes: u64,
    /// Its offset, base included.
    pub offset: u64,
    /// The time from which it is taken.
    pub start_ns: u64,
    /// The time from which it is free.
    pub end_ns: u64,
    /// The event that writes it, by index; `None` if it is there from the start.
    pub writer: Option<usize>,
}
