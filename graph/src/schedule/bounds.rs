//! Bounds on the time of an iteration, each with its evidence. They cover every schedule that the
//! [validator](crate::validate_schedule) accepts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{FunctionId, SchedulingProblem, TrainingNet};

/// Relative difference below which two times count as equal: sums of seconds in another order, and the tolerance with
/// which the validator compares times.
const SAME: f64 = 1e-9;

planlab_dsa::named_enum! {
    /// How a bound was obtained.
    pub enum ScheduleEvidence {
        /// What every schedule does: the time of all passes, each once, or the memory of one pass or sum.
        Compute = "compute",
        /// A linear relaxation of the choice to keep, swap or recompute.
        Lp = "lp",
        /// A search of all schedules.
        Search = "search",
    }
}

/// A proven lower bound on the time of every schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleBound {
    /// Seconds of one iteration.
    pub seconds: f64,
    /// How it was obtained.
    pub evidence: ScheduleEvidence,
}

impl ScheduleBound {
    /// Whether a valid schedule of this many seconds refutes the bound.
    #[must_use]
    pub fn is_refuted_by(&self, seconds: f64) -> bool {
        seconds < self.seconds * (1.0 - SAME)
    }

    /// Whether the bound proves that no schedule is faster than a valid one of this many seconds.
    #[must_use]
    pub fn proves_fastest(&self, seconds: f64) -> bool {
        seconds <= self.seconds * (1.0 + SAME)
    }

    /// (seconds - bound) / bound, and 0 if the difference is rounding or the bound is 0.
    #[must_use]
    pub fn gap(&self, seconds: f64) -> f64 {
        let gap = (seconds - self.seconds) / self.seconds;
        if gap > SAME && gap.is_finite() { gap } else { 0.0 }
    }

    /// The part of the speed at the bound that a schedule of this many seconds loses: 1 - bound / seconds, and 0 if it takes
    /// no time.
    #[must_use]
    pub fn speed_loss(&self, seconds: f64) -> f64 {
        if seconds > 0.0 { 1.0 - self.seconds / seconds } else { 0.0 }
    }

    /// The highest of these bounds.
    #[must_use]
    pub fn highest_of(bounds: &[Self]) -> Option<Self> {
        bounds.iter().copied().max_by(|a, b| a.seconds.total_cmp(&b.seconds))
    }
}

/// The sums that the gradient of a map requires and no other map shares.
///
/// A gradient has one part from each use of its map. Additions pass the same value on to several uses: equal parts are
/// one value, which a sum may read twice. A value is the map's own unless several maps have it as a part: these may
/// share a sum of such values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GradientSums {
    /// For each of the map's own values, the function of each part that equals it: the function whose backward pass makes
    /// it, or the addition that passes it on. Empty if no backward pass reads the gradient.
    pub own: Vec<Vec<FunctionId>>,
    /// One fewer than the values that the gradient includes, each once.
    pub most: usize,
}

impl GradientSums {
    /// The least number of sums that include an own value which one of these functions contributes.
    ///
    /// Take n such sums that yield the gradient from k of these values. Each value and each sum except the last is read
    /// by one of the n sums, which read two operands each: 2n >= k + n - 1, and one more if the gradient includes
    /// another value, which must be an operand, too. And a sum has at most twice as many parts as the larger operand.
    #[must_use]
    pub fn count_sums(&self, is_counted: impl Fn(FunctionId) -> bool) -> usize {
        let counted = |functions: &&Vec<FunctionId>| functions.iter().any(|&function| is_counted(function));
        let (values, parts) = self
            .own
            .iter()
            .filter(counted)
            .fold((0, 0_usize), |(values, parts), functions| (values + 1, parts + functions.len()));
        let doublings = parts.next_power_of_two().ilog2() as usize;
        values.min(self.most).max(doublings)
    }
}

/// A part of a gradient, or a sum of parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Term {
    Part(FunctionId, usize),
    Sum(Vec<usize>),
}

/// The parts of every gradient.
pub(super) struct Gradients {
    /// The terms that have a number.
    numbers: BTreeMap<Term, usize>,
    /// For each map, the number of each part of its gradient with the function that it comes from.
    parts: Vec<Vec<(usize, FunctionId)>>,
    /// For each map, the number of its gradient, if it has uses.
    whole: Vec<Option<usize>>,
    /// For each map, whether a backward pass reads its gradient.
    is_read: Vec<bool>,
}

impl Gradients {
    pub(super) fn new(net: &TrainingNet) -> Self {
        let maps = net.maps().len();
        let (parts, whole) = (vec![Vec::new(); maps], vec![None; maps]);
        let mut gradients = Self { numbers: BTreeMap::new(), parts, whole, is_read: vec![false; maps] };
        for id in net.function_ids().rev() {
            gradients.take_function(net, id);
        }
        for id in net.function_ids() {
            let function = net.function(id);
            gradients.is_read[function.output.index()] = net.has_backward_pass(id)
                || function.inputs.iter().any(|input| gradients.is_read[input.index()]);
        }
        gradients
    }

    fn number_term(&mut self, term: Term) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(term).or_insert(next)
    }

    /// Adds the parts that a function contributes; all later functions have been added.
    fn take_function(&mut self, net: &TrainingNet, id: FunctionId) {
        let function = net.function(id);
        let output = function.output.index();
        let mut terms: Vec<usize> = self.parts[output].iter().map(|&(number, _)| number).collect();
        terms.sort_unstable();
        self.whole[output] = match terms[..] {
            [] => None,
            [only] => Some(only),
            _ => Some(self.number_term(Term::Sum(terms))),
        };
        for (place, input) in function.inputs.iter().enumerate() {
            let part = match self.whole[output] {
                Some(gradient) if !net.has_backward_pass(id) => gradient,
                _ => self.number_term(Term::Part(id, place)),
            };
            self.parts[input.index()].push((part, id));
        }
    }

    /// The maps with a gradient that has to be summed.
    pub(super) fn summed_maps(&self) -> impl Iterator<Item = usize> {
        (0..self.parts.len()).filter(|&map| self.is_read[map] && self.parts[map].len() > 1)
    }

    /// Whether a backward pass reads the gradient of a map, or that of a map to which an addition passes it on.
    pub(super) fn is_gradient_read(&self, map: usize) -> bool {
        self.is_read[map]
    }

    /// Whether all parts of a map's gradient are one value.
    pub(super) fn has_equal_parts(&self, map: usize) -> bool {
        self.parts[map].windows(2).all(|pair| pair[0].0 == pair[1].0)
    }

    /// For each number, the maps whose sums may have it as a part.
    fn owners_by_term(&self) -> Vec<Vec<usize>> {
        let mut owners: Vec<Vec<usize>> = vec![Vec::new(); self.numbers.len()];
        for (map, parts) in self.parts.iter().enumerate().filter(|(_, parts)| parts.len() > 1) {
            for &(number, _) in parts {
                if owners[number].last() != Some(&map) {
                    owners[number].push(map);
                }
            }
        }
        owners
    }

    fn gradient_sums(&self) -> Vec<GradientSums> {
        let owners = self.owners_by_term();
        let mut sums = vec![GradientSums::default(); self.parts.len()];
        for map in self.summed_maps() {
            let mut values: BTreeMap<usize, Vec<FunctionId>> = BTreeMap::new();
            for &(number, function) in &self.parts[map] {
                values.entry(number).or_default().push(function);
            }
            let most = values.len() - 1;
            values.retain(|&number, _| owners[number].len() == 1);
            sums[map] = GradientSums { own: values.into_values().collect(), most };
        }
        sums
    }
}

/// For each map, the sums that its gradient requires for itself.
#[must_use]
pub fn gradient_sums(net: &TrainingNet) -> Vec<GradientSums> {
    Gradients::new(net).gradient_sums()
}

/// The time of every pass of every function, once, and of the sums of gradients that no schedule can avoid. A lower
/// bound for every schedule.
#[must_use]
pub fn compute_bound(problem: &SchedulingProblem) -> ScheduleBound {
    let (net, times) = (&problem.net, &problem.times);
    let gradients = Gradients::new(net);
    let passes = net.function_ids().map(|id| {
        let backward = if net.has_backward_pass(id) { times.backward()[id.index()] } else { 0.0 };
        times.forward()[id.index()] + backward
    });
    let sums = gradients.gradient_sums();
    let own = net
        .map_ids()
        .map(|map| sums[map.index()].count_sums(|_| true) as f64 * times.accumulate_times()[map.index()]);
    let seconds =
        passes.chain(own).sum::<f64>() + shared_seconds(&gradients, &sums, times.accumulate_times());
    ScheduleBound { seconds, evidence: ScheduleEvidence::Compute }
}

/// The least time of sums that consist of shared parts alone: at least one for each gradient, done for any of the maps
/// that share them.
fn shared_seconds(gradients: &Gradients, sums: &[GradientSums], seconds: &[f64]) -> f64 {
    let owners = gradients.owners_by_term();
    let shared = gradients.summed_maps().filter(|&map| sums[map].own.is_empty());
    let least = |map: usize| {
        let (first, _) = gradients.parts[map][0];
        owners[first].iter().map(|&owner| seconds[owner]).fold(f64::INFINITY, f64::min)
    };
    shared.map(|map| (gradients.whole[map], least(map))).collect::<BTreeMap<_, _>>().into_values().sum()
}

#[cfg(test)]
pub(super) mod tests {
    use planlab_dsa::Bytes;

    use super::*;
    use crate::{FeatureMap, Function, FunctionKind, MapId};

    /// A net of equal maps: the first is an input, each of the others is made from these maps. The last one has a
    /// backward pass, and those with one input.
    pub(in crate::schedule) fn net_of(inputs: &[&[usize]]) -> TrainingNet {
        let map = |_| FeatureMap { bytes: Bytes::new(4), ..FeatureMap::default() };
        let function = |(index, inputs): (usize, &&[usize])| Function {
            kind: if inputs.len() > 1 { FunctionKind::Add } else { FunctionKind::Other },
            inputs: inputs.iter().map(|&map| MapId::from_index(map)).collect(),
            output: MapId::from_index(index + 1),
            ..Function::default()
        };
        let functions = inputs.iter().enumerate().map(function).collect();
        TrainingNet::new("equal", 1, 0, (0..=inputs.len()).map(map).collect(), functions).expect("a net")
    }

    #[test]
    fn gap_and_loss_of_no_time_are_zero() {
        let bound = |seconds| ScheduleBound { seconds, evidence: ScheduleEvidence::Compute };
        assert_eq!((bound(0.0).gap(0.0), bound(0.0).speed_loss(0.0)), (0.0, 0.0));
        assert_eq!((bound(0.0).gap(1.0), bound(0.0).speed_loss(1.0)), (0.0, 1.0));
        assert_eq!((bound(1.0).gap(4.0), bound(1.0).speed_loss(4.0)), (3.0, 0.75));
        assert_eq!(bound(1.0).gap(1.0 + 1e-12), 0.0);
    }

    /// The sums that the gradient of map 1 requires.
    fn sums_of_first(inputs: &[&[usize]]) -> usize {
        gradient_sums(&net_of(inputs))[1].count_sums(|_| true)
    }

    #[test]
    fn equal_parts_of_a_gradient_are_one_value() {
        // p + q + r.
        assert_eq!(sums_of_first(&[&[0], &[1], &[1], &[1]]), 2);
        // p + p.
        assert_eq!(sums_of_first(&[&[0], &[1, 1], &[2]]), 1);
        // (p + p) + (p + p), and the same by additions of different maps.
        assert_eq!(sums_of_first(&[&[0], &[1, 1], &[1, 1], &[2, 3], &[4]]), 2);
        assert_eq!(sums_of_first(&[&[0], &[0], &[1, 2], &[3, 1], &[1, 4], &[1, 5], &[6]]), 2);
        // (p + q) + (p + q).
        assert_eq!(sums_of_first(&[&[0], &[1, 1], &[2], &[1, 1], &[4]]), 2);
        // p + p + q: one sum includes q.
        let sums = gradient_sums(&net_of(&[&[0], &[1, 1], &[2], &[1]]));
        assert_eq!(sums[1].count_sums(|_| true), 2);
        assert_eq!(sums[1].count_sums(|function| function.index() == 3), 1);
        assert_eq!(sums[1].count_sums(|_| false), 0);
    }
}
