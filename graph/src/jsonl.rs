//! Graph JSON Lines: a header object, then one object for each operation in execution order.
//!
//! ```text
//! {"planlab":"graph","version":1,"tensors":[{"tensor":"x","bytes":64,"category":"input"}]}
//! {"op":"relu","name":"r1","reads":["x"],"writes":[{"tensor":"y","bytes":64}],"inplace":[["x","y"]]}
//! ```
//!
//! The header lists the inputs (tensors that no operation makes). Where a tensor is mentioned first, in the header or in
//! `writes`, it has its size in `bytes`. Later mentions may leave out its fields, repeat them or add others; a mention
//! that contradicts an earlier one is an error. `"output":true` keeps a tensor to the end, and `"external":true` leaves its
//! memory to the caller. `"alias":"x","at":16` places a tensor in the storage of another, from byte 16 of it (without
//! `at`: 0). `workspace` (bytes), `flops`, `seconds` and `stream` (a number) are optional.
//!
//! With `"order":"any"` in the header, operations may come in any order and are sorted as by
//! [`GraphBuilder::build_in_any_order`].
//!
//! Tensors are numbered as they are written: first the inputs, as the file mentions them, then the others as operations
//! make them. So a graph that is read, written and read again is the same.

use std::collections::{BTreeMap, BTreeSet};

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

/// The order of the operations in a file.
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    external: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alias: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<u64>,
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

/// Reads a graph. Errors call the file `file`.
///
/// # Errors
///
/// [`FormatError`] with the line: text that is not JSON, an unknown field, a tensor without a size, mentions of a tensor
/// that contradict each other, or a rule of [`Graph`] that is broken.
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
    let mut graph = GraphBuilder::default();
    for declared in &reader.tensors {
        graph.tensor(reader.tensor(declared).map_err(|(line, reason)| at(line, reason))?);
    }
    for (line, raw) in raws {
        graph.operation(reader.operation(line, raw).map_err(|reason| at(line, reason))?);
    }
    let built = if order == Turns::Any { graph.build_in_any_order() } else { graph.build() };
    let graph =
        built.map_err(|error| at(reader.line_of(&error).unwrap_or(first), reader.describe(&error)))?;
    Ok(in_order_of_files(graph))
}

/// The ids of tensors in the order in which a file mentions them: inputs, then what each operation makes.
fn order_of_files(graph: &Graph) -> Vec<TensorId> {
    let all = (0..graph.tensors().len()).map(TensorId::from_index);
    let mut order: Vec<TensorId> = all.filter(|&id| graph.maker(id).is_none()).collect();
    let mut is_mentioned = vec![false; graph.tensors().len()];
    order.iter().for_each(|id| is_mentioned[id.index()] = true);
    for &id in graph.operations().iter().flat_map(|operation| &operation.writes) {
        if !std::mem::replace(&mut is_mentioned[id.index()], true) {
            order.push(id);
        }
    }
    order
}

fn in_order_of_files(graph: Graph) -> Graph {
    let order = order_of_files(&graph);
    if order.is_sorted() {
        return graph;
    }
    let mut numbers = vec![TensorId::default(); order.len()];
    order.iter().enumerate().for_each(|(index, id)| numbers[id.index()] = TensorId::from_index(index));
    let number = |id: TensorId| numbers[id.index()];
    let (tensors, operations) = graph.into_parts();
    let mut graph = GraphBuilder::default();
    for id in order {
        let tensor = &tensors[id.index()];
        let alias = tensor.alias.map(|alias| Alias { base: number(alias.base), ..alias });
        graph.tensor(Tensor { alias, ..tensor.clone() });
    }
    for mut operation in operations {
        let pairs = operation.in_place.iter_mut().flat_map(|(input, output)| [input, output]);
        operation.reads.iter_mut().chain(&mut operation.writes).chain(pairs).for_each(|id| *id = number(*id));
        graph.operation(operation);
    }
    graph.build().expect("other numbers break no rule")
}

/// What a file says about a field, and on which line it first does.
type Said<T> = Option<(u64, T)>;

/// A tensor of the file.
struct Declared {
    /// The line that mentions it first.
    line: u64,
    name: String,
    bytes: u64,
    category: Said<String>,
    output: Said<bool>,
    external: Said<bool>,
    /// The name of its base.
    alias: Said<String>,
    at: Said<u64>,
}

impl Declared {
    /// Adds what another mention says.
    fn merge(&mut self, line: u64, raw: &RawTensor) -> Result<(), String> {
        let name = &self.name;
        merge(name, "bytes", &mut Some((self.line, self.bytes)), line, raw.bytes.as_ref())?;
        merge(name, "category", &mut self.category, line, raw.category.as_ref())?;
        merge(name, "output", &mut self.output, line, raw.output.as_ref())?;
        merge(name, "external", &mut self.external, line, raw.external.as_ref())?;
        merge(name, "alias", &mut self.alias, line, raw.alias.as_ref())?;
        let at = raw.at.or(raw.alias.is_some().then_some(0));
        merge(name, "at", &mut self.at, line, at.as_ref())
    }
}

fn merge<T: Clone + PartialEq + std::fmt::Debug>(
    tensor: &str,
    field: &str,
    said: &mut Said<T>,
    line: u64,
    value: Option<&T>,
) -> Result<(), String> {
    match (said.as_ref(), value) {
        (Some((before, old)), Some(new)) if old != new => {
            Err(format!("tensor `{tensor}` has `{field}` {new:?} here, but {old:?} on line {before}"))
        }
        (None, Some(new)) => {
            *said = Some((line, new.clone()));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// What has been read, and on which lines.
#[derive(Default)]
struct Reader {
    ids: BTreeMap<String, TensorId>,
    tensors: Vec<Declared>,
    /// For each operation its line, and its name or else its kind.
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
        header.tensors.iter().try_for_each(|tensor| self.mention(line, tensor))?;
        Ok(header.order)
    }

    /// Reads an operation, and enters the tensors that it writes.
    fn declare(&mut self, line: u64, text: &str) -> Result<RawOperation, String> {
        let raw: RawOperation =
            serde_json::from_str(text).map_err(|error| format!("not an operation: {error}"))?;
        raw.writes.iter().try_for_each(|tensor| self.mention(line, tensor))?;
        Ok(raw)
    }

    fn mention(&mut self, line: u64, raw: &RawTensor) -> Result<(), String> {
        let name = &raw.tensor;
        if name.is_empty() {
            return Err("a tensor has an empty name".to_owned());
        }
        if let Some(id) = self.ids.get(name) {
            return self.tensors[id.index()].merge(line, raw);
        }
        let bytes = match raw.bytes {
            None => return Err(format!("tensor `{name}` has no `bytes` where it is first mentioned")),
            Some(0) => return Err(format!("tensor `{name}` has 0 bytes")),
            Some(bytes) => bytes,
        };
        self.ids.insert(name.clone(), TensorId::from_index(self.tensors.len()));
        let (category, output, external, alias, at) = (None, None, None, None, None);
        let mut declared =
            Declared { line, name: name.clone(), bytes, category, output, external, alias, at };
        declared.merge(line, raw)?;
        self.tensors.push(declared);
        Ok(())
    }

    fn tensor(&self, declared: &Declared) -> Result<Tensor, (u64, String)> {
        let name = declared.name.clone();
        let alias = match (&declared.alias, declared.at) {
            (None, None) => None,
            (None, Some((line, _))) => {
                return Err((line, format!("tensor `{name}` has `at`, but no `alias`")));
            }
            (Some((line, base)), at) => {
                let base = self.known(base).map_err(|reason| (*line, reason))?;
                Some(Alias { base, offset: Bytes::new(at.map_or(0, |(_, at)| at)) })
            }
        };
        Ok(Tensor {
            category: declared.category.as_ref().map(|(_, category)| category.clone().into()),
            output: declared.output.is_some_and(|(_, output)| output),
            external: declared.external.is_some_and(|(_, external)| external),
            alias,
            ..Tensor::new(name, Bytes::new(declared.bytes))
        })
    }

    fn operation(&mut self, line: u64, raw: RawOperation) -> Result<Operation, String> {
        let ids = |names: &mut dyn Iterator<Item = &String>| {
            names.map(|name| self.known(name)).collect::<Result<Vec<_>, _>>()
        };
        let reads = ids(&mut raw.reads.iter())?;
        let writes = ids(&mut raw.writes.iter().map(|tensor| &tensor.tensor))?;
        let pair = |(input, output): &(String, String)| Ok((self.known(input)?, self.known(output)?));
        let in_place = raw.in_place.iter().map(pair).collect::<Result<_, String>>()?;
        let called = if raw.name.is_empty() { raw.op.clone() } else { raw.name.clone() };
        self.operations.push((line, called));
        Ok(Operation {
            op: raw.op.into(),
            name: raw.name,
            reads,
            writes,
            in_place,
            workspace: Bytes::new(raw.workspace),
            flops: raw.flops,
            seconds: raw.seconds,
            stream: Stream::new(raw.stream),
        })
    }

    fn known(&self, name: &str) -> Result<TensorId, String> {
        let unknown =
            || format!("tensor `{name}` is unknown: it is not in the header, and no operation writes it");
        self.ids.get(name).copied().ok_or_else(unknown)
    }

    fn line_of(&self, error: &GraphError) -> Option<u64> {
        let op = match error {
            GraphError::UnknownTensor { op, .. }
            | GraphError::ReadBeforeWrite { op, .. }
            | GraphError::BadInPlace { op, .. }
            | GraphError::BadTime { op, .. }
            | GraphError::TwoWriters { second: op, .. }
            | GraphError::OverlappingWriters { second: op, .. }
            | GraphError::WorkspaceOverflow { op } => op,
            GraphError::Cycle { operations } => operations.first()?,
            GraphError::ZeroBytes { tensor }
            | GraphError::BadAlias { tensor, .. }
            | GraphError::TotalOverflow { tensor } => return Some(self.tensors.get(tensor.index())?.line),
            GraphError::TooManyDependencies { .. } => return None,
        };
        Some(self.operations.get(op.index())?.0)
    }

    /// The error with the names of tensors, and the names and lines of operations.
    fn describe(&self, error: &GraphError) -> String {
        let tensor = |id: &TensorId| format!("tensor `{}`", self.tensors[id.index()].name);
        let op = |id: &OpId| {
            let (line, name) = &self.operations[id.index()];
            format!("`{name}` (line {line})")
        };
        match error {
            GraphError::ReadBeforeWrite { op: reader, tensor: read, maker } => {
                format!("{} reads {} before {} makes it", op(reader), tensor(read), op(maker))
            }
            GraphError::TwoWriters { tensor: written, first, second } => format!(
                "{} and {} both write {} without reading it; only one operation may make a tensor",
                op(first),
                op(second),
                tensor(written)
            ),
            GraphError::OverlappingWriters { tensor: written, other, first, second } => format!(
                "{} writes {}, which shares bytes with {} that {} writes; it must read those bytes",
                op(second),
                tensor(written),
                tensor(other),
                op(first)
            ),
            GraphError::Cycle { operations } => {
                let names: Vec<String> = operations.iter().chain(operations.first()).map(op).collect();
                format!("operations wait for each other in a cycle: {}", names.join(" -> "))
            }
            GraphError::BadAlias { tensor: alias, base, reason } => {
                format!("{} cannot lie in {}: {reason}", tensor(alias), tensor(base))
            }
            GraphError::BadInPlace { op: at, input, output, reason } => {
                format!("{} cannot write {} over {}: {reason}", op(at), tensor(output), tensor(input))
            }
            GraphError::BadTime { op: at, seconds } => {
                format!("{} takes {seconds} seconds; a time is finite and not negative", op(at))
            }
            GraphError::TotalOverflow { tensor: last } => {
                format!("{} brings the total size of the tensors above 2^64 - 1 bytes", tensor(last))
            }
            GraphError::WorkspaceOverflow { op: last } => {
                format!("the workspace of {} brings the total size above 2^64 - 1 bytes", op(last))
            }
            other => other.to_string(),
        }
    }
}

/// Writes a graph. The number of a tensor is appended to its name if it has none or shares it with another tensor.
///
/// # Panics
///
/// Never: JSON has a form for all parts, since the numbers of a graph are finite.
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
            output: (tensor.output && first).then_some(true),
            external: (tensor.external && first).then_some(true),
            alias: tensor.alias.filter(|_| first).map(|alias| names[alias.base.index()].clone()),
            at: tensor.alias.map(|alias| alias.offset.get()).filter(|&at| first && at > 0),
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

/// A name for each tensor; no two are the same.
fn names(graph: &Graph) -> Vec<String> {
    let mut times = BTreeMap::<&str, u32>::new();
    graph.tensors().iter().for_each(|tensor| *times.entry(&tensor.name).or_default() += 1);
    let is_own = |name: &str| !name.is_empty() && times[name] == 1;
    let all = graph.tensors().iter().map(|tensor| tensor.name.as_str());
    let mut taken: BTreeSet<String> = all.filter(|name| is_own(name)).map(str::to_owned).collect();
    let mut name = |(index, tensor): (usize, &Tensor)| {
        if is_own(&tensor.name) {
            return tensor.name.clone();
        }
        let mut name = format!("{}#{index}", tensor.name);
        while !taken.insert(name.clone()) {
            name.push('#');
        }
        name
    };
    graph.tensors().iter().enumerate().map(&mut name).collect()
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
        assert!(error.to_string().contains(" before "), "{error}");
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
            (&format!("{header}\n{{\"op\":\"f\",\"seconds\":-1.0}}"), "bad:2: `f` (line 2) takes -1 seconds"),
            (
                &format!("{header}\n{}\n{}", op("a", &["x"], &[]), op("b", &[], &["x"])),
                "bad:2: `a` (line 2) reads tensor `x` before `b` (line 3) makes it",
            ),
            (
                &format!("{header}\n{}\n{}", op("a", &[], &["x"]), op("b", &[], &["x"])),
                "bad:3: `a` (line 2) and `b` (line 3) both write tensor `x`",
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
                "bad:2: tensor `v` has `at`, but no `alias`",
            ),
            (
                &format!("{header}\n{}\n{}", op("a", &[], &["x"]), huge),
                "bad:3: tensor `huge` brings the total size of the tensors above",
            ),
        ] {
            let error = read_jsonl("bad", text).expect_err(text);
            assert!(error.to_string().starts_with(place), "{error}\n{text}");
        }
    }

    #[test]
    fn mentions_of_a_tensor_are_merged() {
        let text = r#"{"planlab":"graph","version":1,"tensors":[{"tensor":"x","bytes":64},{"tensor":"w","bytes":64}]}
{"op":"update","reads":["x"],"writes":[{"tensor":"x","category":"state","output":true,"bytes":64}]}
{"op":"view","reads":["w"],"writes":[{"tensor":"v","bytes":8}]}
{"op":"update","reads":["v","x"],"writes":[{"tensor":"v","alias":"w","at":8},{"tensor":"x","output":true}]}
"#;
        let graph = read_jsonl("merged.jsonl", text).expect("valid");
        let x = Tensor::new("x", Bytes::new(64)).with_category("state").as_output();
        let v = Tensor::new("v", Bytes::new(8)).within(TensorId::from_index(1), Bytes::new(8));
        assert_eq!((&graph.tensors()[0], &graph.tensors()[2]), (&x, &v));
    }

    #[test]
    fn a_mention_that_contradicts_an_earlier_one_is_an_error() {
        let of = |first: &str, later: &str| {
            let text = format!(
                "{{\"planlab\":\"graph\",\"version\":1,\"tensors\":[{{\"tensor\":\"y\",\"bytes\":64}},{{\"tensor\":\"x\",\
                 \"bytes\":4,{first}}}]}}\n\n{{\"op\":\"f\",\"reads\":[\"x\"],\"writes\":[{{\"tensor\":\"x\",{later}}}]}}"
            );
            read_jsonl("bad", &text).map_err(|error| error.to_string())
        };
        let alias = r#""alias":"y""#;
        for (first, later, told) in [
            (alias, r#""bytes":8"#, "`bytes` 8 here, but 4 on line 1"),
            (r#""category":"a""#, r#""category":"b""#, "`category` \"b\" here, but \"a\" on line 1"),
            (r#""output":false"#, r#""output":true"#, "`output` true here, but false on line 1"),
            (r#""external":true"#, r#""external":false"#, "`external` false here, but true on line 1"),
            (alias, r#""alias":"x""#, "`alias` \"x\" here, but \"y\" on line 1"),
            (alias, r#""at":4"#, "`at` 4 here, but 0 on line 1"),
        ] {
            let error = of(first, later).expect_err(told);
            assert_eq!(error, format!("bad:3: tensor `x` has {told}"));
        }
        assert!(of(alias, r#""at":0,"bytes":4,"output":false"#).is_ok());
    }

    #[test]
    fn every_tensor_has_a_name_of_its_own() {
        let mut graph = Graph::builder();
        for name in ["", "#0", "a", "a", "a#2", "#0#", ""] {
            graph.tensor(Tensor::new(name, Bytes::new(1)));
        }
        let graph = graph.build().expect("valid");
        assert_eq!(names(&graph), ["#0##", "#0", "a#2#", "a#3", "a#2", "#0#", "#6"]);
        assert_eq!(read_jsonl("again", &write_jsonl(&graph)).expect("valid").tensors().len(), 7);
    }

    #[test]
    fn a_graph_that_is_read_written_and_read_is_the_same() {
        // An output in the header, an input that is first mentioned by its update, and a time with 17 digits.
        let text = r#"{"planlab":"graph","version":1,"order":"any","tensors":[{"tensor":"y","bytes":4,"output":true}]}
{"op":"g","reads":["v"],"writes":[{"tensor":"y"}],"seconds":7.2057594037927933e-5,"inplace":[["v","y"]]}
{"op":"f","reads":["x"],"writes":[{"tensor":"v","bytes":4,"alias":"x","at":4}],"seconds":1.7976931348623157e308}
{"op":"update","reads":["x"],"writes":[{"tensor":"x","bytes":8}],"seconds":0.30000000000000004}
"#;
        let graph = read_jsonl("any", text).expect("valid");
        let written = write_jsonl(&graph);
        assert_eq!(read_jsonl("again", &written).expect("valid"), graph, "{written}");
        let names: Vec<&str> = graph.tensors().iter().map(|tensor| tensor.name.as_str()).collect();
        assert_eq!(names, ["x", "v", "y"]);
    }

    #[test]
    fn overlapping_writers_are_named() {
        let text = r#"{"planlab":"graph","version":1,"tensors":[{"tensor":"x","bytes":8}]}
{"op":"f","writes":[{"tensor":"a","bytes":5,"alias":"x"}]}
{"op":"g","writes":[{"tensor":"b","bytes":4,"alias":"x","at":4}]}
"#;
        let error = read_jsonl("bad", text).expect_err("byte 4 has two writers").to_string();
        assert!(
            error.starts_with("bad:3: `g` (line 3) writes tensor `b`, which shares bytes with"),
            "{error}"
        );
    }
}
