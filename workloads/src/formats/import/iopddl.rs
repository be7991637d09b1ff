//! Problems of the contest on intra-operator parallelism (ASPLOS 2025), as JSON: nodes with a life and a choice of
//! strategies, and each needs some bytes. The trace has a buffer for each node, as large as its least usage.
//!
//! # References
//!
//! 1. Google, `iopddl/iopddl.h` and `iopddl.cc`: intervals are half-open, usages are listed beside costs.

use serde::Deserialize;

use super::gather::{FoundBuffer, TraceGatherer};
use super::{Framework, Imported, Input, Reader};
use crate::formats::error::of_json;
use crate::formats::{FormatError, ReadOptions};

pub(crate) const READER: Reader = Reader {
    key: "iopddl",
    title: "a problem of the IOPDDL contest (JSON): the least usage of each node",
    endings: &[],
    has_lines: true,
    looks_like,
    read: read_iopddl,
};

/// An object whose first key is `problem`.
fn looks_like(start: &[u8]) -> bool {
    let start = start.strip_prefix("\u{feff}".as_bytes()).unwrap_or(start).trim_ascii_start();
    let key = start.strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    key.is_some_and(|key| key.starts_with(b"\"problem\""))
}

#[derive(Deserialize)]
struct File {
    problem: Problem,
}

#[derive(Deserialize)]
struct Problem {
    #[serde(default)]
    name: String,
    nodes: Nodes,
    usage_limit: Option<u64>,
}

#[derive(Deserialize)]
struct Nodes {
    intervals: Vec<(u64, u64)>,
    usages: Vec<Vec<u64>>,
}

fn read_iopddl(input: Input<'_>, options: &ReadOptions) -> Result<Imported, FormatError> {
    let file = input.file_name().to_owned();
    let text = input.read_text()?;
    let File { problem } = serde_json::from_str(&text).map_err(|error| of_json(&file, &error))?;
    let Nodes { intervals, usages } = problem.nodes;
    if intervals.len() != usages.len() {
        let reason = format!("{} nodes have intervals, but {} have usages", intervals.len(), usages.len());
        return Err(FormatError::new(&file, 1, reason));
    }
    let mut gather = TraceGatherer::new(&file, options);
    gather.set_metadata("problem", problem.name.clone());
    problem.usage_limit.iter().for_each(|limit| gather.set_metadata("usage_limit", limit.to_string()));
    for (node, ((start, end), usages)) in intervals.into_iter().zip(usages).enumerate() {
        let bad = |reason: &str| FormatError::new(&file, 1, format!("node {node} {reason}"));
        if start > end {
            return Err(bad(&format!("begins at {start} and ends at {end}")));
        }
        let size = usages.into_iter().min().ok_or_else(|| bad("has no strategy"))?;
        gather.append_buffer(FoundBuffer {
            name: node.to_string(),
            start,
            end,
            size,
            ..FoundBuffer::default()
        });
    }
    let mut dropped = Vec::new();
    let name = if problem.name.is_empty() { "problem".to_owned() } else { problem.name };
    let part = gather.build_part(name, Framework::new("IOPDDL"), &mut dropped)?;
    Ok(Imported { parts: vec![part], dropped, ..Imported::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::import::testing::{lives, read};

    fn problem(text: &str) -> Result<Imported, FormatError> {
        read("problem.json", text)
    }

    #[test]
    fn a_node_is_a_buffer_of_its_least_usage() {
        let text = r#"{ "problem": { "name": "small", "edges": {"nodes": [[0, 1]], "costs": [[1, 2]]},
            "nodes": { "intervals": [[30, 70], [40, 70], [5, 5], [1, 9]], "costs": [[15], [55, 65], [1], [1]],
            "usages": [[10], [25, 20], [7], [0, 3]] }, "usage_limit": 50 } }"#;
        let imported = problem(text).expect("valid");
        let trace = &imported.parts[0].trace;
        assert_eq!(lives(trace), [("0", (30, 70), 10), ("1", (40, 70), 20)]);
        assert_eq!(trace.labels.meta_value("usage_limit"), Some("50"));
        assert_eq!(imported.dropped.len(), 2);
    }

    #[test]
    fn problems_that_are_none_are_refused() {
        let error = |text: &str| problem(text).expect_err("bad").to_string();
        let nodes = |nodes: &str| format!("{{\"problem\":{{\"nodes\":{{{nodes}}}}}}}");
        assert!(error("{\"problem\": {}}").starts_with("problem.json:1: missing field `nodes`"));
        assert!(error("{\"problem\":\n {\"nodes\":").starts_with("problem.json:2: EOF"));
        // What was not expected may be as long as the file.
        let limit = format!("{{\"problem\":{{\"usage_limit\":\"{}\"", "a".repeat(100_000));
        assert!(error(&limit).len() < 200, "{}", error(&limit).len());
        assert!(error(&limit).starts_with("problem.json:1: invalid type: string \"aaa"));
        for (text, reason) in [
            ("\"intervals\":[[0,1]],\"usages\":[]", "1 nodes have intervals, but 0 have usages"),
            ("\"intervals\":[[0,1]],\"usages\":[[]]", "node 0 has no strategy"),
            ("\"intervals\":[[2,1]],\"usages\":[[4]]", "node 0 begins at 2 and ends at 1"),
        ] {
            assert_eq!(error(&nodes(text)), format!("problem.json:1: {reason}"));
        }
    }
}
