//! Snapshots of PyTorch's caching allocator: what `torch.cuda.memory._dump_snapshot` writes.
//!
//! A pickle with the segments that the allocator holds at the end and, for each device, the history of its requests
//! since `torch.cuda.memory._record_memory_history`; or the archive that `torch.save` makes of the same. Step `k` of the trace is event `k` of the device's history, from
//! 1; step 0 is before it. A part is a device, `cuda:0`; a stream of it by itself is the part `cuda:0/stream-7`.
//!
//! # References
//!
//! 1. PyTorch, Understanding CUDA Memory Usage, <https://docs.pytorch.org/docs/stable/torch_cuda_memory.html>

use super::super::super::{FormatError, ReadOptions};
use super::super::pickle::{self, Fields, Heap, Value, Watch};
use super::super::{Dropped, Imported, Input, Reader};
use super::annotations::{MARK, Marks};
use super::archive;
use super::blocks::Rules;
use super::device::{Device, DeviceReader};
use super::frames::clip;
use super::segments::Piece;

pub(in super::super) const READER: Reader = Reader {
    key: "torch-snapshot",
    title: "PyTorch's memory snapshot of a GPU (torch.cuda.memory._dump_snapshot, a pickle)",
    endings: &[".pickle"],
    has_lines: false,
    looks_like: |start| matches!(start, [0x80, 2..=5, ..]) || archive::is_archive(start),
    read,
};

/// PyTorch counts devices in 7 bits.
const MOST_DEVICES: u64 = 128;

fn read(input: Input<'_>, options: &ReadOptions) -> Result<Imported, FormatError> {
    let file = input.file().to_owned();
    let mut histories = Histories { file: &file, devices: Vec::new() };
    let limits = input.limits();
    let mut stream = input.stream();
    archive::enter(&mut stream).map_err(|reason| FormatError::at_byte(&file, 0, reason))?;
    let (mut heap, root) = pickle::load(&file, stream, limits, &mut histories)?;
    let mut imported = Imported::default();
    let devices = devices(histories, &mut heap, root, &mut imported, options)?;
    // The labels of a long history need the room.
    drop(heap);
    for device in devices {
        imported.parts.push(device.part(&file, options)?);
    }
    if imported.parts.is_empty() {
        let reason = match &options.part {
            Some(part) => format!("there is no buffer of the part `{}` in it", clip(part)),
            None => {
                "there is no buffer in it: was torch.cuda.memory._record_memory_history() called?".to_owned()
            }
        };
        return Err(FormatError::at_byte(file, 0, reason));
    }
    Ok(imported)
}

/// Reads the histories of devices while the pickle is read. Most of a snapshot is events, and nothing refers to them.
struct Histories<'f> {
    file: &'f str,
    devices: Vec<DeviceReader<'f>>,
}

const TRACES: &str = "device_traces";

impl<'f> Histories<'f> {
    /// The reader of a device.
    fn of(&mut self, heap: &mut Heap, device: usize) -> &mut DeviceReader<'f> {
        for number in self.devices.len()..=device {
            self.devices.push(DeviceReader::new(self.file, heap, number as u64));
        }
        &mut self.devices[device]
    }
}

impl Watch for Histories<'_> {
    fn key(&self) -> &str {
        TRACES
    }

    fn entries(&mut self, heap: &mut Heap, list: usize, entries: &[Value]) -> Result<(), FormatError> {
        if list as u64 >= MOST_DEVICES {
            let reason = format!("{TRACES} has more than {MOST_DEVICES} devices");
            return Err(FormatError::at_byte(self.file, 0, reason));
        }
        self.of(heap, list).events(heap, entries)
    }
}

/// The devices that have buffers; what was left out goes to `imported`.
fn devices(
    mut histories: Histories<'_>,
    heap: &mut Heap,
    root: Value,
    imported: &mut Imported,
    options: &ReadOptions,
) -> Result<Vec<Device>, FormatError> {
    let snapshot = Snapshot::new(histories.file, heap, root)?;
    let mut marks = Marks::new(heap, MARK);
    let mut devices = Vec::new();
    for number in 0..snapshot.devices() {
        histories.of(heap, number);
        // What was not taken while the pickle was read.
        let rest = snapshot.rest_of(histories.file, heap, number)?;
        histories.devices[number].events(heap, &rest)?;
    }
    for reader in histories.devices {
        let (device, dropped) = reader.finish(heap, &snapshot, &mut marks, options)?;
        if let Some(device) = device {
            devices.push(device);
            imported.dropped.extend(dropped);
        }
    }
    imported.dropped.extend(snapshot.left_out());
    Ok(devices)
}

/// The top of the pickle, but for the events.
pub(super) struct Snapshot {
    histories: Vec<Value>,
    pub(super) segments: Vec<FinalSegment>,
    pub(super) annotations: Option<Value>,
    pub(super) rules: Rules,
    host_events: u64,
}

/// A segment that the allocator holds at the end.
pub(super) struct FinalSegment {
    pub(super) device: u64,
    pub(super) piece: Piece,
    pub(super) blocks: Value,
    /// Bytes of blocks in use, and of the requests in them, as the allocator counts them.
    pub(super) active: Option<u64>,
    pub(super) requested: Option<u64>,
    /// For errors.
    pub(super) byte: u64,
}

impl Snapshot {
    fn new(file: &str, heap: &mut Heap, root: Value) -> Result<Self, FormatError> {
        let names = [TRACES, "segments", "external_annotations", "host_traces", "allocator_settings"];
        let Some(top) = Fields::new(heap, names).of(heap, root) else {
            let reason = format!("a snapshot is a dict, this is a value of type {}", root.type_name());
            return Err(FormatError::at_byte(file, 0, reason));
        };
        let [histories, segments, annotations, host, settings] = top.values;
        let error = |reason: String| FormatError::at_byte(file, top.byte, reason);
        if histories.is_none() && segments.is_none() {
            let reason =
                "this dict has neither device_traces nor segments: it is no memory snapshot of PyTorch";
            return Err(error(reason.to_owned()));
        }
        let list = |value: Option<Value>, name: &str| match value {
            None => Ok(Vec::new()),
            Some(value) => heap.items(value).map(<[Value]>::to_vec).ok_or_else(|| {
                error(format!("`{name}` is a value of type {}, not a list", value.type_name()))
            }),
        };
        let histories = list(histories, TRACES)?;
        if histories.len() as u64 > MOST_DEVICES {
            return Err(error(format!("{TRACES} has {} devices, more than {MOST_DEVICES}", histories.len())));
        }
        // A list of events that several devices have would be as many times as large as the file.
        for (number, history) in histories.iter().enumerate() {
            let is_empty = heap.items(*history).is_none_or(<[Value]>::is_empty);
            if let Some(first) = histories[..number].iter().position(|other| other == history && !is_empty) {
                return Err(error(format!("{TRACES}[{number}] and {TRACES}[{first}] are one list")));
            }
        }
        let host = list(host, "host_traces")?;
        let count = |value: &Value| heap.items(*value).map_or(0, |events| events.len() as u64);
        let host_events = host.iter().map(count).sum();
        let segments = list(segments, "segments")?;
        let segments = read_segments(file, heap, &segments)?;
        let rules = Rules::read(heap, settings);
        Ok(Self { histories, segments, annotations, rules, host_events })
    }

    /// One more than the highest device.
    fn devices(&self) -> usize {
        let named = self.segments.iter().filter_map(|segment| usize::try_from(segment.device + 1).ok());
        named.max().unwrap_or(0).max(self.histories.len())
    }

    /// The events of a device that are still in the heap.
    fn rest_of(&self, file: &str, heap: &Heap, device: usize) -> Result<Vec<Value>, FormatError> {
        let Some(&history) = self.histories.get(device) else { return Ok(Vec::new()) };
        heap.items(history).map(<[Value]>::to_vec).ok_or_else(|| {
            let reason = format!("{TRACES}[{device}] is a value of type {}, not a list", history.type_name());
            FormatError::at_byte(file, 0, reason)
        })
    }

    fn left_out(&self) -> Option<Dropped> {
        Dropped::from_count(self.host_events, "events of pinned memory of the host", "only devices are read")
    }
}

fn read_segments(file: &str, heap: &mut Heap, values: &[Value]) -> Result<Vec<FinalSegment>, FormatError> {
    let names = [
        "device",
        "address",
        "total_size",
        "stream",
        "blocks",
        "is_expandable",
        "segment_pool_id",
        "active_size",
        "requested_size",
    ];
    let mut fields = Fields::new(heap, names);
    let mut segments = Vec::with_capacity(values.len());
    for (number, &value) in values.iter().enumerate() {
        let place = || format!("segments[{number}]");
        let record = fields.take(heap, value).ok_or_else(|| no_dict(file, heap, &place(), value))?;
        let [device, address, size, stream, blocks, expandable, pool, active, requested] = record.values;
        let numbers = Numbers { file, heap, byte: record.byte, place: &place };
        let Some(blocks) = blocks.filter(|&blocks| heap.items(blocks).is_some()) else {
            return Err(numbers.error("has no list `blocks`"));
        };
        let piece = Piece {
            address: numbers.needed(address, "address")?,
            size: numbers.needed(size, "total_size")?,
            stream: numbers.or_zero(stream, "stream")?,
            pool: pool_of(heap, pool),
            is_mapped: expandable.and_then(|flag| heap.integer(flag)) == Some(1),
        };
        let device = numbers.or_zero(device, "device")?;
        if device >= MOST_DEVICES {
            return Err(numbers.error(&format!("has a bad `device`: {device}")));
        }
        let count = |value: Option<Value>| heap.whole(value?);
        let (active, requested) = (count(active), count(requested));
        segments.push(FinalSegment { device, piece, blocks, active, requested, byte: record.byte });
    }
    Ok(segments)
}

/// The error for an entry that is not a dict, or that was read already. Events, segments and blocks must be dicts of their
/// own: otherwise a small file could stand for a recording of any length.
pub(super) fn no_dict(file: &str, heap: &Heap, place: &str, value: Value) -> FormatError {
    match heap.is_taken(value) {
        true => {
            let byte = heap.byte_of(value).unwrap_or(0);
            FormatError::at_byte(
                file,
                byte,
                format!("{place} is a dict that was read already: each is there once"),
            )
        }
        false => {
            let reason = format!("{place} is a value of type {}, not a dict", value.type_name());
            FormatError::at_byte(file, 0, reason)
        }
    }
}

/// The private pool that a pair of numbers names; what says nothing belongs to the common one.
pub(super) fn pool_of(heap: &Heap, pair: Option<Value>) -> (u64, u64) {
    let numbers = pair.and_then(|pair| heap.items(pair)).unwrap_or_default();
    match numbers {
        &[first, second] => (heap.whole(first).unwrap_or(0), heap.whole(second).unwrap_or(0)),
        _ => (0, 0),
    }
}

/// Reads the numbers of a dict.
pub(super) struct Numbers<'s> {
    pub(super) file: &'s str,
    pub(super) heap: &'s Heap,
    pub(super) byte: u64,
    /// What the dict is called in Python.
    pub(super) place: &'s dyn Fn() -> String,
}

impl Numbers<'_> {
    pub(super) fn error(&self, what: &str) -> FormatError {
        FormatError::at_byte(self.file, self.byte, format!("{} {what}", (self.place)()))
    }

    pub(super) fn needed(&self, value: Option<Value>, name: &str) -> Result<u64, FormatError> {
        match value {
            Some(value) => self.heap.whole(value).ok_or_else(|| {
                let shown = match self.heap.integer(value) {
                    Some(number) => format!("is {number}, which is not from 0 to 2^64 - 1"),
                    None => format!("is a value of type {}", value.type_name()),
                };
                self.error(&format!("has a bad `{name}`: it {shown}"))
            }),
            None => Err(self.error(&format!("has no `{name}`"))),
        }
    }

    pub(super) fn or_zero(&self, value: Option<Value>, name: &str) -> Result<u64, FormatError> {
        if value.is_none() { Ok(0) } else { self.needed(value, name) }
    }
}

#[cfg(test)]
#[path = "../../../../examples/large_snapshot/pickle.rs"]
mod large;

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::large::LargeSnapshot;
    use super::*;
    use crate::formats::InputLimits;

    /// Bytes of a snapshot, and of the heap once it is read.
    fn room(events: u64) -> (u64, u64) {
        let mut bytes = Vec::new();
        LargeSnapshot::new(events).read_to_end(&mut bytes).expect("it cannot fail");
        let mut histories = Histories { file: "large", devices: Vec::new() };
        let (heap, _) =
            pickle::load("large", &bytes[..], InputLimits::default(), &mut histories).expect("valid");
        assert_eq!(histories.devices[0].count(), events);
        (bytes.len() as u64, heap.room() as u64)
    }

    #[test]
    fn events_are_not_held() {
        let (few, many) = (room(3_000), room(30_000));
        let (file, held) = (many.0 - few.0, many.1 - few.1);
        assert!(2 * held < file, "{held} bytes for {file} of the file");
    }
}
