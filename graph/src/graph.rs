//! Tensors, operations, and the rules that make a graph of them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use planlab_dsa::{Bytes, Stream};

use crate::order::{Neighbours, topological_order};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// Where a tensor lies that has no storage of its own: a view, a reshape, or a piece of a concatenation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The tensor in whose bytes it lies.
    pub base: TensorId,
    /// Where it begins there.
    pub offset: Bytes,
}

/// A tensor: its own storage, or part of another's.
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
    /// Where it must lie, if it has no storage of its own. It shows the bytes that are there: an operation that
    /// changes them reads and writes it.
    pub alias: Option<Alias>,
}

impl Tensor {
    /// A tensor that is dropped after its last use.
    #[must_use]
    pub fn new(name: impl Into<String>, bytes: Bytes) -> Self {
        Self { name: name.into(), bytes, category: None, output: false, external: false, alias: None }
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

    /// The same in the storage of another tensor, from a byte of it on. Default: a storage of its own.
    #[must_use]
    pub const fn within(mut self, base: TensorId, offset: Bytes) -> Self {
        self.alias = Some(Alias { base, offset });
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
    /// The stream that it runs on; operations of one stream run one after the other, in the order of the graph.
    pub stream: Stream,
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

    /// The same on another stream. Default: stream 0.
    #[must_use]
    pub const fn on_stream(mut self, stream: Stream) -> Self {
        self.stream = stream;
        self
    }

    /// Whether it writes a tensor that it does not read: then it makes it.
    fn makes(&self, tensor: TensorId) -> bool {
        self.writes.contains(&tensor) && !self.reads.contains(&tensor)
    }

    /// The tensors that it reads and writes: it changes them where they lie.
    pub fn updates(&self) -> impl Iterator<Item = TensorId> + '_ {
        self.writes.iter().copied().filter(|tensor| self.reads.contains(tensor))
    }
}

/// A validated computation graph: operations in an order in which they can run.
///
/// A tensor that no operation makes is an input: it is there from the start. An operation that reads what
/// it writes (a parameter's update) does not make it. Two operations never make one tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    tensors: Vec<Tensor>,
    operations: Vec<Operation>,
    makers: Vec<Option<OpId>>,
    places: Vec<Place>,
    /// The tensors that lie in a storage beside the one that has it, by that one.
    parts: BTreeMap<TensorId, Vec<TensorId>>,
}

/// The storage that a tensor lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The tensor that has the storage; the tensor itself where it is no alias.
    pub root: TensorId,
    /// The first byte of the tensor there.
    pub offset: Bytes,
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
    /// A tensor that is made twice.
    #[error("tensor {tensor} is written by operations {first} and {second}; only one may write it unread")]
    TwoWriters {
        /// The tensor.
        tensor: TensorId,
        /// The operation that makes it first.
        first: OpId,
        /// The one that makes it again.
        second: OpId,
    },
    /// Operations of which each needs what another makes, so that none can be first.
    #[error("operations wait for each other in a cycle: {}", chain(operations))]
    Cycle {
        /// The operations; each is needed by the next, and the last by the first.
        operations: Vec<OpId>,
    },
    /// A tensor that does not fit where it is said to lie.
    #[error("tensor {tensor} cannot lie in tensor {base}: {reason}")]
    BadAlias {
        /// The tensor.
        tensor: TensorId,
        /// The one that it should lie in.
        base: TensorId,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Tensors that are too large together.
    #[error("tensor {tensor}: with it the tensors sum to more than 2^64 - 1 bytes")]
    TotalOverflow {
        /// The tensor at which the sum leaves the range.
        tensor: TensorId,
    },
    /// Workspaces that are too large together with the tensors.
    #[error("operation {op}: with its workspace the sizes sum to more than 2^64 - 1 bytes")]
    WorkspaceOverflow {
        /// The operation at which the sum leaves the range.
        op: OpId,
    },
}

/// The operations of a cycle, the first again at the end.
fn chain(operations: &[OpId]) -> String {
    let names: Vec<String> = operations.iter().chain(operations.first()).map(ToString::to_string).collect();
    names.join(" -> ")
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

    /// Puts a tensor into the storage of another.
    pub(crate) fn lay(&mut self, tensor: TensorId, alias: Alias) {
        self.tensors[tensor.index()].alias = Some(alias);
    }

    /// Checks every rule. The operations were added in an order in which they can run.
    ///
    /// # Errors
    ///
    /// The first rule that is broken.
    pub fn build(self) -> Result<Graph, GraphError> {
        let graph = self.parts()?;
        graph.order().into_iter().try_for_each(|op| graph.check_reads(op))?;
        Ok(graph)
    }

    /// Checks every rule, and sorts the operations, which were added in any order: each comes after those that
    /// make what it reads; of several that can be next, the one that was added first. Ids of operations are then
    /// those of the sorted order. An operation that changes a tensor keeps its turn among those that
    /// use the tensor, as far as the rest allows.
    ///
    /// # Errors
    ///
    /// As [`GraphBuilder::build`], and [`GraphError::Cycle`]; all by the order in which operations were added.
    pub fn build_in_any_order(self) -> Result<Graph, GraphError> {
        let mut graph = self.parts()?;
        let count = graph.operations.len();
        let mut edges = Vec::new();
        for op in graph.order() {
            for &tensor in &graph.operations[op.index()].reads {
                edges.extend(graph.sources(tensor).into_iter().map(|source| (source, op)));
            }
        }
        let order = topological_order(&Neighbours::new(count, edges))
            .map_err(|operations| GraphError::Cycle { operations })?;
        graph.renumber(&order);
        Ok(graph)
    }

    /// The graph, with every rule checked that does not depend on the order of the operations.
    fn parts(self) -> Result<Graph, GraphError> {
        let Self { tensors, operations, .. } = self;
        if let Some(empty) = tensors.iter().position(|tensor| tensor.bytes == Bytes::ZERO) {
            return Err(GraphError::ZeroBytes { tensor: TensorId::from_index(empty) });
        }
        check_total(&tensors, &operations)?;
        let places = places(&tensors)?;
        let mut parts = BTreeMap::<TensorId, Vec<TensorId>>::new();
        for (index, place) in places.iter().enumerate().filter(|(index, place)| place.root.index() != *index)
        {
            parts.entry(place.root).or_default().push(TensorId::from_index(index));
        }
        let makers = vec![None; tensors.len()];
        let mut graph = Graph { tensors, operations, makers, places, parts };
        for op in graph.order() {
            graph.check_names(op)?;
            graph.enter_maker(op)?;
        }
        graph.order().into_iter().try_for_each(|op| graph.check(op))?;
        Ok(graph)
    }
}

fn check_total(tensors: &[Tensor], operations: &[Operation]) -> Result<(), GraphError> {
    let mut total = Bytes::ZERO;
    for (index, tensor) in tensors.iter().enumerate() {
        let overflow = GraphError::TotalOverflow { tensor: TensorId::from_index(index) };
        total = total.checked_add(tensor.bytes).ok_or(overflow)?;
    }
    for (index, operation) in operations.iter().enumerate() {
        let overflow = GraphError::WorkspaceOverflow { op: OpId::from_index(index) };
        total = total.checked_add(operation.workspace).ok_or(overflow)?;
    }
    Ok(())
}

/// The storage of each tensor.
fn places(tensors: &[Tensor]) -> Result<Vec<Place>, GraphError> {
    for (index, tensor) in tensors.iter().enumerate() {
        let Some(Alias { base, offset }) = tensor.alias else { continue };
        let reason = match tensors.get(base.index()) {
            None => "there is no such tensor",
            Some(under) if offset.checked_add(tensor.bytes).is_none_or(|end| end > under.bytes) => {
                "it does not fit there"
            }
            Some(under) if tensor.external && !under.external => "the caller keeps the one, not the other",
            Some(_) => continue,
        };
        return Err(GraphError::BadAlias { tensor: TensorId::from_index(index), base, reason });
    }
    (0..tensors.len()).map(|index| place(tensors, TensorId::from_index(index))).collect()
}

fn place(tensors: &[Tensor], tensor: TensorId) -> Result<Place, GraphError> {
    let mut at = Place { root: tensor, offset: Bytes::ZERO };
    for _ in 0..tensors.len() {
        let Some(Alias { base, offset }) = tensors[at.root.index()].alias else { return Ok(at) };
        // Each lies inside the next, so that sums of offsets stay within a size.
        at = Place { root: base, offset: Bytes::new(at.offset.get().saturating_add(offset.get())) };
    }
    let base = tensors[tensor.index()].alias.map_or(tensor, |alias| alias.base);
    Err(GraphError::BadAlias { tensor, base, reason: "they lie in each other" })
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

    /// The storage that a tensor lies in.
    ///
    /// # Panics
    ///
    /// If there is no such tensor.
    #[must_use]
    pub fn place(&self, tensor: TensorId) -> Place {
        self.places[tensor.index()]
    }

    /// The tensors that lie in the storage of a root, the root among them; ascending but for the root, which is
    /// first.
    pub fn in_storage(&self, root: TensorId) -> impl Iterator<Item = TensorId> + '_ {
        std::iter::once(root).chain(self.parts.get(&root).into_iter().flatten().copied())
    }

    /// Whether two tensors have bytes in common.
    ///
    /// # Panics
    ///
    /// If there is no such tensor.
    #[must_use]
    pub fn share_bytes(&self, first: TensorId, second: TensorId) -> bool {
        let span = |tensor: TensorId| {
            let from = self.place(tensor).offset.get();
            from..from + self.tensors[tensor.index()].bytes.get()
        };
        let (one, other) = (span(first), span(second));
        self.place(first).root == self.place(second).root && one.start < other.end && other.start < one.end
    }

    /// The operations after which a tensor is there: its maker; of a view that nobody makes, the base's; of a
    /// tensor that nobody makes, those that make pieces of it. Empty for an input.
    ///
    /// # Panics
    ///
    /// If there is no such tensor.
    #[must_use]
    pub fn sources(&self, tensor: TensorId) -> Vec<OpId> {
        match (self.maker(tensor), self.tensors[tensor.index()].alias) {
            (Some(maker), _) => vec![maker],
            (None, Some(Alias { base, .. })) => self.sources(base),
            (None, None) => self.makers_of_pieces(tensor),
        }
    }

    /// The makers of what lies in a storage; those of views, which read what they show, are none.
    fn makers_of_pieces(&self, root: TensorId) -> Vec<OpId> {
        let pieces = self.parts.get(&root).into_iter().flatten();
        let made = pieces.filter_map(|&piece| Some((piece, self.maker(piece)?)));
        let is_view = |piece: TensorId, maker: OpId| {
            self.operations[maker.index()].reads.iter().any(|&read| self.covers(read, piece))
        };
        let mut makers: Vec<OpId> =
            made.filter(|&(piece, maker)| !is_view(piece, maker)).map(|(_, maker)| maker).collect();
        makers.sort_unstable();
        makers.dedup();
        makers
    }

    /// Whether all bytes of `inner` are bytes of `outer`.
    fn covers(&self, outer: TensorId, inner: TensorId) -> bool {
        let (out, within) = (self.place(outer), self.place(inner));
        let end = |tensor: TensorId, from: Bytes| from.get() + self.tensors[tensor.index()].bytes.get();
        out.root == within.root
            && out.offset <= within.offset
            && end(inner, within.offset) <= end(outer, out.offset)
    }

    /// The floating-point operations of all operations together.
    #[must_use]
    pub fn flops(&self) -> u128 {
        self.operations.iter().map(|operation| u128::from(operation.flops)).sum()
    }

    fn enter_maker(&mut self, op: OpId) -> Result<(), GraphError> {
        let operation = &self.operations[op.index()];
        for &tensor in operation.writes.iter().filter(|&&tensor| operation.makes(tensor)) {
            let first = *self.makers[tensor.index()].get_or_insert(op);
            if first != op {
                return Err(GraphError::TwoWriters { tensor, first, second: op });
            }
        }
        Ok(())
    }

    /// Gives the operations the numbers that they have in `order`.
    fn renumber(&mut self, order: &[OpId]) {
        let mut numbers = vec![OpId::default(); order.len()];
        for (number, op) in order.iter().enumerate() {
            numbers[op.index()] = OpId::from_index(number);
        }
        self.operations = order.iter().map(|op| std::mem::take(&mut self.operations[op.index()])).collect();
        self.makers.iter_mut().flatten().for_each(|maker| *maker = numbers[maker.index()]);
    }

    fn check_reads(&self, op: OpId) -> Result<(), GraphError> {
        for &tensor in &self.operations[op.index()].reads {
            if let Some(maker) = self.sources(tensor).into_iter().find(|&maker| maker >= op) {
                return Err(GraphError::ReadBeforeWrite { op, tensor, maker });
            }
        }
        Ok(())
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
    fn two_operations_that_make_one_tensor_are_both_named() {
        let (mut graph, small, _) = two();
        graph.operation(Operation::new("f").writes([small]));
        graph.operation(Operation::new("update").reads([small]).writes([small]));
        graph.operation(Operation::new("g").writes([small]));
        let (first, second) = (OpId(0), OpId(2));
        assert_eq!(graph.build(), Err(GraphError::TwoWriters { tensor: small, first, second }));
    }

    #[test]
    fn sizes_fit_64_bits_together() {
        let (mut graph, small, _) = two();
        let huge = graph.tensor(Tensor::new("huge", Bytes::new(u64::MAX - 12)));
        graph.operation(Operation::new("f").reads([small, huge]));
        assert!(graph.clone().build().is_ok());
        let op = graph.operation(Operation::new("g").with_workspace(Bytes::new(1)));
        assert_eq!(graph.clone().build(), Err(GraphError::WorkspaceOverflow { op }));
        let tensor = graph.tensor(Tensor::new("more", Bytes::new(1)));
        assert_eq!(graph.build(), Err(GraphError::TotalOverflow { tensor }));
    }

    #[test]
    fn operations_in_any_order_are_sorted_and_a_cycle_is_named() {
        let chain = |last_reads: usize| {
            let mut graph = Graph::builder();
            let ids: Vec<TensorId> =
                (0..4).map(|index| graph.tensor(Tensor::new(index.to_string(), Bytes::new(1)))).collect();
            graph.operation(Operation::new("c").reads([ids[2]]).writes([ids[3]]));
            graph.operation(Operation::new("b").reads([ids[1]]).writes([ids[2]]));
            graph.operation(Operation::new("free"));
            graph.operation(Operation::new("a").reads([ids[last_reads]]).writes([ids[1]]));
            graph
        };
        let graph = chain(0).build_in_any_order().expect("valid");
        let kinds: Vec<&str> = graph.operations().iter().map(|operation| &*operation.op).collect();
        assert_eq!(kinds, ["free", "a", "b", "c"]);
        assert_eq!(graph.maker(TensorId(3)), Some(OpId(3)));
        assert!(matches!(chain(0).build(), Err(GraphError::ReadBeforeWrite { .. })));
        let error = chain(3).build_in_any_order().expect_err("a cycle");
        assert_eq!(error, GraphError::Cycle { operations: vec![OpId(0), OpId(3), OpId(1)] });
        assert_eq!(error.to_string(), "operations wait for each other in a cycle: 0 -> 3 -> 1 -> 0");
    }

    #[test]
    fn an_alias_lies_inside_its_base() {
        let bad = |tensor: Tensor, reason: &str| {
            let (mut graph, ..) = two();
            graph.tensor(tensor);
            match graph.build() {
                Err(GraphError::BadAlias { reason: found, .. }) => assert_eq!(found, reason),
                other => panic!("{other:?}"),
            }
        };
        let view = |bytes, base, offset| {
            Tensor::new("view", Bytes::new(bytes)).within(TensorId(base), Bytes::new(offset))
        };
        bad(view(5, 1, 4), "it does not fit there");
        bad(view(1, 7, 0), "there is no such tensor");
        bad(view(1, 2, 0), "they lie in each other");
        bad(view(1, 1, 0).as_external(), "the caller keeps the one, not the other");
        let (mut graph, small, large) = two();
        let half = graph.tensor(view(4, 1, 4));
        let quarter = graph.tensor(view(2, 2, 1));
        let graph = graph.build().expect("valid");
        assert_eq!(graph.place(quarter), Place { root: large, offset: Bytes::new(5) });
        assert_eq!(graph.in_storage(large).collect::<Vec<_>>(), [large, half, quarter]);
        assert!(graph.share_bytes(half, quarter) && !graph.share_bytes(small, half));
    }

    #[test]
    fn a_tensor_is_there_after_its_maker_its_bases_or_those_of_its_pieces() {
        let (mut graph, small, large) = two();
        let pieces =
            [0, 4].map(|at| graph.tensor(Tensor::new("", Bytes::new(4)).within(large, Bytes::new(at))));
        let shown = graph.tensor(Tensor::new("", Bytes::new(4)).within(small, Bytes::ZERO));
        let view = graph.operation(Operation::new("view").reads([small]).writes([shown]));
        let f = graph.operation(Operation::new("f").reads([shown]).writes([pieces[0]]));
        let g = graph.operation(Operation::new("g").reads([pieces[0]]).writes([pieces[1]]));
        graph.operation(Operation::new("h").reads([large]));
        let graph = graph.build().expect("valid");
        assert_eq!(graph.sources(large), [f, g]);
        assert_eq!(graph.sources(pieces[1]), [g]);
        assert_eq!(graph.sources(small), []);
        assert_eq!(graph.sources(shown), [view]);
    }

    #[test]
    fn a_time_is_a_number() {
        let (mut graph, ..) = two();
        let op = Operation { seconds: Some(f64::NAN), ..Operation::new("x") };
        graph.operation(op);
        assert!(matches!(graph.build(), Err(GraphError::BadTime { .. })));
    }
}
