//! Mixed-integer programs: the big-M model of placement, given to CBC and to HiGHS.
//!
//! For the height u, an offset x of each buffer, and for every two buffers i and j that are live at one step a binary z
//! for which of them lies above:
//!
//! ```text
//! minimise u
//! x_i + w_i <= u                           every buffer lies in the arena
//! x_i + w_i <= x_j + W z_ij                z = 0: i lies below j
//! x_j + w_j <= x_i + W (1 - z_ij)          z = 1: j lies below i
//! 0 <= u <= W, 0 <= x
//! ```
//!
//! W is the height of the best plan that the greedy planners find. Before the model, the instance is split: small
//! buffers that find a place in every plan of the others are set aside, parts that share no step get their own models.
//! Then the model is strengthened; each addition is a switch of [`Strengthening`].
//!
//! # From floating point to a proof
//!
//! - A plan: only the order of the solver's offsets is used. The buffers are placed one by one in that order, each at
//!   its lowest free offset, which is never above the solver's. If windows are in use during pauses, the rounded
//!   offsets are tried as well. The verifier decides.
//! - A bound: heights are multiples of the model's unit. So the solver's dual bound, minus a tolerance that grows with
//!   W (see `bound`), is rounded up to the next multiple. A stopped solver gives only its dual bound, never the height
//!   of its solution.
//! - Numbers: a model has at most 2^24 units. Larger sizes are divided and rounded down, which excludes no plan, so
//!   that bounds hold. (With W above a billion, HiGHS proved a bound for a net of 196 buffers that a verified plan
//!   refutes.)
//!
//! `linear` gives the linear programs of other rooms to HiGHS.
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
//! Exponential; the model has a binary for every two buffers with overlapping live ranges. If the optimum lies above
//! the load, about 20 buffers are proved in seconds, 40 rarely.
//!
//! # What the additions do
//!
//! The 24 instances of the corpus whose optimum lies above the load, 4 random ones of 20 buffers and 3 of 40, 3 s each,
//! on a busy machine. A second run differs by up to a factor of two, and for CBC by four instances. So only the first
//! three rows and the published model are significant:
//!
//! | | HiGHS: proved of 31 | all together | CBC: proved of 31 | all together |
//! |---|---|---|---|---|
//! | all | 31 | 2.3 s, 4.9 s | 30, 27 | 16.3 s, 21.8 s |
//! | without `stacks` | 27 | 18.9 s | 23 | 27.2 s |
//! | the published model | 22 | 31.4 s | 22 | 33.3 s |
//! | without `peel` | 31 | 2.4 s, 4.5 s | 31, 31 | 11.3 s, 14.6 s |
//! | without `split` | 31 | 4.6 s | 31, 27 | 9.2 s, 20.4 s |
//! | without `symmetry` | 31 | 6.1 s | 31 | 6.0 s |
//! | without `whole_height` | 31 | 3.6 s, 3.2 s | 29 | 13.2 s |
//!
//! `peel` and `split` change little here, since all buffers overlap; they are for nets (the page of the constraint
//! model has figures). Two ideas are left out: priorities in branching (neither solver's interface has them), and a
//! height held strictly below the best plan's (CBC's "infeasible" at its time limit would then look like a proof).

mod bound;
mod cbc;
mod formulation;
mod highs;
mod linear;
mod planner;
mod rows;
mod search;
mod strengthening;

pub(crate) use highs::SolverLimits;
pub(crate) use linear::{Column, LinearProgram, LinearSolution};
pub use planner::Mip;
pub(crate) use search::End;
pub use strengthening::Strengthening;
