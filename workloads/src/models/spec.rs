//! The content of a key: a net with its mode, batch size, input size and allocation rules.

use std::fmt;
use std::str::FromStr;

use planlab_graph::{Dependencies, Graph, Lowered, NetError, OpId, OrderError, Storage, lower_graph};

use super::chainer::{self, ChainerError};
use super::feature_maps;
use super::ideal::{self, LowerError};
use super::net::{End, Mode, Net, Program, ShapeError};
use super::nets::model::{Input, Model, Sizes};
use super::nets::models;
use super::workspace::Workspace;
use crate::formats::Trace;
use crate::synthetic::dice::Dice;
use crate::{did_you_mean, nearest};

planlab_dsa::named_enum! {
    /// The rules by which memory is requested and freed.
    #[derive(Default)]
    pub enum Allocator {
        /// No framework's rules: outputs are requested when their operation runs, and freed after their last reader.
        #[default]
        Ideal = "ideal",
        /// The rules of Chainer 3.0.0rc1.
        Chainer = "chainer",
    }
}

/// Why a key or a [`Spec`] has no instance.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// There is no net with this name.
    #[error("there is no net `{name}`{}", did_you_mean(nearest))]
    UnknownNet { name: String, nearest: Vec<&'static str> },
    /// The key does not have the form of a model's key.
    #[error(
        "`{key}` is not a model key; expected model/<net>/<infer|train>/b<N>[/s<LENGTH>|/i<EXTENT>][/chainer][/ws<WORKSPACE>][/order<K>]"
    )]
    BadKey { key: String },
    /// The batch size is 0.
    #[error("the batch size must be at least 1")]
    EmptyBatch,
    /// The input size or sequence length is 0.
    #[error("{net}: the input size and the sequence length must be at least 1")]
    EmptyInput { net: &'static str },
    /// The net's input has no such size: an image size for tokens, or a sequence length for images.
    #[error("{net} has no {what}; its input is {input}")]
    NoSuchSize { net: &'static str, what: &'static str, input: Input },
    /// The sequence is longer than the net's position table.
    #[error("{net}: a sequence of {length} tokens is too long; the net has {limit} positions")]
    TooLong { net: &'static str, length: u64, limit: u64 },
    /// The key names an iteration of Chainer's example, which has no graph.
    #[error("`{key}` is a sequence of requests and has no graph")]
    NoGraph { key: String },
    /// A total of the net does not fit 64 bits.
    #[error("{net}: its {what} do not fit 64 bits")]
    TooLarge { net: &'static str, what: &'static str },
    /// The net does not accept an input of this size.
    #[error("{net}: {source}")]
    Shape { net: &'static str, source: ShapeError },
    /// Chainer's rules do not cover the net.
    #[error("{net}: {source}")]
    Chainer { net: &'static str, source: ChainerError },
    /// The net cannot be lowered to a graph.
    #[error("{net}: {source}")]
    Lower { net: &'static str, source: LowerError },
    /// A net without a backward pass.
    #[error("{net}: inference keeps no feature maps: name its training")]
    NoBackward { net: &'static str },
    /// The net has no feature maps.
    #[error("{net}: {source}")]
    FeatureMaps { net: &'static str, source: NetError },
    /// The graph has no instance: the sum of its sizes does not fit 64 bits.
    #[error("{net}: {source}")]
    Order { net: &'static str, source: OrderError },
}

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

/// One propagation of a net. It is printed and parsed as its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The net.
    pub net: &'static Model,
    /// Inference or training.
    pub mode: Mode,
    /// The batch size; at least 1.
    pub batch: u64,
    /// Height and width of an image. Default: those of the net.
    pub input: Option<u64>,
    /// Tokens of a sequence. Default: that of the net.
    pub sequence: Option<u64>,
    /// The allocation rules. Default: ideal.
    pub allocator: Allocator,
    /// The workspace of each convolution. Default: none; with Chainer's rules 8 MiB.
    pub workspace: Option<Workspace>,
    /// Operations run in a legal order that is drawn with this seed. Default: in the order of the net.
    pub order: Option<u64>,
}

impl Spec {
    /// A net with a mode and a batch size, and defaults for everything else.
    #[must_use]
    pub const fn new(net: &'static Model, mode: Mode, batch: u64) -> Self {
        let allocator = Allocator::Ideal;
        Self { net, mode, batch, input: None, sequence: None, allocator, workspace: None, order: None }
    }

    /// The recorded run of the net.
    ///
    /// # Errors
    ///
    /// [`ModelError`] for a size that the net does not accept.
    pub fn record_program(&self) -> Result<Program, ModelError> {
        let sizes = self.input_sizes()?;
        // Chainer's propagation has its loss in inference, too.
        let is_scored = self.mode == Mode::Train || self.allocator == Allocator::Chainer;
        let end = if is_scored { End::Loss } else { End::Output };
        let net = self.net.name;
        Net::record_run(self.mode, end, |n| (self.net.build)(n, sizes))
            .map_err(|source| ModelError::Shape { net, source })
    }

    fn input_sizes(&self) -> Result<Sizes, ModelError> {
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
            Input::Tokens { .. } if self.input.is_some() => return Err(no_such("input size")),
            Input::Noise if self.sequence.is_some() => return Err(no_such("sequence length")),
            Input::Noise if self.input.is_some() => return Err(no_such("input size")),
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

    /// The placement problem; the metadata `workload` is the key.
    ///
    /// # Errors
    ///
    /// [`ModelError`] for a size that the net does not accept, for totals that do not fit 64 bits, and for a function
    /// that Chainer's rules do not cover.
    pub fn build_trace(&self) -> Result<Trace, ModelError> {
        let mut trace = match self.allocator {
            Allocator::Chainer => self.chainer_trace()?,
            Allocator::Ideal => self.ideal_trace()?,
        };
        let workspace = self.workspace_rule().to_string();
        for (key, value) in [
            ("net", self.net.name.to_owned()),
            ("mode", self.mode.to_string()),
            ("batch", self.batch.to_string()),
            ("allocator", self.allocator.to_string()),
            ("convolution-workspace", workspace),
        ] {
            trace.labels.metadata.push((key.to_owned(), value));
        }
        trace.name_workload(&self.to_string());
        Ok(trace)
    }

    fn workspace_rule(&self) -> Workspace {
        self.workspace.unwrap_or(match self.allocator {
            Allocator::Ideal => Workspace::NONE,
            Allocator::Chainer => Workspace::CHAINER,
        })
    }

    fn chainer_trace(&self) -> Result<Trace, ModelError> {
        let net = self.net.name;
        chainer::play_propagation(&self.record_program()?, self.workspace_rule())
            .map_err(|source| ModelError::Chainer { net, source })
    }

    fn ideal_trace(&self) -> Result<Trace, ModelError> {
        let graph = self.build_graph()?;
        let net = self.net.name;
        let order = self.order.map_or_else(|| graph.operation_order(), |seed| self.drawn_order(&graph, seed));
        let mut lowered = lower_graph(&graph, &order).map_err(|source| ModelError::Order { net, source })?;
        let makers = requesting_operations(&graph, &order, &lowered);
        for (label, op) in lowered.labels.buffers.iter_mut().zip(makers) {
            // The number and the kind, `12:convolution`: the same in every order.
            label.op = op.map(|op| format!("{}:{}", op.index(), graph.operations()[op.index()].op));
        }
        Ok(Trace::new(lowered.instance, lowered.labels))
    }

    /// A legal order. Each next operation is drawn from those that are ready; the same on every machine.
    fn drawn_order(&self, graph: &Graph, seed: u64) -> Vec<OpId> {
        let net = Self { order: None, ..*self };
        let mut dice = Dice::new(seed, &format!("order/{net}"));
        let draw = |ready: usize| usize::try_from(dice.below(ready as u64)).expect("below a length");
        Dependencies::from_tensors(graph).order_by(draw)
    }

    /// The graph of operations. It does not depend on the allocation rules, except that a net under Chainer's rules
    /// computes its loss in inference as well.
    ///
    /// # Errors
    ///
    /// [`ModelError`] for a size that the net does not accept.
    pub fn build_graph(&self) -> Result<Graph, ModelError> {
        let net = self.net.name;
        ideal::lower_program(&self.record_program()?, self.workspace_rule())
            .map_err(|source| ModelError::Lower { net, source })
    }

    /// The net in training as feature maps and functions, for schedulers, whatever the allocator.
    ///
    /// # Errors
    ///
    /// [`ModelError`] for a size that the net does not accept, and for inference, which keeps no feature map.
    pub fn feature_maps(&self) -> Result<planlab_graph::TrainingNet, ModelError> {
        let net = self.net.name;
        if self.mode != Mode::Train {
            return Err(ModelError::NoBackward { net });
        }
        feature_maps::lower_program(net, self.batch, &self.record_program()?)
            .map_err(|source| ModelError::FeatureMaps { net, source })
    }

    /// The number of elements of all parameters.
    pub fn parameter_count(&self) -> Result<u64, ModelError> {
        let net = self.net.name;
        self.record_program()?.parameter_count().ok_or(ModelError::TooLarge { net, what: "parameters" })
    }

    /// FLOPs of one propagation (in training with the backward pass), two for each multiply-add. Only convolutions and
    /// matrix products count.
    pub fn count_flops(&self) -> Result<u64, ModelError> {
        let net = self.net.name;
        let graph = self.build_graph()?;
        let sum =
            graph.operations().iter().try_fold(0_u64, |sum, operation| sum.checked_add(operation.flops));
        sum.ok_or(ModelError::TooLarge { net, what: "floating-point operations" })
    }

    /// A description of one line.
    #[must_use]
    pub fn describe(&self) -> String {
        let mode = match self.mode {
            Mode::Infer => "inference",
            Mode::Train => "training",
        };
        let rules = match self.allocator {
            Allocator::Ideal => "operation by operation",
            Allocator::Chainer => "requests by the rules of Chainer 3.0.0rc1",
        };
        let order =
            self.order.map_or(String::new(), |seed| format!(", in a legal order drawn with seed {seed}"));
        format!("{}: {mode}, batch {}; {rules}{order}", self.net.summary, self.batch)
    }
}

/// The operation that requests each buffer: the first in the order that uses it, or the one whose workspace it is.
/// `None` for buffers that exist from the start.
fn requesting_operations(graph: &Graph, order: &[OpId], lowered: &Lowered) -> Vec<Option<OpId>> {
    let mut turns = vec![0; order.len()];
    order.iter().enumerate().for_each(|(turn, op)| turns[op.index()] = turn);
    let first = |storage: &Storage| {
        let users = storage.users.iter().copied().filter(|_| !storage.from_start);
        users.min_by_key(|op| turns[op.index()])
    };
    let mut makers: Vec<Option<OpId>> = lowered.storages.iter().map(first).collect();
    makers.resize(lowered.instance.len(), None);
    for (op, workspace) in graph.operation_order().into_iter().zip(&lowered.workspace_of) {
        workspace.iter().for_each(|buffer| makers[buffer.index()] = Some(op));
    }
    makers
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "model/{}/{}/b{}", self.net.name, self.mode, self.batch)?;
        if let Some(sequence) = self.sequence {
            write!(f, "/s{sequence}")?;
        }
        if let Some(input) = self.input {
            write!(f, "/i{input}")?;
        }
        if self.allocator == Allocator::Chainer {
            f.write_str("/chainer")?;
        }
        if let Some(workspace) = self.workspace {
            write!(f, "/ws{workspace}")?;
        }
        match self.order {
            Some(order) => write!(f, "/order{order}"),
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
        let mode = segments.next().and_then(|word| Mode::ALL.into_iter().find(|mode| mode.name() == word));
        let mode = mode.ok_or_else(bad)?;
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
        if let Some(order) = segments.next_if(|segment| segment.starts_with("order")) {
            spec.order = Some(order[5..].parse().map_err(|_| bad())?);
        }
        if spec.order.is_some() && spec.allocator == Allocator::Chainer {
            return Err(ModelError::NoGraph { key: key.to_owned() });
        }
        // Refuses `b032`, `b+32` and anything after the last segment.
        if segments.next().is_some() || spec.to_string() != key {
            return Err(bad());
        }
        spec.input_sizes().map(|_| spec)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
            order in proptest::option::of(any::<u64>()),
        ) {
            let net = models().nth(net).expect("below the count");
            let mode = if is_training { Mode::Train } else { Mode::Infer };
            let allocator = if is_chainer { Allocator::Chainer } else { Allocator::Ideal };
            let order = order.filter(|_| !is_chainer);
            let mut spec = Spec { allocator, workspace, order, ..Spec::new(net, mode, batch) };
            match net.input {
                Input::Image { .. } => spec.input = size,
                Input::Tokens { .. } => spec.sequence = size,
                Input::Noise => {}
            }
            prop_assert_eq!(spec.to_string().parse::<Spec>(), Ok(spec));
        }

        #[test]
        fn a_drawn_order_asks_for_the_same_by_the_same_operations(seed in 0..50_u64) {
            let plain: Spec = "model/squeezenet1-0/train/b1".parse().expect("a net");
            let drawn = Spec { order: Some(seed), ..plain };
            let asked = |spec: &Spec| {
                let trace = spec.build_trace().expect("a legal order");
                let buffers = trace.instance.buffers().iter().zip(&trace.labels.buffers);
                let mut asked: Vec<_> = buffers.map(|(buffer, label)| (label.op.clone(), buffer.size)).collect();
                asked.sort_unstable();
                asked
            };
            prop_assert_eq!(asked(&plain), asked(&drawn));
        }

        #[test]
        fn other_texts_are_refused(text in "model/(alexnet|bert-base)/(infer|train)/[bsiw0-9x./m+-]{0,20}") {
            if let Ok(spec) = text.parse::<Spec>() {
                prop_assert_eq!(spec.to_string(), text);
            }
        }
    }
}
