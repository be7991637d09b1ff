//! Reads profiles of PipeDream's profiler: the layers of a net as measured on a GPU, as a net and its times.
//!
//! A profile is text with one line per layer, and one per edge, which starts with a tab:
//!
//! ```text
//! node2 -- Conv2d(3, 64, ...) -- forward_compute_time=2.1, backward_compute_time=3.4, activation_size=411041792.000, parameter_size=37632.000
//!     node1 -- node2
//! ```
//!
//! Times are in milliseconds and sizes in bytes, both for a whole batch. The file does not contain the batch size. A
//! layer with several outputs has a list of sizes, `[64.0; 8.0]`: they are one map. The maps that each layer's backward
//! pass reads follow from its kind, as in Chainer:
//!
//! | layer | needs |
//! |---|---|
//! | convolution, linear, embedding, batch norm | its input |
//! | ReLU | its output |
//! | max pooling | both |
//! | average pooling, concatenation, sum, dropout | nothing |
//! | any other (recurrent cells, modules of a user) | both |
//!
//! An unknown layer needs both because that never keeps too little: a backward pass reads nothing else. Its times and
//! sizes are measured, so only what it keeps is a guess, and a schedule for it needs at least the memory of the true net.
//!
//! A `View` and a `__getitem__` (an item of a layer with several outputs, a slice) are the map that they read. The time
//! of an `Input` is that of loading data, which is not part of the iteration. The profiler does not measure all sizes:
//!
//! - A layer with size 0 that reads a map has the size of that map (the last layers of some nets).
//! - One with size 0 that reads no map and takes no time is a number or an index (`Size`, tokens), and not a map.
//! - A sum whose inputs differ in size from its output is an ordinary function: its gradient cannot be shared.
//!
//! # References
//!
//! 1. D. Narayanan et al.: PipeDream: generalized pipeline parallelism for DNN training. SOSP 2019.
//!    doi:10.1145/3341301.3359646. Profiles: msr-fiddle/pipedream, `profiler/*/profiles`, MIT licence.

use std::collections::BTreeMap;

use planlab_files::FormatError;

use super::measured::{MeasuredNet, distinct, is_size, round_up_bytes};
use crate::{Function, FunctionKind, MapId};

#[derive(Clone, Debug)]
struct Layer {
    /// Its line in the file.
    line: u64,
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
    View,
    /// A number or an index.
    WithoutMap,
    Function {
        kind: FunctionKind,
        needs_input: bool,
        needs_output: bool,
    },
}

impl Role {
    fn from_layer_kind(layer: &str) -> Self {
        let function = |kind, needs_input, needs_output| Self::Function { kind, needs_input, needs_output };
        match layer {
            "View" | "__getitem__" => Self::View,
            "Size" => Self::WithoutMap,
            "Conv2d" => function(FunctionKind::Convolution, true, false),
            "Linear" => function(FunctionKind::FullyConnected, true, false),
            "BatchNorm2d" | "Embedding" => function(FunctionKind::Other, true, false),
            "ReLU" => function(FunctionKind::Other, false, true),
            "Add" => function(FunctionKind::Add, false, false),
            "AvgPool2d" | "Concat" | "Dropout" => function(FunctionKind::Other, false, false),
            // `Input`, or `Input0`, `Input1` of a net with several.
            _ if layer.trim_end_matches(|letter: char| letter.is_ascii_digit()) == "Input" => Self::Input,
            // Max pooling, and what nobody knows.
            _ => function(FunctionKind::Other, true, true),
        }
    }
}

/// Whether a text looks like a profile: its first line is a layer.
pub(super) fn is_profile(text: &str) -> bool {
    text.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| {
        line.trim_start().split_once(" -- ").is_some_and(|(node_name, _)| parse_node(node_name).is_ok())
    })
}

/// Reads a profile that was measured at a batch above 0.
pub(super) fn read_profile(file: &str, text: &str, batch: u64) -> Result<MeasuredNet, FormatError> {
    let at = |line: u64| move |reason: String| FormatError::new(file, line, reason);
    let mut layers = BTreeMap::new();
    let mut edges = Vec::new();
    for (line, content) in (1..).zip(text.lines()).filter(|(_, content)| !content.trim().is_empty()) {
        if content.starts_with('\t') {
            edges.push((line, parse_edge(content.trim()).map_err(at(line))?));
            continue;
        }
        let (number, layer) = parse_layer(line, content.trim()).map_err(at(line))?;
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
        let place =
            |node: u32| places.get(&node).copied().ok_or_else(|| at(line)(format!("node{node} is no layer")));
        let (source, target) = (place(from)?, place(to)?);
        if source >= target {
            return Err(at(line)(format!("node{to} reads node{from}, which is not before it")));
        }
        layers[target].inputs.push(source);
    }
    mark_layers_without_maps(&mut layers);
    if let Some(layer) = find_layer_without_size(&layers) {
        let reason = format!("`{}` has `activation_size` 0, and reads no map whose size it has", layer.name);
        return Err(at(layer.line)(reason));
    }
    Ok(build_net(&layers, batch))
}

/// Finds the layers that read no map, and that have neither a size nor a time.
fn mark_layers_without_maps(layers: &mut [Layer]) {
    let mut has_map = Vec::with_capacity(layers.len());
    for layer in layers {
        let reads_map = layer.inputs.iter().any(|&input| has_map[input]);
        let is_empty = match layer.role {
            Role::View | Role::WithoutMap => true,
            Role::Input => layer.activation == 0,
            Role::Function { .. } => layer.activation == 0 && layer.forward + layer.backward == 0.0,
        };
        if is_empty && !reads_map {
            layer.role = Role::WithoutMap;
        }
        has_map.push(layer.role != Role::WithoutMap);
    }
}

/// The first layer with a map of 0 bytes.
fn find_layer_without_size(layers: &[Layer]) -> Option<&Layer> {
    let has_map = |&input: &usize| layers[input].role != Role::WithoutMap;
    layers.iter().find(|layer| {
        layer.activation == 0
            && match layer.role {
                Role::View | Role::WithoutMap => false,
                Role::Input => true,
                Role::Function { .. } => !layer.inputs.iter().any(has_map),
            }
    })
}

fn build_net(layers: &[Layer], batch: u64) -> MeasuredNet {
    let mut net = MeasuredNet::new(batch);
    // For each layer, the map that represents it.
    let mut map_of: Vec<Option<MapId>> = Vec::with_capacity(layers.len());
    for layer in layers {
        net.add_parameters(layer.parameters);
        let inputs = distinct(layer.inputs.iter().filter_map(|&input| map_of[input]));
        map_of.push(match layer.role {
            Role::WithoutMap => None,
            Role::View => inputs.first().copied(),
            Role::Input => Some(net.add_map(&layer.name, layer.activation)),
            Role::Function { kind, needs_input, needs_output } => {
                let bytes = match (layer.activation, inputs.first()) {
                    (0, Some(&first)) => net.map_bytes(first),
                    (measured, _) => measured,
                };
                let output = net.add_map(&layer.name, bytes);
                let is_sum = inputs.iter().all(|&input| net.map_bytes(input) == bytes);
                let kind = if kind == FunctionKind::Add && !is_sum { FunctionKind::Other } else { kind };
                let mut needs = if needs_input { inputs.clone() } else { Vec::new() };
                needs.extend(needs_output.then_some(output));
                let name = layer.name.clone();
                let function = Function { name, kind, inputs, output, needs, ..Function::default() };
                net.add_function(function, layer.forward, layer.backward);
                Some(output)
            }
        });
    }
    net
}

fn parse_node(text: &str) -> Result<u32, String> {
    let number = text.trim().strip_prefix("node").and_then(|number| number.parse().ok());
    number.ok_or_else(|| format!("`{}` is no node", text.trim()))
}

fn parse_edge(content: &str) -> Result<(u32, u32), String> {
    let (from, to) = content.split_once(" -- ").ok_or("an edge is `node1 -- node2`")?;
    Ok((parse_node(from)?, parse_node(to)?))
}

fn parse_layer(line: u64, content: &str) -> Result<(u32, Layer), String> {
    let mut parts = content.splitn(2, " -- ");
    let number = parse_node(parts.next().unwrap_or_default())?;
    let rest = parts.next().unwrap_or_default();
    let (what, figures) = rest.rsplit_once(" -- ").ok_or("a layer is `node1 -- what -- figures`")?;
    let kind = what.split_once('(').map_or(what, |(kind, _)| kind).trim();
    let seconds = |name| Ok::<_, String>(parse_number(find_figure(figures, name)?, name)? / 1e3);
    let layer = Layer {
        line,
        name: format!("node{number} {kind}"),
        role: Role::from_layer_kind(kind),
        forward: seconds("forward_compute_time")?,
        backward: seconds("backward_compute_time")?,
        activation: parse_sizes(find_figure(figures, "activation_size")?, "activation_size")?,
        parameters: parse_bytes(find_figure(figures, "parameter_size")?, "parameter_size")?,
        inputs: Vec::new(),
    };
    Ok((number, layer))
}

fn find_figure<'t>(figures: &'t str, name: &str) -> Result<&'t str, String> {
    let given = figures.split(", ").find_map(|figure| figure.trim().strip_prefix(name)?.strip_prefix('='));
    given.ok_or_else(|| format!("no `{name}`"))
}

fn parse_number(given: &str, name: &str) -> Result<f64, String> {
    let number = given.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("`{name}` is `{given}`, not a number 0 or above"))
}

fn parse_bytes(given: &str, name: &str) -> Result<u64, String> {
    let number = parse_number(given, name)?;
    if number.fract() != 0.0 || !is_size(number) {
        return Err(format!("`{name}` is `{given}`, not a number of bytes"));
    }
    Ok(round_up_bytes(number))
}

/// The size of a layer, which is the sum of a list if it has several outputs.
fn parse_sizes(given: &str, name: &str) -> Result<u64, String> {
    let Some(list) = given.strip_prefix('[').and_then(|list| list.strip_suffix(']')) else {
        return parse_bytes(given, name);
    };
    let mut sizes = list.split(';').map(|size| parse_bytes(size.trim(), name));
    sizes.try_fold(0_u64, |sum, size| Ok(sum.saturating_add(size?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::profiles::testing::{maps, reads};
    use crate::formats::profiles::{ProfileError, ProfileFormat};
    use crate::{Machine, SchedulingProblem};

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

    fn read(text: &str, batch: u64) -> Result<MeasuredNet, FormatError> {
        ProfileFormat::PipeDream.read("p.txt", text, batch)
    }

    fn problem(text: &str, measured: u64, batch: u64) -> Result<SchedulingProblem, ProfileError> {
        let machine = Machine::built_in("x86-pcie3").expect("built in");
        read(text, measured).expect("good").problem_at_batch("small", batch, machine)
    }

    #[test]
    fn a_profile_becomes_a_net_with_times() {
        let problem = problem(GOOD, 4, 8).expect("a net");
        let net = &problem.net;
        let expected =
            [("node1 Input", 80), ("node2 Conv2d", 1600), ("node3 ReLU", 1600), ("node6 Linear", 16)];
        assert_eq!(maps(&problem), expected);
        assert_eq!(net.parameters(), 32);
        let needs: Vec<_> = net.retained_maps().map(MapId::index).collect();
        assert_eq!(needs, [0, 2], "the image, and the ReLU's output, which the linear layer reads too");
        assert_eq!(problem.times.forward(), [8e-3, 4e-3, 2e-3]);
        assert_eq!(problem.times.backward(), [1e-2, 6e-3, 2e-3]);
    }

    #[test]
    fn a_bad_profile_is_refused_with_line_and_reason() {
        for (from, to, reason) in [
            ("time=4.000", "time=-4", "3: `forward_compute_time` is `-4`, not a number 0 or above"),
            ("size=120.000", "size=120.5", "3: `parameter_size` is `120.5`, not a number of bytes"),
            ("size=40.000", "size=[8.0; -4]", "2: `activation_size` is `-4`, not a number 0 or above"),
            ("size=40.000", "size=[8.0; 1e99]", "2: `activation_size` is `1e99`, not a number of bytes"),
            ("activation_size=40.000, ", "", "2: no `activation_size`"),
            ("\tnode1 -- node2", "\tnode1 -- node9", "7: node9 is no layer"),
            ("\tnode1 -- node2", "\tnode3 -- node2", "7: node2 reads node3, which is not before it"),
            ("\tnode1 -- node2", "\tnode1", "7: an edge is `node1 -- node2`"),
            ("node6 --", "node5 --", "6: node5 is there already"),
            (GOOD, "", "1: a profile without layers"),
        ] {
            let refused = read(&GOOD.replace(from, to), 4).expect_err(reason);
            assert_eq!(refused.to_string(), format!("p.txt:{reason}"));
        }
        assert_eq!(read(GOOD, 0).expect_err("no batch").to_string(), "p.txt:1: measured at a batch of 0");
    }

    #[test]
    fn batch_past_all_memory_is_refused() {
        let refusal = |text, batch| problem(text, 1, batch).expect_err("refused").to_string();
        let most = (1 << 53) / 1648;
        assert!(problem(GOOD, 1, most).is_ok());
        for batch in [most + 1, u64::MAX] {
            let text = refusal(GOOD, batch);
            let end = format!("bytes together at batch {batch}; at most 9007199254740992 are possible");
            assert!(text.ends_with(&end), "{text}");
        }
        let slow = GOOD.replace("forward_compute_time=1.000", "forward_compute_time=1e17");
        assert!(problem(&slow, 1, 1).is_ok());
        let text = refusal(&slow, 1 << 40);
        assert_eq!(text, "forward time 2 is 1.099511627776e26, not a number of seconds from 0 to 1e18");
        let parameters = GOOD.replace("parameter_size=120.000", "parameter_size=9007199254740992.0");
        assert_eq!(problem(&parameters, 1, 1).expect("a net").net.parameters(), (1 << 51) + 2);
    }

    #[test]
    fn map_keeps_a_byte_at_a_small_batch() {
        let problem = problem(GOOD, 512, 1).expect("a net");
        let expected = [("node1 Input", 1), ("node2 Conv2d", 1), ("node3 ReLU", 1), ("node6 Linear", 1)];
        assert_eq!(maps(&problem), expected);
    }

    /// A recurrent net: its profiler measures neither tokens nor the initial state, and a cell has several outputs.
    const RECURRENT: &str = "\
node1 -- Input0 -- forward_compute_time=9.000, backward_compute_time=0.000, activation_size=0.0, parameter_size=0.000
node2 -- Embedding(100, 4) -- forward_compute_time=1.000, backward_compute_time=2.000, activation_size=64.0, parameter_size=1600.000
node3 -- hidden -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=0.0, parameter_size=0.000
node4 -- __getitem__(0) -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=0.0, parameter_size=0.000
node5 -- LSTM(4, 4, (drop): Dropout(p=0)) -- forward_compute_time=3.000, backward_compute_time=4.000, activation_size=[64.0; 8.0; 8.0], parameter_size=320.000
node6 -- __getitem__(0) -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=64.0, parameter_size=0.000
node7 -- __getitem__(1) -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=8.0, parameter_size=0.000
node8 -- Add -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=64.0, parameter_size=0.000
node9 -- Swish -- forward_compute_time=1.000, backward_compute_time=1.000, activation_size=0.0, parameter_size=0.000
\tnode1 -- node2
\tnode3 -- node4
\tnode2 -- node5
\tnode4 -- node5
\tnode5 -- node6
\tnode5 -- node7
\tnode2 -- node8
\tnode6 -- node8
\tnode7 -- node8
\tnode8 -- node9
";

    #[test]
    fn layers_of_unknown_kind_need_inputs_and_output() {
        let problem = problem(RECURRENT, 2, 2).expect("a net");
        let expected = [("node2 Embedding", 64), ("node5 LSTM", 80), ("node8 Add", 64), ("node9 Swish", 64)];
        assert_eq!(maps(&problem), expected);
        let expected = [(vec![], vec![]), (vec![0], vec![0, 1]), (vec![0, 1], vec![]), (vec![2], vec![2, 3])];
        assert_eq!(reads(&problem), expected);
        assert!(problem.net.functions().iter().all(|function| function.kind == FunctionKind::Other));
        assert_eq!(problem.net.parameters(), 480);
        assert_eq!(problem.times.forward(), [1e-3, 3e-3, 0.0, 1e-3]);
        assert_eq!(problem.times.backward(), [2e-3, 4e-3, 0.0, 1e-3]);
    }

    #[test]
    fn layer_with_a_time_but_without_a_size_or_input_is_refused() {
        let slow = RECURRENT.replace("hidden -- forward_compute_time=0", "hidden -- forward_compute_time=1");
        let refused = read(&slow, 2).expect_err("refused");
        let reason = "`node3 hidden` has `activation_size` 0, and reads no map whose size it has";
        assert_eq!(refused.to_string(), format!("p.txt:3: {reason}"));
    }
}
