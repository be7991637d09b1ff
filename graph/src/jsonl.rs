//! Graph JSON Lines: a header object, then one object for each operation in execution order.
//!
//! ```text
//! {"planlab":"graph","version":1,"tensors":[{"tensor":"x","bytes":64,"category":"input"}]}
//! {"op":"relu","name":"r1","reads":["x"],"writes":[{"tensor":"y","bytes":64}],"inplace":[["x","y"]]}
//! ```
//!
//! The header lists the inputs (tensors that no operation makes). The first `writes` of a tensor says how
//! large it is; a later one only names it. `"output":true` keeps a tensor to the end, `"external":true` leaves it
//! to the caller. `workspace` (bytes), `flops` and `seconds` are optional.

use std::collections::BTreeMap;

use planlab_dsa::Bytes;
use planlab_files::FormatError;
use serde::{Deserialize, Serialize};

use crate::{Graph, GraphBuilder, GraphError, Operation, Tensor, TensorId};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Header {
    planlab: String,
    version: u32,
    #[serde(default)]
    tensors: Vec<RawTensor>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RawTensor {
    tensor: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    output: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    external: bool,
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
    #[serde(default, skip_serializing_if = "is_zero")]
    workspace: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    flops: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Reads a graph. `file` is what errors call it.
///
/// # Errors
///
/// [`FormatError`] with the line: not JSON, a field that is not known, a tensor that is read before
/// anything says how large it is, a rule of [`Graph`] that is broken.
pub fn read_jsonl(file: &str, text: &str) -> Result<Graph, FormatError> {
    let mut reader = Reader::default();
    let mut lines = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        if text.trim_ascii().is_empty() {
            continue;
        }
        let read = if lines.is_empty() { reader.header(text) } else { reader.operation(text) };
        read.map_err(|reason| FormatError::new(file, line, reason))?;
        lines.push(line);
    }
    let Some(&first) = lines.first() else {
        return Err(FormatError::new(file, 1, "the file is empty: there is no header object"));
    };
    reader.graph.build().map_err(|error| {
        let line = op_of(&error).and_then(|op| lines.get(op + 1).copied()).unwrap_or(first);
        FormatError::new(file, line, error.to_string())
    })
}

fn op_of(error: &GraphError) -> Option<usize> {
    match error {
        GraphError::UnknownTensor { op, .. }
        | GraphError::ReadBeforeWrite { op, .. }
        | GraphError::BadInPlace { op, .. }
        | GraphError::BadTime { op, .. } => Some(op.index()),
        GraphError::ZeroBytes { .. } => None,
    }
}

#[derive(Default)]
struct Reader {
    graph: GraphBuilder,
    ids: BTreeMap<String, TensorId>,
}

impl Reader {
    fn header(&mut self, text: &str) -> Result<(), String> {
        let header: Header = serde_json::from_str(text).map_err(|error| format!("not a header: {error}"))?;
        if header.planlab != "graph" || header.version != 1 {
            return Err(format!(
                "a `{}` of version {}, not a graph of version 1",
                header.planlab, header.version
            ));
        }
        header.tensors.into_iter().try_for_each(|tensor| self.written(tensor).map(|_| ()))
    }

    fn operation(&mut self, text: &str) -> Result<(), String> {
        let raw: RawOperation =
            serde_json::from_str(text).map_err(|error| format!("not an operation: {error}"))?;
        let reads = raw.reads.iter().map(|name| self.known(name)).collect::<Result<_, _>>()?;
        let writes = raw.writes.into_iter().map(|tensor| self.written(tensor)).collect::<Result<_, _>>()?;
        let pair = |(input, output): &(String, String)| Ok((self.known(input)?, self.known(output)?));
        let in_place = raw.in_place.iter().map(pair).collect::<Result<_, String>>()?;
        self.graph.operation(Operation {
            op: raw.op.into(),
            name: raw.name,
            reads,
            writes,
            in_place,
            workspace: Bytes::new(raw.workspace),
            flops: raw.flops,
            seconds: raw.seconds,
        });
        Ok(())
    }

    fn known(&self, name: &str) -> Result<TensorId, String> {
        self.ids.get(name).copied().ok_or_else(|| format!("tensor `{name}` is named before it is written"))
    }

    fn written(&mut self, raw: RawTensor) -> Result<TensorId, String> {
        if let Some(&id) = self.ids.get(&raw.tensor) {
            return match raw.bytes {
                Some(bytes) if bytes != self.graph.bytes(id).get() => Err(format!(
                    "tensor `{}` has {bytes} bytes here, {} before",
                    raw.tensor,
                    self.graph.bytes(id)
                )),
                _ => Ok(id),
            };
        }
        let bytes = match raw.bytes {
            None => return Err(format!("tensor `{}` has no bytes where it is written first", raw.tensor)),
            Some(0) => return Err(format!("tensor `{}` has 0 bytes", raw.tensor)),
            Some(bytes) => Bytes::new(bytes),
        };
        let category = raw.category.map(Into::into);
        let (output, external) = (raw.output, raw.external);
        let tensor = Tensor { name: raw.tensor.clone(), bytes, category, output, external };
        let id = self.graph.tensor(tensor);
        self.ids.insert(raw.tensor, id);
        Ok(id)
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
        }
    };
    let all = (0..graph.tensors().len()).map(TensorId::from_index);
    let inputs = all.filter(|&id| graph.maker(id).is_none()).map(&mut raw).collect();
    let mut out = json(&Header { planlab: "graph".to_owned(), version: 1, tensors: inputs });
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
    fn errors_name_the_line() {
        let header = r#"{"planlab":"graph","version":1}"#;
        for (text, place) in [
            ("", "bad:1: the file is empty"),
            (r#"{"planlab":"plan","version":1}"#, "bad:1: a `plan` of version 1"),
            (&format!("{header}\n\n{{\"op\":\"f\",\"reads\":[\"x\"]}}"), "bad:3: tensor `x` is named before"),
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
        ] {
            let error = read_jsonl("bad", text).expect_err(text);
            assert!(error.to_string().starts_with(place), "{error}\n{text}");
        }
    }
}
