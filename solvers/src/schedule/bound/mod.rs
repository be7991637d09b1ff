//! A lower bound on the time of every schedule: what memory forces a schedule to copy and to compute again.
//!
//! # The moment
//!
//! Take a function f, and the moment at which its backward pass starts. Some functions must have run by then: those
//! that produce what the backward passes up to f read. Other backward passes must follow: those that depend on the
//! gradients of f. Each map Y that a later event reads, in a chain of events that ends in a backward pass, is in one of
//! three modes, the first that applies:
//!
//! - *kept*: a buffer holds Y at the moment, or receives it by a copy that has started;
//! - *recomputed*: its function runs after the moment. Then each input of that function is in one of these modes, too.
//!   If the function must have run before, its time is spent twice;
//! - *swapped*: a copy in starts after the moment. The copy out has ended by then: its source was written before the
//!   moment, as the function does not run after it, and is gone at the moment, as Y is not kept.
//!
//! Let K, S be the bytes of kept and of swapped maps, and R the seconds of functions that run twice. Let t be the
//! moment, `before` and `after` the seconds of computing that must come before and after it, and `tail` the least time
//! of the backward passes that follow the arrival of any map. Each engine does one thing at a time. Hence for all
//! schedules, with copies in the forward pass, recomputation at any time and losses in any order:
//!
//! ```text
//! K <= room                       the capacity without base, operands and results of the pass
//! T >= all computing + R
//! T >= t + after + R              t >= before
//! T >= t + S / copy_in + tail     t >= S / copy_out
//! ```
//!
//! # The relaxation
//!
//! For a price p of a byte, the least R + p (K + S) over all choices of modes is a minimum cut: a map is either paid
//! for, or its function runs and its inputs are needed. Each cut gives a line below which no choice is. With the lines
//! above, T is at least a maximum of linear functions of K + S, and at least the height at which a falling and a
//! rising one cross. That holds for any prices: they decide how good the bound is, not whether it is true. The search
//! for prices adds a line between the two cuts beside the crossing, until they are neighbours.
//!
//! The bound is the best over several moments. It is lowered by a part in 10^9, more than all sums are rounded by:
//! capacities are whole numbers, rounded down, and a crossing is a mean of two heights.
//!
//! # Complexity
//!
//! About ten minimum cuts of O(n) nodes for each moment.
//!
//! # References
//!
//! 1. J.-C. Picard: Maximal closure of a graph and applications to combinatorial problems. Management Science 22(11),
//!    1976. doi:10.1287/mnsc.22.11.1268. Choices with prerequisites are minimum cuts.

mod moment;
mod network;

use planlab_graph::{
    FunctionKind, ScheduleBound, ScheduleEvidence, SchedulingProblem, compute_bound, gradient_sums,
};

use moment::{Choice, Moment};

/// The relative amount by which the bound is lowered.
const MARGIN: f64 = 1e-9;
/// The number of moments, those under the most pressure.
const MOMENTS: usize = 4;
/// The most prices that are tried at a moment.
const PRICES: usize = 40;

/// The bound; `None` if it is not above the time of all functions.
#[must_use]
pub fn lp_bound(problem: &SchedulingProblem) -> Option<ScheduleBound> {
    let sums = gradient_sums(&problem.net);
    let compute = compute_bound(problem).seconds;
    let tail = tail_seconds(problem);
    let moments = problem.net.function_ids().filter_map(|id| Moment::new(problem, &sums, id));
    let mut moments: Vec<_> = moments.filter(|moment| moment.pressure() > 0.0).collect();
    moments.sort_by(|a, b| b.pressure().total_cmp(&a.pressure()));
    moments.truncate(MOMENTS);
    let bounds = moments.iter().map(|moment| Relaxation::new(moment, compute, tail).least_seconds());
    let seconds = bounds.fold(0.0, f64::max) * (1.0 - MARGIN);
    (seconds > compute).then_some(ScheduleBound { seconds, evidence: ScheduleEvidence::Lp })
}

/// The least time of the backward passes that follow the arrival of a map.
fn tail_seconds(problem: &SchedulingProblem) -> f64 {
    let (net, backward) = (&problem.net, problem.times.backward());
    let mut following = vec![0.0_f64; net.functions().len()];
    let mut least = f64::INFINITY;
    for id in net.function_ids() {
        let function = net.function(id);
        let producers = function.inputs.iter().filter_map(|&map| net.producer(map));
        let longest = producers.map(|producer| following[producer.index()]).fold(0.0, f64::max);
        let passes_on = function.kind == FunctionKind::Add && net.last_use(function.output).is_some();
        following[id.index()] = longest + if passes_on { 0.0 } else { backward[id.index()] };
        if !passes_on && !function.needs.is_empty() {
            least = least.min(following[id.index()]);
        }
    }
    if least.is_finite() { least } else { 0.0 }
}

/// A height that changes with the bytes of kept and swapped maps: below which T cannot be, or R.
#[derive(Clone, Copy, Debug)]
struct Line {
    height: f64,
    slope: f64,
}

impl Line {
    fn plus(self, other: Self) -> Self {
        Self { height: self.height + other.height, slope: self.slope + other.slope }
    }
}

/// The best pair of lines: the height at which they cross, and where.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    bytes: f64,
    height: f64,
}

/// The least height on which some falling and some rising line cross, of all pairs the highest.
fn highest_crossing(lines: &[Line]) -> Crossing {
    let mut best = Crossing { bytes: 0.0, height: 0.0 };
    for falling in lines.iter().filter(|line| line.slope < 0.0) {
        for rising in lines.iter().filter(|line| line.slope >= 0.0) {
            let width = rising.slope - falling.slope;
            let share = rising.slope / width;
            let height = share * falling.height + (1.0 - share) * rising.height;
            if height > best.height {
                best = Crossing { bytes: (falling.height - rising.height) / width, height };
            }
        }
    }
    best
}

/// The relaxation at a moment.
struct Relaxation<'m> {
    moment: &'m Moment<'m>,
    /// Lines of T that do not depend on R.
    fixed: Vec<Line>,
    /// Lines of T - R.
    beside: Vec<Line>,
    /// The price at which swapping a map, out and in, pays for recomputing it.
    dearest: f64,
}

impl<'m> Relaxation<'m> {
    fn new(moment: &'m Moment<'m>, compute: f64, tail: f64) -> Self {
        let machine = moment.machine();
        let [out, back] = [machine.copy_out, machine.copy_in].map(|rate| 1.0 / rate);
        let level = |height: f64| Line { height, slope: 0.0 };
        let swapped = |price: f64| Line { height: -moment.room * price, slope: price };
        let fixed =
            vec![level(moment.before + tail).plus(swapped(back)), level(tail).plus(swapped(out + back))];
        let beside =
            vec![level(compute), level(moment.before + moment.after), level(moment.after).plus(swapped(out))];
        Self { moment, fixed, beside, dearest: out + back }
    }

    /// The lines of T if these are lines of R.
    fn crossing(&self, again: &[Line]) -> Crossing {
        let sums = self.beside.iter().flat_map(|beside| again.iter().map(|again| beside.plus(*again)));
        highest_crossing(&self.fixed.iter().copied().chain(sums).collect::<Vec<_>>())
    }

    fn least_seconds(&self) -> f64 {
        let mut again = vec![Line { height: 0.0, slope: 0.0 }];
        let mut choices = vec![Choice { bytes: self.moment.wanted_bytes(), seconds: 0.0 }];
        let mut price = self.dearest;
        for _ in 0..PRICES {
            let (least, choice) = self.moment.cheapest(price);
            again.push(Line { height: least, slope: -price });
            let place = choices.partition_point(|other| other.bytes < choice.bytes);
            let is_known = choices.get(place).is_some_and(|other| other.bytes <= choice.bytes);
            if is_known {
                break;
            }
            choices.insert(place, choice);
            let bytes = self.crossing(&again).bytes;
            let next = choices.partition_point(|other| other.bytes < bytes).clamp(1, choices.len() - 1);
            let (few, many) = (choices[next - 1], choices[next]);
            price = (few.seconds - many.seconds) / (many.bytes - few.bytes);
            if price.is_nan() || price <= 0.0 {
                break;
            }
        }
        self.crossing(&again).height
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Bytes;

    use super::super::testing::shortcut;
    use super::*;

    #[test]
    fn crossing_is_the_least_of_the_highest_line() {
        let line = |height, slope| Line { height, slope };
        let crossing = highest_crossing(&[line(10.0, -1.0), line(2.0, 1.0), line(5.0, 0.0), line(8.0, -4.0)]);
        assert_eq!((crossing.height, crossing.bytes), (6.0, 4.0));
        let level = highest_crossing(&[line(10.0, -1.0), line(2.0, 1.0), line(7.0, 0.0)]);
        assert_eq!((level.height, level.bytes), (7.0, 3.0));
    }

    #[test]
    fn bound_rises_as_memory_shrinks() {
        let seconds = |capacity| {
            let mut problem = shortcut().with_capacity(Bytes::new(capacity));
            problem.machine = problem.machine.with_link(4.0);
            lp_bound(&problem).map_or(0.0, |bound| bound.seconds)
        };
        assert_eq!(seconds(1088), 0.0);
        let rising: Vec<f64> = (0..8).map(|step| seconds(700 - 40 * step)).collect();
        assert!(rising.is_sorted() && rising[7] > compute_bound(&shortcut()).seconds, "{rising:?}");
    }
}
