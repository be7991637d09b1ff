//! Callers that violate the plan, on memory whose every byte is checked.

use planlab_dsa::testing::{Shape, first_fit, instances};
use planlab_dsa::{Address, Bytes, Instance, OnlineAllocator, Requests};
use planlab_replay::host::{Fault, Guarded, HostBacking};
use planlab_replay::{Kind, Planned, Sequence};
use proptest::collection::vec;
use proptest::prelude::*;

/// How a call of the plan is altered.
#[derive(Clone, Copy, Debug)]
enum Bend {
    /// The call is made as planned.
    Not,
    /// The call is left out: a missing free or request.
    LeftOut,
    /// The call is made twice.
    Twice,
    /// The request's size changes by this number of bytes.
    Size(i64),
    /// An unknown address is freed before the call.
    Stranger(u64),
    /// An address inside the lowest live block is freed before the call.
    Inside(u64),
    /// All live blocks are freed before the call.
    All,
    /// The propagation ends before the call.
    End,
    /// Cached memory is released before the call.
    Release,
}

fn bends() -> impl Strategy<Value = Vec<Bend>> {
    let bend = prop_oneof![
        24 => Just(Bend::Not),
        2 => Just(Bend::LeftOut),
        2 => Just(Bend::Twice),
        2 => (-600_i64..600).prop_map(Bend::Size),
        1 => any::<u64>().prop_map(Bend::Stranger),
        1 => (1_u64..600).prop_map(Bend::Inside),
        1 => Just(Bend::All),
        1 => Just(Bend::End),
        1 => Just(Bend::Release),
    ];
    vec(bend, 1..200)
}

/// A caller that knows the plan and the address of each buffer.
struct Caller<'a> {
    memory: Guarded,
    sequence: &'a Sequence,
    addresses: Vec<Option<Address>>,
}

impl Caller<'_> {
    fn propagate(&mut self, bends: &[Bend]) -> Result<(), Fault> {
        let calls: Vec<(Kind, u32)> = self.sequence.calls().collect();
        for (&(kind, buffer), &bend) in calls.iter().zip(bends.iter().cycle()) {
            self.before(bend)?;
            match bend {
                Bend::LeftOut => {}
                Bend::Twice => {
                    self.call(kind, buffer, 0)?;
                    self.call(kind, buffer, 0)?;
                }
                Bend::Size(more) => self.call(kind, buffer, more)?,
                _ => self.call(kind, buffer, 0)?,
            }
            self.memory.look()?;
        }
        self.memory.end_propagation();
        Ok(())
    }

    fn before(&mut self, bend: Bend) -> Result<(), Fault> {
        match bend {
            Bend::Stranger(raw) => self.memory.free(Address::new(raw)).map(drop),
            Bend::Inside(by) => {
                let lowest = self.memory.live().next().filter(|(_, size)| by < size.get());
                lowest.map_or(Ok(()), |(address, _)| {
                    self.memory.free(Address::new(address.get() + by)).map(drop)
                })
            }
            Bend::All => self.free_all(),
            Bend::End => {
                self.memory.end_propagation();
                Ok(())
            }
            Bend::Release => {
                self.memory.release_cached();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn free_all(&mut self) -> Result<(), Fault> {
        let all: Vec<Address> = self.memory.live().map(|(address, _)| address).collect();
        all.into_iter().try_for_each(|address| self.memory.free(address).map(drop))
    }

    fn call(&mut self, kind: Kind, buffer: u32, more: i64) -> Result<(), Fault> {
        let at = buffer as usize;
        if kind == Kind::Alloc {
            let size = Bytes::new(self.sequence.sizes()[at].saturating_add_signed(more));
            self.addresses[at] = match self.memory.alloc(size) {
                Ok(address) => Some(address),
                Err(fault) if fault.is_corruption() => return Err(fault),
                Err(_) => None,
            };
            return Ok(());
        }
        // The address stays here after its free, so the next free of it is one too many.
        self.addresses[at].map_or(Ok(()), |address| self.memory.free(address).map(drop))
    }
}

/// Plays three propagations; each is altered at the same calls as the first, or at others.
fn abuse_plan(instance: &Instance, bends: &[Bend], is_alike: bool) -> Result<(), Fault> {
    let plan = instance.verify(first_fit(instance, &[], &[])).expect("first fit is valid");
    let sequence = Sequence::new(&Requests::new(instance));
    let build = |backing| -> Box<dyn OnlineAllocator> {
        Box::new(Planned::new(&plan, backing).expect("there is memory"))
    };
    let memory = Guarded::new(HostBacking::new(), build);
    let addresses = vec![None; sequence.sizes().len()];
    let mut caller = Caller { memory, sequence: &sequence, addresses };
    for turn in 0..3 {
        let from = if is_alike { 0 } else { turn % bends.len() };
        caller.propagate(&bends[from..])?;
    }
    // A caller that returns to the plan is served again.
    caller.free_all()?;
    caller.memory.end_propagation();
    caller.addresses.fill(None);
    caller.propagate(&[Bend::Not])?;
    let served = caller.addresses.iter().filter(|address| address.is_some()).count();
    assert_eq!(served as u64, sequence.requests());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 3 } else { 64 }, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_is_never_talked_into_live_memory(
        instance in instances(
            Shape::plain().with_max_buffers(30).with_max_steps(20).with_max_size(5000).with_alignment(false),
        ),
        bends in bends(),
        is_alike in any::<bool>(),
    ) {
        let abused = abuse_plan(&instance, &bends, is_alike);
        prop_assert!(abused.is_ok(), "{}", abused.unwrap_err());
    }
}
