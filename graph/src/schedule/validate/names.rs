//! Checks that everything exists that a schedule names, and that each buffer is written and freed once.

use planlab_dsa::BufferId;

use super::alone;
use super::audit::Audit;
use super::violation::Violation;
use crate::{Completions, Content, FunctionId, MapId, Task};

impl Audit<'_> {
    pub(super) fn check_names(&self) -> Result<(), Violation> {
        let (maps, functions) = (self.problem.net.maps().len(), self.problem.net.functions().len());
        for (event, data) in self.events() {
            let unknown = |what| Err(Violation::Unknown { event, what });
            let map = |id: MapId| (format!("map {id}"), id.index() < maps);
            let function = |id: FunctionId| (format!("function {id}"), id.index() < functions);
            let (what, is_known) = match data.task {
                Task::Forward(id) | Task::Recompute(id) | Task::Backward(id) => function(id),
                Task::Accumulate(id) | Task::CopyOut(id) | Task::CopyIn(id) => map(id),
            };
            if !is_known {
                return unknown(what);
            }
            let touched = data.reads.iter().chain(&data.writes).chain(&data.frees);
            if let Some(id) = touched.into_iter().find(|id| id.index() >= self.schedule.buffers.len()) {
                return unknown(format!("buffer {id}"));
            }
            let lengths = self.schedule.events.each_ref().map(Vec::len);
            if data.awaited_events().iter().zip(lengths).any(|(&wanted, length)| wanted as usize > length)
                || data.with.is_some_and(|place| place as usize >= lengths[0])
            {
                return unknown("an event to wait for".to_owned());
            }
            if data.task.engine() != event.engine {
                return Err(Violation::WrongEngine { event });
            }
        }
        Ok(())
    }

    pub(super) fn check_base(&self) -> Result<(), Violation> {
        let (base, wanted) = (self.schedule.base, self.problem.base());
        if base < wanted { Err(Violation::WrongBase { base, wanted }) } else { Ok(()) }
    }

    /// Checks that the buffers that exist from the start hold inputs of the net, each once.
    pub(super) fn check_resident(&self) -> Result<(), Violation> {
        let mut is_resident = vec![false; self.schedule.buffers.len()];
        for &buffer in &self.schedule.resident {
            let Some(is_there) = is_resident.get_mut(buffer.index()) else {
                return Err(Violation::NotAnInput(buffer));
            };
            let holds = self.schedule.buffer(buffer).content;
            let is_input = matches!(holds, Content::Map(map) if self.knows_map(map) && !self.problem.net.has_gradient(map));
            if std::mem::replace(is_there, true) || !is_input {
                return Err(Violation::NotAnInput(buffer));
            }
        }
        Ok(())
    }

    pub(super) fn find_writers(&mut self) -> Result<(), Violation> {
        self.writers = alone::find_writers(self.schedule)?;
        Ok(())
    }

    pub(super) fn find_frees(&mut self) -> Result<(), Violation> {
        for (event, data) in self.events() {
            for &buffer in &data.frees {
                let count = &mut self.frees[buffer.index()][event.engine.index()];
                if *count > 0 {
                    return Err(Violation::FreedTwice { event, buffer });
                }
                *count = u32::try_from(event.place + 1).unwrap_or(u32::MAX);
            }
        }
        match self.frees.iter().position(|frees| *frees == Completions::default()) {
            Some(index) => Err(Violation::NeverFreed(BufferId::from_index(index))),
            None => Ok(()),
        }
    }
}
