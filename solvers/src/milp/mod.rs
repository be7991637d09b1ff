//! Mixed-integer programs: the big-M model of placement, given to CBC and to HiGHS.
//!
//! For the height u, an offset x of each buffer, and for every two buffers i and j that are live at one
//! step a binary z that says which lies above the other:
//!
//! ```text
//! minimise u
//! x_i + w_i <= u                           every buffer lies in the arena
//! x_i + w_i <= x_j + W z_ij                z = 0: i lies below j
//! x_j + w_j <= x_i + W (1 - z_ij)          z = 1: j lies below i
//! 0 <= u <= W, 0 <= x
//! ```
//!
//! W is the height of the best plan that the greedy planners find. The module `formulation` makes the
//! model stronger, each way a switch of [`Strengthening`].
//!
//! # From floating point to a proof
//!
//! - A plan: only the order of the solver's offsets is kept. The buffers are placed one by one in that
//!   order, each at its lowest free offset, which is never above the solver's; where pauses leave windows
//!   in use, the rounded offsets are tried as well. The verifier has the last word.
//! - A bound: heights are whole multiples of the model's unit, so that the solver's dual bound may be
//!   rounded up to the next one, less a tolerance that grows with W (see `bound`). A solver that was
//!   stopped gives its dual bound alone, never the height of what it had found.
//!
//! # References
//!
//! 1. T. Sekiyama, T. Imamichi, H. Imai and R. Raymond, *Profile-guided memory optimization for deep
//!    neural networks*, 2018, arXiv:1804.10001, section 3 (the model).
//! 2. J. Forrest and R. Lougee-Heimer, *CBC user guide*, 2005, doi:10.1287/educ.1053.0020.
//! 3. Q. Huangfu and J. A. J. Hall, *Parallelizing the dual revised simplex method*, Mathematical
//!    Programming Computation 10, 2018, doi:10.1007/s12532-017-0130-5 (HiGHS).
//!
//! # Complexity
//!
//! Exponential; the model has a binary for every two buffers with overlapping live ranges. About 20
//! buffers are proved in seconds where the optimum lies above the load, 40 rarely.

mod bound;
mod cbc;
mod formulation;
mod highs;
mod rows;
mod search;
mod strengthening;

pub use cbc::MipCbc;
pub use highs::MipHighs;
pub use strengthening::Strengthening;
