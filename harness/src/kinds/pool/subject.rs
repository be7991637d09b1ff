//! The workload of a replay: a trace, or several in turn.

use std::collections::BTreeMap;

use planlab_dsa::{Bytes, Digest, Step};
use planlab_replay::Sequence;
use planlab_results::WorkloadKey;
use planlab_solvers::online::Requests;
use planlab_workloads::{Trace, expected};

use crate::inputs::Source;

/// The rows' description of a replay's workload.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// The workload's key or the file's name; for several, their common part.
    pub(crate) name: WorkloadKey,
    /// The keys of the propagations, if there are several.
    pub(crate) sequence: Vec<String>,
    /// Only what comes before this step is played.
    pub(crate) until: Option<u32>,
    pub(crate) instance: Digest,
    /// The number of requests of all propagations.
    pub(crate) requests: u64,
    /// The most bytes of requests live at once.
    pub(crate) peak: u64,
    /// Bytes of all requests of all propagations together.
    pub(crate) total: u64,
    /// Bytes that live from before the propagation to after it.
    pub(crate) retained: Option<u64>,
}

impl Subject {
    /// The subject of these traces in order, each as one propagation.
    pub(crate) fn from_sources(sources: &[Source], traces: &[Trace]) -> Self {
        let sequences: Vec<Sequence> = trace_propagations(traces, None).iter().map(Sequence::new).collect();
        let digests: Vec<String> = traces.iter().map(|trace| trace.instance.digest().to_string()).collect();
        let names: Vec<WorkloadKey> = sources.iter().map(|source| source.name.as_str().into()).collect();
        let instance = match traces {
            [one] => one.instance.digest(),
            _ => Digest::of_bytes(digests.join("\n").as_bytes()),
        };
        let retained = match names.as_slice() {
            [one] => expected::expected_figures().propagation(one).map(|known| known.parameters.get()),
            _ => None,
        };
        Self {
            name: WorkloadKey::shared_prefix(&names).unwrap_or_else(|| "sequence".into()),
            sequence: if names.len() > 1 {
                names.into_iter().map(String::from).collect()
            } else {
                Vec::new()
            },
            until: None,
            instance,
            requests: sequences.iter().map(Sequence::request_count).sum(),
            peak: sequences.iter().map(|sequence| sequence.peak_bytes().get()).max().unwrap_or(0),
            total: sequences.iter().map(|sequence| sequence.total_bytes().get()).sum(),
            retained,
        }
    }
}

/// The requests of traces, each as one propagation. Traces with the same requests in the same order are of one kind, as
/// a framework knows by the shapes of its inputs.
pub(crate) fn trace_propagations<'t>(
    traces: impl IntoIterator<Item = &'t Trace>,
    until: Option<u32>,
) -> Vec<Requests> {
    let mut kinds: BTreeMap<(Digest, Vec<Bytes>), u64> = BTreeMap::new();
    let of_kind = |trace: &Trace| {
        let (requests, next) = (trace_requests(trace, until), kinds.len() as u64);
        let kind = *kinds.entry((trace.instance.digest(), requests.sizes().to_vec())).or_insert(next);
        requests.with_kind(kind)
    };
    traces.into_iter().map(of_kind).collect()
}

/// The requests of a trace, in bytes before any rounding, with the operations that it names.
fn trace_requests(trace: &Trace, until: Option<u32>) -> Requests {
    let buffers = trace.instance.buffers().iter().zip(&trace.labels.buffers);
    let sizes = buffers.map(|(buffer, label)| label.requested.unwrap_or(buffer.size)).collect();
    let mut requests = Requests::new(&trace.instance).with_sizes(sizes);
    let ops = || trace.labels.buffers.iter().map(|label| label.op.as_deref());
    if ops().any(|op| op.is_some()) {
        let number = |op: Option<&str>| Digest::of_bytes(op.unwrap_or_default().as_bytes()).as_number();
        requests = requests.with_operations(ops().map(number).collect());
    }
    match until {
        Some(step) => requests.with_until(Step::new(step)),
        None => requests,
    }
}
