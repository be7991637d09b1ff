//! Runs the passes of a net on a runtime, and records what runs as a schedule.
//!
//! The runtime sees the maps as tensors and the gradients as other memory. Every event is recorded as it happens. Only the
//! release of a map differs: the schedule frees it after its last use, which is no later than its eviction.

use planlab_dsa::{BufferId, Offset};
use planlab_graph::{
    Content, FunctionId, MapId, Schedule, ScheduleError, ScheduleHalt, ScheduleRun, SchedulingProblem, Task,
    TrainingNet, simulate_schedule,
};

use super::runtime::{Device, Exhausted, Holder, Room, Runtime};
use super::tensors::TensorTable;
use crate::schedule::bound::claim_lp_bound;
use crate::schedule::fates::{backward_stage, forward_stage};
use crate::schedule::program::{Emitter, Prefetch, Program, draft_schedule};
use crate::schedule::work::{CUT_OFF, WorkMeter};

/// The runs of functions that are permitted in an iteration, for each function and beyond.
const RUNS_PER_FUNCTION: usize = 16;
const MORE_RUNS: usize = 64;

/// The memory of a problem without its base, in bytes.
pub(super) fn free_bytes(problem: &SchedulingProblem) -> u64 {
    problem.capacity.get().saturating_sub(problem.base().get())
}

/// Offers the schedule of an iteration in a room, with the offsets of the room, or reports why it does not fit. Errors are
/// as of [`ScheduleRun::tick`], [`ScheduleRun::raise_bound`] and [`ScheduleRun::offer`].
pub(super) fn offer_iteration(
    run: &mut ScheduleRun<'_>,
    key: &str,
    room: impl Room,
) -> Result<(), ScheduleHalt> {
    let problem = run.problem();
    claim_lp_bound(run)?;
    run.fall_short(CUT_OFF);
    run.tick(1)?;
    let mut player = Player::new(problem, room);
    let mut meter = WorkMeter::new(problem);
    for stage in 0..2 * problem.net.functions().len() {
        let end = player.run_stage(stage);
        meter.count_steps(run, player.runtime.tensors.take_steps())?;
        if let Err(reason) = end {
            run.fall_short(reason.to_string());
            return Ok(());
        }
    }
    let (program, offsets) = player.finish_program();
    match draft_schedule(problem, program, Prefetch::AsRoomPermits, problem.capacity) {
        Ok(draft) => offer_draft(run, Schedule { scheduler: key.to_owned(), ..draft }, offsets),
        Err(reason) => {
            run.fall_short(reason.to_string());
            Ok(())
        }
    }
}

/// Offers a draft, placed if there are offsets.
fn offer_draft(
    run: &mut ScheduleRun<'_>,
    draft: Schedule,
    offsets: Option<Vec<Offset>>,
) -> Result<(), ScheduleHalt> {
    let Some(offsets) = offsets else { return run.offer(draft) };
    let timeline = simulate_schedule(&draft, Some(run.problem().capacity)).map_err(ScheduleError::from)?;
    run.offer(draft.with_offsets(&timeline, &offsets))
}

/// The events so far.
struct Recorder<'p> {
    emitter: Emitter<'p>,
    /// For each map: whether its function has run.
    has_run: Vec<bool>,
    /// For each buffer: its offset from the base.
    offsets: Vec<Option<u64>>,
}

impl Recorder<'_> {
    fn set_offset(&mut self, buffer: BufferId, offset: Option<u64>) {
        if self.offsets.len() <= buffer.index() {
            self.offsets.resize(buffer.index() + 1, None);
        }
        self.offsets[buffer.index()] = offset;
    }

    fn buffer_bytes(&self, buffer: BufferId) -> u64 {
        self.emitter.schedule.buffer(buffer).bytes.get()
    }
}

impl Device for Recorder<'_> {
    fn compute_tensor(&mut self, tensor: usize, offset: Option<u64>) {
        let producer = self.emitter.problem.net.producer_of(MapId::from_index(tensor));
        let id = producer.expect("only maps with a function are computed");
        let is_again = std::mem::replace(&mut self.has_run[tensor], true);
        let task = if is_again { Task::Recompute(id) } else { Task::Forward(id) };
        let event = self.emitter.run_function(task, id);
        for &buffer in &event.writes {
            self.set_offset(buffer, offset);
        }
        self.emitter.emit_event(event);
    }

    fn discard_tensor(&mut self, tensor: usize) {
        self.emitter.device[tensor] = None;
    }
}

/// An iteration that is running.
struct Player<'p, R> {
    runtime: Runtime<R>,
    recorder: Recorder<'p>,
    /// For each map: the last stage whose pass reads or makes it.
    last_stages: Vec<usize>,
}

impl<'p, R: Room> Player<'p, R> {
    fn new(problem: &'p SchedulingProblem, room: R) -> Self {
        let net = &problem.net;
        let limit = RUNS_PER_FUNCTION * net.functions().len() + MORE_RUNS;
        Self {
            runtime: Runtime::new(TensorTable::from_problem(problem), room, limit),
            recorder: Recorder {
                emitter: Emitter::new(problem, None),
                has_run: vec![false; net.maps().len()],
                offsets: Vec::new(),
            },
            last_stages: find_last_stages(net),
        }
    }

    fn run_stage(&mut self, stage: usize) -> Result<(), Exhausted> {
        let functions = self.recorder.emitter.problem.net.functions().len();
        if stage == 0 {
            self.hold_inputs()?;
        }
        if stage < functions {
            self.run_forward(FunctionId::from_index(stage), stage)
        } else {
            self.run_backward(FunctionId::from_index(2 * functions - 1 - stage), stage)
        }
    }

    /// The inputs of the net are on the device, and stay.
    fn hold_inputs(&mut self) -> Result<(), Exhausted> {
        let problem = self.recorder.emitter.problem;
        for map in problem.net.map_ids().filter(|&map| !problem.net.has_gradient(map)) {
            let offset = self.runtime.hold_input(map.index(), &mut self.recorder)?;
            if let Some(buffer) = self.recorder.emitter.device[map.index()] {
                self.recorder.set_offset(buffer, offset);
            }
        }
        Ok(())
    }

    fn run_forward(&mut self, id: FunctionId, stage: usize) -> Result<(), Exhausted> {
        let problem = self.recorder.emitter.problem;
        let function = problem.net.function(id);
        self.runtime.compute_tensor(function.output.index(), &mut self.recorder)?;
        self.drop_finished(&function.inputs, stage);
        self.drop_finished(&[function.output], stage);
        Ok(())
    }

    fn run_backward(&mut self, id: FunctionId, stage: usize) -> Result<(), Exhausted> {
        let problem = self.recorder.emitter.problem;
        let has_pass = problem.net.has_backward_pass(id);
        let needs: &[MapId] = if has_pass { &problem.net.function(id).needs } else { &[] };
        let tensors: Vec<usize> = needs.iter().map(|map| map.index()).collect();
        self.runtime.fetch_tensors(&tensors, &mut self.recorder)?;
        let first = self.recorder.emitter.events.len();
        let known = self.recorder.emitter.events.last().map_or(0, |event| event.frees.len());
        self.recorder.emitter.emit_backward(id);
        if let Some(before) = first.checked_sub(1) {
            self.release_freed(before, known);
        }
        for place in first..self.recorder.emitter.events.len() {
            if place == first {
                tensors.iter().for_each(|&tensor| self.runtime.tensors.touch(tensor));
            }
            self.account_for_event(place)?;
            if place == first {
                tensors.iter().for_each(|&tensor| self.runtime.tensors.unpin(tensor));
                self.drop_finished(needs, stage);
            }
        }
        Ok(())
    }

    /// Takes and releases the memory of an event's gradients, and lets its time pass.
    fn account_for_event(&mut self, place: usize) -> Result<(), Exhausted> {
        let event = &self.recorder.emitter.events[place];
        let (writes, seconds) = (event.writes.clone(), event.seconds);
        for &buffer in &writes {
            let (holder, bytes) = (Holder::Other(buffer.index()), self.recorder.buffer_bytes(buffer));
            let offset = self.runtime.reserve_bytes(holder, bytes, &mut self.recorder)?;
            self.recorder.set_offset(buffer, offset);
        }
        self.runtime.tensors.advance_clock(seconds);
        self.release_freed(place, 0);
        Ok(())
    }

    /// Releases the gradients that an event frees, except those that were `known` before. A sum that passes its gradient
    /// on to nobody frees it with the event before.
    fn release_freed(&mut self, place: usize, known: usize) {
        let freed = self.recorder.emitter.events[place].frees[known..].to_vec();
        for buffer in freed {
            self.runtime.release_bytes(Holder::Other(buffer.index()), self.recorder.buffer_bytes(buffer));
        }
    }

    /// Drops those of some maps that no later pass needs.
    fn drop_finished(&mut self, maps: &[MapId], stage: usize) {
        for map in maps {
            if self.last_stages[map.index()] == stage {
                self.runtime.drop_tensor(map.index(), &mut self.recorder);
            }
        }
    }

    /// The program of the whole iteration, and the offsets of its buffers if the room has addresses.
    fn finish_program(self) -> (Program, Option<Vec<Offset>>) {
        let Recorder { mut emitter, offsets, .. } = self.recorder;
        free_maps_after_last_use(&mut emitter);
        let offsets = offsets.into_iter().map(|offset| offset.map(Offset::new)).collect();
        (emitter.finish_program(Vec::new(), Vec::new()), offsets)
    }
}

/// For each map, the last stage whose pass reads or makes it.
fn find_last_stages(net: &TrainingNet) -> Vec<usize> {
    let functions = net.functions().len();
    let mut last = vec![0; net.maps().len()];
    for id in net.function_ids() {
        let function = net.function(id);
        for map in function.inputs.iter().chain([&function.output]) {
            last[map.index()] = forward_stage(id);
        }
    }
    for id in net.function_ids().rev().filter(|&id| net.has_backward_pass(id)) {
        for map in &net.function(id).needs {
            last[map.index()] = backward_stage(id, functions);
        }
    }
    last
}

/// Frees the buffer of each map after the last event that writes or reads it; a buffer that no event touches, after the first event.
fn free_maps_after_last_use(emitter: &mut Emitter<'_>) {
    let mut last = vec![0; emitter.schedule.buffers.len()];
    for (place, event) in emitter.events.iter().enumerate() {
        for buffer in event.reads.iter().chain(&event.writes) {
            last[buffer.index()] = place;
        }
    }
    for (index, place) in last.into_iter().enumerate() {
        let buffer = BufferId::from_index(index);
        if matches!(emitter.schedule.buffer(buffer).content, Content::Map(_)) {
            emitter.events[place].frees.push(buffer);
        }
    }
}
