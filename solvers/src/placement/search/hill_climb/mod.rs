//! Hill climbs of two compilers: swaps in the order of first fit.

pub(crate) mod tvm;
pub(crate) mod vela;

pub use tvm::HillClimbTvm;
pub use vela::HillClimbVela;
