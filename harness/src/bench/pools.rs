//! Plays the online allocators of a suite on its workloads, for rows beside those of the planners.
//!
//! The allocators are part of planlab and quick, so they are played in this process, over simulated memory, one at a
//! time. A propagation is played five times from an empty pool, then for its time alone until twenty propagations were
//! timed or a second is over. A whole process is played once, up to the step at which the real pool was read, if known.
//! That measures its memory only: reports show no time of a single play from an empty pool.

use std::collections::BTreeMap;
use std::path::Path;
use std::slice;
use std::sync::Mutex;

use planlab_dsa::CancelToken;
use planlab_dsa::performance::End;
use planlab_results::replay::{ReplayRow, ReplayWriter, read_rows};
use planlab_results::{Notice, Status, StoreError};
use planlab_solvers::online::Entry;
use planlab_workloads::{expected, process};

use super::book::{Book, Rule, Tally, lock};
use crate::inputs::{self, Source};
use crate::kinds::pool::simulated::{Order, Stream, cell_digest, play_stream};
use crate::shell::exit::Failure;
use crate::shell::output::print_note;
use crate::shell::provenance;

/// Propagations of a workload that its memory figures cover.
const PROPAGATIONS: u32 = 5;
/// The most propagations, including those for their time alone. The time of the first one, from an empty pool, does not
/// count.
const TIMED: u32 = 21;

/// A request to play allocators on workloads.
pub(crate) struct Pools<'a> {
    pub(crate) suite: &'a str,
    /// The allocators of each workload.
    pub(crate) tasks: Vec<(Source, Vec<Entry>)>,
    pub(crate) rule: Rule,
    /// Folder of the results.
    pub(crate) out: &'a Path,
}

impl Pools<'_> {
    /// Plays the allocators that have no row yet, workload by workload. `on_row` receives each row as it comes,
    /// including old ones.
    ///
    /// # Errors
    ///
    /// If a row in the folder of the results is damaged.
    pub(crate) fn run(
        &self,
        cancel: &CancelToken,
        on_row: &(dyn Fn(&ReplayRow) + Sync),
    ) -> Result<Tally<ReplayRow>, Failure> {
        let known = self.known()?;
        let writer = Mutex::new(None);
        let cells = self.tasks.iter().map(|(_, entries)| entries.len()).sum();
        let book = Book::new((cells, "allocators"), cancel, on_row);
        Ok(book.fill(self.tasks.iter().collect(), 1, |(source, entries), _, book| {
            book.begin(&source.name);
            let stream = book.accept(&source.name, entries.len(), stream(source));
            let Some((stream, order)) = stream else { return Ok(()) };
            for entry in entries.iter().take_while(|_| !book.is_over()) {
                let key = cell_digest(entry.key, &stream, order);
                if self.is_due(&key, &known) {
                    let row = play_stream(entry, &stream, order).into_row(entry, &stream, order, self.suite);
                    let kept = self.keep(&row, &mut lock(&writer));
                    book.enter(vec![row], kept)?;
                } else {
                    book.skip(known.get(&key).cloned());
                }
            }
            Ok(())
        }))
    }

    /// Writes a row before the next allocator is played. The writer is opened for the first row.
    fn keep(&self, row: &ReplayRow, writer: &mut Option<ReplayWriter>) -> Result<(), Failure> {
        let tell = |notices: Vec<Notice>| notices.iter().for_each(|notice| print_note(&notice.to_string()));
        if writer.is_none() {
            let (opened, notices) = ReplayWriter::open(self.out)?;
            tell(notices);
            *writer = Some(opened);
        }
        if let Some(writer) = writer {
            tell(writer.append(slice::from_ref(row))?);
        }
        Ok(())
    }

    /// The allocators still to be played, each with its workload.
    ///
    /// # Errors
    ///
    /// If a workload cannot be read, or a row is damaged.
    pub(crate) fn left(&self) -> Result<Vec<(String, &'static str)>, Failure> {
        let known = self.known()?;
        let mut left = Vec::new();
        for (source, entries) in &self.tasks {
            let (stream, order) = stream(source)?;
            let due =
                entries.iter().filter(|entry| self.is_due(&cell_digest(entry.key, &stream, order), &known));
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
        let counts = |row: &ReplayRow| {
            let has_failed = matches!(row.performance.status, End::Corrupt | End::Failed);
            let status = if has_failed { Status::Crashed } else { Status::Feasible };
            self.rule.counts(status) && row.provenance.flags == provenance::this_machine(1).flags
        };
        self.rule.has(cell) && !known.get(cell).is_some_and(counts)
    }
}

/// The requests of a workload, and how often to play them.
fn stream(source: &Source) -> Result<(Stream, Order), Failure> {
    let trace = inputs::open_trace(source)?;
    inputs::refuse_several_arenas(&source.name, &trace, "an online allocator")?;
    let is_process = source.name.contains("/process/") || process::window_of(&source.name).is_some();
    let process = expected::expected_figures().process(&source.name);
    let until = process.and_then(|process| u32::try_from(process.before_step).ok());
    let (rounds, timed) = if is_process { (1, 0) } else { (PROPAGATIONS, TIMED) };
    let order = Order { rounds, timed, capacity: None };
    Ok((Stream::new(&[(source.name.clone(), trace)], until), order))
}
