//! A net with its mode, batch, input and way of allocating: what a key names.

use std::fmt;
use std::str::FromStr;

use planlab_graph::{Graph, NetError, OrderError, liveness};

use super::chainer::{self, ChainerError};
use super::feature_maps;
use super::ideal::{self, Gradients, LowerError};
use super::net::{End, Mode, Net, Program, ShapeError};
use super::nets::{Input, Model, Sizes, find};
use super::workspace::Workspace;
use crate::did_you_mean;
use crate::formats::Trace;

/// Who decides what is requested and when it is freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Allocator {
    /// Nobody: an operation's outputs are requested when it runs, and freed after their last reader.
    #[default]
    Ideal,
    /// Chainer 3.0.0rc1, by its rules.
    Chainer,
}

impl Allocator {
    /// Its word on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ideal => "ideal",
            Self::Chainer => "chainer",
        }
    }
}

/// Why a model has no such instance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// No net of that name.
    #[error("there is no net `{name}`{}", did_you_mean(nearest))]
    UnknownNet {
        /// What was asked for.
        name: String,
        /// What may have been meant.
        nearest: Vec<&'static str>,
    },
    /// A key of another form.
    #[error(
        "`{key}` is no key of a model: model/<net>/<infer|train>/b<N>[/s<LENGTH>|/i<EXTENT>][/chainer][/ws<WORKSPACE>]"
    )]
    BadKey {
        /// The key.
        key: String,
    },
    /// A batch of nothing.
    #[error("a batch has at least one input")]
    EmptyBatch,
    /// An input or sequence of nothing.
    #[error("{net}: an input has an extent of at least 1, a sequence a length of at least 1")]
    EmptyInput {
        /// The net.
        net: &'static str,
    },
    /// An extent for a net that reads tokens, or a length for one that does not.
    #[error("{net}: its input has no {what}; it is {input}")]
    NoSuchSize {
        /// The net.
        net: &'static str,
        /// What was given.
        what: &'static str,
        /// What its input is.
        input: Input,
    },
    /// More tokens than the net has positions for.
    #[error("{net}: a sequence of {length} tokens is longer than the {limit} that it has positions for")]
    TooLong {
        /// The net.
        net: &'static str,
        /// What was asked for.
        length: u64,
        /// The longest.
        limit: u64,
    },
    /// A key that names requests without a graph.
    #[error("`{key}` names recorded rules of requests, which have no graph")]
    NoGraph {
        /// The key.
        key: String,
    },
    /// A count of the whole net that does not fit 64 bits.
    #[error("{net}: its {what} do not fit 64 bits")]
    TooLarge {
        /// The net.
        net: &'static str,
        /// What was counted.
        what: &'static str,
    },
    /// A shape that cannot be.
    #[error("{net}: {source}")]
    Shape {
        /// The net.
        net: &'static str,
        /// The first shape that cannot be.
        source: ShapeError,
    },
    /// The net has no requests by Chainer's rules.
    #[error("{net}: {source}")]
    Chainer {
        /// The net.
        net: &'static str,
        /// What has no rule.
        source: ChainerError,
    },
    /// The net has no graph.
    #[error("{net}: {source}")]
    Lower {
        /// The net.
        net: &'static str,
        /// What is too large.
        source: LowerError,
    },
    /// A net without a backward pass.
    #[error("{net}: inference keeps no feature maps: name its training")]
    NoBackward {
        /// The net.
        net: &'static str,
    },
    /// The net has no feature maps.
    #[error("{net}: {source}")]
    FeatureMaps {
        /// The net.
        net: &'static str,
        /// What is wrong with them.
        source: NetError,
    },
    /// The graph has no instance: its sizes are too large together.
    #[error("{net}: {source}")]
    Order {
        /// The net.
        net: &'static str,
        /// What is wrong with it.
        source: OrderError,
    },
}

/// One propagation of a net. Its text is its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The net.
    pub net: &'static Model,
    /// Inference or training.
    pub mode: Mode,
    /// Inputs at a time; at least 1.
    pub batch: u64,
    /// Height and width of an image. Default: the net's own.
    pub input: Option<u64>,
    /// Tokens of a sequence. Default: the net's own.
    pub sequence: Option<u64>,
    /// Whose rules. Default: the ideal ones.
    pub allocator: Allocator,
    /// The workspace of each convolution. Default: none, under Chainer's rules 8 MiB.
    pub workspace: Option<Workspace>,
}

impl Spec {
    /// A net with a batch; everything else by default.
    #[must_use]
    pub const fn new(net: &'static Model, mode: Mode, batch: u64) -> Self {
        let allocator = Allocator::Ideal;
        Self { net, mode, batch, input: None, sequence: None, allocator, workspace: None }
    }

    /// The calls of the net.
    ///
    /// # Errors
    ///
    /// [`ModelError`] for a size that the net cannot have.
    pub fn program(&self) -> Result<Program, ModelError> {
        let sizes = self.sizes()?;
        // Chainer's propagation has its loss in inference, too.
        let is_scored = self.mode == Mode::Train || self.allocator == Allocator::Chainer;
        let end = if is_scored { End::Loss } else { End::Output };
        let net = self.net.name;
        Net::record(self.mode, end, |n| (self.net.build)(n, sizes))
            .map_err(|source| ModelError::Shape { net, source })
    }

    fn sizes(&self) -> Result<Sizes, ModelError> {
        let net = self.net.name;
        let no_such = |what| ModelError::NoSuchSize { net, what, input: self.net.input };
        let (extent, sequence) = match self.net.input {
            Input::Image { extent, .. } => (self.input.unwrap_or(extent), None),
            Input::Tokens { sequence, .. } => (1, self.sequence.or(sequence)),
            Input::Noise => (1, None),
        };
        match self.net.input {
            _ if self.batch == 0 => return Err(ModelError::EmptyBatch),
            Input::Image { .. } if self.sequence.is_some() => return Err(no_such("sequence length")),
            Input::Tokens { .. } if self.input.is_some() => return Err(no_such("extent")),
            Input::Noise if self.sequence.is_some() => return Err(no_such("sequence length")),
            Input::Noise if self.input.is_some() => return Err(no_such("extent that can be chosen")),
            _ if extent == 0 || sequence == Some(0) => return Err(ModelError::EmptyInput { net }),
            Input::Tokens { limit: Some(limit), .. } => {
                if let Some(length) = sequence.filter(|&length| length > limit) {
                    return Err(ModelError::TooLong { net, length, limit });
                }
            }
            _ => {}
        }
        Ok(Sizes { batch: self.batch, extent, sequence })
    }

    /// The placement problem, with the key as its metadata `workload`.
    ///
    /// # Errors
    ///
    /// [`ModelError`] for a size that the net cannot have, sizes that are too large together, and a function for which
    /// Chainer has no rule.
    pub fn trace(&self) -> Result<Trace, ModelError> {
        let mut trace = match self.allocator {
            Allocator::Chainer => self.chainer()?,
            Allocator::Ideal => self.ideal()?,
        };
        let workspace = self.workspace().to_string();
        for (key, value) in [
            ("net", self.net.name.to_owned()),
            ("mode", self.mode.word().to_owned()),
            ("batch", self.batch.to_string()),
            ("allocator", self.allocator.word().to_owned()),
            ("convolution-workspace", workspace),
        ] {
            trace.labels.metadata.push((key.to_owned(), value));
        }
        trace.name_workload(&self.to_string());
        Ok(trace)
    }

    fn workspace(&self) -> Workspace {
        self.workspace.unwrap_or(match self.allocator {
            Allocator::Ideal => Workspace::NONE,
            Allocator::Chainer => Workspace::CHAINER,
        })
    }

    fn chainer(&self) -> Result<Trace, ModelError> {
        let settings = chainer::Settings { workspace: self.workspace() };
        let net = self.net.name;
        chainer::propagation(&self.program()?, settings).map_err(|source| ModelError::Chainer { net, source })
    }

    fn ideal(&self) -> Result<Trace, ModelError> {
        let graph = self.graph()?;
        let net = self.net.name;
        let lowered = liveness(&graph, &graph.order());
        let (instance, labels) = lowered.map_err(|source| ModelError::Order { net, source })?;
        Ok(Trace::new(instance, labels))
    }

    /// The operations with what they read and write, whatever the allocator.
    ///
    /// # Errors
    ///
    /// [`ModelError`] for a size that the net cannot have.
    pub fn graph(&self) -> Result<Graph, ModelError> {
        self.graph_with(Gradients::External)
    }

    /// As [`Spec::graph`], with the gradients of parameters kept by whom they are said to be.
    ///
    /// # Errors
    ///
    /// As [`Spec::graph`].
    pub fn graph_with(&self, gradients: Gradients) -> Result<Graph, ModelError> {
        let settings = ideal::Settings { workspace: self.workspace(), gradients };
        let net = self.net.name;
        ideal::lower(&self.program()?, settings).map_err(|source| ModelError::Lower { net, source })
    }

    /// The net in training as feature maps and functions, for schedulers, whatever the allocator.
    ///
    /// # Errors
    ///
    /// [`ModelError`] for a size that the net cannot have, and for inference, which keeps no feature map.
    pub fn feature_maps(&self) -> Result<planlab_graph::Net, ModelError> {
        let net = self.net.name;
        if self.mode != Mode::Train {
            return Err(ModelError::NoBackward { net });
        }
        feature_maps::lower(net, self.batch, &self.program()?)
            .map_err(|source| ModelError::FeatureMaps { net, source })
    }

    /// Elements of all parameters.
    ///
    /// # Errors
    ///
    /// [`ModelError`] for a size that the net cannot have.
    pub fn parameters(&self) -> Result<u64, ModelError> {
        let net = self.net.name;
        self.program()?.parameter_count().ok_or(ModelError::TooLarge { net, what: "parameters" })
    }

    /// Floating-point operations of one propagation (training: with its backward pass), two for each product with its
    /// sum. Those of convolutions and matrix products count.
    ///
    /// # Errors
    ///
    /// [`ModelError`] for a size that the net cannot have.
    pub fn flops(&self) -> Result<u64, ModelError> {
        let net = self.net.name;
        let graph = self.graph()?;
        let sum =
            graph.operations().iter().try_fold(0_u64, |sum, operation| sum.checked_add(operation.flops));
        sum.ok_or(ModelError::TooLarge { net, what: "floating-point operations" })
    }

    /// What it is, in one line.
    #[must_use]
    pub fn describe(&self) -> String {
        let mode = match self.mode {
            Mode::Infer => "inference",
            Mode::Train => "training",
        };
        let rules = match self.allocator {
            Allocator::Ideal => "operation by operation",
            Allocator::Chainer => "requests of Chainer 3.0.0rc1, by rule",
        };
        format!("{}: {mode}, batch {}; {rules}", self.net.summary, self.batch)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "model/{}/{}/b{}", self.net.name, self.mode.word(), self.batch)?;
        if let Some(sequence) = self.sequence {
            write!(f, "/s{sequence}")?;
        }
        if let Some(input) = self.input {
            write!(f, "/i{input}")?;
        }
        if self.allocator == Allocator::Chainer {
            f.write_str("/chainer")?;
        }
        match self.workspace {
            Some(workspace) => write!(f, "/ws{workspace}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Spec {
    type Err = ModelError;

    fn from_str(key: &str) -> Result<Self, ModelError> {
        let bad = || ModelError::BadKey { key: key.chars().take(200).collect() };
        let mut segments = key.strip_prefix("model/").ok_or_else(bad)?.split('/').peekable();
        let net = find(segments.next().unwrap_or_default())?;
        let mode = match segments.next() {
            Some("infer") => Mode::Infer,
            Some("train") => Mode::Train,
            _ => return Err(bad()),
        };
        let batch = segments.next().and_then(|batch| batch.strip_prefix('b')).ok_or_else(bad)?;
        let mut spec = Self::new(net, mode, batch.parse().map_err(|_| bad())?);
        let number = |text: Option<&&str>, letter: char| {
            text.and_then(|text| text.strip_prefix(letter)).and_then(|number| number.parse::<u64>().ok())
        };
        spec.sequence = number(segments.peek(), 's');
        segments.next_if(|_| spec.sequence.is_some());
        spec.input = number(segments.peek(), 'i');
        segments.next_if(|_| spec.input.is_some());
        if segments.next_if_eq(&"chainer").is_some() {
            spec.allocator = Allocator::Chainer;
        }
        if let Some(workspace) = segments.next_if(|segment| segment.starts_with("ws")) {
            spec.workspace = Some(Workspace::parse(&workspace[2..]).ok_or_else(bad)?);
        }
        // `b032` and `b+32` are other texts, and so is what is left.
        if segments.next().is_some() || spec.to_string() != key {
            return Err(bad());
        }
        spec.sizes().map(|_| spec)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::nets::models;
    use super::*;

    fn workspace() -> impl Strategy<Value = Workspace> {
        let bytes = prop_oneof![any::<u64>(), (0..1_u64 << 20).prop_map(|mebibytes| mebibytes << 20)];
        prop_oneof![
            bytes.prop_map(|bytes| Workspace::Fixed(planlab_dsa::Bytes::new(bytes))),
            any::<u64>().prop_map(|thousandths| Workspace::OutputMaps { thousandths }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(
            (net, batch, size) in (0..models().count(), 1..=u64::MAX, proptest::option::of(1..=512_u64)),
            (is_training, is_chainer) in any::<(bool, bool)>(),
            workspace in proptest::option::of(workspace()),
        ) {
            let net = models().nth(net).expect("below the count");
            let mode = if is_training { Mode::Train } else { Mode::Infer };
            let allocator = if is_chainer { Allocator::Chainer } else { Allocator::Ideal };
            let mut spec = Spec { allocator, workspace, ..Spec::new(net, mode, batch) };
            match net.input {
                Input::Image { .. } => spec.input = size,
                Input::Tokens { .. } => spec.sequence = size,
                Input::Noise => {}
            }
            prop_assert_eq!(spec.to_string().parse::<Spec>(), Ok(spec));
        }

        #[test]
        fn other_texts_are_refused(text in "model/(alexnet|bert-base)/(infer|train)/[bsiw0-9x./m+-]{0,20}") {
            if let Ok(spec) = text.parse::<Spec>() {
                prop_assert_eq!(spec.to_string(), text);
            }
        }
    }
}
