//! Our pool of PyTorch's rules beside what PyTorch itself reserved while the traces were recorded.

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

/// A trace that says what PyTorch reserved.
struct Pair<'c> {
    case: &'c Case,
    /// What ours reserves after one propagation.
    ours: u64,
    recorded: u64,
}

impl Pair<'_> {
    fn difference(&self) -> f64 {
        real(self.ours) / real(self.recorded.max(1)) - 1.0
    }
}

/// The page; `None` where our pool was played on no such trace.
pub(super) fn section(sources: &Sources<'_>, pages: &[String]) -> Option<Section> {
    let pairs: Vec<Pair<'_>> = sources.replays.simulated().filter_map(|case| pair(sources, case)).collect();
    pairs.first()?;
    let mut pieces = vec![Piece::Text(
        "PyTorch wrote down the most that it reserved while a trace was recorded. Our pool follows the same rules and \
         sees the same requests, once, from an empty pool; it is not tuned to meet the figures. Where the two differ, \
         the real run knew more than the trace tells: a trace has the buffers of the recorded part and what was live \
         then, and nothing of what was requested and freed before. Such requests leave segments behind that stay \
         reserved and are cut otherwise than those of an empty pool, to either side. Inference leaves less behind than \
         training. Which of them made the difference of a net cannot be told from its trace."
            .to_owned(),
    )];
    for mode in ["infer", "train", "decode"] {
        pieces.extend(verdict(mode, &pairs).map(Piece::Text));
    }
    pieces.extend(figure(&pairs));
    pieces.push(Piece::Table(table(sources, &pairs, pages)));
    let title = "Our PyTorch pool beside PyTorch's own";
    Some(Section { file: "pytorch.html", name: "PyTorch", title, pieces })
}

fn pair<'c>(sources: &Sources<'_>, case: &'c Case) -> Option<Pair<'c>> {
    let row = case.row();
    let recorded = sources.totals.get(case.workload())?.torch_reserved?;
    let ours = row.samples.first().filter(|_| row.contender == POOL)?.reserved?;
    Some(Pair { case, ours, recorded })
}

/// How often ours is equal, in one mode; `None` where there is no such trace.
fn verdict(mode: &str, pairs: &[Pair<'_>]) -> Option<String> {
    let is_of = |pair: &&Pair<'_>| pair.case.workload().split('/').nth(2) == Some(mode);
    let differences: Vec<f64> = pairs.iter().filter(is_of).map(Pair::difference).collect();
    let counted = |keep: fn(f64) -> bool| differences.iter().filter(|difference| keep(**difference)).count();
    let middle = median(&differences)?;
    Some(format!(
        "Mode {mode}: of {} traces ours reserves the same bytes on {}, less on {} and more on {}; the median difference \
         is {}.",
        differences.len(),
        counted(|difference| difference == 0.0),
        counted(|difference| difference < 0.0),
        counted(|difference| difference > 0.0),
        percent(middle),
    ))
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
        ]);
    }
    table
}
