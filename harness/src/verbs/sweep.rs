//! `sweep`: measures memory by batch, and finds the largest batch that fits.

use std::collections::BTreeMap;

use planlab_files::TemporaryFolder;
use planlab_results::table::{CellValue as Shown, Table};
use planlab_solvers::online::Entry;
use serde_json::{Map, Value, json};

use super::fit::{Fit, largest_fitting};
use crate::bench::book::{Rule, open_store};
use crate::bench::planners::{Planners, Task};
use crate::cli::{Choice, Optimizer, SweepArgs};
use crate::inputs::network::Network;
use crate::inputs::{self, Source};
use crate::kinds::placement::{Cell, Runner, Samples, planners};
use crate::kinds::pool::simulated::{self, SETTLING, Stream, play_stream, rounds_to_settle};
use crate::kinds::pool::{Keeper, exit_of};
use crate::shell::JSON_VERSION;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, print_note};
use crate::shell::progress::Progress;
use crate::shell::quantity::format_memory;
use crate::shell::signals::cancel_token;
use crate::shell::target::scratch_folder;
use crate::shell::text::Text;
use planlab_results::Store;

/// The suite name of a sweep's rows.
const SUITE: &str = "sweep";

pub(crate) fn run(args: &SweepArgs, output: Output) -> Verdict {
    if args.graph.starts_with("model/") {
        return Err(Failure::from_usage(format!("`{}` names one batch; name the net alone", args.graph)));
    }
    let network = Network::resolve_argument(&args.graph, &args.shape, args.graph_batch)?;
    refuse_idle_options(args, &network)?;
    let (columns, batches) = (sweep_columns(args)?, args.batch.batch_points());
    batches.iter().try_for_each(|&batch| network.check_batch(batch))?;
    let kept = network.kept_bytes(args.optimizer.unwrap_or(Optimizer::Momentum).states_per_parameter())?;
    let scratch = scratch_folder()?;
    let folder = args.out.clone().unwrap_or_else(|| scratch.path().join("store"));
    let mut sweep = Sweep {
        network: &network,
        args,
        store: open_store(&folder)?,
        keeper: Keeper::open_store(args.out.as_deref())?,
        runner: Runner::new(cancel_token(), Samples::ONCE)?,
        files: &scratch,
        known: BTreeMap::new(),
        permits_in_place: false,
        exit: Exit::Complete,
        bar: Progress::new((batches.len() * columns.len()) as u64, "figures"),
    };
    for (&batch, column) in batches.iter().flat_map(|batch| columns.iter().map(move |column| (batch, column)))
    {
        sweep.column_bytes(column, batch)?;
    }
    let fits = args.capacity.map(|capacity| sweep.all_fits(&columns, kept, capacity)).transpose()?;
    sweep.bar.finish_and_clear();
    #[cfg(feature = "reports")]
    if args.out.is_some() {
        sweep.store.compact()?;
    }
    let answer = SweepAnswer {
        columns: &columns,
        kept,
        fits,
        known: &sweep.known,
        permits_in_place: sweep.permits_in_place,
        args,
    };
    output.print_either(&answer.answer_object(&network), answer.answer_text(&network))?;
    let exit = if sweep.runner.cancel().is_cancelled() { Exit::Interrupted } else { sweep.exit };
    sweep.keeper.end_keeping()?;
    Ok(exit)
}

/// Refuses options that have no effect on this input.
fn refuse_idle_options(args: &SweepArgs, network: &Network) -> Result<(), Failure> {
    match network {
        Network::Net(_) if args.graph_batch.is_some() => {
            Err(Failure::from_usage("--graph-batch is for graph files; a net can be made for any batch"))
        }
        Network::File(_) if args.optimizer.is_some() => Err(Failure::from_usage(
            "--optimizer is for nets; in a graph file, external tensors are what is kept beside the plan",
        )),
        _ => Ok(()),
    }
}

/// A column of the table: something whose memory is measured.
#[derive(Clone)]
enum Column {
    /// The load: no plan takes less.
    Load,
    Planner(String),
    Allocator(Entry),
}

impl Column {
    fn name(&self) -> &str {
        match self {
            Self::Load => "load",
            Self::Planner(key) => key,
            Self::Allocator(entry) => entry.key,
        }
    }
}

fn sweep_columns(args: &SweepArgs) -> Result<Vec<Column>, Failure> {
    let globs = if args.planners.is_empty() { vec!["portfolio".to_owned()] } else { args.planners.clone() };
    let planners = planners::matching(&globs)?.into_iter().map(Column::Planner);
    let allocators = simulated::matching(&args.allocators)?.into_iter().map(Column::Allocator);
    Ok(std::iter::once(Column::Load).chain(planners).chain(allocators).collect())
}

/// Bytes by column and batch; `None` if there is no answer.
type Known = BTreeMap<(String, u64), Option<u64>>;

struct Sweep<'a> {
    network: &'a Network,
    args: &'a SweepArgs,
    store: Store,
    keeper: Keeper,
    runner: Runner,
    /// The folder of the traces that children open.
    files: &'a TemporaryFolder,
    known: Known,
    /// Whether a trace permits that a buffer overwrites another.
    permits_in_place: bool,
    /// The worst exit so far: a false answer is worse than no answer.
    exit: Exit,
    bar: Progress,
}

impl Sweep<'_> {
    /// The memory of a column at a batch.
    fn column_bytes(&mut self, column: &Column, batch: u64) -> Result<Option<u64>, Failure> {
        let at = (column.name().to_owned(), batch);
        if let Some(&bytes) = self.known.get(&at) {
            return Ok(bytes);
        }
        if self.runner.cancel().is_cancelled() {
            return Ok(None);
        }
        self.bar.set_message(format!("{} at batch {batch}", column.name()));
        let bytes = self.measure_column(column, batch)?;
        self.bar.inc(1);
        self.known.insert(at, bytes);
        Ok(bytes)
    }

    /// The memory of a column at a batch. A batch without a trace (its sizes are too large together) only lacks this
    /// figure.
    fn measure_column(&mut self, column: &Column, batch: u64) -> Result<Option<u64>, Failure> {
        let mut source = self.network.source_at(batch, self.files.path())?;
        source.in_place = self.args.in_place != Some(Choice::No);
        let load = match inputs::open_trace(&source) {
            Ok(trace) => {
                self.permits_in_place |= !trace.instance.in_place().is_empty();
                trace.instance.load().bytes.get()
            }
            Err(failure) => {
                self.exit = self.exit.or_worse(Exit::Incomplete);
                if matches!(column, Column::Load) {
                    print_note(&format!("{}: {}", source.name, failure.full_message()));
                }
                return Ok(None);
            }
        };
        match column {
            Column::Load => Ok(Some(load)),
            Column::Planner(planner) => self.planned_height(planner, source),
            Column::Allocator(entry) => self.reserved_peak(entry, &source),
        }
    }

    fn planned_height(&mut self, planner: &str, source: Source) -> Result<Option<u64>, Failure> {
        let cells = vec![Cell::of(&source, planner, &self.args.limits)];
        let planners = Planners {
            suite: SUITE,
            tasks: vec![Task { source, cells }],
            jobs: 1,
            rule: Rule { shard: None, retry: None },
            seed: 0,
            alone: true,
        };
        let tally = planners.run(&mut self.store, &self.runner, &|_| {});
        if let Some(failure) = tally.failure {
            return Err(failure);
        }
        if let Some((_, reason)) = tally.unreadable.first() {
            return Err(Failure::from_usage(reason));
        }
        let answer = tally.rows.first().filter(|row| row.status.is_answer());
        if answer.is_none() && !tally.interrupted {
            let lie = tally.rows.first().is_some_and(|row| row.status.is_lie());
            self.exit = self.exit.or_worse(if lie { Exit::Invalid } else { Exit::Incomplete });
            let row = tally.rows.first();
            let reason = row.map_or("", |row| row.reason.as_str());
            print_note(&format!("{planner} on {}: no answer: {reason}", planners.tasks[0].source.name));
        }
        Ok(answer.and_then(|row| row.height))
    }

    /// The most bytes that an allocator holds in a propagation once it has settled.
    fn reserved_peak(&mut self, entry: &Entry, source: &Source) -> Result<Option<u64>, Failure> {
        let trace = inputs::open_trace(source)?;
        let stream = Stream::new(&[(source.name.clone(), trace)], None);
        let rounds = rounds_to_settle(entry, &stream, None).unwrap_or_else(|| {
            print_note(&format!(
                "{} on {}: did not settle within {SETTLING} propagations",
                entry.key, source.name
            ));
            self.exit = self.exit.or_worse(Exit::Incomplete);
            SETTLING
        });
        let order = simulated::Order { rounds, timed: 0, capacity: None };
        let row = play_stream(entry, &stream, order).into_row(entry, &stream, order, SUITE);
        let exit = exit_of(std::slice::from_ref(&row));
        if exit != Exit::Complete {
            self.exit = self.exit.or_worse(exit);
            print_note(&format!("{} on {}: {}", entry.key, source.name, row.performance.reason));
            return Ok(None);
        }
        let last = row.performance.samples.last().and_then(|sample| sample.reserved_peak);
        if !self.keeper.keep_rows(std::slice::from_ref(&row)) {
            self.exit = self.exit.or_worse(Exit::Incomplete);
        }
        Ok(last)
    }

    fn all_fits(&mut self, columns: &[Column], kept: u64, capacity: u64) -> Result<Vec<Fit>, Failure> {
        columns.iter().map(|column| self.fit_column(column, capacity.checked_sub(kept))).collect()
    }

    /// The largest batch of the range that fits.
    fn fit_column(&mut self, column: &Column, room: Option<u64>) -> Result<Fit, Failure> {
        let Some(room) = room else { return Ok(Fit::None) };
        let points = self.args.batch.batch_points();
        largest_fitting(points, |batch| Ok(self.column_bytes(column, batch)?.map(|bytes| bytes <= room)))
    }
}

/// The result of a sweep.
struct SweepAnswer<'a> {
    columns: &'a [Column],
    kept: u64,
    fits: Option<Vec<Fit>>,
    known: &'a Known,
    permits_in_place: bool,
    args: &'a SweepArgs,
}

impl SweepAnswer<'_> {
    fn bytes_at(&self, column: &Column, batch: u64) -> Option<u64> {
        *self.known.get(&(column.name().to_owned(), batch))?
    }

    fn answer_text(&self, network: &Network) -> Text {
        let titles: Vec<&str> =
            std::iter::once("batch").chain(self.columns.iter().map(Column::name)).collect();
        let mut table = Table::new(&titles);
        for batch in self.args.batch.batch_points() {
            let bytes = |column| self.bytes_at(column, batch).map(Shown::Bytes);
            let cells = self.columns.iter().map(|column| Shown::or_missing(bytes(column)));
            table.push(std::iter::once(Shown::Count(batch)).chain(cells).collect());
        }
        let first = self.args.batch.from;
        let kept = format_memory(self.kept);
        let head = format!("{}: {kept} kept beside the plan\n\n", network.key_at(first));
        let mut text = Text::from(head) + table;
        text += "\nload: the most bytes live at once; no plan is lower\n";
        if self.permits_in_place {
            text += "in-place: buffers may overwrite others; --in-place no plans without\n";
        }
        if let (Some(fits), Some(capacity)) = (&self.fits, self.args.capacity) {
            let capacity_text = format_memory(capacity);
            text += format!("\nlargest batch in {capacity_text}, with what is kept:\n");
            if self.kept >= capacity {
                text += "  what is kept beside the plan takes all of it\n";
            }
            for (column, fit) in self.columns.iter().zip(fits) {
                text += format!("  {}  {}\n", fit.fit_words(), column.name());
            }
        }
        text
    }

    fn answer_object(&self, network: &Network) -> Value {
        let points: Vec<Value> = self
            .args
            .batch
            .batch_points()
            .into_iter()
            .map(|batch| self.batch_object(network, batch))
            .collect();
        let fits = self.fits.as_ref().map(|fits| {
            let named = self.columns.iter().zip(fits);
            named.map(|(column, fit)| (column.name().to_owned(), fit.fit_object())).collect::<Map<_, _>>()
        });
        json!({
            "version": JSON_VERSION,
            "kept": self.kept,
            "capacity": self.args.capacity,
            "in_place": self.permits_in_place,
            "points": points,
            "largest": fits,
        })
    }

    fn batch_object(&self, network: &Network, batch: u64) -> Value {
        let bytes =
            self.columns.iter().map(|column| (column.name().to_owned(), json!(self.bytes_at(column, batch))));
        json!({ "workload": network.key_at(batch), "batch": batch, "bytes": bytes.collect::<Map<_, _>>() })
    }
}

impl Fit {
    fn fit_words(self) -> String {
        match self {
            Self::None => "   none".to_owned(),
            Self::Most(batch) => format!("{batch:>7}"),
            Self::All(batch) => format!(">={batch:>5}"),
            Self::Unknown => "unknown".to_owned(),
        }
    }

    fn fit_object(self) -> Value {
        match self {
            Self::None => json!({ "batch": 0, "is_end_of_range": false }),
            Self::Most(batch) => json!({ "batch": batch, "is_end_of_range": false }),
            Self::All(batch) => json!({ "batch": batch, "is_end_of_range": true }),
            Self::Unknown => Value::Null,
        }
    }
}
