//! The fields of XLA's messages that say what memory is for; their numbers are those of `hlo.proto` of OpenXLA.

use prost::Message;

use crate::formats::import::protobuf::{DecodableMessage, Holds, Layout, layouts};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HloProto {
    #[prost(message, optional, tag = "1")]
    pub(crate) hlo_module: Option<HloModule>,
    #[prost(message, optional, tag = "3")]
    pub(crate) buffer_assignment: Option<BufferAssignment>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HloModule {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, repeated, tag = "3")]
    pub(crate) computations: Vec<HloComputation>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HloComputation {
    #[prost(message, repeated, tag = "2")]
    pub(crate) instructions: Vec<HloInstruction>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HloInstruction {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) opcode: String,
    #[prost(int64, tag = "35")]
    pub(crate) id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct BufferAssignment {
    #[prost(message, repeated, tag = "1")]
    pub(crate) logical_buffers: Vec<LogicalBuffer>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) allocations: Vec<BufferAllocation>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) heap_traces: Vec<HeapTrace>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LogicalBuffer {
    #[prost(int64, tag = "1")]
    pub(crate) id: i64,
    #[prost(int64, tag = "2")]
    pub(crate) size: i64,
    #[prost(message, optional, tag = "3")]
    pub(crate) defined_at: Option<Location>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Location {
    /// Older files name the instruction, newer ones number it.
    #[prost(string, tag = "2")]
    pub(crate) instruction_name: String,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) shape_index: Vec<i64>,
    #[prost(int64, tag = "4")]
    pub(crate) instruction_id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct BufferAllocation {
    #[prost(int64, tag = "1")]
    pub(crate) index: i64,
    #[prost(int64, tag = "2")]
    pub(crate) size: i64,
    #[prost(bool, tag = "3")]
    pub(crate) is_thread_local: bool,
    #[prost(bool, tag = "5")]
    pub(crate) is_parameter: bool,
    #[prost(bool, tag = "7")]
    pub(crate) maybe_live_out: bool,
    #[prost(message, repeated, tag = "9")]
    pub(crate) assigned: Vec<Assigned>,
    #[prost(bool, tag = "12")]
    pub(crate) is_constant: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Assigned {
    #[prost(int64, tag = "1")]
    pub(crate) buffer: i64,
    #[prost(int64, tag = "2")]
    pub(crate) offset: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HeapTrace {
    #[prost(message, repeated, tag = "1")]
    pub(crate) events: Vec<HeapEvent>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HeapEvent {
    #[prost(int32, tag = "1")]
    pub(crate) kind: i32,
    #[prost(int64, tag = "2")]
    pub(crate) buffer: i64,
    #[prost(string, tag = "4")]
    pub(crate) instruction: String,
    /// The buffer whose memory this one shares.
    #[prost(int64, tag = "5")]
    pub(crate) canonical: i64,
}

/// Kinds of a [`HeapEvent`].
pub(crate) const ALLOC: i32 = 0;
pub(crate) const FREE: i32 = 1;
pub(crate) const SHARE_WITH: i32 = 2;

impl DecodableMessage for HloProto {
    const LAYOUT: &'static Layout = &PROTO;
}

layouts! {
    PROTO(HloProto): 1 Message(MODULE), 3 Message(ASSIGNMENT);
    MODULE(): 1 Text, 3 Message(COMPUTATION);
    COMPUTATION(HloComputation): 2 Message(INSTRUCTION);
    INSTRUCTION(HloInstruction): 1 Text, 2 Text;
    ASSIGNMENT(): 1 Message(LOGICAL), 3 Message(ALLOCATION), 4 Message(HEAP_TRACE);
    LOGICAL(LogicalBuffer): 3 Message(LOCATION);
    LOCATION(): 2 Text, 3 Numbers;
    ALLOCATION(BufferAllocation): 9 Message(ASSIGNED);
    ASSIGNED(Assigned):;
    HEAP_TRACE(HeapTrace): 1 Message(EVENT);
    EVENT(HeapEvent): 4 Text;
}
