//! Snapshots of PyTorch's caching allocator: what `torch.cuda.memory._dump_snapshot` writes.
//!
//! A pickle with the segments that the allocator holds at the end and, for each device, the history of its requests
//! since `torch.cuda.memory._record_memory_history`. Step `k` of the trace is event `k` of the device's history, from
//! 1; step 0 is before it. A part is a device, `cuda:0`; a stream of it by itself is the part `cuda:0/stream-7`.
//!
//! # References
//!
//! 1. PyTorch, Understanding CUDA Memory Usage, <https://docs.pytorch.org/docs/stable/torch_cuda_memory.html>

use super::super::super::{FormatError, ReadOptions};
use super::super::pickle::{self, Fields, Heap, Value};
use super::super::{Dropped, Imported, Input, Reader};
use super::blocks::Rules;
use super::device::{Device, DeviceReader};
use super::frames::clip;
use super::segments::Piece;

pub(in super::super) const READER: Reader = Reader {
    key: "torch-snapshot",
    title: "PyTorch's memory snapshot of a GPU (torch.cuda.memory._dump_snapshot, a pickle)",
    looks_like: |start| matches!(start, [0x80, 2..=5, ..]),
    read,
};

/// PyTorch counts devices in 7 bits.
const MOST_DEVICES: u64 = 128;

fn read(input: Input<'_>, options: &ReadOptions) -> Result<Imported, FormatError> {
    let file = input.file().to_owned();
    let (heap, root) = pickle::load(&file, input.stream())?;
    let mut imported = Imported::default();
    let devices = devices(&file, &heap, root, &mut imported, options)?;
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

/// The devices that have buffers; what was left out goes to `imported`.
fn devices(
    file: &str,
    heap: &Heap,
    root: Value,
    imported: &mut Imported,
    options: &ReadOptions,
) -> Result<Vec<Device>, FormatError> {
    let snapshot = Snapshot::new(file, heap, root)?;
    let mut devices = Vec::new();
    for number in 0..snapshot.devices() {
        let (device, dropped) = DeviceReader::new(&snapshot, number)?.read(options)?;
        if let Some(device) = device {
            devices.push(device);
            imported.dropped.extend(dropped);
        }
    }
    imported.dropped.extend(snapshot.left_out());
    Ok(devices)
}

/// The top of the pickle.
pub(super) struct Snapshot<'h> {
    pub(super) file: &'h str,
    pub(super) heap: &'h Heap,
    pub(super) histories: &'h [Value],
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

impl<'h> Snapshot<'h> {
    fn new(file: &'h str, heap: &'h Heap, root: Value) -> Result<Self, FormatError> {
        let names =
            ["device_traces", "segments", "external_annotations", "host_traces", "allocator_settings"];
        let Some(top) = Fields::new(heap, names).of(heap, root) else {
            let reason = format!("a snapshot is a dict, this is a value of type {}", root.type_name());
            return Err(FormatError::at_byte(file, 0, reason));
        };
        let [histories, segments, annotations, host, settings] = top.values;
        if histories.is_none() && segments.is_none() {
            let reason =
                "this dict has neither device_traces nor segments: it is no memory snapshot of PyTorch";
            return Err(FormatError::at_byte(file, top.byte, reason));
        }
        let list = |value: Option<Value>, name: &str| match value {
            None => Ok(&[][..]),
            Some(value) => heap.items(value).ok_or_else(|| {
                let reason = format!("`{name}` is a value of type {}, not a list", value.type_name());
                FormatError::at_byte(file, top.byte, reason)
            }),
        };
        let histories = list(histories, "device_traces")?;
        if histories.len() as u64 > MOST_DEVICES {
            let reason = format!("device_traces has {} devices, more than {MOST_DEVICES}", histories.len());
            return Err(FormatError::at_byte(file, top.byte, reason));
        }
        let host = list(host, "host_traces")?;
        let count = |value: &Value| heap.items(*value).map_or(0, |events| events.len() as u64);
        let mut snapshot = Self {
            file,
            heap,
            histories,
            segments: Vec::new(),
            annotations,
            rules: Rules::read(heap, settings),
            host_events: host.iter().map(count).sum(),
        };
        snapshot.segments = snapshot.read_segments(list(segments, "segments")?)?;
        Ok(snapshot)
    }

    fn read_segments(&self, values: &[Value]) -> Result<Vec<FinalSegment>, FormatError> {
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
        let mut fields = Fields::new(self.heap, names);
        let mut segments = Vec::with_capacity(values.len());
        for (number, &value) in values.iter().enumerate() {
            let place = || format!("segments[{number}]");
            let Some(record) = fields.of(self.heap, value) else { return Err(self.no_dict(&place(), value)) };
            let [device, address, size, stream, blocks, expandable, pool, active, requested] = record.values;
            let numbers = Numbers { snapshot: self, byte: record.byte, place: &place };
            let Some(blocks) = blocks.filter(|&blocks| self.heap.items(blocks).is_some()) else {
                return Err(numbers.error("has no list `blocks`"));
            };
            let piece = Piece {
                address: numbers.needed(address, "address")?,
                size: numbers.needed(size, "total_size")?,
                stream: numbers.or_zero(stream, "stream")?,
                pool: pool_of(self.heap, pool),
                is_mapped: expandable.and_then(|flag| self.heap.integer(flag)) == Some(1),
            };
            let device = numbers.or_zero(device, "device")?;
            if device >= MOST_DEVICES {
                return Err(numbers.error(&format!("has a bad `device`: {device}")));
            }
            let count = |value: Option<Value>| self.heap.whole(value?);
            let (active, requested) = (count(active), count(requested));
            segments.push(FinalSegment { device, piece, blocks, active, requested, byte: record.byte });
        }
        Ok(segments)
    }

    /// One more than the highest device.
    fn devices(&self) -> u64 {
        let named = self.segments.iter().map(|segment| segment.device + 1);
        named.max().unwrap_or(0).max(self.histories.len() as u64)
    }

    fn left_out(&self) -> Option<Dropped> {
        (self.host_events > 0).then(|| {
            Dropped::new(self.host_events, "events of pinned memory of the host", "only devices are read")
        })
    }

    pub(super) fn no_dict(&self, place: &str, value: Value) -> FormatError {
        FormatError::at_byte(
            self.file,
            0,
            format!("{place} is a value of type {}, not a dict", value.type_name()),
        )
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
pub(super) struct Numbers<'s, 'h> {
    pub(super) snapshot: &'s Snapshot<'h>,
    pub(super) byte: u64,
    /// What the dict is called in Python.
    pub(super) place: &'s dyn Fn() -> String,
}

impl Numbers<'_, '_> {
    pub(super) fn error(&self, what: &str) -> FormatError {
        FormatError::at_byte(self.snapshot.file, self.byte, format!("{} {what}", (self.place)()))
    }

    pub(super) fn needed(&self, value: Option<Value>, name: &str) -> Result<u64, FormatError> {
        match value {
            Some(value) => self.snapshot.heap.whole(value).ok_or_else(|| {
                let shown = match self.snapshot.heap.integer(value) {
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
