//! Schedulers: which feature maps stay, are swapped or are recomputed, and when each copy runs.
//!
//! [`schedulers`] holds one of each; [`scheduler`] finds one by its key;
//! [`execute_scheduler`](planlab_graph::execute_scheduler) runs it.
//!
//! | key | keeps | swaps | recomputes |
//! |---|---|---|---|
//! | `in-core` | all | | |
//! | `swap-all/unscheduled` | | all, copied in one step ahead | |
//! | `swap-all` | | all, copied in as early as there is room | |
//! | `swap-opt` | what fits, from the output | the rest | |
//! | `superneurons` | the longest end of the net that fits | convolutions' outputs before it | the rest |
//! | `pooch/{discard,retain}` | as `swap-opt` | what costs less to swap | what costs less to recompute |

mod bound;
mod class;
mod in_core;
mod lab;
mod pooch;
mod program;
mod registry;
mod residency;
mod superneurons;
mod swap_all;
mod swap_opt;

pub use bound::lp_bound;
pub use class::{Class, Classes, Counts, Policy};
pub use in_core::InCore;
pub use lab::{Lab, Trial};
pub use pooch::Pooch;
pub use registry::{scheduler, scheduler_keys, schedulers};
pub use residency::{DoesNotFit, Part, Prefetch};
pub use superneurons::SuperNeurons;
pub use swap_all::SwapAll;
pub use swap_opt::SwapOpt;
