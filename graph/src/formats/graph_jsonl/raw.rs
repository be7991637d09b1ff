//! The objects of a graph file.

use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub(super) planlab: String,
    pub(super) version: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) order: Turns,
    #[serde(default)]
    pub(super) tensors: Vec<RawTensor>,
}

/// The order of the operations in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Turns {
    #[default]
    Execution,
    Any,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTensor {
    pub(super) tensor: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) category: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) external: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) alias: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<u64>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawOperation {
    pub(super) op: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    #[serde(default)]
    pub(super) reads: Vec<String>,
    #[serde(default)]
    pub(super) writes: Vec<RawTensor>,
    #[serde(default, rename = "inplace", skip_serializing_if = "Vec::is_empty")]
    pub(super) in_place: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) workspace: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) flops: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) stream: u32,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
