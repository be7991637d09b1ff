//! Keeps the best plan and bound of a run in a file, so that they survive a kill.
//!
//! The file (in memory, if `/dev/shm` exists) has two slots for the bound and two for the plan. A write goes to the
//! slot that does not hold the latest value, with a sequence number and a checksum. If the writer dies in the middle,
//! the previous value stays readable.
//!
//! ```text
//!   0        512      1024             1024 + s         1024 + 2 s
//!   | bound  | bound  | plan            | plan            |
//!   each slot: sequence u64, length u64, checksum 32 bytes, payload
//! ```

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use planlab_dsa::{Bound, BufferId, Event, InPlace, Offset, Plan};
use planlab_files::open_regular;

const BOUND_SLOT: u64 = 512;
const HEADER: usize = 48;

/// The writing side.
pub(crate) struct Mailbox {
    file: File,
    plan_slot: u64,
    plans: u64,
    bounds: u64,
    /// The first failure to write. The answer reports it, as an observer cannot return an error.
    failure: Option<io::Error>,
}

impl Mailbox {
    /// Creates the file for an instance with `buffers` buffers and `permissions` hand-overs.
    pub(crate) fn create(path: &Path, buffers: usize, permissions: usize) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        Ok(Self { file, plan_slot: plan_slot(buffers, permissions), plans: 0, bounds: 0, failure: None })
    }

    /// Stores the plan or bound of an observer's event.
    pub(crate) fn take(&mut self, event: &Event<'_>) {
        let written = match event {
            Event::Incumbent(plan) => self.put_plan(plan.as_plan()),
            Event::Bound(bound) => self.put_bound(*bound),
        };
        if let Err(error) = written {
            self.failure.get_or_insert(error);
        }
    }

    fn put_plan(&mut self, plan: &Plan) -> io::Result<()> {
        self.plans += 1;
        let at = 2 * BOUND_SLOT + (self.plans % 2) * self.plan_slot;
        write_slot(&self.file, at, self.plans, &encode(plan))
    }

    fn put_bound(&mut self, bound: Bound) -> io::Result<()> {
        self.bounds += 1;
        let payload = serde_json::to_vec(&bound)?;
        write_slot(&self.file, (self.bounds % 2) * BOUND_SLOT, self.bounds, &payload)
    }

    /// Why a plan or bound could not be stored.
    pub(crate) fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }
}

/// Reads the plan and bound that were stored last.
pub(crate) fn read(path: &Path, buffers: usize, permissions: usize) -> (Option<Plan>, Option<Bound>) {
    let Ok(file) = open_regular(path) else { return (None, None) };
    let size = plan_slot(buffers, permissions);
    let plan = latest(&file, [2 * BOUND_SLOT, 2 * BOUND_SLOT + size], size).and_then(|bytes| decode(&bytes));
    let bound = latest(&file, [0, BOUND_SLOT], BOUND_SLOT);
    (plan, bound.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

fn plan_slot(buffers: usize, permissions: usize) -> u64 {
    (HEADER + 16 + 8 * buffers + 8 * permissions) as u64
}

fn write_slot(file: &File, at: u64, sequence: u64, payload: &[u8]) -> io::Result<()> {
    let mut slot = Vec::with_capacity(HEADER + payload.len());
    slot.extend_from_slice(&sequence.to_le_bytes());
    slot.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    slot.extend_from_slice(blake3::hash(payload).as_bytes());
    slot.extend_from_slice(payload);
    file.write_all_at(&slot, at)
}

fn latest(file: &File, slots: [u64; 2], size: u64) -> Option<Vec<u8>> {
    let read = slots.into_iter().filter_map(|at| read_slot(file, at, size));
    read.max_by_key(|&(sequence, _)| sequence).map(|(_, payload)| payload)
}

fn read_slot(file: &File, at: u64, size: u64) -> Option<(u64, Vec<u8>)> {
    let mut header = [0; HEADER];
    file.read_exact_at(&mut header, at).ok()?;
    let sequence = word(&header, 0)?;
    let length = word(&header, 8)?;
    if sequence == 0 || length > size - HEADER as u64 {
        return None;
    }
    let mut payload = vec![0; usize::try_from(length).ok()?];
    file.read_exact_at(&mut payload, at + HEADER as u64).ok()?;
    (blake3::hash(&payload).as_bytes() == &header[16..]).then_some((sequence, payload))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn encode(plan: &Plan) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16 + 8 * (plan.offsets.len() + plan.in_place.len()));
    bytes.extend_from_slice(&(plan.offsets.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&(plan.in_place.len() as u64).to_le_bytes());
    plan.offsets.iter().for_each(|offset| bytes.extend_from_slice(&offset.get().to_le_bytes()));
    for pair in &plan.in_place {
        bytes.extend_from_slice(&pair.input.get().to_le_bytes());
        bytes.extend_from_slice(&pair.output.get().to_le_bytes());
    }
    bytes
}

fn decode(bytes: &[u8]) -> Option<Plan> {
    let offsets = usize::try_from(word(bytes, 0)?).ok()?;
    let pairs = usize::try_from(word(bytes, 8)?).ok()?;
    let mut words = bytes[16..].chunks_exact(8).map(|chunk| word(chunk, 0).unwrap_or_default());
    let plan = Plan {
        offsets: words.by_ref().take(offsets).map(Offset::new).collect(),
        in_place: words.take(pairs).map(pair).collect(),
    };
    (plan.offsets.len() == offsets && plan.in_place.len() == pairs).then_some(plan)
}

#[expect(clippy::cast_possible_truncation, reason = "two 32-bit numbers in one word")]
fn pair(word: u64) -> InPlace {
    InPlace { input: BufferId::new(word as u32), output: BufferId::new((word >> 32) as u32) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planlab_dsa::{Buffer, Bytes, Evidence, Instance, LiveRange, Scope};

    fn plan(offsets: &[u64]) -> Plan {
        let offsets = offsets.iter().copied().map(Offset::new).collect();
        let in_place = vec![InPlace { input: BufferId::new(3), output: BufferId::new(1 << 30) }];
        Plan { offsets, in_place }
    }

    #[test]
    fn the_latest_plan_and_bound_are_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("0");
        let mut mailbox = Mailbox::create(&path, 2, 1).expect("writable");
        assert_eq!(read(&path, 2, 1), (None, None));
        for top in [30, 20, 10] {
            mailbox.put_plan(&plan(&[0, top])).expect("writable");
        }
        let mut bound = Bound::default();
        bound.raise(
            planlab_dsa::Claim { value: Bytes::new(u64::MAX), evidence: Evidence::NormalPattern },
            Scope::Any,
        );
        mailbox.put_bound(Bound::default()).expect("writable");
        mailbox.put_bound(bound).expect("writable");
        assert_eq!(read(&path, 2, 1), (Some(plan(&[0, 10])), Some(bound)));
    }

    #[test]
    fn a_torn_write_leaves_the_plan_before_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("0");
        let mut mailbox = Mailbox::create(&path, 2, 1).expect("writable");
        mailbox.put_plan(&plan(&[0, 30])).expect("writable");
        mailbox.put_plan(&plan(&[0, 20])).expect("writable");
        let torn_at = 2 * BOUND_SLOT + HEADER as u64 + 20;
        mailbox.file.write_all_at(&[0xff; 4], torn_at).expect("writable");
        assert_eq!(read(&path, 2, 1).0, Some(plan(&[0, 30])));
    }

    #[test]
    fn an_observer_is_a_mailbox() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("0");
        let one = Buffer::new(Bytes::new(4), LiveRange::new(0, 1).expect("not empty"));
        let instance = Instance::from_buffers(vec![one]).expect("valid");
        let verified = instance.verify(Plan::from_offsets([Offset::new(8)])).expect("valid");
        let mut mailbox = Mailbox::create(&path, 1, 0).expect("writable");
        mailbox.take(&Event::Incumbent(&verified));
        assert!(mailbox.failure().is_none());
        assert_eq!(read(&path, 1, 0).0, Some(verified.into_plan()));
    }
}
