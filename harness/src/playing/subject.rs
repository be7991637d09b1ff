//! What is played: a trace, or several in turn.

use planlab_dsa::{Digest, Step};
use planlab_replay::Sequence;
use planlab_results::WorkloadKey;
use planlab_solvers::online::Requests;
use planlab_workloads::{Trace, expected};

use crate::inputs::Source;

/// What the rows of a replay say of the workload.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// The workload's key or the file's name, or what those of several share.
    pub(crate) name: WorkloadKey,
    /// The keys of the propagations, where there are several.
    pub(crate) sequence: Vec<String>,
    /// Only what comes before this step is played.
    pub(crate) until: Option<u32>,
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
        let names: Vec<WorkloadKey> = sources.iter().map(|source| source.name.as_str().into()).collect();
        let instance = match traces {
            [one] => one.instance.digest(),
            _ => Digest::of_bytes(digests.join("\n").as_bytes()),
        };
        let retained = match names.as_slice() {
            [one] => expected::expected().propagation(one).map(|known| known.parameters.get()),
            _ => None,
        };
        Self {
            name: WorkloadKey::shared(&names).unwrap_or_else(|| "sequence".into()),
            sequence: if names.len() > 1 {
                names.into_iter().map(String::from).collect()
            } else {
                Vec::new()
            },
            until: None,
            instance,
            requests: sequences.iter().map(Sequence::requests).sum(),
            peak: sequences.iter().map(|sequence| sequence.peak().get()).max().unwrap_or(0),
            total: sequences.iter().map(|sequence| sequence.total().get()).sum(),
            retained,
        }
    }
}

/// The requests of a trace, for what was asked for before sizes were rounded up.
pub(crate) fn requests(trace: &Trace, until: Option<u32>) -> Requests {
    let buffers = trace.instance.buffers().iter().zip(&trace.labels.buffers);
    let sizes = buffers.map(|(buffer, label)| label.requested.unwrap_or(buffer.size)).collect();
    let requests = Requests::new(&trace.instance).with_sizes(sizes);
    match until {
        Some(step) => requests.with_until(Step::new(step)),
        None => requests,
    }
}
