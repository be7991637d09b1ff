//! Nets with skip connections: residual blocks, or encoder and decoder of a U-Net.
//!
//! Models ResNet (`kind=residual`): the block's input waits until it is added to the block's output. Models U-Net
//! (`kind=unet`): each level of the encoder waits for its level of the decoder. Large buffers thus live long even in
//! inference, across the small ones in between. A heuristic without look-ahead fragments memory there.
//!
//! # References
//!
//! 1. K. He, X. Zhang, S. Ren, J. Sun, "Deep residual learning for image recognition", CVPR 2016,
//!    doi:10.1109/CVPR.2016.90.
//! 2. O. Ronneberger, P. Fischer, T. Brox, "U-Net: convolutional networks for biomedical image
//!    segmentation", MICCAI 2015, doi:10.1007/978-3-319-24574-4_28.

use super::chain::{BATCH, DEPTH, Image};
use super::tape::{IN_PLACE, Iteration, MODE, Saves, Step, lower_iterations};
use crate::synthetic::dice::Dice;
use crate::synthetic::family::{Family, Made};
use crate::synthetic::parameters::{N, Parameter, ParameterError, SEED, Values};

/// The family `skip`.
pub const FAMILY: Family = Family {
    name: "skip",
    summary: "nets with skip connections (ResNet, U-Net)",
    parameters: &[
        N,
        SEED,
        Parameter::from_choices(
            "kind",
            &["residual", "unet"],
            "blocks that are added up, or an encoder and a decoder",
        ),
        MODE,
        IN_PLACE,
        DEPTH,
        BATCH,
    ],
    make,
};

fn make(values: &Values) -> Result<Made, ParameterError> {
    let mut dice = Dice::new(values.number("seed"), FAMILY.name);
    let (depth, batch) = (values.count("depth").min(values.count("n")), values.number("batch"));
    let steps = match values.choice("kind") {
        "residual" => residual_steps(&mut dice, depth, batch),
        _ => unet_steps(&mut dice, depth, batch),
    };
    let input = batch * 3 * 224 * 224 * 4;
    lower_iterations(values, || Iteration { input, steps: steps.clone() })
}

/// conv - norm - relu - conv - norm - add - relu, block after block.
fn residual_steps(dice: &mut Dice, depth: usize, batch: u64) -> Vec<Step> {
    let mut image = Image::new(batch, depth);
    let mut steps = vec![image.convolution_step(Vec::new(), 4)];
    while steps.len() < depth {
        let entry = steps.len() - 1;
        let shrinks = image.advance_stage(steps.len());
        let quarters = dice.between(1, 4);
        let bytes = image.activation_bytes();
        let inner = image.convolution_step(vec![entry], quarters);
        let narrow = inner.bytes;
        steps.push(inner);
        steps.push(Step::new("norm", [entry + 1], narrow, Saves::Inputs));
        steps.push(Step::new("relu", [entry + 2], narrow, Saves::Output));
        steps.push(image.convolution_step(vec![entry + 3], 4));
        steps.push(Step::new("norm", [entry + 4], bytes, Saves::Inputs));
        let branch = entry + 5;
        let mut skip = entry;
        if shrinks {
            // The shapes differ: the skip needs its own projection.
            steps.push(image.convolution_step(vec![entry], 4));
            skip = branch + 1;
        }
        steps.push(Step::new("add", [branch, skip], bytes, Saves::Nothing));
        steps.push(Step::new("relu", [steps.len() - 1], bytes, Saves::Output));
    }
    steps
}

/// Levels down, the bottom, levels up; repeated until `depth` is used up (a stacked hourglass).
fn unet_steps(dice: &mut Dice, depth: usize, batch: u64) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    while steps.len() < depth {
        let levels = dice.between(3, 5);
        let bytes = |level: u64| batch * (32 << level) * (224 >> level) * (224 >> level) * 4;
        let weight = |level: u64| 9 * (32 << level) * (32 << level) * 4;
        let mut skips = Vec::new();
        for level in 0..levels {
            push_convolution(&mut steps, bytes(level), weight(level));
            skips.push((level, steps.len() - 1));
            steps.push(Step::new("pool", [steps.len() - 1], bytes(level) / 4, Saves::Output));
        }
        push_convolution(&mut steps, bytes(levels), weight(levels));
        while let Some((level, skip)) = skips.pop() {
            steps.push(Step::new("upsample", [steps.len() - 1], bytes(level), Saves::Nothing));
            steps.push(Step::new("concat", [steps.len() - 1, skip], 2 * bytes(level), Saves::Nothing));
            push_convolution(&mut steps, bytes(level), weight(level));
        }
    }
    steps
}

/// conv - relu.
fn push_convolution(steps: &mut Vec<Step>, bytes: u64, weight: u64) {
    let inputs: Vec<usize> = steps.len().checked_sub(1).into_iter().collect();
    steps.push(Step::new("conv", inputs, bytes, Saves::Inputs).with_weights(weight).with_workspace(8 << 20));
    steps.push(Step::new("relu", [steps.len() - 1], bytes, Saves::Output));
}
