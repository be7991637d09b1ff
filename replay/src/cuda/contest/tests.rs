//! Whole replays on the simulated device.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use planlab_dsa::performance::{End, Performance, Work};
use planlab_dsa::testing::{first_fit, test_buffer};
use planlab_dsa::{
    Address, Alignment, AllocError, Backing, BufferId, Bytes, CancelToken, Instance, NotLive,
    OnlineAllocator, Requests, Stream, Usage, VerifiedPlan,
};
use proptest::prelude::{ProptestConfig, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as _;

use super::tally::Tally;
use super::turn::Turn;
use super::*;
use crate::Kind;
use crate::cuda::driver::{Driver, SimulatedDriver};
use crate::cuda::{Device, shuffle_plan};

const MIB: u64 = 1 << 20;

const ROWS: [(u64, u32, u32); 6] =
    [(4096, 0, 3), (512, 1, 2), (8192, 1, 4), (1000, 2, 6), (4096, 3, 5), (70_000, 4, 6)];

fn instance(rows: &[(u64, u32, u32)]) -> Instance {
    let align = Alignment::new(512).expect("positive");
    let buffers = rows.iter().map(|&(size, start, end)| test_buffer(size, start, end).with_align(align));
    Instance::from_buffers(buffers.collect()).expect("valid")
}

fn plan_of(instance: &Instance) -> VerifiedPlan<'_> {
    let order: Vec<BufferId> = instance.ids().collect();
    instance.verify(first_fit(instance, &order, &[])).expect("valid")
}

fn score(instance: &Instance) -> Score {
    Score::new(&Requests::new(instance))
}

fn protocol(work: Work) -> Protocol {
    let budget = Duration::from_secs(60);
    Protocol { work, warm_up: 4, warm_up_most: 30, steady: 3, timed: 5, budget, rounds: 2, seed: 1 }
}

type AtEnd = dyn FnMut(&mut dyn Backing, &mut Usage) + Send;

/// Takes a segment of the device for each request.
struct Plain {
    backing: Box<dyn Backing>,
    live: Vec<u64>,
    usage: Usage,
    /// Called at the end of each propagation.
    at_end: Box<AtEnd>,
}

impl Plain {
    fn new(backing: Box<dyn Backing>) -> Self {
        Self { backing, live: Vec::new(), usage: Usage::default(), at_end: Box::new(|_, _| ()) }
    }
}

impl OnlineAllocator for Plain {
    fn alloc(&mut self, size: Bytes, _: Stream) -> Result<Address, AllocError> {
        let refused = AllocError::OutOfMemory { size, reserved: Bytes::ZERO };
        let at = self.backing.acquire(size).map_err(|_| refused)?;
        self.live.push(at.get());
        self.usage.device_allocations += 1;
        Ok(at)
    }

    fn free(&mut self, address: Address) -> Result<(), NotLive> {
        let found = self.live.iter().position(|&at| at == address.get());
        self.live.swap_remove(found.ok_or(NotLive { address })?);
        self.backing.release(address);
        Ok(())
    }

    fn end_propagation(&mut self) {
        (self.at_end)(self.backing.as_mut(), &mut self.usage);
    }

    fn usage(&self) -> Usage {
        self.usage
    }
}

fn plain(backing: Box<dyn Backing>) -> Box<dyn OnlineAllocator> {
    Box::new(Plain::new(backing))
}

/// Hands out given offsets in turn, from a segment of its own.
struct Liar {
    base: u64,
    offsets: Vec<u64>,
    next: usize,
    /// Propagations in which it serves requests correctly, one behind the other.
    honest: u32,
    end: u64,
}

impl Liar {
    fn new(mut backing: Box<dyn Backing>, offsets: &[u64], honest: u32) -> Self {
        let base = backing.acquire(Bytes::new(MIB)).expect("room").get();
        // It is never released, because nobody asks for that.
        std::mem::forget(backing);
        Self { base, offsets: offsets.to_vec(), next: 0, honest, end: base }
    }
}

impl OnlineAllocator for Liar {
    fn alloc(&mut self, size: Bytes, _: Stream) -> Result<Address, AllocError> {
        if self.honest > 0 {
            let at = self.end;
            self.end += size.get().next_multiple_of(512);
            return Ok(Address::new(at));
        }
        self.next += 1;
        Ok(Address::new(self.base.wrapping_add(self.offsets[(self.next - 1) % self.offsets.len()])))
    }

    fn free(&mut self, _: Address) -> Result<(), NotLive> {
        Ok(())
    }

    fn end_propagation(&mut self) {
        self.honest = self.honest.saturating_sub(1);
        (self.next, self.end) = (0, self.base);
    }

    fn usage(&self) -> Usage {
        Usage::default()
    }
}

fn liar(offsets: Vec<u64>, honest: u32) -> impl Fn(Box<dyn Backing>) -> Box<dyn OnlineAllocator> {
    move |backing| Box::new(Liar::new(backing, &offsets, honest))
}

/// The result of one turn.
fn turn(device: &Device, score: &Score, strategy: &Strategy<'_>, work: Work) -> Tally {
    let (mut tally, protocol) = (Tally::new(), protocol(work));
    let scores = std::slice::from_ref(score);
    let turn = Turn { driver: device.driver(), scores, strategy, protocol: &protocol };
    turn.take_turn(true, &mut tally).expect("it is played");
    tally
}

/// The results of all contenders; of those without a turn, nothing.
fn play(
    device: &Device,
    scores: &[Score],
    contenders: &[Contender<'_>],
    protocol: &Protocol,
) -> Vec<Performance> {
    let mut results = vec![Performance::default(); contenders.len()];
    compete_on_device(device, scores, contenders, protocol, &CancelToken::default(), &mut |news| {
        if let News::Ended(index, result) = news {
            results[index] = *result;
        }
    });
    results
}

fn play_one(device: &Device, score: &Score, strategy: Strategy<'_>, work: Work) -> Performance {
    let contender = Contender { key: "one".to_owned(), strategy };
    play(device, std::slice::from_ref(score), &[contender], &protocol(work)).remove(0)
}

/// Plays an allocator on a device of 64 MiB.
fn play_pool(build: &Builder, work: Work) -> Performance {
    let device = Device::with_simulation(Bytes::new(64 * MIB));
    play_one(&device, &score(&instance(&ROWS)), Strategy::Pool(build), work)
}

fn pool(build: &Builder) -> Contender<'_> {
    Contender { key: "pool".to_owned(), strategy: Strategy::Pool(build) }
}

fn all<'a>(plan: &'a VerifiedPlan<'a>, moved: &'a VerifiedPlan<'a>) -> Vec<Contender<'a>> {
    let contender = |key: &str, strategy| Contender { key: key.to_owned(), strategy };
    vec![
        contender("plan", Strategy::Plan(plan)),
        contender("plan/shuffled", Strategy::Plan(moved)),
        contender("cuda-malloc", Strategy::Malloc),
        contender("cuda-malloc-async/keep", Strategy::MallocAsync(Idle::Keep)),
        contender("cuda-malloc-async/release", Strategy::MallocAsync(Idle::Release)),
        contender("plain", Strategy::Pool(&plain)),
        contender("cuda-graph/plan", Strategy::GraphPlan(plan)),
        contender("cuda-graph/async", Strategy::GraphAsync),
    ]
}

#[test]
fn every_contender_is_played_and_gives_all_back() {
    let instance = instance(&ROWS);
    let plan = plan_of(&instance);
    let moved = shuffle_plan(&plan, 1).expect("plain");
    let contenders = all(&plan, &moved);
    let score = score(&instance).with_operations(vec![1000; ROWS.len()]);
    let device = Device::with_simulation(Bytes::new(256 * MIB));
    for work in [Work::None, Work::Kernels, Work::Operations] {
        let results = play(&device, std::slice::from_ref(&score), &contenders, &protocol(work));
        for (contender, result) in contenders.iter().zip(&results) {
            let key = &contender.key;
            if work == Work::None && key.starts_with("cuda-graph") {
                assert_eq!(result.status, End::Unavailable, "{key}");
                continue;
            }
            assert_eq!((result.status, result.reason.as_str()), (End::Complete, ""), "{key} {work:?}");
            assert_eq!((result.samples.len(), result.is_steady), (10, true), "{key} {work:?}");
            let calls = turn(&device, &score, &contender.strategy, work).calls;
            assert!(calls.iter().all(|times| times.is_empty() == (work != Work::None)), "{key} {work:?}");
            let device = result.samples.iter().map(|sample| sample.device_ns.unwrap_or_default()).min();
            // Twelve kernels, and six operations of a microsecond each.
            let least =
                if work == Work::None { 0 } else { 12_000 + 6_000 * u64::from(work == Work::Operations) };
            assert!(device >= Some(least), "{key} {work:?} {device:?}");
        }
        assert_eq!(device.device_memory().expect("no fault").free, Bytes::new(256 * MIB), "{work:?}");
    }
}

#[test]
fn what_is_reserved_is_what_each_should_reserve() {
    let instance = instance(&ROWS);
    let plan = plan_of(&instance);
    let moved = shuffle_plan(&plan, 1).expect("plain");
    let contenders = all(&plan, &moved);
    let device = Device::with_simulation(Bytes::new(256 * MIB));
    let scores = [score(&instance)];
    let results = play(&device, &scores, &contenders, &protocol(Work::Kernels));
    let peaks: Vec<u64> = results.iter().map(|result| result.reserved_peak).collect();
    let (load, pool) = (scores[0].sequence().peak_bytes().get(), 32 * MIB);
    let expected =
        [plan.height().get(), moved.height().get(), load, pool, pool, 0, plan.height().get(), pool];
    assert_eq!(peaks, expected);
    let last = |index: usize| results[index].samples.last().expect("timed").reserved;
    assert_eq!((last(3), last(4)), (Some(pool), Some(0)), "only one gives idle memory back");
    let most = |index: usize| results[index].samples.iter().map(|sample| sample.reserved_peak);
    assert!(most(0).all(|most| most == Some(plan.height().get())));
    assert!(most(2).chain(most(5)).all(|most| most == Some(load)), "whatever a pool says itself");
    assert!(most(3).chain(most(4)).all(|most| most.is_none()), "the driver's pool does not say");
    // Three blocks are live at once, each in a granule of its own.
    assert_eq!(results[2].physical_peak, Some(3 * 2 * MIB));
    assert_eq!(results[0].physical_peak, Some(2 * MIB));
}

#[test]
fn a_planted_overlap_is_found_by_the_device() {
    // Buffer 3 overlaps the last words of buffer 2.
    let build = liar(vec![0, 4096, 8192, 16_000, 0, 65_536], 0);
    for work in [Work::None, Work::Kernels] {
        let result = play_pool(&build, work);
        assert_eq!(result.status, End::Corrupt);
        assert_eq!(result.reason, "buffer 2: 72 words of 16 bytes are not what was written");
        assert!(result.samples.is_empty(), "what is corrupt is not timed");
    }
}

#[test]
fn an_overlap_that_comes_later_is_found_in_the_sums() {
    let result = play_pool(&liar(vec![0], 7), Work::Kernels);
    assert_eq!(result.status, End::Corrupt);
    assert!(result.reason.contains("the sum of what was read"), "{}", result.reason);
}

#[test]
fn memory_of_others_is_not_touched() {
    let instance = instance(&ROWS);
    for (offset, reason) in [(2 * MIB, "not memory of the contender"), (8, "no multiple of 16 bytes")] {
        let build = liar(vec![offset], 0);
        let device = Device::with_simulation(Bytes::new(64 * MIB));
        let result = play_one(&device, &score(&instance), Strategy::Pool(&build), Work::Kernels);
        assert_ne!(result.status, End::Complete);
        assert!(result.reason.contains(reason), "{}", result.reason);
        assert!(device.device_memory().is_ok(), "the device is well");
    }
}

#[test]
fn the_empty_loop_has_times_and_no_memory() {
    let (instance, device) = (instance(&ROWS), Device::with_simulation(Bytes::new(64 * MIB)));
    let result = play_one(&device, &score(&instance), Strategy::EmptyLoop, Work::None);
    assert_eq!((result.status, result.samples.len(), result.reserved_peak), (End::Complete, 10, 0));
    let timed_runs = turn(&device, &score(&instance), &Strategy::EmptyLoop, Work::None).timed_runs;
    assert!(timed_runs.iter().all(|&(runs, all_ns)| runs >= 5 && all_ns > 0), "{timed_runs:?}");
    let refused = play_one(&device, &score(&instance), Strategy::EmptyLoop, Work::Kernels);
    assert_eq!(refused.status, End::Unavailable);
}

#[test]
fn a_buffer_without_an_address_is_no_memory() {
    let build = |backing: Box<dyn Backing>| -> Box<dyn OnlineAllocator> {
        Box::new(Liar { base: 0, ..Liar::new(backing, &[0], 0) })
    };
    let result = play_pool(&build, Work::None);
    assert_eq!(result.status, End::Corrupt, "{}", result.reason);
    assert!(result.reason.contains("not memory of the contender"), "{}", result.reason);
}

#[test]
fn what_the_driver_did_not_do_is_no_success() {
    let device = Device::with_simulation(Bytes::new(64 * MIB));
    let driver = Arc::clone(device.driver());
    // Gives a segment back twice at the end of each propagation, the first time without its backing's knowledge.
    let build = move |backing: Box<dyn Backing>| -> Box<dyn OnlineAllocator> {
        let driver = Arc::clone(&driver);
        let at_end: Box<AtEnd> = Box::new(move |backing, _| {
            let at = backing.acquire(Bytes::new(512)).expect("room");
            driver.free(at).expect("it is there");
            backing.release(at);
        });
        Box::new(Plain { at_end, ..Plain::new(backing) })
    };
    let result = play_one(&device, &score(&instance(&ROWS)), Strategy::Pool(&build), Work::Kernels);
    assert_eq!(result.status, End::Failed, "{}", result.reason);
    assert!(!result.reason.is_empty() && result.samples.is_empty(), "{}", result.reason);
}

#[test]
fn what_is_not_given_back_at_the_end_is_told() {
    /// Holds two more segments, which the test has already given back.
    fn robbed(mut backing: Box<dyn Backing>, driver: &Arc<dyn Driver>) -> Plain {
        for _ in 0..2 {
            let at = backing.acquire(Bytes::new(512)).expect("room");
            driver.free(at).expect("it is there");
        }
        Plain::new(backing)
    }

    let device = Device::with_simulation(Bytes::new(64 * MIB));
    let driver = Arc::clone(device.driver());
    let build =
        move |backing: Box<dyn Backing>| -> Box<dyn OnlineAllocator> { Box::new(robbed(backing, &driver)) };
    let lost = "not all was given back at the end: free: ";
    let result = play_one(&device, &score(&instance(&ROWS)), Strategy::Pool(&build), Work::Kernels);
    assert_eq!(result.status, End::Failed);
    assert!(result.reason.starts_with(lost), "{}", result.reason);
    assert!(result.reason.ends_with("(the first of 2 calls that failed)"), "{}", result.reason);
    let large = instance(&[(80 * MIB, 0, 1)]);
    let result = play_one(&device, &score(&large), Strategy::Pool(&build), Work::Kernels);
    assert_eq!(result.status, End::OutOfMemory, "the first reason stays: {}", result.reason);
    assert!(result.reason.contains("out of memory") && result.reason.contains(lost), "{}", result.reason);
}

#[test]
fn no_memory_is_said_and_counted() {
    let instance = instance(&[(3 * MIB, 0, 2), (3 * MIB, 1, 3), (MIB, 2, 3)]);
    let plan = plan_of(&instance);
    let contenders = all(&plan, &plan);
    let device = Device::with_simulation(Bytes::new(64 * MIB));
    let ballast = device.leave_free(Bytes::new(4 * MIB)).expect("room");
    let results = play(&device, &[score(&instance)], &contenders, &protocol(Work::Kernels));
    for (contender, result) in contenders.iter().zip(&results) {
        assert_eq!(result.status, End::OutOfMemory, "{}: {}", contender.key, result.reason);
    }
    assert!(results[5].refusals > Some(0));
    drop(ballast);
    let results = play(&device, &[score(&instance)], &contenders, &protocol(Work::Kernels));
    assert!(results.iter().all(|result| result.status == End::Complete));
    assert_eq!(device.device_memory().expect("no fault").free, Bytes::new(64 * MIB));
}

#[test]
fn several_propagations_follow_one_another() {
    let instances = [instance(&ROWS), instance(&ROWS[..3]), instance(&ROWS[2..])];
    let scores = [0, 1, 2].map(|index: usize| score(&instances[index]));
    let plan = plan_of(&instances[0]);
    let contenders = all(&plan, &plan);
    let device = Device::with_simulation(Bytes::new(256 * MIB));
    let cold = Protocol { warm_up: 0, timed: 7, rounds: 1, ..protocol(Work::Kernels) };
    let results = play(&device, &scores, &contenders, &cold);
    for (contender, result) in contenders.iter().zip(&results) {
        let has_plan = contender.key.contains("plan") || contender.key.contains("graph");
        let expected = if has_plan { (End::Unavailable, 0) } else { (End::Complete, 7) };
        assert_eq!((result.status, result.samples.len()), expected, "{}", contender.key);
        assert_eq!((result.warm_up, result.is_steady), (0, !has_plan), "{}", contender.key);
    }
}

#[test]
fn the_reserved_bytes_must_stop_changing() {
    for (changes, expected) in [(10, (13, true)), (90, (30, false))] {
        // Reserves one more byte at each propagation, up to 100.
        let build = move |backing: Box<dyn Backing>| -> Box<dyn OnlineAllocator> {
            let usage = Usage { reserved: Bytes::new(100 - changes), ..Usage::default() };
            let at_end: Box<AtEnd> =
                Box::new(|_, usage| usage.reserved = Bytes::new((usage.reserved.get() + 1).min(100)));
            Box::new(Plain { usage, at_end, ..Plain::new(backing) })
        };
        let result = play_pool(&build, Work::Kernels);
        assert_eq!((result.warm_up, result.is_steady), expected, "{changes}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever an allocator answers, it does no harm to the device, and blocks of a complete turn never overlap.
    #[test]
    fn hostile_answers_do_not_reach_the_device(
        offsets in prop::collection::vec(
            prop_oneof![3 => (0_u64..300).prop_map(|unit| unit * 512), 1 => 0_u64..MIB + 600, 1 => any::<u64>()],
            6,
        ),
    ) {
        let instance = instance(&ROWS);
        let device = Device::with_simulation(Bytes::new(64 * MIB));
        let build = liar(offsets.clone(), 0);
        let result = play_one(&device, &score(&instance), Strategy::Pool(&build), Work::Kernels);
        prop_assert!(device.device_memory().is_ok());
        let order: Vec<u32> = score(&instance)
            .sequence()
            .runs()
            .filter(|(kind, _)| *kind == Kind::Alloc)
            .flat_map(|(_, ids)| ids.to_vec())
            .collect();
        let places = offsets.iter().zip(&order).map(|(&offset, &id)| {
            (offset, ROWS[id as usize].0.next_multiple_of(16), &instance.buffers()[id as usize].live)
        });
        let places: Vec<_> = places.collect();
        let inside = places.iter().all(|&(at, size, _)| at % 16 == 0 && at < MIB && at + size <= MIB);
        let is_apart = |index: usize| {
            let (at, size, live) = places[index];
            let mut others = places[..index].iter();
            others.all(|&(b, n, other)| !live.overlaps(*other) || at + size <= b || b + n <= at)
        };
        let expected = inside && (0..places.len()).all(is_apart);
        prop_assert_eq!(result.status == End::Complete, expected, "{}", result.reason);
    }
}

#[test]
fn a_turn_without_time_plays_the_least() {
    let instance = instance(&ROWS);
    let device = Device::with_simulation(Bytes::new(64 * MIB));
    let contender = Contender { key: "one".to_owned(), strategy: Strategy::Malloc };
    let hasty = Protocol { budget: Duration::ZERO, timed: 50, rounds: 1, ..protocol(Work::Kernels) };
    let result = play(&device, &[score(&instance)], &[contender], &hasty).remove(0);
    assert_eq!((result.status, result.samples.len(), result.warm_up), (End::Complete, 3, 3));
    assert!(!result.is_steady, "so soon nobody knows");
}

#[test]
fn orders_change_from_round_to_round_and_come_again() {
    let instance = instance(&ROWS[..2]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let build = |number: usize| {
        let seen = Arc::clone(&seen);
        move |backing: Box<dyn Backing>| -> Box<dyn OnlineAllocator> {
            seen.lock().expect("nobody panics").push(number);
            plain(backing)
        }
    };
    let builders: Vec<_> = (0..6).map(build).collect();
    let contenders: Vec<Contender<'_>> = builders.iter().map(|build| pool(build)).collect();
    let run = || {
        let device = Device::with_simulation(Bytes::new(64 * MIB));
        let rounds = Protocol { rounds: 3, timed: 1, ..protocol(Work::Kernels) };
        let _ = play(&device, &[score(&instance)], &contenders, &rounds);
        std::mem::take(&mut *seen.lock().expect("nobody panics"))
    };
    let first = run();
    assert_eq!(first, run(), "the seed fixes the orders");
    // The first round builds each contender twice: to check, and to time.
    let (second, third) = (&first[12..18], &first[18..]);
    assert_ne!(second, third);
}

/// Plans `count` buffers in a chain; each lives for two steps.
fn chain(count: u32) -> Instance {
    let rows: Vec<(u64, u32, u32)> = (0..count).map(|step| (512, step, step + 2)).collect();
    instance(&rows)
}

#[test]
fn what_does_not_fit_in_the_queue_has_no_time_to_enqueue() {
    for (buffers, expected) in [(500, true), (750, false)] {
        let instance = chain(buffers);
        let plan = plan_of(&instance);
        let device = Device::with_simulation(Bytes::new(64 * MIB));
        let enqueued = |strategy| {
            let result = play_one(&device, &score(&instance), strategy, Work::Kernels);
            assert_eq!((result.status, result.samples.len()), (End::Complete, 10), "{}", result.reason);
            result.samples.iter().all(|sample| sample.enqueue_ns.is_some())
        };
        assert_eq!(enqueued(Strategy::Plan(&plan)), expected, "{buffers} buffers have twice as many kernels");
        assert!(!enqueued(Strategy::MallocAsync(Idle::Keep)), "its requests and frees are launches, too");
        assert!(enqueued(Strategy::GraphPlan(&plan)), "a graph is one launch");
    }
}

#[test]
fn the_device_is_not_asked_at_each_request_how_much_is_free() {
    let instance = chain(1500);
    let plan = plan_of(&instance);
    let driver = Arc::new(SimulatedDriver::new(Bytes::new(64 * MIB)));
    let device = Device(Arc::clone(&driver) as Arc<dyn Driver>);
    for strategy in [Strategy::Plan(&plan), Strategy::MallocAsync(Idle::Keep), Strategy::Pool(&plain)] {
        let before = driver.question_count();
        let result = play_one(&device, &score(&instance), strategy, Work::Kernels);
        assert_eq!(result.status, End::Complete, "{}", result.reason);
        assert!(result.physical_peak >= Some(2 * MIB), "{:?}", result.physical_peak);
        let asked = driver.question_count() - before;
        assert!(asked <= 12, "{asked} times");
    }
}

#[test]
fn what_the_driver_loads_late_is_nobodys_memory() {
    let instance = instance(&ROWS);
    let plan = plan_of(&instance);
    let contenders = all(&plan, &plan);
    let peaks = |driver: SimulatedDriver, is_rehearsed: bool| -> Vec<Option<u64>> {
        let device = Device(Arc::new(driver));
        if is_rehearsed {
            device.rehearse_turns(Duration::ZERO).expect("all works");
        }
        let results = play(&device, &[score(&instance)], &contenders, &protocol(Work::Kernels));
        assert!(results.iter().all(|result| result.status == End::Complete), "{results:?}");
        results.iter().map(|result| result.physical_peak).collect()
    };
    let simulated = || SimulatedDriver::new(Bytes::new(256 * MIB));
    let expected = peaks(simulated(), false);
    assert_ne!(peaks(simulated().loading_late(), false), expected, "the first to use a part pays for it");
    assert_eq!(peaks(simulated().loading_late(), true), expected);
}

#[test]
fn a_rehearsal_works_for_as_long_as_is_asked_and_gives_all_back() {
    let device = Device::with_simulation(Bytes::new(64 * MIB));
    let start = Instant::now();
    device.rehearse_turns(Duration::from_millis(20)).expect("all works");
    assert!(start.elapsed() >= Duration::from_millis(20));
    assert_eq!(device.device_memory().expect("no fault").free, Bytes::new(64 * MIB));
    let full = device.leave_free(Bytes::ZERO).expect("all of it");
    let rehearsed = device.rehearse_turns(Duration::from_millis(20));
    assert_eq!(rehearsed, Ok(()), "for want of memory there is no error");
    drop(full);
    device.break_down();
    assert!(device.rehearse_turns(Duration::ZERO).is_err());
}

#[test]
fn a_device_that_is_broken_is_asked_no_more() {
    let instance = instance(&ROWS);
    let device = Device::with_simulation(Bytes::new(64 * MIB));
    let broken = device.clone();
    let breaker = move |backing: Box<dyn Backing>| -> Box<dyn OnlineAllocator> {
        broken.break_down();
        plain(backing)
    };
    let contenders = [pool(&plain), pool(&plain), pool(&breaker), pool(&plain), pool(&plain)];
    let one_round = Protocol { rounds: 1, ..protocol(Work::Kernels) };
    let (mut turns, mut ends, mut broken) = (Vec::new(), Vec::new(), 0);
    let cancel = CancelToken::default();
    compete_on_device(
        &device,
        &[score(&instance)],
        &contenders,
        &one_round,
        &cancel,
        &mut |news| match news {
            News::Begins(index) => turns.push(index),
            News::Ended(index, result) => ends.push((index, result.status)),
            News::Broken => broken += 1,
        },
    );
    let last = turns.iter().position(|&index| index == 2).expect("it had a turn");
    assert_eq!(last + 1, turns.len(), "nobody has a turn after it");
    assert_eq!(broken, 1);
    let expected = |&index: &usize| (index, if index == 2 { End::Failed } else { End::Complete });
    assert_eq!(ends, turns.iter().map(expected).collect::<Vec<_>>());
}

#[test]
fn cancelled_competition_ends_between_two_turns() {
    let (instance, cancel) = (instance(&ROWS), CancelToken::default());
    let device = Device::with_simulation(Bytes::new(64 * MIB));
    let contenders = [pool(&plain), pool(&plain), pool(&plain)];
    let (mut begun, mut ended) = (0, 0);
    let protocol = protocol(Work::Kernels);
    compete_on_device(
        &device,
        &[score(&instance)],
        &contenders,
        &protocol,
        &cancel,
        &mut |news| match news {
            News::Begins(_) => {
                begun += 1;
                if begun == 2 {
                    cancel.cancel();
                }
            }
            News::Ended(..) => ended += 1,
            News::Broken => panic!("the device works"),
        },
    );
    assert_eq!((begun, ended), (2, 2));
}

#[test]
fn a_contender_that_fails_alone_stops_nobody() {
    let (instance, device) = (instance(&ROWS), Device::with_simulation(Bytes::new(64 * MIB)));
    let overlap = liar(vec![0], 0);
    let contenders = [pool(&overlap), pool(&plain)];
    let results = play(&device, &[score(&instance)], &contenders, &protocol(Work::Kernels));
    let ends: Vec<End> = results.iter().map(|result| result.status).collect();
    assert_eq!(ends, [End::Corrupt, End::Complete]);
}
