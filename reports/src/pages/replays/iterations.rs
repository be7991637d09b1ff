//! Footprint and time over propagations that differ: sentences of other lengths, say.

use std::collections::BTreeMap;

use planlab_results::replay::{ReplayRow, ReplayStatus};

use super::memory::own_pool;
use super::{Piece, Section, Sources};
use crate::drawing::axis::Axis;
use crate::format::{bytes, count_real, nanoseconds, percent, real};
use crate::paper::{Quantity, published};
use crate::plots::lines::{self, Curve, Join, Point};
use crate::replays::{Case, Place};
use crate::table::{Table, Value};

/// The page; `None` without a sequence.
pub(super) fn section(sources: &Sources<'_>) -> Option<Section> {
    let groups = groups(sources);
    groups.first()?;
    let mut pieces = vec![Piece::Text(
        "Propagations in turn that ask for other sizes or other numbers of buffers each time. A pool fragments from \
         one to the next; profile-guided replays its plan, serves from a pool what does not fit it, and plans anew \
         after a propagation that asked for more."
            .to_owned(),
    )];
    pieces.extend(greatest_reduction(&groups).map(Piece::Text));
    for group in &groups {
        let row = group.cases[0].row();
        pieces.push(Piece::Heading(format!("{}: {} propagations", group.name, group.propagations())));
        pieces.push(Piece::Text(format!("The propagations in their order: {}.", names(row))));
        pieces.extend(footprint(group));
        pieces.extend(time(group));
    }
    pieces.push(Piece::Heading("All allocators".to_owned()));
    pieces.push(Piece::Table(table(&groups)));
    pieces.push(Piece::Table(samples(&groups)));
    let title = "Footprint and time over iterations";
    Some(Section { file: "iterations.html", name: "Iterations", title, pieces })
}

/// Cases that were played under the same conditions, and stand in one figure.
struct Group<'c> {
    /// The workload and the conditions; no two groups have the same.
    name: String,
    cases: Vec<&'c Case>,
}

impl Group<'_> {
    /// The most that a case of it came to.
    fn propagations(&self) -> usize {
        let of = |case: &&Case| case.row().samples.len().max(case.row().sequence.len());
        self.cases.iter().map(of).max().unwrap_or(0)
    }

    /// What a case holds when the last propagation is over, with what is kept over all of them, bytes.
    fn total(case: &Case) -> Option<u64> {
        let row = case.row();
        let held = row.samples.last().filter(|_| row.status == ReplayStatus::Complete)?.reserved?;
        Some(held + row.retained.unwrap_or(0))
    }

    /// The same of the pool of the framework that the workload is of.
    fn pool_total(&self) -> Option<u64> {
        let pool = own_pool(self.cases.first()?.workload().split('/').next()?);
        self.cases.iter().find(|case| case.row().contender == pool).and_then(|case| Self::total(case))
    }

    /// The share of the pool's bytes that a case does without, where it is not the pool itself.
    fn reduction(&self, case: &Case) -> Option<f64> {
        let (ours, pool) = (Self::total(case)?, self.pool_total()?);
        let is_pool = case.row().contender == own_pool(case.workload().split('/').next()?);
        (pool > 0 && !is_pool).then(|| 1.0 - real(ours) / real(pool))
    }
}

/// Under what a sequence was played.
type Subject<'c> = (&'c str, &'c [String], Place, &'c str, u32, Option<u64>);

/// The sequences by what was played, where, in how many threads and with how much memory.
fn groups<'c>(sources: &Sources<'c>) -> Vec<Group<'c>> {
    let mut subjects: BTreeMap<Subject<'c>, Vec<&'c Case>> = BTreeMap::new();
    for case in sources.replays.cases.iter().filter(|case| !case.row().sequence.is_empty()) {
        let row = case.row();
        let subject = (
            row.workload.as_str(),
            row.sequence.as_slice(),
            case.place(),
            row.device_name.as_str(),
            row.threads,
            row.capacity,
        );
        subjects.entry(subject).or_default().push(case);
    }
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let named = |cases: Vec<&'c Case>| {
        let name = conditions(cases[0]);
        let alike = known.entry(name.clone()).or_default();
        *alike += 1;
        // Other sequences of the same workload are told apart by their number.
        let name = if *alike > 1 { format!("{name}, sequence {alike}") } else { name };
        Group { name, cases }
    };
    subjects.into_values().map(named).collect()
}

/// The workload, the place, and what is not usual.
fn conditions(case: &Case) -> String {
    let row = case.row();
    let threads = if row.threads > 1 { format!(", {} threads", row.threads) } else { String::new() };
    let capacity = row.capacity.map_or(String::new(), |capacity| format!(", capacity {}", bytes(capacity)));
    format!("{}, {}{threads}{capacity}", row.workload, case.place().name())
}

/// What the paper says that planning saves at most, beside the most that profile-guided saves here.
fn greatest_reduction(groups: &[Group<'_>]) -> Option<String> {
    let figure = published().iter().find(|figure| figure.of == Quantity::GreatestReduction)?;
    let of = |group: &Group<'_>| {
        let planned = group.cases.iter().find(|case| case.row().contender == "profile-guided")?;
        let is_meant = planned.workload().contains(&figure.workload);
        Some((group.reduction(planned).filter(|_| is_meant)?, group.name.clone()))
    };
    let (most, name) = groups.iter().filter_map(of).max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(format!(
        "The profile-guided paper (arXiv:1804.10001) says that planning takes up to {} less than the pool, and not \
         where; its bars leave seq2seq in training for it. Here profile-guided holds at most {} less than the pool when \
         the last propagation is over, with what is kept in both ({name}): {} the published figure. It depends on the \
         lengths of the sentences, which the paper does not give.",
        figure.published,
        percent(most),
        figure.lies(most),
    ))
}

/// The propagations, each without what all share.
fn names(row: &ReplayRow) -> String {
    let short = |key: &String| key.strip_prefix(&row.workload).unwrap_or(key).trim_matches('/').to_owned();
    row.sequence.iter().map(short).collect::<Vec<_>>().join(", ")
}

fn footprint(group: &Group<'_>) -> Option<Piece> {
    let cases = &group.cases;
    let curves: Vec<Curve> = cases
        .iter()
        .map(|case| {
            curve(case, &|row, at| {
                let reserved = row.samples[at].reserved?;
                Some((real(reserved), bytes(reserved)))
            })
        })
        .collect();
    let (most_x, most_y) =
        (lines::range(&curves, |point| point.x)?.1, lines::range(&curves, |point| point.y)?.1);
    let axes = (Axis::counts("propagation", most_x), Axis::bytes("reserved", most_y));
    let title = format!("Footprint over iterations: {}", group.name);
    let drawing = lines::plot(&title, axes, Join::Lines, &curves)?;
    let most = cases.iter().map(|case| case.row().requested_peak).max()?;
    let kept = cases.iter().find_map(|case| case.row().retained);
    let kept = kept.map_or(String::new(), |kept| {
        format!(" {} more are kept over all iterations and are no part of it.", bytes(kept))
    });
    let caption = format!(
        "What is reserved at the end of each propagation. At most {} are requested at once.{kept}",
        bytes(most)
    );
    Some(Piece::Figure((drawing, caption)))
}

fn time(group: &Group<'_>) -> Option<Piece> {
    let curves: Vec<Curve> = group
        .cases
        .iter()
        .map(|case| {
            curve(case, &|row, at| {
                let sample = &row.samples[at];
                let time = real(sample.wall_ns) / f64::from(sample.propagations.max(1));
                (time > 0.0).then(|| (time, nanoseconds(time)))
            })
        })
        .collect();
    let most_x = lines::range(&curves, |point| point.x)?.1;
    let (low, high) = lines::range(&curves, |point| point.y)?;
    let axes = (Axis::counts("propagation", most_x), Axis::times("time of the propagation", low, high));
    let title = format!("Time over iterations: {}", group.name);
    let drawing = lines::plot(&title, axes, Join::Lines, &curves)?;
    let caption = "Wall time of each propagation, with the plan that is made at its end where one is. The axis is \
                   logarithmic.";
    Some(Piece::Figure((drawing, caption.to_owned())))
}

/// A value, and how people read it.
type Shown = (f64, String);

/// A value of each sample of the first process, where there is one.
fn curve(case: &Case, value: &dyn Fn(&ReplayRow, usize) -> Option<Shown>) -> Curve {
    let row = case.row();
    let point = |at: usize| {
        let (y, shown) = value(row, at)?;
        Some(Point { x: count_real(at + 1), y, tip: format!("propagation {}: {shown}", at + 1) })
    };
    Curve { series: case.series.clone(), points: (0..row.samples.len()).filter_map(point).collect() }
}

/// Every case, with its group.
fn cases<'g, 'c>(groups: &'g [Group<'c>]) -> impl Iterator<Item = (&'g Group<'c>, &'c Case)> {
    groups.iter().flat_map(|group| group.cases.iter().map(move |case| (group, *case)))
}

fn table(groups: &[Group<'_>]) -> Table {
    let mut table = Table::new(
        "iterations",
        "Over all propagations of a sequence. Plans: how many were made, and the time that this took, which is part of \
         the wall time. With what is kept: what is held after the last propagation and over all of them; reduction: \
         against the pool of the workload's own framework, with what is kept in both.",
        &[
            ("workload", "Workload"),
            ("contender", "Contender"),
            ("device", "Device"),
            ("threads", "Threads"),
            ("capacity_bytes", "Capacity"),
            ("status", "Status"),
            ("propagations", "Propagations"),
            ("requested_bytes", "Requested at once"),
            ("reserved_bytes", "Reserved, most"),
            ("first_bytes", "after the first"),
            ("last_bytes", "after the last"),
            ("time_ns", "Time"),
            ("plans", "Plans"),
            ("planning_ns", "Planning"),
            ("planning_share", "of the time"),
            ("total_bytes", "With what is kept"),
            ("reduction", "Reduction"),
        ],
    );
    for (group, case) in cases(groups) {
        let row = case.row();
        let wall: u64 = row.samples.iter().map(|sample| sample.wall_ns).sum();
        let (first, last) = (row.samples.first(), row.samples.last());
        let planning = last.and_then(|sample| sample.planning_ns);
        let end = |sample: Option<&planlab_results::replay::ReplaySample>| {
            Value::or_missing(sample.and_then(|sample| sample.reserved).map(Value::Bytes))
        };
        table.push(vec![
            Value::text(case.workload()),
            Value::text(&case.series.label),
            Value::text(case.place().name()),
            Value::Count(u64::from(row.threads)),
            Value::or_missing(row.capacity.map(Value::Bytes)),
            Value::text(row.status.name()),
            Value::count(row.samples.len()),
            Value::Bytes(row.requested_peak),
            Value::Bytes(row.reserved_peak),
            end(first),
            end(last),
            Value::Nanoseconds(real(wall)),
            Value::or_missing(last.and_then(|sample| sample.plans).map(Value::Count)),
            Value::or_missing(planning.map(|time| Value::Nanoseconds(real(time)))),
            Value::or_missing(
                planning.filter(|_| wall > 0).map(|time| Value::Share(real(time) / real(wall))),
            ),
            Value::or_missing(Group::total(case).map(Value::Bytes)),
            Value::or_missing(group.reduction(case).map(Value::Share)),
        ]);
    }
    table
}

fn samples(groups: &[Group<'_>]) -> Table {
    let mut table = Table::new(
        "iterations-samples",
        "Every propagation. Plans: made so far.",
        &[
            ("workload", "Workload and conditions"),
            ("contender", "Contender"),
            ("propagation", "Propagation"),
            ("trace", "Trace"),
            ("reserved_bytes", "Reserved"),
            ("time_ns", "Time"),
            ("plans", "Plans"),
            ("planning_ns", "Planning so far"),
        ],
    );
    for (group, case) in cases(groups) {
        let row = case.row();
        for (at, sample) in row.samples.iter().enumerate() {
            let trace = row.sequence.get(at % row.sequence.len().max(1));
            table.push(vec![
                Value::text(&group.name),
                Value::text(&case.series.label),
                Value::count(at + 1),
                Value::or_missing(trace.map(Value::text)),
                Value::or_missing(sample.reserved.map(Value::Bytes)),
                Value::Nanoseconds(real(sample.wall_ns) / f64::from(sample.propagations.max(1))),
                Value::or_missing(sample.plans.map(Value::Count)),
                Value::or_missing(sample.planning_ns.map(|time| Value::Nanoseconds(real(time)))),
            ]);
        }
    }
    table
}
