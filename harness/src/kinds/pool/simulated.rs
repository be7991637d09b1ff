//! Plays propagations, one after another, on an online allocator over simulated memory.

use std::any::Any;
use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use planlab_dsa::{
    AllocError, Bytes, Digest, Meter, Metered, NO_OPERATIONS, OnlineAllocator, Simulated, Usage,
};
use planlab_replay::{End, Performance, Sample, Work};
use planlab_results::WorkloadKey;
use planlab_results::replay::{REPLAY_SCHEMA, ReplayRow};
use planlab_solvers::online::{self, Entry, Requests, SimulationError, Simulator};
use planlab_workloads::{Trace, expected};
use serde_json::json;

use crate::kinds::pool::Contender;
use crate::kinds::pool::row::{Place, row};
use crate::kinds::pool::subject::{Subject, trace_propagations};
use crate::shell::clock::{now_ns, thread_cpu_time};
use crate::shell::exit::Failure;
use crate::shell::keys;
use crate::shell::provenance;
use crate::shell::quantity::as_nanoseconds;

/// The number of rounds checked for overlaps before any is timed.
const AUDITED: u32 = 2;
/// The most rounds for an allocator that plans to settle.
pub(crate) const SETTLING: u32 = 20;
/// The wall time for propagations that are played only to be timed.
const TIMING: Duration = Duration::from_secs(1);

/// Traces that are played in turn, each as one propagation.
pub(crate) struct Stream {
    /// The common part of the traces' names.
    pub(crate) name: WorkloadKey,
    /// The names of the traces in order.
    pub(crate) keys: Vec<String>,
    /// The digest of the instance; for several, the digest of their digests.
    instance: Digest,
    /// Digest of the requests.
    calls: Digest,
    /// Only what comes before this step is played.
    until: Option<u32>,
    requests: Vec<Requests>,
    /// Bytes that live from before the propagations to after them; looked up when a row needs them.
    retained: OnceCell<Option<Bytes>>,
}

/// The allocators that one of the globs matches, in the registry's order.
pub(crate) fn matching(globs: &[String]) -> Result<Vec<Entry>, Failure> {
    let keys = keys::matching("there is no allocator", globs, online::keys())?;
    Ok(keys.into_iter().filter_map(online::find_allocator).collect())
}

/// How to play a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    /// How often the stream is played. The memory figures cover these rounds.
    pub(crate) rounds: u32,
    /// Rounds are added to be timed until there are this many propagations, or their time is up. Default: 0.
    pub(crate) timed: u32,
    /// Memory of the device in bytes; `None` means unlimited.
    pub(crate) capacity: Option<u64>,
}

/// The figures of an allocator.
pub(crate) struct Played {
    pub(crate) usage: Usage,
    /// The usage before the last propagation.
    pub(crate) before: Usage,
    /// The most bytes in use, as the allocator rounds them.
    used_peak: Bytes,
    /// How it ended, with a sample for each propagation that was begun.
    pub(crate) performance: Performance,
    started_ns: u64,
}

impl Stream {
    /// The stream of these traces in order, each with its name.
    pub(crate) fn new(traces: &[(String, Trace)], until: Option<u32>) -> Self {
        let keys: Vec<String> = traces.iter().map(|(key, _)| key.clone()).collect();
        let requests = trace_propagations(traces.iter().map(|(_, trace)| trace), until);
        let digests: Vec<Digest> = traces.iter().map(|(_, trace)| trace.instance.digest()).collect();
        let instance = match digests.as_slice() {
            [one] => *one,
            several => Digest::of_bytes(json!(several).to_string().as_bytes()),
        };
        let sizes: Vec<&[Bytes]> = requests.iter().map(Requests::sizes).collect();
        let operations: Vec<Option<&[u64]>> = requests.iter().map(Requests::requesting_operations).collect();
        let calls = Digest::of_bytes(json!([instance, sizes, operations, until]).to_string().as_bytes());
        let names: Vec<WorkloadKey> = keys.iter().map(|key| key.as_str().into()).collect();
        let name = WorkloadKey::shared_prefix(&names).unwrap_or_else(|| "several".into());
        Self { name, keys, instance, calls, until, requests, retained: OnceCell::new() }
    }

    /// The number of requests of all propagations together.
    pub(crate) fn request_count(&self) -> u64 {
        self.requests.iter().map(Requests::request_count).sum()
    }

    /// The most bytes of requests live at once, and the bytes live at the end of the last propagation.
    pub(crate) fn live_bytes(&self) -> (Bytes, Bytes) {
        let live = || self.requests.iter().map(Requests::live_bytes);
        let peak = live().map(|(peak, _)| peak).max().unwrap_or_default();
        (peak, live().next_back().map(|(_, end)| end).unwrap_or_default())
    }

    /// Whether a propagation does not name the operation of each request.
    fn lacks_operations(&self) -> bool {
        self.requests.iter().any(|requests| requests.requesting_operations().is_none())
    }

    /// The row's description of the stream.
    fn stream_subject(&self) -> Subject {
        let sizes = self.requests.iter().flat_map(Requests::sizes);
        Subject {
            name: self.name.clone(),
            sequence: if self.keys.len() > 1 { self.keys.clone() } else { Vec::new() },
            until: self.until,
            instance: self.instance,
            requests: self.request_count(),
            peak: self.live_bytes().0.get(),
            total: sizes.map(|size| size.get()).sum(),
            retained: self.retained_bytes().map(Bytes::get),
        }
    }

    fn retained_bytes(&self) -> Option<Bytes> {
        *self.retained.get_or_init(|| self.keys.first().and_then(|key| expected::retained_bytes(key)))
    }

    /// The propagations of the given number of rounds.
    fn propagations_of(&self, rounds: u32) -> impl Iterator<Item = &Requests> {
        (0..rounds).flat_map(move |_| &self.requests)
    }
}

/// The key of a cell, under which the store finds the row of an earlier play.
pub(crate) fn cell_digest(allocator: &str, stream: &Stream, order: Order) -> String {
    let parts = json!({
        "schema": REPLAY_SCHEMA,
        "calls": stream.calls,
        "contender": allocator,
        "version": planlab_solvers::SOURCE_DIGEST,
        "device": "simulated",
        "work": Work::None,
        "threads": 1,
        "capacity": order.capacity,
        "rounds": order.rounds,
        "timed": order.timed,
    });
    Digest::of_bytes(parts.to_string().as_bytes()).to_string()
}

/// Plays a stream from an empty allocator: first with a check that no live memory is handed out, then timed. An
/// allocator that panics is marked as failed. One that identifies requests by operation is skipped if the stream has
/// none.
pub(crate) fn play_stream(entry: &Entry, stream: &Stream, order: Order) -> Played {
    if stream.lacks_operations() && Memory::new(entry, None).allocator.wants_operations() {
        let mut played = Played::begin_figures();
        played.stop_with(End::Unavailable, NO_OPERATIONS.to_owned());
        return played;
    }
    guard_panics(|played| {
        played.used_peak = audit_allocator(entry, stream, order)?;
        let mut memory = Memory::new(entry, order.capacity);
        for requests in stream.propagations_of(order.rounds) {
            played.play_propagation(&mut memory, requests)?;
        }
        played.time_propagations(&mut memory, stream, order)
    })
}

/// The number of rounds after which an allocator's figures stay the same: the last round made no plan, and held as much
/// as the one before. 1 for an allocator that does not plan; `None` if 20 rounds are too few. If a round fails, the
/// rounds until then.
pub(crate) fn rounds_to_settle(entry: &Entry, stream: &Stream, capacity: Option<u64>) -> Option<u32> {
    let mut memory = Memory::new(entry, capacity);
    if memory.allocator.planning().is_none() {
        return Some(1);
    }
    let (mut rounds, mut is_settled) = (0, false);
    let played = guard_panics(|played| {
        let mut before = None;
        while rounds < SETTLING {
            rounds += 1;
            stream
                .propagations_of(1)
                .try_for_each(|requests| played.play_propagation(&mut memory, requests))?;
            let held =
                played.performance.samples.last().map(|last| (last.plans, last.reserved, last.reserved_peak));
            is_settled = held == before;
            if is_settled {
                break;
            }
            before = held;
        }
        Ok(())
    });
    let has_ended = is_settled || played.performance.status != End::Complete;
    has_ended.then_some(rounds)
}

/// Runs an attempt; returns its figures even if it fails or panics.
fn guard_panics(attempt: impl FnOnce(&mut Played) -> Result<(), SimulationError>) -> Played {
    let mut played = Played::begin_figures();
    match catch_unwind(AssertUnwindSafe(|| attempt(&mut played))) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => played.end_with_error(&error),
        Err(panic) => {
            played.stop_with(End::Failed, panic_message(panic.as_ref()));
        }
    }
    played
}

/// The message of a panic, in one line.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    format!("panic: {}", text.lines().next().unwrap_or_default())
}

/// An allocator over simulated memory, with a record of what it holds.
struct Memory {
    allocator: Box<dyn OnlineAllocator>,
    meter: Arc<Meter>,
}

impl Memory {
    fn new(entry: &Entry, capacity: Option<u64>) -> Self {
        let device =
            capacity.map_or_else(Simulated::new, |bytes| Simulated::with_capacity(Bytes::new(bytes)));
        let (device, meter) = Metered::new(device);
        Self { allocator: entry.build(Box::new(device)), meter }
    }
}

/// Plays some rounds with checks. Returns the most bytes in use, or the allocator's fault; running out of memory is not
/// a fault.
fn audit_allocator(entry: &Entry, stream: &Stream, order: Order) -> Result<Bytes, SimulationError> {
    let mut memory = Memory::new(entry, order.capacity);
    let mut used_peak = Bytes::ZERO;
    for requests in stream.propagations_of(order.rounds.min(AUDITED)) {
        let mut simulator = Simulator::new(requests, memory.allocator.as_mut()).with_audit();
        let end = simulator.run_iteration().and_then(|()| simulator.finish_propagation());
        used_peak = used_peak.max(simulator.used_peak());
        match end {
            Ok(()) => {}
            Err(SimulationError::Alloc { .. }) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(used_peak)
}

/// The result of an act, with its wall time and this thread's CPU time, in nanoseconds.
fn time_act<T>(act: impl FnOnce() -> T) -> (T, u64, u64) {
    let (cpu, start) = (thread_cpu_time(), Instant::now());
    let value = act();
    let wall = start.elapsed();
    (value, as_nanoseconds(wall), as_nanoseconds(thread_cpu_time().saturating_sub(cpu)))
}

impl Played {
    fn begin_figures() -> Self {
        Self {
            usage: Usage::default(),
            before: Usage::default(),
            used_peak: Bytes::ZERO,
            performance: Performance::default(),
            started_ns: now_ns(),
        }
    }

    /// Plays one more propagation. At its end it frees what is still live, which is part of its time. `reserved` is
    /// read before those frees, `reserved_peak` after them.
    fn play_propagation(&mut self, memory: &mut Memory, requests: &Requests) -> Result<(), SimulationError> {
        // Restart the maximum from what is held now.
        let _ = memory.meter.take_most();
        let mut simulator = Simulator::new(requests, memory.allocator.as_mut());
        let (ran, run_ns, run_cpu_ns) = time_act(|| simulator.run_iteration());
        let usage = simulator.usage();
        let (end, end_ns, end_cpu_ns) = time_act(|| ran.and_then(|()| simulator.finish_propagation()));
        let planning = memory.allocator.planning();
        self.performance.missed = planning.map(|planning| planning.missed);
        self.before = std::mem::replace(&mut self.usage, usage);
        self.performance.samples.push(Sample {
            propagations: 1,
            wall_ns: run_ns + end_ns,
            cpu_ns: Some(run_cpu_ns + end_cpu_ns),
            reserved: Some(usage.reserved.get()),
            reserved_peak: Some(memory.meter.take_most().get()),
            plans: planning.map(|planning| planning.plans),
            planning_ns: planning.map(|planning| as_nanoseconds(planning.time)),
            planned: planning.map(|planning| planning.planned),
            missed: planning.map(|planning| planning.missed.total()),
            ..Sample::default()
        });
        end
    }

    /// Plays rounds only to time them. Their memory does not count, because the number of rounds depends on the
    /// machine.
    fn time_propagations(
        &mut self,
        memory: &mut Memory,
        stream: &Stream,
        order: Order,
    ) -> Result<(), SimulationError> {
        let (usage, start) = ((self.usage, self.before), Instant::now());
        while self.performance.samples.len() < order.timed as usize && start.elapsed() < TIMING {
            let known = self.performance.samples.len();
            let end = stream.requests.iter().try_for_each(|requests| self.play_propagation(memory, requests));
            for sample in &mut self.performance.samples[known..] {
                (sample.reserved, sample.reserved_peak) = (None, None);
            }
            (self.usage, self.before) = usage;
            end?;
        }
        Ok(())
    }

    fn end_with_error(&mut self, error: &SimulationError) {
        let status = match error {
            SimulationError::Alloc { error: AllocError::OutOfMemory { .. }, .. } => End::OutOfMemory,
            SimulationError::Alloc { .. } => End::Unavailable,
            _ => End::Corrupt,
        };
        self.stop_with(status, error.to_string());
    }

    fn stop_with(&mut self, status: End, reason: String) {
        (self.performance.status, self.performance.reason) = (status, reason);
    }

    /// Wall time of all propagations, nanoseconds.
    pub(crate) fn total_ns(&self) -> u64 {
        self.performance.samples.iter().map(|sample| sample.wall_ns).sum()
    }

    /// Wall time of the last propagation, nanoseconds.
    pub(crate) fn last_ns(&self) -> u64 {
        self.performance.samples.last().map_or(0, |sample| sample.wall_ns)
    }

    /// The row of these figures.
    pub(crate) fn into_row(self, entry: &Entry, stream: &Stream, order: Order, suite: &str) -> ReplayRow {
        let performance = Performance {
            is_steady: is_steady(&self.performance.samples),
            reserved_peak: self.usage.reserved_peak.get(),
            used_peak: Some(self.used_peak.get()).filter(|&peak| peak > 0),
            device_allocations: self.usage.device_allocations,
            search_steps: self.usage.search_steps - self.before.search_steps,
            ..self.performance
        };
        let (subject, contender) = (stream.stream_subject(), Contender::from_allocator(entry.key));
        let place = (Place::of_host("simulated"), Work::None);
        row(&subject, &contender, place, performance, provenance::this_machine(1)).with(|row| {
            (row.cell, row.started_ns) = (cell_digest(entry.key, stream, order), self.started_ns);
            (row.suite, row.capacity) = (suite.to_owned(), order.capacity);
        })
    }
}

/// Whether the last two propagations with memory figures ended with the same bytes reserved.
fn is_steady(samples: &[Sample]) -> bool {
    let mut last = samples.iter().rev().filter_map(|sample| sample.reserved);
    last.next().zip(last.next()).is_some_and(|(last, before)| last == before)
}

#[cfg(test)]
mod tests {
    use planlab_solvers::online::find_allocator;
    use planlab_workloads::Catalog;

    use super::*;

    fn stream(key: &str) -> Stream {
        let trace = Catalog::new(None).load(key).expect("a workload");
        Stream::new(&[(key.to_owned(), trace)], None)
    }

    fn row(key: &str, stream: &Stream, order: Order) -> ReplayRow {
        let entry = find_allocator(key).expect("registered");
        play_stream(&entry, stream, order).into_row(&entry, stream, order, "")
    }

    #[test]
    fn a_row_has_each_propagation_and_what_the_net_keeps() {
        let alexnet = stream("chainer/alexnet/train/b32");
        let row = row("cupy2rc1-pool", &alexnet, Order { rounds: 5, timed: 0, capacity: None });
        let came = &row.performance;
        assert_eq!((came.status, came.samples.len(), came.is_steady), (End::Complete, 5, true));
        assert!(came.used_peak >= Some(row.requested_peak) && came.used_peak <= Some(came.reserved_peak));
        assert!(came.samples.iter().all(|sample| sample.cpu_ns.is_some()));
        assert_eq!((came.reserved_peak, row.requested_peak), (459_276_288, 355_707_904));
        assert_eq!(row.retained, Some(748_544_000));
        // The allocator gives nothing back.
        assert!(came.samples.iter().all(|sample| sample.reserved_peak == sample.reserved));
        assert!(row.sequence.is_empty() && came.samples.iter().all(|sample| sample.plans.is_none()));
    }

    #[test]
    fn an_allocator_that_plans_is_played_until_it_holds_its_plan() {
        let googlenet = stream("chainer/googlenet/train/b32");
        let settled = |key| rounds_to_settle(&find_allocator(key).expect("registered"), &googlenet, None);
        assert_eq!(settled("cupy2rc1-pool"), Some(1));
        let rounds = settled("profile-guided").expect("it settles");
        assert!((3..SETTLING).contains(&rounds), "{rounds}");
        let row = row("profile-guided", &googlenet, Order { rounds, timed: 0, capacity: None });
        let came = &row.performance;
        let held = came.samples.last().and_then(|sample| sample.reserved_peak);
        assert!(held < came.samples[0].reserved_peak, "{:?}", came.samples);
        let none = Some(1 << 20);
        assert_eq!(
            rounds_to_settle(&find_allocator("profile-guided").expect("registered"), &googlenet, none),
            Some(1)
        );
    }

    #[test]
    fn rounds_for_times_alone_leave_the_memory_as_it_was() {
        let alexnet = stream("chainer/alexnet/infer/b1");
        let few = Order { rounds: 5, timed: 0, capacity: None };
        let (few, many) = (few, Order { timed: 21, ..few });
        let (few, many) = (row("profile-guided", &alexnet, few), row("profile-guided", &alexnet, many));
        let is_not_looked_at = |sample: &Sample| sample.reserved.is_none() && sample.reserved_peak.is_none();
        assert!(
            many.performance.samples.len() > 5 && many.performance.samples[5..].iter().all(is_not_looked_at)
        );
        let memory = |row: &ReplayRow| {
            (
                row.performance.reserved_peak,
                row.performance.device_allocations,
                row.performance.search_steps,
                row.performance.samples[4].reserved,
            )
        };
        assert_eq!((memory(&few), few.performance.is_steady), (memory(&many), many.performance.is_steady));
        assert_ne!(few.cell, many.cell);
    }

    #[test]
    fn a_panic_is_a_failure_that_says_what_happened() {
        let played = guard_panics(|played| {
            played.performance.samples.push(Sample::default());
            panic!("a list\nis broken")
        });
        assert_eq!((played.performance.status, played.performance.samples.len()), (End::Failed, 1));
        assert_eq!(played.performance.reason, "panic: a list");
    }

    #[test]
    fn the_cell_is_what_is_played_and_memory_may_end() {
        let (one, other) = (stream("chainer/alexnet/infer/b1"), stream("chainer/googlenet/infer/b1"));
        let order = Order { rounds: 5, timed: 0, capacity: None };
        let key = cell_digest("cupy1-pool", &one, order);
        let less = Order { capacity: Some(1 << 20), ..order };
        for another in [
            cell_digest("cupy2rc1-pool", &one, order),
            cell_digest("cupy1-pool", &other, order),
            cell_digest("cupy1-pool", &one, less),
            cell_digest("cupy1-pool", &one, Order { rounds: 4, ..order }),
        ] {
            assert_ne!(another, key);
        }
        let row = row("cupy1-pool", &one, less);
        let came = &row.performance;
        assert_eq!((came.status, row.capacity), (End::OutOfMemory, less.capacity));
        assert_eq!(row.cell, cell_digest("cupy1-pool", &one, less));
        assert!(came.reason.contains("out of memory") && !came.is_steady, "{}", came.reason);
    }
}
