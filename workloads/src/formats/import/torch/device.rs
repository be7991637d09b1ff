//! The history and the final blocks of one device of a snapshot.

use std::sync::Arc;

use planlab_dsa::Bytes;

use super::super::super::{FormatError, ReadOptions};
use super::super::pickle::{Fields, Record, Value};
use super::super::{Count, Dropped, Framework, OutOfMemory, Part, Segment};
use super::annotations::Annotations;
use super::blocks::{self, BLOCK, Rules};
use super::frames::{NamedStacks, Stacks, clip};
use super::lives::Lives;
use super::segments::{Held, Piece, most, peak};
use super::snapshot::{FinalSegment, Numbers, Snapshot, pool_of};
use super::{Life, sort, trace};

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

/// Reads the history and the final blocks of one device.
pub(super) struct DeviceReader<'s, 'h> {
    snapshot: &'s Snapshot<'h>,
    device: u64,
    events: &'h [Value],
    lives: Lives,
    held: Held,
    stacks: Stacks<'h>,
    annotations: Annotations<'h>,
    failures: Vec<OutOfMemory>,
    /// Step and bytes of the last event of a snapshot being made.
    counted: Option<(u64, u64)>,
    unknown: u64,
}

impl<'s, 'h> DeviceReader<'s, 'h> {
    pub(super) fn new(snapshot: &'s Snapshot<'h>, device: u64) -> Result<Self, FormatError> {
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
            counted: None,
            unknown: 0,
        })
    }

    pub(super) fn read(
        mut self,
        options: &ReadOptions,
    ) -> Result<(Option<Device>, Vec<Dropped>), FormatError> {
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
    fn event(&mut self, step: u64, record: &Record<10>) -> Result<(), FormatError> {
        let [action, address, size, stream, frames, metadata, time, device_free, category, pool] =
            record.values;
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
                let pool = pool_of(snapshot.heap, pool);
                let piece = Piece { address: address()?, size: size()?, stream: stream()?, pool, is_mapped };
                match action {
                    "segment_alloc" | "segment_map" => self.held.take(piece, step),
                    _ => self.held.give_back(piece, step),
                }
            }
            "oom" => {
                let stack = self.stacks.of(frames);
                let device_free =
                    device_free.map(|free| numbers.needed(Some(free), "device_free")).transpose()?;
                let (size, stream, stack) = (size()?, stream()?, self.stacks.frames_of(stack));
                let asked_of_device = snapshot.rules.asked_of_device(size);
                let failure = OutOfMemory { step, size, asked_of_device, device_free, stream, stack };
                self.failures.push(failure);
            }
            "snapshot" => self.counted = Some((step, size()?)),
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
                    let (stream, block, size) = (segment.piece.stream, size, requested);
                    self.lives.in_use(Life { end, size, address, block, stream, stack, ..Life::default() });
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
        let mut last: Vec<&FinalSegment> = mine.collect();
        let pieces: Vec<Piece> = last.iter().map(|segment| segment.piece).collect();
        let (mut lives, mut dropped) = self.lives.finish(end, self.events.len() as u64, !last.is_empty());
        let mut segments = self.held.finish(&pieces, end);
        blocks::fill(&mut lives, &segments, &self.snapshot.rules);
        if self.unknown > 0 {
            dropped.push(Dropped::new(self.unknown, "events of unknown actions", "they were left out"));
        }
        let (mut failures, mut counted) = (self.failures, self.counted);
        let mut name = format!("cuda:{}", self.device);
        if let Some(stream) = stream_of(options.part.as_deref(), &name) {
            name = format!("{name}/stream-{stream}");
            lives.retain(|life| life.stream == stream);
            segments.retain(|segment| segment.stream == stream);
            last.retain(|segment| segment.piece.stream == stream);
            failures.retain(|failure| failure.stream == stream);
            counted = None;
        }
        sort(&mut lives);
        let counts = counts(&lives, end, &last, counted);
        let (stacks, rules) = (self.stacks.finish(), self.snapshot.rules.clone());
        let device = Device { name, lives, segments, stacks, failures, counts, rules };
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
    counts: Vec<Count>,
    rules: Rules,
}

impl Device {
    pub(super) fn part(self, file: &str, options: &ReadOptions) -> Result<Part, FormatError> {
        let Self { name, lives, segments, stacks, failures, counts, rules } = self;
        let reserved = (!segments.is_empty()).then(|| peak(&segments).0);
        let mut metadata = vec![
            ("framework", "pytorch".to_owned()),
            ("recorder", "torch.cuda.memory._snapshot".to_owned()),
            ("device", name.clone()),
        ];
        metadata.extend(reserved.map(|bytes| ("torch-reserved-peak-bytes", bytes.to_string())));
        let trace = trace(file, options, &metadata, (&lives, BLOCK), |stack| stacks.op(stack))?;
        let allocated = most(lives.iter().map(|life| ((life.start, life.end), life.block))).0;
        let tail = |life: &Life| life.block.saturating_sub(rules.rounded(life.size));
        let framework = Framework {
            reserved_peak: reserved.map(Bytes::new),
            placement: lives.iter().map(|life| Some(life.address)).collect(),
            allocated_peak: Some(Bytes::new(allocated)),
            taken: lives.iter().map(|life| life.block).collect(),
            tails: lives.iter().map(tail).collect(),
            counts,
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

/// What the allocator counted itself: in its final segments, and when it made the snapshot.
fn counts(lives: &[Life], end: u64, last: &[&FinalSegment], counted: Option<(u64, u64)>) -> Vec<Count> {
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
