//! The profile of requests: their sizes, and which were ever live together.

use planlab_dsa::{Buffer, BufferId, Bytes, Instance, KeepApart, LiveRange};

use super::keys::Key;
use crate::bounds::Bits;
use crate::online::blocks::UNIT;
use crate::online::profile_guided::Request;

/// A request that is absent from this many plans has no place in the next.
const REMEMBERED: u64 = 64;
/// Above this number of keys, only the latest propagation is kept: pairs would take too much memory.
const MOST_KEYS: usize = 1 << 14;
/// The same above this number of pairs.
const MOST_PAIRS: usize = 1 << 20;

/// The profile of the request of a key.
#[derive(Clone, Copy, Debug, Default)]
struct KnownRequest {
    /// The largest size requested.
    size: u64,
    /// Its steps in the last propagation with a record of it, if it was freed there.
    live: Option<(u32, u32)>,
    /// The number of that record, from 1; 0: no record.
    record: u64,
    /// The number of plans made by then.
    plans: u64,
}

/// Everything recorded so far.
#[derive(Default)]
pub(super) struct Profile {
    known: Vec<KnownRequest>,
    /// For each key, the keys in use at its request, in any record; empty if there is only one record.
    met: Vec<Bits>,
    records: u64,
    plans: u64,
}

/// A placement problem, sizes in units, and the key of each buffer.
pub(super) struct Problem {
    pub(super) instance: Instance,
    pub(super) keys: Vec<Key>,
}

impl Profile {
    /// Whether the request of a key outlived the last propagation with a record of it.
    pub(super) fn is_outliving(&self, key: Key) -> bool {
        self.known.get(key as usize).is_some_and(|known| known.record > 0 && known.live.is_none())
    }

    /// The largest recorded size of the request of a key.
    pub(super) fn largest_size(&self, key: Key) -> u64 {
        self.known[key as usize].size
    }

    /// Adds a propagation; keys are below `keys`.
    pub(super) fn record_propagation(&mut self, requests: &[Request<Key>], keys: usize) {
        if self.records > 0 && self.met.is_empty() {
            self.record_meetings(&self.latest_record());
        }
        self.known.resize(keys.max(self.known.len()), KnownRequest::default());
        self.records += 1;
        for request in requests {
            let known = &mut self.known[request.key as usize];
            known.size = known.size.max(request.size);
            known.live = request.end.map(|end| (request.start, end));
            (known.record, known.plans) = (self.records, self.plans);
        }
        if self.records > 1 {
            self.record_meetings(requests);
        }
    }

    /// The latest record, in the order of its requests.
    fn latest_record(&self) -> Vec<Request<Key>> {
        let is_latest = |known: &KnownRequest| known.record == self.records;
        let latest = (0..).zip(&self.known).filter(|(_, known)| is_latest(known));
        let request = |(key, known): (Key, &KnownRequest)| {
            let (start, end) = known.live?;
            Some(Request { key, size: known.size, start, end: Some(end) })
        };
        let mut requests: Vec<Request<Key>> = latest.filter_map(request).collect();
        requests.sort_unstable_by_key(|request| request.start);
        requests
    }

    /// Records which requests are in use at the start of others.
    fn record_meetings(&mut self, requests: &[Request<Key>]) {
        self.make_room();
        let Some(len) = self.met.first().map(Bits::len) else { return };
        let mut freed: Vec<(u32, Key)> =
            requests.iter().filter_map(|request| Some((request.end?, request.key))).collect();
        freed.sort_unstable();
        let (mut freed, mut live) = (freed.into_iter().peekable(), Bits::empty_set(len));
        for request in requests.iter().filter(|request| request.end.is_some()) {
            while let Some((_, key)) = freed.next_if(|&(end, _)| end <= request.start) {
                live.clear_range(key as usize, key as usize + 1);
            }
            let key = request.key as usize;
            self.met[key].union(&live);
            live.insert(key);
        }
    }

    /// Makes a set for each key, each with room for all keys; no sets if there are too many keys.
    fn make_room(&mut self) {
        let keys = self.known.len();
        if keys > MOST_KEYS {
            self.met.clear();
            return;
        }
        let len = keys.next_power_of_two().max(64);
        if self.met.first().is_some_and(|met| met.len() < len) {
            self.met = self.met.iter().map(|met| met.moved_up(0, len)).collect();
        }
        self.met.resize(keys, Bits::empty_set(len));
    }

    /// The placement problem of the requests that are freed: those of the latest record at their steps, the others
    /// after them. Requests that were ever in use together but not by these steps are kept apart. `None` if there is
    /// nothing to plan, or if it cannot be planned.
    pub(super) fn placement_problem(&mut self) -> Option<Problem> {
        self.plans += 1;
        let latest = self.latest_record();
        let steps = latest.iter().filter_map(|request| request.end).max().unwrap_or(0);
        let mut keys: Vec<Key> = latest.iter().map(|request| request.key).collect();
        let mut live: Vec<LiveRange> = latest.iter().filter_map(Request::live_range).collect();
        if !self.met.is_empty() {
            let others = self.remembered_keys();
            live.extend((steps..).zip(&others).filter_map(|(step, _)| LiveRange::new(step, step + 1).ok()));
            keys.extend(others);
        }
        let Some(pairs) = self.keep_apart_pairs(&keys, &live) else {
            self.forget_older();
            return self.placement_problem();
        };
        let size = |&key: &Key| Bytes::new(self.largest_size(key) / UNIT);
        let buffers: Vec<Buffer> =
            keys.iter().zip(&live).map(|(key, &live)| Buffer::new(size(key), live)).collect();
        let is_any = !buffers.is_empty();
        let instance = Instance::builder().buffers(buffers).apart(pairs).build().ok().filter(|_| is_any)?;
        Some(Problem { instance, keys })
    }

    /// Keys of earlier records that are missing in the latest.
    fn remembered_keys(&self) -> Vec<Key> {
        let is_remembered = |known: &KnownRequest| {
            known.live.is_some() && known.record < self.records && self.plans - known.plans <= REMEMBERED
        };
        (0..).zip(&self.known).filter(|(_, known)| is_remembered(known)).map(|(key, _)| key).collect()
    }

    /// The buffers, each with a key and steps, that were in use together but not by these steps; `None` if there are
    /// too many.
    fn keep_apart_pairs(&self, keys: &[Key], live: &[LiveRange]) -> Option<Vec<KeepApart>> {
        let mut buffer_of = vec![None; self.known.len()];
        keys.iter().enumerate().for_each(|(buffer, &key)| buffer_of[key as usize] = Some(buffer));
        let mut pairs = Vec::new();
        for (first, &key) in keys.iter().enumerate() {
            let met = self.met.get(key as usize).into_iter().flat_map(Bits::iter);
            let apart = |second: &usize| *second != first && !live[first].overlaps(live[*second]);
            for second in met.filter_map(|key| buffer_of[key]).filter(apart) {
                let [first, second] = [first, second].map(BufferId::from_index);
                pairs.push(KeepApart { first: first.min(second), second: first.max(second) });
            }
            if pairs.len() > MOST_PAIRS {
                return None;
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        Some(pairs)
    }

    /// Forgets all but the latest record.
    fn forget_older(&mut self) {
        self.met.clear();
        for known in &mut self.known {
            let is_latest = known.record == self.records;
            *known = if is_latest { KnownRequest { record: 1, ..*known } } else { KnownRequest::default() };
        }
        self.records = 1;
    }
}
