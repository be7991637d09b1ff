//! Building blocks of transformers.
//!
//! # References
//!
//! 1. A. Vaswani et al., *Attention is all you need*, NeurIPS 2017, arXiv:1706.03762.
//! 2. J. Ainslie et al., *GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints*, EMNLP
//!    2023: several query heads share a key and value head.

use crate::models::net::{Net, NetValue, Parameter};

/// The numbers of query heads, and of key and value heads.
#[derive(Clone, Copy)]
pub(crate) struct Heads {
    pub(crate) queries: u64,
    pub(crate) keys: u64,
}

/// The attention `[N, tokens, width]` of queries, keys and values; the scores are a separate value. Scaling and masking
/// are part of the softmax.
pub(crate) fn attention(n: &Net, qkv: [NetValue; 3], heads: Heads, has_dropout: bool) -> NetValue {
    biased_attention(n, qkv, heads, has_dropout, None)
}

/// Like [`attention`], with a bias for the scores that the softmax takes from a table.
pub(crate) fn biased_attention(
    n: &Net,
    [q, k, v]: [NetValue; 3],
    heads: Heads,
    has_dropout: bool,
    bias: Option<Parameter>,
) -> NetValue {
    let (batch, tokens, width) = (q.shape()[0], q.shape()[1], q.width());
    let head = width / heads.queries;
    let (rows, shared) = (heads.queries / heads.keys * tokens, [batch, heads.keys, k.shape()[1], head]);
    let q = n.reshape(q, vec![batch, heads.keys, rows, head]);
    let [k, v] = [k, v].map(|each| n.reshape(each, shared.to_vec()));
    let mut weights = n.softmax(n.matmul(q, k, true), bias);
    if has_dropout {
        weights = n.dropout(weights);
    }
    n.reshape(n.matmul(weights, v, false), vec![batch, tokens, width])
}
