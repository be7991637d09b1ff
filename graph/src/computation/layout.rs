//! The place of each tensor in a storage, and the tensors that share one.

use std::collections::BTreeMap;

use planlab_dsa::Bytes;

use super::parts::{Alias, Tensor, TensorId};
use super::spans::Span;

/// The place of a tensor in a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The tensor that owns the storage: the tensor itself if it is not an alias.
    pub root: TensorId,
    /// The first byte of the tensor in the storage.
    pub offset: Bytes,
}

/// The places of all tensors.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layout {
    /// The bytes of each tensor.
    spans: Vec<Span>,
    /// By root, the other tensors in its storage.
    parts: BTreeMap<TensorId, Vec<TensorId>>,
}

impl Layout {
    /// The places of tensors that lie inside their bases; `bases_first` has each tensor after its base.
    pub(crate) fn new(tensors: &[Tensor], bases_first: &[TensorId]) -> Self {
        let own = |(index, tensor): (usize, &Tensor)| Span {
            root: TensorId::from_index(index),
            start: 0,
            end: tensor.bytes.get(),
        };
        let mut spans: Vec<Span> = tensors.iter().enumerate().map(own).collect();
        for tensor in bases_first {
            if let Some(Alias { base, offset }) = tensors[tensor.index()].alias {
                let Span { root, start, .. } = spans[base.index()];
                // A tensor lies inside its base, so that the sum is within the size of the root.
                let by = start + offset.get();
                spans[tensor.index()] = Span { root, start: by, end: by + spans[tensor.index()].end };
            }
        }
        let mut parts = BTreeMap::<TensorId, Vec<TensorId>>::new();
        for (index, span) in spans.iter().enumerate().filter(|(index, span)| span.root.index() != *index) {
            parts.entry(span.root).or_default().push(TensorId::from_index(index));
        }
        Self { spans, parts }
    }

    pub(crate) fn span(&self, tensor: TensorId) -> Span {
        self.spans[tensor.index()]
    }

    /// Whether other tensors lie in the storage of a tensor.
    pub(crate) fn is_shared(&self, tensor: TensorId) -> bool {
        self.parts.contains_key(&self.span(tensor).root)
    }

    /// The tensors in the storage of a root, except the root.
    pub(crate) fn parts(&self, root: TensorId) -> &[TensorId] {
        self.parts.get(&root).map_or(&[], Vec::as_slice)
    }
}
