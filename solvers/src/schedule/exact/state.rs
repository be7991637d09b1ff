//! The states of the machine, and how one follows from another.

use planlab_graph::{Engine, Task};

use super::model::{Model, Values, as_set, members};

/// No operation.
const IDLE: u16 = u16::MAX;

/// The most sets of values, too small ones included, that are tried to make room for an operation.
const MOST_RELEASES: usize = 1000;

/// The machine at a moment: the start, or the completion of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub(super) now: f64,
    /// For each engine: when it ends what it runs.
    pub(super) ends: [f64; 3],
    pub(super) key: Key,
}

/// What is there and what runs, but for the times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// The values on the device, those included that are being written.
    pub(super) present: Values,
    /// The maps on the host.
    host: Values,
    /// The functions whose forward pass is complete.
    forward: u32,
    /// The functions whose backward pass is complete.
    backward: u32,
    /// For each engine: what it runs.
    running: [u16; 3],
    /// The engines that may still start something at this moment are this one and those after it. So that what starts at
    /// one moment is tried in one order only.
    turn: u8,
}

/// The engines in the order in which operations start at one moment.
const TURNS: [Engine; 3] = [Engine::Out, Engine::Compute, Engine::In];

impl State {
    pub(super) fn first(model: &Model<'_>) -> Self {
        let key =
            Key { present: model.inputs, host: 0, forward: 0, backward: 0, running: [IDLE; 3], turn: 0 };
        Self { now: 0.0, ends: [0.0; 3], key }
    }

    fn running(&self, engine: Engine) -> Option<usize> {
        let index = self.key.running[engine.index()];
        (index != IDLE).then_some(index.into())
    }

    fn all_running(&self) -> impl Iterator<Item = usize> {
        self.key.running.into_iter().filter(|&index| index != IDLE).map(usize::from)
    }

    /// The times by which a state with the same key is compared.
    pub(super) fn times(&self) -> [f64; 4] {
        let end = |engine: Engine| {
            if self.running(engine).is_some() { self.ends[engine.index()] } else { self.now }
        };
        let [compute, out, back] = Engine::ALL.map(end);
        [self.now, compute, out, back]
    }

    fn is_pending(&self, model: &Model<'_>, index: usize) -> bool {
        match model.operations[index].task {
            Task::Forward(id) => self.key.forward & (1 << id.index()) == 0,
            Task::Backward(id) => self.key.backward & (1 << id.index()) == 0,
            _ => false,
        }
    }

    /// The passes that have to start yet.
    fn required<'m>(&self, model: &'m Model<'_>) -> impl Iterator<Item = usize> + use<'m, '_> {
        let state = *self;
        let passes = model.forward.iter().copied().chain(model.backward.iter().copied().flatten());
        passes.filter(move |&index| {
            state.is_pending(model, index) && state.running(Engine::Compute) != Some(index)
        })
    }

    pub(super) fn is_end(&self, model: &Model<'_>) -> bool {
        self.all_running().next().is_none() && self.required(model).next().is_none()
    }

    /// A bound on the end of an iteration from here: every pass and every sum that is missing and every map that is lost,
    /// one after another, and what runs.
    pub(super) fn least_end(&self, model: &Model<'_>) -> f64 {
        let passes: f64 = self.required(model).map(|index| model.operations[index].seconds).sum();
        let is_missing = |&&(pass, gradient, _): &&(usize, usize, f64)| {
            self.is_pending(model, pass)
                && self.running(Engine::Compute) != Some(pass)
                && self.key.present & (1 << gradient) == 0
        };
        let sums: f64 = model.sums.iter().filter(is_missing).map(|&(.., seconds)| seconds).sum();
        let [_, compute, out, back] = self.times();
        (compute + passes + sums + self.repeated_seconds(model)).max(out).max(back)
    }

    /// The seconds of the forward passes that have to run again: those of maps that are neither on the device nor on the
    /// host, if a missing pass reads them, or a pass that runs again does.
    fn repeated_seconds(&self, model: &Model<'_>) -> f64 {
        let there = self.key.present | self.key.host;
        let read = self.required(model).fold(0, |set, index| set | model.operations[index].read_set);
        let mut seen = read & !there;
        let mut unseen = seen;
        let mut seconds = 0.0;
        while unseen != 0 {
            let value = unseen.trailing_zeros() as usize;
            unseen &= unseen - 1;
            let is_repeated = |&&maker: &&usize| {
                matches!(model.operations[maker].task, Task::Forward(_)) && !self.is_pending(model, maker)
            };
            let Some(&maker) = model.makers[value].iter().find(is_repeated) else { continue };
            seconds += model.operations[maker].seconds;
            let reads = model.operations[maker].read_set & !there & !seen;
            seen |= reads;
            unseen |= reads;
        }
        seconds
    }

    /// The state after the next completion; `None` if nothing runs.
    pub(super) fn advance(&self, model: &Model<'_>) -> Option<Self> {
        let running = Engine::ALL.into_iter().filter(|&engine| self.running(engine).is_some());
        let now = running.map(|engine| self.ends[engine.index()]).min_by(f64::total_cmp)?;
        let mut next = Self { now, ..*self };
        next.key.turn = 0;
        for engine in Engine::ALL {
            let Some(index) = self.running(engine).filter(|_| self.ends[engine.index()] <= now) else {
                continue;
            };
            next.key.running[engine.index()] = IDLE;
            match model.operations[index].task {
                Task::Forward(id) => next.key.forward |= 1 << id.index(),
                Task::Backward(id) => next.key.backward |= 1 << id.index(),
                Task::CopyOut(map) => next.key.host |= 1 << map.index(),
                Task::Accumulate(_) | Task::CopyIn(_) | Task::Recompute(_) => {}
            }
        }
        next.key.present &= next.useful(model) | next.pinned(model);
        Some(next)
    }

    /// What running operations read or write.
    fn pinned(&self, model: &Model<'_>) -> Values {
        self.all_running().fold(0, |set, index| {
            let operation = &model.operations[index];
            set | operation.read_set | operation.write_set
        })
    }

    fn being_written(&self, model: &Model<'_>) -> Values {
        self.all_running().fold(0, |set, index| set | model.operations[index].write_set)
    }

    /// The values that some operation may read yet, if maps and sums are dropped and made again.
    fn useful(&self, model: &Model<'_>) -> Values {
        let mut useful = self.required(model).fold(0, |set, index| set | model.operations[index].read_set);
        let mut unseen = useful;
        while unseen != 0 {
            let value = unseen.trailing_zeros() as usize;
            unseen &= unseen - 1;
            for &maker in &model.makers[value] {
                // A backward pass is required, or never runs again.
                if matches!(model.operations[maker].task, Task::Forward(_) | Task::Accumulate(_)) {
                    let reads = model.operations[maker].read_set & !useful;
                    useful |= reads;
                    unseen |= reads;
                }
            }
        }
        useful
    }

    /// Whether all passes that are missing can still get what they read.
    fn is_alive(&self, model: &Model<'_>) -> bool {
        let mut known = [self.key.present | self.key.host, 0];
        self.required(model)
            .all(|index| self.are_available(model, model.operations[index].read_set, &mut known))
    }

    /// Whether values are there or can be made. `known` has the values that can be, and those that cannot.
    fn are_available(&self, model: &Model<'_>, values: Values, known: &mut [Values; 2]) -> bool {
        members(values).all(|value| {
            let bit = 1 << value;
            if known[0] & bit != 0 {
                return true;
            }
            let is_available = known[1] & bit == 0
                && model.makers[value].iter().any(|&maker| {
                    let operation = &model.operations[maker];
                    match operation.task {
                        Task::Backward(_) => self.is_pending(model, maker),
                        _ => self.are_available(model, operation.read_set, known),
                    }
                });
            known[usize::from(!is_available)] |= bit;
            is_available
        })
    }

    /// Calls `visit` with each operation that can start now and the state after its start. Returns whether these are all:
    /// of the ways to make room, no more than [`MOST_RELEASES`] are tried.
    pub(super) fn for_each_start(&self, model: &Model<'_>, mut visit: impl FnMut(usize, Self)) -> bool {
        let mut are_all = true;
        let useful = self.useful(model);
        let mut irretrievable = None;
        let readable = self.key.present & !self.being_written(model);
        for (index, operation) in model.operations.iter().enumerate() {
            let turn = TURNS.iter().position(|&engine| engine == operation.engine()).unwrap_or(0);
            let is_free = turn >= self.key.turn.into() && self.running(operation.engine()).is_none();
            if !is_free
                || operation.read_set & !readable != 0
                || operation.write_set & self.key.present != 0
                || !self.is_sensible(model, index, useful)
            {
                continue;
            }
            let taken = model.total_bytes(self.key.present);
            let deficit = (taken + operation.bytes).saturating_sub(model.room);
            let mut fixed = self.pinned(model) | operation.read_set;
            if deficit > 0 {
                fixed |= *irretrievable.get_or_insert_with(|| self.irretrievable_inputs(model));
            }
            are_all &= self.for_each_release(model, deficit, fixed, &mut |released| {
                let mut next = *self;
                next.key.present = (next.key.present & !released) | operation.write_set;
                next.key.turn = u8::try_from(turn + 1).unwrap_or(u8::MAX);
                next.key.running[operation.engine().index()] = u16::try_from(index).unwrap_or(IDLE);
                next.ends[operation.engine().index()] = self.now + operation.seconds;
                if released == 0 || next.is_alive(model) {
                    visit(index, next);
                }
            });
        }
        are_all
    }

    /// The inputs of the net without which a pass that is missing cannot run.
    fn irretrievable_inputs(&self, model: &Model<'_>) -> Values {
        let inputs = members(self.key.present & model.inputs & !self.key.host);
        let is_wanted = |&value: &usize| {
            let mut without = *self;
            without.key.present &= !(1 << value);
            !without.is_alive(model)
        };
        as_set(inputs.filter(is_wanted))
    }

    /// Whether an operation can bring something new.
    fn is_sensible(&self, model: &Model<'_>, index: usize, useful: Values) -> bool {
        let operation = &model.operations[index];
        match operation.task {
            Task::Forward(_) => self.is_pending(model, index) || operation.write_set & useful != 0,
            Task::Backward(_) => self.is_pending(model, index),
            Task::CopyOut(_) => operation.read_set & useful & !self.key.host != 0,
            Task::CopyIn(_) => operation.write_set & useful & self.key.host != 0,
            Task::Accumulate(_) | Task::Recompute(_) => operation.write_set & useful != 0,
        }
    }

    /// Calls `visit` with each least set of values whose release frees `deficit` bytes. Returns whether it was called with
    /// all of them.
    fn for_each_release(
        &self,
        model: &Model<'_>,
        deficit: u64,
        fixed: Values,
        visit: &mut impl FnMut(Values),
    ) -> bool {
        if deficit == 0 {
            visit(0);
            return true;
        }
        let choices: Vec<usize> = members(self.key.present & !fixed).collect();
        let mut sets = vec![(0, 0, 0)];
        let mut tried = 0;
        while let Some((set, freed, from)) = sets.pop() {
            tried += 1;
            if tried > MOST_RELEASES {
                return false;
            }
            for (place, &value) in choices.iter().enumerate().skip(from) {
                let (set, freed) = (set | 1 << value, freed + model.values[value].bytes);
                if freed < deficit {
                    sets.push((set, freed, place + 1));
                } else if members(set).all(|value| freed - model.values[value].bytes < deficit) {
                    visit(set);
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::testing::chain_problem;

    #[test]
    fn lost_maps_count_to_the_end() {
        // Three functions of a second; each backward pass reads the input of its function.
        let problem = chain_problem(&[1; 4]);
        let model = Model::new(&problem).expect("a small net");
        let least_end = |present: Values, host: Values, forward: u32| {
            let mut state = State::first(&model);
            (state.key.present, state.key.host, state.key.forward) = (present, host, forward);
            state.least_end(&model)
        };
        assert_eq!(State::first(&model).least_end(&model), 6.0);
        assert_eq!(least_end(0b0111, 0, 0b111), 3.0);
        // The second map is read by a pass, and for the third.
        assert_eq!(least_end(0b0001, 0, 0b111), 5.0);
        assert_eq!(least_end(0b0011, 0, 0b111), 4.0);
        assert_eq!(least_end(0b0101, 0, 0b111), 4.0);
        assert_eq!(least_end(0b0001, 0b0010, 0b111), 4.0);
        // Only the second map is lost: the third is not computed yet.
        assert_eq!(least_end(0b0001, 0, 0b001), 6.0);
    }
}
