//! Nets whose requests are generated from rules.
//!
//! A key `model/<net>/<mode>/b<N>/...` names one trace for good: the same on every machine.

pub mod chainer;
pub mod net;
pub mod nets;
pub mod seq2seq;

use crate::formats::Trace;

/// The trace of a key `model/...`; `None` where the key names none.
#[must_use]
pub fn load(key: &str) -> Option<Trace> {
    seq2seq::Key::parse(key).map(|key| key.trace())
}

/// Keys that lists show.
#[must_use]
pub fn selection() -> Vec<String> {
    let batches = [32, 64, 128, 256].into_iter();
    batches
        .flat_map(|batch| (0..10).map(move |iteration| seq2seq::Key { batch, iteration }.to_string()))
        .collect()
}

/// One line on the trace of a key; `None` where the key names none.
#[must_use]
pub fn describe(key: &str) -> Option<String> {
    seq2seq::Key::parse(key).map(|_| {
        "a training iteration of Chainer's seq2seq example, by rule; sentence lengths sampled".to_owned()
    })
}
