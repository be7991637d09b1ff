//! Orders of a graph's operations: which are legal, and the placement problems that follow from them.
//!
//! | file | what |
//! |---|---|
//! | `error` | what is wrong with an order |
//! | `dependencies`, `ancestors` | what has to run before what, directly or in every legal order |
//! | `storage` | the memory of a tensor and its aliases |
//! | `liveness` | the live ranges of an order |
//! | `parallel` | a placement problem whose plans are safe in every legal order |
//! | `rehearsal` | runs a plan in random legal orders |

mod ancestors;
mod dependencies;
mod error;
mod liveness;
mod parallel;
mod rehearsal;
mod storage;

pub use ancestors::Ancestors;
pub use dependencies::Dependencies;
pub use error::{OrderError, TooManyOperations};
pub use liveness::{Lowered, lower_graph, placement_problem};
pub use parallel::{Safety, lower_for_all_orders};
pub use rehearsal::{Clash, Rehearsal};
pub use storage::Storage;
