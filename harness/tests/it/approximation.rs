//! Checks the guarantees of approximations on every recorded net and every synthetic family.
//!
//! `gergov` claims a ratio. `boxing` claims none, so the promises of its construction are tested against figures
//! computed from the instance alone. It is optimal if all sizes are equal, and never above the limit of its first step
//! (first fit, the largest first).

use std::cmp::Reverse;

use planlab_dsa::{Budget, Buffer, Bytes, Guarantee, Instance, execute};
use planlab_solvers::find_planner;
use planlab_workloads::{recorded, synthetic};

const PLANNERS: [&str; 2] = ["gergov", "gergov/squeezed"];

/// The height over the load, in thousandths.
fn check(workload: &str, instance: &Instance, key: &str) -> u64 {
    let planner = find_planner(key).expect("registered");
    assert_eq!(planner.descriptor().guarantee, Guarantee::Ratio(3.0), "{key}");
    let outcome = execute(&planner, instance, Budget::default(), 0);
    let height = outcome.height().map(Bytes::get);
    let height = height.unwrap_or_else(|| panic!("{key} has no plan for {workload}: {:?}", outcome.end));
    let load = instance.load().bytes.get();
    assert!(height <= 3 * load, "{key} on {workload}: {height} is more than three times the load {load}");
    height * 1000 / load.max(1)
}

/// Checks both planners; moving down must not make a plan higher.
fn check_both(workload: &str, instance: &Instance) {
    let [published, squeezed] = PLANNERS.map(|key| check(workload, instance, key));
    assert!(squeezed <= published, "{workload}: {squeezed} over {published} thousandths");
}

#[test]
fn three_times_the_load_holds_on_every_recorded_net() {
    let workloads = &recorded::manifest().workload;
    assert!(workloads.len() >= 40, "only {} workloads", workloads.len());
    for entry in workloads {
        let trace = entry.read_trace().unwrap_or_else(|error| panic!("{}: {error}", entry.key));
        check_both(&entry.key, &trace.instance);
    }
}

#[test]
fn three_times_the_load_holds_on_every_family() {
    for family in synthetic::all_families() {
        for n in ["100", "1000", "5000"] {
            for seed in ["0", "1", "2"] {
                let trace = synthetic::generate_trace(family.name, &[("n", n), ("seed", seed)]);
                let trace = trace.unwrap_or_else(|error| panic!("{}: {error}", family.name));
                check_both(&format!("{}/n{n}/s{seed}", family.name), &trace.instance);
            }
        }
    }
}

/// The most buffers of a recorded net that is checked buffer by buffer.
const MOST_BUFFERS: usize = 1_000;
/// Units of work for each buffer: enough for the first step and some rounds of boxing.
const WORK_PER_BUFFER: u64 = 1_000;

/// The buffers in the order of the bootstrap.
fn largest_first(instance: &Instance) -> Vec<&Buffer> {
    let mut order: Vec<&Buffer> = instance.buffers().iter().collect();
    order.sort_by_key(|buffer| (Reverse(buffer.size), Reverse(buffer.live.width())));
    order
}

/// A height that first fit in that order never exceeds. Each buffer meets only buffers that are at least as large. A
/// gap below it is smaller than it, and so smaller than the block above the gap: its offset is less than twice the size
/// of what it meets. This holds if sizes are multiples of the alignments.
fn ceiling(instance: &Instance) -> u64 {
    let order = largest_first(instance);
    let end = |(at, buffer): (usize, &&Buffer)| {
        let meets = order[..at].iter().filter(|other| other.live.overlaps(buffer.live));
        buffer.size.get() + 2 * meets.map(|other| other.size.get()).sum::<u64>()
    };
    order.iter().enumerate().map(end).max().unwrap_or(0)
}

fn height_of_boxing(workload: &str, instance: &Instance, work: Option<u64>) -> u64 {
    let boxing = find_planner("boxing").expect("registered");
    let outcome = execute(&boxing, instance, Budget { work, ..Budget::default() }, 0);
    let height = outcome.height().unwrap_or_else(|| panic!("no plan for {workload}: {:?}", outcome.end));
    height.get()
}

/// The same live ranges, all of one size.
fn alike(instance: &Instance) -> Instance {
    let one = |buffer: &Buffer| Buffer::new(Bytes::new(7), buffer.live);
    Instance::from_buffers(instance.buffers().iter().map(one).collect()).expect("as valid as before")
}

fn check_boxing(workload: &str, instance: &Instance) {
    let is_plain = |buffer: &Buffer| {
        buffer.size.get().is_multiple_of(buffer.align.get())
            && buffer.pauses.is_empty()
            && buffer.pin.is_none()
    };
    assert!(instance.buffers().iter().all(is_plain), "{workload}: the bound is for plain buffers");
    let work = WORK_PER_BUFFER * (10 + instance.len() as u64);
    let (height, ceiling) = (height_of_boxing(workload, instance, Some(work)), ceiling(instance));
    assert!(height <= ceiling, "{workload}: {height} is more than the first step can be, {ceiling}");
    // With equal sizes, the search ends by itself.
    let alike = alike(instance);
    let height = height_of_boxing(workload, &alike, None);
    assert_eq!(height, alike.load().bytes.get(), "{workload}, all of one size");
}

#[test]
fn boxing_keeps_its_promises_on_recorded_nets() {
    let mut checked = 0;
    for entry in &recorded::manifest().workload {
        let trace = entry.read_trace().unwrap_or_else(|error| panic!("{}: {error}", entry.key));
        if trace.instance.len() <= MOST_BUFFERS {
            check_boxing(&entry.key, &trace.instance);
            checked += 1;
        }
    }
    assert!(checked >= 20, "only {checked} nets");
}

#[test]
fn boxing_keeps_its_promises_on_every_family() {
    for family in synthetic::all_families() {
        for (n, seed) in [("100", "0"), ("100", "1"), ("1000", "2")] {
            let trace = synthetic::generate_trace(family.name, &[("n", n), ("seed", seed)]);
            let trace = trace.unwrap_or_else(|error| panic!("{}: {error}", family.name));
            check_boxing(&format!("{}/n{n}/s{seed}", family.name), &trace.instance);
        }
    }
}
