//! The pools of frameworks.

mod cupy1;
mod cupy2;
mod cupy4;
mod mxnet_naive;
mod mxnet_rounded;
mod pytorch;
mod pytorch_expandable;
mod tensorflow_bfc;

pub use cupy1::Cupy1Pool;
pub use cupy2::Cupy2Pool;
pub use cupy4::Cupy4Pool;
pub use mxnet_naive::MxnetNaive;
pub use mxnet_rounded::MxnetRounded;
pub use pytorch::PytorchCaching;
pub use pytorch_expandable::PytorchExpandable;
pub use tensorflow_bfc::{TensorflowBfc, TensorflowBfcOneRegion};
