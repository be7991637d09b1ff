//! The nets, one file a family.

pub mod alexnet;
pub mod bert;
pub mod dcgan;
pub mod densenet;
pub mod googlenet;
pub mod gpt2;
pub mod inception_resnet;
pub mod inception_v3;
pub mod llama;
pub mod resnet;
pub mod resnext3d;
pub mod seq2seq;
pub mod squeezenet;
mod transformer;
pub mod unet;
pub mod vgg;

use std::fmt;

use super::net::{Net, Value};
use super::spec::ModelError;
use crate::nearest;

/// What a net is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Input {
    /// Square images.
    Image {
        /// Colours.
        channels: u64,
        /// Height and width, where nothing else is said.
        extent: u64,
        /// Images that follow each other in one input; 1 for still ones.
        frames: u64,
    },
    /// Sequences of tokens.
    Tokens {
        /// Tokens of a sequence, where nothing else is said; `None`: lengths are sampled.
        sequence: Option<u64>,
        /// The longest, where there is one.
        limit: Option<u64>,
    },
    /// Vectors of random numbers.
    Noise,
}

impl Input {
    /// A batch that the net is often trained with.
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
                write!(f, "films of {channels} x {frames} x {extent} x {extent}")
            }
            Self::Tokens { sequence: Some(sequence), .. } => write!(f, "sequences of {sequence} tokens"),
            Self::Tokens { sequence: None, .. } => f.write_str("sentences of sampled lengths"),
            Self::Noise => f.write_str("vectors of random numbers"),
        }
    }
}

/// What is published about a net.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// Parameters of the net as it is trained.
    pub parameters: Option<u64>,
    /// Floating-point operations of inference with one input of the default size, two for each product with its sum,
    /// as exact as they are published.
    pub flops: Option<u64>,
    /// Where.
    pub source: &'static str,
}

impl Published {
    /// Nothing.
    pub const NOTHING: Self = Self { parameters: None, flops: None, source: "" };
}

/// A net.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Model {
    /// Its name in keys.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// What it is given.
    pub input: Input,
    /// What is published about it.
    pub published: Published,
    pub(super) build: fn(&Net, Sizes) -> Value,
}

impl PartialEq for Model {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Model {}

/// Every net.
pub fn models() -> impl Iterator<Item = &'static Model> {
    FAMILIES.into_iter().flatten()
}

static FAMILIES: [&[Model]; 15] = [
    &alexnet::MODELS,
    &googlenet::MODELS,
    &resnet::MODELS,
    &resnext3d::MODELS,
    &vgg::MODELS,
    &inception_v3::MODELS,
    &inception_resnet::MODELS,
    &densenet::MODELS,
    &squeezenet::MODELS,
    &unet::MODELS,
    &dcgan::MODELS,
    &seq2seq::MODELS,
    &bert::MODELS,
    &gpt2::MODELS,
    &llama::MODELS,
];

/// The net of a name.
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

/// What a net's shapes depend on.
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

/// Images, and a label for each if there is a loss.
fn images(net: &Net, sizes: Sizes) -> (Value, Option<Value>) {
    let x = net.input(vec![sizes.batch, 3, sizes.extent, sizes.extent]);
    (x, net.is_scored().then(|| net.input(vec![sizes.batch])))
}

/// The loss of a classification with its accuracy, both reported; without labels the scores.
fn classify(net: &Net, h: Value, labels: Option<&Value>) -> Value {
    let Some(labels) = labels else { return h };
    let loss = net.softmax_cross_entropy(h.clone(), labels);
    let accuracy = net.accuracy(h, labels);
    net.report(&[&loss, &accuracy]);
    loss
}
