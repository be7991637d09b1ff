//! Checks where buffers lie, and that no two of them ever overlap.

use planlab_dsa::{BufferId, Bytes};

use super::alone::find_offset;
use super::audit::Audit;
use super::violation::Violation;
use crate::Content;

impl Audit<'_> {
    pub(super) fn check_sizes(&self) -> Result<(), Violation> {
        for (index, buffer) in self.schedule.buffers.iter().enumerate() {
            let (Content::Map(map) | Content::Gradient(map)) = buffer.content;
            let wanted = if self.knows_map(map) { self.problem.net.map(map).bytes } else { Bytes::ZERO };
            if buffer.bytes != wanted {
                let buffer_id = BufferId::from_index(index);
                return Err(Violation::WrongSize { buffer: buffer_id, bytes: buffer.bytes, wanted });
            }
        }
        Ok(())
    }

    pub(super) fn check_memory(&self, memory: Option<Bytes>) -> Result<Bytes, Violation> {
        let mut height = self.schedule.base.get();
        let mut places = Vec::with_capacity(self.schedule.buffers.len());
        for (index, data) in self.schedule.buffers.iter().enumerate() {
            let buffer = BufferId::from_index(index);
            let offset = find_offset(self.schedule, buffer)?;
            let end = offset.saturating_add(data.bytes.get());
            if let Some(memory) = memory.filter(|memory| end > memory.get()) {
                return Err(Violation::OutsideMemory { buffer, end, memory });
            }
            height = height.max(end);
            places.push((offset, end, buffer));
        }
        places.sort_unstable();
        self.check_overlaps(&places)?;
        Ok(Bytes::new(height))
    }

    fn check_overlaps(&self, places: &[(u64, u64, BufferId)]) -> Result<(), Violation> {
        for (index, &(_, end, first)) in places.iter().enumerate() {
            let above = places[index + 1..].iter().take_while(|&&(offset, ..)| offset < end);
            for &(_, _, second) in above {
                if !self.is_gone(first, second) && !self.is_gone(second, first) {
                    return Err(Violation::Overlap { first, second });
                }
            }
        }
        Ok(())
    }

    /// Whether `first` is surely free when `second` is written.
    fn is_gone(&self, first: BufferId, second: BufferId) -> bool {
        let Some(writer) = self.writers[second.index()] else { return false };
        let complete = self.starts[writer.engine.index()][writer.place].clock;
        self.frees[first.index()].iter().zip(complete).all(|(&count, complete)| count <= complete)
    }
}
