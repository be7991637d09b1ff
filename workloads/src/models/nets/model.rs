//! A net of the collection: its name, its input, its published figures and the function that builds it.

use std::fmt;

use crate::models::net::{Net, NetValue};

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

    pub(crate) const fn new(parameters: Option<u64>, flops: Option<u64>, source: &'static str) -> Self {
        Self { parameters, flops, source, differs: "" }
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
    pub(crate) build: fn(&Net, Sizes) -> NetValue,
}

impl PartialEq for Model {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Model {}

/// The sizes that a net's shapes depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) batch: u64,
    /// Height and width of images.
    pub(crate) extent: u64,
    /// Tokens of a sequence; `None`: sampled.
    pub(crate) sequence: Option<u64>,
}

pub(crate) const fn image(extent: u64) -> Input {
    Input::Image { channels: 3, extent, frames: 1 }
}
