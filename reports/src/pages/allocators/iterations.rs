//! The page on propagations that differ, such as sentences of different lengths: footprint and time.

use std::collections::BTreeMap;

use planlab_dsa::performance::{End, Sample};
use planlab_results::replay::ReplayRow;

use crate::data::nets::net_memory::own_pool;
use crate::data::papers::paper::{Quantity, published_figures};
use crate::data::replays::Case;
use crate::data::rows::group_by;
use crate::figures::Drawing;
use crate::figures::coord::Axis;
use crate::figures::plots::curves::{self, Curve, HEIGHT, Point};
use crate::format::{as_real, count_real, format_bytes, format_nanoseconds, format_percent};
use crate::site::Site;
use crate::site::page::{Menu, Page, Piece};
use planlab_results::table::{CellValue, Table, columns};

/// The page; `None` without a sequence.
pub(crate) fn page(site: &Site<'_>) -> Option<Page> {
    let groups = sequence_groups(site);
    groups.first()?;
    let mut pieces = vec![Piece::note(
        "Consecutive propagations that request other sizes or other numbers of buffers each time. A pool \
         fragments from one to the next. profile-guided replays its plan, serves from a pool what the plan does \
         not cover, and plans again after a propagation that requested more.",
    )];
    pieces.extend(greatest_reduction(&groups).map(Piece::note));
    for group in &groups {
        let row = group.cases[0].summary_row();
        pieces.push(Piece::heading(format!("{}: {} propagations", group.name, group.most_propagations())));
        pieces.push(Piece::note(format!("The propagations in their order: {}.", propagation_names(row))));
        pieces.extend(footprint_piece(group, &MOST));
        if group.has_ends_alone() {
            pieces.extend(footprint_piece(group, &END));
        }
        pieces.extend(time_piece(group));
    }
    pieces.push(Piece::heading("All allocators"));
    pieces.push(Piece::Table(iteration_table(&groups)));
    pieces.push(Piece::Table(sample_table(&groups)));
    let title = "Footprint and time over iterations";
    let page = Page::new("iterations.html", title).in_menu(Menu::Allocators, "What if iterations differ?");
    Some(page.with(pieces))
}

/// When the held bytes are measured: the same moment for all cases of a comparison.
struct HeldMoment {
    name: &'static str,
    title: &'static str,
    meaning: &'static str,
    of: fn(&Sample) -> Option<u64>,
}

/// At the peak, from the beginning of a propagation to its end.
const MOST: HeldMoment = HeldMoment {
    name: "at most",
    title: "Footprint over iterations",
    meaning: "The most that is held at once in each propagation.",
    of: |sample| sample.reserved_peak,
};

/// At the end, after the memory that a new plan replaces was given back.
const END: HeldMoment = HeldMoment {
    name: "at the end",
    title: "Footprint at the end of iterations",
    meaning: "What is reserved when each propagation is over. On real memory that is after a plan was made and the memory \
              that it replaces was returned; the plan's own memory may only be taken with the next request. The most that \
              is held at once is not known for all contenders.",
    of: |sample| sample.reserved,
};

/// The bytes that a case holds in the last propagation.
fn last_held(case: &Case, held: &HeldMoment) -> Option<u64> {
    let row = case.summary_row();
    (held.of)(row.performance.samples.last().filter(|_| row.performance.status == End::Complete)?)
}

/// The same plus the bytes kept over all propagations.
fn total_held(case: &Case, held: &HeldMoment) -> Option<u64> {
    Some(last_held(case, held)? + case.summary_row().retained.unwrap_or(0))
}

/// Cases with the same conditions, in one figure.
struct Group<'c> {
    /// The workload and the conditions; unique among the groups.
    name: String,
    cases: Vec<&'c Case>,
}

impl<'c> Group<'c> {
    fn most_propagations(&self) -> usize {
        let of = |case: &&Case| {
            case.summary_row().performance.samples.len().max(case.summary_row().sequence.len())
        };
        self.cases.iter().map(of).max().unwrap_or(0)
    }

    /// Whether some case only has measurements at the ends of propagations.
    fn has_ends_alone(&self) -> bool {
        let is_end = |sample: &Sample| sample.reserved.is_some() && sample.reserved_peak.is_none();
        self.cases.iter().any(|case| case.summary_row().performance.samples.iter().any(is_end))
    }

    /// The case of the pool of the workload's framework.
    fn pool_case(&self) -> Option<&'c Case> {
        let pool = own_pool(self.cases.first()?.workload().split('/').next()?);
        self.cases.iter().copied().find(|case| case.summary_row().contender == pool)
    }

    /// When a case is measured: at the same moment as the pool, if there is one.
    fn held_moment(&self, case: &Case) -> &'static HeldMoment {
        let is_known = |case: &Case| last_held(case, &MOST).is_some();
        if is_known(case) && self.pool_case().is_none_or(is_known) { &MOST } else { &END }
    }

    /// The share of the pool's bytes that a case saves, unless it is the pool itself.
    fn share_saved(&self, case: &Case) -> Option<f64> {
        let (held, pool) = (self.held_moment(case), self.pool_case()?);
        let (ours, pools) = (total_held(case, held)?, total_held(pool, held)?);
        let is_pool = case.summary_row().contender == pool.summary_row().contender;
        (pools > 0 && !is_pool).then(|| 1.0 - as_real(ours) / as_real(pools))
    }
}

/// The sequences by workload, place, number of threads and memory.
fn sequence_groups<'c>(site: &Site<'c>) -> Vec<Group<'c>> {
    let sequences = site.replays.cases.iter().filter(|case| !case.summary_row().sequence.is_empty());
    let subjects = group_by(sequences, |case| {
        let row = case.summary_row();
        (row.workload.as_str(), row.sequence.as_slice(), &case.place, row.threads, row.capacity)
    });
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let named = |cases: Vec<&'c Case>| {
        let name = case_conditions(cases[0]);
        let alike = known.entry(name.clone()).or_default();
        *alike += 1;
        // Other sequences of the same workload are distinguished by a number.
        let name = if *alike > 1 { format!("{name}, sequence {alike}") } else { name };
        Group { name, cases }
    };
    subjects.into_values().map(named).collect()
}

/// The workload, the place, and unusual conditions.
fn case_conditions(case: &Case) -> String {
    let row = case.summary_row();
    let threads = if row.threads > 1 { format!(", {} threads", row.threads) } else { String::new() };
    let capacity =
        row.capacity.map_or(String::new(), |capacity| format!(", capacity {}", format_bytes(capacity)));
    format!("{}, {}{threads}{capacity}", row.workload, case.place.name())
}

/// The largest saving that the paper claims for planning, and the largest of profile-guided allocation here.
fn greatest_reduction(groups: &[Group<'_>]) -> Option<String> {
    let figure = published_figures().iter().find(|figure| figure.of == Quantity::GreatestReduction)?;
    let of = |group: &Group<'_>| {
        let planned = group.cases.iter().find(|case| case.summary_row().contender == "profile-guided")?;
        let is_meant = planned.workload().contains(&figure.workload);
        Some((group.share_saved(planned).filter(|_| is_meant)?, group.name.clone()))
    };
    let (most, name) = groups.iter().filter_map(of).max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(format!(
        "The profile-guided paper (arXiv:1804.10001) says that planning takes up to {} less than the pool, but \
         not for which net; its bars leave only seq2seq in training. Here profile-guided holds at most {} less than the pool in \
         the last propagation, with what is kept in both ({name}): {} the published figure. It depends on the \
         lengths of the sentences, which the paper does not give.",
        figure.published,
        format_percent(most),
        figure.relative_position(most),
    ))
}

/// The names of the propagations, without their common part.
fn propagation_names(row: &ReplayRow) -> String {
    let short =
        |key: &String| key.strip_prefix(row.workload.as_str()).unwrap_or(key).trim_matches('/').to_owned();
    row.sequence.iter().map(short).collect::<Vec<_>>().join(", ")
}

fn footprint_piece(group: &Group<'_>, held: &HeldMoment) -> Option<Piece> {
    let y = |_, most| Axis::bytes("reserved", most);
    let drawing = chart(group, held.title, y, |sample| {
        let reserved = (held.of)(sample)?;
        Some((as_real(reserved), format_bytes(reserved)))
    })?;
    let most = group.cases.iter().map(|case| case.summary_row().requested_peak).max()?;
    let kept = group.cases.iter().find_map(|case| case.summary_row().retained);
    let kept = kept.map_or(String::new(), |kept| {
        format!(" {} more are kept over all iterations and are not included.", format_bytes(kept))
    });
    let caption = format!("{} At most {} are requested at once.{kept}", held.meaning, format_bytes(most));
    Some(Piece::figure(drawing, caption))
}

fn time_piece(group: &Group<'_>) -> Option<Piece> {
    let y = |low, high| Axis::times("time of the propagation", low, high);
    let drawing = chart(group, "Time over iterations", y, |sample| {
        let time = as_real(sample.wall_ns) / f64::from(sample.propagations.max(1));
        (time > 0.0).then(|| (time, format_nanoseconds(time)))
    })?;
    let caption = "Wall time of each propagation, including the time of a plan that is made at its end. The axis is \
                   logarithmic.";
    Some(Piece::figure(drawing, caption))
}

/// A value, and its text for people.
type Shown = (f64, String);

/// A curve for each case: a value for each sample that has one, of the first process that was served.
fn chart(
    group: &Group<'_>,
    title: &str,
    y: fn(f64, f64) -> Axis,
    value: impl Fn(&Sample) -> Option<Shown>,
) -> Option<Drawing> {
    let curve = |case: &&Case| {
        let point = |(at, sample): (usize, &Sample)| {
            let (y, shown) = value(sample)?;
            let tip = format!("propagation {}: {shown}", at + 1);
            Some(Point::new(&case.series, count_real(at + 1), y, &tip))
        };
        let samples = case.summary_row().performance.samples.iter().enumerate();
        Curve::joined(case.series.clone(), samples.filter_map(point).collect())
    };
    let curves: Vec<Curve> = group.cases.iter().map(curve).collect();
    let ((_, last), (low, high)) = curves::ranges(&curves)?;
    let axes = (Axis::counts("propagation", last), y(low, high));
    curves::plot(&format!("{title}: {}", group.name), HEIGHT, axes, curves)
}

fn all_cases<'g, 'c>(groups: &'g [Group<'c>]) -> impl Iterator<Item = (&'g Group<'c>, &'c Case)> {
    groups.iter().flat_map(|group| group.cases.iter().map(move |case| (group, *case)))
}

fn iteration_table(groups: &[Group<'_>]) -> Table {
    Table::from_rows(
        "iterations",
        "Over all propagations of a sequence. Plans: how many were made, and the time that this took, which is part of \
         the wall time. Planned: the share of all requests that a plan served. At most: held at once in the \
         first and in the last propagation, if known; at the end: reserved when they were over. With what is \
         kept: the bytes of the last propagation (the column behind says which of the two) and those kept over \
         all. Reduction: against the pool of the workload's own framework, both measured in the same way and \
         with what is kept.",
        all_cases(groups),
        columns!(|(group, case)| {
            let row = case.summary_row();
            let wall: u64 = row.performance.samples.iter().map(|sample| sample.wall_ns).sum();
            let (first, last) = (row.performance.samples.first(), row.performance.samples.last());
            let planning = last.and_then(|sample| sample.planning_ns);
            let plans = last.and_then(|sample| sample.plans);
            let held =
                |sample: Option<&Sample>, held: &HeldMoment| CellValue::bytes(sample.and_then(held.of));
            let measure = group.held_moment(case);
            let planning_share = planning.filter(|_| wall > 0).map(|time| as_real(time) / as_real(wall));
            [
                ("workload", "Workload", CellValue::text(case.workload())),
                ("contender", "Contender", CellValue::text(&case.series.label)),
                ("device", "Device", CellValue::text(case.place.name())),
                ("threads", "Threads", CellValue::Count(u64::from(row.threads))),
                ("capacity_bytes", "Capacity", CellValue::bytes(row.capacity)),
                ("status", "Status", CellValue::text(row.performance.status.name())),
                ("propagations", "Propagations", CellValue::count(row.performance.samples.len())),
                ("requested_bytes", "Requested at once", CellValue::Bytes(row.requested_peak)),
                ("reserved_bytes", "Reserved, most", CellValue::Bytes(row.performance.reserved_peak)),
                ("first_most_bytes", "at most in the first", held(first, &MOST)),
                ("last_most_bytes", "in the last", held(last, &MOST)),
                ("first_bytes", "at the end of the first", held(first, &END)),
                ("last_bytes", "of the last", held(last, &END)),
                ("time_ns", "Time", CellValue::Nanoseconds(as_real(wall))),
                ("plans", "Plans", CellValue::or_missing(plans.map(CellValue::Count))),
                ("planning_ns", "Planning", CellValue::nanoseconds(planning.map(as_real))),
                ("planning_share", "of the time", CellValue::share(planning_share)),
                ("planned_share", "Planned", CellValue::share(last.and_then(planned_share))),
                ("total_bytes", "With what is kept", CellValue::bytes(total_held(case, measure))),
                ("held", "held", CellValue::text(measure.name)),
                ("reduction", "Reduction", CellValue::share(group.share_saved(case))),
            ]
        }),
    )
}

/// The share of requests served from a plan, up to a sample.
fn planned_share(sample: &Sample) -> Option<f64> {
    let (planned, missed) = (as_real(sample.planned?), as_real(sample.missed?));
    (planned + missed > 0.0).then(|| planned / (planned + missed))
}

fn sample_table(groups: &[Group<'_>]) -> Table {
    let samples = all_cases(groups).flat_map(|(group, case)| {
        let samples = case.summary_row().performance.samples.iter().enumerate();
        samples.map(move |(at, sample)| (group, case, at, sample))
    });
    Table::from_rows(
        "iterations-samples",
        "Every propagation. Plans: made so far; planned and missed: requests that a plan served, and requests \
         that no plan served.",
        samples,
        columns!(|(group, case, at, sample)| {
            let sequence = &case.summary_row().sequence;
            let trace = sequence.get(at % sequence.len().max(1));
            let time = as_real(sample.wall_ns) / f64::from(sample.propagations.max(1));
            let count = |number: Option<u64>| CellValue::or_missing(number.map(CellValue::Count));
            [
                ("workload", "Workload and conditions", CellValue::text(&group.name)),
                ("contender", "Contender", CellValue::text(&case.series.label)),
                ("propagation", "Propagation", CellValue::count(at + 1)),
                ("trace", "Trace", CellValue::or_missing(trace.map(CellValue::text))),
                ("most_bytes", "Held at most", CellValue::bytes(sample.reserved_peak)),
                ("reserved_bytes", "at the end", CellValue::bytes(sample.reserved)),
                ("time_ns", "Time", CellValue::Nanoseconds(time)),
                ("plans", "Plans", count(sample.plans)),
                ("planning_ns", "Planning so far", CellValue::nanoseconds(sample.planning_ns.map(as_real))),
                ("planned", "Planned so far", count(sample.planned)),
                ("missed", "Missed so far", count(sample.missed)),
            ]
        }),
    )
}
