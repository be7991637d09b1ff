//! Nets as instances and graphs: any batch, any input, inference and training.
//!
//! A key `model/<net>/<mode>/b<N>[/s<LENGTH>|/i<EXTENT>][/chainer][/ws<WORKSPACE>]` names one trace for good: the same
//! on every machine. [`Spec`] is a key's content; [`models`] lists the nets.
//!
//! ```
//! use planlab_workloads::models::Spec;
//!
//! let spec: Spec = "model/alexnet/infer/b1/chainer".parse()?;
//! assert_eq!(spec.trace()?.instance.load().bytes.get(), 10_169_344);
//! let spec: Spec = "model/resnet50/train/b32".parse()?;
//! assert_eq!(spec.graph()?.operations()[0].op, "convolution");
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

use planlab_graph::Graph;

use crate::formats::Trace;

pub use net::Mode;
pub use nets::{Input, Model, Published, find, models};
pub use spec::{Allocator, ModelError, Spec};
pub use workspace::Workspace;

/// Whether a key says that it names a model.
#[must_use]
pub fn is_model(key: &str) -> bool {
    key.starts_with("model/")
}

/// The trace of a key `model/...`.
///
/// # Errors
///
/// [`ModelError`], which says what is wrong with the key or why the net has no such instance.
pub fn load(key: &str) -> Result<Trace, ModelError> {
    match seq2seq::Key::parse(key) {
        Some(key) => Ok(key.trace()),
        None => key.parse::<Spec>()?.trace(),
    }
}

/// The graph of a key `model/...`.
///
/// # Errors
///
/// As [`load`]; the iterations of Chainer's seq2seq example have requests, but no graph.
pub fn graph(key: &str) -> Result<Graph, ModelError> {
    match seq2seq::Key::parse(key) {
        Some(_) => Err(ModelError::NoGraph { key: key.to_owned() }),
        None => key.parse::<Spec>()?.graph(),
    }
}

/// Keys that lists show: each net in inference with one input and in training, and iterations of Chainer's seq2seq
/// example.
#[must_use]
pub fn selection() -> Vec<String> {
    let iterations = [32, 64, 128, 256]
        .into_iter()
        .flat_map(|batch| (0..10).map(move |iteration| seq2seq::Key { batch, iteration }.to_string()));
    let nets = models().flat_map(|model| {
        [(Mode::Infer, 1), (Mode::Train, model.input.usual_batch())]
            .map(|(mode, batch)| Spec::new(model, mode, batch).to_string())
    });
    iterations.chain(nets).collect()
}

/// One line on the trace of a key; `None` where the key names none.
#[must_use]
pub fn describe(key: &str) -> Option<String> {
    if seq2seq::Key::parse(key).is_some() {
        return Some(
            "a training iteration of Chainer's seq2seq example, by rule; sentence lengths sampled".to_owned(),
        );
    }
    key.parse::<Spec>().ok().map(|spec| spec.describe())
}
