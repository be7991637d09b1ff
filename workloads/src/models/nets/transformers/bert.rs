//! BERT base and BERT large with the head for masked language modelling.
//!
//! # References
//!
//! 1. J. Devlin, M.-W. Chang, K. Lee, K. Toutanova, *BERT: Pre-training of Deep Bidirectional Transformers for Language
//!    Understanding*, NAACL 2019, doi:10.18653/v1/N19-1423: "110M" and "340M" parameters with the pooler.
//! 2. Hugging Face transformers, `BertForMaskedLM`: 109,514,298 and 335,174,458 parameters; the head shares the
//!    token embeddings, and there is no pooler.
//!
//! Every token is predicted. Position and segment embeddings are looked up for each sequence.

use super::attention::{Heads, attention};
use crate::models::net::{Function, Net, NetValue};
use crate::models::nets::blocks::{embed, loss_of_each};
use crate::models::nets::model::{Input, Model, Published, Sizes};

const INPUT: Input = Input::Tokens { sequence: Some(512), limit: Some(512) };
const VOCABULARY: u64 = 30_522;

pub(crate) static MODELS: [Model; 2] = [
    Model {
        name: "bert-base",
        summary: "BERT base for masked language modelling",
        input: INPUT,
        published: Published::new(Some(109_514_298), None, "Hugging Face transformers"),
        build: |n, sizes| bert(n, sizes, 12, 12),
    },
    Model {
        name: "bert-large",
        summary: "BERT large for masked language modelling",
        input: INPUT,
        published: Published::new(Some(335_174_458), None, "Hugging Face transformers"),
        build: |n, sizes| bert(n, sizes, 24, 16),
    },
];

fn layer(n: &Net, x: NetValue, heads: u64) -> NetValue {
    let width = x.width();
    let parts = [(); 3].map(|()| n.dense_bias(x.clone(), width));
    let context = attention(n, parts, Heads { queries: heads, keys: heads }, true);
    let h = n.layer_norm(n.add(n.dropout(n.dense_bias(context, width)), x));
    let hidden = n.each(Function::Gelu, n.dense_bias(h.clone(), 4 * width));
    n.layer_norm(n.add(n.dropout(n.dense_bias(hidden, width)), h))
}

fn bert(n: &Net, sizes: Sizes, layers: usize, heads: u64) -> NetValue {
    let width = 64 * heads;
    let shape = vec![sizes.batch, sizes.sequence.unwrap_or(1)];
    let table = n.new_parameter(vec![VOCABULARY, width]);
    let mut h = n.embedding(&n.new_input(shape.clone()), table, width);
    for rows in [512, 2] {
        h = n.add(h, embed(n, shape.clone(), rows, width));
    }
    h = n.dropout(n.layer_norm(h));
    for _ in 0..layers {
        h = layer(n, h, heads);
    }
    h = n.layer_norm(n.each(Function::Gelu, n.dense_bias(h, width)));
    let scores = n.project(h, VOCABULARY, [table, n.new_parameter(vec![VOCABULARY])]);
    loss_of_each(n, scores, shape)
}
