//! Whole replays on the host: every contender, threads, and the errors that they detect.
#![cfg(not(miri))]

use std::num::NonZeroU32;
use std::process::Command;
use std::time::Duration;

use planlab_dsa::testing::{first_fit, test_instance};
use planlab_dsa::{
    Address, AllocError, Backing, Bytes, Instance, NotLive, OnlineAllocator, Planning, Refused, Requests,
    Stream, Usage, VerifiedPlan,
};
use planlab_replay::Sequence;
use planlab_replay::host::{Contender, Effort, Malloc, Order, Report, replay_contender};
use planlab_replay::{End, Work};

/// A net of some layers: activations that live until their backward step, and workspaces.
fn net() -> Instance {
    let layers = 12_u32;
    let mut rows = Vec::new();
    for layer in 0..layers {
        let (forward, backward) = (2 * layer, 4 * layers - 2 * layer);
        let activation = (4096 * u64::from(layer + 1), forward, backward);
        rows.extend([activation, (100_000, forward, forward + 1)]);
    }
    test_instance(&rows)
}

fn plan(instance: &Instance) -> VerifiedPlan<'_> {
    instance.verify(first_fit(instance, &[], &[])).expect("first fit is valid")
}

const EFFORT: Effort = Effort { budget: Duration::from_millis(20), iterations: Some(5), warm_up: None };

/// An order without work and limits, on one thread.
fn order<'a>(contender: Contender<'a>, sequences: &'a [Sequence]) -> Order<'a> {
    let (work, threads) = (Work::None, NonZeroU32::MIN);
    Order { contender, sequences, work, threads, capacity: None, effort: EFFORT }
}

fn sequences() -> [Sequence; 1] {
    [Sequence::new(&Requests::new(&net()))]
}

fn play_in(contender: Contender<'_>, capacity: Option<u64>, work: Work, threads: u32) -> Report {
    let threads = NonZeroU32::new(threads).expect("some");
    let capacity = capacity.map(Bytes::new);
    replay_contender(&Order { work, threads, capacity, ..order(contender, &sequences()) })
}

fn play(contender: Contender<'_>, work: Work, threads: u32) -> Report {
    play_in(contender, None, work, threads)
}

/// Cuts blocks from one segment like a stack, and starts over when nothing is live.
struct Stacked {
    backing: Box<dyn Backing>,
    base: u64,
    top: u64,
    live: u64,
    /// The bytes by which a block overlaps the one before.
    overlap: u64,
    /// The bytes by which blocks are moved up, beyond the segment.
    beyond: u64,
    /// The plans made so far, one at the end of each propagation; `None` if it does not plan.
    plans: Option<u64>,
}

const SEGMENT: u64 = 16 << 20;

impl OnlineAllocator for Stacked {
    fn alloc(&mut self, size: Bytes, _: Stream) -> Result<Address, AllocError> {
        if self.top + size.get() > SEGMENT {
            return Err(AllocError::OutOfMemory { size, reserved: Bytes::new(SEGMENT) });
        }
        let address = self.base + self.beyond + self.top;
        self.top += size.get() - self.overlap;
        self.live += 1;
        Ok(Address::new(address))
    }

    fn free(&mut self, _: Address) -> Result<(), NotLive> {
        self.live -= 1;
        self.top = if self.live == 0 { 0 } else { self.top };
        Ok(())
    }

    fn end_propagation(&mut self) {
        self.plans = self.plans.map(|plans| plans + 1);
    }

    fn usage(&self) -> Usage {
        Usage { reserved: Bytes::new(SEGMENT), reserved_peak: Bytes::new(SEGMENT), ..Usage::default() }
    }

    fn planning(&self) -> Option<Planning> {
        let plans = self.plans?;
        Some(Planning { plans, time: Duration::from_nanos(10 * plans), ..Planning::default() })
    }
}

impl Drop for Stacked {
    fn drop(&mut self) {
        self.backing.release(Address::new(self.base));
    }
}

fn stacked(
    overlap: u64,
    beyond: u64,
    plans: Option<u64>,
) -> impl Fn(Box<dyn Backing>) -> Box<dyn OnlineAllocator> + Sync {
    move |mut backing| {
        let base = backing.acquire(Bytes::new(SEGMENT)).expect("room").get();
        Box::new(Stacked { backing, base, top: 0, live: 0, overlap, beyond, plans })
    }
}

fn assert_complete(name: &str, report: &Report) {
    let performance = &report.performance;
    assert_eq!((performance.status, performance.reason.as_str()), (End::Complete, ""), "{name}");
    assert!(report.is_pattern_checked && performance.warm_up >= 2, "{name}: {report:?}");
    let timed: u32 = performance.samples.iter().map(|sample| sample.propagations).sum();
    assert_eq!(timed, 5, "{name}");
    assert!(performance.samples.iter().all(|sample| sample.wall_ns > 0 && sample.cpu_ns > Some(0)), "{name}");
    assert!(performance.used_peak >= Some(net().load().bytes.get()), "{name}: {:?}", performance.used_peak);
}

#[test]
fn plans_and_online_allocators_are_played_with_every_work_and_on_threads() {
    let net = net();
    let plan = plan(&net);
    let build = stacked(0, 0, None);
    let contenders = [
        ("plan", Contender::Plan(&plan), 3, plan.height().get(), 1),
        ("stacked", Contender::Online(&build), 2, SEGMENT, 0),
    ];
    for (name, contender, most, bytes, allocations) in contenders {
        for (work, threads) in
            [Work::None, Work::Pages, Work::Pattern].into_iter().flat_map(|work| [(work, 1), (work, most)])
        {
            let report = play(contender, work, threads);
            let performance = &report.performance;
            assert_complete(name, &report);
            let all = bytes * u64::from(threads);
            assert_eq!(performance.reserved_peak, all, "{name} {work:?} {threads}");
            assert!(performance.samples.iter().all(|sample| sample.reserved_peak == Some(all)), "{report:?}");
            let expected = (allocations * u64::from(threads), 0, None);
            let found = (performance.device_allocations, performance.search_steps, performance.lock_wait_ns);
            assert_eq!(found, expected, "{name} {work:?} {threads}");
        }
    }
}

/// In a child process, names the allocator to play.
const MALLOC: &str = "PLANLAB_TEST_MALLOC";

/// Runs a test of this file again in a process with the given environment; returns whether it passed.
fn passes_with(environment: &[(&str, &str)], test: &str, malloc: Malloc) -> bool {
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child.args(["--exact", test, "--nocapture"]).env(MALLOC, malloc.name());
    child.envs(environment.iter().copied()).status().expect("it starts").success()
}

fn check_malloc(malloc: Malloc) {
    for (work, threads) in [(Work::None, 1), (Work::Pattern, 2)] {
        let report = play(Contender::Malloc(malloc), work, threads);
        let performance = &report.performance;
        if cfg!(not(feature = "mallocs")) && malloc != Malloc::Glibc {
            assert_eq!(performance.status, End::Unavailable, "{}", malloc.name());
            continue;
        }
        assert_complete(malloc.name(), &report);
        assert!(!report.options.is_empty(), "{}", malloc.name());
        assert!(performance.samples.iter().all(|sample| sample.reserved_peak.is_none()), "{}", malloc.name());
        let counts_locks = malloc.name().starts_with("jemalloc");
        assert_eq!(performance.lock_wait_ns.is_some(), counts_locks, "{}", malloc.name());
    }
}

#[test]
fn every_malloc_of_the_build_is_played_on_threads() {
    if let Ok(key) = std::env::var(MALLOC) {
        let malloc = Malloc::ALL.into_iter().find(|malloc| malloc.name() == key);
        return check_malloc(malloc.expect("a key"));
    }
    for malloc in Malloc::ALL {
        let test = "host::every_malloc_of_the_build_is_played_on_threads";
        assert!(passes_with(malloc.start_environment(), test, malloc), "{}", malloc.name());
    }
}

#[test]
fn an_option_that_is_not_in_force_is_found_out() {
    if std::env::var_os(MALLOC).is_none() {
        let test = "host::an_option_that_is_not_in_force_is_found_out";
        let as_it_comes = Malloc::Jemalloc.start_environment();
        assert!(passes_with(as_it_comes, test, Malloc::JemallocOversize));
        return;
    }
    let report = play(Contender::Malloc(Malloc::JemallocOversize), Work::None, 1);
    assert_eq!(report.performance.status, End::Unavailable);
    assert!(report.performance.samples.is_empty());
    let reason =
        if cfg!(feature = "mallocs") { "oversize_threshold should be 1048576" } else { "not in this" };
    assert!(report.performance.reason.contains(reason), "{}", report.performance.reason);
}

/// glibc has too little static TLS for jemalloc in a process that was not started for it.
#[cfg(all(target_env = "gnu", feature = "mallocs"))]
#[test]
fn a_library_that_cannot_be_loaded_is_named() {
    let report = play(Contender::Malloc(Malloc::Jemalloc), Work::None, 1);
    assert_eq!(report.performance.status, End::Unavailable);
    assert!(report.performance.reason.contains("libjemalloc"), "{}", report.performance.reason);
}

#[test]
fn blocks_at_wrong_places_are_found_before_anything_is_timed() {
    let (overlapping, beyond) = ((8, 0, "handed out over"), (0, SEGMENT, "are not the allocator's"));
    for (work, threads, (overlap, beyond, reason)) in
        [(Work::None, 1, overlapping), (Work::Pattern, 2, overlapping), (Work::Pattern, 1, beyond)]
    {
        let report = play(Contender::Online(&stacked(overlap, beyond, None)), work, threads);
        assert_eq!(report.performance.status, End::Corrupt);
        assert!(report.performance.reason.contains(reason), "{}", report.performance.reason);
        assert!(report.performance.samples.is_empty() && !report.is_pattern_checked);
    }
}

/// Asks its backing at each request, whatever the size.
struct Direct {
    backing: Box<dyn Backing>,
    take: fn(&mut dyn Backing) -> Result<Address, Refused>,
}

impl OnlineAllocator for Direct {
    fn alloc(&mut self, size: Bytes, _: Stream) -> Result<Address, AllocError> {
        let refused = |Refused| AllocError::OutOfMemory { size, reserved: Bytes::ZERO };
        (self.take)(self.backing.as_mut()).map_err(refused)
    }

    fn free(&mut self, address: Address) -> Result<(), NotLive> {
        self.backing.release(address);
        Ok(())
    }

    fn usage(&self) -> Usage {
        Usage::default()
    }
}

/// A mapping of 1 GiB for each request.
fn spacious(backing: Box<dyn Backing>) -> Box<dyn OnlineAllocator> {
    Box::new(Direct { backing, take: |backing| backing.acquire(Bytes::new(1 << 30)) })
}

/// Requests more addresses than a process has.
fn endless(backing: Box<dyn Backing>) -> Box<dyn OnlineAllocator> {
    Box::new(Direct { backing, take: |backing| backing.reserve(Bytes::new(1 << 60)) })
}

#[test]
fn memory_that_ends_ends_the_replay_on_all_threads() {
    let net = net();
    let plan = plan(&net);
    let capacity = Some(plan.height().get() - 1);
    for threads in [1, 2] {
        for contender in [Contender::Plan(&plan), Contender::Online(&spacious)] {
            let report = play_in(contender, capacity, Work::None, threads);
            assert_eq!(report.performance.status, End::OutOfMemory, "{}", report.performance.reason);
            assert!(!report.performance.reason.is_empty());
        }
        let report = play_in(Contender::Malloc(Malloc::Glibc), capacity, Work::None, threads);
        assert_eq!(report.performance.status, End::Unavailable);
    }
}

#[test]
fn memory_that_goes_back_at_once_is_looked_for_each_time() {
    let report = play(Contender::Online(&spacious), Work::Pages, 1);
    assert_complete("spacious", &report);
    // It holds nothing at the end of a propagation, but does hold memory in the meantime.
    let is_seen = |most: Option<u64>| most.is_some_and(|most| most > 0 && most.is_multiple_of(1 << 30));
    let mut samples = report.performance.samples.iter();
    assert!(samples.all(|sample| sample.reserved == Some(0) && is_seen(sample.reserved_peak)));
}

#[test]
fn addresses_that_are_not_to_be_had_are_in_the_report() {
    for threads in [1, 2] {
        let report = play(Contender::Online(&endless), Work::None, threads);
        assert_eq!((report.performance.status, report.refused_range), (End::OutOfMemory, Some(1 << 60)));
    }
    let report = play_in(Contender::Online(&spacious), Some(1), Work::None, 1);
    let ended = (report.performance.status, report.refused_range);
    assert_eq!(ended, (End::OutOfMemory, None), "memory ended, not addresses");
}

#[test]
fn calls_that_take_longer_than_the_clock_have_times_of_their_own() {
    let effort = Effort { budget: Duration::from_millis(50), ..Effort::default() };
    let report = replay_contender(&Order { effort, ..order(Contender::Online(&spacious), &sequences()) });
    assert!(
        report.performance.alloc.is_some() && report.performance.free.is_some(),
        "each is a call of the kernel: {report:?}"
    );
}

#[test]
fn the_empty_loop_has_times_and_no_memory() {
    let report = play(Contender::EmptyLoop, Work::None, 1);
    let performance = &report.performance;
    assert_eq!(
        (performance.status, performance.reserved_peak, performance.used_peak),
        (End::Complete, 0, None)
    );
    assert!(
        !performance.samples.is_empty() && !report.is_pattern_checked && performance.physical_peak.is_none()
    );
    assert_eq!(play(Contender::EmptyLoop, Work::Pages, 1).performance.status, End::Unavailable);
}

#[test]
fn a_budget_ends_by_itself() {
    let net = net();
    let plan = plan(&net);
    // Warming up takes at most five times as long: enough for 50 propagations on a busy machine.
    let effort = Effort { budget: Duration::from_secs(1), ..Effort::default() };
    let report = replay_contender(&Order { effort, ..order(Contender::Plan(&plan), &sequences()) });
    let performance = &report.performance;
    assert_eq!(performance.status, End::Complete);
    assert!(performance.is_steady && (50..=1000).contains(&performance.warm_up), "{}", performance.warm_up);
    assert!(performance.samples.len() >= 5, "{report:?}");
}

#[test]
fn several_sequences_are_played_cold_and_in_turn() {
    let nets = [net(), Instance::from_buffers(net().buffers()[..7].to_vec()).expect("valid")];
    let sequences = nets.each_ref().map(|net| Sequence::new(&Requests::new(net)));
    let build = stacked(0, 0, Some(0));
    let play = |contender: Contender<'_>, work: Work, threads: u32| {
        let effort = Effort { budget: Duration::from_millis(20), iterations: Some(6), warm_up: Some(0) };
        let threads = NonZeroU32::new(threads).expect("some");
        replay_contender(&Order { work, threads, effort, ..order(contender, &sequences) })
    };
    for (work, threads) in [(Work::None, 1), (Work::Pattern, 2)] {
        let report = play(Contender::Online(&build), work, threads);
        let performance = &report.performance;
        assert_eq!(
            (performance.status, performance.reason.as_str(), performance.warm_up),
            (End::Complete, "", 0)
        );
        let each = performance.samples.iter().all(|sample| sample.propagations == 1);
        assert!(each && !performance.is_steady && report.is_pattern_checked, "{report:?}");
        let plans: Vec<Option<u64>> = performance.samples.iter().map(|sample| sample.plans).collect();
        let expected: Vec<Option<u64>> = (1..7).map(|count| Some(count * u64::from(threads))).collect();
        assert_eq!(plans, expected, "a new memory was made after the check");
        assert_eq!(performance.samples[5].planning_ns, Some(60 * u64::from(threads)));
    }
    let plan = plan(&nets[0]);
    assert_eq!(play(Contender::Plan(&plan), Work::None, 1).performance.status, End::Unavailable);
}
