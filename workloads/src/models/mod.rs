//! Nets as instances and graphs, for inference and training, with any batch size and input size.
//!
//! A key `model/<net>/<mode>/b<N>[/s<LENGTH>|/i<EXTENT>][/chainer][/ws<WORKSPACE>][/order<K>]` names one trace, the
//! same on every machine. [`Spec`] is the content of a key; [`models`] lists the nets.
//!
//! ```
//! use planlab_workloads::models::Spec;
//!
//! let spec: Spec = "model/alexnet/infer/b1/chainer".parse()?;
//! assert_eq!(spec.build_trace()?.instance.load().bytes.get(), 10_169_344);
//! let spec: Spec = "model/resnet50/train/b32".parse()?;
//! assert_eq!(spec.build_graph()?.operations()[0].op, "convolution");
//! # Ok::<(), planlab_workloads::models::ModelError>(())
//! ```

pub mod chainer;
mod feature_maps;
pub mod ideal;
pub mod net;
pub mod nets;
mod rules;
pub mod seq2seq;
mod spec;
mod tape;
mod workspace;

use crate::formats::Trace;

pub use net::Mode;
pub use nets::model::{Input, Model, Published};
pub use nets::models;
pub use spec::{Allocator, ModelError, Spec, find};
pub use workspace::Workspace;

/// The trace that a key `model/...` names.
///
/// # Errors
///
/// [`ModelError`] if the key is malformed, or the net has no such instance.
pub fn load_trace(key: &str) -> Result<Trace, ModelError> {
    match seq2seq::Key::parse_key(key) {
        Some(key) => Ok(key.iteration_trace()),
        None => key.parse::<Spec>()?.build_trace(),
    }
}

/// The keys that are listed: each net in inference with one input and in training, and iterations of Chainer's seq2seq
/// example.
#[must_use]
pub fn listed_keys() -> Vec<String> {
    let iterations = [32, 64, 128, 256]
        .into_iter()
        .flat_map(|batch| (0..10).map(move |iteration| seq2seq::Key { batch, iteration }.to_string()));
    let nets = models().flat_map(|model| {
        [(Mode::Infer, 1), (Mode::Train, model.input.usual_batch())]
            .map(|(mode, batch)| Spec::new(model, mode, batch).to_string())
    });
    iterations.chain(nets).collect()
}

/// A description of one line for the trace of a key; `None` if the key names no trace.
#[must_use]
pub fn describe_key(key: &str) -> Option<String> {
    if seq2seq::Key::parse_key(key).is_some() {
        return Some(
            "a training iteration of Chainer's seq2seq example, with sampled sentence lengths; requests by rule".to_owned(),
        );
    }
    key.parse::<Spec>().ok().map(|spec| spec.describe())
}
