//! The fields of XLA's messages that say what memory is for; their numbers are those of `hlo.proto` of OpenXLA.

use prost::Message;

use crate::formats::import::protobuf::{Holds, Known, Layout, layouts};

#[derive(Clone, PartialEq, Message)]
pub(super) struct HloProto {
    #[prost(message, optional, tag = "1")]
    pub(super) hlo_module: Option<HloModule>,
    #[prost(message, optional, tag = "3")]
    pub(super) buffer_assignment: Option<BufferAssignment>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HloModule {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) computations: Vec<HloComputation>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HloComputation {
    #[prost(message, repeated, tag = "2")]
    pub(super) instructions: Vec<HloInstruction>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HloInstruction {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) opcode: String,
    #[prost(int64, tag = "35")]
    pub(super) id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct BufferAssignment {
    #[prost(message, repeated, tag = "1")]
    pub(super) logical_buffers: Vec<LogicalBuffer>,
    #[prost(message, repeated, tag = "3")]
    pub(super) allocations: Vec<BufferAllocation>,
    #[prost(message, repeated, tag = "4")]
    pub(super) heap_traces: Vec<HeapTrace>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LogicalBuffer {
    #[prost(int64, tag = "1")]
    pub(super) id: i64,
    #[prost(int64, tag = "2")]
    pub(super) size: i64,
    #[prost(message, optional, tag = "3")]
    pub(super) defined_at: Option<Location>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Location {
    /// Older files name the instruction, newer ones number it.
    #[prost(string, tag = "2")]
    pub(super) instruction_name: String,
    #[prost(int64, repeated, tag = "3")]
    pub(super) shape_index: Vec<i64>,
    #[prost(int64, tag = "4")]
    pub(super) instruction_id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct BufferAllocation {
    #[prost(int64, tag = "1")]
    pub(super) index: i64,
    #[prost(int64, tag = "2")]
    pub(super) size: i64,
    #[prost(bool, tag = "3")]
    pub(super) is_thread_local: bool,
    #[prost(bool, tag = "5")]
    pub(super) is_parameter: bool,
    #[prost(bool, tag = "7")]
    pub(super) maybe_live_out: bool,
    #[prost(message, repeated, tag = "9")]
    pub(super) assigned: Vec<Assigned>,
    #[prost(bool, tag = "12")]
    pub(super) is_constant: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Assigned {
    #[prost(int64, tag = "1")]
    pub(super) buffer: i64,
    #[prost(int64, tag = "2")]
    pub(super) offset: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HeapTrace {
    #[prost(message, repeated, tag = "1")]
    pub(super) events: Vec<HeapEvent>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HeapEvent {
    #[prost(int32, tag = "1")]
    pub(super) kind: i32,
    #[prost(int64, tag = "2")]
    pub(super) buffer: i64,
    #[prost(string, tag = "4")]
    pub(super) instruction: String,
    /// The buffer whose memory this one shares.
    #[prost(int64, tag = "5")]
    pub(super) canonical: i64,
}

/// Kinds of a [`HeapEvent`].
pub(super) const ALLOC: i32 = 0;
pub(super) const FREE: i32 = 1;
pub(super) const SHARE_WITH: i32 = 2;

impl Known for HloProto {
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
