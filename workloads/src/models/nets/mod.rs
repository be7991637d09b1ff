//! The nets, one file per family.

pub mod alexnet;
pub mod bert;
pub mod dcgan;
pub mod densenet;
pub mod efficientnet;
pub mod googlenet;
pub mod gpt2;
pub mod inception_resnet;
pub mod inception_v3;
pub mod llama;
pub mod mobilenet;
pub mod resnet;
pub mod resnext3d;
pub mod seq2seq;
pub mod squeezenet;
pub mod t5;
mod transformer;
pub mod unet;
pub mod vgg;
pub mod vit;

use std::fmt;

use super::net::{Net, Value};
use super::spec::ModelError;
use crate::nearest;

/// The input of a net.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Input {
    /// Square images.
    Image {
        /// The number of channels.
        channels: u64,
        /// The default height and width.
        extent: u64,
        /// The number of frames of one input; 1 for still images.
        frames: u64,
    },
    /// Sequences of tokens.
    Tokens {
        /// The default number of tokens of a sequence; `None` if lengths are sampled.
        sequence: Option<u64>,
        /// The largest number of tokens, if the net has a limit.
        limit: Option<u64>,
    },
    /// Vectors of random numbers.
    Noise,
}

impl Input {
    /// A usual batch size in training.
    #[must_use]
    pub const fn usual_batch(self) -> u64 {
        match self {
            Self::Image { frames: 1, .. } => 32,
            Self::Image { .. } => 8,
            Self::Tokens { sequence: Some(_), .. } => 4,
            Self::Tokens { sequence: None, .. } => 64,
            Self::Noise => 128,
        }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Image { channels, extent, frames: 1 } => {
                write!(f, "images of {channels} x {extent} x {extent}")
            }
            Self::Image { channels, extent, frames } => {
                write!(f, "clips of {channels} x {frames} x {extent} x {extent}")
            }
            Self::Tokens { sequence: Some(sequence), .. } => write!(f, "sequences of {sequence} tokens"),
            Self::Tokens { sequence: None, .. } => f.write_str("sentences with sampled lengths"),
            Self::Noise => f.write_str("vectors of random numbers"),
        }
    }
}

/// Published figures of a net.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The number of parameters in training.
    pub parameters: Option<u64>,
    /// The FLOPs of inference on one input of the default size, two for each multiply-add, to the published precision.
    pub flops: Option<u64>,
    /// Where the figures are published.
    pub source: &'static str,
    /// How the net differs from the published one; empty if it does not.
    pub differs: &'static str,
}

impl Published {
    /// No published figures.
    pub const NOTHING: Self = Self::new(None, None, "");

    const fn new(parameters: Option<u64>, flops: Option<u64>, source: &'static str) -> Self {
        Self { parameters, flops, source, differs: "" }
    }

    const fn differing(self, differs: &'static str) -> Self {
        Self { differs, ..self }
    }
}

/// A net.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Model {
    /// The name in keys.
    pub name: &'static str,
    /// A description of one line.
    pub summary: &'static str,
    /// The input.
    pub input: Input,
    /// Published figures.
    pub published: Published,
    pub(super) build: fn(&Net, Sizes) -> Value,
}

impl PartialEq for Model {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Model {}

/// All nets.
pub fn models() -> impl Iterator<Item = &'static Model> {
    FAMILIES.into_iter().flatten()
}

static FAMILIES: [&[Model]; 19] = [
    &alexnet::MODELS,
    &googlenet::MODELS,
    &resnet::MODELS,
    &resnext3d::MODELS,
    &vgg::MODELS,
    &inception_v3::MODELS,
    &inception_resnet::MODELS,
    &densenet::MODELS,
    &squeezenet::MODELS,
    &mobilenet::MODELS,
    &efficientnet::MODELS,
    &vit::MODELS,
    &unet::MODELS,
    &dcgan::MODELS,
    &seq2seq::MODELS,
    &bert::MODELS,
    &gpt2::MODELS,
    &t5::MODELS,
    &llama::MODELS,
];

/// The net with a name.
///
/// # Errors
///
/// [`ModelError::UnknownNet`] with the nearest names.
pub fn find(name: &str) -> Result<&'static Model, ModelError> {
    models().find(|model| model.name == name).ok_or_else(|| ModelError::UnknownNet {
        nearest: nearest(name, models().map(|model| model.name)),
        name: name.chars().take(100).collect(),
    })
}

/// The sizes that a net's shapes depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) batch: u64,
    /// Height and width of images.
    pub(super) extent: u64,
    /// Tokens of a sequence; `None`: sampled.
    pub(super) sequence: Option<u64>,
}

const fn image(extent: u64) -> Input {
    Input::Image { channels: 3, extent, frames: 1 }
}

/// Images, and their labels if the net returns a loss.
fn images(net: &Net, sizes: Sizes) -> (Value, Option<Value>) {
    let x = net.input(vec![sizes.batch, 3, sizes.extent, sizes.extent]);
    (x, net.is_scored().then(|| net.input(vec![sizes.batch])))
}

/// The loss of a classification, reported together with the accuracy; without labels, the scores.
fn classify(net: &Net, h: Value, labels: Option<&Value>) -> Value {
    let Some(labels) = labels else { return h };
    let loss = net.softmax_cross_entropy(h.clone(), labels);
    let accuracy = net.accuracy(h, labels);
    net.report(&[&loss, &accuracy]);
    loss
}
