//! GPT-2 in its four sizes.
//!
//! # References
//!
//! 1. A. Radford et al., *Language Models are Unsupervised Multitask Learners*, 2019.
//! 2. Hugging Face transformers, `GPT2LMHeadModel`, which has these numbers of parameters; the head shares the token
//!    embeddings.

use super::attention::{Heads, attention};
use crate::models::net::{Function, Net, NetValue};
use crate::models::nets::blocks::{embed, loss_of_each};
use crate::models::nets::model::{Input, Model, Published, Sizes};

const VOCABULARY: u64 = 50_257;
const POSITIONS: u64 = 1024;

macro_rules! model {
    ($name:literal, $summary:literal, $layers:literal, $heads:literal, $parameters:literal) => {
        Model {
            name: $name,
            summary: $summary,
            input: Input::Tokens { sequence: Some(POSITIONS), limit: Some(POSITIONS) },
            published: Published::new(Some($parameters), None, "Hugging Face transformers"),
            build: |n, sizes| gpt2(n, sizes, $layers, $heads),
        }
    };
}

pub(crate) static MODELS: [Model; 4] = [
    model!("gpt2-small", "GPT-2 small, 12 layers", 12, 12, 124_439_808),
    model!("gpt2-medium", "GPT-2 medium, 24 layers", 24, 16, 354_823_168),
    model!("gpt2-large", "GPT-2 large, 36 layers", 36, 20, 774_030_080),
    model!("gpt2-xl", "GPT-2 XL, 48 layers", 48, 25, 1_557_611_200),
];

/// A layer that normalises what it reads.
pub(super) fn layer(n: &Net, x: NetValue, heads: u64, has_dropout: bool) -> NetValue {
    let dropout = |h: NetValue| if has_dropout { n.dropout(h) } else { h };
    let (batch, tokens, width) = (x.shape()[0], x.shape()[1], x.width());
    let joined = n.dense_bias(n.layer_norm(x.clone()), 3 * width);
    let part = |index: u64| n.slice(joined.clone(), vec![0, 0, index * width], vec![batch, tokens, width]);
    let context = attention(n, [0, 1, 2].map(part), Heads { queries: heads, keys: heads }, has_dropout);
    let h = n.add(dropout(n.dense_bias(context, width)), x);
    let hidden = n.each(Function::Gelu, n.dense_bias(n.layer_norm(h.clone()), 4 * width));
    n.add(dropout(n.dense_bias(hidden, width)), h)
}

fn gpt2(n: &Net, sizes: Sizes, layers: usize, heads: u64) -> NetValue {
    let width = 64 * heads;
    let shape = vec![sizes.batch, sizes.sequence.unwrap_or(1)];
    let table = n.new_parameter(vec![VOCABULARY, width]);
    let tokens = n.embedding(&n.new_input(shape.clone()), table, width);
    let positions = embed(n, shape.clone(), POSITIONS, width);
    let mut h = n.dropout(n.add(tokens, positions));
    for _ in 0..layers {
        h = layer(n, h, heads, true);
    }
    let scores = n.project(n.layer_norm(h), VOCABULARY, [table]);
    loss_of_each(n, scores, shape)
}
