//! What a schedule has to do before and after the start of a function's backward pass.

use planlab_graph::{Function, FunctionId, GradientSums, Machine, MapId, SchedulingProblem, TrainingNet};

use super::network::{Network, UNCUT};

/// The start of the backward pass of a function.
#[derive(Clone, Debug)]
pub(super) struct Moment<'p> {
    problem: &'p SchedulingProblem,
    id: FunctionId,
    /// The functions that it depends on, itself included.
    ancestors: Vec<bool>,
    /// Those that depend on it, itself included.
    descendants: Vec<bool>,
    /// By function: whether it runs before, so that a run after takes its time again.
    must_have_run: Vec<bool>,
    /// By map: whether the backward pass reads it.
    is_held: Vec<bool>,
    /// The other maps that later backward passes read.
    wanted: Vec<MapId>,
    /// Bytes that are left for maps other than those that the pass reads.
    pub(super) room: f64,
}

/// Maps to have after a moment, without regard to memory: bytes that are kept or swapped, and seconds to recompute the
/// others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Choice {
    pub(super) bytes: f64,
    pub(super) seconds: f64,
}

/// Adds all functions that depend on a function, the only one so far.
fn close_downwards(net: &TrainingNet, functions: &mut [bool], id: FunctionId) {
    for later in net.function_ids().skip(id.index() + 1) {
        let mut producers = net.function(later).inputs.iter().filter_map(|&map| net.producer_of(map));
        functions[later.index()] = producers.any(|producer| functions[producer.index()]);
    }
}

/// Adds all functions that the given ones depend on.
fn close_upwards(net: &TrainingNet, functions: &mut [bool]) {
    for id in net.function_ids().rev() {
        if functions[id.index()] {
            net.function(id)
                .inputs
                .iter()
                .filter_map(|&map| net.producer_of(map))
                .for_each(|producer| functions[producer.index()] = true);
        }
    }
}

/// The functions with a backward pass among some.
fn passes_among(net: &TrainingNet, among: &[bool]) -> impl Iterator<Item = FunctionId> {
    net.function_ids().filter(|&id| among[id.index()] && net.has_backward_pass(id))
}

/// The maps that the backward passes of some functions read, some more than once.
fn maps_needed(net: &TrainingNet, among: &[bool]) -> impl Iterator<Item = MapId> {
    passes_among(net, among).flat_map(|pass| net.function(pass).needs.iter().copied())
}

/// The bytes that the base, the maps and gradients of a backward pass leave; `None` if they do not fit.
fn bytes_left(problem: &SchedulingProblem, function: &Function, is_held: &[bool]) -> Option<u64> {
    let net = &problem.net;
    let held = net.map_ids().filter(|map| is_held[map.index()]);
    let read = net.last_use(function.output).map(|_| function.output);
    let written = function.inputs.iter().copied().filter(|&map| net.has_gradient(map));
    let taken = held.chain(read).chain(written).map(|map| net.map(map).bytes.get());
    let free = problem.capacity.get().checked_sub(problem.base().get())?;
    taken.into_iter().try_fold(free, u64::checked_sub)
}

impl<'p> Moment<'p> {
    /// `None` if the function has no backward pass, or if there is too little memory for it.
    pub(super) fn new(problem: &'p SchedulingProblem, id: FunctionId) -> Option<Self> {
        let net = &problem.net;
        if !net.has_backward_pass(id) {
            return None;
        }
        let mut ancestors = vec![false; net.functions().len()];
        ancestors[id.index()] = true;
        let mut descendants = ancestors.clone();
        close_upwards(net, &mut ancestors);
        close_downwards(net, &mut descendants, id);
        let mut must_have_run = vec![false; net.functions().len()];
        let produced = maps_needed(net, &descendants).filter_map(|map| net.producer_of(map));
        produced.for_each(|producer| must_have_run[producer.index()] = true);
        close_upwards(net, &mut must_have_run);
        let mut is_held = vec![false; net.maps().len()];
        net.function(id).needs.iter().for_each(|map| is_held[map.index()] = true);
        let mut is_wanted = vec![false; net.maps().len()];
        maps_needed(net, &ancestors).for_each(|map| is_wanted[map.index()] = true);
        let wanted = net.map_ids().filter(|map| is_wanted[map.index()] && !is_held[map.index()]).collect();
        let room = bytes_left(problem, net.function(id), &is_held)?;
        let room = room as f64;
        Some(Self { problem, id, ancestors, descendants, must_have_run, is_held, wanted, room })
    }

    pub(super) const fn machine(&self) -> &'p Machine {
        &self.problem.machine
    }

    fn bytes_of(&self, map: MapId) -> f64 {
        self.problem.net.map(map).bytes.get() as f64
    }

    pub(super) fn bytes_of_all_maps(&self) -> f64 {
        self.problem.net.map_ids().map(|map| self.bytes_of(map)).sum()
    }

    /// The seconds of computing that come before.
    pub(super) fn seconds_before(&self, sums: &[GradientSums]) -> f64 {
        let (net, times) = (&self.problem.net, &self.problem.times);
        let backward = passes_among(net, &self.descendants).filter(|&pass| pass != self.id);
        let backward: f64 = backward.map(|pass| times.backward()[pass.index()]).sum();
        let summed =
            net.function_ids().filter(|id| self.descendants[id.index()]).map(|id| net.function(id).output);
        let sum = |map: MapId| {
            sums[map.index()].count_sums(|_| true) as f64 * times.accumulate_times()[map.index()]
        };
        self.forward_seconds_before() + backward + summed.map(sum).sum::<f64>()
    }

    /// The seconds of computing that come after, without functions that run again.
    pub(super) fn seconds_after(&self, sums: &[GradientSums]) -> f64 {
        let (net, times) = (&self.problem.net, &self.problem.times);
        let backward: f64 =
            passes_among(net, &self.ancestors).map(|pass| times.backward()[pass.index()]).sum();
        let sum = |map: MapId| {
            let late = sums[map.index()].count_sums(|function| self.ancestors[function.index()]);
            late as f64 * times.accumulate_times()[map.index()]
        };
        backward + net.map_ids().map(sum).sum::<f64>()
    }

    /// How much this moment promises: the bytes that do not fit, times the seconds of forward passes that have run.
    pub(super) fn pressure(&self) -> f64 {
        (self.wanted_bytes() - self.room) * self.forward_seconds_before()
    }

    /// The seconds of the functions that must have run.
    fn forward_seconds_before(&self) -> f64 {
        let times = self.problem.times.forward().iter().zip(&self.must_have_run);
        times.filter(|(_, must_have_run)| **must_have_run).map(|(seconds, _)| seconds).sum()
    }

    /// The bytes of all maps that later passes read.
    pub(super) fn wanted_bytes(&self) -> f64 {
        self.wanted.iter().map(|&map| self.bytes_of(map)).sum()
    }

    /// The least seconds + `price` * bytes over all choices, rounded down, and a choice that has about as much.
    pub(super) fn cheapest_choice(&self, price: f64) -> (f64, Choice) {
        let net = &self.problem.net;
        let recompute_seconds = |id: FunctionId| {
            if self.must_have_run[id.index()] { self.problem.times.forward()[id.index()] } else { 0.0 }
        };
        let most: f64 =
            net.function_ids().map(recompute_seconds).sum::<f64>() + price * self.bytes_of_all_maps();
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
        // For each map: whether it is present after the moment, and whether its function runs then.
        let (present, recomputed) = (|map: MapId| 2 * map.index(), |map: MapId| 2 * map.index() + 1);
        let (source, sink) = (2 * net.maps().len(), 2 * net.maps().len() + 1);
        let mut network = Network::new(sink + 1);
        for &map in &self.wanted {
            network.add_edge(source, present(map), UNCUT);
        }
        for map in net.map_ids().filter(|map| !self.is_held[map.index()]) {
            let cost = units(price * self.bytes_of(map));
            let Some(producer) = net.producer_of(map) else {
                network.add_edge(present(map), sink, cost);
                continue;
            };
            network.add_edge(present(map), recomputed(map), cost);
            network.add_edge(recomputed(map), sink, units(recompute_seconds(producer)));
            for &input in net.function(producer).inputs.iter().filter(|input| !self.is_held[input.index()]) {
                network.add_edge(recomputed(map), present(input), UNCUT);
            }
        }
        let (cut, side) = network.minimum_cut(source, sink);
        let is_recomputed = |map: &MapId| side[recomputed(*map)];
        let kept_or_swapped = net.map_ids().filter(|map| side[present(*map)] && !is_recomputed(map));
        let seconds = net
            .map_ids()
            .filter(is_recomputed)
            .filter_map(|map| net.producer_of(map))
            .map(recompute_seconds)
            .sum();
        (cut as f64 * unit, Choice { bytes: kept_or_swapped.map(|map| self.bytes_of(map)).sum(), seconds })
    }
}
