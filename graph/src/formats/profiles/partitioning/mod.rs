//! Reads the graphs of msr-fiddle/dnn-partitioning: forward and backward nodes with times and sizes, as a measured net.
//!
//! A graph is a JSON object with `nodes` and `edges`. Latencies (`fpgaLatency`) are in milliseconds and sizes in bytes,
//! both for a whole batch, which the file does not contain. The latency on the CPU, the numbers of devices and the
//! `cost` of edges belong to the authors' machine and are not read. "FPGA" stands for any accelerator. The `layer` graphs
//! are profiles of GPUs, the `operator` graphs come from a cost model.
//!
//! # Maps
//!
//! The size of a node includes its weights in `layer` graphs; that of the edges that leave it does not, and is the size
//! of its map. The last node has no such edge: its map has the size of the gradient that enters its backward node, or
//! failing that the size of the node. What a node has above its map are parameters, of 4 bytes each.
//!
//! | forward node | becomes |
//! |---|---|
//! | takes time, or reads several maps | a function, and the map that it makes |
//! | takes no time and reads one map (an output of several, a reshape) | that map |
//! | reads nothing and takes no time, with other forward nodes in its class | parameters |
//! | reads nothing, and its backward nodes take no time | an input; its time is that of loading data |
//! | has no size, no time and reads no map (tokens) | nothing |
//!
//! An operator whose edges have less than a byte has its outputs as nodes of their own: its map has their bytes together.
//!
//! # Backward passes
//!
//! A `colorClass` pairs forward with backward nodes. The backward time of a class belongs to the functions of the class,
//! in proportion to their forward times. Other backward nodes (a loss, a sum of gradients, steps without a class) add
//! their time to the function of the first node that they read, or to the last function. So the times of a net are those
//! of its file, without the loading of data. Sums of gradients in the file come on top of those that the simulator adds.
//!
//! Edges from forward to backward nodes say which maps a backward pass needs. A file without any (`layer` graphs) does
//! not say it: then each pass needs its inputs and its output. A need that is neither an input nor the output of its
//! function is given to the function that made the map, whose backward pass comes later. An output of less than a
//! hundredth of its operator's bytes is a statistic, which belongs to the map of the operator but does not keep it.
//!
//! # References
//!
//! 1. J. Tarnawski et al.: Efficient algorithms for device placement of DNN graph operators. NeurIPS 2020.
//!    arXiv:2006.16423. Graphs: msr-fiddle/dnn-partitioning, `throughput-inputs`, MIT licence.

mod backward;
mod forward;
mod nodes;

use planlab_files::FormatError;

use super::measured::{MeasuredNet, round_up_bytes};
use crate::{Function, MapId};
use backward::BackwardPasses;
use forward::{ForwardGraph, Role};

/// Whether a text looks like such a graph: a JSON object with latencies.
pub(super) fn is_graph(text: &str) -> bool {
    text.trim_start().starts_with('{') && text.contains("\"fpgaLatency\"")
}

/// Reads a graph that was measured at a batch above 0.
pub(super) fn read_graph(file: &str, text: &str, batch: u64) -> Result<MeasuredNet, FormatError> {
    let nodes = nodes::read_nodes(file, text)?;
    if !nodes.iter().any(|node| node.is_backward) {
        let reason =
            "no node has `isBackwardNode`: this is a graph of inference, which keeps no feature maps";
        return Err(FormatError::new(file, 1, reason));
    }
    let forward = ForwardGraph::new(&nodes);
    let backward = BackwardPasses::new(&forward);
    Ok(build_net(&forward, &backward, batch))
}

fn build_net(forward: &ForwardGraph<'_>, backward: &BackwardPasses, batch: u64) -> MeasuredNet {
    let mut net = MeasuredNet::new(batch);
    let mut map_of: Vec<Option<MapId>> = Vec::new();
    for place in 0..forward.len() {
        let node = forward.node(place);
        net.add_parameters(round_up_bytes(forward.parameter_bytes(place)));
        let map = matches!(forward.role(place), Role::Input | Role::Function)
            .then(|| net.add_map(&node.name, round_up_bytes(forward.map_bytes(place)).max(1)));
        map_of.push(map);
        if let (Role::Function, Some(output)) = (forward.role(place), map) {
            let maps = |places: &[usize]| places.iter().filter_map(|&place| map_of[place]).collect();
            let inputs = maps(forward.inputs(place));
            let needs = maps(&backward.needs(place));
            let function = Function { name: node.name.clone(), inputs, output, needs, ..Function::default() };
            net.add_function(function, node.seconds, backward.seconds(place));
        }
    }
    net
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::profiles::ProfileFormat;
    use crate::formats::profiles::testing::{maps, reads};
    use crate::{Machine, SchedulingProblem};

    /// Layers: tokens, embed, a cell with an item of its outputs, the sum of that item and embed, and a head.
    const LAYERS: &str = r#"{"maxFPGAs":1,"nodes":[
{"id":1,"name":"tokens","supportedOnFpga":1,"cpuLatency":0,"fpgaLatency":0,"isBackwardNode":0,"colorClass":1,"size":0},
{"id":2,"name":"embed","supportedOnFpga":1,"fpgaLatency":1000.0,"isBackwardNode":0,"colorClass":2,"size":464.0},
{"id":3,"name":"cell","supportedOnFpga":1,"fpgaLatency":3000.0,"isBackwardNode":0,"colorClass":3,"size":180.0},
{"id":4,"name":"item","supportedOnFpga":1,"fpgaLatency":0,"isBackwardNode":0,"colorClass":4,"size":64.0},
{"id":5,"name":"sum","supportedOnFpga":1,"fpgaLatency":0,"isBackwardNode":0,"colorClass":5,"size":64.0},
{"id":6,"name":"head","supportedOnFpga":1,"fpgaLatency":2000.0,"isBackwardNode":0,"colorClass":6,"size":96.0},
{"id":11,"supportedOnFpga":1,"fpgaLatency":0,"isBackwardNode":true,"colorClass":1,"size":0},
{"id":12,"supportedOnFpga":1,"fpgaLatency":2000,"isBackwardNode":true,"colorClass":2,"size":464.0},
{"id":13,"supportedOnFpga":1,"fpgaLatency":4000,"isBackwardNode":true,"colorClass":3,"size":180.0},
{"id":14,"supportedOnFpga":1,"fpgaLatency":500,"isBackwardNode":true,"colorClass":4,"size":64.0},
{"id":15,"supportedOnFpga":1,"fpgaLatency":0,"isBackwardNode":true,"colorClass":5,"size":64.0},
{"id":16,"supportedOnFpga":1,"fpgaLatency":1000,"isBackwardNode":true,"colorClass":6,"size":96.0}],
"edges":[
{"sourceId":1,"destId":2,"cost":0,"size":0},{"sourceId":2,"destId":3,"cost":0.1,"size":64},
{"sourceId":3,"destId":4,"size":80},{"sourceId":4,"destId":5,"size":64},{"sourceId":2,"destId":5,"size":64},
{"sourceId":5,"destId":6,"size":64},{"sourceId":11,"destId":12,"size":64},{"sourceId":12,"destId":13,"size":80},
{"sourceId":13,"destId":14,"size":64},{"sourceId":14,"destId":15,"size":64},{"sourceId":15,"destId":16,"size":16}]}"#;

    /// Operators: convolution, batch norm with an output of statistics, fully connected; a loss among the backward nodes.
    const OPERATORS: &str = r#"{"nodes":[
{"id":0,"name":"weights","supportedOnFpga":true,"fpgaLatency":0,"isBackwardNode":false,"colorClass":1,"size":40},
{"id":1,"name":"conv","supportedOnFpga":true,"fpgaLatency":1000,"isBackwardNode":false,"colorClass":1,"size":6400},
{"id":2,"name":"scale","supportedOnFpga":true,"fpgaLatency":0,"isBackwardNode":false,"colorClass":2,"size":8},
{"id":3,"name":"norm","supportedOnFpga":true,"fpgaLatency":500,"isBackwardNode":false,"colorClass":2,"size":8},
{"id":4,"name":"norm out","supportedOnFpga":true,"fpgaLatency":0,"isBackwardNode":false,"colorClass":2,"size":0},
{"id":5,"name":"norm mean","supportedOnFpga":true,"fpgaLatency":0,"isBackwardNode":false,"colorClass":2,"size":0},
{"id":6,"name":"linear","supportedOnFpga":true,"fpgaLatency":1000,"isBackwardNode":false,"colorClass":3,"size":16},
{"id":7,"name":"loss","supportedOnFpga":true,"fpgaLatency":250,"isBackwardNode":true,"colorClass":9,"size":4},
{"id":8,"name":"linear grad","supportedOnFpga":true,"fpgaLatency":2000,"isBackwardNode":true,"colorClass":3,"size":6400},
{"id":9,"name":"norm grad","supportedOnFpga":true,"fpgaLatency":500,"isBackwardNode":true,"colorClass":2,"size":6400},
{"id":10,"name":"conv grad","supportedOnFpga":true,"fpgaLatency":3000,"isBackwardNode":true,"colorClass":1,"size":40},
{"id":11,"name":"sum of gradients","supportedOnFpga":true,"fpgaLatency":125,"isBackwardNode":true,"size":40}],
"edges":[
{"sourceId":0,"destId":1,"size":40},{"sourceId":1,"destId":3,"size":6400},{"sourceId":2,"destId":3,"size":8},
{"sourceId":3,"destId":4,"size":0.125},{"sourceId":3,"destId":5,"size":0.125},{"sourceId":4,"destId":6,"size":6400},
{"sourceId":6,"destId":7,"size":16},{"sourceId":7,"destId":8,"size":16},{"sourceId":4,"destId":8,"size":6400},
{"sourceId":8,"destId":9,"size":6400},{"sourceId":1,"destId":9,"size":6400},{"sourceId":5,"destId":9,"size":8},
{"sourceId":9,"destId":10,"size":6400},{"sourceId":0,"destId":10,"size":40},
{"sourceId":9,"destId":11,"size":40},{"sourceId":10,"destId":11,"size":40}]}"#;

    fn read(text: &str) -> Result<MeasuredNet, FormatError> {
        ProfileFormat::DnnPartitioning.read("g.json", text, 2)
    }

    fn problem(text: &str, batch: u64) -> SchedulingProblem {
        let machine = Machine::built_in("x86-pcie3").expect("built in");
        read(text).expect("good").problem_at_batch("small", batch, machine).expect("a net")
    }

    #[test]
    fn layers_become_a_net_that_needs_inputs_and_outputs() {
        let problem = problem(LAYERS, 4);
        assert_eq!(maps(&problem), [("embed", 128), ("cell", 160), ("sum", 128), ("head", 32)]);
        let expected =
            [(vec![], vec![0]), (vec![0], vec![0, 1]), (vec![1, 0], vec![0, 1, 2]), (vec![2], vec![2, 3])];
        assert_eq!(reads(&problem), expected);
        assert_eq!(problem.net.parameters(), 145);
        assert_eq!(problem.times.forward(), [2.0, 6.0, 0.0, 4.0]);
        assert_eq!(problem.times.backward(), [4.0, 9.0, 0.0, 2.0]);
    }

    #[test]
    fn operators_need_what_their_edges_say() {
        let problem = problem(OPERATORS, 2);
        assert_eq!(maps(&problem), [("conv", 6400), ("norm", 6408), ("linear", 16)]);
        let expected = [(vec![], vec![]), (vec![0], vec![0]), (vec![1], vec![1, 2])];
        assert_eq!(reads(&problem), expected);
        assert_eq!(problem.net.parameters(), 12);
        assert_eq!(problem.times.forward(), [1.0, 0.5, 1.0]);
        assert_eq!(problem.times.backward(), [3.0, 0.625, 2.25]);
    }

    #[test]
    fn need_of_a_strange_map_keeps_it_for_its_producer() {
        let strange = OPERATORS
            .replace(r#"{"sourceId":0,"destId":10,"size":40}"#, r#"{"sourceId":4,"destId":10,"size":6400}"#);
        assert_eq!(reads(&problem(&strange, 2))[1], (vec![0], vec![0, 1]));
    }

    #[test]
    fn functions_of_one_class_share_its_backward_time() {
        let shared = problem(&OPERATORS.replace(r#""colorClass":3"#, r#""colorClass":2"#), 2);
        let expected = [3.0, 2.625 / 3.0, 2.625 / 1.5 + 0.25];
        for (backward, expected) in shared.times.backward().iter().zip(expected) {
            assert!((backward - expected).abs() < 1e-12, "{backward} {expected}");
        }
    }

    /// A chain of `count` forward and as many backward nodes, all of one class; each backward node reads a forward one.
    fn chain_of_one_class(count: usize) -> String {
        let (mut nodes, mut edges) = (Vec::new(), Vec::new());
        for id in 0..2 * count {
            let is_backward = id >= count;
            let latency = if is_backward { 2 } else { 1 };
            nodes.push(format!(
                r#"{{"id":{id},"supportedOnFpga":1,"fpgaLatency":{latency},"isBackwardNode":{is_backward},"colorClass":1,"size":64}}"#
            ));
            let read = [id.checked_sub(1), is_backward.then(|| 2 * count - 1 - id)];
            for from in read.into_iter().flatten() {
                edges.push(format!(r#"{{"sourceId":{from},"destId":{id},"size":64}}"#));
            }
        }
        format!(r#"{{"nodes":[{}],"edges":[{}]}}"#, nodes.join(","), edges.join(","))
    }

    #[test]
    fn large_class_shares_its_needs_and_its_time() {
        let count = 20_000;
        let problem = problem(&chain_of_one_class(count), 2);
        let reads = reads(&problem);
        assert_eq!(reads.len(), count);
        assert_eq!((&reads[0], &reads[1]), (&(vec![], vec![0]), &(vec![0], vec![0, 1])));
        let last = count - 1;
        assert_eq!(reads[last], (vec![last - 1], vec![last - 1, last]));
        assert!(problem.times.backward().iter().all(|seconds| (seconds - 2e-3).abs() < 1e-12));
    }

    #[test]
    fn source_whose_class_has_no_backward_time_is_an_input() {
        let image = LAYERS.replace(
            r#""fpgaLatency":0,"isBackwardNode":0,"colorClass":1,"size":0}"#,
            r#""fpgaLatency":9000,"isBackwardNode":0,"colorClass":1,"size":32}"#,
        );
        let image = image.replace(r#""destId":2,"cost":0,"size":0"#, r#""destId":2,"cost":0,"size":32"#);
        let problem = problem(&image, 2);
        assert_eq!(maps(&problem)[..2], [("tokens", 32), ("embed", 64)]);
        assert_eq!(reads(&problem)[0], (vec![0], vec![0, 1]));
        assert_eq!(problem.times.forward(), [1.0, 3.0, 0.0, 2.0]);
    }

    #[test]
    fn a_bad_graph_is_refused_with_its_place_and_reason() {
        for (from, to, reason) in [
            (r#""size":464.0}"#, r#""size":-1}"#, "1: nodes[1]: `size` is -1.0, not a number of bytes"),
            (r#""size":464.0}"#, r#""size":1e99}"#, "1: nodes[1]: `size` is 1e99, not a number of bytes"),
            ("1000.0", "-1", "1: nodes[1]: `fpgaLatency` is -1.0, not a time in milliseconds"),
            ("1000.0", "1e22", "1: nodes[1]: `fpgaLatency` is 1e22, not a time in milliseconds"),
            (r#""id":6,"#, r#""id":2,"#, "1: nodes[5]: there is a node of id 2 already"),
            (r#""sourceId":11"#, r#""sourceId":99"#, "1: edges[6]: there is no node of id 99 (`sourceId`)"),
            (r#""destId":12"#, r#""destId":98"#, "1: edges[6]: there is no node of id 98 (`destId`)"),
            (
                r#""sourceId":11,"destId":12"#,
                r#""sourceId":11,"destId":2"#,
                "1: edges[6]: the forward node `embed` reads the backward node `node11`",
            ),
            (
                r#""sourceId":4,"destId":5"#,
                r#""sourceId":4,"destId":2"#,
                "1: nodes[1]: `embed` is in a circle of nodes that read each other",
            ),
            (
                r#""embed","supportedOnFpga":1"#,
                r#""embed","supportedOnFpga":0"#,
                "1: nodes[1]: `supportedOnFpga` is false: the node has no time on an accelerator",
            ),
        ] {
            let refused = read(&LAYERS.replace(from, to)).expect_err(reason);
            assert_eq!(refused.to_string(), format!("g.json:{reason}"));
        }
        let text = read(&LAYERS.replace(r#""id":3,"#, "")).expect_err("no id").to_string();
        assert!(text.starts_with("g.json:4: not a graph of dnn-partitioning: missing field `id`"), "{text}");
        let inference = read(&LAYERS.replace("true", "false")).expect_err("inference").to_string();
        assert!(inference.contains("a graph of inference"), "{inference}");
    }
}
