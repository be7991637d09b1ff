//! The requests to a pool in the order in which they happen: each request and each free is a step.

use planlab_dsa::{Alignment, Buffer, Bytes, Instance, InstanceError, Label, Labels, LiveRange};

use crate::formats::Trace;

/// `CuPy` rounds the sizes of requests up to a multiple of this.
pub(super) const UNIT: u64 = 512;
/// Bytes of a 32-bit floating-point number.
pub(super) const FLOAT: u64 = 4;

/// The number of a block on its tape.
pub(super) type Block = usize;

struct Life {
    bytes: u64,
    start: u32,
    /// `None` until it is freed.
    end: Option<u32>,
    op: String,
}

/// The blocks requested so far.
#[derive(Default)]
pub(super) struct Tape {
    now: u32,
    lives: Vec<Life>,
}

impl Tape {
    fn tick(&mut self) -> u32 {
        self.now += 1;
        self.now - 1
    }

    /// Requests a block; its size is rounded up.
    pub(super) fn alloc(&mut self, bytes: u64, op: &str) -> Block {
        let start = self.tick();
        let bytes = bytes.next_multiple_of(UNIT);
        self.lives.push(Life { bytes, start, end: None, op: op.to_owned() });
        self.lives.len() - 1
    }

    /// Frees a block.
    pub(super) fn free(&mut self, block: Block) {
        self.lives[block].end = Some(self.tick());
    }

    /// The blocks that have been freed, on a clock that only their requests and frees advance.
    ///
    /// # Errors
    ///
    /// [`InstanceError`] if the sum of the sizes does not fit 64 bits.
    pub(super) fn build_trace(&self) -> Result<Trace, InstanceError> {
        let freed: Vec<(&Life, u32)> = self.lives.iter().filter_map(|life| Some((life, life.end?))).collect();
        let mut steps: Vec<u32> = freed.iter().flat_map(|&(life, end)| [life.start, end]).collect();
        steps.sort_unstable();
        let step =
            |event: u32| u32::try_from(steps.partition_point(|&other| other < event)).unwrap_or(u32::MAX);
        let align = Alignment::new(UNIT).expect("a power of two");
        let buffer = |&(life, end): &(&Life, u32)| {
            let live =
                LiveRange::new(step(life.start), step(end)).expect("a block is freed after its request");
            Buffer::new(Bytes::new(life.bytes), live).with_align(align)
        };
        let instance = Instance::from_buffers(freed.iter().map(buffer).collect())?;
        let mut labels = Labels::from_numbers(freed.len());
        for (label, (life, _)) in labels.buffers.iter_mut().zip(freed) {
            *label = Label { op: Some(life.op.clone()), ..std::mem::take(label) };
        }
        Ok(Trace::new(instance, labels))
    }
}
