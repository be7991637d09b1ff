//! Schedulers that decide while the iteration runs, as a runtime does that knows nothing of what comes.
//!
//! | file | what |
//! |---|---|
//! | `tensors` | which tensors are on the device, and what it costs to lose one |
//! | `runtime` | computes tensors, and makes room for them by a rule |
//! | `player` | the passes of a net on a runtime, recorded as a schedule |
//! | `dtr`, `coop` | the rules, and their schedulers |

mod coop;
mod dtr;
mod player;
mod runtime;
mod tensors;

pub use coop::{AddressRoom, Coop};
pub use dtr::{ByteRoom, Dtr};
pub use runtime::{Device, Exhausted, Grant, Holder, Room, Runtime};
pub use tensors::TensorTable;
