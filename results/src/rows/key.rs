//! The keys that name workloads.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::columns::names;

/// The key of a workload: segments separated by slashes, the route first. Nets are
/// `<route>/<net>/<mode>/b<N>[/variant]`; other workloads have their own forms (`minimalloc/a`,
/// `synthetic/uniform/n1000/s7`). A trace from a file is named after the file. Any text is a valid key.
///
/// ```
/// use planlab_results::WorkloadKey;
///
/// let key = WorkloadKey::from("torch/resnet50/train/b64/ws8m");
/// assert_eq!((key.route(), key.group()), ("torch", "torch/resnet50"));
/// let net = key.net_parts().expect("of a net");
/// assert_eq!((net.net, net.mode, net.batch, net.variant), ("resnet50", "train", 64, Some("ws8m")));
/// assert_eq!(WorkloadKey::from("minimalloc/a").net_parts(), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkloadKey(String);

/// The parts of a net's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetParts<'k> {
    /// The origin of the net: `chainer`, `torch-cpu`.
    pub route: &'k str,
    /// The net's name.
    pub net: &'k str,
    /// `train`, `infer`, `process`, `decode`.
    pub mode: &'k str,
    /// The batch size.
    pub batch: u64,
    /// Everything after the batch.
    pub variant: Option<&'k str>,
}

impl WorkloadKey {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first segment: the origin of the workload.
    #[must_use]
    pub fn route(&self) -> &str {
        self.0.split('/').next().unwrap_or_default()
    }

    /// The first two segments: `chainer/alexnet`, `synthetic/uniform`.
    #[must_use]
    pub fn group(&self) -> &str {
        let second = self.0.match_indices('/').nth(1);
        second.map_or(self.as_str(), |(at, _)| &self.0[..at])
    }

    /// The parts of the key, if it is that of a net.
    #[must_use]
    pub fn net_parts(&self) -> Option<NetParts<'_>> {
        let mut parts = self.0.splitn(5, '/');
        let (route, net, mode) = (parts.next()?, parts.next()?, parts.next()?);
        let batch = parts.next()?.strip_prefix('b')?.parse().ok()?;
        Some(NetParts { route, net, mode, batch, variant: parts.next() })
    }

    /// The leading segments that all keys share; `None` without any.
    #[must_use]
    pub fn shared_prefix(keys: &[Self]) -> Option<Self> {
        let (first, rest) = keys.split_first()?;
        let segments: Vec<&str> = first.split('/').collect();
        let common = |key: &Self| key.split('/').zip(&segments).take_while(|(a, b)| a == *b).count();
        let count = rest.iter().map(common).min().unwrap_or(segments.len());
        (count > 0).then(|| Self(segments[..count].join("/")))
    }
}

impl Deref for WorkloadKey {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for WorkloadKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkloadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl From<String> for WorkloadKey {
    fn from(key: String) -> Self {
        Self(key)
    }
}

impl From<&str> for WorkloadKey {
    fn from(key: &str) -> Self {
        Self(key.to_owned())
    }
}

impl From<&WorkloadKey> for String {
    fn from(key: &WorkloadKey) -> Self {
        key.0.clone()
    }
}

impl From<WorkloadKey> for String {
    fn from(key: WorkloadKey) -> Self {
        key.0
    }
}

impl PartialEq<str> for WorkloadKey {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for WorkloadKey {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl PartialEq<WorkloadKey> for String {
    fn eq(&self, other: &WorkloadKey) -> bool {
        *self == other.0
    }
}

names!(WorkloadKey::as_str);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_share_their_first_segments() {
        let of = |keys: &[&str]| {
            let keys: Vec<WorkloadKey> = keys.iter().map(|&key| key.into()).collect();
            WorkloadKey::shared_prefix(&keys).map(String::from)
        };
        assert_eq!(of(&["a/b/c"]).as_deref(), Some("a/b/c"));
        assert_eq!(of(&["a/b/c", "a/b/d", "a/b"]).as_deref(), Some("a/b"));
        assert_eq!(of(&["a/bc", "a/b"]).as_deref(), Some("a"));
        assert_eq!((of(&["a/b", "c/b"]), of(&[])), (None, None));
    }

    #[test]
    fn only_nets_have_a_batch() {
        for key in ["chainer/alexnet", "synthetic/uniform/n10/s1", "a/b/train/32", "a/train/b32"] {
            assert_eq!(WorkloadKey::from(key).net_parts(), None, "{key}");
        }
        assert_eq!(WorkloadKey::from("a/b/process/b2").net_parts().map(|net| net.batch), Some(2));
    }
}
