//! The tables: ratios at a capacity, heights and bounds where the height is minimised.

use std::fmt::Write;

use planlab_results::statistics::shifted_geometric_mean;

use super::{Field, Figure, Subject, Variant};
use crate::markdown::{csv, table};
use crate::shell::quantity;

/// One planner over another, on all subjects with a capacity.
#[derive(Debug)]
pub(crate) struct Pair<'f> {
    of: Variant,
    over: Variant,
    lines: Vec<Line<'f>>,
}

#[derive(Debug)]
struct Line<'f> {
    subject: &'f Subject,
    of: Option<&'f Figure<'f>>,
    over: Option<&'f Figure<'f>>,
}

/// Which of the other planner's times is meant.
#[derive(Clone, Copy, Debug)]
enum Clock {
    Wall,
    Own,
}

impl Clock {
    fn of(self, figure: &Figure<'_>) -> Option<f64> {
        match self {
            Self::Wall => figure.seconds(),
            Self::Own => figure.own_seconds(),
        }
    }
}

/// A mean of ratios over the subjects that the other planner answers.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Mean {
    value: Option<f64>,
    subjects: usize,
    /// Subjects among them that only the other planner answers: its time is set against our limit.
    ours_missing: usize,
}

impl<'f> Pair<'f> {
    /// Every pair of the variants that the globs name.
    pub(crate) fn all(field: &'f Field<'_>, of: &[String], over: &[String]) -> Vec<Self> {
        let (of, over) = (field.variants(of, true), field.variants(over, true));
        let pairs = of.iter().flat_map(|of| over.iter().map(move |over| (of, over)));
        pairs.filter(|(of, over)| of != over).map(|(of, over)| Self::new(field, of, over)).collect()
    }

    fn new(field: &'f Field<'_>, of: &Variant, over: &Variant) -> Self {
        let subjects = field.figures.iter().filter(|(subject, _)| subject.capacity.is_some());
        let line =
            |(subject, figures): (&'f Subject, &'f std::collections::BTreeMap<Variant, Figure<'_>>)| Line {
                subject,
                of: figures.get(of),
                over: figures.get(over),
            };
        let lines = subjects.map(line).filter(|line| line.of.is_some() || line.over.is_some()).collect();
        Self { of: of.clone(), over: over.clone(), lines }
    }

    fn mean(&self, clock: Clock) -> Mean {
        let mut ours_missing = 0;
        let mut ratios = Vec::new();
        for line in &self.lines {
            let (Some(of), Some(theirs)) = (line.of, line.over.and_then(|over| clock.of(over))) else {
                continue;
            };
            let ours = of.seconds().or_else(|| {
                ours_missing += 1;
                of.limit_seconds()
            });
            ratios.push(ours.map(|ours| ours / theirs));
        }
        let subjects = ratios.len();
        Mean { value: shifted_geometric_mean(ratios, 0.0).mean, subjects, ours_missing }
    }

    fn markdown(&self) -> String {
        let header = [
            "instance",
            "capacity",
            "limit",
            "ours",
            "ends",
            "theirs",
            "ends",
            "ratio",
            "own clock",
            "ratio",
        ];
        let rows: Vec<Vec<String>> = self.lines.iter().map(Line::cells).collect();
        let (wall, own) = (self.mean(Clock::Wall), self.mean(Clock::Own));
        format!(
            "### {} over {}\n\n{}\nGeometric mean of the ratios: {}; by their own clock {}.\n\n",
            self.of.name(),
            self.over.name(),
            table(&header, &rows),
            wall.text(),
            own.text()
        )
    }

    fn csv_rows(&self) -> impl Iterator<Item = Vec<String>> {
        self.lines.iter().map(|line| {
            let subject = line.subject;
            let height = |figure: Option<&Figure<'_>>| number(figure.and_then(Figure::height));
            vec![
                subject.workload.clone(),
                number(subject.capacity),
                seconds_plain(subject.wall_ns.map(as_seconds)),
                self.of.name(),
                self.over.name(),
                seconds_plain(line.of.and_then(Figure::seconds)),
                line.of.map_or_else(not_run, Figure::word),
                height(line.of),
                seconds_plain(line.over.and_then(Figure::seconds)),
                seconds_plain(line.over.and_then(Figure::own_seconds)),
                line.over.map_or_else(not_run, Figure::word),
                height(line.over),
                ratio_plain(line.ratio(Clock::Wall)),
                ratio_plain(line.ratio(Clock::Own)),
            ]
        })
    }
}

impl Mean {
    fn text(self) -> String {
        let Some(value) = self.value else {
            return "none, as they answer nothing that ours was asked".to_owned();
        };
        let over = format!("over {} instances that they answer", self.subjects);
        match self.ours_missing {
            0 => format!("**{value:.3}** {over}"),
            missing => format!(
                "**at least {value:.3}** {over}, {missing} of which ours does not (counted at its limit)"
            ),
        }
    }
}

impl Line<'_> {
    fn ratio(&self, clock: Clock) -> Option<f64> {
        Some(self.of?.seconds()? / clock.of(self.over?)?)
    }

    fn cells(&self) -> Vec<String> {
        let time = |figure: Option<&Figure<'_>>| shown(figure.and_then(Figure::seconds));
        let word = |figure: Option<&Figure<'_>>| figure.map_or_else(not_run, Figure::word);
        let ratio = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"));
        vec![
            self.subject.workload.clone(),
            number(self.subject.capacity),
            shown(self.subject.wall_ns.map(as_seconds)),
            time(self.of),
            word(self.of),
            time(self.over),
            word(self.over),
            ratio(self.ratio(Clock::Wall)),
            shown(self.over.and_then(Figure::own_seconds)),
            ratio(self.ratio(Clock::Own)),
        ]
    }
}

fn not_run() -> String {
    "not run".to_owned()
}

fn number(value: Option<u64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn shown(seconds: Option<f64>) -> String {
    let duration = seconds.and_then(|seconds| std::time::Duration::try_from_secs_f64(seconds).ok());
    duration.map_or_else(|| "-".to_owned(), |duration| quantity::seconds(quantity::nanoseconds(duration)))
}

fn seconds_plain(seconds: Option<f64>) -> String {
    seconds.map_or_else(String::new, |seconds| format!("{seconds:.6}"))
}

fn ratio_plain(ratio: Option<f64>) -> String {
    ratio.map_or_else(String::new, |ratio| format!("{ratio:.6}"))
}

#[expect(clippy::cast_precision_loss, reason = "seconds as a number")]
fn as_seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Every pair's lines.
pub(crate) fn capacity_csv(pairs: &[Pair<'_>]) -> String {
    let header = [
        "workload",
        "capacity",
        "limit_s",
        "of",
        "over",
        "of_s",
        "of_ends",
        "of_height",
        "over_s",
        "over_own_clock_s",
        "over_ends",
        "over_height",
        "ratio",
        "ratio_own_clock",
    ];
    let rows: Vec<Vec<String>> = pairs.iter().flat_map(Pair::csv_rows).collect();
    csv(&header, &rows)
}

const MINIMISED: [&str; 13] = [
    "workload",
    "buffers",
    "limit",
    "planner",
    "height",
    "height_over_load",
    "bound",
    "evidence",
    "proven",
    "time",
    "best_after",
    "own_clock",
    "peak_memory",
];

/// A row for each planner on each subject without a capacity.
pub(crate) fn minimised_csv(field: &Field<'_>) -> String {
    let mut rows = Vec::new();
    for (subject, figures) in field.figures.iter().filter(|(subject, _)| subject.capacity.is_none()) {
        for (variant, figure) in figures {
            let (bound, evidence) = figure.bound();
            rows.push(vec![
                subject.workload.clone(),
                subject.buffers.to_string(),
                seconds_plain(subject.wall_ns.map(as_seconds)),
                variant.name(),
                number(figure.height()),
                over_load(figure, subject, 6),
                bound.to_string(),
                evidence.to_owned(),
                figure.is_proven().to_string(),
                seconds_plain(figure.spent_seconds()),
                seconds_plain(figure.best_after_seconds()),
                seconds_plain(figure.own_seconds()),
                number(figure.peak_rss_bytes()),
            ]);
        }
    }
    csv(&MINIMISED, &rows)
}

#[expect(clippy::cast_precision_loss, reason = "a ratio to read")]
fn over_load(figure: &Figure<'_>, subject: &Subject, digits: usize) -> String {
    let ratio =
        figure.height().filter(|_| subject.load > 0).map(|height| height as f64 / subject.load as f64);
    ratio.map_or_else(String::new, |ratio| format!("{ratio:.digits$}"))
}

/// The page with all tables. `command` is the command line that makes it; `machine` describes where the rows
/// come from.
pub(crate) fn page(
    field: &Field<'_>,
    pairs: &[Pair<'_>],
    (of, over): (&[String], &[String]),
    command: &str,
    machine: &str,
) -> String {
    let mut text = format!("# Planners side by side\n\nMade by `{command}`.\n{machine}\n\n{WHAT}\n");
    let at_capacity = field.figures.keys().any(|subject| subject.capacity.is_some());
    text += &absent(field, &[of, over].concat());
    if at_capacity {
        let _ = write!(text, "## At a capacity\n\n{}", summary(pairs));
        pairs.iter().for_each(|pair| text += &pair.markdown());
    }
    if field.figures.keys().any(|subject| subject.capacity.is_none()) {
        text += "## Minimised\n\n";
        text += &minimised(field);
    }
    text
}

const WHAT: &str = "\
*Ours* is the wall time of the whole run, from the parsed instance to the verified plan (bounds and verification
included). *Theirs* is the wall time of the other planner's process: its start, reading the instance, planning,
writing the plan; *own clock* is the time that it prints itself, which has only its planning. Times are medians of
the repetitions, an unanswered one counting as endless; repetitions of all planners take turns on one machine, each
in a process of its own. An answer is a plan that fits, verified, or a proof that none does. What the other planner
claims without a plan proves nothing.
";

fn summary(pairs: &[Pair<'_>]) -> String {
    let row = |pair: &Pair<'_>| {
        let answers = |figure: fn(&Line<'_>) -> bool| pair.lines.iter().filter(|line| figure(line)).count();
        let (wall, own) = (pair.mean(Clock::Wall), pair.mean(Clock::Own));
        let mean = |mean: Mean| {
            let mark = if mean.ours_missing > 0 { ">= " } else { "" };
            mean.value.map_or_else(|| "-".to_owned(), |value| format!("{mark}{value:.3}"))
        };
        vec![
            pair.of.name(),
            pair.over.name(),
            pair.lines.len().to_string(),
            answers(|line| line.of.is_some_and(|figure| figure.seconds().is_some())).to_string(),
            answers(|line| line.over.is_some_and(|figure| figure.seconds().is_some())).to_string(),
            mean(wall),
            mean(own),
        ]
    };
    let header =
        ["ours", "over", "cells", "ours answers", "they answer", "mean ratio", "mean ratio, own clock"];
    let rows: Vec<Vec<String>> = pairs.iter().map(row).collect();
    format!("{}\n", table(&header, &rows))
}

/// A line for each name that has no rows.
fn absent(field: &Field<'_>, globs: &[String]) -> String {
    let missing = globs.iter().filter(|pattern| !field.has(pattern));
    let lines: String = missing.map(|pattern| format!("`{pattern}`: not run.\n")).collect();
    if lines.is_empty() { lines } else { format!("{lines}\n") }
}

fn minimised(field: &Field<'_>) -> String {
    let mut families: Vec<(&str, Vec<Vec<String>>)> = Vec::new();
    for (subject, figures) in field.figures.iter().filter(|(subject, _)| subject.capacity.is_none()) {
        if families.last().is_none_or(|(family, _)| *family != subject.family) {
            families.push((&subject.family, Vec::new()));
        }
        let Some((_, rows)) = families.last_mut() else { continue };
        rows.extend(figures.iter().map(|(variant, figure)| minimised_row(subject, variant, figure)));
    }
    let header = [
        "instance",
        "buffers",
        "limit",
        "planner",
        "height",
        "/ load",
        "bound",
        "proven",
        "time",
        "best after",
        "peak memory",
    ];
    families.iter().map(|(family, rows)| format!("### {family}\n\n{}\n", table(&header, rows))).collect()
}

fn minimised_row(subject: &Subject, variant: &Variant, figure: &Figure<'_>) -> Vec<String> {
    let (bound, evidence) = figure.bound();
    let mib = |bytes: u64| format!("{} MiB", bytes.div_ceil(1 << 20));
    vec![
        subject.workload.clone(),
        subject.buffers.to_string(),
        shown(subject.wall_ns.map(as_seconds)),
        variant.name(),
        figure.height().map_or_else(|| figure.word(), |height| height.to_string()),
        over_load(figure, subject, 4),
        format!("{bound} ({evidence})"),
        if figure.is_proven() { "yes" } else { "no" }.to_owned(),
        shown(figure.spent_seconds()),
        shown(figure.best_after_seconds()),
        figure.peak_rss_bytes().map_or_else(|| "-".to_owned(), mib),
    ]
}
