//! What is played: a trace, or several in turn.

use planlab_dsa::Digest;
use planlab_replay::Sequence;
use planlab_workloads::{Trace, expected};

use crate::inputs::Source;
use crate::playing::simulated::requests;

/// What the rows of a replay say of the workload.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// The workload's key or the file's name, or what those of several share.
    pub(crate) name: String,
    /// The keys of the propagations, where there are several.
    pub(crate) sequence: Vec<String>,
    pub(crate) instance: Digest,
    /// Of all propagations.
    pub(crate) requests: u64,
    /// The most bytes of requests live at once.
    pub(crate) peak: u64,
    /// Bytes of all requests of all propagations together.
    pub(crate) total: u64,
    /// Bytes of what lives from before the propagation to after it.
    pub(crate) retained: Option<u64>,
}

impl Subject {
    /// The traces, each one propagation, in their order.
    pub(crate) fn of(sources: &[Source], traces: &[Trace]) -> Self {
        let sequences: Vec<Sequence> =
            traces.iter().map(|trace| Sequence::new(&requests(trace, None))).collect();
        let digests: Vec<String> = traces.iter().map(|trace| trace.instance.digest().to_string()).collect();
        let names: Vec<String> = sources.iter().map(|source| source.name.clone()).collect();
        let instance = match traces {
            [one] => one.instance.digest(),
            _ => Digest::of_bytes(digests.join("\n").as_bytes()),
        };
        let retained = match names.as_slice() {
            [one] => expected::expected().propagation(one).map(|known| known.parameters.get()),
            _ => None,
        };
        Self {
            name: shared_part(&names),
            sequence: if names.len() > 1 { names } else { Vec::new() },
            instance,
            requests: sequences.iter().map(Sequence::requests).sum(),
            peak: sequences.iter().map(|sequence| sequence.peak().get()).max().unwrap_or(0),
            total: sequences.iter().map(|sequence| sequence.total().get()).sum(),
            retained,
        }
    }
}

/// The parts of keys that all have at their begin: `chainer/seq2seq/train/b32`.
fn shared_part(names: &[String]) -> String {
    let [first, others @ ..] = names else { return String::new() };
    let is_shared = |count: &usize| {
        let parts: Vec<&str> = first.split('/').take(*count).collect();
        others.iter().all(|other| other.split('/').take(*count).eq(parts.iter().copied()))
    };
    let count = (1..=first.split('/').count()).rev().find(is_shared);
    match count {
        Some(count) => first.split('/').take(count).collect::<Vec<&str>>().join("/"),
        None => "sequence".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_keys_have_a_name_together() {
        let of = |names: &[&str]| shared_part(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["a/b/c"]), "a/b/c");
        assert_eq!(of(&["a/b/c", "a/b/d", "a/b"]), "a/b");
        assert_eq!(of(&["a/b", "c/b"]), "sequence");
    }
}
