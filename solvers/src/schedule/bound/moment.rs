//! What a schedule has to do before and after the start of a function's backward pass.

use planlab_graph::{
    Function, FunctionId, FunctionKind, GradientSums, Machine, MapId, SchedulingProblem, TrainingNet,
};

use super::network::{Network, UNCUT};

/// The start of the backward pass of a function.
#[derive(Clone, Debug)]
pub(super) struct Moment<'p> {
    problem: &'p SchedulingProblem,
    /// By function: whether its output is computed before, so that computing it after takes its time again.
    is_again: Vec<bool>,
    /// By map: whether the backward pass reads it.
    is_held: Vec<bool>,
    /// The other maps that later backward passes read.
    pub(super) wanted: Vec<MapId>,
    /// Bytes that are left for maps other than those that the pass reads.
    pub(super) room: f64,
    /// Seconds of computing that come before.
    pub(super) before: f64,
    /// Seconds of computing that come after, without functions that run again.
    pub(super) after: f64,
}

/// Maps to have after a moment, without regard to memory: bytes that are kept or swapped, and seconds to recompute the
/// others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Choice {
    pub(super) bytes: f64,
    pub(super) seconds: f64,
}

/// The functions that a function depends on, and those that depend on it, itself included in both.
struct Kin {
    ancestors: Vec<bool>,
    descendants: Vec<bool>,
}

impl Kin {
    fn new(net: &TrainingNet, id: FunctionId) -> Self {
        let mut descendants = vec![false; net.functions().len()];
        descendants[id.index()] = true;
        for later in net.function_ids().skip(id.index() + 1) {
            let mut producers = net.function(later).inputs.iter().filter_map(|&map| net.producer(map));
            descendants[later.index()] = producers.any(|producer| descendants[producer.index()]);
        }
        let mut ancestors = vec![false; net.functions().len()];
        ancestors[id.index()] = true;
        close_upwards(net, &mut ancestors);
        Self { ancestors, descendants }
    }
}

/// Adds all functions that the given ones depend on.
fn close_upwards(net: &TrainingNet, functions: &mut [bool]) {
    for id in net.function_ids().rev() {
        if functions[id.index()] {
            net.function(id)
                .inputs
                .iter()
                .filter_map(|&map| net.producer(map))
                .for_each(|producer| functions[producer.index()] = true);
        }
    }
}

/// Whether the function has a backward pass: an addition passes its gradient on.
fn has_pass(net: &TrainingNet, function: &Function) -> bool {
    function.kind != FunctionKind::Add || net.last_use(function.output).is_none()
}

impl<'p> Moment<'p> {
    /// `None` if the function has no backward pass.
    pub(super) fn new(problem: &'p SchedulingProblem, sums: &[GradientSums], id: FunctionId) -> Option<Self> {
        let net = &problem.net;
        let function = net.function(id);
        if !has_pass(net, function) {
            return None;
        }
        let Kin { ancestors, descendants } = Kin::new(net, id);
        let passes = |among: &'_ [bool]| -> Vec<FunctionId> {
            net.function_ids().filter(|&id| among[id.index()] && has_pass(net, net.function(id))).collect()
        };
        let (earlier, later) = (passes(&descendants), passes(&ancestors));
        let mut is_again = vec![false; net.functions().len()];
        let read = earlier.iter().flat_map(|&pass| &net.function(pass).needs);
        read.filter_map(|&map| net.producer(map)).for_each(|producer| is_again[producer.index()] = true);
        close_upwards(net, &mut is_again);
        let mut is_held = vec![false; net.maps().len()];
        function.needs.iter().for_each(|map| is_held[map.index()] = true);
        let mut is_wanted = vec![false; net.maps().len()];
        later
            .iter()
            .flat_map(|&pass| &net.function(pass).needs)
            .for_each(|map| is_wanted[map.index()] = true);
        let wanted = net.map_ids().filter(|map| is_wanted[map.index()] && !is_held[map.index()]).collect();
        let mut moment = Self { problem, is_again, is_held, wanted, room: 0.0, before: 0.0, after: 0.0 };
        moment.room = moment.room_beside(function);
        moment.before = moment.seconds_before(sums, &earlier, id, &descendants);
        moment.after = moment.seconds_after(sums, &later, &ancestors);
        Some(moment)
    }

    pub(super) const fn machine(&self) -> &'p Machine {
        &self.problem.machine
    }

    fn bytes(&self, map: MapId) -> f64 {
        self.problem.net.map(map).bytes.get() as f64
    }

    /// The bytes that the base, the maps and gradients of a backward pass leave.
    fn room_beside(&self, function: &Function) -> f64 {
        let net = &self.problem.net;
        let free = self.problem.capacity.get() as f64 - self.problem.base().get() as f64;
        let held: f64 =
            net.map_ids().filter(|map| self.is_held[map.index()]).map(|map| self.bytes(map)).sum();
        let read = net.last_use(function.output).map_or(0.0, |_| self.bytes(function.output));
        let written = function.inputs.iter().filter(|&&map| net.has_gradient(map));
        free - held - read - written.map(|&map| self.bytes(map)).sum::<f64>()
    }

    fn seconds_before(
        &self,
        sums: &[GradientSums],
        earlier: &[FunctionId],
        id: FunctionId,
        descendants: &[bool],
    ) -> f64 {
        let (net, times) = (&self.problem.net, &self.problem.times);
        let backward = earlier.iter().filter(|&&pass| pass != id);
        let backward: f64 = backward.map(|pass| times.backward()[pass.index()]).sum();
        let summed =
            net.function_ids().filter(|id| descendants[id.index()]).map(|id| net.function(id).output);
        let sum = |map: MapId| sums[map.index()].count(|_| true) as f64 * times.accumulate()[map.index()];
        self.again_seconds() + backward + summed.map(sum).sum::<f64>()
    }

    fn seconds_after(&self, sums: &[GradientSums], later: &[FunctionId], ancestors: &[bool]) -> f64 {
        let (net, times) = (&self.problem.net, &self.problem.times);
        let backward: f64 = later.iter().map(|pass| times.backward()[pass.index()]).sum();
        let sum = |map: MapId| {
            let late = sums[map.index()].count(|function| ancestors[function.index()]);
            late as f64 * times.accumulate()[map.index()]
        };
        backward + net.map_ids().map(sum).sum::<f64>()
    }

    /// How much this moment promises: the bytes that do not fit, times the seconds of forward passes that have run.
    pub(super) fn pressure(&self) -> f64 {
        (self.wanted_bytes() - self.room) * self.again_seconds()
    }

    /// The seconds of the functions that must have run.
    fn again_seconds(&self) -> f64 {
        let times = self.problem.times.forward().iter().zip(&self.is_again);
        times.filter(|(_, is_again)| **is_again).map(|(seconds, _)| seconds).sum()
    }

    /// The bytes of all maps that later passes read.
    pub(super) fn wanted_bytes(&self) -> f64 {
        self.wanted.iter().map(|&map| self.bytes(map)).sum()
    }

    /// The least seconds + `price` * bytes over all choices, rounded down, and a choice that has about as much.
    pub(super) fn cheapest(&self, price: f64) -> (f64, Choice) {
        let net = &self.problem.net;
        let again = |id: FunctionId| {
            if self.is_again[id.index()] { self.problem.times.forward()[id.index()] } else { 0.0 }
        };
        let most: f64 = net.function_ids().map(again).sum::<f64>()
            + price * net.map_ids().map(|map| self.bytes(map)).sum::<f64>();
        if most <= 0.0 {
            return (0.0, Choice { bytes: self.wanted_bytes(), seconds: 0.0 });
        }
        // The sum of all capacities stays below `UNCUT`.
        let unit = most / (UNCUT / 4) as f64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "rounded down, not negative"
        )]
        let units = |seconds: f64| (seconds / unit) as u64;
        // For each map: whether it is there after the moment, and whether its function runs then.
        let (there, made) = (|map: MapId| 2 * map.index(), |map: MapId| 2 * map.index() + 1);
        let (source, sink) = (2 * net.maps().len(), 2 * net.maps().len() + 1);
        let mut network = Network::new(sink + 1);
        for &map in &self.wanted {
            network.link(source, there(map), UNCUT);
        }
        for map in net.map_ids().filter(|map| !self.is_held[map.index()]) {
            let cost = units(price * self.bytes(map));
            let Some(producer) = net.producer(map) else {
                network.link(there(map), sink, cost);
                continue;
            };
            network.link(there(map), made(map), cost);
            network.link(made(map), sink, units(again(producer)));
            for &input in net.function(producer).inputs.iter().filter(|input| !self.is_held[input.index()]) {
                network.link(made(map), there(input), UNCUT);
            }
        }
        let (cut, side) = network.cut(source, sink);
        let is_made = |map: &MapId| side[made(*map)];
        let had = net.map_ids().filter(|map| side[there(*map)] && !is_made(map));
        let seconds = net.map_ids().filter(is_made).filter_map(|map| net.producer(map)).map(again).sum();
        (cut as f64 * unit, Choice { bytes: had.map(|map| self.bytes(map)).sum(), seconds })
    }
}
