//! Checkpoints: keeps a few tensors, and recomputes everything between two of them when the backward pass gets there.
//!
//! The searches cut the forward pass into blocks at candidates: a block ends at the first candidate at which it exceeds
//! a threshold, and that candidate is kept. The searches differ in the thresholds that they try, and take the cheapest
//! result:
//!
//! | file | thresholds |
//! |---|---|
//! | `chen` | 0, the root of checkpoints times the largest block, and a grid around it |
//! | `memonger` | three rounds of the same with half the product, in whole MiB, and a grid from the smallest block |
//! | `patent` | round by round from what the last plan gave, by one of four rules |
//!
//! On a [`TrainingNet`](planlab_graph::TrainingNet) ([`CheckpointNet`]) the cost is the memory of shared blocks, or that
//! of offsets. There the searches are schedulers, too: [`Checkpointing`]. Blocks end at [`Candidates`], and checkpoints
//! whose copies hide may be swapped.

mod candidates;
mod chen;
mod cut;
mod memonger;
mod net;
mod patent;
mod scheduler;
mod swapping;

pub use candidates::Candidates;
pub(super) use candidates::carrier_maps;
pub use chen::Chen;
pub use cut::{Cut, Item, Round, Thresholds, cut_items};
pub use memonger::Memonger;
pub use net::CheckpointNet;
pub use patent::{Patent, Update};
pub use scheduler::Checkpointing;
