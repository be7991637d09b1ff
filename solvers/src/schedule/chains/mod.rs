//! Checkpointing of chains: which segments of a net are computed again, and how often.
//!
//! A net is cut into a [`Chain`](chain::Chain) of segments. A [`Step`](sequence::Step) runs a segment forward or backward;
//! a forward run keeps all that the backward pass reads, only the segment's input, or nothing. A
//! [`ChainPlan`](sequence::ChainPlan) is a sequence of such steps, which becomes the [fates](super::fates) of maps.
//!
//! | file | decides |
//! |---|---|
//! | `revolve` | the checkpoints of a chain whose steps are all alike |
//! | `persistent`, `rotor` | the checkpoints of any chain, by dynamic programming over segments and memory |
//! | `offloading`, `pofo` | in addition, what goes to the host in the forward sweep |

mod chain;
mod offers;
mod offloading;
mod persistent;
mod pofo;
mod revolve;
mod rotor;
mod sequence;
#[cfg(test)]
mod testing;

pub use pofo::Pofo;
pub use revolve::Revolve;
pub use rotor::Rotor;
