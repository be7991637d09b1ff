//! The input of a scheduler: an iteration of a net, on a machine, with limited memory.

use planlab_dsa::Bytes;

use super::machine::Machine;
use super::net::TrainingNet;
use super::times::Times;

/// A net to be trained for one iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulingProblem {
    /// The net.
    pub net: TrainingNet,
    /// The machine.
    pub machine: Machine,
    /// The time of each pass of each function.
    pub times: Times,
    /// Available memory, [base](Machine::base_bytes) included.
    pub capacity: Bytes,
}

impl SchedulingProblem {
    /// A net with its roofline times, in the machine's memory.
    #[must_use]
    pub fn new(net: TrainingNet, machine: Machine) -> Self {
        let times = machine.roofline_times(&net);
        let capacity = machine.capacity;
        Self { net, machine, times, capacity }
    }

    /// Sets the capacity. Default: the machine's memory.
    #[must_use]
    pub const fn with_capacity(mut self, capacity: Bytes) -> Self {
        self.capacity = capacity;
        self
    }

    /// Sets measured times. Default: roofline times.
    #[must_use]
    pub fn with_times(mut self, times: Times) -> Self {
        self.times = times;
        self
    }

    /// Bytes that are always taken.
    #[must_use]
    pub fn base(&self) -> Bytes {
        self.machine.base_bytes(&self.net)
    }

    /// Images per second if an iteration takes `seconds`.
    #[must_use]
    pub fn images_per_second(&self, seconds: f64) -> f64 {
        if seconds > 0.0 { self.net.batch() as f64 / seconds } else { 0.0 }
    }
}
