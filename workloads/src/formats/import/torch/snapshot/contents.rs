//! What a snapshot has beside the events: the segments at the end, annotations, settings.

use super::blocks::Rules;
use super::numbers::{Numbers, no_dict, pool_of};
use super::segments::Piece;
use crate::formats::FormatError;
use crate::formats::import::Dropped;
use crate::formats::import::pickle::{Fields, Heap, Value};

/// PyTorch counts devices in 7 bits.
pub(crate) const MOST_DEVICES: u64 = 128;

pub(crate) const TRACES: &str = "device_traces";

/// The top of the pickle, but for the events.
pub(crate) struct Snapshot {
    histories: Vec<Value>,
    pub(crate) segments: Vec<FinalSegment>,
    pub(crate) annotations: Option<Value>,
    pub(crate) rules: Rules,
    host_events: u64,
}

/// A segment that the allocator holds at the end.
pub(crate) struct FinalSegment {
    pub(crate) device: u64,
    pub(crate) piece: Piece,
    pub(crate) blocks: Value,
    /// Bytes of blocks in use, and of the requests in them, as the allocator counts them.
    pub(crate) active: Option<u64>,
    pub(crate) requested: Option<u64>,
    /// For errors.
    pub(crate) byte: u64,
}

impl Snapshot {
    pub(crate) fn new(file: &str, heap: &mut Heap, root: Value) -> Result<Self, FormatError> {
        let names = [TRACES, "segments", "external_annotations", "host_traces", "allocator_settings"];
        let Some(top) = Fields::new(heap, names).read_record(heap, root) else {
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
        let rules = Rules::read_settings(heap, settings);
        Ok(Self { histories, segments, annotations, rules, host_events })
    }

    /// One more than the highest device.
    pub(crate) fn device_count(&self) -> usize {
        let named = self.segments.iter().filter_map(|segment| usize::try_from(segment.device + 1).ok());
        named.max().unwrap_or(0).max(self.histories.len())
    }

    /// The events of a device that are still in the heap.
    pub(crate) fn rest_of(&self, file: &str, heap: &Heap, device: usize) -> Result<Vec<Value>, FormatError> {
        let Some(&history) = self.histories.get(device) else { return Ok(Vec::new()) };
        heap.items(history).map(<[Value]>::to_vec).ok_or_else(|| {
            let reason = format!("{TRACES}[{device}] is a value of type {}, not a list", history.type_name());
            FormatError::at_byte(file, 0, reason)
        })
    }

    pub(crate) fn left_out(&self) -> Option<Dropped> {
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
        let record = fields.take_record(heap, value).ok_or_else(|| no_dict(file, heap, &place(), value))?;
        let [device, address, size, stream, blocks, expandable, pool, active, requested] = record.values;
        let numbers = Numbers { file, heap, byte: record.byte, place: &place };
        let Some(blocks) = blocks.filter(|&blocks| heap.items(blocks).is_some()) else {
            return Err(numbers.missing_error("has no list `blocks`"));
        };
        let piece = Piece {
            address: numbers.required_number(address, "address")?,
            size: numbers.required_number(size, "total_size")?,
            stream: numbers.or_zero(stream, "stream")?,
            pool: pool_of(heap, pool),
            is_mapped: expandable.and_then(|flag| heap.integer(flag)) == Some(1),
        };
        let device = numbers.or_zero(device, "device")?;
        if device >= MOST_DEVICES {
            return Err(numbers.missing_error(&format!("has a bad `device`: {device}")));
        }
        let count = |value: Option<Value>| heap.whole(value?);
        let (active, requested) = (count(active), count(requested));
        segments.push(FinalSegment { device, piece, blocks, active, requested, byte: record.byte });
    }
    Ok(segments)
}
