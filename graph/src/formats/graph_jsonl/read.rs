//! Reads graph files.

use std::collections::BTreeMap;

use planlab_dsa::{Bytes, Stream};
use planlab_files::FormatError;

use super::raw::{Header, RawOperation, RawTensor, Turns};
use crate::formats::lines::{begins_with_header, split_header};
use crate::{Alias, Graph, GraphBuilder, GraphError, OpId, Operation, Tensor, TensorId};

impl Graph {
    /// Whether a file that begins with these bytes is a graph, by its header. They have to contain all of the header.
    #[must_use]
    pub fn begins_file(start: &[u8]) -> bool {
        begins_with_header(start, "graph")
    }
}

/// Reads a graph. Errors name the file `file`.
///
/// # Errors
///
/// [`FormatError`] with the line: invalid JSON, an unknown field, a tensor without a size, contradictory mentions of a
/// tensor, or a broken rule of [`Graph`].
pub fn read_jsonl(file: &str, text: &str) -> Result<Graph, FormatError> {
    let at = |line: u64, reason: String| FormatError::new(file, line, reason);
    let ((first, header), lines) = split_header(file, text)?;
    let mut reader = Reader::default();
    let order = reader.read_header(first, header).map_err(|reason| at(first, reason))?;
    let mut raws = Vec::new();
    for (line, text) in lines {
        raws.push((line, reader.read_operation(line, text).map_err(|reason| at(line, reason))?));
    }
    let mut graph = GraphBuilder::default();
    for declared in &reader.tensors {
        graph.add_tensor(reader.build_tensor(declared).map_err(|(line, reason)| at(line, reason))?);
    }
    for (line, raw) in raws {
        graph.add_operation(reader.build_operation(line, raw).map_err(|reason| at(line, reason))?);
    }
    let built = if order == Turns::Any { graph.build_in_any_order() } else { graph.build() };
    let graph =
        built.map_err(|error| at(reader.line_of(&error).unwrap_or(first), reader.describe_error(&error)))?;
    reader.check_inputs(&graph, first).map_err(|(line, reason)| at(line, reason))?;
    Ok(in_order_of_files(graph))
}

/// The ids of tensors in the order in which a file mentions them: inputs, then what each operation makes.
fn order_of_files(graph: &Graph) -> Vec<TensorId> {
    let all = (0..graph.tensors().len()).map(TensorId::from_index);
    let mut order: Vec<TensorId> = all.filter(|&id| graph.maker_of(id).is_none()).collect();
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
        graph.add_tensor(Tensor { alias, ..tensor.clone() });
    }
    for mut operation in operations {
        let pairs = operation.in_place.iter_mut().flat_map(|(input, output)| [input, output]);
        operation.reads.iter_mut().chain(&mut operation.writes).chain(pairs).for_each(|id| *id = number(*id));
        graph.add_operation(operation);
    }
    graph.build().expect("other numbers break no rule")
}

/// The value of a field in the file, and the line that gives it first.
type Said<T> = Option<(u64, T)>;

/// A tensor of the file.
#[derive(Default)]
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
    fn merge_mention(&mut self, line: u64, raw: &RawTensor) -> Result<(), String> {
        let name = &self.name;
        merge_field(name, "bytes", &mut Some((self.line, self.bytes)), line, raw.bytes.as_ref())?;
        merge_field(name, "category", &mut self.category, line, raw.category.as_ref())?;
        merge_field(name, "output", &mut self.output, line, raw.output.as_ref())?;
        merge_field(name, "external", &mut self.external, line, raw.external.as_ref())?;
        merge_field(name, "alias", &mut self.alias, line, raw.alias.as_ref())?;
        let at = raw.at.or(raw.alias.is_some().then_some(0));
        merge_field(name, "at", &mut self.at, line, at.as_ref())
    }
}

/// The error in the JSON of a line. Its own line number is always 1, so the file's is reported separately.
fn json_reason(error: &serde_json::Error) -> String {
    let words = "a whole number from 0 to 2^64 - 1";
    error
        .to_string()
        .replace(" at line 1 column ", " at column ")
        .replace("expected u64", &format!("expected {words}"))
}

fn merge_field<T: Clone + PartialEq + std::fmt::Debug>(
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

/// The parts read so far, with their lines.
#[derive(Default)]
struct Reader {
    ids: BTreeMap<String, TensorId>,
    tensors: Vec<Declared>,
    /// For each operation its line, and its name or else its kind.
    operations: Vec<(u64, String)>,
}

impl Reader {
    fn read_header(&mut self, line: u64, text: &str) -> Result<Turns, String> {
        let header: Header =
            serde_json::from_str(text).map_err(|error| format!("not a header: {}", json_reason(&error)))?;
        if header.planlab != "graph" || header.version != 1 {
            return Err(format!(
                "a `{}` of version {}, not a graph of version 1",
                header.planlab, header.version
            ));
        }
        header.tensors.iter().try_for_each(|tensor| self.add_mention(line, tensor))?;
        Ok(header.order)
    }

    /// Reads an operation, and adds the tensors that it writes.
    fn read_operation(&mut self, line: u64, text: &str) -> Result<RawOperation, String> {
        let raw: RawOperation = serde_json::from_str(text)
            .map_err(|error| format!("not an operation: {}", json_reason(&error)))?;
        raw.writes.iter().try_for_each(|tensor| self.add_mention(line, tensor))?;
        Ok(raw)
    }

    fn add_mention(&mut self, line: u64, raw: &RawTensor) -> Result<(), String> {
        let name = &raw.tensor;
        if name.is_empty() {
            return Err("a tensor has an empty name".to_owned());
        }
        if let Some(id) = self.ids.get(name) {
            return self.tensors[id.index()].merge_mention(line, raw);
        }
        let bytes = match raw.bytes {
            None => return Err(format!("tensor `{name}` has no `bytes` where it is first mentioned")),
            Some(0) => return Err(format!("tensor `{name}` has 0 bytes")),
            Some(bytes) => bytes,
        };
        self.ids.insert(name.clone(), TensorId::from_index(self.tensors.len()));
        let mut declared = Declared { line, name: name.clone(), bytes, ..Declared::default() };
        declared.merge_mention(line, raw)?;
        self.tensors.push(declared);
        Ok(())
    }

    fn build_tensor(&self, declared: &Declared) -> Result<Tensor, (u64, String)> {
        let name = declared.name.clone();
        let alias = match (&declared.alias, declared.at) {
            (None, None) => None,
            (None, Some((line, _))) => {
                return Err((line, format!("tensor `{name}` has `at`, but no `alias`")));
            }
            (Some((line, base)), at) => {
                let base = self.find_tensor(base).map_err(|reason| (*line, reason))?;
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

    fn build_operation(&mut self, line: u64, raw: RawOperation) -> Result<Operation, String> {
        let ids = |names: &mut dyn Iterator<Item = &String>| {
            names.map(|name| self.find_tensor(name)).collect::<Result<Vec<_>, _>>()
        };
        let reads = ids(&mut raw.reads.iter())?;
        let writes = ids(&mut raw.writes.iter().map(|tensor| &tensor.tensor))?;
        let pair =
            |(input, output): &(String, String)| Ok((self.find_tensor(input)?, self.find_tensor(output)?));
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

    /// A tensor that is read before any operation writes it has to be in the header.
    fn check_inputs(&self, graph: &Graph, header: u64) -> Result<(), (u64, String)> {
        let inputs = (0..).map(TensorId::from_index).zip(&self.tensors).filter(|(id, declared)| {
            declared.line != header && declared.alias.is_none() && graph.is_input(*id)
        });
        match inputs.map(|(_, declared)| declared).next() {
            Some(Declared { line, name, .. }) => {
                let reason =
                    "is read before any operation writes it; if it is an input, list it in the header";
                Err((*line, format!("tensor `{name}` {reason}")))
            }
            None => Ok(()),
        }
    }

    fn find_tensor(&self, name: &str) -> Result<TensorId, String> {
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
    fn describe_error(&self, error: &GraphError) -> String {
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
