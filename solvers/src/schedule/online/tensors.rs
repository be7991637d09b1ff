//! The tensors of a computation: which are on the device, when each was last used, and what it costs to lose one.
//!
//! Losing a tensor costs the seconds to compute it, and those of its *evicted neighbourhood*: the evicted tensors that
//! have to be recomputed first, and those whose recomputation now begins with it. The neighbourhood is exact: evicted
//! parents of evicted parents, evicted children of evicted children.

use std::cell::Cell;

use planlab_graph::SchedulingProblem;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Residence {
    /// Not computed yet.
    Pending,
    Resident,
    Evicted,
}

#[derive(Clone, Debug)]
struct TensorEntry {
    bytes: u64,
    /// Seconds to compute it from its parents; `None` for an input.
    seconds: Option<f64>,
    parents: Vec<usize>,
    children: Vec<usize>,
    residence: Residence,
    last_access: f64,
    pins: u32,
}

/// Tensors by index, and a clock that counts the seconds of computing.
///
/// # Panics
///
/// All methods that take an index panic if there is no such tensor.
#[derive(Clone, Debug, Default)]
pub struct TensorTable {
    entries: Vec<TensorEntry>,
    clock: f64,
    /// The tensors at which rates of loss have looked since [`Self::take_steps`].
    steps: Cell<u64>,
}

impl TensorTable {
    /// The feature maps of a net, by id; none is on the device.
    #[must_use]
    pub fn from_problem(problem: &SchedulingProblem) -> Self {
        let net = &problem.net;
        let mut table = Self::default();
        for map in net.maps() {
            table.add_tensor(map.bytes.get(), None, &[]);
        }
        for (id, &seconds) in net.function_ids().zip(problem.times.forward()) {
            let function = net.function(id);
            let parents: Vec<usize> = function.inputs.iter().map(|map| map.index()).collect();
            table.set_producer(function.output.index(), seconds, &parents);
        }
        table
    }

    /// Appends a tensor that is not on the device and returns its index. `seconds` is the time to compute it; an input
    /// has none, and is never evicted.
    pub fn add_tensor(&mut self, bytes: u64, seconds: Option<f64>, parents: &[usize]) -> usize {
        let tensor = self.entries.len();
        self.entries.push(TensorEntry {
            bytes,
            seconds: None,
            parents: Vec::new(),
            children: Vec::new(),
            residence: Residence::Pending,
            last_access: 0.0,
            pins: 0,
        });
        if let Some(seconds) = seconds {
            self.set_producer(tensor, seconds, parents);
        }
        tensor
    }

    fn set_producer(&mut self, tensor: usize, seconds: f64, parents: &[usize]) {
        self.entries[tensor].seconds = Some(seconds);
        self.entries[tensor].parents = parents.to_vec();
        for &parent in parents {
            self.entries[parent].children.push(tensor);
        }
    }

    /// Number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no tensors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The size of a tensor in bytes.
    #[must_use]
    pub fn bytes(&self, tensor: usize) -> u64 {
        self.entries[tensor].bytes
    }

    /// The seconds to compute a tensor from its parents; 0 for an input.
    #[must_use]
    pub fn seconds(&self, tensor: usize) -> f64 {
        self.entries[tensor].seconds.unwrap_or(0.0)
    }

    /// The tensors from which a tensor is computed.
    #[must_use]
    pub fn parents(&self, tensor: usize) -> &[usize] {
        &self.entries[tensor].parents
    }

    /// Whether a tensor is on the device.
    #[must_use]
    pub fn is_resident(&self, tensor: usize) -> bool {
        self.entries[tensor].residence == Residence::Resident
    }

    /// Whether a tensor is on the device, can be recomputed and is not pinned.
    #[must_use]
    pub fn is_evictable(&self, tensor: usize) -> bool {
        let entry = &self.entries[tensor];
        entry.residence == Residence::Resident && entry.pins == 0 && entry.seconds.is_some()
    }

    /// The tensors that can be evicted now, ascending.
    pub fn evictable_tensors(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.entries.len()).filter(|&tensor| self.is_evictable(tensor))
    }

    /// Keeps a tensor from being evicted until it is unpinned as often as it was pinned.
    pub fn pin(&mut self, tensor: usize) {
        self.entries[tensor].pins += 1;
    }

    /// Takes back one pin.
    ///
    /// # Panics
    ///
    /// If the tensor is not pinned.
    pub fn unpin(&mut self, tensor: usize) {
        let pins = &mut self.entries[tensor].pins;
        *pins = pins.checked_sub(1).expect("only pinned tensors are unpinned");
    }

    /// Pins each parent of a tensor.
    pub(super) fn pin_parents(&mut self, tensor: usize) {
        for parent in self.entries[tensor].parents.clone() {
            self.pin(parent);
        }
    }

    /// Unpins each parent of a tensor.
    pub(super) fn unpin_parents(&mut self, tensor: usize) {
        for parent in self.entries[tensor].parents.clone() {
            self.unpin(parent);
        }
    }

    /// Takes back all pins, after a computation that failed.
    pub fn clear_pins(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.pins = 0);
    }

    /// Notes that a tensor is used now.
    pub fn touch(&mut self, tensor: usize) {
        self.entries[tensor].last_access = self.clock;
    }

    /// Notes that each parent of a tensor is used now.
    pub(super) fn touch_parents(&mut self, tensor: usize) {
        for parent in self.entries[tensor].parents.clone() {
            self.touch(parent);
        }
    }

    /// Notes that a tensor is on the device from now on.
    pub fn mark_resident(&mut self, tensor: usize) {
        self.entries[tensor].residence = Residence::Resident;
        self.touch(tensor);
    }

    /// Notes that a tensor has left the device.
    pub fn evict(&mut self, tensor: usize) {
        self.entries[tensor].residence = Residence::Evicted;
    }

    /// Lets some seconds of computing pass.
    pub fn advance_clock(&mut self, seconds: f64) {
        self.clock += seconds;
    }

    /// Seconds per byte to compute a tensor; `None` for an input.
    #[must_use]
    pub fn cost_density(&self, tensor: usize) -> Option<f64> {
        let entry = &self.entries[tensor];
        Some(entry.seconds? / entry.bytes.max(1) as f64)
    }

    /// The upper median of the cost densities; 0 without tensors that are computed.
    #[must_use]
    pub fn median_cost_density(&self) -> f64 {
        let mut densities: Vec<f64> =
            (0..self.entries.len()).filter_map(|tensor| self.cost_density(tensor)).collect();
        densities.sort_by(f64::total_cmp);
        densities.get(densities.len() / 2).copied().unwrap_or(0.0)
    }

    /// The seconds that losing a tensor costs, with its evicted neighbourhood, for each second since its last use:
    /// infinite if it is used now.
    #[must_use]
    pub fn loss_rate(&self, tensor: usize) -> f64 {
        let staleness = self.clock - self.entries[tensor].last_access;
        if staleness > 0.0 { self.recovery_seconds(tensor) / staleness } else { f64::INFINITY }
    }

    /// The heuristic of DTR: the loss rate of each byte.
    #[must_use]
    pub fn loss_rate_per_byte(&self, tensor: usize) -> f64 {
        self.loss_rate(tensor) / self.entries[tensor].bytes.max(1) as f64
    }

    fn recovery_seconds(&self, tensor: usize) -> f64 {
        let ancestors = self.sum_evicted(tensor, |entry| entry.parents.as_slice());
        let descendants = self.sum_evicted(tensor, |entry| entry.children.as_slice());
        self.seconds(tensor) + ancestors + descendants
    }

    /// The tensors at which rates of loss have looked since the last call: the steps of a rule.
    pub(super) fn take_steps(&self) -> u64 {
        self.steps.take()
    }

    /// The seconds of the evicted tensors that are reached through evicted ones.
    fn sum_evicted(&self, tensor: usize, neighbours: fn(&TensorEntry) -> &[usize]) -> f64 {
        let mut is_seen = vec![false; self.entries.len()];
        let mut open = vec![tensor];
        let mut sum = 0.0;
        while let Some(current) = open.pop() {
            let near = neighbours(&self.entries[current]);
            self.steps.set(self.steps.get() + 1 + near.len() as u64);
            for &next in near {
                if self.entries[next].residence == Residence::Evicted && !is_seen[next] {
                    is_seen[next] = true;
                    sum += self.seconds(next);
                    open.push(next);
                }
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 -> 1 -> 2 -> 3 -> 4 and 1 -> 5, of 1, 2, 4, 8, 16 seconds; 0 is an input.
    fn branching_table() -> TensorTable {
        let mut table = TensorTable::default();
        table.add_tensor(1, None, &[]);
        for (seconds, parent) in [(1.0, 0), (2.0, 1), (4.0, 2), (8.0, 3), (16.0, 1)] {
            table.add_tensor(2, Some(seconds), &[parent]);
        }
        (0..table.len()).for_each(|tensor| table.mark_resident(tensor));
        table
    }

    #[test]
    fn evicted_relatives_raise_the_cost_of_a_loss() {
        let mut table = branching_table();
        table.advance_clock(2.0);
        assert_eq!(table.loss_rate(3), 2.0);
        assert_eq!(table.loss_rate_per_byte(3), 1.0);
        table.evict(2);
        table.evict(4);
        // 2 before it and 8 after it.
        assert_eq!(table.loss_rate(3), (4.0 + 2.0 + 8.0) / 2.0);
        table.evict(1);
        assert_eq!(table.loss_rate(3), (4.0 + 2.0 + 1.0 + 8.0) / 2.0);
        // The sibling is below an evicted parent, and not above or below the tensor.
        table.evict(5);
        assert_eq!(table.loss_rate(3), (4.0 + 2.0 + 1.0 + 8.0) / 2.0);
    }

    #[test]
    fn tensor_in_use_is_never_cheap() {
        let mut table = branching_table();
        table.advance_clock(1.0);
        table.touch(2);
        assert_eq!(table.loss_rate(2), f64::INFINITY);
        table.pin(3);
        table.pin(3);
        table.unpin(3);
        assert_eq!(table.evictable_tensors().collect::<Vec<_>>(), [1, 2, 4, 5]);
    }

    #[test]
    fn median_density_leaves_out_inputs() {
        // 0.5, 1, 2, 4 and 8 seconds per byte.
        assert_eq!(branching_table().median_cost_density(), 2.0);
        assert_eq!(TensorTable::default().median_cost_density(), 0.0);
    }
}
