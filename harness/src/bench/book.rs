//! The loop of a bench, whatever the kind of its cells: those that have no row yet run, and each row is entered as it
//! comes.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use planlab_dsa::CancelToken;
use planlab_results::{Status, Store};

use crate::cli::Retry;
use crate::shell::exit::Failure;
use crate::shell::output::{print_note, printable};
use crate::shell::progress::Progress;

/// The result of a bench.
#[derive(Debug)]
pub(crate) struct Tally<Row> {
    /// The rows of all requested cells, including those of earlier runs.
    pub(crate) rows: Vec<Row>,
    /// The number of cells that were run now.
    pub(crate) ran: usize,
    pub(crate) interrupted: bool,
    /// Workloads that could not be read, and why.
    pub(crate) unreadable: Vec<(String, String)>,
    /// Why the bench stopped: the store cannot be written, or no child can be started.
    pub(crate) failure: Option<Failure>,
    /// Rows of this run that could not be stored.
    pub(crate) lost: Vec<Row>,
}

impl<Row> Default for Tally<Row> {
    fn default() -> Self {
        let (rows, unreadable, lost) = (Vec::new(), Vec::new(), Vec::new());
        Self { rows, ran: 0, interrupted: false, unreadable, failure: None, lost }
    }
}

/// Where rows are entered as they come.
pub(super) struct Book<'a, Row> {
    tally: Mutex<Tally<Row>>,
    bar: Progress,
    cancel: &'a CancelToken,
    /// Receives each row, including old ones.
    on_row: &'a (dyn Fn(&Row) + Sync),
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a, Row: Send> Book<'a, Row> {
    /// A book for a number of cells; `noun` names them: `cells`.
    pub(super) fn new(
        (cells, noun): (usize, &'static str),
        cancel: &'a CancelToken,
        on_row: &'a (dyn Fn(&Row) + Sync),
    ) -> Self {
        Self { tally: Mutex::default(), bar: Progress::new(cells as u64, noun), cancel, on_row }
    }

    /// Performs tasks in their order, `jobs` at a time, until all rows are entered or one cannot be. `perform` also
    /// receives the number of its worker, from 0.
    pub(super) fn fill<Task: Send>(
        self,
        tasks: Vec<Task>,
        jobs: u32,
        perform: impl Fn(Task, u32, &Self) -> Result<(), Failure> + Sync,
    ) -> Tally<Row> {
        let queue = Mutex::new(tasks.into_iter());
        let work = |worker: u32| {
            while !self.is_over()
                && let Some(task) = { lock(&queue).next() }
            {
                if let Err(failure) = perform(task, worker, &self) {
                    lock(&self.tally).failure.get_or_insert(failure);
                }
            }
        };
        thread::scope(|scope| {
            for worker in 0..jobs {
                let work = &work;
                scope.spawn(move || work(worker));
            }
        });
        self.bar.finish_and_clear();
        let tally = self.tally.into_inner().unwrap_or_else(PoisonError::into_inner);
        Tally { interrupted: self.cancel.is_cancelled(), ..tally }
    }

    /// Whether nothing more is to be run.
    pub(super) fn is_over(&self) -> bool {
        self.cancel.is_cancelled() || lock(&self.tally).failure.is_some()
    }

    /// Says what is run now.
    pub(super) fn begin(&self, name: &str) {
        self.bar.set_message(printable(name).into_owned());
    }

    /// Counts cells that have no row.
    pub(super) fn pass(&self, cells: usize) {
        self.bar.inc(cells as u64);
    }

    /// Counts a cell that needs no run, and enters its old row if it is of this bench.
    pub(super) fn skip(&self, row: Option<Row>) {
        self.bar.count_skipped();
        if let Some(row) = row {
            (self.on_row)(&row);
            lock(&self.tally).rows.push(row);
        }
    }

    /// Enters the rows of cells that were run now, and returns why they could not be stored, if so.
    pub(super) fn enter(&self, rows: Vec<Row>, kept: Result<(), Failure>) -> Result<(), Failure> {
        self.pass(rows.len());
        rows.iter().for_each(self.on_row);
        let mut tally = lock(&self.tally);
        if kept.is_err() {
            tally.lost.extend(rows);
        } else {
            tally.ran += rows.len();
            tally.rows.extend(rows);
        }
        kept
    }

    /// Returns what a workload was read as. If it cannot be read, enters that, with all of its cells.
    pub(super) fn accept<T>(&self, workload: &str, cells: usize, read: Result<T, Failure>) -> Option<T> {
        read.inspect_err(|failure| {
            lock(&self.tally).unreadable.push((workload.to_owned(), format!("{:#}", failure.error)));
            self.pass(cells);
        })
        .ok()
    }
}

/// Which cells this bench runs, and which rows it takes for run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// Part i of n.
    pub(crate) shard: Option<(u64, u64)>,
    pub(crate) retry: Option<Retry>,
}

impl Rule {
    /// Whether a cell belongs to this part. Its key decides, so all machines agree.
    pub(crate) fn has(&self, key: &str) -> bool {
        let Some((i, n)) = self.shard else { return true };
        u64::from_str_radix(&key[..16], 16).is_ok_and(|number| number % n == i - 1)
    }

    /// Whether a row of this status counts, because it is not to be retried.
    pub(crate) fn counts(&self, status: Status) -> bool {
        let is_retried = match self.retry {
            _ if status == Status::Interrupted => true,
            Some(Retry::Failed) => status.is_failure(),
            Some(Retry::Timeout) => status == Status::Timeout,
            None => false,
        };
        !is_retried
    }
}

/// Opens the store and reports its notices.
pub(crate) fn open_store(folder: &Path) -> Result<Store, Failure> {
    let store = Store::open(folder)?;
    store.notices().iter().for_each(|text| print_note(&text.to_string()));
    Ok(store)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_belongs_to_exactly_one_shard() {
        for number in 0..100_u64 {
            let key = planlab_dsa::Digest::of_bytes(&number.to_le_bytes()).to_string();
            let has = |i: &u64| Rule { shard: Some((*i, 7)), retry: None }.has(&key);
            assert_eq!((1..=7).filter(has).count(), 1, "{key}");
        }
    }

    #[test]
    fn only_what_is_asked_for_is_retried() {
        let counts = |status, retry| Rule { shard: None, retry }.counts(status);
        assert!(!counts(Status::Interrupted, None));
        assert!(counts(Status::Crashed, None));
        assert!(!counts(Status::Crashed, Some(Retry::Failed)));
        assert!(counts(Status::Timeout, Some(Retry::Failed)));
        assert!(!counts(Status::Timeout, Some(Retry::Timeout)));
        assert!(counts(Status::Optimal, Some(Retry::Failed)));
    }
}
