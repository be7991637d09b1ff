//! Translation with two recurrent nets, operation by operation. As in Chainer's example, each has three LSTM layers of
//! 1024 units and a vocabulary of 40,000.
//!
//! Sentences are packed: a layer reads the tokens of all sentences. If no length is given, the lengths are those of
//! iteration 0 of `model/seq2seq/train/b<N>/iteration<K>`.
//!
//! # References
//!
//! 1. I. Sutskever, O. Vinyals, Q. Le, *Sequence to Sequence Learning with Neural Networks*, NIPS 2014.
//! 2. Chainer 3.0.0rc1, `examples/seq2seq/seq2seq.py`.

use super::blocks::{embed, loss_of_each};
use super::model::{Input, Model, Published, Sizes};
use crate::models::net::{Net, NetValue};
use crate::models::seq2seq::{LAYERS, UNITS, VOCABULARY, sampled_tokens};

pub(crate) static MODELS: [Model; 1] = [Model {
    name: "seq2seq",
    summary: "Translation with three LSTM layers in encoder and decoder, packed sentences",
    input: Input::Tokens { sequence: None, limit: None },
    published: Published::NOTHING,
    build: seq2seq,
}];

fn seq2seq(n: &Net, sizes: Sizes) -> NetValue {
    // More tokens than can be counted are refused where they are embedded.
    let (source, target) = match sizes.sequence {
        Some(length) => {
            let tokens = sizes.batch.saturating_mul(length);
            (tokens, tokens.saturating_add(sizes.batch))
        }
        None => sampled_tokens(sizes.batch),
    };
    let mut states = Vec::new();
    let mut h = embed(n, vec![source], VOCABULARY, UNITS);
    for _ in 0..LAYERS {
        h = n.lstm(h, None, sizes.batch, UNITS);
        states.push(n.lstm_state(h.clone(), sizes.batch));
    }
    let mut h = embed(n, vec![target], VOCABULARY, UNITS);
    for state in states {
        h = n.lstm(h, Some(state), sizes.batch, UNITS);
    }
    let shape = vec![h.shape()[0]];
    let scores = n.dense_bias(h, VOCABULARY);
    loss_of_each(n, scores, shape)
}
