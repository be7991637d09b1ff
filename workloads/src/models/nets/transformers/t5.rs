//! T5-small: an encoder and a decoder with relative positions. Source and target have the same length.
//!
//! # References
//!
//! 1. C. Raffel et al., *Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer*, JMLR 21,
//!    2020, arXiv:1910.10683.
//! 2. Hugging Face transformers, `T5ForConditionalGeneration`: 60,506,624 parameters; encoder, decoder and head share
//!    the token embeddings.
//!
//! # Deviations from the paper
//!
//! The softmax adds the bias of the relative positions from its table; transformers keeps it as a tensor of the size of
//! one sequence's scores.

use super::attention::{Heads, attention, biased_attention};
use crate::models::net::{Net, NetValue, Parameter};
use crate::models::nets::blocks::loss_of_each;
use crate::models::nets::model::{Input, Model, Published, Sizes};

pub(crate) static MODELS: [Model; 1] = [Model {
    name: "t5-small",
    summary: "T5 small: encoder and decoder of 6 layers each",
    input: Input::Tokens { sequence: Some(512), limit: None },
    published: Published::new(Some(60_506_624), None, "Hugging Face transformers"),
    build: t5,
}];

const VOCABULARY: u64 = 32_128;
const WIDTH: u64 = 512;
const HEADS: Heads = Heads { queries: 8, keys: 8 };
const LAYERS: usize = 6;
/// The number of buckets that distances between tokens are sorted into.
const BUCKETS: u64 = 32;

fn attend(n: &Net, x: NetValue, bias: Parameter) -> NetValue {
    let h = n.rms_norm(x.clone());
    let qkv = [(); 3].map(|()| n.dense(h.clone(), WIDTH));
    let context = biased_attention(n, qkv, HEADS, true, Some(bias));
    n.add(n.dropout(n.dense(context, WIDTH)), x)
}

fn attend_to(n: &Net, x: NetValue, source: &NetValue) -> NetValue {
    let q = n.dense(n.rms_norm(x.clone()), WIDTH);
    let [k, v] = [(); 2].map(|()| n.dense(source.clone(), WIDTH));
    let context = attention(n, [q, k, v], HEADS, true);
    n.add(n.dropout(n.dense(context, WIDTH)), x)
}

fn feed_forward(n: &Net, x: NetValue) -> NetValue {
    let hidden = n.relu(n.dense(n.rms_norm(x.clone()), 4 * WIDTH));
    n.add(n.dropout(n.dense(n.dropout(hidden), WIDTH)), x)
}

/// One half of the net: the decoder if there is a source to attend to.
fn stack(n: &Net, shape: &[u64], table: Parameter, source: Option<&NetValue>) -> NetValue {
    let bias = n.new_parameter(vec![BUCKETS, HEADS.queries]);
    let mut h = n.dropout(n.embedding(&n.new_input(shape.to_vec()), table, WIDTH));
    for _ in 0..LAYERS {
        h = attend(n, h, bias);
        if let Some(source) = source {
            h = attend_to(n, h, source);
        }
        h = feed_forward(n, h);
    }
    n.dropout(n.rms_norm(h))
}

fn t5(n: &Net, sizes: Sizes) -> NetValue {
    let shape = vec![sizes.batch, sizes.sequence.unwrap_or(1)];
    let table = n.new_parameter(vec![VOCABULARY, WIDTH]);
    let source = stack(n, &shape, table, None);
    let h = stack(n, &shape, table, Some(&source));
    drop(source);
    let scores = n.project(n.scale(h), VOCABULARY, [table]);
    loss_of_each(n, scores, shape)
}
