//! Local search: from plan to plan by small changes of the order in which first fit places the buffers.
//!
//! | planner | a step |
//! |---|---|
//! | [`HillClimbTvm`] | swaps two buffers below one at the top; 500 times |
//! | [`HillClimbVela`] | swaps two buffers of those that hold the top up |
//! | [`Annealing`] | a change below what sticks out above the ceiling, accepted by its heat |
//! | [`Tabu`] | the best of ten such changes; what was moved rests |
//!
//! They share a decoder that after a change places only those buffers again that it may touch. All but
//! the first go on until the run ends: give them a limit. The first plan is there at once, the best of the
//! greedy orders (with the hill climbs: the order of the original).
//!
//! A search is also a value that goes on from where it stood, for planners made of several.

mod annealing;
mod decoder;
mod hill_climb_tvm;
mod hill_climb_vela;
mod model;
mod moves;
mod neighbours;
mod start;
mod tabu;
mod walk;

pub use annealing::Annealing;
pub use hill_climb_tvm::HillClimbTvm;
pub use hill_climb_vela::HillClimbVela;
pub use tabu::Tabu;

use planlab_dsa::Honours;

/// Past so many buffers a change takes long, and a time limit is better spent on a greedy order.
const PRACTICAL: u32 = 20_000;
/// Draws without any change to make before a search takes it that there is none.
const IDLE: u32 = 1_000;

/// What every planner here takes into account.
const HONOURS: Honours = Honours {
    in_place: false,
    pins: true,
    pauses: true,
    alignment: true,
    arenas: false,
    apart: true,
    hint: false,
    work_limit: true,
    threads: false,
};
