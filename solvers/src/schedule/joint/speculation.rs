//! An annealing on several threads with the result of one.
//!
//! Most changes are rejected, and a rejected change leaves the position as it was. So the next changes are tried before
//! the verdict on the first is known, each as if all before it were rejected:
//!
//! ```text
//!   change      12        13        14        15        16
//!   position    A         A         A         A         A       tried by several threads
//!   result      rejected  rejected  accepted  (dropped) (dropped)
//!   position                                  B         B       tried again
//! ```
//!
//! The main thread takes the results in the order of the changes and counts work for those alone. After an accepted
//! change it drops the later results. While it waits for a result it tries changes, too.
//!
//! A board hands out the changes. A change takes tens of microseconds or more, so one lock for the board is cheap.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::changes::{Position, Pricing, Round, Trial};
use crate::schedule::fates::Fates;
use crate::team::{STACK, spawn_with_stack};

/// The most threads. The further ahead a change is tried, the more often its result is dropped; and an allocator may
/// reserve 64 MiB of addresses for each thread.
const MOST_THREADS: usize = 16;
/// The changes for each thread that are tried ahead.
const AHEAD: usize = 4;

/// Calls `follow` with the trials of a round that begins at a position. `threads` is at least 1.
pub(super) fn run_trials<T>(
    round: &Round<'_>,
    position: Position,
    threads: usize,
    follow: impl FnOnce(&mut Trials<'_>) -> T,
) -> T {
    let position = Arc::new(position);
    let threads = threads.min(MOST_THREADS);
    if threads == 1 {
        return follow(&mut Trials::new(round, position, None));
    }
    let board = &Board::new(Arc::clone(&position), round.changes(), AHEAD * threads);
    thread::scope(|scope| {
        let _closing = Closing(board);
        for _ in 1..threads {
            // Fewer threads have the same result.
            if spawn_with_stack(scope, STACK, move || board.try_changes(round)).is_err() {
                break;
            }
        }
        follow(&mut Trials::new(round, position, Some(board)))
    })
}

/// The changes of a round in turn, and the position that they have led to.
pub(super) struct Trials<'a> {
    round: &'a Round<'a>,
    /// Shared with the board and its threads, if there are any.
    position: Arc<Position>,
    /// The fates of the position, but while a change is tried.
    scratch: Fates,
    board: Option<&'a Board>,
}

impl<'a> Trials<'a> {
    fn new(round: &'a Round<'a>, position: Arc<Position>, board: Option<&'a Board>) -> Self {
        Self { round, scratch: position.fates.clone(), position, board }
    }

    /// The result of a change, `None` if it is rejected. Each change has its turn once.
    pub(super) fn try_change(&mut self, change: usize) -> Option<Trial> {
        match self.board {
            None => self.round.try_change(&self.position, &mut self.scratch, change),
            Some(board) => board.await_result(self.round, &self.position, &mut self.scratch),
        }
    }

    /// Changes the position, and returns its fates. [`Self::update_costs`] has to follow.
    pub(super) fn accept_change(&mut self, change: usize) -> &Fates {
        let position = Arc::make_mut(&mut self.position);
        self.round.accept_change(position, &mut self.scratch, change);
        &self.position.fates
    }

    /// Sets the gaps and the cost of the position after an accepted change.
    pub(super) fn update_costs(&mut self, trial: Trial, pricing: Pricing) {
        let position = Arc::make_mut(&mut self.position);
        position.cost = trial.seconds + pricing.excess_seconds(trial.needed);
        position.pricing = pricing;
        position.gaps = trial.gaps;
        if let Some(board) = self.board {
            board.replace_position(&self.position);
        }
    }
}

/// Hands out changes to threads, and keeps their results until the main thread takes them.
struct Board {
    ledger: Mutex<Ledger>,
    /// Wakes the threads that wait for a result, or for a change to try.
    changed: Condvar,
}

struct Ledger {
    position: Arc<Position>,
    /// The first change whose result was not taken.
    first: usize,
    /// For each change that was handed out, from the first on: its result, if it is known.
    results: VecDeque<Option<Option<Trial>>>,
    /// The number of changes in the round.
    changes: usize,
    /// The most changes that are handed out before their results are taken.
    window: usize,
    /// The number of threads that wait.
    waiting: usize,
    /// Whether the round is over, or a thread has panicked.
    is_closed: bool,
}

/// What the main thread does next.
enum Step {
    /// It goes on with the result of the first change.
    Take(Option<Trial>),
    /// It tries a change.
    Try(usize),
}

impl Ledger {
    /// The next change to try from the position, if one may be tried now.
    fn claim_change(&mut self) -> Option<usize> {
        let next = self.first + self.results.len();
        if self.results.len() >= self.window || next >= self.changes {
            return None;
        }
        self.results.push_back(None);
        Some(next)
    }

    /// Takes the result of the first change, if it is known.
    fn take_result(&mut self) -> Option<Option<Trial>> {
        self.results.front()?.as_ref()?;
        self.first += 1;
        self.results.pop_front().flatten()
    }
}

impl Board {
    fn new(position: Arc<Position>, changes: usize, window: usize) -> Self {
        let results = VecDeque::with_capacity(window);
        let ledger = Ledger { position, first: 0, results, changes, window, waiting: 0, is_closed: false };
        Self { ledger: Mutex::new(ledger), changed: Condvar::new() }
    }

    fn lock_ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn await_change<'l>(&self, mut ledger: MutexGuard<'l, Ledger>) -> MutexGuard<'l, Ledger> {
        ledger.waiting += 1;
        let mut ledger = self.changed.wait(ledger).unwrap_or_else(PoisonError::into_inner);
        ledger.waiting -= 1;
        ledger
    }

    fn wake_waiting(&self, ledger: MutexGuard<'_, Ledger>) {
        let is_awaited = ledger.waiting > 0;
        drop(ledger);
        if is_awaited {
            self.changed.notify_all();
        }
    }

    /// Tries changes until the round is over.
    fn try_changes(&self, round: &Round<'_>) {
        // A panic must not leave the main thread waiting.
        let _closing = Closing(self);
        let mut position = Arc::clone(&self.lock_ledger().position);
        let mut scratch = position.fates.clone();
        while let Some((current, change)) = self.await_claim() {
            if !Arc::ptr_eq(&current, &position) {
                scratch.clone_from(&current.fates);
                position = current;
            }
            let result = round.try_change(&position, &mut scratch, change);
            self.put_result(&position, change, result);
        }
    }

    /// The next change to try, with its position; `None` if the round is over.
    fn await_claim(&self) -> Option<(Arc<Position>, usize)> {
        let mut ledger = self.lock_ledger();
        while !ledger.is_closed {
            if let Some(change) = ledger.claim_change() {
                return Some((Arc::clone(&ledger.position), change));
            }
            ledger = self.await_change(ledger);
        }
        None
    }

    /// Keeps the result of a change, unless its position was left.
    fn put_result(&self, position: &Arc<Position>, change: usize, result: Option<Trial>) {
        let mut ledger = self.lock_ledger();
        if Arc::ptr_eq(&ledger.position, position) {
            let place = change - ledger.first;
            ledger.results[place] = Some(result);
            self.wake_waiting(ledger);
        }
    }

    /// The result of the next change in turn; tries others until it is there.
    fn await_result(
        &self,
        round: &Round<'_>,
        position: &Arc<Position>,
        scratch: &mut Fates,
    ) -> Option<Trial> {
        loop {
            match self.await_step() {
                Step::Take(result) => return result,
                Step::Try(change) => {
                    let result = round.try_change(position, scratch, change);
                    self.put_result(position, change, result);
                }
            }
        }
    }

    fn await_step(&self) -> Step {
        let mut ledger = self.lock_ledger();
        loop {
            if let Some(result) = ledger.take_result() {
                self.wake_waiting(ledger);
                return Step::Take(result);
            }
            if let Some(change) = ledger.claim_change() {
                return Step::Try(change);
            }
            assert!(!ledger.is_closed, "a thread of the search has panicked");
            ledger = self.await_change(ledger);
        }
    }

    /// Goes on from another position, with the change after the last one whose result was taken.
    fn replace_position(&self, position: &Arc<Position>) {
        let mut ledger = self.lock_ledger();
        let before = mem::replace(&mut ledger.position, Arc::clone(position));
        let dropped = mem::take(&mut ledger.results);
        self.wake_waiting(ledger);
        // Freed without the lock.
        drop((before, dropped));
    }
}

/// Ends the round for all threads when it goes out of scope.
struct Closing<'b>(&'b Board);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.lock_ledger().is_closed = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::joint::changes::testing::start_round;
    use crate::schedule::testing::branching_problem;

    fn trial(seconds: f64) -> Option<Trial> {
        Some(Trial { seconds, needed: 0, cost: seconds, gaps: Vec::new() })
    }

    fn seconds(step: Step) -> Result<Option<f64>, usize> {
        match step {
            Step::Take(result) => Ok(result.map(|trial| trial.seconds)),
            Step::Try(change) => Err(change),
        }
    }

    #[test]
    fn results_are_taken_in_the_order_of_changes() {
        let problem = branching_problem();
        let position = Arc::new(start_round(&problem).1);
        let board = Board::new(Arc::clone(&position), 3, 2);
        assert_eq!(seconds(board.await_step()), Err(0));
        assert_eq!(board.await_claim().map(|(_, change)| change), Some(1));
        assert_eq!(board.lock_ledger().claim_change(), None, "the window is full");
        board.put_result(&position, 1, trial(7.0));
        board.put_result(&position, 0, None);
        assert_eq!(seconds(board.await_step()), Ok(None));
        assert_eq!(seconds(board.await_step()), Ok(Some(7.0)));
        assert_eq!(seconds(board.await_step()), Err(2));
    }

    #[test]
    fn results_of_a_position_that_was_left_are_dropped() {
        let problem = branching_problem();
        let [before, after] = [(); 2].map(|()| Arc::new(start_round(&problem).1));
        let board = Board::new(Arc::clone(&before), 10, 8);
        for change in 0..3 {
            assert_eq!(board.await_claim().map(|(_, claimed)| claimed), Some(change));
        }
        board.put_result(&before, 0, trial(7.0));
        board.put_result(&before, 1, trial(8.0));
        assert_eq!(seconds(board.await_step()), Ok(Some(7.0)));
        board.replace_position(&after);
        board.put_result(&before, 2, trial(9.0));
        let (position, change) = board.await_claim().expect("the round goes on");
        assert!(Arc::ptr_eq(&position, &after) && change == 1);
        board.put_result(&after, 1, None);
        assert_eq!(seconds(board.await_step()), Ok(None));
    }

    #[test]
    fn closed_board_hands_out_no_changes() {
        let problem = branching_problem();
        let board = Board::new(Arc::new(start_round(&problem).1), 10, 8);
        drop(Closing(&board));
        assert!(board.await_claim().is_none());
    }

    #[test]
    fn any_number_of_threads_takes_the_same_changes() {
        let problem = branching_problem();
        let accepted = |threads| {
            let (round, position) = start_round(&problem);
            let pricing = position.pricing;
            run_trials(&round, position, threads, |trials| {
                let mut accepted = Vec::new();
                for change in 0..round.changes() {
                    let Some(trial) = trials.try_change(change) else { continue };
                    accepted.push((change, trial.cost, trials.accept_change(change).clone()));
                    trials.update_costs(trial, pricing);
                }
                accepted
            })
        };
        let alone = accepted(1);
        assert!(!alone.is_empty());
        for threads in [2, 3, 20] {
            assert_eq!(accepted(threads), alone, "{threads} threads");
        }
    }
}
