//! What a scheduler is asked: an iteration of a net, on a machine, in so much memory.

use planlab_dsa::Bytes;

use crate::schedule::machine::Machine;
use crate::schedule::times::Times;
use crate::schedule::training_net::TrainingNet;

/// A net to be trained for one iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulingProblem {
    /// The net.
    pub net: TrainingNet,
    /// The machine.
    pub machine: Machine,
    /// How long each pass of each function takes.
    pub times: Times,
    /// Memory, the [base](Machine::base) included.
    pub capacity: Bytes,
}

impl SchedulingProblem {
    /// A net with its roofline times, in the memory that the machine has.
    #[must_use]
    pub fn new(net: TrainingNet, machine: Machine) -> Self {
        let times = machine.times(&net);
        let capacity = machine.capacity;
        Self { net, machine, times, capacity }
    }

    /// The same with another capacity.
    #[must_use]
    pub const fn with_capacity(mut self, capacity: Bytes) -> Self {
        self.capacity = capacity;
        self
    }

    /// The same with measured times.
    #[must_use]
    pub fn with_times(mut self, times: Times) -> Self {
        self.times = times;
        self
    }

    /// Bytes that are taken throughout.
    #[must_use]
    pub fn base(&self) -> Bytes {
        self.machine.base(&self.net)
    }

    /// Images per second, of an iteration that takes so many seconds.
    #[must_use]
    pub fn images_per_second(&self, seconds: f64) -> f64 {
        if seconds > 0.0 { self.net.batch() as f64 / seconds } else { 0.0 }
    }
}
