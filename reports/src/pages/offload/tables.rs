//! Common columns, values and words of the tables of schedules.

use planlab_results::statistics::median;
use planlab_results::table::{CellValue, Table};

use crate::data::planners::tables::without_empty;
use crate::data::schedules::{self, Case, Run};
use crate::format::{as_real, count_real, format_percent};
use crate::site::page::Piece;

/// The columns that identify the question.
const SUBJECT: [(&str, &str); 8] = [
    ("net", "Net"),
    ("sequence", "Sequence"),
    ("workspace", "Workspace"),
    ("input", "Input"),
    ("machine", "Machine"),
    ("copies_gb", "GB/s"),
    ("capacity_gb", "Of GB"),
    ("variant", "Variant"),
];
/// Columns that are empty in most stores.
const RARE: [&str; 7] =
    ["sequence", "workspace", "input", "variant", "limits", "in_core_share", "in_core_gb"];

/// A table whose rows begin with the identity of what they are about.
pub(super) fn table<R>(
    name: &str,
    caption: &str,
    rows: impl IntoIterator<Item = (Vec<CellValue>, R)>,
    (columns, mut values): (&[(&str, &str)], impl FnMut(R) -> Vec<CellValue>),
) -> Table {
    let mut table = Table::for_page(name, caption, &[&SUBJECT, columns].concat());
    rows.into_iter().for_each(|(subject, row)| table.push([subject, values(row)].concat()));
    table
}

/// The identity of a run, as values of the columns.
pub(super) fn subject_of(case: &Case, run: &Run) -> Vec<CellValue> {
    subject(case, input_of(run))
}

/// The same with other words on the variant than those of the case.
pub(super) fn subject_of_variant(case: &Case, run: &Run, words: &str) -> Vec<CellValue> {
    subject_with(case, input_of(run), words)
}

/// The identity of several runs, with inputs of this size.
pub(super) fn subject(case: &Case, input: CellValue) -> Vec<CellValue> {
    subject_with(case, input, &case.variant_words)
}

fn input_of(run: &Run) -> CellValue {
    CellValue::or_missing(run.input_extent().map(CellValue::Count))
}

fn subject_with(case: &Case, input: CellValue, words: &str) -> Vec<CellValue> {
    let text = |text: &str| if text.is_empty() { CellValue::Missing } else { CellValue::text(text) };
    vec![
        CellValue::text(case.net.as_str()),
        CellValue::or_missing(case.sequence.map(CellValue::Count)),
        text(case.workspace.as_deref().unwrap_or_default()),
        input,
        CellValue::text(case.machine.as_str()),
        copies(case.link),
        gb(case.capacity),
        text(words),
    ]
}

/// The table without empty rare columns.
pub(super) fn trimmed(table: Table) -> Table {
    without_empty(table, &RARE)
}

/// The minimum and the maximum.
pub(super) fn range(sizes: impl Iterator<Item = u64> + Clone) -> Option<String> {
    let (least, most) = (sizes.clone().min()?, sizes.max()?);
    Some(if least == most { least.to_string() } else { format!("{least} to {most}") })
}

/// The rate of copies in units of 10^9 bytes.
pub(super) fn copies((out, back): (f64, f64)) -> CellValue {
    if out.to_bits() == back.to_bits() {
        CellValue::Number(out / 1e9)
    } else {
        CellValue::text(schedules::rate((out, back)))
    }
}

/// Bytes in units of 10^9: the page shows three digits, the CSV file all.
pub(super) fn gb(bytes: u64) -> CellValue {
    CellValue::Number(as_real(bytes) / 1e9)
}

pub(super) fn gb_or_missing(bytes: Option<u64>) -> CellValue {
    CellValue::or_missing(bytes.map(gb))
}

/// Whether the best offsets of a run fit.
pub(super) fn fits(run: &Run) -> CellValue {
    CellValue::or_missing(run.fits_memory().map(|fits| CellValue::text(if fits { "yes" } else { "no" })))
}

pub(super) fn time_value(nanoseconds: Option<u64>) -> CellValue {
    CellValue::nanoseconds(nanoseconds.map(as_real))
}

pub(super) fn middle_and_most(values: &[f64]) -> Option<(f64, f64)> {
    Some((median(values)?, values.iter().copied().max_by(f64::total_cmp)?))
}

pub(super) fn shown_or_folded(table: Table) -> Option<Piece> {
    const SHORT: usize = 40;
    match table.rows.len() {
        0 => None,
        rows if rows <= SHORT => Some(Piece::Table(trimmed(table))),
        rows => Some(Piece::Folded(format!("All {rows} rows"), trimmed(table))),
    }
}

pub(super) fn of_all(part: usize, all: usize) -> String {
    format!("{part} of {all} ({})", format_percent(count_real(part) / count_real(all.max(1))))
}

/// Images per second, with three digits for small numbers.
pub(super) fn rate(speed: f64) -> String {
    match speed {
        0.0..1.0 => format!("{speed:.3}"),
        1.0..10.0 => format!("{speed:.2}"),
        10.0..100.0 => format!("{speed:.1}"),
        _ => format!("{speed:.0}"),
    }
}

/// A loss of speed in words.
pub(super) fn compared(loss: f64) -> String {
    if loss < 1e-9 {
        "as fast as if all of it fitted".to_owned()
    } else {
        format!("{} slower than if all of it fitted", format_percent(loss))
    }
}
