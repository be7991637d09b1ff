//! Nets and graph files, at any batch: their graphs, and the sources of their traces.

use std::fs;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use planlab_dsa::Bytes;
use planlab_graph::{Alias, Graph, GraphBuilder, OpId, Tensor, write_jsonl};
use planlab_workloads::formats::read_graph_from;
use planlab_workloads::models::{Allocator, Mode, Spec, find};

use super::source::{Origin, Source, limits, name, reader};
use crate::cli::{AllocatorArg, ModeArg, ShapeArgs};
use crate::shell::exit::Failure;

/// What a NET or GRAPH argument names.
pub(crate) enum Network {
    Net(Spec),
    File(GraphFile),
}

/// A graph file with the batch that it is of.
pub(crate) struct GraphFile {
    name: String,
    graph: Graph,
    batch: u64,
}

impl Network {
    /// A net with its shape at a batch, or a graph file of that batch.
    pub(crate) fn resolve(argument: &str, shape: &ShapeArgs, batch: NonZeroU64) -> Result<Self, Failure> {
        if !is_graph_file(argument) {
            return Ok(Self::Net(spec(argument, shape, batch)?));
        }
        if shape.is_said() {
            return Err(Failure::usage(format!(
                "{}: a graph file has its own shape; --mode, --size, --sequence, --allocator-model and --workspace are \
                 for nets",
                name(argument)
            )));
        }
        let graph = read_graph_from(name(argument), reader(argument)?, limits())?;
        Ok(Self::File(GraphFile { name: name(argument).to_owned(), graph, batch: batch.get() }))
    }

    /// What its workload is called at a batch.
    pub(crate) fn key(&self, batch: u64) -> String {
        match self {
            Self::Net(spec) => Spec { batch, ..*spec }.to_string(),
            Self::File(file) => format!("{}/b{batch}", file.name),
        }
    }

    /// Its operations at a batch.
    pub(crate) fn graph(&self, batch: u64) -> Result<Graph, Failure> {
        match self {
            Self::Net(spec) => Ok(Spec { batch, ..*spec }.graph()?),
            Self::File(file) => file.scaled(batch),
        }
    }

    /// Its trace at a batch, in a form that a child can open; files that it takes are put into `scratch`.
    pub(crate) fn source(&self, batch: u64, scratch: &Path) -> Result<Source, Failure> {
        match self {
            Self::Net(_) => Ok(Source::workload(&self.key(batch), None)),
            Self::File(file) => source_of(&self.key(batch), &file.scaled(batch)?, scratch),
        }
    }

    /// Bytes of parameters, their gradients, and `states` more numbers for each in training; of a file, its external
    /// tensors.
    pub(crate) fn kept(&self, states: u64) -> Result<u64, Failure> {
        let bytes = match self {
            Self::Net(spec) => {
                let copies = if spec.mode == Mode::Train { 2 + states } else { 1 };
                spec.parameters()?.checked_mul(FLOAT).and_then(|bytes| bytes.checked_mul(copies))
            }
            Self::File(file) => {
                let external = file.graph.tensors().iter().filter(|tensor| tensor.external);
                external.map(|tensor| tensor.bytes.get()).try_fold(0_u64, u64::checked_add)
            }
        };
        bytes.ok_or_else(|| Failure::usage("what is kept beside the plan does not fit 64 bits"))
    }
}

/// Bytes of a parameter.
const FLOAT: u64 = 4;

/// The trace of a graph in the order of its operations.
fn source_of(key: &str, graph: &Graph, scratch: &Path) -> Result<Source, Failure> {
    let path = scratch.join(format!("{}.jsonl", key.replace(['/', '\\'], "-")));
    fs::write(&path, write_jsonl(graph))?;
    Ok(source_file(key, path))
}

/// A trace, or a graph, in a file of ours.
pub(crate) fn source_file(key: &str, path: PathBuf) -> Source {
    Source { origin: Origin::File(path), ..Source::workload(key, None) }
}

fn is_graph_file(argument: &str) -> bool {
    argument == "-"
        || Path::new(argument).exists()
        || argument.ends_with(".jsonl")
        || argument.ends_with(".zst")
}

/// The net of a name with its shape; of a whole key (`model/...`), which says its shape itself.
pub(crate) fn spec(argument: &str, shape: &ShapeArgs, batch: NonZeroU64) -> Result<Spec, Failure> {
    if argument.starts_with("model/") {
        let spec: Spec = argument.parse()?;
        if shape.is_said() {
            return Err(Failure::usage(format!(
                "`{argument}` says its shape itself; name the net alone to choose one"
            )));
        }
        return Ok(spec);
    }
    let mode = match shape.mode {
        Some(ModeArg::Infer) => Mode::Infer,
        Some(ModeArg::Train) | None => Mode::Train,
    };
    let allocator = match shape.allocator_model {
        Some(AllocatorArg::Chainer) => Allocator::Chainer,
        Some(AllocatorArg::Ideal) | None => Allocator::Ideal,
    };
    let spec = Spec {
        input: shape.size.map(NonZeroU64::get),
        sequence: shape.sequence.map(NonZeroU64::get),
        allocator,
        workspace: shape.workspace,
        ..Spec::new(find(argument)?, mode, batch.get())
    };
    // Reading the key back finds a size that the net cannot have.
    Ok(spec.to_string().parse()?)
}

/// The same operations in another legal order.
pub(crate) fn in_order(graph: &Graph, order: &[OpId]) -> Result<Graph, Failure> {
    let mut builder = GraphBuilder::default();
    for tensor in graph.tensors() {
        builder.tensor(tensor.clone());
    }
    for &op in order {
        builder.operation(graph.operations()[op.index()].clone());
    }
    Ok(builder.build()?)
}

impl GraphFile {
    /// The graph at another batch: tensors and workspaces grow with it, external tensors stay.
    fn scaled(&self, batch: u64) -> Result<Graph, Failure> {
        if batch == self.batch {
            return Ok(self.graph.clone());
        }
        let scale = |bytes: Bytes, what: &dyn Fn() -> String| {
            let product = u128::from(bytes.get()) * u128::from(batch);
            let of = u128::from(self.batch);
            let whole = u64::try_from(product / of).ok().filter(|_| product.is_multiple_of(of));
            let bad =
                || Failure::usage(format!("{}: {} has no whole size at batch {batch}", self.name, what()));
            whole.map(Bytes::new).ok_or_else(bad)
        };
        let mut builder = GraphBuilder::default();
        for tensor in self.graph.tensors() {
            let bytes = match tensor.external {
                true => tensor.bytes,
                false => scale(tensor.bytes, &|| format!("tensor `{}`", tensor.name))?,
            };
            let alias = match tensor.alias {
                Some(alias) => Some(Alias {
                    offset: scale(alias.offset, &|| format!("the place of tensor `{}`", tensor.name))?,
                    ..alias
                }),
                None => None,
            };
            builder.tensor(Tensor { bytes, alias, ..tensor.clone() });
        }
        for (number, operation) in self.graph.operations().iter().enumerate() {
            let mut operation = operation.clone();
            operation.workspace =
                scale(operation.workspace, &|| format!("the workspace of operation {number}"))?;
            builder.operation(operation);
        }
        Ok(builder.build()?)
    }
}
