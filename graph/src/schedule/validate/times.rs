//! Checks that no event is faster than the machine.

use super::audit::Audit;
use super::violation::Violation;
use crate::{Engine, MapId, Task};

/// Relative error that sums of seconds may have.
const TOLERANCE: f64 = 1e-9;

impl Audit<'_> {
    pub(super) fn check_times(&self) -> Result<(), Violation> {
        let times = &self.problem.times;
        let bytes = |map: MapId| self.problem.net.map(map).bytes.get() as f64;
        for (event, data) in self.events() {
            let least = match data.task {
                Task::Forward(id) | Task::Recompute(id) => times.forward()[id.index()],
                Task::Backward(id) => times.backward()[id.index()],
                Task::Accumulate(map) => times.accumulate_times()[map.index()],
                Task::CopyOut(map) => bytes(map) / self.problem.machine.copy_out,
                Task::CopyIn(map) => bytes(map) / self.problem.machine.copy_in,
            };
            let seconds = data.seconds;
            if !(seconds.is_finite() && seconds >= least * (1.0 - TOLERANCE)) {
                return Err(Violation::TooFast { event, seconds, least });
            }
        }
        Ok(())
    }

    pub(super) fn check_claim(&self) -> Result<f64, Violation> {
        let starts = Engine::ALL
            .into_iter()
            .flat_map(|engine| self.starts[engine.index()].iter().zip(self.schedule.events_of(engine)));
        let seconds = starts.map(|(start, event)| start.seconds + event.seconds).fold(0.0, f64::max);
        match self.schedule.seconds {
            Some(claimed) if (claimed - seconds).abs() > TOLERANCE * seconds => {
                Err(Violation::WrongClaim { claimed, seconds })
            }
            _ => Ok(seconds),
        }
    }
}
