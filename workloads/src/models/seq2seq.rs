//! A training iteration of Chainer's seq2seq example: three LSTM layers of 1024 units, a vocabulary of 40,000.
//!
//! Requests and frees depend only on shapes, and only the sentence lengths change from iteration to iteration. The
//! rules here reproduce the four recorded iterations of each batch size (`chainer/seq2seq/train/b<N>/iteration<K>`)
//! exactly: the same sizes in the same order, and every free at the same place. So they can generate iterations that
//! were not recorded.
//!
//! ```text
//!  x, y, 2 B concats | embed | encoder | decoder | softmax || backward: decoder | encoder | embed || drop the graph
//! ```
//!
//! Keys are `model/seq2seq/train/b<N>/iteration<K>`. Their sentence lengths are sampled from a log-normal distribution
//! (median 20, sigma 0.5 of the logarithm), limited to 1 to 50; a target sentence has 90 to 130 % of the tokens of its
//! source, at most 50. The recorded sentences have the same distribution, but are not among the sampled ones.
//!
//! # References
//!
//! 1. Chainer 3.0.0rc1, `examples/seq2seq/seq2seq.py`, and `CuPy` 2.0.0rc1.
//!
//! # Complexity
//!
//! O(B + T) buffers for B sentences of at most T tokens.
//!
//! # Deviations
//!
//! The sizes of cuDNN's workspace and reserve space are unknown. As in the recorded traces, they are assumed: 16 and 24
//! bytes for each unit, layer and token, and another 256 KiB for the workspace.

use std::collections::BTreeMap;
use std::fmt;

use super::tape::{Block, FLOAT, Tape};
use crate::formats::Trace;
use crate::synthetic::dice::Dice;

pub(super) const UNITS: u64 = 1024;
pub(super) const LAYERS: u64 = 3;
pub(super) const VOCABULARY: u64 = 40_000;
/// Bytes of the vector of one token.
const TOKEN: u64 = FLOAT * UNITS;
/// Bytes of a packed set of weights: two matrices and two biases for each of four gates and each layer.
const WEIGHTS: u64 = FLOAT * LAYERS * 4 * (2 * UNITS * UNITS + 2 * UNITS);
/// Assumed bytes of workspace that do not depend on the tokens.
const WORKSPACE: u64 = 256 << 10;
/// The largest batch of a key.
const MOST: u64 = 1024;
/// The most tokens of a sentence.
const LONGEST: u64 = 50;

/// The content of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Sentences, 1 to 1024.
    pub batch: u32,
    /// The number of the iteration, below 10,000.
    pub iteration: u32,
}

impl Key {
    /// Reads `model/seq2seq/train/b<N>/iteration<K>`; `None` for any other text.
    #[must_use]
    pub fn parse_key(key: &str) -> Option<Self> {
        let (batch, iteration) = key.strip_prefix("model/seq2seq/train/b")?.split_once("/iteration")?;
        let parsed = Self { batch: batch.parse().ok()?, iteration: iteration.parse().ok()? };
        let is_allowed = (1..=1024).contains(&parsed.batch) && parsed.iteration < 10_000;
        // Refuses `b032` and `b+32`.
        Some(parsed).filter(|parsed| is_allowed && parsed.to_string() == key)
    }

    /// The requests of the iteration with its sampled sentences.
    #[must_use]
    pub fn iteration_trace(&self) -> Trace {
        let mut trace = iteration_trace(&self.sampled_sentences());
        trace.name_workload(&self.to_string());
        trace
    }

    /// The sentences of the iteration.
    fn sampled_sentences(self) -> Sentences {
        let mut dice = Dice::new(u64::from(self.iteration), &format!("seq2seq/b{}", self.batch));
        let sources: Vec<u64> = (0..self.batch).map(|_| sample_length(&mut dice)).collect();
        let target = |&source: &u64| (source * dice.between(90, 130) / 100).clamp(1, LONGEST);
        let target_tokens = sources.iter().map(target).sum();
        Sentences { sources, target_tokens }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "model/seq2seq/train/b{}/iteration{}", self.batch, self.iteration)
    }
}

/// The numbers of tokens of all source sentences, and of all target sentences with their ends, in iteration 0. From
/// 1024 sentences on, the lengths repeat.
pub(super) fn sampled_tokens(batch: u64) -> (u64, u64) {
    let tokens = |batch: u64| {
        let batch = u32::try_from(batch).unwrap_or(u32::MAX);
        let sentences = Key { batch, iteration: 0 }.sampled_sentences();
        (sentences.sources.iter().sum::<u64>(), sentences.target_tokens + u64::from(batch))
    };
    let (rounds, rest) = (batch / MOST, batch % MOST);
    let (source, target) = tokens(rest);
    let (more_source, more_target) = if rounds > 0 { tokens(MOST) } else { (0, 0) };
    (
        source.saturating_add(rounds.saturating_mul(more_source)),
        target.saturating_add(rounds.saturating_mul(more_target)),
    )
}

/// The number of sentences among 65,536 with at most 1, 2, ... 49 tokens; the others have 50. This is the log-normal
/// distribution with median e^3 and sigma 1/2 at half tokens, tabulated because logarithms differ between machines.
const AT_MOST: [u64; 49] = [
    0, 1, 16, 91, 314, 788, 1600, 2800, 4400, 6375, 8674, 11235, 13987, 16862, 19800, 22745, 25653, 28488,
    31222, 33836, 36316, 38653, 40845, 42890, 44790, 46551, 48177, 49675, 51052, 52315, 53473, 54532, 55500,
    56384, 57191, 57926, 58596, 59207, 59763, 60269, 60730, 61149, 61531, 61879, 62195, 62483, 62745, 62984,
    63202,
];

fn sample_length(dice: &mut Dice) -> u64 {
    let draw = dice.below(1 << 16);
    1 + AT_MOST.iter().take_while(|&&limit| limit <= draw).count() as u64
}

/// The sentence lengths, on which all shapes depend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentences {
    /// Tokens of each source sentence; at least one sentence, each of at least one token.
    pub sources: Vec<u64>,
    /// Tokens of all target sentences, without their ends.
    pub target_tokens: u64,
}

/// The requests of one iteration. Blocks that outlive it (parameters, gradients, the optimizer's state) are left out.
///
/// # Panics
///
/// If there is no source sentence, or if sizes do not fit 64 bits.
#[must_use]
pub fn iteration_trace(sentences: &Sentences) -> Trace {
    let mut net = Net::new(sentences);
    net.run_embedding();
    net.run_encoder();
    net.run_decoder();
    net.run_loss();
    net.free_after_forward();
    net.run_backward();
    net.release_graph();
    let mut trace = net.tape.build_trace().expect("sizes fit 64 bits");
    for (key, value) in [
        ("framework", "Chainer 3.0.0rc1 with CuPy 2.0.0rc1, by rule"),
        ("scope", "buffers allocated and freed within one propagation"),
        ("assumption", "cuDNN workspace and reserve sizes assumed; sentence lengths sampled"),
    ] {
        trace.labels.metadata.push((key.to_owned(), value.to_owned()));
    }
    trace
}

/// The lists that arrays are concatenated from or split into: by sentence, or by position within the sentences.
#[derive(Clone, Copy)]
enum Lists {
    Sentences,
    SourceSteps,
    TargetSteps,
}

struct Net<'s> {
    tape: Tape,
    /// Blocks that the graph keeps, by their part of the net and their name.
    kept: BTreeMap<(&'static str, &'static str), Block>,
    /// The target sentences with an end token before, then with one after.
    ended: Vec<Block>,
    sentences: &'s Sentences,
    batch: u64,
    source_tokens: u64,
    /// The ends of sentences included.
    target_tokens: u64,
    /// Functions applied so far.
    applied: u32,
}

impl<'s> Net<'s> {
    fn new(sentences: &'s Sentences) -> Self {
        assert!(!sentences.sources.is_empty(), "a batch has sentences");
        let batch = sentences.sources.len() as u64;
        let source_tokens = sentences.sources.iter().sum();
        let target_tokens = sentences.target_tokens + batch;
        let (tape, kept, ended) = Default::default();
        Self { tape, kept, ended, sentences, batch, source_tokens, target_tokens, applied: 0 }
    }

    /// The name of the next function.
    fn next_function_name(&mut self, name: &str) -> String {
        self.applied += 1;
        format!("fwd:{}:{name}", self.applied)
    }

    /// The number of arrays of a list. For target steps it is the maximum: no size depends on the real number.
    fn array_count(&self, lists: Lists) -> u64 {
        match lists {
            Lists::Sentences => self.batch,
            Lists::SourceSteps => self.sentences.sources.iter().copied().max().unwrap_or(0),
            Lists::TargetSteps => LONGEST,
        }
    }

    /// Bytes of a state of all layers.
    fn state_bytes(&self) -> u64 {
        LAYERS * self.batch * TOKEN
    }

    fn free_blocks(&mut self, blocks: impl IntoIterator<Item = Block>) {
        for block in blocks {
            self.tape.free(block);
        }
    }

    /// Requests a block that the graph keeps.
    fn keep(&mut self, part: &'static str, name: &'static str, bytes: u64, op: &str) {
        let block = self.tape.alloc(bytes, op);
        self.kept.insert((part, name), block);
    }

    /// Frees blocks that the graph kept.
    fn drop(&mut self, part: &'static str, names: &[&'static str]) {
        for name in names {
            let block = self.kept.remove(&(part, *name)).expect("the graph keeps it");
            self.tape.free(block);
        }
    }

    /// Requests that are freed at once, in reverse order.
    fn request_temporaries(&mut self, sizes: &[u64], op: &str) {
        let blocks: Vec<Block> = sizes.iter().map(|&bytes| self.tape.alloc(bytes, op)).collect();
        self.free_blocks(blocks.into_iter().rev());
    }

    /// The concatenated array. For more than three arrays, a kernel needs tables of their addresses.
    fn request_concat(&mut self, bytes: u64, lists: Lists, dimensions: u64, op: &str) -> Block {
        let joined = self.tape.alloc(bytes, op);
        let count = self.array_count(lists);
        if count > 3 {
            self.request_temporaries(&[8 * count, 4 * count, 4 * count * dimensions], op);
        }
        joined
    }

    /// Turns vectors by sentence into vectors by step, or the other way round.
    fn request_transpose(&mut self, tokens: u64, from: Lists, to: Lists, op: &str) -> Block {
        let joined = self.request_concat(tokens * TOKEN, from, 2, op);
        let turned = self.tape.alloc(tokens * TOKEN, op);
        self.request_temporaries(&[4 * (self.array_count(from) + 1), 4 * (self.array_count(to) + 1)], op);
        self.free_blocks([joined]);
        turned
    }

    /// A state with its sentences in another order.
    fn request_permutation(&mut self, op: &str) -> Block {
        let indices = self.tape.alloc(8 * self.batch, op);
        let state = self.tape.alloc(self.state_bytes(), op);
        self.free_blocks([indices]);
        state
    }

    fn workspace_bytes(tokens: u64) -> u64 {
        16 * UNITS * LAYERS * tokens + WORKSPACE
    }

    /// Runs an LSTM over vectors by step.
    fn run_lstm(&mut self, part: &'static str, tokens: u64, steps: Lists) {
        let op = self.next_function_name("NStepLSTM");
        self.keep(part, "hidden", self.state_bytes(), &op);
        let joined = self.request_concat(tokens * TOKEN, steps, 2, &op);
        self.keep(part, "output", tokens * TOKEN, &op);
        self.keep(part, "weights", WEIGHTS, &op);
        self.keep(part, "cell", self.state_bytes(), &op);
        self.keep(part, "workspace", Self::workspace_bytes(tokens), &op);
        self.keep(part, "reserve", 24 * UNITS * LAYERS * tokens, &op);
        self.free_blocks([joined]);
    }

    /// Runs an LSTM over vectors by sentence, with its states in the order of the sentences.
    fn recur(&mut self, part: &'static str, tokens: u64, steps: Lists) {
        let op = self.next_function_name("TransposeSequence");
        let by_step = self.request_transpose(tokens, Lists::Sentences, steps, &op);
        self.kept.insert((part, "by step"), by_step);
        self.run_lstm(part, tokens, steps);
        for state in ["cell", "hidden"] {
            let op = self.next_function_name("Permutate");
            let ordered = self.request_permutation(&op);
            self.drop(part, &[state]);
            self.kept.insert((part, state), ordered);
        }
        let op = self.next_function_name("TransposeSequence");
        let by_sentence = self.request_transpose(tokens, steps, Lists::Sentences, &op);
        self.kept.insert((part, "by sentence"), by_sentence);
    }

    fn run_embedding(&mut self) {
        self.keep("net", "source", 4 * self.source_tokens, "fwd");
        self.keep("net", "target", 4 * self.sentences.target_tokens, "fwd");
        self.keep("net", "end", 4, "fwd");
        for _ in 0..2 * self.batch {
            let op = self.next_function_name("Concat");
            // Below the size that requests are rounded up to.
            self.ended.push(self.tape.alloc(4 * (LONGEST + 1), &op));
        }
        for (part, tokens) in [("encoder", self.source_tokens), ("decoder", self.target_tokens)] {
            let op = self.next_function_name("Concat");
            let joined = self.request_concat(4 * tokens, Lists::Sentences, 1, &op);
            self.kept.insert((part, "joined"), joined);
            let op = self.next_function_name("EmbedIDFunction");
            self.keep(part, "vectors", tokens * TOKEN, &op);
            // The split into sentences is a function that requests nothing.
            self.applied += 1;
        }
        self.keep("net", "hidden", self.state_bytes(), "fwd");
        self.keep("net", "cell", self.state_bytes(), "fwd");
    }

    fn run_encoder(&mut self) {
        self.recur("encoder", self.source_tokens, Lists::SourceSteps);
        // Both states, in the decoder's order of sentences.
        for state in ["first", "second"] {
            let op = self.next_function_name("Permutate");
            let ordered = self.request_permutation(&op);
            self.kept.insert(("encoder", state), ordered);
        }
    }

    fn run_decoder(&mut self) {
        self.recur("decoder", self.target_tokens, Lists::TargetSteps);
        self.drop("encoder", &["by sentence"]);
        self.drop("decoder", &["cell"]);
    }

    fn run_loss(&mut self) {
        let tokens = self.target_tokens;
        let op = self.next_function_name("Concat");
        let outputs = self.request_concat(tokens * TOKEN, Lists::Sentences, 2, &op);
        self.kept.insert(("loss", "outputs"), outputs);
        let op = self.next_function_name("Concat");
        let targets = self.request_concat(4 * tokens, Lists::Sentences, 1, &op);
        self.kept.insert(("loss", "targets"), targets);
        let op = self.next_function_name("LinearFunction");
        self.keep("loss", "scores", tokens * VOCABULARY * FLOAT, &op);
        let losses = self.cross_entropy();
        let op = self.next_function_name("Sum");
        let sum = self.tape.alloc(FLOAT, &op);
        self.free_blocks([losses, sum]);
        let perplexity = [(); 2].map(|()| self.tape.alloc(FLOAT, "fwd"));
        self.free_blocks(perplexity);
    }

    /// Returns the loss of each token.
    fn cross_entropy(&mut self) -> Block {
        let tokens = self.target_tokens;
        let op = self.next_function_name("SoftmaxCrossEntropy");
        let logarithms = self.tape.alloc(tokens * VOCABULARY * FLOAT, &op);
        self.keep("loss", "softmax", tokens * VOCABULARY * FLOAT, &op);
        let is_counted = self.tape.alloc(tokens, &op);
        let count = self.tape.alloc(8, &op);
        self.free_blocks([is_counted]);
        let most = self.tape.alloc(8, &op);
        self.free_blocks([count]);
        self.keep("loss", "coefficient", FLOAT, &op);
        let losses = self.tape.alloc(FLOAT * tokens, &op);
        self.free_blocks([logarithms, most]);
        losses
    }

    /// Frees the blocks that are dropped after the forward pass.
    fn free_after_forward(&mut self) {
        let ended = std::mem::take(&mut self.ended);
        let (before, behind) = ended.split_at(ended.len() / 2);
        self.free_blocks(before.iter().rev().copied());
        self.free_blocks(behind.iter().rev().copied());
        self.drop("encoder", &["vectors"]);
        self.drop("decoder", &["vectors"]);
        self.drop("encoder", &["cell", "hidden"]);
        self.drop("decoder", &["hidden", "by sentence"]);
        self.drop("net", &["end"]);
    }

    fn run_backward(&mut self) {
        let tokens = self.target_tokens;
        // The initial gradient is requested between the passes.
        self.keep("loss", "gradient", FLOAT, "fwd");
        let scaled = self.tape.alloc(FLOAT, "bwd:MulConstant/MulConstant");
        let scores = self.tape.alloc(tokens * VOCABULARY * FLOAT, "bwd:SoftmaxCrossEntropy");
        self.free_blocks([scaled]);
        let outputs = self.tape.alloc(tokens * TOKEN, "bwd:LinearFunction/LinearFunction");
        self.free_blocks([scores]);
        let by_step =
            self.request_transpose(tokens, Lists::Sentences, Lists::TargetSteps, "bwd:TransposeSequence");
        self.free_blocks([outputs]);
        let (inputs, states) = self.decoder_backward(by_step);
        let by_sentence =
            self.request_transpose(tokens, Lists::TargetSteps, Lists::Sentences, "bwd:TransposeSequence");
        self.free_blocks([inputs]);
        self.encoder_backward(states, by_sentence);
    }

    /// Returns the gradients of the inputs by step and of both states.
    fn decoder_backward(&mut self, by_step: Block) -> (Block, [Block; 2]) {
        let (tokens, op) = (self.target_tokens, "bwd:NStepLSTM");
        let [hidden, new_hidden, cell] = [(); 3].map(|()| self.tape.alloc(self.state_bytes(), op));
        let gradients = self.request_concat(tokens * TOKEN, Lists::TargetSteps, 2, op);
        let new_cell = self.tape.alloc(self.state_bytes(), op);
        let joined = self.request_concat(tokens * TOKEN, Lists::TargetSteps, 2, op);
        let workspace = self.tape.alloc(Self::workspace_bytes(tokens), op);
        let inputs = self.tape.alloc(tokens * TOKEN, op);
        self.free_blocks([cell, hidden, gradients, joined, workspace, by_step]);
        let mut reordered = |old: Block| {
            let new = self.request_permutation("bwd:Permutate");
            self.free_blocks([old]);
            new
        };
        let middle = [reordered(new_cell), reordered(new_hidden)];
        (inputs, middle.map(reordered))
    }

    /// Plays the encoder's backward pass. Its outputs are not used, so their gradients are zeros, an array for each
    /// step.
    fn encoder_backward(&mut self, states: [Block; 2], target_vectors: Block) {
        let (tokens, op) = (self.source_tokens, "bwd:NStepLSTM");
        let hidden = self.tape.alloc(self.state_bytes(), op);
        let sentences = self.sentences;
        let zeros: Vec<Block> = sentences.by_step().map(|alive| self.tape.alloc(alive * TOKEN, op)).collect();
        let gradients = self.request_concat(tokens * TOKEN, Lists::SourceSteps, 2, op);
        let cell = self.tape.alloc(self.state_bytes(), op);
        let joined = self.request_concat(tokens * TOKEN, Lists::SourceSteps, 2, op);
        let workspace = self.tape.alloc(Self::workspace_bytes(tokens), op);
        let inputs = self.tape.alloc(tokens * TOKEN, op);
        self.free_blocks(zeros.into_iter().rev());
        self.free_blocks([gradients, joined, workspace, states[1], states[0]]);
        let joined =
            self.request_concat(self.target_tokens * TOKEN, Lists::Sentences, 2, "bwd:SplitAxis/Concat");
        self.free_blocks([target_vectors]);
        let turned =
            self.request_transpose(tokens, Lists::SourceSteps, Lists::Sentences, "bwd:TransposeSequence");
        self.free_blocks([inputs, joined]);
        let joined = self.request_concat(tokens * TOKEN, Lists::Sentences, 2, "bwd:SplitAxis/Concat");
        self.free_blocks([turned, joined, cell, hidden]);
    }

    /// Drops the graph with its loss.
    fn release_graph(&mut self) {
        self.drop("loss", &["softmax", "coefficient", "targets"]);
        self.drop("decoder", &["weights", "workspace", "reserve", "output", "by step"]);
        self.drop("encoder", &["second", "first"]);
        self.drop("loss", &["outputs", "scores", "gradient"]);
        self.drop("encoder", &["weights", "workspace", "reserve", "output", "joined", "by step"]);
        self.drop("net", &["cell", "hidden"]);
        self.drop("decoder", &["joined"]);
        self.drop("net", &["source", "target"]);
    }
}

impl Sentences {
    /// The number of source sentences with a token at each position.
    fn by_step(&self) -> impl Iterator<Item = u64> + '_ {
        let longest = self.sources.iter().copied().max().unwrap_or(0);
        (0..longest).map(|step| self.sources.iter().filter(|&&tokens| tokens > step).count() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::recorded;

    /// The sentences of a recorded iteration, derived from the zeros of its encoder's backward pass.
    fn read_off(trace: &Trace, batch: u64) -> Sentences {
        let buffers = || trace.instance.buffers().iter().zip(&trace.labels.buffers);
        let of = |name: &str| -> Vec<u64> {
            let own = buffers().filter(|(_, label)| label.op.as_deref().is_some_and(|op| op.contains(name)));
            own.map(|(buffer, _)| buffer.size.get()).collect()
        };
        // 14 of the decoder, a state, the zeros, and 11 more.
        let lstm = of("bwd:NStepLSTM");
        let alive: Vec<u64> = lstm[15..lstm.len() - 11].iter().map(|bytes| bytes / TOKEN).collect();
        let ends = alive.iter().zip(alive.iter().skip(1).chain([&0])).map(|(now, next)| now - next);
        let sources = (1..).zip(ends).flat_map(|(tokens, count)| (0..count).map(move |_| tokens)).collect();
        let target_tokens = of("EmbedIDFunction")[1] / TOKEN - batch;
        Sentences { sources, target_tokens }
    }

    #[test]
    fn the_rules_give_every_recorded_iteration_exactly() {
        for batch in [32, 64, 128, 256] {
            for number in [0, 1, 2, 9] {
                let key = format!("chainer/seq2seq/train/b{batch}/iteration{number}");
                let real = recorded(&key).expect("recorded").read_trace().expect("whole");
                let made = iteration_trace(&read_off(&real, batch));
                assert_eq!(made.instance.digest(), real.instance.digest(), "{key}");
                let ops = |trace: &Trace| {
                    trace.labels.buffers.iter().map(|label| label.op.clone()).collect::<Vec<_>>()
                };
                assert_eq!(ops(&made), ops(&real), "{key}");
            }
        }
    }

    #[test]
    fn lengths_are_those_of_the_recorded_sentences() {
        let sentences = Key { batch: 256, iteration: 0 }.sampled_sentences();
        let (count, tokens) = (sentences.sources.len() as u64, sentences.sources.iter().sum::<u64>());
        assert_eq!(count, 256);
        assert!(sentences.sources.iter().all(|tokens| (1..=LONGEST).contains(tokens)));
        // The recorded batches of 256 have 5721 to 6152 source tokens and 6185 to 6648 target tokens.
        assert!((5300..6600).contains(&tokens) && sentences.target_tokens > tokens, "{tokens}");
        let others = (1..10).map(|iteration| Key { batch: 256, iteration }.sampled_sentences());
        assert!(others.into_iter().all(|other| other != sentences));
        assert!(AT_MOST.is_sorted());
    }

    #[test]
    fn a_key_names_a_trace_for_good() {
        let key = Key::parse_key("model/seq2seq/train/b32/iteration3").expect("a key");
        let trace = key.iteration_trace();
        assert_eq!(trace.labels.meta_value("workload"), Some("model/seq2seq/train/b32/iteration3"));
        assert_eq!(trace.instance.digest(), key.iteration_trace().instance.digest());
        for wrong in [
            "b0/iteration1",
            "b1025/iteration1",
            "b032/iteration1",
            "b32/iteration10000",
            "b32",
            "b32/iteration",
        ] {
            assert_eq!(Key::parse_key(&format!("model/seq2seq/train/{wrong}")), None, "{wrong}");
        }
        // The smallest batches join so small a number of arrays that no kernel is needed.
        assert!(Key { batch: 1, iteration: 0 }.iteration_trace().instance.len() > 50);
    }
}
