//! XLA's dumps of a compiled module (`XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_as_proto"`).
//!
//! The protocol buffer `*.hlo.pb` has all that is needed: the buffer assignment (its field 3) with what the heap
//! simulator did, event by event, and where XLA put each buffer. The text `*-buffer-assignment.txt` has the places, and
//! `*-live-range.txt` the lives: joined, they give the same trace.
//!
//! What is planned is what XLA plans itself: the temporary buffers of an allocation. Parameters, outputs, constants and
//! the scratch of threads have memory of their own and are reported as dropped.
//!
//! # References
//!
//! 1. OpenXLA, `xla/service/hlo.proto`: `HloProto`, `BufferAssignmentProto`, `HeapSimulatorTrace`.
//! 2. OpenXLA, `xla/service/buffer_assignment.cc` and `xla/hlo/utils/hlo_live_range.cc`: the texts.

mod heap;
mod messages;
mod outside;
mod text;

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use self::messages::{BufferAllocation, BufferAssignment, HeapTrace, HloModule, HloProto, LogicalBuffer};
use self::outside::{Kind, NAME, Outside, rule};
use super::gather::{FoundBuffer, TraceGatherer, framework_with};
use super::protobuf::{Bytes, WireValue, decode_message, first_field, is_name, message_place};
use super::{Dropped, Imported, Input, Part, Reader};
use crate::formats::{FormatError, ReadOptions};

pub(crate) use self::text::TEXT;

pub(crate) const HLO: Reader = Reader {
    key: "xla-hlo",
    title: "XLA's dump of a module (*.hlo.pb) with its buffer assignment",
    endings: &[".hlo.pb"],
    has_lines: false,
    looks_like: is_hlo,
    read: read_xla,
};

/// A message whose field 1 is one that begins with two names: of the module, and of its entry computation.
fn is_hlo(start: &[u8]) -> bool {
    let names = || {
        let file = first_field(start).filter(|field| field.number == 1)?;
        let WireValue::Bytes(module) = file.value else { return None };
        let name = first_field(module).filter(|field| field.number == 1)?;
        let entry = first_field(name.rest).filter(|field| field.number == 2)?;
        match (name.value, entry.value) {
            (WireValue::Bytes(name), WireValue::Bytes(entry)) => Some(is_name(name) && is_name(entry)),
            _ => None,
        }
    };
    names() == Some(true)
}

fn read_xla(input: Input<'_>, options: &ReadOptions) -> Result<Imported, FormatError> {
    let file = input.file_name().to_owned();
    let bytes = Bytes::from(input.read_bytes()?);
    let proto: HloProto = decode_message(&file, &bytes)?;
    let missing = |what: &str, at: u64| {
        let reason =
            format!("{what}; XLA writes it after the last pass (*.after_optimizations.hlo.pb, or *.hlo.pb)");
        FormatError::at_byte(&file, at, reason)
    };
    let end = bytes.len() as u64;
    let assignment =
        proto.buffer_assignment.ok_or_else(|| missing("there is no buffer assignment in it", end))?;
    if assignment.heap_traces.is_empty() {
        let at = message_place(&bytes, &[ASSIGNMENT]);
        return Err(missing("its buffer assignment has no trace of the heap", at));
    }
    let module = proto.hlo_module.unwrap_or_default();
    Dump::new(&bytes, &module, &assignment).import_dump(&file, options)
}

/// The buffer assignment of a file, and in it the number of the traces of heaps, and in these that of their events.
const ASSIGNMENT: (u64, usize) = (3, 0);
const HEAP_TRACE: u64 = 4;
const EVENT: u64 = 1;

/// A module with its buffer assignment.
struct Dump<'p> {
    bytes: &'p Bytes,
    module: &'p HloModule,
    assignment: &'p BufferAssignment,
    logical: FxHashMap<i64, &'p LogicalBuffer>,
    /// Name and opcode of each instruction.
    instructions: FxHashMap<i64, (&'p str, &'p str)>,
    opcodes: FxHashMap<&'p str, &'p str>,
    /// The allocation of each logical buffer, and its offset there.
    places: FxHashMap<i64, (usize, i64)>,
}

impl<'p> Dump<'p> {
    fn new(bytes: &'p Bytes, module: &'p HloModule, assignment: &'p BufferAssignment) -> Self {
        let instructions = || module.computations.iter().flat_map(|computation| &computation.instructions);
        let mut places = FxHashMap::default();
        for (at, allocation) in assignment.allocations.iter().enumerate() {
            places
                .extend(allocation.assigned.iter().map(|assigned| (assigned.buffer, (at, assigned.offset))));
        }
        Self {
            bytes,
            module,
            assignment,
            logical: assignment.logical_buffers.iter().map(|buffer| (buffer.id, buffer)).collect(),
            instructions: instructions().map(|op| (op.id, (op.name.as_str(), op.opcode.as_str()))).collect(),
            opcodes: instructions().map(|op| (op.name.as_str(), op.opcode.as_str())).collect(),
            places,
        }
    }

    fn import_dump(&self, file: &str, options: &ReadOptions) -> Result<Imported, FormatError> {
        let mut imported = Imported::default();
        let mut planned = BTreeSet::new();
        for (number, trace) in self.assignment.heap_traces.iter().enumerate() {
            let (part, allocation) = self.build_part(file, options, number, trace, &mut imported.dropped)?;
            imported.parts.push(part);
            planned.extend(allocation);
        }
        imported.dropped.extend(self.dropped_allocations(&planned));
        Ok(imported)
    }

    /// The trace of one heap, and the allocation that holds it.
    fn build_part(
        &self,
        file: &str,
        options: &ReadOptions,
        number: usize,
        trace: &HeapTrace,
        dropped: &mut Vec<Dropped>,
    ) -> Result<(Part, Option<usize>), FormatError> {
        let lives = heap::shared_lives(trace, &self.logical).map_err(|(event, reason)| {
            let at = message_place(self.bytes, &[ASSIGNMENT, (HEAP_TRACE, number), (EVENT, event)]);
            FormatError::at_byte(file, at, format!("event {event} of the heap: {reason}"))
        })?;
        // The trace's own number of its allocation is from before XLA numbered them again.
        let allocation =
            lives.iter().find_map(|shared| self.places.get(&shared.members[0])).map(|place| place.0);
        let mut gather = TraceGatherer::new(file, options);
        gather.set_metadata("framework", NAME);
        gather.set_metadata("module", self.module.name.clone());
        gather.set_metadata("clock", "events of the heap simulator");
        let (mut folded, mut elsewhere) = (0, 0);
        let places: Vec<Option<u64>> =
            lives.iter().map(|shared| self.shared_offset(&shared.members, allocation)).collect();
        gather.align_as(rule(places.iter().copied().flatten()));
        for (shared, place) in lives.into_iter().zip(places) {
            folded += shared.members.len() as u64 - 1;
            elsewhere += u64::from(place.is_none());
            let (name, op) = self.buffer_label(&shared);
            let heap::Shared { size, start, end, .. } = shared;
            gather.append_buffer(FoundBuffer { name, start, end, size, op, place, ..FoundBuffer::default() });
        }
        let why = "each is one buffer with the one that it shares with, as large as the largest";
        dropped.extend(Dropped::from_count(folded, "values that share another's memory", why));
        let (what, why) =
            ("buffers that lie outside the allocation of their heap", "XLA's own placement lacks them");
        dropped.extend(Dropped::from_count(elsewhere, what, why));
        let reserved = allocation.and_then(|at| u64::try_from(self.assignment.allocations[at].size).ok());
        let part = gather.build_part(format!("heap-{number}"), framework_with(NAME, reserved), dropped)?;
        Ok((part, allocation))
    }

    /// The offset of buffers that share memory, if they have the same one in the allocation.
    fn shared_offset(&self, members: &[i64], allocation: Option<usize>) -> Option<u64> {
        let &(at, offset) = self.places.get(&members[0])?;
        let same = members.iter().all(|member| self.places.get(member) == Some(&(at, offset)));
        u64::try_from(offset).ok().filter(|_| same && allocation == Some(at))
    }

    /// Instruction and opcode of a buffer.
    fn buffer_label(&self, shared: &heap::Shared) -> (String, Option<String>) {
        let id = shared.members[0];
        let location = self.logical.get(&id).and_then(|buffer| buffer.defined_at.as_ref());
        let numbered = location.and_then(|location| self.instructions.get(&location.instruction_id));
        let named = location.map_or("", |location| location.instruction_name.as_str());
        let known = [numbered.map_or("", |known| known.0), named, shared.instruction.as_str()];
        let name = known.into_iter().find(|name| !name.is_empty());
        let index = location.map_or(&[][..], |location| &location.shape_index);
        let index: Vec<String> = index.iter().map(i64::to_string).collect();
        let index = if index.is_empty() { String::new() } else { format!("{{{}}}", index.join(",")) };
        let op = name.and_then(|name| self.opcodes.get(name)).filter(|op| !op.is_empty());
        let name = name.map_or_else(|| id.to_string(), str::to_owned);
        (format!("{name}{index}"), op.map(|&op| op.to_owned()))
    }

    /// The allocations that no heap was planned into.
    fn dropped_allocations(&self, planned: &BTreeSet<usize>) -> Vec<Dropped> {
        let mut tallies = Outside::default();
        for (at, allocation) in self.assignment.allocations.iter().enumerate() {
            if !planned.contains(&at) {
                tallies.add_bytes(allocation_kind(allocation), u64::try_from(allocation.size).unwrap_or(0));
            }
        }
        tallies.as_dropped()
    }
}

fn allocation_kind(allocation: &BufferAllocation) -> Kind {
    match allocation {
        BufferAllocation { is_parameter: true, .. } => Kind::Parameter,
        BufferAllocation { is_constant: true, .. } => Kind::Constant,
        BufferAllocation { is_thread_local: true, .. } => Kind::ThreadLocal,
        BufferAllocation { maybe_live_out: true, .. } => Kind::Output,
        _ => Kind::Other,
    }
}
