//! Reads profiles of PipeDream's profiler: the layers of a net as measured on a GPU, as a net and its times.
//!
//! A profile is text with one line per layer, and one per edge, which starts with a tab:
//!
//! ```text
//! node2 -- Conv2d(3, 64, ...) -- forward_compute_time=2.1, backward_compute_time=3.4, activation_size=411041792.000, parameter_size=37632.000
//!     node1 -- node2
//! ```
//!
//! Times are in milliseconds and sizes in bytes, both for a whole batch. The file does not contain the batch size. The
//! maps that each layer's backward pass reads follow from its kind, as in Chainer:
//!
//! | layer | needs |
//! |---|---|
//! | convolution, linear, batch norm | its input |
//! | ReLU | its output |
//! | max pooling | both |
//! | average pooling, concatenation, sum, dropout | nothing |
//!
//! A `View` is the map that it views, and a `Size` is not a map. The time of an `Input` is that of loading data, which
//! is not part of the iteration.
//!
//! # References
//!
//! 1. D. Narayanan et al.: PipeDream: generalized pipeline parallelism for DNN training. SOSP 2019.
//!    doi:10.1145/3341301.3359646. Profiles: msr-fiddle/pipedream, `profiler/image_classification/profiles`, MIT licence.

use std::collections::BTreeMap;

use planlab_dsa::Bytes;
use planlab_files::FormatError;

use crate::schedule::EXACT;
use crate::{
    FeatureMap, Function, FunctionKind, Machine, MapId, NetError, SchedulingProblem, Times, TimesError,
    TrainingNet,
};

/// A profile of a net: its layers, and their measured times at one batch.
#[derive(Clone, Debug, PartialEq)]
pub struct PipeDream {
    batch: u64,
    layers: Vec<Layer>,
}

/// A profile that is no scheduling problem at a batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The layers do not form a net.
    #[error(transparent)]
    Net(#[from] NetError),
    /// A time is not possible.
    #[error(transparent)]
    Times(#[from] TimesError),
}

#[derive(Clone, Debug, PartialEq)]
struct Layer {
    name: String,
    role: Role,
    /// Seconds.
    forward: f64,
    backward: f64,
    /// Bytes.
    activation: u64,
    parameters: u64,
    /// Indices of the layers before it.
    inputs: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Input,
    /// The same map as its first input that is a map.
    Alias,
    /// Not a tensor.
    Number,
    Function {
        kind: FunctionKind,
        needs_input: bool,
        needs_output: bool,
    },
}

impl Role {
    fn from_layer_kind(layer: &str) -> Option<Self> {
        let function = |kind, needs_input, needs_output| Self::Function { kind, needs_input, needs_output };
        Some(match layer {
            "Input" => Self::Input,
            "View" => Self::Alias,
            "Size" => Self::Number,
            "Conv2d" => function(FunctionKind::Convolution, true, false),
            "Linear" => function(FunctionKind::FullyConnected, true, false),
            "BatchNorm2d" => function(FunctionKind::Other, true, false),
            "ReLU" => function(FunctionKind::Other, false, true),
            "MaxPool2d" => function(FunctionKind::Other, true, true),
            "Add" => function(FunctionKind::Add, false, false),
            "AvgPool2d" | "Concat" | "Dropout" => function(FunctionKind::Other, false, false),
            _ => return None,
        })
    }
}

impl PipeDream {
    /// Whether a text looks like a profile: its first line is a layer.
    #[must_use]
    pub fn is_profile(text: &str) -> bool {
        text.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| {
            line.trim_start().split_once(" -- ").is_some_and(|(node_name, _)| parse_node(node_name).is_ok())
        })
    }

    /// Reads a profile that was measured at a given batch. Errors name the file `file`.
    ///
    /// # Errors
    ///
    /// [`FormatError`] with the line: an invalid line, an unknown kind of layer, an invalid time or size, an edge from
    /// or to a missing layer, or a backward edge.
    pub fn read(file: &str, text: &str, batch: u64) -> Result<Self, FormatError> {
        let at = |line: u64| move |reason: String| FormatError::new(file, line, reason);
        if batch == 0 {
            return Err(at(1)("measured at a batch of 0".to_owned()));
        }
        let mut layers = BTreeMap::new();
        let mut edges = Vec::new();
        for (line, content) in (1..).zip(text.lines()).filter(|(_, content)| !content.trim().is_empty()) {
            if content.starts_with('\t') {
                edges.push((line, parse_edge(content.trim()).map_err(at(line))?));
                continue;
            }
            let (number, layer) = parse_layer(content.trim()).map_err(at(line))?;
            if layers.insert(number, layer).is_some() {
                return Err(at(line)(format!("node{number} is there already")));
            }
        }
        if layers.is_empty() {
            return Err(at(1)("a profile without layers".to_owned()));
        }
        let places: BTreeMap<u32, usize> = layers.keys().copied().zip(0..).collect();
        let mut layers: Vec<Layer> = layers.into_values().collect();
        for (line, (from, to)) in edges {
            let place = |node: u32| {
                places.get(&node).copied().ok_or_else(|| at(line)(format!("node{node} is no layer")))
            };
            let (source, target) = (place(from)?, place(to)?);
            if source >= target {
                return Err(at(line)(format!("node{to} reads node{from}, which is not before it")));
            }
            layers[target].inputs.push(source);
        }
        Ok(Self { batch, layers })
    }

    /// The net at a batch; sizes are proportional to the batch.
    ///
    /// # Errors
    ///
    /// [`NetError`] if the layers do not form a net.
    pub fn net_at_batch(&self, name: &str, batch: u64) -> Result<TrainingNet, NetError> {
        let mut maps = Vec::new();
        let mut functions = Vec::new();
        // For each layer, the map that represents it.
        let mut map_of: Vec<Option<MapId>> = Vec::with_capacity(self.layers.len());
        for layer in &self.layers {
            let mut inputs: Vec<MapId> = layer.inputs.iter().filter_map(|&input| map_of[input]).collect();
            inputs.dedup();
            let map = match layer.role {
                Role::Number => None,
                Role::Alias => inputs.first().copied(),
                Role::Input | Role::Function { .. } => {
                    let bytes = self.scale_bytes(layer.activation, batch);
                    maps.push(FeatureMap { name: layer.name.clone(), bytes });
                    Some(MapId::from_index(maps.len() - 1))
                }
            };
            map_of.push(map);
            if let (Some(output), Role::Function { kind, needs_input, needs_output }) = (map, layer.role) {
                let mut needs = if needs_input { inputs.clone() } else { Vec::new() };
                needs.extend(needs_output.then_some(output));
                let name = layer.name.clone();
                functions.push(Function { name, kind, inputs, output, needs, ..Function::default() });
            }
        }
        // The sum of any number of layers: what is too large has no room on any machine.
        let parameters =
            self.layers.iter().fold(0_u64, |sum, layer| sum.saturating_add(layer.parameters / 4));
        TrainingNet::new(name, batch, parameters, maps, functions)
    }

    /// The times of [`PipeDream::net_at_batch`] at a batch, proportional to the batch; those of sums come from the machine.
    ///
    /// # Errors
    ///
    /// [`TimesError`] for a net that does not come from this profile.
    pub fn times_at_batch(&self, machine: &Machine, net: &TrainingNet) -> Result<Times, TimesError> {
        let scale = net.batch() as f64 / self.batch as f64;
        let functions = || self.layers.iter().filter(|layer| matches!(layer.role, Role::Function { .. }));
        let forward = functions().map(|layer| layer.forward * scale).collect();
        let backward = functions().map(|layer| layer.backward * scale).collect();
        Times::from_measured(machine, net, forward, backward)
    }

    /// One iteration at a batch with the measured times, in the machine's memory.
    ///
    /// # Errors
    ///
    /// [`ProfileError`] if the layers do not form a net, or a time is not possible at that batch.
    pub fn problem_at_batch(
        &self,
        name: &str,
        batch: u64,
        machine: Machine,
    ) -> Result<SchedulingProblem, ProfileError> {
        let net = self.net_at_batch(name, batch)?;
        let times = self.times_at_batch(&machine, &net)?;
        Ok(SchedulingProblem::new(net, machine).with_times(times))
    }

    fn scale_bytes(&self, bytes: u64, batch: u64) -> Bytes {
        let scaled = u128::from(bytes) * u128::from(batch) / u128::from(self.batch);
        Bytes::new(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}

fn parse_node(text: &str) -> Result<u32, String> {
    let number = text.trim().strip_prefix("node").and_then(|number| number.parse().ok());
    number.ok_or_else(|| format!("`{}` is no node", text.trim()))
}

fn parse_edge(content: &str) -> Result<(u32, u32), String> {
    let (from, to) = content.split_once(" -- ").ok_or("an edge is `node1 -- node2`")?;
    Ok((parse_node(from)?, parse_node(to)?))
}

fn parse_layer(content: &str) -> Result<(u32, Layer), String> {
    let mut parts = content.splitn(2, " -- ");
    let number = parse_node(parts.next().unwrap_or_default())?;
    let rest = parts.next().unwrap_or_default();
    let (what, figures) = rest.rsplit_once(" -- ").ok_or("a layer is `node1 -- what -- figures`")?;
    let kind = what.split_once('(').map_or(what, |(kind, _)| kind).trim();
    let role = Role::from_layer_kind(kind).ok_or_else(|| format!("a layer of unknown kind `{kind}`"))?;
    let [forward, backward, activation, parameters] =
        ["forward_compute_time", "backward_compute_time", "activation_size", "parameter_size"]
            .map(|name| parse_figure(figures, name));
    let layer = Layer {
        name: format!("node{number} {kind}"),
        role,
        forward: forward? / 1e3,
        backward: backward? / 1e3,
        activation: whole_number(activation?, "activation_size")?,
        parameters: whole_number(parameters?, "parameter_size")?,
        inputs: Vec::new(),
    };
    Ok((number, layer))
}

fn parse_figure(figures: &str, name: &str) -> Result<f64, String> {
    let given = figures.split(", ").find_map(|figure| figure.trim().strip_prefix(name)?.strip_prefix('='));
    let given = given.ok_or_else(|| format!("no `{name}`"))?;
    let number = given.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("`{name}` is `{given}`, not a number 0 or above"))
}

fn whole_number(number: f64, name: &str) -> Result<u64, String> {
    if number.fract() != 0.0 || number > EXACT as f64 {
        return Err(format!("`{name}` is {number}, not a number of bytes"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just above")]
    Ok(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
node3 -- ReLU(inplace) -- forward_compute_time=2.000, backward_compute_time=3.000, activation_size=800.000, parameter_size=0.000
node1 -- Input -- forward_compute_time=99.000, backward_compute_time=0.000, activation_size=40.000, parameter_size=0.000
node2 -- Conv2d(3, 64, kernel_size=(7, 7), bias=False) -- forward_compute_time=4.000, backward_compute_time=5.000, activation_size=800.000, parameter_size=120.000
node4 -- Size(0) -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=0.000, parameter_size=0.000
node5 -- View(-1) -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=800.000, parameter_size=0.000
node6 -- Linear(in_features=2, out_features=1) -- forward_compute_time=1.000, backward_compute_time=1.000, activation_size=8.000, parameter_size=8.000
\tnode1 -- node2
\tnode2 -- node3
\tnode3 -- node4
\tnode3 -- node5
\tnode4 -- node5
\tnode5 -- node6
";

    #[test]
    fn a_profile_becomes_a_net_with_times() {
        let machine = Machine::built_in("x86-pcie3").expect("built in");
        let profile = PipeDream::read("p.txt", GOOD, 4).expect("good");
        let problem = profile.problem_at_batch("small", 8, machine).expect("a net");
        let net = &problem.net;
        let names: Vec<_> = net.maps().iter().map(|map| (&map.name[..], map.bytes.get())).collect();
        let expected =
            [("node1 Input", 80), ("node2 Conv2d", 1600), ("node3 ReLU", 1600), ("node6 Linear", 16)];
        assert_eq!(names, expected);
        assert_eq!(net.parameters(), 32);
        let needs: Vec<_> = net.retained_maps().map(MapId::index).collect();
        assert_eq!(needs, [0, 2], "the image, and the ReLU's output, which the linear layer reads too");
        assert_eq!(problem.times.forward(), [8e-3, 4e-3, 2e-3]);
        assert_eq!(problem.times.backward(), [1e-2, 6e-3, 2e-3]);
    }

    #[test]
    fn a_bad_profile_is_refused_with_line_and_reason() {
        for (from, to, reason) in [
            ("ReLU", "Swish", "1: a layer of unknown kind `Swish`"),
            ("time=4.000", "time=-4", "3: `forward_compute_time` is `-4`, not a number 0 or above"),
            ("size=120.000", "size=120.5", "3: `parameter_size` is 120.5, not a number of bytes"),
            ("activation_size=40.000, ", "", "2: no `activation_size`"),
            ("\tnode1 -- node2", "\tnode1 -- node9", "7: node9 is no layer"),
            ("\tnode1 -- node2", "\tnode3 -- node2", "7: node2 reads node3, which is not before it"),
            ("\tnode1 -- node2", "\tnode1", "7: an edge is `node1 -- node2`"),
            ("node6 --", "node5 --", "6: node5 is there already"),
            (GOOD, "", "1: a profile without layers"),
        ] {
            let refused = PipeDream::read("p.txt", &GOOD.replace(from, to), 4).expect_err(reason);
            assert_eq!(refused.to_string(), format!("p.txt:{reason}"));
        }
        assert!(PipeDream::read("p.txt", GOOD, 0).is_err());
    }

    #[test]
    fn batch_past_all_memory_is_refused() {
        let problem = |text: &str, batch| {
            let machine = Machine::built_in("x86-pcie3").expect("built in");
            PipeDream::read("p.txt", text, 1).expect("good").problem_at_batch("small", batch, machine)
        };
        let refusal = |text, batch| problem(text, batch).expect_err("refused").to_string();
        let most = (1 << 53) / 1648;
        assert!(problem(GOOD, most).is_ok());
        for batch in [most + 1, u64::MAX] {
            let text = refusal(GOOD, batch);
            let end = format!("bytes together at batch {batch}; at most 9007199254740992 are possible");
            assert!(text.ends_with(&end), "{text}");
        }
        let slow = GOOD.replace("forward_compute_time=1.000", "forward_compute_time=1e17");
        assert!(problem(&slow, 1).is_ok());
        let text = refusal(&slow, 1 << 40);
        assert_eq!(text, "forward time 2 is 1.099511627776e26, not a number of seconds from 0 to 1e18");
        let parameters = GOOD.replace("parameter_size=120.000", "parameter_size=9007199254740992.0");
        assert_eq!(problem(&parameters, 1).expect("a net").net.parameters(), (1 << 51) + 2);
    }
}
