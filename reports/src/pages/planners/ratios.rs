//! The page that compares planners: how fast they are, and how low their plans.

use std::collections::BTreeSet;
use std::time::Duration;

use planlab_results::Record;
use planlab_results::table::Table;

use crate::data::planners::ratios::{Field, Figure, Line, Mean, Named, Pair, Subject, Variant};
use crate::format::{as_real, format_seconds};
use crate::site::output::markdown::page_files;
use crate::site::page::{Page, Piece, Text};

/// The rows of one bench, planner by planner, with the times of the planners `of` divided by those of the planners `over`:
/// the number of pairs of planners with rows at a capacity; then name and content of each file, the page in Markdown
/// before the tables of all figures. `command` is the command that makes them.
#[must_use]
pub fn ratio_files(
    rows: &[Record],
    of: &[Named],
    over: &[Named],
    command: &str,
) -> (usize, Vec<(String, String)>) {
    let field = Field::new(rows.iter());
    let pairs = Pair::all_pairs(&field, of, over);
    let made = Text::from("Made by ").code(command).plain(format!(".\n{}", machine_text(rows)));
    let mut page = Page::new("ratios.md", "Planners side by side")
        .with([Piece::text(made), Piece::text(Text::from_marked(WHAT))])
        .with(absent(of.iter().chain(over)));
    if field.figures.keys().any(|subject| subject.capacity.is_some()) {
        page = page
            .with([Piece::heading("At a capacity"), Piece::Table(summary_table(&pairs))])
            .with(pairs.iter().flat_map(pair_pieces));
    }
    if minimised_of(&field).next().is_some() {
        page = page.with([Piece::heading("Minimised")]).with(minimised_tables(&field));
    }
    page.files = vec![all_pairs(&pairs), all_minimised(&field)];
    (pairs.len(), page_files(&page))
}

/// One line for each name without rows.
fn absent<'n>(names: impl Iterator<Item = &'n Named>) -> Option<Piece> {
    let absent: Vec<&Named> = names.filter(|name| name.planners.is_empty()).collect();
    let line = |text: Text, name: &&Named| text.code(&name.name).plain(": not run.\n");
    (!absent.is_empty()).then(|| Piece::text(absent.iter().fold(Text::default(), line)))
}

const WHAT: &str = "\
*Ours* is the wall time of the whole run, from the parsed instance to the verified plan (bounds and verification
included). *Theirs* is the wall time of the other planner's process: its start, reading the instance, planning,
writing the plan; *own clock* is the time that it prints itself, which has only its planning. Times are medians of
the repetitions, an unanswered one counting as endless; repetitions of all planners take turns on one machine, each
in a process of its own. An answer is a plan that fits, verified, or a proof that none does. What the other planner
claims without a plan proves nothing.";

fn machine_text(rows: &[Record]) -> String {
    let all = |part: fn(&Record) -> String| {
        let parts: BTreeSet<String> = rows.iter().map(part).collect();
        parts.into_iter().collect::<Vec<_>>().join("; ")
    };
    let load = rows.iter().map(|row| row.provenance.load_average_milli);
    let (least, most) = (load.clone().min().unwrap_or(0), load.max().unwrap_or(0));
    format!(
        "Machine: {}. Kernel {}. Build: commit {}, {}. Cells at a time: {}. Load average when cells began: \
         {}.{:02} to {}.{:02}.",
        all(|row| format!("{} cores of {}", row.provenance.cores, row.provenance.cpu)),
        all(|row| row.provenance.kernel.clone()),
        all(|row| {
            let dirty = if row.provenance.git_dirty { " with changes" } else { "" };
            format!("{}{dirty}", row.provenance.git_commit)
        }),
        all(|row| row.provenance.rustc.clone()),
        all(|row| row.provenance.concurrency.to_string()),
        least / 1000,
        least % 1000 / 10,
        most / 1000,
        most % 1000 / 10,
    )
}

fn summary_table(pairs: &[Pair<'_>]) -> Table {
    let titles =
        ["ours", "over", "cells", "ours answers", "they answer", "mean ratio", "mean ratio, own clock"];
    let mut table = Table::new(&titles);
    for pair in pairs {
        let answers = |figure: fn(&Line<'_>) -> Option<f64>| {
            pair.lines.iter().filter(|line| figure(line).is_some()).count().to_string()
        };
        let mean = |mean: Mean| {
            let mark = if mean.ours_missing > 0 { ">= " } else { "" };
            mean.value.map_or_else(em_dash, |value| format!("{mark}{value:.3}"))
        };
        table.push_texts([
            pair.of.name(),
            pair.over.name(),
            pair.lines.len().to_string(),
            answers(|line| line.of?.median_seconds()),
            answers(|line| line.over?.median_seconds()),
            mean(pair.mean_ratio(Figure::median_seconds)),
            mean(pair.mean_ratio(Figure::own_seconds)),
        ]);
    }
    table
}

/// A pair on all its subjects.
fn pair_pieces(pair: &Pair<'_>) -> [Piece; 3] {
    let titles =
        ["instance", "capacity", "limit", "ours", "ends", "theirs", "ends", "ratio", "own clock", "ratio"];
    let mut table = Table::new(&titles);
    let time = |figure: Option<&Figure<'_>>| time_text(figure.and_then(Figure::median_seconds));
    let ratio = |value: Option<f64>| value.map_or_else(em_dash, |value| format!("{value:.3}"));
    for line in &pair.lines {
        table.push_texts([
            line.subject.workload.clone(),
            whole_text(line.subject.capacity),
            time_text(line.subject.wall_ns.map(as_seconds)),
            time(line.of),
            outcome_word(line.of),
            time(line.over),
            outcome_word(line.over),
            ratio(line.time_ratio(Figure::median_seconds)),
            time_text(line.over.and_then(Figure::own_seconds)),
            ratio(line.time_ratio(Figure::own_seconds)),
        ]);
    }
    let wall =
        append_mean(Text::from("Geometric mean of the ratios: "), pair.mean_ratio(Figure::median_seconds));
    let means =
        append_mean(wall.plain("; by their own clock "), pair.mean_ratio(Figure::own_seconds)).plain(".");
    let title = format!("{} over {}", pair.of.name(), pair.over.name());
    [Piece::Subheading(title), Piece::Table(table), Piece::text(means)]
}

fn append_mean(text: Text, mean: Mean) -> Text {
    let Some(value) = mean.value else {
        return text.plain("none, as they answer nothing that ours was asked");
    };
    let over = format!(" over {} instances that they answer", mean.subjects);
    match mean.ours_missing {
        0 => text.strong(format!("{value:.3}")).plain(over),
        missing => text
            .strong(format!("at least {value:.3}"))
            .plain(format!("{over}, but ours fails on {missing} of them (counted at its limit)")),
    }
}

type Minimised<'f> = (&'f Subject, &'f Variant, &'f Figure<'f>);

/// Every planner on each subject without a capacity.
fn minimised_of<'f>(field: &'f Field<'_>) -> impl Iterator<Item = Minimised<'f>> {
    let subjects = field.figures.iter().filter(|(subject, _)| subject.capacity.is_none());
    subjects.flat_map(|(subject, figures)| {
        figures.iter().map(move |(variant, figure)| (subject, variant, figure))
    })
}

/// One table per family.
fn minimised_tables(field: &Field<'_>) -> Vec<Piece> {
    let titles =
        "instance, buffers, limit, planner, height, / load, bound, proven, time, best after, peak memory";
    let titles: Vec<&str> = titles.split(", ").collect();
    let rows: Vec<Minimised<'_>> = minimised_of(field).collect();
    let mut pieces = Vec::new();
    for family in rows.chunk_by(|a, b| a.0.family == b.0.family) {
        let mut table = Table::new(&titles);
        family.iter().for_each(|row| table.push_texts(minimised_row(*row)));
        pieces.extend([Piece::Subheading(family[0].0.family.clone()), Piece::Table(table)]);
    }
    pieces
}

fn minimised_row((subject, variant, figure): Minimised<'_>) -> [String; 11] {
    let (bound, evidence) = figure.middle_bound();
    let mib = |bytes: u64| format!("{} MiB", bytes.div_ceil(1 << 20));
    [
        subject.workload.clone(),
        subject.buffers.to_string(),
        time_text(subject.wall_ns.map(as_seconds)),
        variant.name(),
        figure.middle_height().map_or_else(|| figure.outcome_word(), |height| height.to_string()),
        over_load(figure, subject, 4),
        format!("{bound} ({evidence})"),
        if figure.is_proven() { "yes" } else { "no" }.to_owned(),
        time_text(figure.spent_seconds()),
        time_text(figure.best_after_seconds()),
        figure.peak_rss_bytes().map_or_else(em_dash, mib),
    ]
}

fn all_pairs(pairs: &[Pair<'_>]) -> Table {
    let keys = "workload capacity limit_s of over of_s of_ends of_height over_s over_own_clock_s \
                over_ends over_height ratio ratio_own_clock";
    let mut table = Table::for_file("capacity", keys);
    let height = |figure: Option<&Figure<'_>>| whole_text(figure.and_then(Figure::middle_height));
    for (pair, line) in pairs.iter().flat_map(|pair| pair.lines.iter().map(move |line| (pair, line))) {
        table.push_texts([
            line.subject.workload.clone(),
            whole_text(line.subject.capacity),
            decimal_text(line.subject.wall_ns.map(as_seconds), 6),
            pair.of.name(),
            pair.over.name(),
            decimal_text(line.of.and_then(Figure::median_seconds), 6),
            outcome_word(line.of),
            height(line.of),
            decimal_text(line.over.and_then(Figure::median_seconds), 6),
            decimal_text(line.over.and_then(Figure::own_seconds), 6),
            outcome_word(line.over),
            height(line.over),
            decimal_text(line.time_ratio(Figure::median_seconds), 6),
            decimal_text(line.time_ratio(Figure::own_seconds), 6),
        ]);
    }
    table
}

/// One row per planner and subject without a capacity.
fn all_minimised(field: &Field<'_>) -> Table {
    let keys = "workload buffers limit planner height height_over_load bound evidence proven time \
                best_after own_clock peak_memory";
    let mut table = Table::for_file("minimised", keys);
    for (subject, variant, figure) in minimised_of(field) {
        let (bound, evidence) = figure.middle_bound();
        table.push_texts([
            subject.workload.clone(),
            subject.buffers.to_string(),
            decimal_text(subject.wall_ns.map(as_seconds), 6),
            variant.name(),
            whole_text(figure.middle_height()),
            over_load(figure, subject, 6),
            bound.to_string(),
            evidence.to_owned(),
            figure.is_proven().to_string(),
            decimal_text(figure.spent_seconds(), 6),
            decimal_text(figure.best_after_seconds(), 6),
            decimal_text(figure.own_seconds(), 6),
            whole_text(figure.peak_rss_bytes()),
        ]);
    }
    table
}

fn over_load(figure: &Figure<'_>, subject: &Subject, digits: usize) -> String {
    let height = figure.middle_height().filter(|_| subject.load > 0);
    height.map_or_else(String::new, |height| format!("{:.digits$}", as_real(height) / as_real(subject.load)))
}

fn outcome_word(figure: Option<&Figure<'_>>) -> String {
    figure.map_or_else(|| "not run".to_owned(), Figure::outcome_word)
}

fn em_dash() -> String {
    "-".to_owned()
}

pub(super) fn whole_text(value: Option<u64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A number for programs.
pub(super) fn decimal_text(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(String::new, |value| format!("{value:.digits$}"))
}

/// A time for people.
fn time_text(time: Option<f64>) -> String {
    let duration = time.and_then(|time| Duration::try_from_secs_f64(time).ok());
    duration.map_or_else(em_dash, |duration| {
        format_seconds(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    })
}

fn as_seconds(ns: u64) -> f64 {
    as_real(ns) / 1e9
}
