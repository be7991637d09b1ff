//! A schedule as data: the events of each engine, the events that each waits for, and the place of every buffer.
//!
//! ```text
//!  copy out            [ conv1 ][ conv2 ]
//!  compute    F F F F F  F   F     B   B  B R B
//!  copy in                         [ conv2 ][ conv1 ]
//! ```
//!
//! Each engine runs its events one after another, in order. An event starts once the previous event on its engine is
//! complete and each engine has completed the number of events in [`Event::awaited_events`]. A buffer is written by one event
//! (or exists from the start). It is taken from the start of that event to the completion of the last event that frees it: at
//! most one on each engine.
//!
//! A scheduler makes a *draft*: it lists the needs of each event, but has no offsets; any further waiting depends on
//! memory. [`Schedule::with_offsets`] turns it into a *placed* schedule, which lists everything that an event waits for. A
//! placed schedule is correct whatever the times of its events are.

use planlab_dsa::{BufferId, Bytes, Offset};
use smallvec::SmallVec;

use crate::{FunctionId, MapId};

planlab_dsa::named_enum! {
    /// A unit that runs events one after another.
    #[derive(PartialOrd, Ord)]
    pub enum Engine {
        /// Functions and sums of gradients.
        Compute = "compute",
        /// Copies from the device to the host.
        Out = "out",
        /// Copies from the host to the device.
        In = "in",
    }
}

impl Engine {
    /// 0, 1 or 2, in the order of [`Engine::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// For each engine, in the order of [`Engine::ALL`], the number of events that have to be complete.
pub type Completions = [u32; 3];

/// The work of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// A function's forward pass.
    Forward(FunctionId),
    /// The same pass again, after its output was dropped.
    Recompute(FunctionId),
    /// A function's backward pass: computes the gradients of its inputs from that of its output.
    Backward(FunctionId),
    /// Adds two parts of a map's gradient into a third buffer.
    Accumulate(MapId),
    /// Copies a map to the host.
    CopyOut(MapId),
    /// Copies a map from the host.
    CopyIn(MapId),
}

impl Task {
    /// The engine for this task.
    #[must_use]
    pub const fn engine(self) -> Engine {
        match self {
            Self::Forward(_) | Self::Recompute(_) | Self::Backward(_) | Self::Accumulate(_) => {
                Engine::Compute
            }
            Self::CopyOut(_) => Engine::Out,
            Self::CopyIn(_) => Engine::In,
        }
    }

    /// The kind of work, as files have it: `forward`, `copy-in`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward(_) => "forward",
            Self::Recompute(_) => "recompute",
            Self::Backward(_) => "backward",
            Self::Accumulate(_) => "accumulate",
            Self::CopyOut(_) => "copy-out",
            Self::CopyIn(_) => "copy-in",
        }
    }

    /// The index of its function, or of its map.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Forward(id) | Self::Recompute(id) | Self::Backward(id) => id.index(),
            Self::Accumulate(id) | Self::CopyOut(id) | Self::CopyIn(id) => id.index(),
        }
    }
}

/// Its name without a net: `forward 12`, `copy-in 7`.
impl std::fmt::Display for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.name(), self.index())
    }
}

/// An event: its engine and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    /// The engine.
    pub engine: Engine,
    /// Its index there, from 0.
    pub place: usize,
}

impl std::fmt::Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "event {} of `{}`", self.place, self.engine)
    }
}

/// The buffers of an event: few, so that they are part of it.
pub type BufferIds = SmallVec<[BufferId; 4]>;

/// One piece of work of an engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The task.
    pub task: Task,
    /// The events that have to be complete before it starts, wherever its buffers lie.
    pub after: Completions,
    /// The further events that have to be complete so that the addresses it writes are free. Zeros in a draft.
    pub room: Completions,
    /// The index of a compute event that has to have *started* before it starts.
    pub with: Option<u32>,
    /// Its duration in seconds.
    pub seconds: f64,
    /// The buffers that it reads.
    pub reads: BufferIds,
    /// The buffers that it writes; taken from its start on.
    pub writes: BufferIds,
    /// The buffers that are free once it is complete, and the events of other engines that free them, too.
    pub frees: BufferIds,
}

impl Event {
    /// All events that have to be complete before it starts.
    #[must_use]
    pub fn awaited_events(&self) -> Completions {
        [0, 1, 2].map(|engine| self.after[engine].max(self.room[engine]))
    }

    /// An event of `seconds` that waits for nothing and uses no buffer.
    #[must_use]
    pub const fn new(task: Task, seconds: f64) -> Self {
        Self {
            task,
            after: [0; 3],
            room: [0; 3],
            with: None,
            seconds,
            reads: BufferIds::new_const(),
            writes: BufferIds::new_const(),
            frees: BufferIds::new_const(),
        }
    }
}

/// The declared content of a buffer. The validator derives the actual content itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Content {
    /// A feature map.
    Map(MapId),
    /// A map's gradient, or a part of it.
    Gradient(MapId),
}

/// Its name without a net: `map 7`, `gradient 7`.
impl std::fmt::Display for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Map(map) => write!(f, "map {map}"),
            Self::Gradient(map) => write!(f, "gradient {map}"),
        }
    }
}

/// Memory on the device that holds one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledBuffer {
    /// Its content.
    pub content: Content,
    /// The index of this buffer among those with the same content, from 0.
    pub version: u32,
    /// Its size in bytes.
    pub bytes: Bytes,
    /// Its offset; `None` in a draft. The first [`Schedule::base`] bytes are reserved.
    pub offset: Option<Offset>,
}

/// Its content, and its version after the first: `map 7, version 1`.
impl std::fmt::Display for ScheduledBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.version {
            0 => write!(f, "{}", self.content),
            version => write!(f, "{}, version {version}", self.content),
        }
    }
}

/// A schedule of one iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule {
    /// The scheduler that made it.
    pub scheduler: String,
    /// The net.
    pub net: String,
    /// The batch; `None` if unknown.
    pub batch: Option<u64>,
    /// The machine.
    pub machine: String,
    /// Bytes at the bottom of the memory that are always taken.
    pub base: Bytes,
    /// The declared time from the start to the last completion; `None` in a draft.
    pub seconds: Option<f64>,
    /// The buffers, by id.
    pub buffers: Vec<ScheduledBuffer>,
    /// The buffers on the device from the start: inputs of the net.
    pub resident: Vec<BufferId>,
    /// The events of each engine in order; engines are in the order of [`Engine::ALL`].
    pub events: [Vec<Event>; 3],
}

impl Schedule {
    /// The events of an engine.
    #[must_use]
    pub fn events_of(&self, engine: Engine) -> &[Event] {
        &self.events[engine.index()]
    }

    /// All events, engine by engine in the order of [`Engine::ALL`].
    pub fn numbered_events(&self) -> impl Iterator<Item = (EventId, &Event)> {
        Engine::ALL.into_iter().flat_map(move |engine| {
            let numbered = self.events_of(engine).iter().enumerate();
            numbered.map(move |(place, event)| (EventId { engine, place }, event))
        })
    }

    /// An event.
    ///
    /// # Panics
    ///
    /// If there is no such event.
    #[must_use]
    pub fn find_event(&self, id: EventId) -> &Event {
        &self.events_of(id.engine)[id.place]
    }

    /// A buffer.
    ///
    /// # Panics
    ///
    /// If there is no buffer with that id.
    #[must_use]
    pub fn buffer(&self, id: BufferId) -> &ScheduledBuffer {
        &self.buffers[id.index()]
    }

    /// The bytes of some buffers; a sum past 2^64 - 1 is that number.
    ///
    /// # Panics
    ///
    /// If there is no buffer with one of these ids.
    #[must_use]
    pub fn total_bytes(&self, buffers: &[BufferId]) -> Bytes {
        let sizes = buffers.iter().map(|&id| self.buffer(id).bytes.get());
        Bytes::new(sizes.fold(0, u64::saturating_add))
    }

    /// The bytes that an event copies to the host, or else those that it writes.
    ///
    /// # Panics
    ///
    /// If the event names a buffer that does not exist.
    #[must_use]
    pub fn moved_bytes(&self, event: &Event) -> Bytes {
        match event.task {
            Task::CopyOut(_) => self.total_bytes(&event.reads),
            _ => self.total_bytes(&event.writes),
        }
    }

    /// Adds a buffer without an offset, as the next version of its content.
    pub fn add_buffer(&mut self, content: Content, version: u32, bytes: Bytes) -> BufferId {
        self.buffers.push(ScheduledBuffer { content, version, bytes, offset: None });
        BufferId::from_index(self.buffers.len() - 1)
    }

    /// The memory that the offsets need, base included; `None` if a buffer has no offset, or ends past 2^64.
    #[must_use]
    pub fn height(&self) -> Option<Bytes> {
        let mut height = self.base.get();
        for buffer in &self.buffers {
            height = height.max(buffer.offset?.end_of(buffer.bytes)?.get());
        }
        Some(Bytes::new(height))
    }

    /// The same events with other times, and so without a declared time: how a schedule runs on an unexpected machine.
    /// A placed schedule stays correct.
    #[must_use]
    pub fn with_times(mut self, mut seconds: impl FnMut(&Event) -> f64) -> Self {
        for event in self.events.iter_mut().flatten() {
            event.seconds = seconds(event);
        }
        self.seconds = None;
        self
    }
}
