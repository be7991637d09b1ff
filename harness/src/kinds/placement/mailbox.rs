//! What a mailbox keeps of a planner's run: its best plan and its best bound.

use std::io;
use std::path::Path;

use planlab_dsa::{Bound, BufferId, Event, InPlace, Offset, Plan};

use crate::cells::{MailboxWriter, latest};

const PLAN: &str = "plan";
const BOUND: &str = "bound";
/// The most bytes of a bound.
const BOUND_BYTES: u64 = 512;

/// The writing side.
pub(super) struct Mailbox {
    plan: MailboxWriter,
    bound: MailboxWriter,
    /// The first failure to write, as an observer cannot return an error.
    failure: Option<io::Error>,
}

impl Mailbox {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let (plan, bound) = (MailboxWriter::create(path, PLAN)?, MailboxWriter::create(path, BOUND)?);
        Ok(Self { plan, bound, failure: None })
    }

    /// Stores the plan or bound of an observer's event.
    pub(super) fn take(&mut self, event: &Event<'_>) {
        let written = match event {
            Event::Incumbent(plan) => self.plan.put(&encode(plan.as_plan())),
            Event::Bound(bound) => {
                serde_json::to_vec(bound).map_err(io::Error::from).and_then(|bound| self.bound.put(&bound))
            }
        };
        if let Err(error) = written {
            self.failure.get_or_insert(error);
        }
    }

    /// Why a plan or bound could not be stored.
    pub(super) fn into_failure(self) -> Option<io::Error> {
        self.failure
    }
}

/// Reads the plan and bound that were stored last, of an instance with `buffers` buffers and `permissions` hand-overs.
pub(super) fn read(path: &Path, buffers: usize, permissions: usize) -> (Option<Plan>, Option<Bound>) {
    let most = 16 + 8 * (buffers + permissions) as u64;
    let plan = latest(path, PLAN, most).and_then(|bytes| decode(&bytes));
    let bound = latest(path, BOUND, BOUND_BYTES);
    (plan, bound.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
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
    use planlab_dsa::{Buffer, Bytes, Claim, Evidence, Instance, LiveRange, Scope};

    use super::*;

    #[test]
    fn an_observer_is_a_mailbox() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("0");
        let one = Buffer::new(Bytes::new(4), LiveRange::new(0, 1).expect("not empty"));
        let instance = Instance::from_buffers(vec![one]).expect("valid");
        let verified = instance.verify(Plan::from_offsets([Offset::new(8)])).expect("valid");
        let mut bound = Bound::default();
        bound.raise_claim(
            Claim { value: Bytes::new(u64::MAX), evidence: Evidence::NormalPattern },
            Scope::Any,
        );
        let mut mailbox = Mailbox::create(&path).expect("writable");
        assert_eq!(read(&path, 1, 0), (None, None));
        for event in [Event::Bound(Bound::default()), Event::Incumbent(&verified), Event::Bound(bound)] {
            mailbox.take(&event);
        }
        assert!(mailbox.into_failure().is_none());
        assert_eq!(read(&path, 1, 0), (Some(verified.into_plan()), Some(bound)));
    }

    #[test]
    fn a_plan_is_read_back_with_its_hand_overs() {
        let in_place = vec![InPlace { input: BufferId::new(3), output: BufferId::new(1 << 30) }];
        let plan = Plan { offsets: [0, 10].map(Offset::new).into_iter().collect(), in_place };
        assert_eq!(decode(&encode(&plan)), Some(plan.clone()));
        assert_eq!(decode(&encode(&plan)[..32]), None);
    }
}
