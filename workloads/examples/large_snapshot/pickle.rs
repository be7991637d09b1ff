//! A generated snapshot of PyTorch's allocator of any length, written while it is read: the pickle that
//! `torch.cuda.memory._dump_snapshot` makes of a training loop that allocates and frees 2000 buffers.

use std::io::{self, Read};

/// Buffers that are live at once.
const LIVE: u64 = 2000;
/// Call stacks of the loop, and frames that they are made of.
const STACKS: u64 = 225;
const FRAMES: u64 = 85;
/// Blocks of the segment that is held at the end. They push the later memo entries past 255, as in real snapshots.
const BLOCKS: u64 = 300;
/// Entries that a pickler puts into a list at once.
const BATCH: u64 = 1000;

/// A snapshot with a given number of events.
pub(crate) struct LargeSnapshot {
    events: u64,
    written: u64,
    /// Numbers of the memo: the next, and those of texts and frames.
    memo: u32,
    texts: Vec<(&'static str, u32)>,
    frames: Vec<Option<u32>>,
    buffer: Vec<u8>,
    read: usize,
    is_done: bool,
}

impl LargeSnapshot {
    /// A snapshot with `events` events; a third of them are allocations.
    #[must_use]
    pub(crate) fn new(events: u64) -> Self {
        let mut snapshot = Self {
            events,
            written: 0,
            memo: 0,
            texts: Vec::new(),
            frames: (0..FRAMES).map(|_| None).collect(),
            buffer: b"\x80\x04".to_vec(),
            read: 0,
            is_done: false,
        };
        snapshot.open_dict(&[]);
        snapshot.text("segments");
        snapshot.segments();
        snapshot.text("device_traces");
        snapshot.open(b']');
        snapshot.open(b']');
        snapshot
    }

    /// Writes one segment, with blocks that nothing frees.
    fn segments(&mut self) {
        self.open(b']');
        self.open_dict(&[("address", 1 << 46), ("total_size", BLOCKS << 20)]);
        self.text("blocks");
        self.open(b']');
        self.buffer.push(b'(');
        for block in 0..BLOCKS {
            self.open_dict(&[("address", 1 << 46 | block << 20), ("size", 1 << 20)]);
            self.text("state");
            self.text("active_allocated");
            self.buffer.push(b'u');
        }
        self.buffer.extend(b"eua");
    }

    /// Begins an empty container, which the memo gets.
    fn open(&mut self, opcode: u8) {
        self.buffer.extend([opcode, 0x94]);
        self.memo += 1;
    }

    /// Begins a dict, whose first entries are numbers.
    fn open_dict(&mut self, numbers: &[(&'static str, u64)]) {
        self.open(b'}');
        self.buffer.push(b'(');
        for &(key, number) in numbers {
            self.text(key);
            self.whole(number);
        }
    }

    fn get(&mut self, entry: u32) {
        match u8::try_from(entry) {
            Ok(entry) => self.buffer.extend([b'h', entry]),
            Err(_) => {
                self.buffer.push(b'j');
                self.buffer.extend(entry.to_le_bytes());
            }
        }
    }

    fn text(&mut self, text: &'static str) {
        if let Some(&(_, entry)) = self.texts.iter().find(|(known, _)| *known == text) {
            return self.get(entry);
        }
        self.texts.push((text, self.memo));
        self.new_text(text);
    }

    fn new_text(&mut self, text: &str) {
        self.buffer.extend([0x8c, u8::try_from(text.len()).expect("short")]);
        self.buffer.extend(text.as_bytes());
        self.buffer.push(0x94);
        self.memo += 1;
    }

    fn whole(&mut self, number: u64) {
        match u32::try_from(number) {
            Ok(small @ 0..=255) => self.buffer.extend([b'K', small.to_le_bytes()[0]]),
            Ok(middle) if i32::try_from(middle).is_ok() => {
                self.buffer.push(b'J');
                self.buffer.extend(middle.to_le_bytes());
            }
            _ => {
                self.buffer.extend([0x8a, 8]);
                self.buffer.extend(number.to_le_bytes());
            }
        }
    }

    /// Allocations of one round, and the frees of the round before.
    fn event(&mut self, number: u64) {
        let (of, action) = (number / 3, ["alloc", "free_requested", "free_completed"][(number % 3) as usize]);
        // The first frees are of buffers from before the recording.
        let buffer = if number.is_multiple_of(3) { of } else { (of + 1) % LIVE };
        self.open_dict(&[
            ("addr", 1 << 45 | (buffer % LIVE) << 21),
            ("size", 512 * (1 + buffer * buffer % 4001)),
            ("stream", 0),
            ("time_us", (1 << 50) + number),
        ]);
        self.text("action");
        self.text(action);
        self.text("compile_context");
        self.text("N/A");
        self.text("user_metadata");
        self.text("");
        self.text("pool_id");
        self.buffer.extend(b"K\0K\0\x86\x94");
        self.memo += 1;
        self.text("frames");
        self.open(b']');
        if number.is_multiple_of(3) {
            self.stack(of % STACKS);
        }
        self.buffer.push(b'u');
    }

    /// Writes the frames of a call stack.
    fn stack(&mut self, stack: u64) {
        self.buffer.push(b'(');
        for depth in 0..7 {
            let frame = (stack * (depth + 1) + depth) % FRAMES;
            match self.frames[frame as usize] {
                Some(entry) => self.get(entry),
                None => {
                    self.frames[frame as usize] = Some(self.memo);
                    self.open_dict(&[]);
                    self.text("name");
                    self.new_text(&format!("forward_{frame}"));
                    self.text("filename");
                    self.text("/home/me/project/model.py");
                    self.text("line");
                    self.whole(frame);
                    self.buffer.push(b'u');
                }
            }
        }
        self.buffer.push(b'e');
    }

    /// Writes on.
    fn fill(&mut self) {
        self.buffer.clear();
        self.read = 0;
        if self.written < self.events {
            self.buffer.push(b'(');
            let end = self.events.min(self.written + BATCH);
            (self.written..end).for_each(|number| self.event(number));
            self.written = end;
            self.buffer.push(b'e');
        } else if !self.is_done {
            // The list of lists has one entry, and the dict several.
            self.buffer.extend(b"au.");
            self.is_done = true;
        }
    }
}

impl Read for LargeSnapshot {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.read == self.buffer.len() {
            self.fill();
        }
        let count = (&self.buffer[self.read..]).read(into)?;
        self.read += count;
        Ok(count)
    }
}
