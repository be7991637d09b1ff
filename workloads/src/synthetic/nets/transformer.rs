//! Transformer blocks: attention and a feed-forward part, layer after layer.
//!
//! Models BERT and GPT steps: two sizes dominate and repeat in every layer, the residual stream
//! (`batch x sequence x width`) and the attention scores (`batch x heads x sequence^2`), with the
//! feed-forward part at four times the width. Widths are drawn once for the net.
//!
//! # References
//!
//! 1. A. Vaswani et al., "Attention is all you need", NeurIPS 2017, arXiv:1706.03762.

use super::tape::{IN_PLACE, Iteration, MODE, Saves, Step, lower_iterations};
use crate::synthetic::dice::Dice;
use crate::synthetic::family::{Family, Made};
use crate::synthetic::parameters::{N, Parameter, ParameterError, SEED, Values};

/// The family `transformer`.
pub const FAMILY: Family = Family {
    name: "transformer",
    summary: "attention and feed-forward blocks (BERT, GPT)",
    parameters: &[
        N,
        SEED,
        MODE,
        IN_PLACE,
        Parameter::from_number("layers", "24", (1, 10_000), "layers of one iteration"),
        Parameter::from_number("batch", "8", (1, 4096), "sequences at a time"),
        Parameter::from_number("sequence", "512", (1, 65_536), "tokens of a sequence"),
    ],
    make,
};

fn make(values: &Values) -> Result<Made, ParameterError> {
    let mut dice = Dice::new(values.number("seed"), FAMILY.name);
    let (batch, sequence) = (values.number("batch"), values.number("sequence"));
    let heads = dice.pick(&[8, 12, 16, 20]);
    let width = 64 * heads;
    let shape = Shape {
        stream: batch * sequence * width * 4,
        scores: batch * heads * sequence * sequence * 4,
        weight: width * width * 4,
    };
    let layers = values.count("layers").min(values.count("n"));
    let vocabulary = dice.pick(&[30_522, 50_257]);
    let mut steps =
        vec![Step::new("embedding", [], shape.stream, Saves::Nothing).with_weights(vocabulary * width * 4)];
    for _ in 0..layers {
        shape.push_layer(&mut steps);
    }
    lower_iterations(values, || Iteration { input: batch * sequence * 8, steps: steps.clone() })
}

/// The sizes in bytes that repeat in every layer.
struct Shape {
    stream: u64,
    scores: u64,
    weight: u64,
}

impl Shape {
    fn push_layer(&self, steps: &mut Vec<Step>) {
        let entry = steps.len() - 1;
        steps.push(Step::new("norm", [entry], self.stream, Saves::Inputs));
        steps.push(
            Step::new("qkv", [entry + 1], 3 * self.stream, Saves::Inputs).with_weights(3 * self.weight),
        );
        steps.push(Step::new("scores", [entry + 2], self.scores, Saves::Inputs));
        steps.push(Step::new("softmax", [entry + 3], self.scores, Saves::Output));
        steps.push(Step::new("dropout", [entry + 4], self.scores, Saves::Output));
        steps.push(Step::new("context", [entry + 5, entry + 2], self.stream, Saves::Inputs));
        steps.push(Step::new("project", [entry + 6], self.stream, Saves::Inputs).with_weights(self.weight));
        steps.push(Step::new("add", [entry + 7, entry], self.stream, Saves::Nothing));
        steps.push(Step::new("norm", [entry + 8], self.stream, Saves::Inputs));
        steps
            .push(Step::new("up", [entry + 9], 4 * self.stream, Saves::Inputs).with_weights(4 * self.weight));
        steps.push(Step::new("gelu", [entry + 10], 4 * self.stream, Saves::Inputs));
        steps.push(Step::new("down", [entry + 11], self.stream, Saves::Inputs).with_weights(4 * self.weight));
        steps.push(Step::new("add", [entry + 12, entry + 8], self.stream, Saves::Nothing));
    }
}
