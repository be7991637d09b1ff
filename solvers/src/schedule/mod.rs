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
//! | `local-search` | what a search by simulation finds to be fastest, with offsets that fit | | |

mod bound;
pub mod checkpoints;
mod classes;
mod in_core;
mod local_search;
mod pooch;
mod pooch_elsewhere;
mod quick;
mod registry;
mod superneurons;
mod swap_all;
mod swap_opt;
#[cfg(test)]
mod testing;

pub use bound::lp_bound;
pub use classes::{Class, Classes, Counts, DoesNotFit, Lab, Part, Policy, Prefetch, Trial};
pub use in_core::InCore;
pub use local_search::LocalSearch;
pub use pooch::Pooch;
pub use pooch_elsewhere::PoochElsewhere;
pub use registry::{find_scheduler, scheduler_keys, schedulers};
pub use superneurons::SuperNeurons;
pub use swap_all::SwapAll;
pub use swap_opt::SwapOpt;
