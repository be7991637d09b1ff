//! One propagation as alternating runs of requests and frees.
//!
//! ```text
//!   a a a f a f f a   ...   at the end: what is live is freed, by the buffers' ids
//!   +---+ + + +-+ +
//! ```

use planlab_dsa::{Bytes, Call, Requests};

/// The kind of calls in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Requests.
    Alloc,
    /// Frees.
    Free,
}

/// The calls of one propagation, in runs of one kind. Buffers that live to the end are freed there.
///
/// ```
/// use planlab_dsa::{Buffer, Bytes, Instance, LiveRange, Requests};
/// use planlab_replay::{Kind, Sequence};
///
/// let buffers = [(64, 0, 2), (32, 0, 1)].map(|(size, start, end)| {
///     Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"))
/// });
/// let sequence = Sequence::new(&Requests::new(&Instance::from_buffers(buffers.to_vec())?));
/// let runs: Vec<(Kind, &[u32])> = sequence.runs().collect();
/// assert_eq!(runs, [(Kind::Alloc, &[0, 1][..]), (Kind::Free, &[1, 0][..])]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Bytes of each buffer, by its id.
    sizes: Vec<u64>,
    /// The buffers of all runs.
    buffers: Vec<u32>,
    runs: Vec<Run>,
    requests: u64,
    /// The most bytes live at once, and the number of runs up to there.
    peak: (u64, usize),
    total: u64,
    /// The operation of each buffer, by its id, if known.
    operations: Option<Vec<u64>>,
    kind: u64,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    kind: Kind,
    /// One past the run's last buffer in `buffers`.
    end: usize,
}

impl Sequence {
    /// The calls of one propagation.
    #[must_use]
    pub fn new(requests: &Requests) -> Self {
        let sizes = requests.sizes().iter().map(|size| size.get()).collect();
        let mut sequence = Self {
            sizes,
            buffers: Vec::new(),
            runs: Vec::new(),
            requests: 0,
            peak: (0, 0),
            total: 0,
            operations: requests.requesting_operations().map(<[u64]>::to_vec),
            kind: requests.kind(),
        };
        let mut is_live = vec![false; requests.sizes().len()];
        let mut live = 0;
        for call in requests.calls_in_order() {
            match call {
                Call::Alloc(id) => {
                    is_live[id.index()] = true;
                    sequence.push_call(Kind::Alloc, id.get(), &mut live);
                }
                Call::Free(id) => {
                    is_live[id.index()] = false;
                    sequence.push_call(Kind::Free, id.get(), &mut live);
                }
            }
        }
        let left = (0_u32..).zip(is_live).filter(|&(_, is_live)| is_live);
        left.for_each(|(id, _)| sequence.push_call(Kind::Free, id, &mut live));
        sequence
    }

    fn push_call(&mut self, kind: Kind, id: u32, live: &mut u64) {
        self.buffers.push(id);
        let end = self.buffers.len();
        match self.runs.last_mut().filter(|run| run.kind == kind) {
            Some(run) => run.end = end,
            None => self.runs.push(Run { kind, end }),
        }
        let size = self.sizes[id as usize];
        if kind == Kind::Free {
            *live -= size;
            return;
        }
        self.requests += 1;
        self.total += size;
        *live += size;
        if *live > self.peak.0 {
            self.peak = (*live, self.runs.len());
        }
    }

    /// The runs in order; the kind alternates.
    pub fn runs(&self) -> impl Iterator<Item = (Kind, &[u32])> + '_ {
        self.runs_between(0, self.runs.len())
    }

    /// All calls in order, each with its buffer.
    pub fn calls(&self) -> impl Iterator<Item = (Kind, u32)> + '_ {
        self.runs().flat_map(|(kind, buffers)| buffers.iter().map(move |&buffer| (kind, buffer)))
    }

    /// The runs up to the first after which the most bytes are live, and the runs after that.
    pub fn halves_at_peak(&self) -> [impl Iterator<Item = (Kind, &[u32])> + '_; 2] {
        [self.runs_between(0, self.peak.1), self.runs_between(self.peak.1, self.runs.len())]
    }

    fn runs_between(&self, from: usize, to: usize) -> impl Iterator<Item = (Kind, &[u32])> + '_ {
        let mut start = from.checked_sub(1).map_or(0, |before| self.runs[before].end);
        self.runs[from..to].iter().map(move |run| {
            let buffers = &self.buffers[start..run.end];
            start = run.end;
            (run.kind, buffers)
        })
    }

    /// The size of each buffer in bytes, by its id.
    #[must_use]
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// The operation that requests each buffer, by its id, if known.
    #[must_use]
    pub fn operations(&self) -> Option<&[u64]> {
        self.operations.as_deref()
    }

    /// The kind of propagation: propagations of one kind make the same requests.
    #[must_use]
    pub const fn kind(&self) -> u64 {
        self.kind
    }

    /// The number of requests in one propagation.
    #[must_use]
    pub const fn request_count(&self) -> u64 {
        self.requests
    }

    /// The most requested bytes live at once.
    #[must_use]
    pub const fn peak_bytes(&self) -> Bytes {
        Bytes::new(self.peak.0)
    }

    /// Bytes of all requests together.
    #[must_use]
    pub const fn total_bytes(&self) -> Bytes {
        Bytes::new(self.total)
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::test_instance;

    use super::*;

    fn sequence(rows: &[(u64, u32, u32)]) -> Sequence {
        Sequence::new(&Requests::new(&test_instance(rows)))
    }

    #[test]
    fn what_lives_to_the_end_is_freed_there() {
        let sequence = sequence(&[(10, 0, 2), (20, 2, 4), (30, 1, 5), (40, 4, 5)]);
        let runs: Vec<_> = sequence.runs().map(|(kind, ids)| (kind, ids.to_vec())).collect();
        assert_eq!(
            runs,
            [
                (Kind::Alloc, vec![0, 2]),
                (Kind::Free, vec![0]),
                (Kind::Alloc, vec![1]),
                (Kind::Free, vec![1]),
                (Kind::Alloc, vec![3]),
                (Kind::Free, vec![2, 3]),
            ]
        );
        assert_eq!(
            (sequence.request_count(), sequence.peak_bytes(), sequence.total_bytes()),
            (4, Bytes::new(70), Bytes::new(100))
        );
    }

    #[test]
    fn the_halves_meet_where_the_most_is_live() {
        let sequence = sequence(&[(10, 0, 2), (20, 2, 4), (30, 1, 5), (40, 4, 5)]);
        let [first, second]: [Vec<(Kind, usize)>; 2] =
            sequence.halves_at_peak().map(|half| half.map(|(kind, ids)| (kind, ids.len())).collect());
        let (alloc, free) = ((Kind::Alloc, 1), (Kind::Free, 1));
        assert_eq!(first, [(Kind::Alloc, 2), free, alloc, free, alloc]);
        assert_eq!(second, [(Kind::Free, 2)]);
    }

    #[test]
    fn no_buffers_make_no_runs() {
        let sequence = sequence(&[]);
        assert_eq!(
            (sequence.runs().count(), sequence.peak_bytes(), sequence.request_count()),
            (0, Bytes::ZERO, 0)
        );
    }
}
