//! The faults of a schedule.

use planlab_dsa::{BufferId, Bytes};

use crate::{EventId, FunctionId, MapId};

/// A fault in a schedule.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// A map, function, buffer or event that does not exist.
    #[error("{event} names {what}, which does not exist")]
    Unknown { event: EventId, what: String },
    /// A task of another engine.
    #[error("{event} does what that engine cannot do")]
    WrongEngine { event: EventId },
    /// A buffer that two events write, or that an event writes although it exists from the start.
    #[error("{event} writes buffer {buffer}, which is written already")]
    WrittenTwice { event: EventId, buffer: BufferId },
    /// A buffer that nothing writes.
    #[error("nothing writes buffer {0}")]
    NeverWritten(BufferId),
    /// A buffer that two events of one engine free, or that an event frees twice.
    #[error("{event} frees buffer {buffer}, which is freed already")]
    FreedTwice { event: EventId, buffer: BufferId },
    /// A buffer that nothing frees: it would be missing in the next iteration.
    #[error("nothing frees buffer {0}")]
    NeverFreed(BufferId),
    /// A buffer whose size differs from that of its content.
    #[error("buffer {buffer} has {bytes} bytes; what it holds has {wanted}")]
    WrongSize { buffer: BufferId, bytes: Bytes, wanted: Bytes },
    /// A buffer without an offset.
    #[error("buffer {0} has no offset")]
    NoOffset(BufferId),
    /// A buffer in the reserved bytes.
    #[error("buffer {buffer} begins at {offset}, below the {base} bytes of the base")]
    BelowBase { buffer: BufferId, offset: u64, base: Bytes },
    /// A base that is smaller than the machine requires.
    #[error("the base is {base} bytes; the machine reserves {wanted}")]
    WrongBase { base: Bytes, wanted: Bytes },
    /// A buffer past the end of the memory.
    #[error("buffer {buffer} ends at {end}, past the {memory} bytes of memory")]
    OutsideMemory { buffer: BufferId, end: u64, memory: Bytes },
    /// Two buffers that share addresses without either being surely freed before the other is written.
    #[error(
        "buffers {first} and {second} share addresses, and neither is surely free when the other is written"
    )]
    Overlap { first: BufferId, second: BufferId },
    /// A circle of waits.
    #[error("{0} never starts: it waits for an event that waits for it")]
    NeverStarts(EventId),
    /// A buffer that may be read before it is written.
    #[error("{event} reads or frees buffer {buffer}, which is not surely written by then")]
    NotWritten { event: EventId, buffer: BufferId },
    /// A buffer that may be read after it is freed.
    #[error("{event} reads or writes buffer {buffer}, which may be free by then")]
    AfterFree { event: EventId, buffer: BufferId },
    /// An operand that the task does not read.
    #[error("{event} reads buffer {buffer}, whose value its task does not read")]
    WrongValue { event: EventId, buffer: BufferId },
    /// A missing operand.
    #[error("{event} does not read {what}")]
    MissingValue { event: EventId, what: String },
    /// A result without a buffer, a buffer without a result, or a buffer with the wrong content.
    #[error("{event} writes other buffers than its task does")]
    WrongResult { event: EventId },
    /// A function whose forward pass does not run exactly once.
    #[error("function {function} runs forward {times} times")]
    Forward { function: FunctionId, times: u32 },
    /// A function whose gradients are not computed exactly once.
    #[error("function {function} runs backward {times} times")]
    Backward { function: FunctionId, times: u32 },
    /// A map that is copied in without having been copied out.
    #[error("{event} brings map {map} back, which is not surely on the host by then")]
    NotOnHost { event: EventId, map: MapId },
    /// A map that is on the device from the start although a function has to make it.
    #[error("buffer {0} is there from the start, but it holds no input of the net")]
    NotAnInput(BufferId),
    /// An event that is faster than the machine permits.
    #[error("{event} takes {seconds:e} s; on this machine it takes {least:e}")]
    TooFast { event: EventId, seconds: f64, least: f64 },
    /// A run whose time is too large for a number.
    #[error("the events together take more seconds than a number can hold")]
    Endless,
    /// A wrong declared time.
    #[error("the schedule claims {claimed:e} s; it takes {seconds:e}")]
    WrongClaim { claimed: f64, seconds: f64 },
}
