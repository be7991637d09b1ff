//! Llama-style nets (RMS norm, rotary position embeddings, gated feed-forward layers), dense and with mixtures of
//! experts.
//!
//! ```text
//!  x -> router -> top-k -------------------------------.
//!   \-> dispatch -> rows of expert 1 -> expert 1 -> concat -> combine
//!                   rows of expert 2 -> expert 2 /
//! ```
//!
//! # References
//!
//! 1. H. Touvron et al., *LLaMA: Open and Efficient Foundation Language Models*, 2023, arXiv:2302.13971.
//! 2. P. Zhang et al., *TinyLlama: An Open-Source Small Language Model*, 2024, arXiv:2401.02385.
//! 3. A. Jiang et al., *Mixtral of Experts*, 2024, arXiv:2401.04088.
//! 4. N. Muennighoff et al., *OLMoE: Open Mixture-of-Experts Language Models*, 2024, arXiv:2409.02060.
//! 5. Hugging Face transformers, which has these numbers of parameters.
//!
//! # Deviations from the papers
//!
//! Experts are equally loaded: each gets the same number of rows, the first ones one more if rows are left over. An
//! expert without rows is not run, and its weights get no gradient. Weights and activations are 32-bit numbers.

use super::attention::{Heads, attention};
use crate::models::net::{Function, Net, NetValue};
use crate::models::nets::blocks::loss_of_each;
use crate::models::nets::model::{Input, Model, Published, Sizes};

macro_rules! model {
    ($name:literal, $summary:literal, $tokens:literal, $net:expr, $parameters:literal) => {
        Model {
            name: $name,
            summary: $summary,
            input: Input::Tokens { sequence: Some($tokens), limit: None },
            published: Published::new(Some($parameters), None, "Hugging Face transformers"),
            build: |n, sizes| llama(n, sizes, &$net),
        }
    };
}

pub(crate) static MODELS: [Model; 4] = [
    model!("llama-1b", "TinyLlama 1.1B", 2048, TINY, 1_100_048_384),
    model!("llama-7b", "Llama 7B", 2048, LLAMA_7B, 6_738_415_616),
    model!("mixtral-8x7b", "Mixtral 8x7B: 8 experts, 2 for each token", 2048, MIXTRAL, 46_702_792_704),
    model!("olmoe-1b-7b", "OLMoE 1B-7B: 64 small experts, 8 for each token", 2048, OLMOE, 6_919_161_856),
];

/// The number of experts, and how many each token is sent to.
#[derive(Clone, Copy)]
struct Experts {
    count: u64,
    chosen: u64,
}

struct Layout {
    vocabulary: u64,
    layers: usize,
    width: u64,
    heads: Heads,
    hidden: u64,
    experts: Option<Experts>,
    /// Whether queries and keys pass an RMS norm.
    has_norms: bool,
}

const LLAMA_7B: Layout = Layout::new(32_000, 32, [4096, 11_008], [32, 32]);
const TINY: Layout = Layout::new(32_000, 22, [2048, 5632], [32, 4]);
const MIXTRAL: Layout = Layout::new(32_000, 32, [4096, 14_336], [32, 8]).with_experts(8, 2);
const OLMOE: Layout =
    Layout { has_norms: true, ..Layout::new(50_304, 16, [2048, 1024], [16, 16]).with_experts(64, 8) };

impl Layout {
    const fn new(
        vocabulary: u64,
        layers: usize,
        [width, hidden]: [u64; 2],
        [queries, keys]: [u64; 2],
    ) -> Self {
        let heads = Heads { queries, keys };
        Self { vocabulary, layers, width, heads, hidden, experts: None, has_norms: false }
    }

    const fn with_experts(self, count: u64, chosen: u64) -> Self {
        Self { experts: Some(Experts { count, chosen }), ..self }
    }

    fn attend(&self, n: &Net, x: &NetValue) -> NetValue {
        let shared = self.width / self.heads.queries * self.heads.keys;
        let turned = |width: u64| {
            let h = n.dense(x.clone(), width);
            n.each(Function::Rotary, if self.has_norms { n.rms_norm(h) } else { h })
        };
        let (q, k) = (turned(self.width), turned(shared));
        let v = n.dense(x.clone(), shared);
        n.dense(attention(n, [q, k, v], self.heads, false), self.width)
    }

    fn feed_forward(&self, n: &Net, x: NetValue) -> NetValue {
        let gate = n.each(Function::Silu, n.dense(x.clone(), self.hidden));
        let up = n.dense(x, self.hidden);
        n.dense(n.multiply(gate, up), self.width)
    }

    fn mixture(&self, n: &Net, x: NetValue, experts: Experts) -> NetValue {
        let shape = x.shape().to_vec();
        let x = n.reshape(x, vec![shape[0] * shape[1], self.width]);
        let shares = n.each(Function::Softmax, n.dense(x.clone(), experts.count));
        let routes = n.top_k(shares, experts.chosen);
        let rows = n.dispatch(x, &routes);
        let (each, more) = (rows.shape()[0] / experts.count, rows.shape()[0] % experts.count);
        let mut start = 0;
        let mut made = Vec::new();
        for expert in 0..experts.count {
            let count = each + u64::from(expert < more);
            if count == 0 {
                for matrix in
                    [[self.hidden, self.width], [self.hidden, self.width], [self.width, self.hidden]]
                {
                    n.new_parameter(matrix.to_vec());
                }
            } else {
                let own = n.slice(rows.clone(), vec![start, 0], vec![count, self.width]);
                made.push(self.feed_forward(n, own));
                start += count;
            }
        }
        drop(rows);
        n.reshape(n.combine(n.stack(made), routes), shape)
    }

    fn layer(&self, n: &Net, x: NetValue) -> NetValue {
        let h = n.add(self.attend(n, &n.rms_norm(x.clone())), x);
        let normal = n.rms_norm(h.clone());
        let fed = match self.experts {
            Some(experts) => self.mixture(n, normal, experts),
            None => self.feed_forward(n, normal),
        };
        n.add(fed, h)
    }
}

fn llama(n: &Net, sizes: Sizes, layout: &Layout) -> NetValue {
    let shape = vec![sizes.batch, sizes.sequence.unwrap_or(1)];
    let table = n.new_parameter(vec![layout.vocabulary, layout.width]);
    let mut h = n.embedding(&n.new_input(shape.clone()), table, layout.width);
    for _ in 0..layout.layers {
        h = layout.layer(n, h);
    }
    let scores = n.dense(n.rms_norm(h), layout.vocabulary);
    loss_of_each(n, scores, shape)
}
