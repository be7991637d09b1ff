//! Decides when swapped maps come back: the memory of every step, and a start for every copy in.
//!
//! Memory is counted step by step: an allocation counts from its step on, a freed buffer does not count after its step,
//! and a map that leaves for the host is gone at once. Copies in start
//!
//! - [`AsRoomPermits`](Prefetch::AsRoomPermits) (PoocH): in the order of their first use, each at the earliest step
//!   from which there is room for it until its last use, but not before the previous copy. The room is reserved, so it
//!   is never missing and the schedule cannot get stuck;
//! - [`OneAhead`](Prefetch::OneAhead): with the step before the first use, and then wait for room;
//! - [`WithConvolution`](Prefetch::WithConvolution) (SuperNeurons): with the nearest backward step of a convolution
//!   before the first use.
//!
//! # References
//!
//! 1. Y. Ito et al.: Profiling based Out-of-core Hybrid Method for Large Neural Networks. PPoPP 2019, 4.3.
//!    doi:10.1145/3293883.3298790.
//! 2. L. Wang et al.: SuperNeurons. PPoPP 2018. doi:10.1145/3178487.3178491.
//!
//! # Complexity
//!
//! O(n + sum of the swapped maps' stays).

use planlab_dsa::Bytes;
use planlab_graph::{Event, FunctionKind, MapId, Schedule, SchedulingProblem, Task};

use super::{Departure, Program, Return};

/// When copies in start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefetch {
    /// As early as there is room until the last use.
    AsRoomPermits,
    /// With the step before the first use.
    OneAhead,
    /// With the nearest backward step of a convolution before the first use.
    WithConvolution,
}

/// Why a program does not fit the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("out of memory: {} of {capacity} bytes", what.describe(*peak))]
pub struct DoesNotFit {
    /// The part that does not fit.
    pub what: Part,
    /// Bytes that would be in use, the base included.
    pub peak: Bytes,
    /// The capacity.
    pub capacity: Bytes,
}

/// The part of a program that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The functions with the kept maps, without any map that comes back.
    Functions,
    /// A map that comes back.
    CopyIn(MapId),
}

impl Part {
    fn describe(self, peak: Bytes) -> String {
        match self {
            Self::Functions => format!("the functions alone take {peak}"),
            Self::CopyIn(map) => format!("with map {map} back, {peak} are taken"),
        }
    }
}

/// For each step, the bytes in use during it, the base included, without the maps that come back.
pub(in crate::schedule) fn memory_by_step(program: &Program) -> Vec<u64> {
    let schedule = &program.schedule;
    let size = |ids: &[planlab_dsa::BufferId]| schedule.total_bytes(ids).get();
    let mut taken = schedule.base.get().saturating_add(size(&schedule.resident));
    let mut leaving = program.departures.iter().peekable();
    let mut memory = Vec::with_capacity(program.compute_steps().len());
    for (step, event) in program.compute_steps().iter().enumerate() {
        taken = taken.saturating_add(size(&event.writes));
        memory.push(taken);
        taken = taken.saturating_sub(size(&event.frees));
        while let Some(departure) = leaving.next_if(|departure| departure.after == step) {
            taken = taken.saturating_sub(size(&[departure.buffer]));
        }
    }
    memory
}

/// The least memory in which a program can run, the base included: every map comes back just before its first use.
pub(in crate::schedule) fn least_room(program: &Program) -> u64 {
    let memory = memory_by_step(program);
    let mut changes = vec![(0, 0); memory.len()];
    for back in &program.returns {
        let bytes = program.schedule.buffer(back.buffer).bytes.get();
        changes[back.first].0 += bytes;
        changes[back.last].1 += bytes;
    }
    let mut returned = 0_u64;
    let taken = memory.into_iter().zip(changes).map(|(taken, (comes, goes))| {
        returned += comes;
        let taken = taken.saturating_add(returned);
        returned -= goes;
        taken
    });
    taken.max().unwrap_or(0)
}

/// A program's draft: the program with its copies, in `capacity` bytes.
pub(in crate::schedule) fn draft_schedule(
    problem: &SchedulingProblem,
    program: Program,
    prefetch: Prefetch,
    capacity: Bytes,
) -> Result<Schedule, DoesNotFit> {
    let mut memory = memory_by_step(&program);
    check_capacity(&memory, capacity, Part::Functions)?;
    let starts = match prefetch {
        Prefetch::AsRoomPermits => reserve_transfers(&program, &mut memory, capacity)?,
        Prefetch::OneAhead => {
            program.returns.iter().map(|back| (back.first - 1).max(back.earliest)).collect()
        }
        Prefetch::WithConvolution => with_convolutions(problem, &program, &mut memory, capacity)?,
    };
    Ok(add_copies(problem, program, &starts, prefetch))
}

fn check_capacity(memory: &[u64], capacity: Bytes, what: Part) -> Result<(), DoesNotFit> {
    let peak = Bytes::new(memory.iter().copied().max().unwrap_or(0));
    if peak > capacity { Err(DoesNotFit { what, peak, capacity }) } else { Ok(()) }
}

/// The earliest start of each copy, in turn; reserves its stay in `memory`.
fn reserve_transfers(
    program: &Program,
    memory: &mut [u64],
    capacity: Bytes,
) -> Result<Vec<usize>, DoesNotFit> {
    let mut previous = 0;
    let mut starts = Vec::with_capacity(program.returns.len());
    for back in &program.returns {
        let bytes = program.schedule.buffer(back.buffer).bytes.get();
        let most = memory[back.first..=back.last].iter().copied().max().unwrap_or(0).saturating_add(bytes);
        if most > capacity.get() {
            let what = Part::CopyIn(back.map);
            return Err(DoesNotFit { what, peak: Bytes::new(most), capacity });
        }
        previous = back.earliest.max(previous);
        let mut start = back.first;
        while start > previous && memory[start - 1].saturating_add(bytes) <= capacity.get() {
            start -= 1;
        }
        previous = start;
        memory[start..=back.last].iter_mut().for_each(|taken| *taken = taken.saturating_add(bytes));
        starts.push(start);
    }
    Ok(starts)
}

/// The start of each copy, in turn; everything on the device at once has to fit.
fn with_convolutions(
    problem: &SchedulingProblem,
    program: &Program,
    memory: &mut [u64],
    capacity: Bytes,
) -> Result<Vec<usize>, DoesNotFit> {
    let starts: Vec<_> =
        program.returns.iter().map(|back| convolution_before(problem, program, back)).collect();
    let mut stays = program.returns.iter().zip(&starts);
    for (back, &start) in stays.clone() {
        let bytes = program.schedule.buffer(back.buffer).bytes.get();
        memory[start..=back.last].iter_mut().for_each(|taken| *taken = taken.saturating_add(bytes));
    }
    let highest = (0..memory.len()).max_by_key(|&step| memory[step]).unwrap_or(0);
    let there = stays.rfind(|&(back, &start)| (start..=back.last).contains(&highest));
    let what = there.map_or(Part::Functions, |(back, _)| Part::CopyIn(back.map));
    check_capacity(memory, capacity, what)?;
    Ok(starts)
}

fn convolution_before(problem: &SchedulingProblem, program: &Program, back: &Return) -> usize {
    let is_convolution = |event: &Event| matches!(event.task, Task::Backward(id) if problem.net.function(id).kind == FunctionKind::Convolution);
    let before = &program.compute_steps()[back.earliest..back.first];
    back.earliest + before.iter().rposition(is_convolution).unwrap_or(0)
}

fn as_count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn add_copies(
    problem: &SchedulingProblem,
    program: Program,
    starts: &[usize],
    prefetch: Prefetch,
) -> Schedule {
    let Program { mut schedule, departures, returns } = program;
    let sizes: Vec<Bytes> = schedule.buffers.iter().map(|buffer| buffer.bytes).collect();
    let [compute, out, into] = &mut schedule.events;
    for &Departure { map, buffer, ready, after } in &departures {
        let mut copy = Event::new(Task::CopyOut(map), problem.machine.out_seconds(sizes[buffer.index()]));
        copy.after = [as_count(ready), 0, 0];
        if ready <= after {
            compute[after].frees.push(buffer);
        }
        copy.reads.push(buffer);
        copy.frees.push(buffer);
        out.push(copy);
    }
    // For each buffer: the copies in that must be complete before an event reads it.
    let mut awaited = vec![0; sizes.len()];
    for (back, &start) in returns.iter().zip(starts) {
        let mut copy =
            Event::new(Task::CopyIn(back.map), problem.machine.in_seconds(sizes[back.buffer.index()]));
        copy.writes.push(back.buffer);
        copy.after = [as_count(start), as_count(back.departure + 1), 0];
        // The first backward step may wait for this very copy.
        copy.with = (prefetch != Prefetch::AsRoomPermits && start > back.earliest).then_some(as_count(start));
        into.push(copy);
        awaited[back.buffer.index()] = as_count(into.len());
        compute[back.last].frees.push(back.buffer);
    }
    for event in compute {
        event.after[2] = event.reads.iter().map(|id| awaited[id.index()]).max().unwrap_or(0);
    }
    schedule
}

#[cfg(test)]
mod tests {
    use planlab_graph::{Engine, simulate_schedule};

    use super::*;
    use crate::schedule::classes::swapping_program as program;
    use crate::schedule::testing::shortcut_problem;

    #[test]
    fn memory_counts_what_is_there_during_a_step() {
        let problem = shortcut_problem();
        // F0 F1 F2 F3 F4 B4 B2 A2 B1 B0
        let kept = [320, 576, 576, 832, 580, 832, 832, 1088, 832, 320];
        assert_eq!(memory_by_step(&program(&problem, &[])), kept);
        let swapped = [320, 576, 576, 832, 324, 576, 576, 832, 576, 320];
        assert_eq!(memory_by_step(&program(&problem, &[2])), swapped);
    }

    #[test]
    fn a_map_comes_back_as_early_as_there_is_room_until_its_last_use() {
        let start = |capacity| {
            let problem = shortcut_problem().with_capacity(Bytes::new(capacity));
            let draft =
                draft_schedule(&problem, program(&problem, &[2]), Prefetch::AsRoomPermits, problem.capacity)?;
            Ok(draft.events_of(Engine::In)[0].after[0])
        };
        assert_eq!(start(1088), Ok(5));
        let map = MapId::from_index(2);
        let (peak, capacity) = (Bytes::new(1088), Bytes::new(1087));
        assert_eq!(start(1087), Err(DoesNotFit { what: Part::CopyIn(map), peak, capacity }));
        let text = start(831).expect_err("too little").to_string();
        assert_eq!(text, "out of memory: the functions alone take 832 of 831 bytes");
    }

    #[test]
    fn two_maps_come_back_in_the_order_of_use() {
        let problem = shortcut_problem();
        for (prefetch, wait) in [(Prefetch::AsRoomPermits, None), (Prefetch::OneAhead, Some(8))] {
            let draft = draft_schedule(&problem, program(&problem, &[0, 2]), prefetch, problem.capacity)
                .expect("there is room");
            let copies: Vec<_> = draft.events_of(Engine::In).iter().map(|copy| copy.task).collect();
            assert_eq!(copies, [2, 0].map(|map| Task::CopyIn(MapId::from_index(map))));
            assert_eq!(draft.events_of(Engine::In)[1].with, wait);
            // The image, and then the map, out; each is awaited by the copy back.
            let awaited: Vec<_> = draft.events_of(Engine::In).iter().map(|copy| copy.after[1]).collect();
            assert_eq!(awaited, [2, 1]);
            simulate_schedule(&draft, None).expect("runs");
        }
    }
}
