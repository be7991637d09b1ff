//! A decoded file of ONNX, and where in it something is wrong.

use super::lives::Lives;
use super::messages::{Graph, Model};
use super::shapes::{ModelFault, Shapes};
use crate::formats::FormatError;
use crate::formats::import::Input;
use crate::formats::import::protobuf::{Bytes, decode_message, message_place};

/// The graph of a file, and in it the number of the nodes.
const GRAPH: (u64, usize) = (7, 0);
const NODE: u64 = 1;

/// A model and the bytes that it was decoded from.
pub(crate) struct DecodedModel {
    file: String,
    bytes: Bytes,
    pub(crate) model: Model,
}

impl DecodedModel {
    /// Decodes a file.
    pub(crate) fn from_input(input: Input<'_>) -> Result<Self, FormatError> {
        let file = input.file_name().to_owned();
        let bytes = Bytes::from(input.read_bytes()?);
        let model = decode_message(&file, &bytes)?;
        Ok(Self { file, bytes, model })
    }

    /// What errors call the file.
    pub(crate) fn file_name(&self) -> &str {
        &self.file
    }

    pub(crate) fn graph(&self) -> Result<&Graph, FormatError> {
        let missing = || self.error_at(ModelFault::from("there is no graph in it".to_owned()));
        self.model.graph.as_ref().ok_or_else(missing)
    }

    /// The shapes of a graph's values with given dimensions, and the lives of its buffers.
    pub(crate) fn follow_graph(
        &self,
        dims: &[(String, u64)],
    ) -> Result<(Shapes<'_>, Lives<'_>), FormatError> {
        let graph = self.graph()?;
        let shapes = Shapes::from_graph(graph, dims).map_err(|fault| self.error_at(fault))?;
        let lives = Lives::from_graph(graph, &shapes, self.model.operator_versions());
        Ok((shapes, lives.map_err(|fault| self.error_at(fault))?))
    }

    /// The error at the node that is at fault, or at the graph.
    pub(crate) fn error_at(&self, fault: ModelFault) -> FormatError {
        let node = fault.node.map(|node| (NODE, node));
        let path: Vec<(u64, usize)> = [GRAPH].into_iter().chain(node).collect();
        FormatError::at_byte(&self.file, message_place(&self.bytes, &path), fault.reason)
    }
}
