//! The heap on the simulated device: kernels write and read every block on its stream, and the streams' queues run in
//! a random order at the end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use planlab_dsa::{Address, Bytes};
use planlab_replay::cuda::{DriverError, SharedDevice, SimulatedStreams, StreamHandle};
use proptest::prelude::*;

use super::{Devices, Heap, HeapConfig};
use crate::machine::Config;
use crate::planning::Planning;

const MIB: u64 = 1 << 20;
/// The longest that a test waits for a plan, which another thread makes.
const PLAN_TIMEOUT: Duration = Duration::from_secs(300);
const ONE: StreamHandle = StreamHandle(0);
const TWO: StreamHandle = StreamHandle(0x7000);

fn config() -> HeapConfig {
    let least_load = Bytes::new(1);
    let machine = Config { least_size: 512, least_load, ..Config::default() };
    let planning = Planning { least_load, patience: Duration::from_millis(50), ..Planning::default() };
    HeapConfig { machine, planning: Some(planning) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    at: Address,
    size: Bytes,
    stream: StreamHandle,
    seed: u64,
}

struct Rig {
    streams: SimulatedStreams,
    heap: Heap,
    seed: u64,
}

impl Rig {
    fn new(capacity: u64) -> Self {
        Self::with_config(capacity, config())
    }

    fn with_config(capacity: u64, config: HeapConfig) -> Self {
        let streams = SimulatedStreams::new(Bytes::new(capacity));
        let heap = Heap::new(Arc::new(streams.clone()), config);
        Self { streams, heap, seed: 0 }
    }

    fn alloc(&mut self, size: u64, stream: StreamHandle) -> Block {
        self.try_alloc(size, stream).expect("room")
    }

    fn try_alloc(&mut self, size: u64, stream: StreamHandle) -> Result<Block, DriverError> {
        let at = self.heap.alloc(Bytes::new(size), stream)?;
        assert_eq!(at.get() % 512, 0);
        self.seed += 1;
        let block = Block { at, size: Bytes::new(size / 16 * 16), stream, seed: self.seed };
        self.streams.fill(stream, at, block.size, block.seed);
        Ok(block)
    }

    fn free(&mut self, block: Block) {
        self.streams.verify(block.stream, block.at, block.size, block.seed);
        assert!(self.heap.free(block.at, block.stream));
    }

    /// Requests that plans served, on all streams.
    fn planned(&self) -> u64 {
        self.heap.streams().map(|(_, tally)| tally.planned.get()).sum()
    }

    fn requests(&self) -> u64 {
        self.heap.streams().map(|(_, tally)| tally.requests.get()).sum()
    }

    /// Plays rounds until all requests of one are planned.
    fn warm_up(&mut self, round: impl Fn(&mut Self)) {
        let until = Instant::now() + PLAN_TIMEOUT;
        while Instant::now() < until {
            let (planned, requests) = (self.planned(), self.requests());
            round(self);
            if self.planned() - planned == self.requests() - requests {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        panic!("no plan: {:?}", self.heap.streams().map(|(_, tally)| tally).collect::<Vec<_>>());
    }

    /// The number of wrong words found, in some order of the streams.
    fn wrong(&self, seed: u64) -> u64 {
        self.streams.run(seed).expect("no illegal access")
    }
}

/// A net: each layer reads the block of the one before, and has a workspace. Returns the addresses of its blocks.
fn net(rig: &mut Rig, stream: StreamHandle, scale: u64) -> Vec<Address> {
    let mut input = rig.alloc(scale * MIB, stream);
    let mut all = vec![input.at];
    for layer in 1..=20 {
        let output = rig.alloc(scale * MIB + 4096 * layer, stream);
        let workspace = rig.alloc(100 * layer + 7, stream);
        all.extend([output.at, workspace.at]);
        rig.free(workspace);
        rig.free(input);
        input = output;
    }
    rig.free(input);
    all
}

#[test]
fn a_steady_round_lies_at_the_offsets_of_its_plan_and_asks_the_driver_for_nothing() {
    let mut rig = Rig::new(1 << 30);
    rig.warm_up(|rig| drop(net(rig, ONE, 1)));
    let first = net(&mut rig, ONE, 1);
    let before = (rig.planned(), rig.heap.tally().device_allocations.get());
    for _ in 0..10 {
        assert_eq!(net(&mut rig, ONE, 1), first);
    }
    assert_eq!((rig.planned(), rig.heap.tally().device_allocations.get()), (before.0 + 410, before.1));
    let plan = rig.heap.plans().next().expect("a plan");
    let (height, load) = (plan.height.get(), plan.load.get());
    let lowest = first.iter().min().expect("blocks").get();
    assert!(first.iter().all(|at| at.get() - lowest < height), "all within the plan");
    assert!(height >= load && height < load + MIB);
    assert_eq!(rig.wrong(1), 0);
}

#[test]
fn what_the_pool_holds_gives_way_to_a_plan() {
    // There is room for the pool's blocks or for the plan, not for both.
    let mut rig = Rig::new(70 * MIB);
    rig.warm_up(|rig| drop(net(rig, ONE, 16)));
    assert!(rig.heap.tally().reserved_peak.get() <= 70 * MIB);
    assert_eq!((rig.heap.tally().out_of_memory.get(), rig.wrong(4)), (0, 0));
}

#[test]
fn a_plan_gives_way_to_what_else_needs_its_memory() {
    let mut rig = Rig::new(70 * MIB);
    rig.warm_up(|rig| drop(net(rig, ONE, 16)));
    let large = rig.alloc(60 * MIB, TWO);
    assert_eq!(rig.heap.tally().evictions.get(), 1);
    rig.free(large);
    // The plan comes back, unless that happens time and again.
    rig.warm_up(|rig| drop(net(rig, ONE, 16)));
    for is_last in [false, true] {
        let large = rig.alloc(60 * MIB, TWO);
        rig.free(large);
        rig.heap.release_cached();
        if !is_last {
            rig.warm_up(|rig| drop(net(rig, ONE, 16)));
        }
    }
    for _ in 0..8 {
        net(&mut rig, ONE, 16);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(rig.heap.tally().evictions.get(), 3);
    let before = rig.planned();
    net(&mut rig, ONE, 16);
    assert_eq!((rig.planned(), rig.heap.tally().out_of_memory.get(), rig.wrong(5)), (before, 0, 0));
}

#[test]
fn a_request_for_which_there_is_no_room_fails_alone() {
    let mut rig = Rig::new(70 * MIB);
    rig.warm_up(|rig| drop(net(rig, ONE, 1)));
    let held = rig.alloc(30 * MIB, TWO);
    let size = Bytes::new(50 * MIB);
    assert_eq!(rig.try_alloc(50 * MIB, TWO), Err(DriverError::OutOfMemory { size }));
    assert_eq!(
        rig.try_alloc(u64::MAX, TWO).map(drop).map_err(|error| error.to_string().len() > 10),
        Err(true)
    );
    rig.free(held);
    rig.warm_up(|rig| drop(net(rig, ONE, 1)));
    assert_eq!(rig.wrong(6), 0);
}

#[test]
fn an_address_that_is_not_live_is_left_alone() {
    let mut rig = Rig::new(70 * MIB);
    let block = rig.alloc(MIB, ONE);
    rig.free(block);
    assert!(!rig.heap.free(block.at, ONE) && !rig.heap.record_stream(block.at, TWO));
    assert_eq!(rig.heap.tally().wrong_frees.get(), 1);
}

/// The wrong words in some orders, when stream 2 reads a block of stream 1, which then uses the memory again.
fn wrong_when(shared: impl Fn(&mut Rig, Block)) -> u64 {
    let mut rig = Rig::new(1 << 30);
    rig.warm_up(|rig| drop(net(rig, ONE, 1)));
    for seed in 0..60 {
        let input = rig.alloc(MIB, ONE);
        rig.heap.memory.device.wait(TWO, ONE).expect("noted");
        rig.streams.verify(TWO, input.at, input.size, input.seed);
        shared(&mut rig, input);
        net(&mut rig, ONE, 1);
        rig.wrong(seed);
    }
    rig.wrong(0)
}

#[test]
fn a_block_is_used_again_after_the_other_streams_that_use_it() {
    let unsaid = wrong_when(|rig, block| rig.free(block));
    assert!(unsaid > 0, "the simulation sees that nobody said so");
    let said = wrong_when(|rig, block| {
        assert!(rig.heap.record_stream(block.at, TWO) && rig.heap.record_stream(block.at, TWO));
        rig.free(block);
        assert!(rig.heap.tally().ordered.get() > 0);
    });
    assert_eq!(said, 0);
    let freed_elsewhere = wrong_when(|rig, block| assert!(rig.heap.free(block.at, TWO)));
    assert_eq!(freed_elsewhere, 0);
}

#[test]
fn what_a_graph_got_is_never_handed_out_again() {
    let mut rig = Rig::new(1 << 30);
    rig.warm_up(|rig| drop(net(rig, TWO, 1)));
    rig.streams.set_capturing(TWO, true);
    let captured: Vec<Block> = (1..=10).map(|size| rig.alloc(size * MIB, TWO)).collect();
    let recorded = rig.alloc(MIB, ONE);
    assert!(rig.heap.record_stream(recorded.at, TWO));
    rig.free(recorded);
    captured.iter().for_each(|&block| rig.free(block));
    rig.streams.set_capturing(TWO, false);
    rig.heap.release_cached();
    let kept: Vec<Block> = captured.into_iter().chain([recorded]).collect();
    for _ in 0..5 {
        for stream in [ONE, TWO] {
            for at in net(&mut rig, stream, 1) {
                let is_inside =
                    |block: &Block| block.at <= at && at.get() < block.at.get() + block.size.get();
                assert!(!kept.iter().any(is_inside));
            }
        }
    }
    assert_eq!((rig.heap.tally().captured.get(), rig.heap.tally().kept.get()), (10, 1));
}

#[test]
fn marks_end_rounds() {
    let mut settings = config();
    settings.machine.marks = true;
    let mut rig = Rig::with_config(1 << 30, settings);
    let round = |rig: &mut Rig| {
        rig.heap.mark_round();
        drop(net(rig, ONE, 1));
    };
    rig.warm_up(round);
    let before = rig.planned();
    round(&mut rig);
    assert_eq!(rig.planned(), before + 41);
}

#[test]
fn without_plans_the_pool_serves_all() {
    let mut rig = Rig::with_config(1 << 30, HeapConfig { machine: Config::default(), planning: None });
    (0..5).for_each(|_| drop(net(&mut rig, ONE, 1)));
    assert_eq!((rig.planned(), rig.requests(), rig.wrong(0)), (0, 5 * 41, 0));
}

static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn say(text: &str) {
    SAID.lock().expect("no panic").push(text.to_owned());
}

#[test]
fn what_is_missing_is_said_once() {
    let opened = |number| match number {
        0 => Ok(Arc::new(SimulatedStreams::new(Bytes::new(4 * MIB))) as Arc<dyn SharedDevice>),
        _ => Err(DriverError::Unavailable { reason: format!("there is no GPU {number}") }),
    };
    let devices = Devices::new(opened, config(), say);
    let alloc = |size, device| devices.alloc(Bytes::new(size), device, ONE);
    assert_eq!((alloc(MIB, 1), alloc(MIB, 1), alloc(0, 0)), (None, None, None));
    assert!(!devices.free(Address::new(512), 1, ONE) && devices.free(Address::NULL, 0, ONE));
    assert_eq!((alloc(8 * MIB, 0), alloc(9 * MIB, 0)), (None, None));
    let block = alloc(MIB, 0).expect("room");
    assert!(devices.record_stream(block, TWO) && devices.free(block, 0, ONE));
    devices.release_cached();
    assert_eq!(devices.idle_heaps().map(|heap| heap.held_bytes()).collect::<Vec<_>>(), [0]);
    let said = SAID.lock().expect("no panic").join("");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].contains("GPU 1: no device: there is no GPU 1"), "{said}");
    assert!(lines[1].contains("GPU 0: the device has no room for 8388608 bytes"), "{said}");
}

#[test]
fn threads_share_devices() {
    let streams: [SimulatedStreams; 2] = std::array::from_fn(|_| SimulatedStreams::new(Bytes::new(1 << 30)));
    let opened = streams.clone();
    let open = move |number| {
        Ok(Arc::new(opened[usize::try_from(number).expect("small")].clone()) as Arc<dyn SharedDevice>)
    };
    let devices = Devices::new(open, config(), say);
    let seeds = AtomicU64::new(1);
    let planned = |heap: &Heap| heap.streams().filter(|(_, tally)| tally.planned.get() > 0).count();
    let planned_streams = || devices.opened_heaps().map(|heap| planned(&heap)).sum::<usize>();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (devices, streams, seeds, planned_streams) = (&devices, &streams, &seeds, &planned_streams);
            // Two streams on each of two devices; each stream is used by one thread.
            let device = i32::from(thread >= 2);
            let stream = StreamHandle(1 + thread % 2);
            scope.spawn(move || {
                let queue = &streams[usize::from(thread >= 2)];
                let until = Instant::now() + PLAN_TIMEOUT;
                for round in 0.. {
                    if (round >= 30 && planned_streams() == 4) || Instant::now() > until {
                        break;
                    }
                    let mut live = Vec::new();
                    for layer in 0..40 {
                        let size = Bytes::new((MIB / 8) * (1 + thread) + 512 * layer);
                        let at = devices.alloc(size, device, stream).expect("room");
                        let seed = seeds.fetch_add(1, Ordering::Relaxed);
                        queue.fill(stream, at, size, seed);
                        live.push((at, size, seed));
                        if live.len() > 3 {
                            let (at, size, seed) = live.remove(0);
                            queue.verify(stream, at, size, seed);
                            assert!(devices.free(at, device, stream));
                        }
                    }
                    live.into_iter().for_each(|(at, ..)| assert!(devices.free(at, device, stream)));
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
        }
    });
    let wrong: Vec<u64> = streams.iter().map(|queue| queue.run(7).expect("legal")).collect();
    assert_eq!(wrong, [0, 0]);
    assert_eq!(planned_streams(), 4, "each stream has its plan");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Whatever two streams request, blocks keep their contents until they are freed, in every possible order of the
    /// streams. [`Heap`] itself checks for overlaps.
    #[test]
    fn blocks_keep_their_contents(
        rounds in proptest::collection::vec((any::<bool>(), 1_u64..4, 0_usize..60, any::<bool>()), 4..24),
        seed in any::<u64>(),
    ) {
        let mut rig = Rig::new(1 << 30);
        let mut kept: Vec<Block> = Vec::new();
        for (is_first, scale, odd, is_shared) in rounds {
            let (own, other) = if is_first { (ONE, TWO) } else { (TWO, ONE) };
            for times in 0..4 {
                let mut live = Vec::new();
                for number in 0..40_usize {
                    let odd_size = if number == odd && times == 3 { 3333 } else { 0 };
                    live.push(rig.alloc(scale * 8192 + 512 * number as u64 + odd_size, own));
                    if number >= 4 {
                        let block = live.remove(number % 3);
                        match (number == odd, is_shared) {
                            (true, true) => {
                                rig.heap.memory.device.wait(other, own).expect("noted");
                                rig.streams.verify(other, block.at, block.size, block.seed);
                                prop_assert!(rig.heap.free(block.at, other));
                            }
                            (true, false) => kept.push(block),
                            _ => rig.free(block),
                        }
                    }
                }
                live.into_iter().for_each(|block| rig.free(block));
                std::thread::sleep(Duration::from_micros(500));
            }
            if kept.len() > 2 {
                let block = kept.remove(0);
                rig.free(block);
            }
        }
        prop_assert_eq!(rig.wrong(seed), 0);
    }
}
