//! Plays the online allocators of a suite on its workloads, for rows beside those of the planners.
//!
//! The allocators are part of planlab and quick, so they are played in this process, over simulated memory, one at a
//! time. A propagation is played five times from an empty pool, then for its time alone until twenty propagations were
//! timed or a second is over. A whole process is played once, up to the step at which the real pool was read, if known.
//! That measures its memory only: reports show no time of a single play from an empty pool.

use std::collections::BTreeMap;
use std::path::Path;

use planlab_dsa::CancelToken;
use planlab_dsa::performance::End;
use planlab_results::replay::{ReplayRow, ReplayWriter, read_rows};
use planlab_results::{Notice, StoreError};
use planlab_solvers::online::Entry;
use planlab_workloads::{expected, process};

use crate::bench::run::in_shard;
use crate::cli::Retry;
use crate::inputs::{self, Source};
use crate::kinds::pool::simulated::{Order, Stream, cell, play};
use crate::shell::exit::Failure;
use crate::shell::output::{note, printable};
use crate::shell::progress::Progress;
use crate::shell::provenance;

/// Propagations of a workload that its memory figures cover.
const PROPAGATIONS: u32 = 5;
/// The most propagations, including those for their time alone. The time of the first one, from an empty pool, does not
/// count.
const TIMED: u32 = 21;

/// A request to play allocators on workloads.
pub(crate) struct Baselines<'a> {
    pub(crate) suite: &'a str,
    /// The allocators of each workload.
    pub(crate) tasks: &'a [(Source, Vec<Entry>)],
    pub(crate) shard: Option<(u64, u64)>,
    pub(crate) retry: Option<Retry>,
    /// Folder of the results.
    pub(crate) out: &'a Path,
}

/// The result of a request.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The requested rows, including those of earlier runs.
    pub(crate) rows: Vec<ReplayRow>,
    /// The number of rows that were played now.
    pub(crate) ran: usize,
    /// Workloads that could not be read, and why.
    pub(crate) unreadable: Vec<(String, String)>,
}

impl Baselines<'_> {
    /// Plays the allocators that have no row yet, workload by workload. `on_row` receives each row as it comes,
    /// including old ones.
    ///
    /// # Errors
    ///
    /// If the folder of the results cannot be written, or a row in it is damaged.
    pub(crate) fn run(&self, cancel: &CancelToken, on_row: &dyn Fn(&ReplayRow)) -> Result<Tally, Failure> {
        let mut playing = Playing { known: self.known()?, writer: None, tally: Tally::default() };
        let bar =
            Progress::new(self.tasks.iter().map(|(_, entries)| entries.len() as u64).sum(), "allocators");
        for (source, entries) in self.tasks {
            if cancel.is_cancelled() {
                break;
            }
            bar.set_message(printable(&source.name).into_owned());
            match stream(source) {
                Ok((stream, order)) => {
                    for entry in entries.iter().take_while(|_| !cancel.is_cancelled()) {
                        self.perform(entry, &stream, order, &mut playing, on_row)?;
                    }
                }
                Err(failure) => {
                    let reason = format!("{:#}", failure.error);
                    playing.tally.unreadable.push((source.name.clone(), reason));
                }
            }
            bar.inc(entries.len() as u64);
        }
        bar.finish_and_clear();
        Ok(playing.tally)
    }

    /// The allocators still to be played, each with its workload.
    ///
    /// # Errors
    ///
    /// If a workload cannot be read, or a row is damaged.
    pub(crate) fn left(&self) -> Result<Vec<(String, &'static str)>, Failure> {
        let known = self.known()?;
        let mut left = Vec::new();
        for (source, entries) in self.tasks {
            let (stream, order) = stream(source)?;
            let due = entries.iter().filter(|entry| self.is_due(&cell(entry.key, &stream, order), &known));
            left.extend(due.map(|entry| (source.name.clone(), entry.key)));
        }
        Ok(left)
    }

    /// The existing rows, by cell.
    fn known(&self) -> Result<BTreeMap<String, ReplayRow>, StoreError> {
        if !self.out.exists() {
            return Ok(BTreeMap::new());
        }
        Ok(read_rows(self.out)?.into_iter().map(|row| (row.cell.clone(), row)).collect())
    }

    /// Whether the cell is in this shard and has no row that counts. A row counts if it is of this build and is not to
    /// be retried.
    fn is_due(&self, cell: &str, known: &BTreeMap<String, ReplayRow>) -> bool {
        in_shard(cell, self.shard) && known.get(cell).is_none_or(|row| !self.is_served(row))
    }

    fn is_served(&self, row: &ReplayRow) -> bool {
        let has_failed = matches!(row.performance.status, End::Corrupt | End::Failed);
        let is_retried = self.retry == Some(Retry::Failed) && has_failed;
        !is_retried && row.provenance.flags == provenance::here(1).flags
    }

    /// Plays an allocator if it is due, else takes its existing row.
    fn perform(
        &self,
        entry: &Entry,
        stream: &Stream,
        order: Order,
        playing: &mut Playing,
        on_row: &dyn Fn(&ReplayRow),
    ) -> Result<(), Failure> {
        let key = cell(entry.key, stream, order);
        let is_due = self.is_due(&key, &playing.known);
        let row = if is_due {
            let row = play(entry, stream, order).row(entry, stream, order, self.suite);
            if let Err(failure) = playing.keep(self.out, &row) {
                on_row(&row);
                return Err(failure);
            }
            row
        } else {
            let Some(row) = playing.known.get(&key) else { return Ok(()) };
            row.clone()
        };
        on_row(&row);
        playing.tally.ran += usize::from(is_due);
        playing.tally.rows.push(row);
        Ok(())
    }
}

/// The state while allocators are played.
struct Playing {
    /// The rows of earlier runs, by cell.
    known: BTreeMap<String, ReplayRow>,
    /// Opened when the first row is written.
    writer: Option<ReplayWriter>,
    tally: Tally,
}

impl Playing {
    /// Writes a row before the next allocator is played.
    fn keep(&mut self, out: &Path, row: &ReplayRow) -> Result<(), Failure> {
        let tell = |notices: Vec<Notice>| notices.iter().for_each(|notice| note(&notice.to_string()));
        if self.writer.is_none() {
            let (writer, notices) = ReplayWriter::open(out)?;
            tell(notices);
            self.writer = Some(writer);
        }
        if let Some(writer) = &mut self.writer {
            tell(writer.append(std::slice::from_ref(row))?);
        }
        Ok(())
    }
}

/// The requests of a workload, and how often to play them.
fn stream(source: &Source) -> Result<(Stream, Order), Failure> {
    let trace = inputs::open(source)?;
    inputs::refuse_several_arenas(&source.name, &trace, "an online allocator")?;
    let is_process = source.name.contains("/process/") || process::window_of(&source.name).is_some();
    let process = expected::expected().process(&source.name);
    let until = process.and_then(|process| u32::try_from(process.before_step).ok());
    let (rounds, timed) = if is_process { (1, 0) } else { (PROPAGATIONS, TIMED) };
    let order = Order { rounds, timed, capacity: None };
    Ok((Stream::new(&[(source.name.clone(), trace)], until), order))
}
