//! A contender at work: it enqueues propagations and times them.

use std::sync::Arc;
use std::time::Instant;

use planlab_dsa::NO_OPERATIONS;
use planlab_dsa::performance::{End, Sample};

use super::contenders::{Memory, Strategy};
use super::failure::{Broken, broken, broken_build, broken_device, with_lost};
use super::player::{Peaks, Player, Score, Stop, Touch};
use super::tally::Tally;
use crate::Kind;
use crate::cuda::driver::{Driver, DriverError, Graph, Mark, SLOTS};
use crate::looks::as_nanoseconds;

/// Runs of at least this many calls are long.
const LONG_RUN: usize = 4;

/// Launches that a driver keeps pending on a stream; the next one waits until one of them is done. Current drivers
/// keep about 1024.
const QUEUE: usize = 1000;

/// How often each propagation is played to be checked: the first time cold, then in a running contender.
const CHECKED: usize = 3;

/// A contender and what it plays.
pub(super) struct Act<'a> {
    driver: &'a Arc<dyn Driver>,
    scores: &'a [Score],
    players: Vec<Player<'a>>,
    pub(super) memory: Memory,
    graph: Option<Graph>,
    is_graph: bool,
    touch: Touch,
    /// Whether all of a propagation fits in the driver's queue, for each propagation.
    fits_queue: Vec<bool>,
    /// The number of propagations so far.
    pub(super) played: u64,
}

impl<'a> Act<'a> {
    pub(super) fn new(
        driver: &'a Arc<dyn Driver>,
        scores: &'a [Score],
        strategy: &Strategy<'a>,
        touch: Touch,
    ) -> Result<Self, Broken> {
        let memory = Memory::new(strategy, driver).map_err(broken_build)?;
        let is_nameless = scores.iter().any(|score| score.sequence().operations().is_none());
        if is_nameless && memory.allocator.wants_operations() {
            return Err((End::Unavailable, NO_OPERATIONS.to_owned()));
        }
        let player = |score| Player::new(driver.as_ref(), score);
        let mut act = Self {
            driver,
            scores,
            players: scores.iter().map(player).collect(),
            memory,
            graph: None,
            is_graph: strategy.is_graph(),
            touch,
            fits_queue: scores.iter().map(|score| launches(strategy, score, touch) <= QUEUE).collect(),
            played: 0,
        };
        let captured = if act.is_graph { act.capture_graph() } else { Ok(()) };
        match captured {
            Ok(()) => Ok(act),
            Err(stop) => {
                let broken = broken(&stop, &act.memory);
                Err(with_lost(broken, act.give_back()))
            }
        }
    }

    /// Ends the turn. If something was not given back, the turn fails, or its failure's reason mentions that, too.
    pub(super) fn end_act(mut self, played: Result<(), Broken>) -> Result<(), Broken> {
        match (played, self.give_back()) {
            (played, None) => played,
            (Ok(()), Some(lost)) => Err((End::Failed, lost)),
            (Err(broken), lost) => Err(with_lost(broken, lost)),
        }
    }

    /// Gives everything back; returns what failed.
    fn give_back(&mut self) -> Option<String> {
        // Earlier faults were reported by now.
        drop(self.memory.book.take_fault());
        // Launched kernels may still use the memory.
        self.memory.book.note_end(self.driver.synchronise());
        let dropped = self.drop_graph();
        self.memory.book.note_end(dropped);
        self.memory.give_back();
        let fault = self.memory.book.take_fault()?;
        Some(format!("not all was given back at the end: {fault}"))
    }

    fn capture_graph(&mut self) -> Result<(), Stop> {
        self.driver.begin_capture()?;
        let played = self.players[0].play_propagation(&mut self.memory, self.touch);
        let captured = self.driver.end_capture();
        self.graph = captured.as_ref().ok().copied();
        played?;
        captured?;
        Ok(())
    }

    /// Enqueues the next propagation.
    #[allow(unsafe_code, reason = "a graph is launched")]
    fn enqueue_propagation(&mut self) -> Result<(), Stop> {
        let which = self.next_index();
        let touch = match self.touch {
            #[expect(clippy::cast_possible_truncation, reason = "any number that differs will do")]
            Touch::Check(_) => Touch::Check(self.played as u32),
            other => other,
        };
        self.played += 1;
        if let Some(graph) = self.graph {
            // SAFETY: its kernels touch memory that `memory` holds and gives back only when it is dropped, or the
            // graph's own
            // memory.
            return Ok(unsafe { self.driver.launch_graph(graph) }?);
        }
        self.players[which].play_propagation(&mut self.memory, touch)?;
        self.memory.allocator.end_propagation();
        if self.touch == Touch::Nothing && self.memory.is_driver {
            self.driver.synchronise()?;
        }
        Ok(())
    }

    /// The index of the next propagation.
    fn next_index(&self) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "less than the number of propagations")]
        let next = (self.played % self.scores.len() as u64) as usize;
        next
    }

    /// Times some propagations together.
    pub(super) fn time_sample(&mut self, propagations: u32) -> Result<Sample, Stop> {
        let has_kernels = self.touch != Touch::Nothing;
        let fits_queue = self.fits_queue[self.next_index()];
        // Forget what was held before.
        let _ = self.memory.take_most_held();
        let start = Instant::now();
        if has_kernels {
            self.driver.record_mark(Mark::Begin)?;
        }
        for _ in 0..propagations {
            self.enqueue_propagation()?;
        }
        if has_kernels {
            self.driver.record_mark(Mark::End)?;
        }
        let enqueue = Some(start.elapsed()).filter(|_| has_kernels && fits_queue);
        if has_kernels {
            self.driver.synchronise()?;
        }
        let wall = start.elapsed();
        let device = if has_kernels { Some(self.driver.between_marks()?) } else { None };
        let planning = self.memory.allocator.planning();
        Ok(Sample {
            propagations,
            wall_ns: as_nanoseconds(wall),
            cpu_ns: None,
            enqueue_ns: enqueue.map(as_nanoseconds),
            device_ns: device.map(as_nanoseconds),
            reserved: Some(self.reserved_bytes()?),
            reserved_peak: self.memory.take_most_held(),
            plans: planning.map(|planning| planning.plans),
            planning_ns: planning.map(|planning| as_nanoseconds(planning.time)),
            planned: planning.map(|planning| planning.planned),
            missed: planning.map(|planning| planning.missed.total()),
        })
    }

    fn reserved_bytes(&self) -> Result<u64, DriverError> {
        let own = self.memory.allocator.usage().reserved.get();
        Ok(if self.is_graph { own.max(self.driver.graph_memory()?.reserved) } else { own })
    }

    pub(super) fn reserved_peak(&self) -> Result<u64, DriverError> {
        let own = self.memory.allocator.usage().reserved_peak.get();
        Ok(if self.is_graph { own.max(self.driver.graph_memory()?.reserved_peak) } else { own })
    }

    /// Plays each propagation `CHECKED` times and waits; the players record how much is held.
    pub(super) fn play_all(&mut self, free: u64) -> Result<(), Stop> {
        let players = std::mem::take(&mut self.players);
        self.players = players.into_iter().map(|player| player.with_peaks(free)).collect();
        for _ in 0..CHECKED * self.scores.len() {
            self.enqueue_propagation()?;
        }
        self.driver.synchronise()?;
        let free = self.driver.device_memory()?.free.get();
        if let Some(peaks) = &mut self.players[0].peaks {
            peaks.least_free = peaks.least_free.min(free);
            peaks.used = peaks.used.max(self.memory.allocator.usage().used.get());
        }
        Ok(())
    }

    pub(super) fn peaks(&self) -> Peaks {
        let seen = self.players.iter().filter_map(|player| player.peaks);
        seen.fold(Peaks::new(u64::MAX), Peaks::combined_with)
    }

    /// Times every run of calls of each propagation by itself.
    pub(super) fn time_calls(&mut self, tally: &mut Tally) -> Result<(), Stop> {
        for which in 0..self.scores.len() {
            let sequence = self.scores[which].sequence();
            let player = &mut self.players[which];
            let allocator = self.memory.allocator.as_mut();
            player.begin_propagation(allocator);
            let longest = |of: Kind| {
                sequence.runs().filter(|(kind, _)| *kind == of).map(|(_, ids)| ids.len()).max().unwrap_or(0)
            };
            let least = [longest(Kind::Alloc), longest(Kind::Free)].map(|longest| longest.min(LONG_RUN));
            for (kind, ids) in sequence.runs() {
                let start = Instant::now();
                player.play_calls(allocator, kind, ids)?;
                let time = start.elapsed();
                if ids.len() >= least[kind as usize] {
                    let picoseconds = time.as_nanos() * 1000 / ids.len() as u128;
                    tally.calls[kind as usize].push(u64::try_from(picoseconds).unwrap_or(u64::MAX));
                    let (runs, all_ns) = &mut tally.timed_runs[kind as usize];
                    *runs += 1;
                    *all_ns += as_nanoseconds(time);
                }
            }
            allocator.end_propagation();
            self.driver.synchronise()?;
        }
        Ok(())
    }

    /// Checks that the counters hold the sums of what was written.
    pub(super) fn check_sums(&self) -> Result<(), Broken> {
        if self.touch == Touch::Nothing {
            return Ok(());
        }
        let mut expected = vec![0; SLOTS];
        let count = self.scores.len() as u64;
        for (which, score) in (0..count).zip(self.scores) {
            score.add_sums((self.played + count - 1 - which) / count, &mut expected);
        }
        let found = self.driver.read_slots().map_err(broken_device)?;
        match expected.iter().zip(&found).position(|(expected, found)| expected != found) {
            None => Ok(()),
            Some(buffer) => {
                let says = "the sum of what was read is not that of what was written";
                Err((End::Corrupt, format!("buffer {buffer}: {says}")))
            }
        }
    }

    /// Checks that the driver did all that the contender asked: calls that give memory back return no result.
    pub(super) fn check_book(&self) -> Result<(), Broken> {
        self.memory.book.fault().map_or(Ok(()), |fault| Err(broken_device(fault)))
    }

    pub(super) fn drop_graph(&mut self) -> Result<(), DriverError> {
        self.graph.take().map_or(Ok(()), |graph| self.driver.drop_graph(graph))
    }
}

impl Drop for Act<'_> {
    fn drop(&mut self) {
        // Turns end by `end`; this is for what a panic leaves.
        drop(self.give_back());
    }
}

/// The number of entries that a contender puts into the driver's queue in one propagation.
fn launches(strategy: &Strategy<'_>, score: &Score, touch: Touch) -> usize {
    let kernels = score.kernel_count(touch);
    match strategy {
        _ if strategy.is_graph() => 1,
        // Its requests and frees enter the stream, too.
        Strategy::MallocAsync(_) => kernels + 2 * score.sequence().sizes().len(),
        _ => kernels,
    }
}
