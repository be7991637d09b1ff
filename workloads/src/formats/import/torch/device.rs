//! The history and the final blocks of one device of a snapshot.

use std::sync::Arc;

use planlab_dsa::Bytes;
use rustc_hash::FxHashMap;

use super::super::super::{FormatError, ReadOptions};
use super::super::pickle::{Fields, Heap, Record, Value};
use super::super::{Dropped, Framework, OutOfMemory, Part, Segment};
use super::annotations::{Annotations, Marks};
use super::frames::{NamedStacks, Stacks, clip};
use super::lives::Lives;
use super::segments::{Held, Piece, peak};
use super::snapshot::{Numbers, Snapshot, no_dict};
use super::{Life, sort, trace};

/// PyTorch gives out memory in blocks that are multiples of this many bytes.
const BLOCK: u64 = 512;

const EVENT: [&str; 9] =
    ["action", "addr", "size", "stream", "frames", "user_metadata", "time_us", "device_free", "category"];

/// Call stacks of failures that are kept: those of the last.
const MOST_STACKS: usize = 1000;

/// Reads the history and the final blocks of one device.
pub(super) struct DeviceReader<'f> {
    file: &'f str,
    device: u64,
    fields: Fields<9>,
    /// Events so far.
    events: u64,
    lives: Lives,
    held: Held,
    stacks: Stacks,
    /// Categories that buffers say of themselves.
    said: FxHashMap<Value, Option<Arc<str>>>,
    failures: Vec<(OutOfMemory, Option<u32>)>,
    unknown: u64,
}

impl<'f> DeviceReader<'f> {
    pub(super) fn new(file: &'f str, heap: &mut Heap, device: u64) -> Self {
        Self {
            file,
            device,
            fields: Fields::new(heap, EVENT),
            events: 0,
            lives: Lives::default(),
            held: Held::default(),
            stacks: Stacks::new(heap),
            said: FxHashMap::default(),
            failures: Vec::new(),
            unknown: 0,
        }
    }

    /// Events so far.
    #[cfg(test)]
    pub(super) const fn count(&self) -> u64 {
        self.events
    }

    /// Takes the next events of the history.
    pub(super) fn events(&mut self, heap: &mut Heap, events: &[Value]) -> Result<(), FormatError> {
        for &event in events {
            let Some(record) = self.fields.take(heap, event) else {
                let place = format!("device_traces[{}][{}]", self.device, self.events);
                return Err(no_dict(self.file, heap, &place, event));
            };
            self.events += 1;
            self.event(heap, self.events, &record)?;
        }
        Ok(())
    }

    /// What the history and the final blocks say.
    pub(super) fn finish(
        mut self,
        heap: &mut Heap,
        snapshot: &Snapshot,
        marks: &mut Marks,
        options: &ReadOptions,
    ) -> Result<(Option<Device>, Vec<Dropped>), FormatError> {
        let end = self.events + 1;
        self.final_blocks(heap, snapshot, end)?;
        let mut annotations = Annotations::new(heap, marks, snapshot.annotations, self.device);
        self.lives.name(|life| annotations.at(life.time));
        Ok(self.device(snapshot, end, options))
    }

    /// What a buffer is for, where its event says so.
    fn said(&mut self, heap: &Heap, texts: [Option<Value>; 2]) -> Option<Arc<str>> {
        texts.into_iter().flatten().find_map(|value| {
            let text = heap.text(value)?;
            let clipped = || Some(clip(text)).filter(|text| !text.is_empty()).map(Arc::from);
            self.said.entry(value).or_insert_with(clipped).clone()
        })
    }

    /// The event of a step.
    fn event(&mut self, heap: &Heap, step: u64, record: &Record<9>) -> Result<(), FormatError> {
        let [action, address, size, stream, frames, metadata, time, device_free, category] = record.values;
        let action = action.and_then(|action| heap.text(action)).unwrap_or("");
        let device = self.device;
        let place = || format!("device_traces[{device}][{}] ({})", step - 1, clip(action));
        let numbers = Numbers { file: self.file, heap, byte: record.byte, place: &place };
        let size = || numbers.needed(size, "size");
        let stream = || numbers.or_zero(stream, "stream");
        let address = || numbers.needed(address, "addr");
        match action {
            "alloc" => {
                let category = self.said(heap, [metadata, category]);
                self.lives.alloc(Life {
                    start: step,
                    size: size()?,
                    address: address()?,
                    stream: stream()?,
                    time: time.and_then(|time| heap.whole(time)).unwrap_or(0),
                    category,
                    stack: self.stacks.of(heap, frames),
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
                let device_free =
                    device_free.map(|free| numbers.needed(Some(free), "device_free")).transpose()?;
                let failure = OutOfMemory { step, size: size()?, device_free, stack: Vec::new() };
                self.failures.push((failure, self.stacks.of(heap, frames)));
            }
            "snapshot" => {}
            "" => return Err(numbers.error("has no `action`")),
            _ => self.unknown += 1,
        }
        Ok(())
    }

    /// Blocks in use at the end.
    fn final_blocks(&mut self, heap: &mut Heap, snapshot: &Snapshot, end: u64) -> Result<(), FormatError> {
        let names = ["address", "size", "requested_size", "state", "frames"];
        let mut fields = Fields::new(heap, names);
        for (number, segment) in snapshot.segments.iter().enumerate() {
            if segment.device != self.device {
                continue;
            }
            let mut next = segment.piece.address;
            let blocks = heap.items(segment.blocks).unwrap_or_default().to_vec();
            for (index, &block) in blocks.iter().enumerate() {
                let place = || format!("segments[{number}].blocks[{index}]");
                let Some(record) = fields.take(heap, block) else {
                    return Err(no_dict(self.file, heap, &place(), block));
                };
                let [address, size, requested, state, frames] = record.values;
                let numbers = Numbers { file: self.file, heap, byte: record.byte, place: &place };
                let size = numbers.needed(size, "size")?;
                // Old files have no addresses: blocks follow each other.
                let address = address.map_or(Ok(next), |address| numbers.needed(Some(address), "address"))?;
                next = address.checked_add(size).ok_or_else(|| numbers.error("ends past 2^64 - 1"))?;
                let state = state.and_then(|state| heap.text(state));
                let state = state.ok_or_else(|| numbers.error("has no `state`"))?;
                if state != "inactive" {
                    let requested =
                        requested.map_or(Ok(size), |size| numbers.needed(Some(size), "requested_size"))?;
                    let stack = self.stacks.of(heap, frames);
                    let (stream, size) = (segment.piece.stream, requested);
                    self.lives.in_use(Life { end, size, address, stream, stack, ..Life::default() });
                }
            }
            let last = segment.piece.address.checked_add(segment.piece.size);
            if last.is_none_or(|last| next > last) {
                let reason = format!("segments[{number}]: its blocks are longer than its total_size");
                return Err(FormatError::at_byte(self.file, segment.byte, reason));
            }
        }
        Ok(())
    }

    fn device(self, snapshot: &Snapshot, end: u64, options: &ReadOptions) -> (Option<Device>, Vec<Dropped>) {
        let mine = snapshot.segments.iter().filter(|segment| segment.device == self.device);
        let last: Vec<Piece> = mine.map(|segment| segment.piece).collect();
        let (mut lives, mut dropped) = self.lives.finish(end, self.events, !last.is_empty());
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
        let stacks = self.stacks.finish();
        let without = self.failures.len().saturating_sub(MOST_STACKS);
        let failures = self.failures.into_iter().enumerate().map(|(number, (failure, stack))| {
            let stack = if number < without { Vec::new() } else { stacks.texts(stack) };
            OutOfMemory { stack, ..failure }
        });
        let failures = failures.collect();
        let device = Device { name, lives, segments, stacks, failures };
        ((!device.lives.is_empty()).then_some(device), dropped)
    }
}

/// A device without its pickle.
pub(super) struct Device {
    name: String,
    lives: Vec<Life>,
    segments: Vec<Segment>,
    stacks: NamedStacks,
    failures: Vec<OutOfMemory>,
}

impl Device {
    pub(super) fn part(self, file: &str, options: &ReadOptions) -> Result<Part, FormatError> {
        let Self { name, lives, segments, stacks, failures } = self;
        let reserved = (!segments.is_empty()).then(|| peak(&segments).0);
        let mut metadata = vec![
            ("framework", "pytorch".to_owned()),
            ("recorder", "torch.cuda.memory._snapshot".to_owned()),
            ("device", name.clone()),
        ];
        metadata.extend(reserved.map(|bytes| ("torch-reserved-peak-bytes", bytes.to_string())));
        let blocks = |size: u64| size.checked_next_multiple_of(BLOCK).unwrap_or(size);
        let placement = lives.iter().map(|life| Some(life.address)).collect();
        let taken = lives.iter().map(|life| blocks(life.size)).collect();
        let stack_of = lives.iter().map(|life| life.stack).collect();
        let streams = lives.iter().map(|life| life.stream).collect();
        let trace = trace(file, options, &metadata, lives, |stack| stacks.op(stack))?;
        let framework = Framework {
            reserved_peak: reserved.map(Bytes::new),
            placement,
            taken,
            stack_of,
            streams,
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
