//! Tests the rules of `dtr`, `coop` and `capuchin`: on random nets, and by values in real memory.

use std::collections::BTreeMap;

use planlab_graph::{ScheduleBudget, SchedulingProblem, compute_bound};
use planlab_solvers::schedule::find_scheduler;
use planlab_solvers::schedule::online::{
    AddressRoom, ByteRoom, Device, Exhausted, Holder, Room, Runtime, TensorTable,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::bounds::{SAME, within};
use super::contract::check;
use super::nets::{random, small_machine};

#[test]
fn schedules_of_random_nets_are_valid_and_above_the_bound() {
    let mut found = [0; 3];
    for seed in 0..200 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let problem = SchedulingProblem::new(random(&mut rng), small_machine());
        let percent = [95, 90, 85, 80, 75, 70, 65, 60][usize::try_from(seed % 8).expect("few")];
        let problem = within(&problem, percent);
        let bound = compute_bound(&problem).seconds;
        for (count, key) in found.iter_mut().zip(["dtr", "coop", "capuchin"]) {
            let scheduler = find_scheduler(key).expect("a scheduler");
            let Some(best) = check(&problem, &scheduler, ScheduleBudget::default()) else { continue };
            assert!(best.seconds() >= bound * (1.0 - SAME), "seed {seed}, {key}");
            assert!(key != "coop" || best.height() <= problem.capacity, "seed {seed}: {}", best.height());
            *count += 1;
        }
    }
    println!("schedules of dtr, coop and capuchin: {found:?}");
    assert!(found.iter().all(|&count| count > 20), "too few schedules: {found:?}");
}

/// A device with real memory. The value of a tensor is a hash of its number and of the values of its parents, as they
/// are read.
struct RealMemory {
    parents: Vec<Vec<usize>>,
    bytes: Vec<usize>,
    /// The value that each tensor must have.
    expected: Vec<u64>,
    arena: Vec<u8>,
    /// Where each tensor on the device starts in the arena; `None` for one with memory of its own.
    places: BTreeMap<usize, Option<usize>>,
    own: BTreeMap<usize, Vec<u8>>,
    computed: u64,
}

fn mix_values(tensor: usize, operands: &[u64]) -> u64 {
    let start = (tensor as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    operands
        .iter()
        .fold(start, |hash, &value| (hash.rotate_left(23) ^ value).wrapping_mul(0xD6E8_FEB8_6659_FD93))
}

impl RealMemory {
    fn new(tensors: &TensorTable, capacity: usize) -> Self {
        let parents: Vec<Vec<usize>> =
            (0..tensors.len()).map(|tensor| tensors.parents(tensor).to_vec()).collect();
        let mut expected: Vec<u64> = Vec::new();
        for (tensor, parents) in parents.iter().enumerate() {
            let operands: Vec<u64> = parents.iter().map(|&parent| expected[parent]).collect();
            expected.push(mix_values(tensor, &operands));
        }
        let bytes = (0..tensors.len()).map(|tensor| as_index(tensors.bytes(tensor))).collect();
        Self {
            parents,
            bytes,
            expected,
            arena: vec![0; capacity],
            places: BTreeMap::new(),
            own: BTreeMap::new(),
            computed: 0,
        }
    }

    /// Writes a value over all bytes of a tensor.
    fn write_value(&mut self, tensor: usize, offset: Option<u64>, value: u64) {
        let (place, length) = (offset.map(as_index), self.bytes[tensor]);
        assert_eq!(self.places.insert(tensor, place), None, "tensor {tensor} is there twice");
        let target = match place {
            Some(start) => &mut self.arena[start..start + length],
            None => &mut self.own.entry(tensor).or_insert_with(|| vec![0; length])[..],
        };
        fill_bytes(target, value);
    }

    /// Reads a tensor, and checks every byte.
    fn read_value(&self, tensor: usize) -> u64 {
        let place = self.places.get(&tensor).unwrap_or_else(|| panic!("tensor {tensor} is not there"));
        let source = match *place {
            Some(start) => &self.arena[start..start + self.bytes[tensor]],
            None => &self.own[&tensor][..],
        };
        let mut head = [0; 8];
        head.copy_from_slice(&source[..8]);
        assert!(
            source.iter().zip(head.iter().cycle()).all(|(byte, wanted)| byte == wanted),
            "tensor {tensor}"
        );
        let value = u64::from_le_bytes(head);
        assert_eq!(value, self.expected[tensor], "tensor {tensor} has a wrong value");
        value
    }
}

impl Device for RealMemory {
    fn compute_tensor(&mut self, tensor: usize, offset: Option<u64>) {
        let operands: Vec<u64> = self.parents[tensor].iter().map(|&parent| self.read_value(parent)).collect();
        self.write_value(tensor, offset, mix_values(tensor, &operands));
        self.computed += 1;
    }

    fn discard_tensor(&mut self, tensor: usize) {
        assert!(self.places.remove(&tensor).is_some(), "tensor {tensor} is not there");
        self.own.remove(&tensor);
    }
}

fn as_index(number: u64) -> usize {
    usize::try_from(number).expect("few bytes")
}

fn fill_bytes(target: &mut [u8], value: u64) {
    for (byte, part) in target.iter_mut().zip(value.to_le_bytes().into_iter().cycle()) {
        *byte = part;
    }
}

/// Two inputs, and ten tensors with up to three parents.
fn random_tensors(rng: &mut ChaCha8Rng) -> TensorTable {
    let mut tensors = TensorTable::default();
    for tensor in 0..12 {
        let bytes = rng.random_range(8..40);
        if tensor < 2 {
            tensors.add_tensor(bytes, None, &[]);
            continue;
        }
        let parents: Vec<usize> = (0..rng.random_range(1..4)).map(|_| rng.random_range(0..tensor)).collect();
        tensors.add_tensor(bytes, Some(f64::from(rng.random_range(0..9_u8))), &parents);
    }
    tensors
}

/// What is not evicted: its number, its place and its size.
struct Guest {
    number: usize,
    offset: Option<u64>,
    bytes: u64,
}

/// A guest overwrites its bytes, to destroy what is wrongly there.
fn admit_guest<R: Room>(
    runtime: &mut Runtime<R>,
    memory: &mut RealMemory,
    number: usize,
    bytes: u64,
) -> Option<Guest> {
    let offset = runtime.reserve_bytes(Holder::Other(number), bytes, memory).ok()?;
    if let Some(start) = offset.map(as_index) {
        fill_bytes(&mut memory.arena[start..start + as_index(bytes)], u64::MAX);
    }
    Some(Guest { number, offset, bytes })
}

/// Makes random tensors available, drops some, and lets guests come and go. Returns the steps, those for which there was
/// no room, and the runs of functions.
fn walk_randomly<R: Room>(seed: u64, make_room: impl Fn(u64, f64) -> R) -> [u64; 3] {
    const STEPS: u64 = 1000;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let tensors = random_tensors(&mut rng);
    let total: u64 = (0..tensors.len()).map(|tensor| tensors.bytes(tensor)).sum();
    let capacity = total * rng.random_range(60..90) / 100;
    let room = make_room(capacity, tensors.median_cost_density());
    let mut memory = RealMemory::new(&tensors, as_index(capacity));
    let mut runtime = Runtime::new(tensors, room, usize::MAX);
    for input in 0..2 {
        let offset = runtime.hold_input(input, &mut memory).expect("there is room");
        memory.write_value(input, offset, memory.expected[input]);
    }
    let (mut guest, mut failures): (Option<Guest>, u64) = (None, 0);
    for step in 0..STEPS {
        let tensor = rng.random_range(0..12);
        match rng.random_range(0..10) {
            0 => runtime.drop_tensor(tensor, &mut memory),
            1 => {
                if let Some(Guest { number, bytes, .. }) = guest.take() {
                    runtime.release_bytes(Holder::Other(number), bytes);
                }
                guest = admit_guest(&mut runtime, &mut memory, as_index(step), rng.random_range(1..20));
            }
            _ => match runtime.fetch_tensors(&[tensor], &mut memory) {
                Ok(()) => {
                    memory.read_value(tensor);
                    runtime.tensors.touch(tensor);
                    runtime.tensors.unpin(tensor);
                }
                Err(error) => {
                    assert!(matches!(error, Exhausted::Memory { .. }), "{error}");
                    runtime.tensors.clear_pins();
                    failures += 1;
                }
            },
        }
        if let Some(Guest { offset: Some(start), bytes, .. }) = guest {
            let taken = &memory.arena[as_index(start)..as_index(start + bytes)];
            assert!(taken.iter().all(|&byte| byte == u8::MAX), "a guest was overwritten");
        }
    }
    [STEPS, failures, memory.computed]
}

/// 100,000 steps by each rule; every operand of every function is checked.
#[test]
fn values_survive_eviction_and_recomputation() {
    let mut totals = [[0; 3]; 2];
    for seed in 0..100 {
        let walks = [
            walk_randomly(seed, |capacity, _| ByteRoom::new(capacity)),
            walk_randomly(seed, AddressRoom::new),
        ];
        for (total, walk) in totals.iter_mut().flatten().zip(walks.as_flattened()) {
            *total += walk;
        }
    }
    for (rule, [steps, failures, computed]) in ["dtr", "coop"].into_iter().zip(totals) {
        println!("{rule}: {steps} steps, {failures} without room, {computed} runs of functions");
        assert_eq!(steps, 100_000, "{rule}");
        assert!(failures < steps / 20, "{rule}: {failures} steps without room");
        assert!(computed > steps / 5, "{rule}: only {computed} runs of functions");
    }
}
