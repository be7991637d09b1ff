//! Snapshots of PyTorch's caching allocator: what `torch.cuda.memory._dump_snapshot` writes.
//!
//! A pickle with the segments that the allocator holds at the end and, for each device, the history of its requests
//! since `torch.cuda.memory._record_memory_history`; or the archive that `torch.save` makes of the same. Step `k` of the trace is event `k` of the device's history, from
//! 1; step 0 is before it. A part is a device, `cuda:0`; a stream of it by itself is the part `cuda:0/stream-7`.
//!
//! # References
//!
//! 1. PyTorch, Understanding CUDA Memory Usage, <https://docs.pytorch.org/docs/stable/torch_cuda_memory.html>

mod annotations;
mod archive;
mod blocks;
mod contents;
mod device;
mod frames;
mod numbers;
mod segments;

use self::annotations::{MARK, Marks};
use self::contents::{MOST_DEVICES, Snapshot, TRACES};
use self::device::{Device, DeviceReader};
use crate::formats::error::clip_to_cell;
use crate::formats::import::pickle::{self, Heap, Value, Watch};
use crate::formats::import::{Imported, Input, Reader};
use crate::formats::{FormatError, ReadOptions};

pub(crate) const READER: Reader = Reader {
    key: "torch-snapshot",
    title: "PyTorch's memory snapshot of a GPU (torch.cuda.memory._dump_snapshot, a pickle)",
    endings: &[".pickle"],
    has_lines: false,
    looks_like: |start| matches!(start, [0x80, 2..=5, ..]) || archive::is_archive(start),
    read: read_snapshot,
};

fn read_snapshot(input: Input<'_>, options: &ReadOptions) -> Result<Imported, FormatError> {
    let file = input.file_name().to_owned();
    let mut histories = Histories { file: &file, devices: Vec::new() };
    let limits = input.limits();
    let mut stream = input.into_stream();
    archive::enter_archive(&mut stream).map_err(|reason| FormatError::at_byte(&file, 0, reason))?;
    let (mut heap, root) = pickle::load_pickle(&file, stream, limits, &mut histories)?;
    let mut imported = Imported::default();
    let devices = read_devices(histories, &mut heap, root, &mut imported, options)?;
    // The labels of a long history need the room.
    drop(heap);
    for device in devices {
        imported.parts.push(device.build_part(&file, options)?);
    }
    if imported.parts.is_empty() {
        let reason = match &options.part {
            Some(part) => format!("there is no buffer of the part `{}` in it", clip_to_cell(part)),
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

impl<'f> Histories<'f> {
    /// The reader of a device.
    fn device_reader(&mut self, heap: &mut Heap, device: usize) -> &mut DeviceReader<'f> {
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

    fn take_entries(&mut self, heap: &mut Heap, list: usize, entries: &[Value]) -> Result<(), FormatError> {
        if list as u64 >= MOST_DEVICES {
            let reason = format!("{TRACES} has more than {MOST_DEVICES} devices");
            return Err(FormatError::at_byte(self.file, 0, reason));
        }
        self.device_reader(heap, list).take_events(heap, entries)
    }
}

/// The devices that have buffers; what was left out goes to `imported`.
fn read_devices(
    mut histories: Histories<'_>,
    heap: &mut Heap,
    root: Value,
    imported: &mut Imported,
    options: &ReadOptions,
) -> Result<Vec<Device>, FormatError> {
    let snapshot = Snapshot::new(histories.file, heap, root)?;
    let mut marks = Marks::new(heap, MARK);
    let mut devices = Vec::new();
    for number in 0..snapshot.device_count() {
        histories.device_reader(heap, number);
        // What was not taken while the pickle was read.
        let rest = snapshot.rest_of(histories.file, heap, number)?;
        histories.devices[number].take_events(heap, &rest)?;
    }
    for reader in histories.devices {
        let (device, dropped) = reader.finish_device(heap, &snapshot, &mut marks, options)?;
        if let Some(device) = device {
            devices.push(device);
            imported.dropped.extend(dropped);
        }
    }
    imported.dropped.extend(snapshot.left_out());
    Ok(devices)
}

#[cfg(test)]
#[path = "../../../../../examples/large_snapshot/pickle.rs"]
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
            pickle::load_pickle("large", &bytes[..], InputLimits::default(), &mut histories).expect("valid");
        assert_eq!(histories.devices[0].events, events);
        (bytes.len() as u64, heap.room_bytes() as u64)
    }

    #[test]
    fn events_are_not_held() {
        let (few, many) = (room(3_000), room(30_000));
        let (file, held) = (many.0 - few.0, many.1 - few.1);
        assert!(2 * held < file, "{held} bytes for {file} of the file");
    }
}
