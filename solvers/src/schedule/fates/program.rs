//! The program of the fates of maps: what is recomputed in each stage, what leaves and what comes back.

use planlab_dsa::BufferId;
use planlab_graph::{Content, FunctionId, MapId, SchedulingProblem, Task};

use super::order::function_of_stage;
use super::{Fate, Fates};
use crate::schedule::program::{Departure, Emitter, Program, Return};

/// The time between two accesses of a map, in which it has a fate.
#[derive(Clone, Copy, Debug)]
pub(in crate::schedule) struct Gap {
    pub(in crate::schedule) map: MapId,
    /// The stage of the first access, after which the fate is decided.
    pub(in crate::schedule) stage: usize,
    /// The stage of the second access.
    pub(in crate::schedule) next: usize,
}

/// The program of some fates, and the gaps whose fates it depends on.
pub(in crate::schedule) fn build_program(problem: &SchedulingProblem, fates: &Fates) -> (Program, Vec<Gap>) {
    build_program_within(problem, fates, usize::MAX).expect("no limit")
}

/// As [`build_program`]; `None` if the compute engine has more events than `most`.
pub(in crate::schedule) fn build_program_within(
    problem: &SchedulingProblem,
    fates: &Fates,
    most: usize,
) -> Option<(Program, Vec<Gap>)> {
    let net = &problem.net;
    let maps = net.maps().len();
    let mut builder = Builder {
        fates,
        emitter: Emitter::new(problem, None),
        stage: 0,
        accessed: Vec::new(),
        last_access: vec![None; maps],
        copies: vec![None; maps],
        is_away: vec![false; maps],
        departures: Vec::new(),
        returns: Vec::new(),
        gaps: Vec::new(),
    };
    for &stage in fates.order.stages() {
        builder.stage = stage;
        let (id, is_forward) = function_of_stage(stage, net.functions().len());
        if is_forward {
            builder.make_available(&net.function(id).inputs);
            builder.run_function(Task::Forward(id), id);
        } else {
            if net.has_backward_pass(id) {
                builder.make_available(&net.function(id).needs);
            }
            builder.emitter.emit_backward(id);
        }
        builder.end_stage();
        if builder.emitter.events.len() > most {
            return None;
        }
    }
    Some(builder.finish_program())
}

struct Builder<'a> {
    fates: &'a Fates,
    emitter: Emitter<'a>,
    stage: usize,
    /// The maps that are accessed in this stage.
    accessed: Vec<MapId>,
    /// For each map: the stage of its last access.
    last_access: Vec<Option<usize>>,
    /// For each map: its departure, after which the host has it.
    copies: Vec<Option<usize>>,
    /// For each map: whether it is to come back from the host.
    is_away: Vec<bool>,
    /// Map and buffer of each copy out.
    departures: Vec<(MapId, BufferId)>,
    /// Map, buffer and departure of each copy in.
    returns: Vec<(MapId, BufferId, usize)>,
    gaps: Vec<Gap>,
}

impl Builder<'_> {
    /// Notes an access. Returns whether the map was not accessed before in this stage.
    fn access_map(&mut self, map: MapId) -> bool {
        match self.last_access[map.index()] {
            Some(stage) if stage == self.stage => return false,
            Some(stage) => self.gaps.push(Gap { map, stage, next: self.stage }),
            None => {}
        }
        self.last_access[map.index()] = Some(self.stage);
        self.accessed.push(map);
        true
    }

    /// Brings some maps back from the host or recomputes them, with all that this takes.
    fn make_available(&mut self, maps: &[MapId]) {
        let net = &self.emitter.problem.net;
        let mut missing = Vec::new();
        let mut wanted = maps.to_vec();
        while let Some(map) = wanted.pop() {
            if !self.access_map(map) || self.emitter.device[map.index()].is_some() {
                continue;
            }
            match (self.copies[map.index()], net.producer_of(map)) {
                (Some(departure), _) if self.is_away[map.index()] => {
                    self.returns.push((map, self.emitter.map_buffer(map), departure));
                }
                (_, Some(producer)) => {
                    missing.push(producer);
                    wanted.extend(&net.function(producer).inputs);
                }
                (_, None) => unreachable!("an input of the net stays or comes back"),
            }
        }
        missing.sort_unstable();
        for id in missing {
            self.run_function(Task::Recompute(id), id);
        }
    }

    fn run_function(&mut self, task: Task, id: FunctionId) {
        let event = self.emitter.run_function(task, id);
        self.emitter.emit_event(event);
        self.access_map(self.emitter.problem.net.function(id).output);
    }

    /// Lets each map that was accessed meet its fate.
    fn end_stage(&mut self) {
        for map in std::mem::take(&mut self.accessed) {
            let has_producer = self.emitter.problem.net.producer_of(map).is_some();
            let device = &mut self.emitter.device[map.index()];
            match self.fates.fate(map, self.stage) {
                Fate::Keep => {}
                Fate::Drop if !has_producer => {}
                Fate::Drop => {
                    *device = None;
                    self.is_away[map.index()] = false;
                }
                Fate::Swap => {
                    let Some(buffer) = device.take() else { continue };
                    self.is_away[map.index()] = true;
                    if self.copies[map.index()].is_none() {
                        self.copies[map.index()] = Some(self.departures.len());
                        self.departures.push((map, buffer));
                    }
                }
            }
        }
    }

    /// Frees every buffer after its last use, and drops the copies out that no copy in follows.
    fn finish_program(mut self) -> (Program, Vec<Gap>) {
        let mut born = vec![0; self.emitter.schedule.buffers.len()];
        for (place, event) in self.emitter.events.iter().enumerate() {
            event.writes.iter().for_each(|id| born[id.index()] = place);
        }
        let last_use = |emitter: &Emitter<'_>, id: BufferId| {
            emitter.reads_of(id).map_or(born[id.index()], |(_, last)| last)
        };
        let mut is_copied = vec![false; born.len()];
        let departures = self.order_departures(&born, last_use);
        for departure in &departures {
            is_copied[departure.buffer.index()] = true;
        }
        let mut returns = Vec::with_capacity(self.returns.len());
        for &(map, buffer, departure) in &self.returns {
            let (first, last) = self.emitter.reads_of(buffer).expect("it came back to be read");
            is_copied[buffer.index()] = true;
            let earliest = departures[departure].after + 1;
            returns.push(Return { map, buffer, departure, earliest, first, last });
        }
        for (index, is_copied) in is_copied.into_iter().enumerate() {
            let id = BufferId::from_index(index);
            if !is_copied && matches!(self.emitter.schedule.buffer(id).content, Content::Map(_)) {
                let last = last_use(&self.emitter, id);
                self.emitter.events[last].frees.push(id);
            }
        }
        (self.emitter.finish_program(departures, returns), self.gaps)
    }

    /// The copies out that are followed by a copy in, in the order in which they can start; renumbers them in
    /// `returns`.
    fn order_departures(
        &mut self,
        born: &[usize],
        last_use: impl Fn(&Emitter<'_>, BufferId) -> usize,
    ) -> Vec<Departure> {
        let mut wanted: Vec<_> = self.returns.iter().map(|&(.., departure)| departure).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let departure = |&index: &usize| {
            let (map, buffer) = self.departures[index];
            let ready =
                if self.emitter.schedule.resident.contains(&buffer) { 0 } else { born[buffer.index()] + 1 };
            (index, Departure { map, buffer, ready, after: last_use(&self.emitter, buffer) })
        };
        let mut departures: Vec<_> = wanted.iter().map(departure).collect();
        departures.sort_by_key(|(_, departure)| departure.after);
        let mut places = vec![0; self.departures.len()];
        for (place, &(index, _)) in departures.iter().enumerate() {
            places[index] = place;
        }
        self.returns.iter_mut().for_each(|(.., departure)| *departure = places[*departure]);
        departures.into_iter().map(|(_, departure)| departure).collect()
    }
}

#[cfg(test)]
mod tests {
    use planlab_graph::{ScheduleBudget, execute_scheduler, simulate_schedule};

    use super::*;
    use crate::schedule::fates::{StageLimits, backward_stage};
    use crate::schedule::find_scheduler;
    use crate::schedule::program::{Prefetch, draft_schedule, least_room};
    use crate::schedule::testing::{branching_problem, shortcut_problem, step_names};

    #[test]
    fn each_access_has_its_own_fate() {
        let problem = shortcut_problem();
        let functions = problem.net.functions().len();
        let steps = |fates: &Fates| step_names(&build_program(&problem, fates).0);
        let mut fates = Fates::keep_all(&problem.net);
        assert_eq!(steps(&fates), "F0 F1 F2 F3 F4 B4 B2 A2 B1 B0");
        // The activation is dropped after its last forward pass, and is needed twice.
        let [last, first, second] = [3, backward_stage(FunctionId::from_index(2), functions), 8];
        let activation = MapId::from_index(2);
        fates.set_fate(activation, last, first, Fate::Drop);
        assert_eq!(steps(&fates), "F0 F1 F2 F3 F4 B4 R1 B2 A2 B1 B0");
        fates.set_fate(activation, first, second, Fate::Drop);
        assert_eq!(steps(&fates), "F0 F1 F2 F3 F4 B4 R1 B2 A2 R1 B1 B0");
        // So is the map from which it is recomputed.
        fates.set_fate(MapId::from_index(1), 1, first, Fate::Drop);
        assert_eq!(steps(&fates), "F0 F1 F2 F3 F4 B4 R0 R1 B2 A2 R1 B1 B0");
    }

    #[test]
    fn a_copy_on_the_host_is_read_twice() {
        let problem = shortcut_problem();
        let first = backward_stage(FunctionId::from_index(2), problem.net.functions().len());
        let mut fates = Fates::keep_all(&problem.net);
        let activation = MapId::from_index(2);
        fates.set_fate(activation, 3, first, Fate::Swap);
        fates.set_fate(activation, first, first + 1, Fate::Swap);
        let (program, _) = build_program(&problem, &fates);
        assert_eq!((program.departures.len(), program.returns.len()), (1, 2));
        assert!(program.returns.iter().all(|back| back.departure == 0 && back.earliest == 4));
    }

    #[test]
    fn moved_passes_are_read_from_a_schedule() {
        let problem = branching_problem();
        let limits = StageLimits::new(&problem.net);
        let mut fates = Fates::keep_all(&problem.net);
        fates.order.pull_stage(2, 1, &limits);
        fates.order.push_stage(7, 8, &limits);
        // The tanh is dropped after the product's forward pass.
        fates.set_fate(MapId::from_index(3), 3, 6, Fate::Drop);
        let (program, _) = build_program(&problem, &fates);
        assert_eq!(step_names(&program), "F0 F2 F1 F3 F4 B4 R2 B3 B1 B2 A1 B0");
        let draft = draft_schedule(&problem, program, Prefetch::AsRoomPermits, problem.capacity);
        assert_eq!(Fates::from_schedule(&problem.net, &draft.expect("fits")), fates);
    }

    #[test]
    fn program_with_too_many_events_is_none() {
        let problem = shortcut_problem();
        let fates = Fates::keep_all(&problem.net);
        let build = |most| build_program_within(&problem, &fates, most);
        assert!(build(9).is_none());
        assert_eq!(build(10).map(|(program, _)| program.compute_steps().len()), Some(10));
    }

    #[test]
    fn fates_of_a_schedule_give_its_time() {
        let mut compared = 0;
        for problem in [shortcut_problem(), branching_problem()] {
            for capacity in [900, 1000, 1100, 1400] {
                let problem = problem.clone().with_capacity(planlab_dsa::Bytes::new(capacity));
                for key in ["in-core", "swap-all", "swap-opt", "pooch/retain", "checkpoints/chen"] {
                    let scheduler = find_scheduler(key).expect("a scheduler");
                    let outcome = execute_scheduler(&scheduler, &problem, ScheduleBudget::default(), 0);
                    let Some(best) = outcome.best else { continue };
                    let fates = Fates::from_schedule(&problem.net, best.schedule());
                    let (program, _) = build_program(&problem, &fates);
                    assert!(least_room(&program) <= capacity, "{key} in {capacity}");
                    let draft = draft_schedule(&problem, program, Prefetch::AsRoomPermits, problem.capacity);
                    let timeline = simulate_schedule(&draft.expect("fits"), Some(problem.capacity));
                    let seconds = timeline.expect("runs").seconds;
                    // Copies out may start beside the last reader.
                    assert!(seconds < best.seconds() + 1e-9, "{key} in {capacity}: {seconds}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 12, "only {compared}");
    }
}
