//! What the rows say in a few sentences; a sentence without rows is left out.

use planlab_results::statistics::median;

use crate::data::nets::net_memory::{self, Net};
use crate::data::nets::pools;
use crate::data::planners::compare::{Comparison, planner_key};
use crate::data::planners::model::{Model, is_recorded};
use crate::data::replays::Replays;
use crate::format::{count_real, format_bytes, format_count, format_nanoseconds, format_percent};

/// A finding: its core, and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FindingSentence {
    pub(crate) core: String,
    pub(crate) rest: String,
}

/// What the findings are computed from.
pub(crate) struct Grounds<'a> {
    pub(crate) model: &'a Model,
    pub(crate) replays: &'a Replays,
    pub(crate) nets: &'a [Net<'a>],
    pub(crate) baseline: &'a str,
    /// Whether a planner, given by its index, is a greedy one.
    pub(crate) is_greedy: &'a dyn Fn(usize) -> bool,
}

const MOST: usize = 5;
/// A planner is quick if it takes no longer on average: 1 ms.
const QUICK_NS: f64 = 1e6;

/// At most five findings, the most important first.
pub(crate) fn collect_findings(from: &Grounds<'_>) -> Vec<FindingSentence> {
    let found = [
        proved_nets(from),
        greedy_gap(from),
        quick_planner(from),
        saved_memory(from),
        closest_allocator(from),
        time_growth(from),
    ];
    found.into_iter().flatten().take(MOST).collect()
}

/// The planner of `planlab plan`.
pub(crate) const DEFAULT: &str = "portfolio";

/// The planners to use: the closest one (of equals the default one), and the closest quick one if that is another. `None`
/// without a comparison.
pub(crate) fn recommended_planners(compared: &Comparison) -> Option<(String, Option<String>)> {
    let first = compared.ranked.first()?;
    let equals = compared.ranked.iter().take_while(|one| one.gap <= first.gap);
    let closest = equals.into_iter().find(|one| planner_key(&one.label) == DEFAULT).unwrap_or(first);
    let quick = compared.closest_within(QUICK_NS).filter(|quick| quick.family() != closest.family());
    Some((closest.label.clone(), quick.map(|quick| quick.label.clone())))
}

/// How many of the recorded nets have a plan at a proven bound.
fn proved_nets(from: &Grounds<'_>) -> Option<FindingSentence> {
    let model = from.model;
    let nets = (0..model.workloads.len()).filter(|&at| is_recorded(&model.workloads[at].key));
    let gaps: Vec<(f64, &str)> =
        nets.filter_map(|at| Some((model.best_cell(at)?.gap?, model.workloads[at].key.as_str()))).collect();
    let (worst, name) = gaps.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let proved = gaps.iter().filter(|(gap, _)| *gap <= 0.0).count();
    Some(if proved == gaps.len() {
        FindingSentence {
            core: "Every recorded net is proved optimal".to_owned(),
            rest: format!(": on each of the {proved}, the best plan meets a proven bound."),
        }
    } else {
        FindingSentence {
            core: format!("{proved} of {} recorded nets are proved optimal", gaps.len()),
            rest: format!("; the largest gap left is {}, on {name}.", format_percent(worst)),
        }
    })
}

/// How close the middle one of the greedy planners comes.
fn greedy_gap(from: &Grounds<'_>) -> Option<FindingSentence> {
    let compared = from.model.compared.as_ref()?;
    let greedy = || compared.ranked.iter().filter(|one| (from.is_greedy)(one.planner));
    let gaps: Vec<f64> = greedy().map(|one| one.gap).collect();
    let (middle, best) = (median(&gaps)?, greedy().next()?);
    Some(FindingSentence {
        core: format!("The median greedy planner is within {} of the bound", format_percent(middle)),
        rest: format!(
            " on average ({} greedy planners, {} {}); the best, {}, has {}.",
            gaps.len(),
            compared.workloads.len(),
            compared.scope,
            planner_key(&best.label),
            gap_of(best.gap)
        ),
    })
}

fn gap_of(gap: f64) -> String {
    if gap <= 0.0 { "no gap".to_owned() } else { format!("a gap of {}", format_percent(gap)) }
}

/// What the best quick planner and the closest planner take.
fn quick_planner(from: &Grounds<'_>) -> Option<FindingSentence> {
    let compared = from.model.compared.as_ref()?;
    let (quick, closest) = (compared.closest_within(QUICK_NS)?, compared.ranked.first()?);
    let core = format!("{} plans in {}", planner_key(&quick.label), format_nanoseconds(quick.time_ns?));
    let rest = match closest.time_ns.filter(|_| closest.planner != quick.planner) {
        Some(time) => format!(
            " on average and leaves {}; {} takes {} and leaves {}.",
            gap_of(quick.gap),
            planner_key(&closest.label),
            format_nanoseconds(time),
            gap_of(closest.gap)
        ),
        None => format!(" on average and leaves {}.", gap_of(quick.gap)),
    };
    Some(FindingSentence { core, rest })
}

/// What plans save of the memory that the frameworks' own pools hold.
fn saved_memory(from: &Grounds<'_>) -> Option<FindingSentence> {
    let savings = net_memory::largest_savings(from.nets);
    let shares: Vec<f64> = savings.iter().filter_map(|net| net.share_saved()).collect();
    let most = savings.first()?;
    let mean = shares.iter().sum::<f64>() / count_real(shares.len());
    Some(FindingSentence {
        core: format!("A plan saves {} of the pool's memory", format_percent(mean)),
        rest: format!(
            " on average over {} nets, with the parameters, which every pool holds; most on {}: {} instead of {}.",
            shares.len(),
            most.workload,
            format_bytes(most.planned_total()?),
            format_bytes(most.pool_total()?)
        ),
    })
}

/// Which online allocator comes closest to the best plans, and which is farthest.
fn closest_allocator(from: &Grounds<'_>) -> Option<FindingSentence> {
    let close = pools::allocator_closeness(from.model, from.replays)?;
    let (first, last) = (close.ranked.first()?, close.ranked.last()?);
    let rest = format!(" on {} workloads", close.workloads);
    let last = format!("; {} reserves {} more.", last.0, format_percent(last.1));
    let (name, over) = (&first.0, format_percent(first.1));
    Some(FindingSentence {
        core: format!("The closest pool without a plan, {name}, reserves {over} more than a plan"),
        rest: if close.ranked.len() > 1 { rest + &last } else { rest + "." },
    })
}

/// How the time of the baseline grows, on the family with the largest workload.
fn time_growth(from: &Grounds<'_>) -> Option<FindingSentence> {
    let own = from.model.curves.iter().filter(|curve| curve.label == from.baseline);
    let timed = own.filter_map(|curve| {
        let largest =
            curve.points.iter().filter(|point| point.time_ns.is_some()).max_by_key(|point| point.buffers)?;
        Some((largest, curve.time.filter(|fit| fit.points > 3)?, curve))
    });
    let (largest, fit, curve) = timed.max_by_key(|(largest, _, _)| largest.buffers)?;
    let (buffers, time) = (format_count(largest.buffers), format_nanoseconds(largest.time_ns?));
    Some(FindingSentence {
        core: format!("{} plans {buffers} buffers in {time}", from.baseline),
        rest: format!("; its time grows as n^{:.2} on {}.", fit.exponent, curve.family),
    })
}
