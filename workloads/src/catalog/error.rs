//! Why there is no workload for a key.

use crate::external::ExternalError;
use crate::formats::FormatError;
use crate::models::ModelError;
use crate::nearest::did_you_mean;
use crate::process::ProcessError;
use crate::synthetic::ParameterError;

/// Why a workload is not available.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// No workload has this key.
    #[error("there is no workload `{key}`{}", did_you_mean(nearest))]
    Unknown { key: String, nearest: Vec<String> },
    /// The key names a public instance, but its source is missing.
    #[error("there is no workload `{key}`: {notice}")]
    Absent { key: String, notice: String },
    /// The synthetic key does not name an instance.
    #[error(transparent)]
    Synthetic(#[from] ParameterError),
    /// The model key does not name an instance.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A recorded file is damaged.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A public instance, or a file of the caller's own, cannot be read.
    #[error(transparent)]
    External(#[from] ExternalError),
    /// A recorded trace does not determine the process that contains it.
    #[error("there is no workload `{key}`: {source}")]
    Process { key: String, source: ProcessError },
}
