//! Compares our pool with PyTorch's rules to the bytes that PyTorch itself reserved while the traces were recorded.

use std::collections::BTreeMap;

use planlab_results::recorded_peak::{Explanation, RecordedPeak};
use planlab_results::statistics::median;

use crate::data::replays::Case;
use crate::figures::Series;
use crate::figures::coord::Axis;
use crate::figures::plots::curves::{self, Curve, HEIGHT, Point};
use crate::format::{as_real, format_bytes, format_percent};
use crate::site::Site;
use crate::site::page::{Menu, Page, Piece};
use planlab_results::table::{CellValue, Table, columns};

const POOL: &str = "pytorch-caching";

/// The suffix that distinguishes the key of a process from that of its window.
const PROCESS: &str = "/process";

/// A trace with PyTorch's own reserved bytes.
struct Pair<'c> {
    /// Our pool on the window alone.
    window: &'c Case,
    /// Our pool on the process, if it was played.
    process: Option<&'c Case>,
    peak: RecordedPeak,
    /// The most bytes in use in PyTorch.
    in_use: Option<u64>,
}

impl Pair<'_> {
    /// The relative difference for the window alone.
    fn relative_difference(&self) -> f64 {
        self.over_recorded(self.peak.window)
    }

    fn process_difference(&self) -> Option<f64> {
        self.peak.process.map(|process| self.over_recorded(process))
    }

    fn over_recorded(&self, ours: u64) -> f64 {
        as_real(ours) / as_real(self.peak.recorded.max(1)) - 1.0
    }

    fn process_in_use(&self) -> Option<u64> {
        self.process.and_then(|case| case.summary_row().performance.used_peak)
    }

    /// Whether the process has both of PyTorch's peaks: a single match may be chance.
    fn has_both(&self) -> bool {
        let is_in_use = self.in_use.is_some() && self.process_in_use() == self.in_use;
        self.peak.process == Some(self.peak.recorded) && is_in_use
    }
}

/// The page; `None` if our pool was not played on such a trace.
pub(crate) fn page(site: &Site<'_>) -> Option<Page> {
    let pairs: Vec<Pair<'_>> =
        site.replays.simulated_cases().filter_map(|case| build_pair(site, case)).collect();
    pairs.first()?;
    let mut pieces = vec![Piece::note(
        "PyTorch recorded the most that it reserved in the process that a trace was cut from. That figure \
         includes initialisation and a warm-up iteration, which the trace does not. Our pool follows the same \
         rules and is not tuned to the figures. We play it on the window of the trace alone, and on a process \
         rebuilt from the trace's marks and categories. Each recorded peak gets the first explanation that \
         holds. Equal: the window alone reaches it. Process not played: the window does not, and nothing more is \
         known. Warm-up: the process reaches it. Tied head: the same, and in that process an output layer shares \
         the weight of an embedding. All other peaks are not explained. For these the table says what the trace \
         shows, without proof that it is the reason: the iterations of the window request different sizes \
         (iterations differ), or the trace does not mark where one begins (no iteration marks). A single equal \
         peak may be chance, so we also count the traces whose peak of bytes in use is equal too.",
    )];
    pieces.push(Piece::note(pair_verdict(&pairs)));
    pieces.extend(pair_figure(&pairs));
    pieces.push(Piece::Table(pair_table(site, &pairs)));
    let title = "Our PyTorch pool beside PyTorch's own";
    let page = Page::new("pytorch.html", title).in_menu(Menu::Allocators, "How much does PyTorch reserve?");
    Some(page.with(pieces))
}

fn build_pair<'c>(site: &Site<'c>, case: &'c Case) -> Option<Pair<'c>> {
    let known = site.options.totals.get(case.workload())?;
    let recorded = known.torch_reserved?;
    let window = first_reserved(case).filter(|_| case.summary_row().contender == POOL)?;
    let process = site.replays.served_case(&format!("{}{PROCESS}", case.workload()), POOL);
    let peak = RecordedPeak {
        recorded,
        window,
        process: process.and_then(first_reserved),
        has_tied_head: known.torch_tied_head,
        iterations: known.torch_iterations,
        iterations_differ: known.torch_iterations_differ,
    };
    Some(Pair { window: case, process, peak, in_use: known.torch_allocated })
}

/// The reserved bytes after the first propagation, from an empty pool.
fn first_reserved(case: &Case) -> Option<u64> {
    case.summary_row().performance.samples.first()?.reserved
}

fn pair_verdict(pairs: &[Pair<'_>]) -> String {
    let counted = |keep: fn(&Pair<'_>) -> bool| pairs.iter().filter(|pair| keep(pair)).count();
    let differences: Vec<f64> = pairs.iter().map(Pair::relative_difference).collect();
    let mut explanations: BTreeMap<Explanation, usize> = BTreeMap::new();
    pairs.iter().for_each(|pair| *explanations.entry(pair.peak.explanation()).or_default() += 1);
    let explanations: Vec<String> =
        explanations.into_iter().map(|(kind, count)| format!("{}: {count}", kind.name())).collect();
    format!(
        "Of {} traces, the window alone reserves the same bytes on {}, less on {} and more on {}; the median \
         difference is {}. The process was played for {} and reserves the same bytes on {}; on {} both peaks are \
         equal. By explanation: {}.",
        pairs.len(),
        counted(|pair| pair.peak.window == pair.peak.recorded),
        counted(|pair| pair.peak.window < pair.peak.recorded),
        counted(|pair| pair.peak.window > pair.peak.recorded),
        format_percent(median(&differences).unwrap_or(0.0)),
        counted(|pair| pair.process.is_some()),
        counted(|pair| pair.peak.process == Some(pair.peak.recorded)),
        counted(|pair| pair.has_both()),
        explanations.join("; "),
    )
}

fn pair_figure(pairs: &[Pair<'_>]) -> Option<Piece> {
    let curves = vec![
        pair_curve(pairs, "window alone", 0, |peak| Some(peak.window)),
        pair_curve(pairs, "process", 1, |peak| peak.process),
    ];
    let ((x_low, x_high), (y_low, y_high)) = curves::ranges(&curves)?;
    let axes = (
        Axis::log_bytes("bytes that PyTorch reserved", x_low, x_high),
        Axis::differences("ours over PyTorch's, less 1", y_low, y_high),
    );
    let drawing = curves::plot("Reserved by our pool and by PyTorch's own", HEIGHT, axes, curves)?;
    let caption = "For each recorded trace, one dot for the window alone, and one for the process that it was \
    cut from if that was played. 0 % means the same number of bytes.";
    Some(Piece::figure(drawing, caption))
}

fn pair_curve(
    pairs: &[Pair<'_>],
    label: &str,
    number: usize,
    ours: fn(&RecordedPeak) -> Option<u64>,
) -> Curve {
    let series = Series { label: label.to_owned(), number };
    let point = |pair: &Pair<'_>| {
        let (ours, recorded) = (ours(&pair.peak)?, pair.peak.recorded);
        let tip = format!("{}: {} of {}", pair.window.workload(), format_bytes(ours), format_bytes(recorded));
        Some(Point::new(&series, as_real(recorded.max(1)), pair.over_recorded(ours), &tip))
    };
    let mut points: Vec<Point> = pairs.iter().filter_map(point).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    Curve::dots(series, points)
}

fn pair_table(site: &Site<'_>, pairs: &[Pair<'_>]) -> Table {
    Table::from_rows(
        "pytorch",
        "PyTorch: the most that it reserved, and had in use, in the process that the trace was cut from. Window: \
         what our pool reserves for the trace alone, starting empty, and the most in use there. Process: the \
         same for the process rebuilt from the trace. In use counts blocks as the pool handed them out.",
        pairs,
        columns!(|pair| {
            let window_in_use = pair.window.summary_row().performance.used_peak;
            [
                ("workload", "Workload", site.workload_link(pair.window.workload())),
                ("pytorch_bytes", "PyTorch", CellValue::Bytes(pair.peak.recorded)),
                ("window_bytes", "Window", CellValue::Bytes(pair.peak.window)),
                ("window_difference", "Difference", CellValue::Share(pair.relative_difference())),
                ("process_bytes", "Process", CellValue::bytes(pair.peak.process)),
                ("process_difference", "Difference, process", CellValue::share(pair.process_difference())),
                ("pytorch_in_use_bytes", "In use in PyTorch", CellValue::bytes(pair.in_use)),
                ("window_in_use_bytes", "in use, window", CellValue::bytes(window_in_use)),
                ("process_in_use_bytes", "in use, process", CellValue::bytes(pair.process_in_use())),
                ("iterations", "Iterations", CellValue::count(pair.peak.iterations)),
                ("explanation", "Explanation", CellValue::text(pair.peak.explanation().name())),
            ]
        }),
    )
}
