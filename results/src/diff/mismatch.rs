//! Reasons why two sides cannot be compared fairly, and remarks for the reader.

use std::collections::BTreeSet;
use std::fmt;

use super::change::Change;
use super::options::DiffOptions;
use super::pairs::Pairing;
use super::verdict::{Sides, Verdict};
use crate::rows::{Lane, Record};

/// A difference between the sides that does not come from the planners.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// Times come from different machines.
    Hosts(Sides<Vec<String>>),
    /// The builds have different profiles or flags.
    Flags(Sides<Vec<String>>),
    /// Cells differ only in their limits.
    Limits {
        /// The number of cells.
        cells: usize,
        /// The first of them.
        example: String,
    },
}

impl Mismatch {
    /// Whether it affects only times.
    #[must_use]
    pub const fn is_of_hosts(&self) -> bool {
        matches!(self, Self::Hosts(_))
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hosts(Sides { a, b }) => {
                write!(f, "the hosts differ: {} and {}", a.join(", "), b.join(", "))
            }
            Self::Flags(Sides { a, b }) => {
                write!(f, "the builds differ in their flags: `{}` and `{}`", a.join("`, `"), b.join("`, `"))
            }
            Self::Limits { cells, example } => {
                write!(f, "{cells} cells differ in their limits alone, the first is {example}")
            }
        }
    }
}

/// A remark for the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remark {
    /// The sides did not alternate: changes of the machine's speed look like changes of the build.
    NotInTurns,
    /// The builds were made by different compilers.
    Compilers(Sides<Vec<String>>),
    /// Limits were enforced by different mechanisms.
    Mechanisms(Sides<Vec<String>>),
    /// Cells whose time changed beyond the threshold, with too few repetitions for a verdict of their own.
    FewRepetitions {
        /// The number of cells.
        cells: usize,
    },
    /// Cells that ran alongside others, so that their times are not compared.
    Beside {
        /// The number of cells.
        cells: usize,
    },
    /// Times are shown without a verdict.
    TimesNotJudged,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInTurns => f.write_str(
                "one side was measured after the other: a change that many planners share may be the machine's \
                 (`diff --interleave` measures both in turns)",
            ),
            Self::Compilers(Sides { a, b }) => {
                write!(f, "the compilers differ: {} and {}", a.join(", "), b.join(", "))
            }
            Self::Mechanisms(Sides { a, b }) => {
                write!(f, "limits were enforced by {} and by {}", a.join(", "), b.join(", "))
            }
            Self::FewRepetitions { cells } => {
                write!(
                    f,
                    "{cells} cells changed in time beyond the threshold and have too few repetitions in turns to be \
                     judged by themselves (diff --interleave --reps 10)"
                )
            }
            Self::Beside { cells } => {
                write!(f, "the times of {cells} cells were taken beside others and are not compared")
            }
            Self::TimesNotJudged => f.write_str("times are shown and not judged"),
        }
    }
}

/// The distinct values of a property in the paired rows of each side, if the sides differ in them.
fn differing_values(pairing: &Pairing<'_>, what: fn(&Record) -> String) -> Option<Sides<Vec<String>>> {
    let (mut a, mut b) = (BTreeSet::new(), BTreeSet::new());
    for pair in &pairing.pairs {
        a.extend(pair.a.iter().map(|row| what(row)));
        b.extend(pair.b.iter().map(|row| what(row)));
    }
    (a != b).then(|| Sides { a: a.into_iter().collect(), b: b.into_iter().collect() })
}

pub(super) fn find_mismatches(pairing: &Pairing<'_>) -> Vec<Mismatch> {
    let host = |row: &Record| {
        let machine = &row.provenance;
        format!("{} ({} cores of {}, kernel {})", machine.host, machine.cores, machine.cpu, machine.kernel)
    };
    let limits = pairing
        .other_limits
        .first()
        .map(|first| Mismatch::Limits { cells: pairing.other_limits.len(), example: first.to_string() });
    let hosts = differing_values(pairing, host).map(Mismatch::Hosts);
    let flags = differing_values(pairing, |row| row.provenance.flags.clone()).map(Mismatch::Flags);
    [hosts, flags, limits].into_iter().flatten().collect()
}

pub(super) fn collect_remarks(
    pairing: &Pairing<'_>,
    changes: &[Change],
    options: &DiffOptions,
) -> Vec<Remark> {
    let has_times = changes.iter().any(|change| change.time.is_some());
    let is_open = |change: &&Change| change.time.is_some_and(|time| time.verdict == Verdict::Undecided);
    let few = changes.iter().filter(is_open);
    let beside = pairing.pairs.iter().filter(|pair| {
        pair.a.iter().chain(&pair.b).any(|row| row.lane == Lane::Quality && row.status.is_answer())
    });
    let cells = |count: usize| (count > 0).then_some(count);
    [
        (has_times && options.judge_times && !pairing.in_turns()).then_some(Remark::NotInTurns),
        (has_times && !options.judge_times).then_some(Remark::TimesNotJudged),
        differing_values(pairing, |row| row.provenance.rustc.clone()).map(Remark::Compilers),
        differing_values(pairing, |row| row.mechanism.clone()).map(Remark::Mechanisms),
        cells(few.count()).filter(|_| options.judge_times).map(|cells| Remark::FewRepetitions { cells }),
        cells(beside.count()).map(|cells| Remark::Beside { cells }),
    ]
    .into_iter()
    .flatten()
    .collect()
}
