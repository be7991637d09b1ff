//! Computation graphs: tensors and operations that keep all rules.
//!
//! | file | what |
//! |---|---|
//! | `parts` | ids, tensors and operations |
//! | `error` | the rules that they can break |
//! | `spans`, `layout`, `writers` | where each tensor lies, and who writes each byte |
//! | `graph` | a valid graph |
//! | `neighbours`, `pairs` | which operations depend on which |
//! | `builder` | collects the parts, checks the rules and sorts the operations |

mod builder;
mod error;
mod graph;
mod layout;
mod neighbours;
mod pairs;
mod parts;
mod spans;
mod writers;

pub use builder::GraphBuilder;
pub use error::GraphError;
pub use graph::Graph;
pub use layout::Place;
pub(crate) use neighbours::Neighbours;
pub(crate) use pairs::data_pairs;
pub(crate) use parts::id;
pub use parts::{Alias, OpId, Operation, Tensor, TensorId};
