//! Graph JSON Lines: a header object, then one object for each operation in execution order.
//!
//! ```text
//! {"planlab":"graph","version":1,"tensors":[{"tensor":"x","bytes":64,"category":"input"}]}
//! {"op":"relu","name":"r1","reads":["x"],"writes":[{"tensor":"y","bytes":64}],"inplace":[["x","y"]]}
//! ```
//!
//! The header lists the inputs (tensors that no operation makes). The first `writes` of a tensor says how
//! large it is; a later one only names it. `"output":true` keeps a tensor to the end, `"external":true` leaves it
//! to the caller. `"alias":"x","at":16` puts a tensor into the storage of another, from its byte 16 on (without
//! `at`: 0). `workspace` (bytes), `flops`, `seconds` and `stream` (a number) are optional.
//!
//! `"order":"any"` in the header allows operations in any order; they are sorted when they are read.

use std::collections::BTreeMap;

use planlab_dsa::{Bytes, Stream};
use planlab_files::FormatError;
use serde::{Deserialize, Serialize};

use crate::{Alias, Graph, GraphBuilder, GraphError, OpId, Operation, Tensor, TensorId};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Header {
    planlab: String,
    version: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    order: Turns,
    #[serde(default)]
    tensors: Vec<RawTensor>,
}

/// In which order the operations of a file stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Turns {
    #[default]
    Execution,
    Any,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RawTensor {
    tensor: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    output: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    external: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alias: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    at: u64,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RawOperation {
    op: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(default)]
    reads: Vec<String>,
    #[serde(default)]
    writes: Vec<RawTensor>,
    #[serde(default, rename = "inplace", skip_serializing_if = "Vec::is_empty")]
    in_place: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "is_default")]
    workspace: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    flops: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "is_default")]
    stream: u32,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads a graph. `file` is what errors call it.
///
/// # Errors
///
/// [`FormatError`] with the line: not JSON, a field that is not known, a tensor that nothing says the size of, a rule
/// of [`Graph`] that is broken.
pub fn read_jsonl(file: &str, text: &str) -> Result<Graph, FormatError> {
    let at = |line: u64, reason: String| FormatError::new(file, line, reason);
    let mut lines = (1..).zip(text.lines()).filter(|(_, text)| !text.trim_ascii().is_empty());
    let Some((first, header)) = lines.next() else {
        return Err(at(1, "the file is empty: there is no header object".to_owned()));
    };
    let mut reader = Reader::default();
    let order = reader.header(first, header).map_err(|reason| at(first, reason))?;
    let mut raws = Vec::new();
    for (line, text) in lines {
        raws.push((line, reader.declare(line, text).map_err(|reason| at(line, reason))?));
    }
    reader.lay_aliases().map_err(|(line, reason)| at(line, reason))?;
    for (line, raw) in raws {
        reader.operation(line, raw).map_err(|reason| at(line, reason))?;
    }
    let graph = reader.graph.clone();
    let built = if order == Turns::Any { graph.build_in_any_order() } else { graph.build() };
    built.map_err(|error| at(reader.line_of(&error).unwrap_or(first), reader.describe(&error)))
}

/// A tensor as the file has it first.
struct Declared {
    line: u64,
    name: String,
    /// The name of its base, and the offset there.
    base: Option<(String, u64)>,
}

/// What is read so far, and on which lines.
#[derive(Default)]
struct Reader {
    graph: GraphBuilder,
    ids: BTreeMap<String, TensorId>,
    tensors: Vec<Declared>,
    /// By operation: its line, and its name or else its kind.
    operations: Vec<(u64, String)>,
}

impl Reader {
    fn header(&mut self, line: u64, text: &str) -> Result<Turns, String> {
        let header: Header = serde_json::from_str(text).map_err(|error| format!("not a header: {error}"))?;
        if header.planlab != "graph" || header.version != 1 {
            return Err(format!(
                "a `{}` of version {}, not a graph of version 1",
                header.planlab, header.version
            ));
        }
        header.tensors.iter().try_for_each(|tensor| self.written(line, tensor))?;
        Ok(header.order)
    }

    /// Reads an operation, and enters what it writes.
    fn declare(&mut self, line: u64, text: &str) -> Result<RawOperation, String> {
        let raw: RawOperation =
            serde_json::from_str(text).map_err(|error| format!("not an operation: {error}"))?;
        raw.writes.iter().try_for_each(|tensor| self.written(line, tensor))?;
        Ok(raw)
    }

    fn written(&mut self, line: u64, raw: &RawTensor) -> Result<(), String> {
        let name = &raw.tensor;
        if let Some(&id) = self.ids.get(name) {
            let before = self.graph.bytes(id).get();
            return match raw.bytes {
                Some(bytes) if bytes != before => {
                    Err(format!("tensor `{name}` has {bytes} bytes here, {before} before"))
                }
                _ => Ok(()),
            };
        }
        let bytes = match raw.bytes {
            None => return Err(format!("tensor `{name}` has no bytes where it is written first")),
            Some(0) => return Err(format!("tensor `{name}` has 0 bytes")),
            Some(bytes) => Bytes::new(bytes),
        };
        if raw.alias.is_none() && raw.at != 0 {
            return Err(format!("tensor `{name}` has an `at`, but no `alias` that it is in"));
        }
        let mut tensor = Tensor::new(name.clone(), bytes);
        tensor.category = raw.category.clone().map(Into::into);
        (tensor.output, tensor.external) = (raw.output, raw.external);
        self.ids.insert(name.clone(), self.graph.tensor(tensor));
        let base = raw.alias.clone().map(|base| (base, raw.at));
        self.tensors.push(Declared { line, name: name.clone(), base });
        Ok(())
    }

    fn lay_aliases(&mut self) -> Result<(), (u64, String)> {
        for (index, Declared { line, base, .. }) in self.tensors.iter().enumerate() {
            let Some((base, offset)) = base else { continue };
            let base = self.known(base).map_err(|reason| (*line, reason))?;
            let alias = Alias { base, offset: Bytes::new(*offset) };
            self.graph.lay(TensorId::from_index(index), alias);
        }
        Ok(())
    }

    fn operation(&mut self, line: u64, raw: RawOperation) -> Result<(), String> {
        let ids = |names: &mut dyn Iterator<Item = &String>| {
            names.map(|name| self.known(name)).collect::<Result<Vec<_>, _>>()
        };
        let reads = ids(&mut raw.reads.iter())?;
        let writes = ids(&mut raw.writes.iter().map(|tensor| &tensor.tensor))?;
        let pair = |(input, output): &(String, String)| Ok((self.known(input)?, self.known(output)?));
        let in_place = raw.in_place.iter().map(pair).collect::<Result<_, String>>()?;
        let called = if raw.name.is_empty() { raw.op.clone() } else { raw.name.clone() };
        self.operations.push((line, called));
        self.graph.operation(Operation {
            op: raw.op.into(),
            name: raw.name,
            reads,
            writes,
            in_place,
            workspace: Bytes::new(raw.workspace),
            flops: raw.flops,
            seconds: raw.seconds,
            stream: Stream::new(raw.stream),
        });
        Ok(())
    }

    fn known(&self, name: &str) -> Result<TensorId, String> {
        let unknown =
            || format!("tensor `{name}` is unknown: no operation writes it, and it is not in the header");
        self.ids.get(name).copied().ok_or_else(unknown)
    }

    fn line_of(&self, error: &GraphError) -> Option<u64> {
        let op = match error {
            GraphError::UnknownTensor { op, .. }
            | GraphError::ReadBeforeWrite { op, .. }
            | GraphError::BadInPlace { op, .. }
            | GraphError::BadTime { op, .. }
            | GraphError::TwoWriters { second: op, .. }
            | GraphError::WorkspaceOverflow { op } => op,
            GraphError::Cycle { operations } => operations.first()?,
            GraphError::ZeroBytes { tensor }
            | GraphError::BadAlias { tensor, .. }
            | GraphError::TotalOverflow { tensor } => return Some(self.tensors.get(tensor.index())?.line),
        };
        Some(self.operations.get(op.index())?.0)
    }

    /// The error with names and lines, where it speaks of several parts.
    fn describe(&self, error: &GraphError) -> String {
        let tensor = |id: &TensorId| format!("tensor `{}`", self.tensors[id.index()].name);
        let op = |id: &OpId| {
            let (line, name) = &self.operations[id.index()];
            format!("`{name}` (line {line})")
        };
        match error {
            GraphError::ReadBeforeWrite { op: reader, tensor: read, maker } => {
                format!("{} reads {}, which {} makes only later", op(reader), tensor(read), op(maker))
            }
            GraphError::TwoWriters { tensor: written, first, second } => format!(
                "{} is written by {} and {}; only one may write it unread",
                tensor(written),
                op(first),
                op(second)
            ),
            GraphError::Cycle { operations } => {
                let names: Vec<String> = operations.iter().chain(operations.first()).map(op).collect();
                format!("operations wait for each other in a cycle: {}", names.join(" -> "))
            }
            GraphError::BadAlias { tensor: alias, base, reason } => {
                format!("{} cannot lie in {}: {reason}", tensor(alias), tensor(base))
            }
            GraphError::TotalOverflow { tensor: last } => {
                format!("{}: with it the tensors sum to more than 2^64 - 1 bytes", tensor(last))
            }
            other => other.to_string(),
        }
    }
}

/// Writes a graph. A tensor without a name, or with one that another has, is called by its number.
///
/// # Panics
///
/// Never: all parts can be written as JSON, since a graph holds no number that is not finite.
#[must_use]
pub fn write_jsonl(graph: &Graph) -> String {
    let names = names(graph);
    let mut said = vec![false; graph.tensors().len()];
    let mut raw = |id: TensorId| {
        let tensor = &graph.tensors()[id.index()];
        let first = !std::mem::replace(&mut said[id.index()], true);
        RawTensor {
            tensor: names[id.index()].clone(),
            bytes: first.then_some(tensor.bytes.get()),
            category: tensor.category.clone().filter(|_| first).map(Into::into),
            output: tensor.output && first,
            external: tensor.external && first,
            alias: tensor.alias.filter(|_| first).map(|alias| names[alias.base.index()].clone()),
            at: tensor.alias.filter(|_| first).map_or(0, |alias| alias.offset.get()),
        }
    };
    let all = (0..graph.tensors().len()).map(TensorId::from_index);
    let inputs = all.filter(|&id| graph.maker(id).is_none()).map(&mut raw).collect();
    let order = Turns::default();
    let mut out = json(&Header { planlab: "graph".to_owned(), version: 1, order, tensors: inputs });
    let name = |id: &TensorId| names[id.index()].clone();
    for operation in graph.operations() {
        out.push_str(&json(&RawOperation {
            op: operation.op.clone().into_owned(),
            name: operation.name.clone(),
            reads: operation.reads.iter().map(name).collect(),
            writes: operation.writes.iter().copied().map(&mut raw).collect(),
            in_place: operation.in_place.iter().map(|(input, output)| (name(input), name(output))).collect(),
            workspace: operation.workspace.get(),
            flops: operation.flops,
            seconds: operation.seconds,
            stream: operation.stream.get(),
        }));
    }
    out
}

fn json(value: &impl Serialize) -> String {
    let mut line = serde_json::to_string(value).expect("plain data");
    line.push('\n');
    line
}

fn names(graph: &Graph) -> Vec<String> {
    let mut times = BTreeMap::<&str, u32>::new();
    graph.tensors().iter().for_each(|tensor| *times.entry(&tensor.name).or_default() += 1);
    let name = |(index, tensor): (usize, &Tensor)| match tensor.name.as_str() {
        "" => format!("#{index}"),
        name if times[name] > 1 => format!("{name}#{index}"),
        name => name.to_owned(),
    };
    graph.tensors().iter().enumerate().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"{"planlab":"graph","version":1,"tensors":[{"tensor":"x","bytes":64,"category":"input"}]}
{"op":"relu","name":"r1","reads":["x"],"writes":[{"tensor":"y","bytes":64}],"inplace":[["x","y"]]}
{"op":"gemm","reads":["y"],"writes":[{"tensor":"z","bytes":32,"output":true,"external":true}],"workspace":8,"flops":100,"seconds":0.5}
"#;

    #[test]
    fn a_graph_comes_back_as_it_was() {
        let graph = read_jsonl("two.jsonl", TWO).expect("valid");
        assert_eq!(graph.operations().len(), 2);
        assert_eq!(write_jsonl(&graph), TWO);
    }

    #[test]
    fn aliases_and_streams_come_back() {
        let text = r#"{"planlab":"graph","version":1,"tensors":[{"tensor":"x","bytes":64}]}
{"op":"split","reads":["x"],"writes":[{"tensor":"a","bytes":32,"alias":"x"},{"tensor":"b","bytes":32,"alias":"x","at":32}]}
{"op":"relu","reads":["b"],"writes":[{"tensor":"y","bytes":32}],"stream":1}
"#;
        let graph = read_jsonl("views.jsonl", text).expect("valid");
        assert_eq!(write_jsonl(&graph), text);
        assert_eq!(graph.place(TensorId::from_index(2)).offset, Bytes::new(32));
        assert_eq!(graph.operations()[1].stream, Stream::new(1));
    }

    #[test]
    fn operations_in_any_order_are_sorted() {
        let (header, operations) = TWO.split_once('\n').expect("lines");
        let lines: Vec<&str> = operations.lines().rev().collect();
        let any = header.replace("\"version\":1", "\"version\":1,\"order\":\"any\"");
        let graph = read_jsonl("any.jsonl", &format!("{any}\n{}", lines.join("\n"))).expect("valid");
        assert_eq!(write_jsonl(&graph), TWO);
        let error =
            read_jsonl("two.jsonl", &format!("{header}\n{}", lines.join("\n"))).expect_err("no order");
        assert!(error.to_string().contains("makes only later"), "{error}");
    }

    #[test]
    fn errors_name_the_line() {
        let header = r#"{"planlab":"graph","version":1}"#;
        let any = r#"{"planlab":"graph","version":1,"order":"any"}"#;
        let huge = r#"{"op":"h","writes":[{"tensor":"huge","bytes":18446744073709551615}]}"#;
        let op = |name: &str, reads: &[&str], writes: &[&str]| {
            let writes: Vec<String> =
                writes.iter().map(|name| format!(r#"{{"tensor":"{name}","bytes":4}}"#)).collect();
            format!(r#"{{"op":"f","name":"{name}","reads":{reads:?},"writes":[{}]}}"#, writes.join(","))
        };
        for (text, place) in [
            ("", "bad:1: the file is empty"),
            (r#"{"planlab":"plan","version":1}"#, "bad:1: a `plan` of version 1"),
            (&format!("{header}\n\n{{\"op\":\"f\",\"reads\":[\"x\"]}}"), "bad:3: tensor `x` is unknown"),
            (&format!("{header}\n{{\"op\":\"f\",\"colour\":1}}"), "bad:2: not an operation: unknown field"),
            (
                &format!("{header}\n{{\"op\":\"f\",\"writes\":[{{\"tensor\":\"x\",\"bytes\":-1}}]}}"),
                "bad:2: not an",
            ),
            (
                &format!("{header}\n{{\"op\":\"f\",\"writes\":[{{\"tensor\":\"x\",\"bytes\":0}}]}}"),
                "bad:2: tensor `x`",
            ),
            (&format!("{header}\n{{\"op\":\"f\",\"seconds\":-1.0}}"), "bad:2: operation 0 takes -1 seconds"),
            (
                &format!("{header}\n{}\n{}", op("a", &["x"], &[]), op("b", &[], &["x"])),
                "bad:2: `a` (line 2) reads tensor `x`, which `b` (line 3) makes only later",
            ),
            (
                &format!("{header}\n{}\n{}", op("a", &[], &["x"]), op("b", &[], &["x"])),
                "bad:3: tensor `x` is written by `a` (line 2) and `b` (line 3)",
            ),
            (
                &format!("{any}\n{}\n\n{}", op("a", &["y"], &["x"]), op("b", &["x"], &["y"])),
                "bad:2: operations wait for each other in a cycle: `a` (line 2) -> `b` (line 4) -> `a` (line 2)",
            ),
            (
                &format!(
                    "{header}\n{{\"op\":\"f\",\"writes\":[{}]}}",
                    r#"{"tensor":"v","bytes":4,"alias":"w"}"#
                ),
                "bad:2: tensor `w` is unknown",
            ),
            (
                &format!("{header}\n{{\"op\":\"f\",\"writes\":[{{\"tensor\":\"v\",\"bytes\":4,\"at\":4}}]}}"),
                "bad:2: tensor `v` has an `at`, but no `alias`",
            ),
            (
                &format!("{header}\n{}\n{}", op("a", &[], &["x"]), huge),
                "bad:3: tensor `huge`: with it the tensors sum to more than",
            ),
        ] {
            let error = read_jsonl("bad", text).expect_err(text);
            assert!(error.to_string().starts_with(place), "{error}\n{text}");
        }
    }
}
