//! A schedule as data: what runs on which engine, what each event waits for, and where every buffer lies.
//!
//! ```text
//!  copy out            [ conv1 ][ conv2 ]
//!  compute    F F F F F  F   F     B   B  B R B
//!  copy in                         [ conv2 ][ conv1 ]
//! ```
//!
//! Each engine runs its events one after another, in their order. An event starts once the event before it on its engine is
//! complete and each engine has completed as many events as [`Event::waits`] says. A buffer is written by one event (or
//! is there from the start), and is taken from the start of that event to the completion of the event that frees it.
//!
//! A scheduler's *draft* says what each event needs, and has no offsets; what an event waits for beyond that is memory.
//! [`Schedule::place`] makes a *placed* schedule of it, in which everything that an event waits for is written down, so
//! that it is right whatever the events' times are.

use planlab_dsa::{BufferId, Bytes, Offset};

use crate::schedule::training_net::{FunctionId, MapId};

/// What runs events, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    /// Functions and sums of gradients.
    Compute,
    /// Copies from the device to the host.
    Out,
    /// Copies from the host to the device.
    In,
}

impl Engine {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Compute, Self::Out, Self::In];

    /// 0, 1 or 2, in the order of [`Engine::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name in files and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Out => "out",
            Self::In => "in",
        }
    }
}

/// How many events of each engine have to be complete, in the order of [`Engine::ALL`].
pub type Completions = [u32; 3];

/// What an event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// A function's forward pass.
    Forward(FunctionId),
    /// The same again, after its output was dropped.
    Recompute(FunctionId),
    /// A function's backward pass: from the gradient of its output, those of its inputs.
    Backward(FunctionId),
    /// The sum of two parts of a map's gradient, into a third buffer.
    Accumulate(MapId),
    /// A map to the host.
    CopyOut(MapId),
    /// A map from the host.
    CopyIn(MapId),
}

impl Task {
    /// The engine that can do it.
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
}

/// Something that an engine does.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// What it does.
    pub task: Task,
    /// What has to be complete before it starts, wherever its buffers lie.
    pub after: Completions,
    /// What has to be complete besides, so that what it writes has its addresses to itself. Zeros in a draft.
    pub room: Completions,
    /// The compute event, by its place, that has to have *started* before it starts.
    pub with: Option<u32>,
    /// How long it takes.
    pub seconds: f64,
    /// What it reads.
    pub reads: Vec<BufferId>,
    /// What it writes; taken from its start on.
    pub writes: Vec<BufferId>,
    /// What is free once it is complete.
    pub frees: Vec<BufferId>,
}

impl Event {
    /// All that has to be complete before it starts.
    #[must_use]
    pub fn waits(&self) -> Completions {
        [0, 1, 2].map(|engine| self.after[engine].max(self.room[engine]))
    }

    /// An event of `seconds` that waits for nothing and touches no buffer.
    #[must_use]
    pub const fn new(task: Task, seconds: f64) -> Self {
        Self {
            task,
            after: [0; 3],
            room: [0; 3],
            with: None,
            seconds,
            reads: Vec::new(),
            writes: Vec::new(),
            frees: Vec::new(),
        }
    }
}

/// What a buffer is said to hold. The validator works out for itself what it does hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Content {
    /// A feature map.
    Map(MapId),
    /// A map's gradient, or a part of it.
    Gradient(MapId),
}

/// Memory on the device that holds one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledBuffer {
    /// What it holds.
    pub content: Content,
    /// Which buffer of this content it is, counted from 0.
    pub version: u32,
    /// Its size.
    pub bytes: Bytes,
    /// Where it lies; `None` in a draft. The first [`Schedule::base`] bytes are reserved.
    pub offset: Option<Offset>,
}

/// A schedule of one iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule {
    /// Who made it.
    pub scheduler: String,
    /// For which net.
    pub net: String,
    /// At which batch; `None` if nobody has said.
    pub batch: Option<u64>,
    /// For which machine.
    pub machine: String,
    /// Bytes at the bottom of the memory that are taken throughout.
    pub base: Bytes,
    /// What it is said to take, from the start to the last completion; `None` in a draft.
    pub seconds: Option<f64>,
    /// By id.
    pub buffers: Vec<ScheduledBuffer>,
    /// What is on the device from the start: inputs of the net.
    pub resident: Vec<BufferId>,
    /// By engine, in the order of [`Engine::ALL`]: what it does, in this order.
    pub events: [Vec<Event>; 3],
}

impl Schedule {
    /// The events of an engine.
    #[must_use]
    pub fn of(&self, engine: Engine) -> &[Event] {
        &self.events[engine.index()]
    }

    /// A buffer.
    ///
    /// # Panics
    ///
    /// If there is none of that id.
    #[must_use]
    pub fn buffer(&self, id: BufferId) -> &ScheduledBuffer {
        &self.buffers[id.index()]
    }

    /// Adds a buffer without an offset, as the next version of its content.
    pub fn add_buffer(&mut self, content: Content, version: u32, bytes: Bytes) -> BufferId {
        self.buffers.push(ScheduledBuffer { content, version, bytes, offset: None });
        BufferId::from_index(self.buffers.len() - 1)
    }

    /// The memory that the offsets need, the base included; `None` if some buffer has no offset, or one past 2^64.
    #[must_use]
    pub fn height(&self) -> Option<Bytes> {
        let mut height = self.base.get();
        for buffer in &self.buffers {
            height = height.max(buffer.offset?.end(buffer.bytes)?.get());
        }
        Some(Bytes::new(height))
    }

    /// The same events with other times, and so without a claim: how a schedule runs where the machine is not as
    /// expected. A placed one stays right.
    #[must_use]
    pub fn with_times(mut self, mut seconds: impl FnMut(&Event) -> f64) -> Self {
        for event in self.events.iter_mut().flatten() {
            event.seconds = seconds(event);
        }
        self.seconds = None;
        self
    }
}
