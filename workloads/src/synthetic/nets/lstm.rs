//! A recurrent net unrolled over sentences whose lengths are sampled.
//!
//! Models seq2seq training: every iteration has another length, so no two iterations request the same memory, and a
//! plan for one does not fit the next. There are thousands of small buffers of three sizes (gates, cell, hidden).
//! Hidden states wait for the end of the sentence, where they are all concatenated for the output layer. Short
//! sentences are more frequent than long ones.
//!
//! # References
//!
//! 1. I. Sutskever, O. Vinyals, Q. V. Le, "Sequence to sequence learning with neural networks",
//!    NeurIPS 2014, arXiv:1409.3215.

use super::tape::{IN_PLACE, Iteration, MODE, Saves, Step, lower_iterations};
use crate::synthetic::dice::Dice;
use crate::synthetic::family::{Family, Made};
use crate::synthetic::parameters::{N, Parameter, ParameterError, SEED, Values};

/// The family `lstm`.
pub const FAMILY: Family = Family {
    name: "lstm",
    summary: "a recurrent net unrolled over sampled sentence lengths (seq2seq)",
    parameters: &[
        N,
        SEED,
        MODE,
        IN_PLACE,
        Parameter::from_number("batch", "64", (1, 4096), "sentences at a time"),
        Parameter::from_number("hidden", "1024", (1, 65_536), "units of a cell"),
        Parameter::from_number("longest", "50", (2, 10_000), "longest sentence, in words"),
    ],
    make,
};

fn make(values: &Values) -> Result<Made, ParameterError> {
    let mut dice = Dice::new(values.number("seed"), FAMILY.name);
    let (batch, hidden) = (values.number("batch"), values.number("hidden"));
    let longest = values.number("longest");
    lower_iterations(values, || {
        // The smaller of two uniform draws makes short sentences frequent.
        let words = dice.between(2, longest).min(dice.between(2, longest));
        Iteration {
            input: batch * words * 8,
            steps: sentence_steps(words, batch * hidden * 4, 8 * hidden * hidden * 4),
        }
    })
}

/// The steps of one sentence; `state` is the size of a hidden state in bytes.
fn sentence_steps(words: u64, state: u64, weight: u64) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut states = Vec::new();
    let mut before: Option<(usize, usize)> = None;
    for word in 0..words {
        let at = steps.len();
        let (hidden, cell) = before.unzip();
        let gates = Step::new("gates", hidden.into_iter().collect::<Vec<_>>(), 4 * state, Saves::Inputs);
        // The weights are shared: their gradient is one buffer to which all words add.
        steps.push(if word == 0 { gates.with_weights(weight) } else { gates });
        let inputs: Vec<usize> = std::iter::once(at).chain(cell).collect();
        steps.push(Step::new("cell", inputs, state, Saves::Inputs));
        steps.push(Step::new("hidden", [at, at + 1], state, Saves::Inputs));
        states.push(at + 2);
        before = Some((at + 2, at + 1));
    }
    let all = steps.len();
    steps.push(Step::new("concat", states, words * state, Saves::Nothing));
    steps.push(Step::new("output", [all], 4 * words * state, Saves::Inputs).with_weights(weight));
    steps.push(Step::new("softmax", [all + 1], 4 * words * state, Saves::Output));
    steps
}
