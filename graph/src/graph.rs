//! Tensors, operations, and the rules that make a graph of them.

use std::borrow::Cow;
use std::fmt;

use planlab_dsa::Bytes;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            /// The id of an index.
            ///
            /// # Panics
            ///
            /// If the index does not fit 32 bits.
            #[must_use]
            pub fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("a graph has fewer than 2^32 parts"))
            }

            /// The id as an index.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// The number of a tensor, from 0.
    TensorId
}
id! {
    /// The number of an operation, from 0, in the order of the graph.
    OpId
}

/// A tensor storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its name; where it is empty, its number stands in.
    pub name: String,
    /// Bytes; more than 0.
    pub bytes: Bytes,
    /// What it is for: `activation`, `gradient`, `parameter`, ...
    pub category: Option<Cow<'static, str>>,
    /// Whether it outlives the last operation.
    pub output: bool,
    /// Whether the caller keeps it elsewhere (parameters, gradients that the caller binds): it is no buffer of the
    /// placement problem.
    pub external: bool,
}

impl Tensor {
    /// A tensor that is dropped after its last use.
    #[must_use]
    pub fn new(name: impl Into<String>, bytes: Bytes) -> Self {
        Self { name: name.into(), bytes, category: None, output: false, external: false }
    }

    /// The same with a category. Default: none.
    #[must_use]
    pub fn with_category(mut self, category: impl Into<Cow<'static, str>>) -> Self {
        self.category = Some(category.into());
        self
    }

    /// The same, kept until the end. Default: dropped after its last use.
    #[must_use]
    pub fn as_output(mut self) -> Self {
        self.output = true;
        self
    }

    /// The same, kept by the caller and not planned. Default: planned.
    #[must_use]
    pub fn as_external(mut self) -> Self {
        self.external = true;
        self
    }
}

/// One operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operation {
    /// Its kind: `conv`, `add`, ...
    pub op: Cow<'static, str>,
    /// Its own name; may be empty.
    pub name: String,
    /// Tensors that it needs.
    pub reads: Vec<TensorId>,
    /// Tensors that it makes, or writes again.
    pub writes: Vec<TensorId>,
    /// `(input, output)`: the output may lie where the input lies, if nobody needs the input afterwards.
    pub in_place: Vec<(TensorId, TensorId)>,
    /// Bytes that it needs while it runs; 0 for none.
    pub workspace: Bytes,
    /// Floating-point operations; 0 where nobody counted.
    pub flops: u64,
    /// Time in seconds, where it was measured.
    pub seconds: Option<f64>,
}

impl Operation {
    /// An operation of a kind.
    #[must_use]
    pub fn new(op: impl Into<Cow<'static, str>>) -> Self {
        Self { op: op.into(), ..Self::default() }
    }

    /// The same, named. Default: no name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The same with further inputs. Default: none.
    #[must_use]
    pub fn reads(mut self, tensors: impl IntoIterator<Item = TensorId>) -> Self {
        self.reads.extend(tensors);
        self
    }

    /// The same with further outputs. Default: none.
    #[must_use]
    pub fn writes(mut self, tensors: impl IntoIterator<Item = TensorId>) -> Self {
        self.writes.extend(tensors);
        self
    }

    /// The same with the permission to write `output` where `input` lies. Default: none.
    #[must_use]
    pub fn overwrites(mut self, input: TensorId, output: TensorId) -> Self {
        self.in_place.push((input, output));
        self
    }

    /// The same with a workspace. Default: 0 bytes.
    #[must_use]
    pub const fn with_workspace(mut self, bytes: Bytes) -> Self {
        self.workspace = bytes;
        self
    }

    /// The same with a count of floating-point operations. Default: 0.
    #[must_use]
    pub const fn with_flops(mut self, flops: u64) -> Self {
        self.flops = flops;
        self
    }
}

/// A validated computation graph: operations in an order in which they can run.
///
/// A tensor that no operation makes is an input: it is there from the start. An operation that reads what
/// it writes (a parameter's update) does not make it.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    tensors: Vec<Tensor>,
    operations: Vec<Operation>,
    makers: Vec<Option<OpId>>,
}

/// Why parts are no graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A tensor without bytes.
    #[error("tensor {tensor} has 0 bytes")]
    ZeroBytes {
        /// The tensor.
        tensor: TensorId,
    },
    /// An operation that names no tensor.
    #[error("operation {op} names tensor {tensor}, but there are only {count}")]
    UnknownTensor {
        /// The operation.
        op: OpId,
        /// The number that it names.
        tensor: TensorId,
        /// How many tensors there are.
        count: usize,
    },
    /// A read of what is made later.
    #[error("operation {op} reads tensor {tensor}, which operation {maker} makes only later")]
    ReadBeforeWrite {
        /// The operation.
        op: OpId,
        /// The tensor.
        tensor: TensorId,
        /// The operation that makes it.
        maker: OpId,
    },
    /// An in-place pair that does not join an input to an output that fits there.
    #[error("operation {op} may not write tensor {output} over tensor {input}: {reason}")]
    BadInPlace {
        /// The operation.
        op: OpId,
        /// The tensor to overwrite.
        input: TensorId,
        /// The tensor to write.
        output: TensorId,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A time that is negative or not a number.
    #[error("operation {op} takes {seconds} seconds")]
    BadTime {
        /// The operation.
        op: OpId,
        /// What was said.
        seconds: String,
    },
}

/// Collects the parts of a [`Graph`].
#[derive(Clone, Debug, Default)]
pub struct GraphBuilder {
    tensors: Vec<Tensor>,
    operations: Vec<Operation>,
    workspaces: usize,
}

impl GraphBuilder {
    /// Adds a tensor.
    pub fn tensor(&mut self, tensor: Tensor) -> TensorId {
        self.tensors.push(tensor);
        TensorId::from_index(self.tensors.len() - 1)
    }

    /// Adds an operation after all others.
    pub fn operation(&mut self, operation: Operation) -> OpId {
        self.workspaces += usize::from(operation.workspace != Bytes::ZERO);
        self.operations.push(operation);
        OpId::from_index(self.operations.len() - 1)
    }

    /// Lets an operation write one more tensor.
    ///
    /// # Panics
    ///
    /// If there is no such operation.
    pub fn also_writes(&mut self, op: OpId, tensor: TensorId) {
        self.operations[op.index()].writes.push(tensor);
    }

    /// The number of operations so far.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.operations.len()
    }

    /// The number of buffers that the graph comes to so far: tensors and workspaces.
    #[must_use]
    pub const fn buffers(&self) -> usize {
        self.tensors.len() + self.workspaces
    }

    /// The bytes of a tensor.
    ///
    /// # Panics
    ///
    /// If there is no such tensor.
    #[must_use]
    pub fn bytes(&self, tensor: TensorId) -> Bytes {
        self.tensors[tensor.index()].bytes
    }

    /// Checks every rule.
    ///
    /// # Errors
    ///
    /// The first rule that is broken.
    pub fn build(self) -> Result<Graph, GraphError> {
        let Self { tensors, operations, .. } = self;
        if let Some(empty) = tensors.iter().position(|tensor| tensor.bytes == Bytes::ZERO) {
            return Err(GraphError::ZeroBytes { tensor: TensorId::from_index(empty) });
        }
        let mut graph = Graph { makers: vec![None; tensors.len()], tensors, operations };
        for op in graph.order() {
            graph.check_names(op)?;
            let operation = &graph.operations[op.index()];
            for &tensor in operation.writes.iter().filter(|tensor| !operation.reads.contains(tensor)) {
                graph.makers[tensor.index()].get_or_insert(op);
            }
        }
        graph.order().into_iter().try_for_each(|op| graph.check(op))?;
        Ok(graph)
    }
}

impl Graph {
    /// Starts a graph.
    #[must_use]
    pub fn builder() -> GraphBuilder {
        GraphBuilder::default()
    }

    /// The tensors, by id.
    #[must_use]
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The operations, by id.
    #[must_use]
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The operation that makes a tensor; `None` for an input.
    ///
    /// # Panics
    ///
    /// If there is no such tensor.
    #[must_use]
    pub fn maker(&self, tensor: TensorId) -> Option<OpId> {
        self.makers[tensor.index()]
    }

    /// The operations in the order in which they were added.
    #[must_use]
    pub fn order(&self) -> Vec<OpId> {
        (0..self.operations.len()).map(OpId::from_index).collect()
    }

    fn check_names(&self, op: OpId) -> Result<(), GraphError> {
        let operation = &self.operations[op.index()];
        let pairs = operation.in_place.iter().flat_map(|&(input, output)| [input, output]);
        let all = operation.reads.iter().chain(&operation.writes).copied().chain(pairs);
        let count = self.tensors.len();
        match all.into_iter().find(|tensor| tensor.index() >= count) {
            Some(tensor) => Err(GraphError::UnknownTensor { op, tensor, count }),
            None => Ok(()),
        }
    }

    fn check(&self, op: OpId) -> Result<(), GraphError> {
        let operation = &self.operations[op.index()];
        for &tensor in &operation.reads {
            if let Some(maker) = self.maker(tensor).filter(|&maker| maker >= op) {
                return Err(GraphError::ReadBeforeWrite { op, tensor, maker });
            }
        }
        for &(input, output) in &operation.in_place {
            let reason = if !operation.reads.contains(&input) {
                "it does not read the one"
            } else if self.maker(output) != Some(op) {
                "it does not make the other"
            } else if self.tensors[output.index()].bytes > self.tensors[input.index()].bytes {
                "the other is larger"
            } else {
                continue;
            };
            return Err(GraphError::BadInPlace { op, input, output, reason });
        }
        match operation.seconds {
            Some(seconds) if !(seconds.is_finite() && seconds >= 0.0) => {
                Err(GraphError::BadTime { op, seconds: seconds.to_string() })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> (GraphBuilder, TensorId, TensorId) {
        let mut graph = Graph::builder();
        let small = graph.tensor(Tensor::new("small", Bytes::new(4)));
        let large = graph.tensor(Tensor::new("large", Bytes::new(8)));
        (graph, small, large)
    }

    #[test]
    fn what_breaks_a_rule_is_named() {
        let (mut graph, small, _) = two();
        graph.operation(Operation::new("read").reads([small]));
        graph.operation(Operation::new("write").writes([small]));
        let (op, maker) = (OpId(0), OpId(1));
        assert_eq!(graph.build(), Err(GraphError::ReadBeforeWrite { op, tensor: small, maker }));

        let (mut graph, ..) = two();
        let tensor = TensorId(7);
        graph.operation(Operation::new("read").reads([tensor]));
        assert_eq!(graph.build(), Err(GraphError::UnknownTensor { op, tensor, count: 2 }));

        let (mut graph, ..) = two();
        graph.tensor(Tensor::new("nothing", Bytes::ZERO));
        assert_eq!(graph.build(), Err(GraphError::ZeroBytes { tensor: TensorId(2) }));
    }

    #[test]
    fn in_place_pairs_join_an_input_and_an_output_that_fits() {
        for (reads, writes, reason) in [
            (vec![0], vec![1], Some("the other is larger")),
            (vec![], vec![1], Some("it does not read the one")),
            (vec![0], vec![], Some("it does not make the other")),
        ] {
            let (mut graph, small, large) = two();
            let ids = |ids: Vec<u32>| ids.into_iter().map(TensorId).collect::<Vec<_>>();
            graph.operation(
                Operation::new("x").reads(ids(reads)).writes(ids(writes)).overwrites(small, large),
            );
            let found = match graph.build() {
                Err(GraphError::BadInPlace { reason, .. }) => Some(reason),
                _ => None,
            };
            assert_eq!(found, reason);
        }
    }

    #[test]
    fn an_update_does_not_make_its_tensor() {
        let (mut graph, small, _) = two();
        graph.operation(Operation::new("read").reads([small]));
        graph.operation(Operation::new("update").reads([small]).writes([small]));
        assert_eq!(graph.build().expect("valid").maker(small), None);
    }

    #[test]
    fn a_time_is_a_number() {
        let (mut graph, ..) = two();
        let op = Operation { seconds: Some(f64::NAN), ..Operation::new("x") };
        graph.operation(op);
        assert!(matches!(graph.build(), Err(GraphError::BadTime { .. })));
    }
}
