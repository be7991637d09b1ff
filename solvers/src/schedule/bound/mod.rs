//! A lower bound on the time of every schedule: what memory forces a schedule to copy and to compute again.
//!
//! # The moment
//!
//! Take a function f, and the moment at which its backward pass starts. Some functions must have run by then: those
//! that produce what the backward passes up to f read. Other backward passes must follow: those that depend on the
//! gradients of f. Each of them reads maps, from buffers. If no buffer holds such a map Y at the moment, or receives it
//! by a copy that has started, follow the buffer that is read back to its source: from a copy in to the first copy out
//! of Y, and from there to the buffer that the copy out reads, until some function wrote the buffer. This gives one of
//! three modes:
//!
//! - *kept*: a buffer holds Y at the moment, or receives it by a copy that has started;
//! - *recomputed*: the chain ends in a run of the function after the moment. The run reads the inputs of the function,
//!   each in one of these modes, too. If the function must have run before, its time is spent twice;
//! - *swapped*: the chain ends in a buffer that exists before the moment. It is gone at the moment, as Y is not kept: the
//!   copy out that reads it has ended by then. The copy in that follows starts after the moment.
//!
//! Every map with a mode is read, directly or through runs of functions, for a backward pass that follows.
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
//! As S >= K + S - room, these are four lines in K + S, two of them with R; t + after is at most all computing if t is
//! `before`.
//!
//! # The relaxation
//!
//! For a price p of a byte, the least R + p (K + S) over all choices of modes is a minimum cut: a map is either paid
//! for, or its function runs and its inputs are needed. Each cut gives a line below which no choice is. With the lines
//! above, T is at least a maximum of linear functions of K + S, and at least the height at which a falling and a
//! rising one cross. That holds for any prices: they decide how good the bound is, not whether it is true. The search
//! for prices adds a line between the two cuts beside the crossing, until they are neighbours.
//!
//! The bound is the best over several moments.
//!
//! # Rounding
//!
//! The bound is lowered by a part in 10^9, more than sums and products of positive numbers are rounded by. Capacities of
//! the network are whole numbers, rounded down. Two kinds of differences remain. A line of T - R and one of R have slopes
//! of opposite signs: their sum is lowered by what the rounding of both can change within the bytes of all maps. The
//! height of a crossing is a mean of two heights; no weight is computed as a difference. The heights may have opposite
//! signs, but the weighted parts are at most twice as large as T, as a falling line is.
//!
//! # Complexity
//!
//! O(n) time for each function, to choose the moments under the most pressure, and O(n) memory; about ten minimum cuts of
//! O(n) nodes for each of these moments.
//!
//! # References
//!
//! 1. J.-C. Picard: Maximal closure of a graph and applications to combinatorial problems. Management Science 22(11),
//!    1976. doi:10.1287/mnsc.22.11.1268. Choices with prerequisites are minimum cuts.

mod moment;
mod network;

use planlab_graph::{
    ScheduleBound, ScheduleEvidence, ScheduleHalt, ScheduleRun, SchedulingProblem, compute_bound,
    gradient_sums,
};

use moment::{Choice, Moment};

/// The relative amount by which the bound is lowered.
const MARGIN: f64 = 1e-9;
/// The relative amount by which the terms of a sum of lines are rounded at most.
const ROUNDING: f64 = 8.0 * f64::EPSILON;
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
    let pressures =
        problem.net.function_ids().filter_map(|id| Some((Moment::new(problem, id)?.pressure(), id)));
    let mut pressures: Vec<_> = pressures.filter(|&(pressure, _)| pressure > 0.0).collect();
    pressures.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let moments = pressures.into_iter().take(MOMENTS).filter_map(|(_, id)| Moment::new(problem, id));
    let bounds = moments.map(|moment| {
        let (before, after) = (moment.seconds_before(&sums), moment.seconds_after(&sums));
        Relaxation::new(&moment, TimeParts { compute, before, after, tail }).least_seconds()
    });
    let seconds = bounds.fold(0.0, f64::max) * (1.0 - MARGIN);
    (seconds > compute).then_some(ScheduleBound { seconds, evidence: ScheduleEvidence::Lp })
}

/// Claims [`lp_bound`], unless another scheduler consults this one: that scheduler has claimed it. Errors are as of
/// [`ScheduleRun::raise_bound`].
pub(super) fn claim_lp_bound(run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
    let bound = if run.is_consulted() { None } else { lp_bound(run.problem()) };
    bound.map_or(Ok(()), |bound| run.raise_bound(bound))
}

/// The least time of the backward passes that follow the arrival of a map.
fn tail_seconds(problem: &SchedulingProblem) -> f64 {
    let (net, backward) = (&problem.net, problem.times.backward());
    let mut following = vec![0.0_f64; net.functions().len()];
    let mut least = f64::INFINITY;
    for id in net.function_ids() {
        let function = net.function(id);
        let producers = function.inputs.iter().filter_map(|&map| net.producer_of(map));
        let longest = producers.map(|producer| following[producer.index()]).fold(0.0, f64::max);
        let has_pass = net.has_backward_pass(id);
        following[id.index()] = longest + if has_pass { backward[id.index()] } else { 0.0 };
        if has_pass && !function.needs.is_empty() {
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
    const fn level_at(height: f64) -> Self {
        Self { height, slope: 0.0 }
    }

    /// A line that is not above the sum of two lines for up to `most` bytes.
    fn sum_below(self, other: Self, most: f64) -> Self {
        let size = |line: Self| line.height.abs() + line.slope.abs() * most;
        let height = self.height + other.height - ROUNDING * (size(self) + size(other));
        Self { height, slope: self.slope + other.slope }
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
            let (weight, other) = (rising.slope / width, -falling.slope / width);
            let height = weight * falling.height + other * rising.height;
            if height > best.height {
                best = Crossing { bytes: (falling.height - rising.height) / width, height };
            }
        }
    }
    best
}

/// The parts of an iteration's time that no choice of modes changes, in seconds.
#[derive(Clone, Copy, Debug)]
struct TimeParts {
    /// Of all computing.
    compute: f64,
    /// Of the computing that comes before the moment.
    before: f64,
    /// Of the computing that comes after it, without functions that run again.
    after: f64,
    /// Of the backward passes that follow the arrival of any map.
    tail: f64,
}

/// The relaxation at a moment.
struct Relaxation<'m> {
    moment: &'m Moment<'m>,
    /// Lines of T that do not depend on R.
    fixed_lines: [Line; 2],
    /// Lines of T - R.
    lines_without_recompute: [Line; 2],
    /// The seconds to swap a byte, out and in.
    swap_price: f64,
    /// The bytes of all maps.
    most: f64,
}

impl<'m> Relaxation<'m> {
    fn new(moment: &'m Moment<'m>, parts: TimeParts) -> Self {
        let TimeParts { compute, before, after, tail } = parts;
        let machine = moment.machine();
        let [copy_out_seconds, copy_in_seconds] =
            [machine.copy_out, machine.copy_in].map(|bytes_per_second| 1.0 / bytes_per_second);
        let swap_price = copy_out_seconds + copy_in_seconds;
        let swapped = |seconds: f64, seconds_per_byte: f64| Line {
            height: seconds - moment.room * seconds_per_byte,
            slope: seconds_per_byte,
        };
        Self {
            moment,
            fixed_lines: [swapped(before + tail, copy_in_seconds), swapped(tail, swap_price)],
            lines_without_recompute: [Line::level_at(compute), swapped(after, copy_out_seconds)],
            swap_price,
            most: moment.bytes_of_all_maps(),
        }
    }

    /// The lines of T if these are lines of R.
    fn crossing_lines(&self, recompute_lines: &[Line]) -> Crossing {
        let sums = self.lines_without_recompute.iter().flat_map(|line| {
            recompute_lines.iter().map(|&recompute_line| line.sum_below(recompute_line, self.most))
        });
        highest_crossing(&self.fixed_lines.into_iter().chain(sums).collect::<Vec<_>>())
    }

    fn least_seconds(&self) -> f64 {
        let mut recompute_lines = vec![Line::level_at(0.0)];
        let mut choices = vec![Choice { bytes: self.moment.wanted_bytes(), seconds: 0.0 }];
        let mut price = self.swap_price;
        for _ in 0..PRICES {
            let (least, choice) = self.moment.cheapest_choice(price);
            recompute_lines.push(Line { height: least, slope: -price });
            let place = choices.partition_point(|other| other.bytes < choice.bytes);
            let is_known = choices.get(place).is_some_and(|other| other.bytes <= choice.bytes);
            if is_known {
                break;
            }
            choices.insert(place, choice);
            let bytes = self.crossing_lines(&recompute_lines).bytes;
            let next = choices.partition_point(|other| other.bytes < bytes).clamp(1, choices.len() - 1);
            let (few, many) = (choices[next - 1], choices[next]);
            price = (few.seconds - many.seconds) / (many.bytes - few.bytes);
            if price.is_nan() || price <= 0.0 {
                break;
            }
        }
        self.crossing_lines(&recompute_lines).height
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Bytes;
    use planlab_graph::{FeatureMap, Function, MapId, Times, TrainingNet};

    use super::*;
    use crate::schedule::testing::shortcut_problem;

    #[test]
    fn crossing_is_the_least_of_the_highest_line() {
        let line = |height, slope| Line { height, slope };
        let crossing = highest_crossing(&[line(10.0, -1.0), line(2.0, 1.0), line(5.0, 0.0), line(8.0, -4.0)]);
        assert_eq!((crossing.height, crossing.bytes), (6.0, 4.0));
        let level = highest_crossing(&[line(10.0, -1.0), line(2.0, 1.0), line(7.0, 0.0)]);
        assert_eq!((level.height, level.bytes), (7.0, 3.0));
        // A steep line does not cost exactness.
        let steep = highest_crossing(&[line(10.0, -1e-13), line(-3e11, 1.0)]).height;
        assert!((steep - 9.97).abs() < 1e-10, "{steep}");
    }

    #[test]
    fn bound_rises_as_memory_shrinks() {
        let seconds = |capacity| {
            let mut problem = shortcut_problem().with_capacity(Bytes::new(capacity));
            problem.machine = problem.machine.with_link(4.0);
            lp_bound(&problem).map_or(0.0, |bound| bound.seconds)
        };
        assert_eq!(seconds(1088), 0.0);
        // Below 540 bytes no backward pass fits.
        let rising: Vec<f64> = (0..5).map(|step| seconds(700 - 40 * step)).collect();
        assert!(rising.is_sorted() && rising[4] > compute_bound(&shortcut_problem()).seconds, "{rising:?}");
    }

    #[test]
    fn sum_of_opposite_slopes_is_not_above_the_exact_sum() {
        let (rising, falling) = (Line { height: 0.1, slope: 0.3 }, Line { height: 0.7, slope: -0.1 });
        let sum = rising.sum_below(falling, 1e12);
        assert!(sum.height + sum.slope * 1e12 <= 0.8 + 2e11, "{sum:?}");
        assert!(sum.height + sum.slope * 1e12 > 0.8 + 2e11 - 0.01, "{sum:?}");
    }

    /// image (1 byte) -> 4 bytes -> 8 bytes -> 1 byte. The last two backward passes read the input of their functions.
    /// While the last one runs, 2 of 18 bytes are left, and the 4 bytes are still to be read. To recompute them takes 30
    /// seconds, and 1 byte to do so: 10 seconds for each of 3 bytes.
    fn chain(copy_out_seconds: f64, copy_in_seconds: f64) -> SchedulingProblem {
        let map = |bytes| FeatureMap { name: String::new(), bytes: Bytes::new(bytes) };
        let function = |index: usize| Function {
            inputs: vec![MapId::from_index(index)],
            output: MapId::from_index(index + 1),
            needs: (index > 0).then(|| MapId::from_index(index)).into_iter().collect(),
            ..Function::default()
        };
        let maps = [1, 4, 8, 1].map(map).to_vec();
        let net = TrainingNet::new("chain", 1, 0, maps, (0..3).map(function).collect()).expect("a net");
        let times = Times::new(&net, vec![30.0, 1.0, 1.0], vec![1.0; 3], vec![0.0; 4]).expect("times");
        let mut machine = shortcut_problem().machine;
        (machine.copy_out, machine.copy_in) = (1.0 / copy_out_seconds, 1.0 / copy_in_seconds);
        SchedulingProblem::new(net, machine).with_times(times).with_capacity(Bytes::new(18))
    }

    /// With y = K + S - 2, R >= 10 (2 - y). All computing takes 35 seconds, what comes before 31 and after 3, the tail
    /// 2. Each case makes one other line cross 35 + R the highest.
    #[test]
    fn each_line_gives_the_bound_computed_by_hand() {
        const NEVER: f64 = 1e12;
        const FREE: f64 = 1e-12;
        for (line, copy_out_seconds, copy_in_seconds, seconds) in [
            ("35 + R at y = 0", NEVER, NEVER, 55.0),
            ("31 + 34 y + 2 at y = 1/2", FREE, 34.0, 50.0),
            ("(31.5 + 11.5) y + 2 at y = 1", 31.5, 11.5, 45.0),
            ("3 + 32 y + R at y = 1", 32.0, FREE, 45.0),
        ] {
            let bound = lp_bound(&chain(copy_out_seconds, copy_in_seconds)).expect("a bound").seconds;
            assert!((bound / seconds - 1.0).abs() < 1e-8, "{line}: {bound} instead of {seconds}");
        }
    }

    #[test]
    fn base_above_the_capacity_leaves_no_bound() {
        let mut problem = chain(1.0, 1.0);
        problem.machine.workspace = Bytes::new(u64::MAX / 2);
        assert_eq!(lp_bound(&problem), None);
    }
}
