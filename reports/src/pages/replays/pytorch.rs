//! Our pool of PyTorch's rules beside what PyTorch itself reserved while the traces were recorded.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use planlab_results::statistics::median;

use super::memory::link;
use super::{Piece, Section, Sources};
use crate::drawing::axis::Axis;
use crate::format::{bytes, percent, real, short_count};
use crate::plots::lines::{self, Curve, Join, Point};
use crate::replays::Case;
use crate::table::{Table, Value};

/// The pool.
const POOL: &str = "pytorch-caching";

/// A trace that says what PyTorch reserved; bytes.
struct Pair<'c> {
    case: &'c Case,
    /// What ours reserves after one propagation.
    ours: u64,
    /// The most that ours reserves over all propagations.
    later: u64,
    recorded: u64,
    /// The most that was in use in PyTorch.
    allocated: Option<u64>,
    /// What was in use when the recorded part began.
    at_start: Option<u64>,
}

/// What a difference can come from, as far as the trace tells: each is decided by numbers of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    Equal,
    Load,
    Propagations,
    Start,
    Unknown,
}

impl Cause {
    const fn name(self) -> &'static str {
        match self {
            Self::Equal => "no difference",
            Self::Load => "more was in use",
            Self::Propagations => "more propagations",
            Self::Start => "within what was in use at the start",
            Self::Unknown => "not explained",
        }
    }
}

impl Pair<'_> {
    fn difference(&self) -> f64 {
        real(self.ours) / real(self.recorded.max(1)) - 1.0
    }

    fn cause(&self) -> Cause {
        let missing = self.recorded.saturating_sub(self.ours);
        let more_in_use = self.allocated.map(|most| most.saturating_sub(self.case.row().requested_peak));
        let covers = |bytes: Option<u64>| bytes.is_some_and(|bytes| missing <= bytes);
        match self.recorded.cmp(&self.ours) {
            Ordering::Equal => Cause::Equal,
            Ordering::Greater if covers(more_in_use) => Cause::Load,
            Ordering::Greater if self.later >= self.recorded => Cause::Propagations,
            Ordering::Greater if covers(self.at_start) => Cause::Start,
            Ordering::Greater | Ordering::Less => Cause::Unknown,
        }
    }
}

/// The page; `None` where our pool was played on no such trace.
pub(super) fn section(sources: &Sources<'_>, pages: &[String]) -> Option<Section> {
    let pairs: Vec<Pair<'_>> = sources.replays.simulated().filter_map(|case| pair(sources, case)).collect();
    pairs.first()?;
    let mut pieces = vec![Piece::Text(
        "PyTorch wrote down the most that it reserved while a trace was recorded. Our pool follows the same rules and \
         sees the same requests, once, from an empty pool; it is not tuned to meet the figures. What a difference can \
         come from is computed for each trace. More was in use: PyTorch had more bytes in use at once than the trace \
         requests, by as much as ours lacks. More propagations: ours comes to PyTorch's figure when the trace is played \
         again. Within what was in use at the start: ours lacks no more than the bytes that lived when the recorded part \
         began, which lay in segments that the trace does not show. Everything else is not explained."
            .to_owned(),
    )];
    pieces.push(Piece::Text(verdict(&pairs)));
    pieces.extend(figure(&pairs));
    pieces.push(Piece::Table(table(sources, &pairs, pages)));
    let title = "Our PyTorch pool beside PyTorch's own";
    Some(Section { file: "pytorch.html", name: "PyTorch", title, pieces })
}

fn pair<'c>(sources: &Sources<'_>, case: &'c Case) -> Option<Pair<'c>> {
    let row = case.row();
    let known = sources.totals.get(case.workload())?;
    let recorded = known.torch_reserved?;
    let ours = row.samples.first().filter(|_| row.contender == POOL)?.reserved?;
    let later = row.samples.iter().filter_map(|sample| sample.reserved).max().unwrap_or(ours);
    Some(Pair {
        case,
        ours,
        later,
        recorded,
        allocated: known.torch_allocated,
        at_start: known.torch_at_start,
    })
}

fn verdict(pairs: &[Pair<'_>]) -> String {
    let counted = |keep: fn(f64) -> bool| pairs.iter().filter(|pair| keep(pair.difference())).count();
    let differences: Vec<f64> = pairs.iter().map(Pair::difference).collect();
    let mut causes: BTreeMap<Cause, usize> = BTreeMap::new();
    pairs.iter().for_each(|pair| *causes.entry(pair.cause()).or_default() += 1);
    let causes: Vec<String> =
        causes.into_iter().map(|(cause, count)| format!("{}: {count}", cause.name())).collect();
    format!(
        "Of {} traces ours reserves the same bytes on {}, less on {} and more on {}; the median difference is {}. \
         By what it can come from: {}.",
        pairs.len(),
        counted(|difference| difference == 0.0),
        counted(|difference| difference < 0.0),
        counted(|difference| difference > 0.0),
        percent(median(&differences).unwrap_or(0.0)),
        causes.join("; "),
    )
}

fn figure(pairs: &[Pair<'_>]) -> Option<Piece> {
    let point = |pair: &Pair<'_>| {
        let tip = format!("{}: {} of {}", pair.case.workload(), bytes(pair.ours), bytes(pair.recorded));
        Point { x: real(pair.recorded.max(1)), y: pair.difference(), tip }
    };
    let mut points: Vec<Point> = pairs.iter().map(point).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    let curves = [Curve { series: pairs.first()?.case.series.clone(), points }];
    let (x_low, x_high) = lines::range(&curves, |point| point.x)?;
    let (y_low, y_high) = lines::range(&curves, |point| point.y)?;
    let axes = (
        Axis::log("bytes that PyTorch reserved", x_low, x_high, short_count),
        Axis::differences("ours over PyTorch's, less 1", y_low, y_high),
    );
    let drawing = lines::plot("Reserved by our pool and by PyTorch's own", axes, Join::Dots, &curves)?;
    let caption = "A dot for each recorded trace: 0 % is the same number of bytes.";
    Some(Piece::Figure((drawing, caption.to_owned())))
}

fn table(sources: &Sources<'_>, pairs: &[Pair<'_>], pages: &[String]) -> Table {
    let mut table = Table::new(
        "pytorch",
        "Ours: reserved after one propagation from an empty pool. PyTorch: the most that it reserved while the trace was \
         recorded. Requested: the most bytes of the trace that are live at once.",
        &[
            ("workload", "Workload"),
            ("requested_bytes", "Requested at once"),
            ("ours_bytes", "Ours"),
            ("pytorch_bytes", "PyTorch"),
            ("difference", "Difference"),
            ("ours_over_requests", "Ours over requests"),
            ("pytorch_over_requests", "PyTorch over requests"),
            ("later_bytes", "Ours, played again"),
            ("pytorch_in_use_bytes", "In use in PyTorch"),
            ("start_bytes", "at the start"),
            ("cause", "Can come from"),
        ],
    );
    for pair in pairs {
        let requested = real(pair.case.row().requested_peak.max(1));
        table.push(vec![
            link(sources, pages, pair.case.workload()),
            Value::Bytes(pair.case.row().requested_peak),
            Value::Bytes(pair.ours),
            Value::Bytes(pair.recorded),
            Value::Share(pair.difference()),
            Value::Share(real(pair.ours) / requested - 1.0),
            Value::Share(real(pair.recorded) / requested - 1.0),
            Value::Bytes(pair.later),
            Value::or_missing(pair.allocated.map(Value::Bytes)),
            Value::or_missing(pair.at_start.map(Value::Bytes)),
            Value::text(pair.cause().name()),
        ]);
    }
    table
}
