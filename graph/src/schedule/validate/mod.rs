//! Checks a placed schedule: an audit that shares no code with the simulator or with any scheduler.
//!
//! The checks hold for *any* times: an order counts only if the events' conditions force it. Each event gets a vector
//! clock, the events of each engine that are surely complete when it starts. The checks use it:
//!
//! - **values**: every buffer holds one value, which is derived from the net; each event must read exactly what its
//!   task reads. A map has the same value whichever event computes it, so a recomputation must use that function's own
//!   inputs. A gradient is the sum of one part from each use of the map, each once.
//! - **life**: a buffer is written before it is read, and not freed before every reader is complete. One event of each
//!   engine may free it; it is free once all of these are complete.
//! - **memory**: two buffers that share an address never live at once, and all lie between the base and the end.
//! - **the host**: a map comes back only after it went out.
//! - **time**: no function and no copy is faster than the machine; the declared time of the schedule is correct.
//!
//! # Complexity
//!
//! O(e + b^2) for e events and b buffers.

mod alone;
mod audit;
mod clocks;
mod memory;
mod names;
mod values;
mod violation;

use planlab_dsa::Bytes;

use crate::{Schedule, SchedulingProblem};
pub(super) use alone::{check_claim, find_offset, find_writers};
use audit::Audit;
pub use violation::Violation;

/// The result for a correct schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Audited {
    /// Seconds from the start to the last completion.
    pub seconds: f64,
    /// Memory that its offsets need, base included.
    pub height: Bytes,
}

/// Audits a placed schedule in `memory` bytes; without a limit, in unlimited memory.
pub fn validate_schedule(
    problem: &SchedulingProblem,
    schedule: &Schedule,
    memory: Option<Bytes>,
) -> Result<Audited, Violation> {
    let mut audit = Audit::new(problem, schedule);
    audit.find_gradients();
    audit.check_names()?;
    audit.check_base()?;
    audit.check_resident()?;
    audit.find_writers()?;
    audit.find_frees()?;
    audit.check_sizes()?;
    audit.find_clocks()?;
    audit.check_lives()?;
    audit.check_values()?;
    audit.check_counts()?;
    audit.check_times()?;
    let height = audit.check_memory(memory)?;
    Ok(Audited { seconds: audit.check_claim()?, height })
}

#[cfg(test)]
mod tests {
    use planlab_dsa::{BufferId, Offset};

    use super::*;
    use crate::schedule::training::shortcut_net;
    use crate::{Content, Engine, Event, EventId, FunctionId, Machine, MapId, Task, simulate_schedule};

    /// Keeps all maps, with every buffer on top of the one before.
    fn stacked() -> (SchedulingProblem, Schedule) {
        let machine = Machine::built_in("x86-pcie3").expect("built in");
        let problem = SchedulingProblem::new(shortcut_net(), machine);
        let mut schedule = Schedule { base: problem.base(), ..Schedule::default() };
        let maps = (0..6).map(|map| Content::Map(MapId::from_index(map)));
        let gradients = [(4, 0), (2, 0), (2, 1), (1, 0)];
        for content in maps {
            add(&problem, &mut schedule, content, 0);
        }
        for (map, version) in gradients {
            add(&problem, &mut schedule, Content::Gradient(MapId::from_index(map)), version);
        }
        schedule.resident = vec![BufferId::from_index(0)];
        let function = FunctionId::from_index;
        let steps: [(Task, [&[usize]; 3]); 10] = [
            (Task::Forward(function(0)), [&[0], &[1], &[]]),
            (Task::Forward(function(1)), [&[1], &[2], &[1]]),
            (Task::Forward(function(2)), [&[2], &[3], &[]]),
            (Task::Forward(function(3)), [&[2, 3], &[4], &[3]]),
            (Task::Forward(function(4)), [&[4], &[5], &[5]]),
            (Task::Backward(function(4)), [&[4], &[6], &[4]]),
            (Task::Backward(function(2)), [&[2, 6], &[7], &[]]),
            (Task::Accumulate(MapId::from_index(2)), [&[6, 7], &[8], &[6, 7]]),
            (Task::Backward(function(1)), [&[2, 8], &[9], &[2, 8]]),
            (Task::Backward(function(0)), [&[0, 9], &[], &[0, 9]]),
        ];
        let ids = |ids: &[usize]| ids.iter().map(|&id| BufferId::from_index(id)).collect();
        for (task, buffers) in steps {
            let seconds = match task {
                Task::Forward(id) => problem.times.forward()[id.index()],
                Task::Backward(id) => problem.times.backward()[id.index()],
                _ => problem.times.accumulate_times()[2],
            };
            let [reads, writes, frees] = buffers.map(ids);
            schedule.events[0].push(Event { reads, writes, frees, ..Event::new(task, seconds) });
        }
        (problem, schedule)
    }

    fn add(problem: &SchedulingProblem, schedule: &mut Schedule, content: Content, version: u32) {
        let (Content::Map(map) | Content::Gradient(map)) = content;
        let top = schedule.height().expect("all are placed");
        let id = schedule.add_buffer(content, version, problem.net.map(map).bytes);
        schedule.buffers[id.index()].offset = Some(Offset::new(top.get()));
    }

    #[test]
    fn a_plain_schedule_is_right() {
        let (problem, schedule) = stacked();
        let audited = validate_schedule(&problem, &schedule, Some(problem.capacity)).expect("right");
        let timeline = simulate_schedule(&schedule, Some(problem.capacity)).expect("runs");
        assert!((audited.seconds - timeline.seconds).abs() < 1e-12);
        assert_eq!(Some(audited.height), schedule.height());
        assert_eq!(audited.height.get() - problem.base().get(), 64 + 8 * 256 + 4);
    }

    #[test]
    fn buffers_may_share_addresses_one_after_the_other() {
        let (problem, mut schedule) = stacked();
        // The first convolution's output is freed when the second one's is written.
        schedule.buffers[3].offset = schedule.buffers[1].offset;
        validate_schedule(&problem, &schedule, None).expect("right");
        // The activation is not.
        schedule.buffers[3].offset = schedule.buffers[2].offset;
        let [first, second] = [2, 3].map(BufferId::from_index);
        let refused = validate_schedule(&problem, &schedule, None).expect_err("shared");
        assert_eq!(refused, Violation::Overlap { first, second });
    }

    #[test]
    fn times_without_a_finite_sum_are_refused() {
        let (problem, mut schedule) = stacked();
        schedule.events[0][0].seconds = 1e308;
        schedule.events[0][1].seconds = 1e308;
        for claimed in [None, Some(5.0)] {
            schedule.seconds = claimed;
            let refused = validate_schedule(&problem, &schedule, None).expect_err("endless");
            assert_eq!(refused, Violation::Endless);
        }
    }

    #[test]
    fn half_a_gradient_is_no_gradient() {
        let (problem, mut schedule) = stacked();
        // The activation's gradient without the shortcut's part.
        schedule.events[0][8].reads[1] = BufferId::from_index(7);
        schedule.events[0][7].frees.pop();
        schedule.events[0][8].frees.push(BufferId::from_index(7));
        let refused = validate_schedule(&problem, &schedule, None).expect_err("half");
        let event = EventId { engine: Engine::Compute, place: 8 };
        assert_eq!(refused, Violation::WrongValue { event, buffer: BufferId::from_index(7) });
        assert_eq!(
            refused.to_string(),
            "event 8 of `compute` reads buffer 7, whose value its task does not read"
        );
    }
}
