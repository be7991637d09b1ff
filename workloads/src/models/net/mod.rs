//! A net as data: the functions that it calls, the shapes of its values, and when each value is dropped.
//!
//! A net is a Rust function over [`Net`], which records every call, and the moment at which the last handle of a
//! [`NetValue`] is dropped: a framework with reference counts frees memory then. A [`Program`] is independent of
//! frameworks; [`chainer`](super::chainer) replays one with Chainer's allocations, [`ideal`](super::ideal) lowers one
//! to a graph of operations.
//!
//! ```text
//!  h = relu(conv(x))      Call conv -> 2   Call relu -> 3   Drop 2
//!  h = pool(h)            Call pool -> 4   Drop 3
//! ```
//!
//! A shape error (a window larger than its input, too many elements) does not stop the recording: ones replace the
//! extents, and [`Net::record_run`] returns the first error.

mod functions;
mod program;
mod recorder;
mod shape;
mod value;

pub use functions::{Convolution, Function, Window};
pub use program::{Call, End, Event, Mode, Parameter, Program, ValueId};
pub use recorder::Net;
pub use shape::{Shape, ShapeError, elements};
pub use value::NetValue;
