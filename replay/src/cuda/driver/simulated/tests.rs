//! Tests that the simulated device behaves as a device must.

use super::pool::SEGMENT;
use super::*;

const MIB: u64 = 1 << 20;

fn device(mebibytes: u64) -> SimulatedDriver {
    SimulatedDriver::new(Bytes::new(mebibytes * MIB))
}

fn launch(device: &SimulatedDriver, kernel: Kernel) {
    // SAFETY: a simulated device checks every access.
    unsafe { device.launch_kernel(kernel) }.expect("no fault so far");
}

fn fill(at: Address, words: u64, seed: u64) -> Kernel {
    Kernel::Fill { at, words, seed }
}

fn verify(at: Address, words: u64, seed: u64, slot: u32) -> Kernel {
    Kernel::Verify { at, words, seed, slot }
}

#[test]
fn what_was_written_over_is_found_to_the_word() {
    let device = device(8);
    let at = device.malloc(Bytes::new(4096)).expect("room");
    launch(&device, fill(at, 256, 1));
    launch(&device, fill(Address::new(at.get() + 160), 6, 2));
    launch(&device, verify(at, 256, 1, 3));
    launch(&device, verify(Address::new(at.get() + 160), 6, 2, 4));
    launch(&device, Kernel::Sum { at, words: 10, slot: 5 });
    let slots = device.read_slots().expect("no fault");
    assert_eq!(slots[3..6], [6, 0, pattern::pattern_sum(1, 10)]);
}

#[test]
fn an_access_outside_memory_ends_all() {
    let device = device(8);
    let at = device.malloc(Bytes::new(64)).expect("room");
    launch(&device, fill(at, 5, 1));
    assert!(device.synchronise().is_err());
    assert!(device.malloc(Bytes::new(64)).is_err(), "a device is lost then");
}

#[test]
fn the_capacity_is_counted_in_granules() {
    let device = device(8);
    let blocks: Vec<Address> = (0..4).map(|_| device.malloc(Bytes::new(1)).expect("room")).collect();
    assert!(matches!(device.malloc(Bytes::new(1)), Err(DriverError::OutOfMemory { .. })));
    assert_eq!(device.device_memory().expect("no fault").free, Bytes::ZERO);
    device.free(blocks[1]).expect("held");
    assert!(device.free(blocks[1]).is_err(), "twice");
    assert!(device.malloc(Bytes::new(2 * MIB)).is_ok());
}

#[test]
fn the_pool_keeps_down_to_its_threshold() {
    let device = device(256);
    let reserved = || device.pool_memory().expect("no fault").reserved / MIB;
    let blocks = [40, 10, 10].map(|size| device.malloc_async(Bytes::new(size * MIB)).expect("room"));
    assert_eq!(reserved(), 72);
    blocks.iter().for_each(|block| device.free_async(*block).expect("in use"));
    assert!(device.free_async(blocks[0]).is_err(), "twice");
    assert_eq!(reserved(), 72);
    device.keep_in_pool(Bytes::new(u64::MAX)).expect("no fault");
    device.synchronise().expect("no fault");
    assert_eq!(reserved(), 72);
    device.keep_in_pool(Bytes::ZERO).expect("no fault");
    device.synchronise().expect("no fault");
    assert_eq!(reserved(), 0);
    let figures = device.pool_memory().expect("no fault");
    assert_eq!((figures.reserved_peak / MIB, figures.used_peak / MIB), (72, 60));
    device.reset_pool().expect("no fault");
    assert_eq!(device.pool_memory().expect("no fault"), PoolMemory::default());
}

#[test]
fn memory_of_the_pool_is_used_again_in_stream_order() {
    let device = device(64);
    let first = device.malloc_async(Bytes::new(MIB)).expect("room");
    launch(&device, fill(first, 10, 1));
    launch(&device, verify(first, 10, 1, 0));
    device.free_async(first).expect("in use");
    let second = device.malloc_async(Bytes::new(MIB)).expect("room");
    assert_eq!(first, second);
    launch(&device, fill(second, 10, 2));
    assert_eq!(device.read_slots().expect("no fault")[0], 0);
}

#[test]
fn a_graph_runs_as_often_as_it_is_launched() {
    let device = device(128);
    device.begin_capture().expect("idle");
    assert!(device.malloc(Bytes::new(1)).is_err(), "not within a graph");
    let at = device.malloc_async(Bytes::new(4096)).expect("room");
    launch(&device, fill(at, 256, 9));
    launch(&device, Kernel::Sum { at, words: 256, slot: 1 });
    device.free_async(at).expect("in use");
    let graph = device.end_capture().expect("all is freed");
    assert_eq!(device.read_slots().expect("no fault")[1], 0);
    for _ in 0..3 {
        // SAFETY: a simulated device checks every access.
        unsafe { device.launch_graph(graph) }.expect("ready");
    }
    assert_eq!(device.read_slots().expect("no fault")[1], pattern::pattern_sum(9, 256).wrapping_mul(3));
    assert_eq!(device.graph_memory().expect("no fault").reserved_peak, SEGMENT);
    device.drop_graph(graph).expect("no fault");
    assert_eq!(device.graph_memory().expect("no fault"), PoolMemory::default());
    // SAFETY: as above.
    assert!(unsafe { device.launch_graph(graph) }.is_err());
    assert_eq!(device.device_memory().expect("no fault").free, Bytes::new(128 * MIB));
}

#[test]
fn a_graph_must_free_what_it_allocates() {
    let device = device(128);
    device.begin_capture().expect("idle");
    device.malloc_async(Bytes::new(4096)).expect("room");
    assert!(device.end_capture().is_err());
}

#[test]
fn the_clock_goes_on_with_the_work() {
    let device = device(8);
    device.record_mark(Mark::Begin).expect("no fault");
    launch(&device, Kernel::Spin { nanoseconds: 5000 });
    device.record_mark(Mark::End).expect("no fault");
    launch(&device, Kernel::Spin { nanoseconds: 70_000 });
    assert_eq!(device.between_marks().expect("no fault"), Duration::from_nanos(5000 + LAUNCH));
}

#[test]
fn mapped_pages_are_one_memory() {
    let device = device(8);
    let base = device.reserve(Bytes::new(1 << 30)).expect("addresses");
    let page = device.page_size();
    let next = Address::new(base.get() + page.get());
    for at in [base, next] {
        device.map(at, page, page).expect("room");
    }
    assert!(device.map(next, page, page).is_err(), "mapped twice");
    let across = Address::new(next.get() - 32);
    launch(&device, fill(across, 4, 7));
    launch(&device, verify(across, 4, 7, 0));
    assert_eq!(device.read_slots().expect("no fault")[0], 0);
    assert!(device.unreserve(base, Bytes::new(1 << 30)).is_err(), "still mapped");
    device.unmap(&[base, next]).expect("mapped");
    device.unreserve(base, Bytes::new(1 << 30)).expect("bare");
    launch(&device, fill(base, 1, 1));
    assert!(device.synchronise().is_err());
}

#[test]
fn a_piece_is_mapped_and_unmapped_whole() {
    let device = device(8);
    let page = device.page_size().get();
    let base = device.reserve(Bytes::new(1 << 30)).expect("addresses");
    let at = |pages: u64| Address::new(base.get() + pages * page);
    device.map(at(0), Bytes::new(2 * page), Bytes::new(2 * page)).expect("room");
    // Two more pieces would make 12 MiB of 8, so the one that found room goes back.
    let refused = device.map(at(2), Bytes::new(4 * page), Bytes::new(2 * page));
    assert!(matches!(refused, Err(DriverError::OutOfMemory { .. })));
    assert_eq!(device.mapped_pieces(), [(base.get(), 2 * page)]);
    assert!(device.unmap(&[at(1)]).is_err(), "amid a piece");
    assert!(device.unmap(&[at(1), at(0), at(0)]).is_err(), "what fails keeps no other from going");
    assert!(device.mapped_pieces().is_empty());
    let held = device.malloc(Bytes::new(1)).expect("room");
    assert!(device.unmap(&[held]).is_err(), "it was not mapped");
    assert_eq!(device.device_memory().expect("no fault").free, Bytes::new(6 * MIB));
}

#[test]
fn what_was_not_given_back_is_told_at_the_end() {
    let mut device = device(8);
    assert_eq!(device.close(), Ok(()));
    device.malloc(Bytes::new(5)).expect("room");
    let says = device.close().map_err(|error| error.to_string());
    assert_eq!(says, Err(format!("close: {} bytes were not given back", 2 * MIB)));
}
