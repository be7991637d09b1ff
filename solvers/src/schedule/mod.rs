//! Schedulers: choose which feature maps stay, are swapped or are recomputed, and when each copy runs.
//!
//! [`schedulers`] holds one of each; [`find_scheduler`] finds one by its key;
//! [`execute_scheduler`](planlab_graph::execute_scheduler) runs it.
//!
//! ```
//! use planlab_dsa::Bytes;
//! use planlab_graph::{
//!     FeatureMap, Function, FunctionKind, Machine, MapId, TrainingNet, ScheduleBudget, SchedulingProblem, Work, execute_scheduler,
//! };
//! use planlab_solvers::schedule::find_scheduler;
//!
//! let work = Work { flops: 1e9, bytes: 1e8, launches: 1 };
//! let mut maps = vec![FeatureMap { name: "image".into(), bytes: Bytes::new(1_000_000) }];
//! let mut functions = Vec::new();
//! for turn in 1..20 {
//!     let [input, output] = [turn - 1, turn].map(MapId::from_index);
//!     maps.push(FeatureMap { name: format!("map {turn}"), bytes: Bytes::new(1_000_000) });
//!     functions.push(Function {
//!         name: format!("convolution {turn}"), kind: FunctionKind::Convolution, inputs: vec![input], output,
//!         needs: vec![input], forward: work, backward: work,
//!     });
//! }
//! let net = TrainingNet::new("chain", 8, 1000, maps, functions)?;
//! let machine = Machine::built_in("x86-pcie3").ok_or("no such machine")?;
//! // The machine reserves 8 MB; 12 MB are left for maps of 20 MB, and for what the functions need meanwhile.
//! let problem = SchedulingProblem::new(net, machine).with_capacity(Bytes::new(20_012_000));
//! let pooch = find_scheduler("pooch/retain").ok_or("no such scheduler")?;
//! let outcome = execute_scheduler(&pooch, &problem, ScheduleBudget::default(), 0);
//! let best = outcome.best.as_ref().ok_or("does not fit")?;
//! assert!(best.live_peak() <= problem.capacity);
//! assert!(outcome.best_gap().is_some_and(|gap| gap < 0.5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | key | keeps | swaps | recomputes |
//! |---|---|---|---|
//! | `in-core` | all | | |
//! | `swap-all/unscheduled` | | all, copied in one step ahead | |
//! | `swap-all` | | all, copied in as early as there is room | |
//! | `swap-opt` | what fits, from the output | the rest | |
//! | `superneurons` | the longest end of the net that fits | convolutions' outputs before it | the rest |
//! | `pooch/{discard,retain}` | as `swap-opt` | what costs less to swap | what costs less to recompute |
//! | `pooch/discard/for-power9` | as `pooch/discard` would over NVLink 2 | the same | the same |
//! | `checkpoints/{chen,memonger,patent}` | the ends of blocks | | the rest, once |
//! | `checkpoints/patent/scored` | those that live long, are expensive to compute and small | | the rest, once |
//! | `checkpoints/patent/swap` | the ends of blocks whose copies would be waited for | the other ends | the rest, once |
//! | `capuchin` | what fits | what it hides, then what costs less to swap | what costs less to recompute |
//! | `dtr` | what is expensive, small or new when memory is short | | the rest, on demand |
//! | `coop` | the same by windows of addresses, with offsets that fit | | the rest, on demand |
//! | `pytorch/{greedy,dp,ilp}` | what a knapsack chooses by its bytes | | the rest |
//! | `pytorch/sac-ilp` | all but what a program over modules discards | | the rest |
//! | `revolve` | binomial checkpoints of a chain, as many as fit | | the rest, once or more |
//! | `rotor` | checkpoints and saved segments of a chain, the fastest by a table | | the rest, once or more |
//! | `pofo` | as `rotor` | checkpoints and saved segments whose copies hide, by a table | the rest, once or more |
//! | `local-search` | what a search by simulation finds to be fastest, with offsets that fit | | |
//! | `exact` | what a search of all schedules proves to be fastest, or the best quick schedule; small nets | | |
//! | `moccasin` | what a constraint solver chooses, without swaps (feature `cp`) | | the rest, once for each map |
//! | `checkmate` | what a mixed-integer program keeps between passes | | the rest |
//! | `checkmate/rounding` | what the rounded relaxation of that program keeps | | the rest |
//! | `offmate` | what such a program with copies keeps | what it copies beside the passes | the rest |
//! | `joint` | what a search by simulation finds to be fastest after each single use of every map | | |

mod bound;
mod capuchin;
mod chains;
#[cfg(feature = "mip")]
mod checkmate;
pub mod checkpoints;
mod classes;
mod exact;
mod fates;
mod in_core;
mod joint;
pub mod knapsack;
mod local_search;
#[cfg(feature = "mip")]
mod milp_solver;
#[cfg(feature = "cp")]
mod moccasin;
#[cfg(feature = "mip")]
mod offmate;
pub mod online;
mod packing;
mod pooch;
mod pooch_elsewhere;
mod program;
mod quick;
mod registry;
mod solver_time;
#[cfg(feature = "mip")]
mod stages;
mod starts;
mod suggested_capacity;
mod superneurons;
mod swap_all;
mod swap_opt;
#[cfg(test)]
mod testing;
mod work;

pub use bound::lp_bound;
pub use capuchin::Capuchin;
pub use chains::{Pofo, Revolve, Rotor};
#[cfg(feature = "mip")]
pub use checkmate::Checkmate;
pub use classes::{Class, Classes, Counts, Lab, Policy, Trial};
pub use exact::Exact;
pub use in_core::InCore;
pub use joint::Joint;
pub use local_search::LocalSearch;
#[cfg(feature = "cp")]
pub use moccasin::Moccasin;
#[cfg(feature = "mip")]
pub use offmate::OffMate;
pub use online::{Coop, Dtr};
pub use pooch::Pooch;
pub use pooch_elsewhere::PoochElsewhere;
pub use program::{DoesNotFit, Part, Prefetch};
pub use registry::{find_scheduler, scheduler_keys, schedulers};
pub use suggested_capacity::{SuggestedCapacity, suggest_capacity};
pub use superneurons::SuperNeurons;
pub use swap_all::SwapAll;
pub use swap_opt::SwapOpt;
