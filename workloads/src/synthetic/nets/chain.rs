//! A convolutional net without branches: forward, or forward and backward.
//!
//! Models AlexNet and VGG: convolutions with a workspace, each followed by an activation, and a pooling wherever the
//! image shrinks. Images halve and channels double from stage to stage, so activations shrink with depth while weights
//! grow. In training every activation waits for its backward operation: lives nest like brackets, and the load peaks at
//! the turn. Inference needs two or three buffers at a time. After `depth` operations another iteration follows.
//!
//! # References
//!
//! 1. T. Sekiyama, T. Imamichi, H. Imai, R. Raymond, "Profile-guided memory optimization for deep neural
//!    networks", 2018, arXiv:1804.10001.

use super::tape::{IN_PLACE, Iteration, MODE, Saves, Step, lower_iterations};
use crate::synthetic::dice::Dice;
use crate::synthetic::family::{Family, Made};
use crate::synthetic::parameters::{N, Parameter, ParameterError, SEED, Values};

/// Forward operations of one iteration.
pub(super) const DEPTH: Parameter =
    Parameter::from_number("depth", "200", (1, 1_000_000), "forward operations of one iteration");
/// Images per batch.
pub(super) const BATCH: Parameter = Parameter::from_number("batch", "32", (1, 4096), "images at a time");

/// The family `chain`.
pub const FAMILY: Family = Family {
    name: "chain",
    summary: "a convolutional net without branches (AlexNet, VGG)",
    parameters: &[N, SEED, MODE, IN_PLACE, DEPTH, BATCH],
    make,
};

fn make(values: &Values) -> Result<Made, ParameterError> {
    let mut dice = Dice::new(values.number("seed"), FAMILY.name);
    let (depth, batch) = (values.count("depth").min(values.count("n")), values.number("batch"));
    // All iterations run the same net.
    let mut image = Image::new(batch, depth);
    let mut steps = Vec::with_capacity(depth);
    while steps.len() < depth {
        let last = steps.len().checked_sub(1);
        let shrinks = image.advance_stage(steps.len());
        let inputs: Vec<usize> = last.into_iter().collect();
        if shrinks && last.is_some() {
            steps.push(Step::new("pool", inputs, image.activation_bytes(), Saves::Output));
        } else if steps.len() % 2 == 0 {
            let factor = dice.between(3, 5);
            steps.push(image.convolution_step(inputs, factor));
        } else {
            steps.push(Step::new("relu", inputs, steps[steps.len() - 1].bytes, Saves::Output));
        }
    }
    let input = batch * 3 * 224 * 224 * 4;
    lower_iterations(values, || Iteration { input, steps: steps.clone() })
}

/// The shape of activations at a depth: from stage to stage, sides halve and channels double.
pub(super) struct Image {
    batch: u64,
    side: u64,
    channels: u64,
    stage: usize,
    per_stage: usize,
}

impl Image {
    const STAGES: usize = 5;

    pub(super) fn new(batch: u64, depth: usize) -> Self {
        Self { batch, side: 112, channels: 64, stage: 0, per_stage: depth.div_ceil(Self::STAGES).max(2) }
    }

    /// Advances to the stage of a depth; returns whether the image shrank.
    pub(super) fn advance_stage(&mut self, depth: usize) -> bool {
        let stage = (depth / self.per_stage).min(Self::STAGES - 1);
        let shrinks = stage > self.stage;
        if shrinks {
            self.stage = stage;
            self.side = (self.side / 2).max(7);
            self.channels = (self.channels * 2).min(1024);
        }
        shrinks
    }

    /// The bytes of an activation.
    pub(super) fn activation_bytes(&self) -> u64 {
        self.batch * self.channels * self.side * self.side * 4
    }

    /// A 3 x 3 convolution; `quarters` of the stage's channels.
    pub(super) fn convolution_step(&self, inputs: Vec<usize>, quarters: u64) -> Step {
        let bytes = self.activation_bytes() / 4 * quarters;
        let weight = 9 * self.channels * self.channels * 4 / 4 * quarters;
        Step::new("conv", inputs, bytes, Saves::Inputs).with_weights(weight).with_workspace(8 << 20)
    }
}
