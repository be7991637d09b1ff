//! Snapshots of PyTorch's caching allocator: what `torch.cuda.memory._dump_snapshot` writes.
//!
//! A pickle with the segments that the allocator holds at the end and, for each device, the history of its requests
//! since `torch.cuda.memory._record_memory_history`. Step `k` of the trace is event `k` of the device's history, from
//! 1; step 0 is before it. A part is a device, `cuda:0`; a stream of it by itself is the part `cuda:0/stream-7`.
//!
//! # References
//!
//! 1. PyTorch, Understanding CUDA Memory Usage, <https://docs.pytorch.org/docs/stable/torch_cuda_memory.html>

use std::sync::Arc;

use planlab_dsa::Bytes;
use rustc_hash::FxHashMap;

use super::super::super::{FormatError, ReadOptions};
use super::super::pickle::{self, Fields, Heap, Record, Value};
use super::super::{Dropped, Framework, Imported, Input, OutOfMemory, Part, Reader, Segment};
use super::frames::{NamedStacks, Stacks, clip};
use super::lives::Lives;
use super::segments::{Held, Piece, peak};
use super::{Life, sort, trace};

pub(in super::super) const READER: Reader = Reader {
    key: "torch-snapshot",
    title: "PyTorch's memory snapshot of a GPU (torch.cuda.memory._dump_snapshot, a pickle)",
    looks_like: |start| matches!(start, [0x80, 2..=5, ..]),
    read,
};

/// PyTorch gives out memory in blocks of so many bytes.
const BLOCK: u64 = 512;
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
struct Snapshot<'h> {
    file: &'h str,
    heap: &'h Heap,
    histories: &'h [Value],
    segments: Vec<FinalSegment>,
    annotations: Option<Value>,
    host_events: u64,
}

/// A segment that the allocator holds at the end.
struct FinalSegment {
    device: u64,
    piece: Piece,
    blocks: Value,
    /// For errors.
    byte: u64,
}

impl<'h> Snapshot<'h> {
    fn new(file: &'h str, heap: &'h Heap, root: Value) -> Result<Self, FormatError> {
        let names = ["device_traces", "segments", "external_annotations", "host_traces"];
        let Some(top) = Fields::new(heap, names).of(heap, root) else {
            let reason = format!("a snapshot is a dict, this is a value of type {}", root.type_name());
            return Err(FormatError::at_byte(file, 0, reason));
        };
        let [histories, segments, annotations, host] = top.values;
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
            host_events: host.iter().map(count).sum(),
        };
        snapshot.segments = snapshot.read_segments(list(segments, "segments")?)?;
        Ok(snapshot)
    }

    fn read_segments(&self, values: &[Value]) -> Result<Vec<FinalSegment>, FormatError> {
        let names = ["device", "address", "total_size", "stream", "blocks", "is_expandable"];
        let mut fields = Fields::new(self.heap, names);
        let mut segments = Vec::with_capacity(values.len());
        for (number, &value) in values.iter().enumerate() {
            let place = || format!("segments[{number}]");
            let Some(record) = fields.of(self.heap, value) else { return Err(self.no_dict(&place(), value)) };
            let [device, address, size, stream, blocks, expandable] = record.values;
            let numbers = Numbers { snapshot: self, byte: record.byte, place: &place };
            let Some(blocks) = blocks.filter(|&blocks| self.heap.items(blocks).is_some()) else {
                return Err(numbers.error("has no list `blocks`"));
            };
            let piece = Piece {
                address: numbers.needed(address, "address")?,
                size: numbers.needed(size, "total_size")?,
                stream: numbers.or_zero(stream, "stream")?,
                is_mapped: expandable.and_then(|flag| self.heap.integer(flag)) == Some(1),
            };
            let device = numbers.or_zero(device, "device")?;
            if device >= MOST_DEVICES {
                return Err(numbers.error(&format!("has a bad `device`: {device}")));
            }
            segments.push(FinalSegment { device, piece, blocks, byte: record.byte });
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

    fn no_dict(&self, place: &str, value: Value) -> FormatError {
        FormatError::at_byte(
            self.file,
            0,
            format!("{place} is a value of type {}, not a dict", value.type_name()),
        )
    }
}

/// Reads the numbers of a dict.
struct Numbers<'s, 'h> {
    snapshot: &'s Snapshot<'h>,
    byte: u64,
    /// What the dict is called in Python.
    place: &'s dyn Fn() -> String,
}

impl Numbers<'_, '_> {
    fn error(&self, what: &str) -> FormatError {
        FormatError::at_byte(self.snapshot.file, self.byte, format!("{} {what}", (self.place)()))
    }

    fn needed(&self, value: Option<Value>, name: &str) -> Result<u64, FormatError> {
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

    fn or_zero(&self, value: Option<Value>, name: &str) -> Result<u64, FormatError> {
        if value.is_none() { Ok(0) } else { self.needed(value, name) }
    }
}

const EVENT: [&str; 9] =
    ["action", "addr", "size", "stream", "frames", "user_metadata", "time_us", "device_free", "category"];

/// Reads the history and the final blocks of one device.
struct DeviceReader<'s, 'h> {
    snapshot: &'s Snapshot<'h>,
    device: u64,
    events: &'h [Value],
    lives: Lives,
    held: Held,
    stacks: Stacks<'h>,
    annotations: Annotations<'h>,
    failures: Vec<OutOfMemory>,
    unknown: u64,
}

impl<'s, 'h> DeviceReader<'s, 'h> {
    fn new(snapshot: &'s Snapshot<'h>, device: u64) -> Result<Self, FormatError> {
        let history = usize::try_from(device).ok().and_then(|device| snapshot.histories.get(device));
        let events = match history {
            None => &[][..],
            Some(&history) => snapshot.heap.items(history).ok_or_else(|| {
                let type_name = history.type_name();
                let reason = format!("device_traces[{device}] is a value of type {type_name}, not a list");
                FormatError::at_byte(snapshot.file, 0, reason)
            })?,
        };
        Ok(Self {
            snapshot,
            device,
            events,
            lives: Lives::default(),
            held: Held::default(),
            stacks: Stacks::new(snapshot.heap),
            annotations: Annotations::new(snapshot.heap, snapshot.annotations, device),
            failures: Vec::new(),
            unknown: 0,
        })
    }

    fn read(mut self, options: &ReadOptions) -> Result<(Option<Device>, Vec<Dropped>), FormatError> {
        let mut fields = Fields::new(self.snapshot.heap, EVENT);
        for (number, &value) in self.events.iter().enumerate() {
            let Some(record) = fields.of(self.snapshot.heap, value) else {
                return Err(self
                    .snapshot
                    .no_dict(&format!("device_traces[{}][{number}]", self.device), value));
            };
            self.event(number as u64 + 1, &record)?;
        }
        let end = self.events.len() as u64 + 1;
        self.final_blocks(end)?;
        Ok(self.device(end, options))
    }

    /// The event of a step.
    fn event(&mut self, step: u64, record: &Record<9>) -> Result<(), FormatError> {
        let [action, address, size, stream, frames, metadata, time, device_free, category] = record.values;
        let snapshot = self.snapshot;
        let action = action.and_then(|action| snapshot.heap.text(action)).unwrap_or("");
        let device = self.device;
        let place = || format!("device_traces[{device}][{}] ({})", step - 1, clip(action));
        let numbers = Numbers { snapshot, byte: record.byte, place: &place };
        let size = || numbers.needed(size, "size");
        let stream = || numbers.or_zero(stream, "stream");
        let address = || numbers.needed(address, "addr");
        match action {
            "alloc" => {
                let stack = self.stacks.of(frames);
                let named = [metadata, category].into_iter().flatten();
                let said =
                    named.filter_map(|text| snapshot.heap.text(text)).map(clip).find(|text| !text.is_empty());
                let time = time.and_then(|time| snapshot.heap.whole(time)).unwrap_or(0);
                self.lives.alloc(Life {
                    start: step,
                    size: size()?,
                    address: address()?,
                    stream: stream()?,
                    category: said.map(Arc::from).or_else(|| self.annotations.at(time)),
                    stack,
                    ..Life::default()
                });
            }
            "free_requested" => self.lives.request_free(address()?),
            "free_completed" => {
                let (size, address, stream) = (size()?, address()?, stream()?);
                self.lives.free(Life { end: step, size, address, stream, ..Life::default() });
            }
            "segment_alloc" | "segment_free" | "segment_map" | "segment_unmap" => {
                let is_mapped = matches!(action, "segment_map" | "segment_unmap");
                let piece = Piece { address: address()?, size: size()?, stream: stream()?, is_mapped };
                match action {
                    "segment_alloc" | "segment_map" => self.held.take(piece, step),
                    _ => self.held.give_back(piece, step),
                }
            }
            "oom" => {
                let stack = self.stacks.of(frames);
                let device_free =
                    device_free.map(|free| numbers.needed(Some(free), "device_free")).transpose()?;
                let stack = self.stacks.frames_of(stack);
                self.failures.push(OutOfMemory { step, size: size()?, device_free, stack });
            }
            "snapshot" => {}
            "" => return Err(numbers.error("has no `action`")),
            _ => self.unknown += 1,
        }
        Ok(())
    }

    /// Blocks in use at the end.
    fn final_blocks(&mut self, end: u64) -> Result<(), FormatError> {
        let snapshot = self.snapshot;
        let heap = snapshot.heap;
        let names = ["address", "size", "requested_size", "state", "frames"];
        let mut fields = Fields::new(heap, names);
        for (number, segment) in snapshot.segments.iter().enumerate() {
            if segment.device != self.device {
                continue;
            }
            let mut next = segment.piece.address;
            let blocks = heap.items(segment.blocks).unwrap_or_default();
            for (index, &block) in blocks.iter().enumerate() {
                let place = || format!("segments[{number}].blocks[{index}]");
                let Some(record) = fields.of(heap, block) else {
                    return Err(snapshot.no_dict(&place(), block));
                };
                let [address, size, requested, state, frames] = record.values;
                let numbers = Numbers { snapshot, byte: record.byte, place: &place };
                let size = numbers.needed(size, "size")?;
                // Old files have no addresses: blocks follow each other.
                let address = address.map_or(Ok(next), |address| numbers.needed(Some(address), "address"))?;
                next = address.checked_add(size).ok_or_else(|| numbers.error("ends past 2^64 - 1"))?;
                let state = state.and_then(|state| heap.text(state));
                let state = state.ok_or_else(|| numbers.error("has no `state`"))?;
                if state != "inactive" {
                    let requested =
                        requested.map_or(Ok(size), |size| numbers.needed(Some(size), "requested_size"))?;
                    let stack = self.stacks.of(frames);
                    let (stream, size) = (segment.piece.stream, requested);
                    self.lives.in_use(Life { end, size, address, stream, stack, ..Life::default() });
                }
            }
            let last = segment.piece.address.checked_add(segment.piece.size);
            if last.is_none_or(|last| next > last) {
                let reason = format!("segments[{number}]: its blocks are longer than its total_size");
                return Err(FormatError::at_byte(snapshot.file, segment.byte, reason));
            }
        }
        Ok(())
    }

    fn device(self, end: u64, options: &ReadOptions) -> (Option<Device>, Vec<Dropped>) {
        let mine = self.snapshot.segments.iter().filter(|segment| segment.device == self.device);
        let last: Vec<Piece> = mine.map(|segment| segment.piece).collect();
        let (mut lives, mut dropped) = self.lives.finish(end, self.events.len() as u64, !last.is_empty());
        let mut segments = self.held.finish(&last, end);
        if self.unknown > 0 {
            dropped.push(Dropped::new(self.unknown, "events of unknown actions", "they were left out"));
        }
        let mut name = format!("cuda:{}", self.device);
        if let Some(stream) = stream_of(options.part.as_deref(), &name) {
            name = format!("{name}/stream-{stream}");
            lives.retain(|life| life.stream == stream);
            segments.retain(|segment| segment.stream == stream);
        }
        sort(&mut lives);
        let (stacks, failures) = (self.stacks.finish(), self.failures);
        let device = Device { name, lives, segments, stacks, failures };
        ((!device.lives.is_empty()).then_some(device), dropped)
    }
}

/// A device without its pickle.
struct Device {
    name: String,
    lives: Vec<Life>,
    segments: Vec<Segment>,
    stacks: NamedStacks,
    failures: Vec<OutOfMemory>,
}

impl Device {
    fn part(self, file: &str, options: &ReadOptions) -> Result<Part, FormatError> {
        let Self { name, lives, segments, stacks, failures } = self;
        let reserved = (!segments.is_empty()).then(|| peak(&segments).0);
        let mut metadata = vec![
            ("framework", "pytorch".to_owned()),
            ("recorder", "torch.cuda.memory._snapshot".to_owned()),
            ("device", name.clone()),
        ];
        metadata.extend(reserved.map(|bytes| ("torch-reserved-peak-bytes", bytes.to_string())));
        let trace = trace(file, options, &metadata, &lives, |stack| stacks.op(stack))?;
        let blocks = |size: u64| size.checked_next_multiple_of(BLOCK).unwrap_or(size);
        let framework = Framework {
            reserved_peak: reserved.map(Bytes::new),
            placement: lives.iter().map(|life| Some(life.address)).collect(),
            taken: lives.iter().map(|life| blocks(life.size)).collect(),
            stack_of: lives.iter().map(|life| life.stack).collect(),
            streams: lives.iter().map(|life| life.stream).collect(),
            frames: stacks.frames,
            stacks: stacks.all,
            segments,
            failures,
            ..Framework::new("PyTorch")
        };
        Ok(Part { name, trace, framework: Some(framework) })
    }
}

/// The stream of `cuda:0/stream-7`.
fn stream_of(part: Option<&str>, device: &str) -> Option<u64> {
    part?.strip_prefix(device)?.strip_prefix("/stream-")?.parse().ok()
}

/// What the program was at, by time: `Optimizer.step#SGD.step`.
struct Annotations<'h> {
    heap: &'h Heap,
    /// Time, whether it begins, name; in the order of the file, which is that of time.
    marks: Vec<(u64, bool, Value)>,
    next: usize,
    open: Vec<Value>,
    names: FxHashMap<Value, Arc<str>>,
}

impl<'h> Annotations<'h> {
    /// Deeper ones are passed by.
    const DEEPEST: usize = 64;

    fn new(heap: &'h Heap, list: Option<Value>, device: u64) -> Self {
        let items = list.and_then(|list| heap.items(list)).unwrap_or_default();
        let mut fields = Fields::new(heap, ["stage", "name", "device", "time_us"]);
        // They name buffers and no more: one that makes no sense costs no file.
        let mut mark = |&value: &Value| {
            let [stage, name, on, time] = fields.of(heap, value)?.values;
            let begins = match heap.text(stage?)? {
                "START" => true,
                "END" => false,
                _ => return None,
            };
            (heap.whole(on?)? == device).then_some((heap.whole(time?)?, begins, name?))
        };
        let marks = items.iter().filter_map(&mut mark).collect();
        Self { heap, marks, next: 0, open: Vec::new(), names: FxHashMap::default() }
    }

    /// The innermost one at a time, which is not before that of the call before.
    fn at(&mut self, time: u64) -> Option<Arc<str>> {
        while let Some(&(_, begins, name)) = self.marks.get(self.next).filter(|(at, ..)| *at <= time) {
            self.next += 1;
            if begins {
                self.open.push(name);
            } else if let Some(at) = self.open.iter().rev().take(Self::DEEPEST).position(|open| *open == name)
            {
                self.open.truncate(self.open.len() - 1 - at);
            }
        }
        let name = *self.open.last()?;
        let text = self.heap.text(name)?;
        Some(self.names.entry(name).or_insert_with(|| clip(text).into()).clone())
            .filter(|name| !name.is_empty())
    }
}
