//! Checkmate: what to keep and what to recompute, as a mixed-integer program over stages.
//!
//! A node is a pass of the iteration or a sum of gradients; stage t ends with the first run of node t. Two binaries for
//! each stage t and each earlier node i say whether the result of i is there when the stage begins (S), and whether i
//! runs again in the stage (R):
//!
//! ```text
//! minimise the seconds of all R
//! R[t,t] = 1                              a stage ends with its own node
//! R[t,j] <= R[t,i] + S[t,i]               node j reads node i
//! S[t,i] <= R[t-1,i] + S[t-1,i]           what is there was there before, or ran
//! ```
//!
//! Further columns count the bytes in use after each node of each stage, and say which nodes free which of their inputs:
//! those that no later node of the stage reads and that are not there in the next stage. What the program retains becomes
//! a [fate](super::fates) after each use of each map, kept or dropped, and thereby a schedule.
//!
//! The *rounding* solves the relaxation, in nine tenths of the memory, instead. It retains what has at least a threshold
//! there, from 0.1 to 0.9, and runs what that takes. The fastest schedule of those that fit is the result.
//!
//! | file | what |
//! |---|---|
//! | `graph` | nodes, with seconds, bytes and inputs |
//! | `formulation` | the program |
//! | `plan` | what a solution retains, and the runs that this takes |
//! | `training` | the graph of a net in training, and the fates of a plan |
//! | `scheduler` | the schedulers |
//!
//! # References
//!
//! 1. P. Jain, A. Jain, A. Nrusimha, A. Gholami, P. Abbeel, K. Keutzer, I. Stoica, J. E. Gonzalez: Checkmate: Breaking
//!    the memory wall with optimal tensor rematerialization. MLSys 2020, arXiv:1910.02653.
//! 2. Q. Huangfu and J. A. J. Hall: Parallelizing the dual revised simplex method. Mathematical Programming Computation
//!    10, 2018. doi:10.1007/s12532-017-0130-5 (HiGHS).
//!
//! # Complexity
//!
//! O(n^2) binaries for n nodes, and as many for n edges; exponential. Chains of 40 nodes take about a second, nets of 46
//! to 48 nodes with shortcuts or growing maps up to a minute and more. The relaxation is solved in seconds for 120 nodes.
//!
//! # Deviations from the paper
//!
//! - Backward passes and sums run once, as schedules of our machine demand. Their results stay until their last readers.
//!   A sum is a node of its own, and so is each further gradient of a pass: its output lies beside its operands.
//! - A node runs again only in a stage that reads it, since a fate says no more. The paper may run it earlier.
//! - The formula of the paper also frees a node after its own run. This one does not: a node that nothing reads does not
//!   run in an optimum. It has no columns for what a stage's last node frees, either.
//! - The inputs of the net are always there. They count beside the budget.
//! - A plan is offered as a schedule, which is simulated. It needs no more memory than the program counts, up to the
//!   tolerance of the solver, a millionth.
//!
//! Our machine may swap and run backward passes in another order. So neither the optimum of the program nor its relaxation
//! bounds the time of every schedule, and neither is claimed.

mod formulation;
mod graph;
mod plan;
mod scheduler;
mod training;

pub use scheduler::Checkmate;
