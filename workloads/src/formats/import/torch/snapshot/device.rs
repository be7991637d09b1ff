//! The history and the final blocks of one device of a snapshot.

use std::sync::Arc;

use planlab_dsa::Bytes;
use rustc_hash::FxHashMap;

use super::annotations::{Annotations, Marks};
use super::blocks::{self, Rules};
use super::contents::{FinalSegment, Snapshot};
use super::frames::{NamedStacks, Stacks};
use super::numbers::{Numbers, no_dict, pool_of};
use super::segments::{Held, Piece, most_at_once, reserved_peak};
use crate::formats::error::clip_to_cell;
use crate::formats::import::pickle::{Fields, Heap, Record, Value};
use crate::formats::import::torch::life::{BLOCK, Life, sort, trace};
use crate::formats::import::torch::lives::Lives;
use crate::formats::import::{Count, Dropped, Framework, OutOfMemory, Part, Segment};
use crate::formats::{FormatError, ReadOptions};

const EVENT: [&str; 10] = [
    "action",
    "addr",
    "size",
    "stream",
    "frames",
    "user_metadata",
    "time_us",
    "device_free",
    "category",
    "pool_id",
];

/// Call stacks of failures that are kept: those of the last.
const MOST_STACKS: usize = 1000;

/// Reads the history and the final blocks of one device.
pub(crate) struct DeviceReader<'f> {
    file: &'f str,
    device: u64,
    fields: Fields<10>,
    /// Events so far.
    pub(crate) events: u64,
    lives: Lives,
    held: Held,
    stacks: Stacks,
    /// Categories that buffers say of themselves.
    said: FxHashMap<Value, Option<Arc<str>>>,
    failures: Vec<(OutOfMemory, Option<u32>)>,
    /// Step and bytes of the last event of a snapshot being made.
    counted: Option<(u64, u64)>,
    unknown: u64,
}

impl<'f> DeviceReader<'f> {
    pub(crate) fn new(file: &'f str, heap: &mut Heap, device: u64) -> Self {
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
            counted: None,
            unknown: 0,
        }
    }

    /// Takes the next events of the history.
    pub(crate) fn take_events(&mut self, heap: &mut Heap, events: &[Value]) -> Result<(), FormatError> {
        for &event in events {
            let Some(record) = self.fields.take_record(heap, event) else {
                let place = format!("device_traces[{}][{}]", self.device, self.events);
                return Err(no_dict(self.file, heap, &place, event));
            };
            self.events += 1;
            self.take_event(heap, self.events, &record)?;
        }
        Ok(())
    }

    /// What the history and the final blocks say.
    pub(crate) fn finish_device(
        mut self,
        heap: &mut Heap,
        snapshot: &Snapshot,
        marks: &mut Marks,
        options: &ReadOptions,
    ) -> Result<(Option<Device>, Vec<Dropped>), FormatError> {
        let end = self.events + 1;
        self.final_blocks(heap, snapshot, end)?;
        let mut annotations = Annotations::new(heap, marks, snapshot.annotations, self.device);
        self.lives.name_categories(|life| annotations.innermost_at(life.time));
        Ok(self.build_device(snapshot, end, options))
    }

    /// What a buffer is for, where its event says so.
    fn declared_category(&mut self, heap: &Heap, texts: [Option<Value>; 2]) -> Option<Arc<str>> {
        texts.into_iter().flatten().find_map(|value| {
            let text = heap.text(value)?;
            let clipped = || Some(clip_to_cell(text)).filter(|text| !text.is_empty()).map(Arc::from);
            self.said.entry(value).or_insert_with(clipped).clone()
        })
    }

    /// The event of a step.
    fn take_event(&mut self, heap: &Heap, step: u64, record: &Record<10>) -> Result<(), FormatError> {
        let [action, address, size, stream, frames, metadata, time, device_free, category, pool] =
            record.values;
        let action = action.and_then(|action| heap.text(action)).unwrap_or("");
        let device = self.device;
        let place = || format!("device_traces[{device}][{}] ({})", step - 1, clip_to_cell(action));
        let numbers = Numbers { file: self.file, heap, byte: record.byte, place: &place };
        let size = || numbers.required_number(size, "size");
        let stream = || numbers.or_zero(stream, "stream");
        let address = || numbers.required_number(address, "addr");
        match action {
            "alloc" => {
                let category = self.declared_category(heap, [metadata, category]);
                self.lives.begin_buffer(Life {
                    start: step,
                    size: size()?,
                    address: address()?,
                    stream: stream()?,
                    time: time.and_then(|time| heap.whole(time)).unwrap_or(0),
                    category,
                    stack: self.stacks.stack_number(heap, frames),
                    ..Life::default()
                });
            }
            "free_requested" => self.lives.request_free(address()?),
            "free_completed" => {
                let (size, address, stream) = (size()?, address()?, stream()?);
                self.lives.end_buffer(Life { end: step, size, address, stream, ..Life::default() });
            }
            "segment_alloc" | "segment_free" | "segment_map" | "segment_unmap" => {
                let is_mapped = matches!(action, "segment_map" | "segment_unmap");
                let pool = pool_of(heap, pool);
                let piece = Piece { address: address()?, size: size()?, stream: stream()?, pool, is_mapped };
                match action {
                    "segment_alloc" | "segment_map" => self.held.take_piece(piece, step),
                    _ => self.held.give_back(piece, step),
                }
            }
            "oom" => {
                let device_free =
                    device_free.map(|free| numbers.required_number(Some(free), "device_free")).transpose()?;
                let (size, stream, stack) = (size()?, stream()?, Vec::new());
                // The settings, which say what the device is asked for, come after the events.
                let failure = OutOfMemory { step, size, asked_of_device: None, device_free, stream, stack };
                self.failures.push((failure, self.stacks.stack_number(heap, frames)));
            }
            "snapshot" => self.counted = Some((step, size()?)),
            "" => return Err(numbers.missing_error("has no `action`")),
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
                let Some(record) = fields.take_record(heap, block) else {
                    return Err(no_dict(self.file, heap, &place(), block));
                };
                let [address, size, requested, state, frames] = record.values;
                let numbers = Numbers { file: self.file, heap, byte: record.byte, place: &place };
                let size = numbers.required_number(size, "size")?;
                // Old files have no addresses: blocks follow each other.
                let address =
                    address.map_or(Ok(next), |address| numbers.required_number(Some(address), "address"))?;
                next =
                    address.checked_add(size).ok_or_else(|| numbers.missing_error("ends past 2^64 - 1"))?;
                let state = state.and_then(|state| heap.text(state));
                let state = state.ok_or_else(|| numbers.missing_error("has no `state`"))?;
                if state != "inactive" {
                    let requested = requested
                        .map_or(Ok(size), |size| numbers.required_number(Some(size), "requested_size"))?;
                    let stack = self.stacks.stack_number(heap, frames);
                    let (stream, block, size) = (segment.piece.stream, size, requested);
                    self.lives.in_use(Life { end, size, address, block, stream, stack, ..Life::default() });
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

    fn build_device(
        self,
        snapshot: &Snapshot,
        end: u64,
        options: &ReadOptions,
    ) -> (Option<Device>, Vec<Dropped>) {
        let mine = snapshot.segments.iter().filter(|segment| segment.device == self.device);
        let mut last: Vec<&FinalSegment> = mine.collect();
        let pieces: Vec<Piece> = last.iter().map(|segment| segment.piece).collect();
        let (mut lives, mut dropped) = self.lives.finish_lives(end, self.events, !last.is_empty());
        let mut segments = self.held.finish_segments(&pieces, end);
        blocks::fill_blocks(&mut lives, &segments, &snapshot.rules);
        dropped.extend(Dropped::from_count(self.unknown, "events of unknown actions", "they were left out"));
        dropped.extend(self.stacks.left_out());
        let (mut failures, mut counted) = (self.failures, self.counted);
        let mut name = format!("cuda:{}", self.device);
        if let Some(stream) = stream_of(options.part.as_deref(), &name) {
            name = format!("{name}/stream-{stream}");
            lives.retain(|life| life.stream == stream);
            segments.retain(|segment| segment.stream == stream);
            last.retain(|segment| segment.piece.stream == stream);
            failures.retain(|(failure, _)| failure.stream == stream);
            counted = None;
        }
        sort(&mut lives);
        let counts = allocator_counts(&lives, end, &last, counted);
        let (stacks, rules) = (self.stacks.found, snapshot.rules.clone());
        let without = failures.len().saturating_sub(MOST_STACKS);
        let failures = failures.into_iter().enumerate().map(|(number, (failure, stack))| {
            let stack = if number < without { Vec::new() } else { stacks.stack_frames(stack) };
            let asked_of_device = rules.asked_of_device(failure.size);
            OutOfMemory { stack, asked_of_device, ..failure }
        });
        let failures = failures.collect();
        let device = Device { name, lives, segments, stacks, failures, counts, rules };
        ((!device.lives.is_empty()).then_some(device), dropped)
    }
}

/// A device without its pickle.
pub(crate) struct Device {
    name: String,
    lives: Vec<Life>,
    segments: Vec<Segment>,
    stacks: NamedStacks,
    failures: Vec<OutOfMemory>,
    counts: Vec<Count>,
    rules: Rules,
}

impl Device {
    pub(crate) fn build_part(self, file: &str, options: &ReadOptions) -> Result<Part, FormatError> {
        let Self { name, lives, segments, stacks, failures, counts, rules } = self;
        let reserved = (!segments.is_empty()).then(|| reserved_peak(&segments));
        let allocated = most_at_once(lives.iter().map(|life| ((life.start, life.end), life.block)));
        let tail = |life: &Life| life.block.saturating_sub(rules.round_request(life.size));
        let placement = lives.iter().map(|life| Some(life.address)).collect();
        let taken = lives.iter().map(|life| life.block).collect();
        let tails = lives.iter().map(tail).collect();
        let stack_of = lives.iter().map(|life| life.stack).collect();
        let streams = lives.iter().map(|life| life.stream).collect();
        let of = ("torch.cuda.memory._snapshot", name.as_str(), reserved);
        let trace = trace(file, options, of, (lives, BLOCK), |stack| stacks.naming_frame(stack))?;
        let framework = Framework {
            reserved_peak: reserved.map(Bytes::new),
            placement,
            allocated_peak: Some(Bytes::new(allocated)),
            taken,
            tails,
            counts,
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

/// What the allocator counted itself: in its final segments, and when it made the snapshot.
fn allocator_counts(
    lives: &[Life],
    end: u64,
    last: &[&FinalSegment],
    counted: Option<(u64, u64)>,
) -> Vec<Count> {
    let sum = |of: fn(&FinalSegment) -> Option<u64>| -> Option<u64> {
        last.iter().map(|segment| of(segment)).try_fold(0_u64, |sum, bytes| sum.checked_add(bytes?))
    };
    let at = |step: u64, of: fn(&Life) -> u64| {
        let live = lives.iter().filter(|life| (life.start..life.end).contains(&step));
        live.map(of).fold(0, u64::saturating_add)
    };
    let (block, size) = (|life: &Life| life.block, |life: &Life| life.size);
    let none = last.is_empty();
    let blocks = sum(|segment| segment.active).filter(|_| !none);
    let requested = sum(|segment| segment.requested).filter(|_| !none);
    let all = [
        ("blocks in use at the end", blocks, at(end - 1, block)),
        ("bytes asked for that are in use at the end", requested, at(end - 1, size)),
        (
            "blocks in use when the snapshot was made",
            counted.map(|(_, bytes)| bytes),
            counted.map_or(0, |(step, _)| at(step, block)),
        ),
    ];
    all.into_iter().filter_map(|(what, theirs, ours)| Some(Count { what, theirs: theirs?, ours })).collect()
}

/// The stream of `cuda:0/stream-7`.
fn stream_of(part: Option<&str>, device: &str) -> Option<u64> {
    part?.strip_prefix(device)?.strip_prefix("/stream-")?.parse().ok()
}
