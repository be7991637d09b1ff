//! Nets and graph files at any batch: their graphs, and the sources of their traces.

use std::fs;
#[cfg(feature = "reports")]
use std::io::{self, Write as _};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
#[cfg(feature = "reports")]
use std::process::{Command, Stdio};

use planlab_dsa::Bytes;
#[cfg(feature = "reports")]
use planlab_graph::write_dot;
use planlab_graph::{Alias, Graph, GraphBuilder, OpId, Tensor, write_jsonl};
use planlab_workloads::formats::read_graph_from;
use planlab_workloads::models::{Allocator, Mode, Spec, find};

use super::source::{Origin, Source, input_limits, input_name, open_reader};
use crate::cli::ShapeArgs;
use crate::shell::exit::Failure;

/// The net or graph file that a NET or GRAPH argument names.
pub(crate) enum Network {
    Net(Spec),
    File(GraphFile),
}

/// A graph file with the batch that it was made for.
pub(crate) struct GraphFile {
    name: String,
    graph: Graph,
    batch: u64,
}

impl Network {
    /// A net with its shape at a batch, or a graph file of that batch. The default batch is that of the key, or 1.
    pub(crate) fn resolve_argument(
        argument: &str,
        shape: &ShapeArgs,
        batch: Option<NonZeroU64>,
    ) -> Result<Self, Failure> {
        if !is_file(argument) {
            return Ok(Self::Net(parse_spec(argument, shape, batch)?));
        }
        if shape.is_said() {
            return Err(Failure::from_usage(format!(
                "{}: --mode, --size, --sequence, --allocator-model and --workspace are for nets; a graph file has its \
                 own shape",
                input_name(argument)
            )));
        }
        let graph = read_graph_from(input_name(argument), open_reader(argument)?, input_limits())?;
        Ok(Self::File(GraphFile {
            name: input_name(argument).to_owned(),
            graph,
            batch: batch.map_or(1, NonZeroU64::get),
        }))
    }

    /// The batch of the argument.
    pub(crate) const fn batch_of_argument(&self) -> u64 {
        match self {
            Self::Net(spec) => spec.batch,
            Self::File(file) => file.batch,
        }
    }

    /// The key of its workload at a batch: `model/alexnet/train/b32`; for a file `graph/<name>/b32`.
    pub(crate) fn key_at(&self, batch: u64) -> String {
        match self {
            Self::Net(spec) => Spec { batch, ..*spec }.to_string(),
            Self::File(file) => format!("graph/{}/b{batch}", file.file_stem()),
        }
    }

    /// Refuses Chainer's requests, for verbs that need operations.
    pub(crate) fn refuse_requests(&self, what: &str) -> Result<(), Failure> {
        match self {
            Self::Net(spec) if spec.allocator == Allocator::Chainer => Err(Failure::from_usage(format!(
                "{what}: the requests of Chainer have no graph; leave out `chainer`"
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses a batch for which it has no trace.
    pub(crate) fn check_batch(&self, batch: u64) -> Result<(), Failure> {
        match self {
            Self::Net(spec) => Spec { batch, ..*spec }.record_program().map(drop).map_err(Failure::from),
            Self::File(file) => file.scale_to(batch).map(drop),
        }
    }

    /// Its graph at a batch.
    pub(crate) fn graph_at(&self, batch: u64) -> Result<Graph, Failure> {
        match self {
            Self::Net(spec) => Ok(Spec { batch, ..*spec }.build_graph()?),
            Self::File(file) => file.scale_to(batch),
        }
    }

    /// Its trace at a batch, in a form that a child can open; needed files are written to `scratch`.
    pub(crate) fn source_at(&self, batch: u64, scratch: &Path) -> Result<Source, Failure> {
        match self {
            Self::Net(_) => Ok(Source::from_workload(&self.key_at(batch), None)),
            Self::File(file) => {
                let path = scratch.join(format!("batch-{batch}.jsonl"));
                fs::write(&path, write_jsonl(&file.scale_to(batch)?))?;
                Ok(source_file(&self.key_at(batch), path))
            }
        }
    }

    /// Bytes of parameters, in training also their gradients and `states` more numbers for each; for a file, its
    /// external tensors.
    pub(crate) fn kept_bytes(&self, states: u64) -> Result<u64, Failure> {
        let bytes = match self {
            Self::Net(spec) => {
                let copies = if spec.mode == Mode::Train { 2 + states } else { 1 };
                spec.parameter_count()?.checked_mul(FLOAT).and_then(|bytes| bytes.checked_mul(copies))
            }
            Self::File(file) => {
                let tensors = file.graph.tensors().iter();
                let external = tensors.filter(|tensor| tensor.external && tensor.alias.is_none());
                external.map(|tensor| tensor.bytes.get()).try_fold(0_u64, u64::checked_add)
            }
        };
        bytes.ok_or_else(|| Failure::from_usage("the bytes kept beside the plan do not fit in 64 bits"))
    }
}

/// The net of a key, drawn as SVG by Graphviz; `None` if Graphviz is not installed, or the net has too many operations
/// for a readable drawing.
#[cfg(feature = "reports")]
pub(crate) fn draw_net(key: &str) -> Option<String> {
    let graph = key.parse::<Spec>().ok()?.build_graph().ok()?;
    if graph.operations().len() > DRAWN {
        return None;
    }
    render_dot(&write_dot(&graph, &graph.operation_order()).ok()?).ok()
}

/// The most operations of a net that is drawn.
#[cfg(feature = "reports")]
const DRAWN: usize = 300;

/// Renders a text with Graphviz.
#[cfg(feature = "reports")]
fn render_dot(dot: &str) -> io::Result<String> {
    let mut child = Command::new("dot")
        .arg("-Tsvg")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    // Graphviz reads all of its input before it writes.
    child.stdin.take().map_or(Ok(()), |mut input| input.write_all(dot.as_bytes()))?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(io::Error::other("dot failed"));
    }
    String::from_utf8(output.stdout).map_err(io::Error::other)
}

/// Bytes of a parameter.
const FLOAT: u64 = 4;

/// The source of a trace or graph in a file that we wrote.
pub(crate) fn source_file(key: &str, path: PathBuf) -> Source {
    Source { origin: Origin::File(path), ..Source::from_workload(key, None) }
}

/// Whether an argument names a file rather than a net.
pub(crate) fn is_file(argument: &str) -> bool {
    // A folder or file with the name of a net does not hide the net.
    let is_there = || find(argument).is_err() && Path::new(argument).exists();
    let ends_as_one = [".jsonl", ".zst", ".gz"].iter().any(|ending| argument.ends_with(ending));
    argument == "-" || ends_as_one || is_there()
}

/// The net of a name with its shape, or of a whole key (`model/...`), which includes the shape.
pub(crate) fn parse_spec(
    argument: &str,
    shape: &ShapeArgs,
    batch: Option<NonZeroU64>,
) -> Result<Spec, Failure> {
    if argument.starts_with("model/") {
        let spec: Spec = argument.parse()?;
        if shape.is_said() || batch.is_some() {
            return Err(Failure::from_usage(format!(
                "`{argument}` contains its shape and batch; to choose them, name the net alone"
            )));
        }
        return Ok(spec);
    }
    let mode = shape.mode.unwrap_or(Mode::Train);
    let spec = Spec {
        input: shape.size.map(NonZeroU64::get),
        sequence: shape.sequence.map(NonZeroU64::get),
        allocator: shape.allocator_model.unwrap_or_default(),
        workspace: shape.workspace,
        ..Spec::new(find(argument)?, mode, batch.map_or(1, NonZeroU64::get))
    };
    // Parsing the key again finds sizes that the net cannot have.
    Ok(spec.to_string().parse()?)
}

/// The same operations in another legal order.
pub(crate) fn in_order(graph: &Graph, order: &[OpId]) -> Result<Graph, Failure> {
    let mut builder = GraphBuilder::default();
    for tensor in graph.tensors() {
        builder.add_tensor(tensor.clone());
    }
    for &op in order {
        builder.add_operation(graph.operations()[op.index()].clone());
    }
    Ok(builder.build()?)
}

impl GraphFile {
    /// The file's name without folders and extensions.
    fn file_stem(&self) -> &str {
        let file = Path::new(&self.name).file_name().and_then(|name| name.to_str()).unwrap_or(&self.name);
        let stem = [".zst", ".gz"].iter().find_map(|ending| file.strip_suffix(ending)).unwrap_or(file);
        let stem = stem.strip_suffix(".jsonl").unwrap_or(stem).trim_matches(['<', '>']);
        if stem.is_empty() { file } else { stem }
    }

    /// Whether the caller keeps a tensor, or the tensor that contains it.
    fn is_external(&self, tensor: &Tensor) -> bool {
        let base = tensor.alias.map(|alias| &self.graph.tensors()[alias.base.index()]);
        tensor.external || base.is_some_and(|base| self.is_external(base))
    }

    /// The graph at another batch: tensors and workspaces grow with it, external tensors stay.
    fn scale_to(&self, batch: u64) -> Result<Graph, Failure> {
        if batch == self.batch {
            return Ok(self.graph.clone());
        }
        let scale = |bytes: Bytes, what: &dyn Fn() -> String| {
            let product = u128::from(bytes.get()) * u128::from(batch);
            let of = u128::from(self.batch);
            let whole = u64::try_from(product / of).ok().filter(|_| product.is_multiple_of(of));
            let bad = || {
                Failure::from_usage(format!("{}: {} has no whole size at batch {batch}", self.name, what()))
            };
            whole.map(Bytes::new).ok_or_else(bad)
        };
        let mut builder = GraphBuilder::default();
        for tensor in self.graph.tensors() {
            if self.is_external(tensor) {
                builder.add_tensor(tensor.clone());
                continue;
            }
            let bytes = scale(tensor.bytes, &|| format!("tensor `{}`", tensor.name))?;
            let scale_alias = |alias: Alias| -> Result<Alias, Failure> {
                let offset = scale(alias.offset, &|| format!("the place of tensor `{}`", tensor.name))?;
                Ok(Alias { offset, ..alias })
            };
            let alias = tensor.alias.map(scale_alias).transpose()?;
            builder.add_tensor(Tensor { bytes, alias, ..tensor.clone() });
        }
        for (number, operation) in self.graph.operations().iter().enumerate() {
            let mut operation = operation.clone();
            operation.workspace =
                scale(operation.workspace, &|| format!("the workspace of operation {number}"))?;
            builder.add_operation(operation);
        }
        Ok(builder.build()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_graph_is_known_by_its_name() {
        for file in ["missing.jsonl", "missing.jsonl.zst", "missing.jsonl.gz"] {
            assert!(is_file(file), "{file}");
        }
        assert!(!is_file("alexnet"));
    }
}
