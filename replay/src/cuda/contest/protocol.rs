//! How often contenders play, in which order, and for how long.

use std::time::Duration;

use planlab_dsa::performance::Work;
use serde::{Deserialize, Serialize};

/// How often contenders play, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protocol {
    /// What is done with the memory.
    pub work: Work,
    /// The least number of propagations before the timed ones; 0: no warm-up.
    pub warm_up: u32,
    /// The most of these propagations.
    pub warm_up_most: u32,
    /// How often in a row the reserved bytes must be the same.
    pub steady: u32,
    /// The most timed propagations (samples, without kernels) in each round.
    pub timed: u32,
    /// The time of each phase of a turn (warm-up, timed propagations, timed calls); a longer phase ends early, but
    /// after at least 3 propagations.
    pub budget: Duration,
    /// Turns of each contender.
    pub rounds: u32,
    /// The seed of the random orders.
    pub seed: u64,
}
