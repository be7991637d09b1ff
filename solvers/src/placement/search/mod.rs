//! Local search: from plan to plan by small changes of the order in which first fit places the buffers.
//!
//! | planner | a step |
//! |---|---|
//! | [`HillClimbTvm`] | swaps two buffers below one at the top; 500 times |
//! | [`HillClimbVela`] | swaps two buffers of those that hold the top up |
//! | [`Annealing`] | a change below what sticks out above the ceiling, accepted by its heat |
//! | [`Tabu`] | makes the best of ten such changes; a moved buffer then rests |
//! | [`Lns`] | frees a few buffers and places them by an exact search |
//! | [`BlockBuilding`] | takes blocks of buffers apart, and joins them to others |
//!
//! All but the last two share a decoder that after a change places only those buffers again that the change may affect. All
//! but the first run until they are stopped: give them a limit. A first plan exists at once: the best of the greedy
//! orders (for the hill climbs: the order of the original).
//!
//! A search is also a value that can be resumed (`decoding::Search`), for planners made of several: each works on a fork of
//! one run, they share a model, learn each other's heights, and stay repeatable as long as they take turns on one
//! thread. None of them hands a buffer over; the search in `orders.rs` does, and is a part of [`Exact`](super::exact::Exact).

pub(crate) mod annealing;
pub(crate) mod block_building;
pub(crate) mod decoding;
pub(crate) mod hill_climb;
pub(crate) mod lns;
pub(crate) mod orders;
pub(crate) mod start;
pub(crate) mod tabu;
mod window;

#[cfg(test)]
mod tests;

pub use annealing::Annealing;
pub use block_building::BlockBuilding;
pub(crate) use block_building::BlockSearch;
#[doc(hidden)]
pub use decoding::DecoderProbe;
pub(crate) use decoding::Search;
pub use hill_climb::{HillClimbTvm, HillClimbVela};
pub use lns::Lns;
pub(crate) use lns::LnsTurns;
pub(crate) use orders::OrderSearch;
pub(crate) use start::{from_incumbent, in_order};
pub use tabu::Tabu;

use planlab_dsa::{Descriptor, Honours};

/// Above this number of buffers a change takes long, and a time limit is better spent on a greedy order.
const PRACTICAL: u32 = 20_000;
/// Draws in a row without a possible change before a search gives up.
const IDLE: u32 = 1_000;

/// What every planner here supports.
const HONOURS: Honours = Honours { in_place: false, ..crate::placement::greedy::HONOURS };

/// Returns what the descriptors of the searches here have in common.
fn anytime_descriptor() -> Descriptor {
    Descriptor {
        honours: HONOURS,
        randomized: true,
        complexity: "anytime",
        practical: Some(PRACTICAL),
        ..Descriptor::default()
    }
}
