//! The parts of a graph: tensors and operations.

use std::borrow::Cow;

use planlab_dsa::{Bytes, Stream};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Deserialize, serde::Serialize)]
        #[serde(transparent)]
        pub struct $name(u32);

        impl $name {
            /// The id with an index.
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

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}
pub(crate) use id;

id! {
    /// The number of a tensor, from 0.
    TensorId
}
id! {
    /// The number of an operation, from 0, in the order of the graph.
    OpId
}

/// The place of a tensor that has no storage of its own: a view, a reshape, or a piece of a concatenation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The tensor whose bytes it shares.
    pub base: TensorId,
    /// Its first byte, counted from the start of the base.
    pub offset: Bytes,
}

/// A tensor, with a storage of its own or in the storage of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its name; if empty, messages and files use its number.
    pub name: String,
    /// Its size in bytes; more than 0.
    pub bytes: Bytes,
    /// Its purpose: `activation`, `gradient`, `parameter`, ...
    pub category: Option<Cow<'static, str>>,
    /// Whether it is still needed after the last operation.
    pub output: bool,
    /// Whether the caller owns its memory (parameters, say, or gradients that the caller binds). Such a tensor is not a
    /// buffer of the placement problem.
    pub external: bool,
    /// Its place in the storage of another tensor; `None` for a storage of its own. A view shows the bytes of its base:
    /// an operation that changes them through the view reads and writes the view.
    pub alias: Option<Alias>,
}

impl Tensor {
    /// A planned tensor with a storage of its own that is dropped after its last use.
    #[must_use]
    pub fn new(name: impl Into<String>, bytes: Bytes) -> Self {
        Self { name: name.into(), bytes, category: None, output: false, external: false, alias: None }
    }

    /// Sets the category. Default: none.
    #[must_use]
    pub fn with_category(mut self, category: impl Into<Cow<'static, str>>) -> Self {
        self.category = Some(category.into());
        self
    }

    /// Keeps the tensor to the end. Default: it is dropped after its last use.
    #[must_use]
    pub fn as_output(mut self) -> Self {
        self.output = true;
        self
    }

    /// Leaves the memory of the tensor to the caller. Default: it is planned.
    #[must_use]
    pub fn as_external(mut self) -> Self {
        self.external = true;
        self
    }

    /// Places the tensor in the storage of `base`, from byte `offset` of it. Default: a storage of its own.
    #[must_use]
    pub const fn with_base(mut self, base: TensorId, offset: Bytes) -> Self {
        self.alias = Some(Alias { base, offset });
        self
    }
}

/// One operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operation {
    /// Its kind: `conv`, `add`, ...
    pub op: Cow<'static, str>,
    /// Its name; may be empty.
    pub name: String,
    /// The tensors that it reads.
    pub reads: Vec<TensorId>,
    /// The tensors that it writes. It *makes* those that it does not read, and *updates* those that it reads.
    pub writes: Vec<TensorId>,
    /// `(input, output)`: the output may take the place of the input if no other operation needs the input later.
    pub in_place: Vec<(TensorId, TensorId)>,
    /// Scratch memory in bytes while it runs; 0 for none.
    pub workspace: Bytes,
    /// Floating-point operations; 0 if not counted.
    pub flops: u64,
    /// Its measured run time in seconds, if known.
    pub seconds: Option<f64>,
    /// The stream that it runs on. Operations of one stream run one after another, in the order of the graph.
    pub stream: Stream,
}

impl Operation {
    /// An operation of the given kind, without inputs and outputs.
    #[must_use]
    pub fn new(op: impl Into<Cow<'static, str>>) -> Self {
        Self { op: op.into(), ..Self::default() }
    }

    /// Sets the name. Default: none.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Adds inputs. Default: none.
    #[must_use]
    pub fn with_inputs(mut self, tensors: impl IntoIterator<Item = TensorId>) -> Self {
        self.reads.extend(tensors);
        self
    }

    /// Adds outputs. Default: none.
    #[must_use]
    pub fn with_outputs(mut self, tensors: impl IntoIterator<Item = TensorId>) -> Self {
        self.writes.extend(tensors);
        self
    }

    /// Permits `output` to take the place of `input`. Default: no permission.
    #[must_use]
    pub fn with_in_place(mut self, input: TensorId, output: TensorId) -> Self {
        self.in_place.push((input, output));
        self
    }

    /// Sets the size of the workspace. Default: 0 bytes.
    #[must_use]
    pub const fn with_workspace(mut self, bytes: Bytes) -> Self {
        self.workspace = bytes;
        self
    }

    /// Sets the number of floating-point operations. Default: 0.
    #[must_use]
    pub const fn with_flops(mut self, flops: u64) -> Self {
        self.flops = flops;
        self
    }

    /// Sets the stream. Default: stream 0.
    #[must_use]
    pub const fn on_stream(mut self, stream: Stream) -> Self {
        self.stream = stream;
        self
    }

    /// The tensors that it writes but does not read.
    pub fn made_tensors(&self) -> impl Iterator<Item = TensorId> + '_ {
        let reads = self.sorted_reads();
        self.writes.iter().copied().filter(move |tensor| reads.binary_search(tensor).is_err())
    }

    /// The tensors that it both reads and writes, changing them in place.
    pub fn updated_tensors(&self) -> impl Iterator<Item = TensorId> + '_ {
        let reads = self.sorted_reads();
        self.writes.iter().copied().filter(move |tensor| reads.binary_search(tensor).is_ok())
    }

    /// The tensors that it reads, in ascending order.
    pub(crate) fn sorted_reads(&self) -> Vec<TensorId> {
        let mut reads = self.reads.clone();
        reads.sort_unstable();
        reads
    }
}
