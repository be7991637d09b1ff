//! Checks a [`Certificate`] without the search that made it.
//!
//! Nothing here is shared with the search: it works in bytes instead of units, compares every pair of buffers, and
//! looks at every step of time. To trust a proof you only need to trust this folder.
//!
//! # Why the rules are sound
//!
//! Suppose that some plan without hand-overs fits the capacity. Of all such plans let *P* be one whose offsets have the
//! least sum: no buffer that is free to move can be moved down into free room.
//!
//! The proof is a list of cases about P. The state of a case has two offsets for each free buffer that is not placed:
//!
//! - `low`: the buffer does not lie below it in P;
//! - `base`: the lowest offset at which the buffer would be above everything placed that conflicts with it.
//!
//! Both are multiples of its alignment and clear of the pinned buffers that it conflicts with (its pinned
//! *neighbours*), and `base` is not above `low`. Placed buffers lie at their offsets in P, below their unplaced
//! neighbours. In the beginning nothing is placed, and both offsets are the lowest that is clear.
//!
//! The one idea: let an unplaced buffer b lie above an offset x in P, where x is `base`, or `low` or above. At x, b
//! would be clear of the pinned buffers and above the placed ones; but P does not allow the move to x. So an unplaced
//! neighbour is in the way at x. It is not in the way of b in P, so it ends between x and b. It ends at its own `low` +
//! size or above. So b does not lie below the lowest such end among its unplaced neighbours, rounded up and past pinned
//! neighbours. If there is no such neighbour, b lies nowhere.
//!
//! - `Place` b, then a proof, then `Skip` b and a proof: in P, b lies at `low` or above.
//!   - At `low`: each unplaced neighbour has `low` + size above b's `low` (checked), so it lies above b. Its own `base`
//!     and `low` rise at least to the end of b.
//!   - Above `low`: by the one idea, with x = `low`, `low` rises.
//! - `Settle` b: as `Place`, and no unplaced neighbour has a `low` below the end of b (checked). Then b can be moved to
//!   its `low` whatever the others do, and P has the least sum: b lies there. There is no second case.
//! - `Raise` b: `low` is above `base` (checked); by the one idea, with x = `base`, `low` rises.
//! - `Over`: the case is impossible (checked), for one of three reasons. A pinned or unplaced buffer ends above the
//!   capacity. Two pinned buffers overlap. Or, at some step of time, the active buffers that may not begin below some
//!   offset are larger than the room between that offset and the capacity. The next step is the `Skip` of the last open
//!   `Place`.
//!
//! If each step keeps its rule and no case is open in the end, the list is a proof: P does not exist.
//!
//! The unit is the common divisor of sizes and pins such that each alignment is a divisor or a multiple of it. Take a
//! plan of the least height whose offsets have the least sum. Each free buffer in it lies at 0 or at the end of
//! another, rounded up (whatever blocks the next lower multiple ends there). So, from below to above, all offsets and
//! ends are multiples of the unit. So is the least height, and the bound is the next multiple above the capacity.
//!
//! # Complexity
//!
//! n^2 for the setup; n for each step; at most n^2 log n for each `Over`.

use std::collections::BTreeSet;

use planlab_dsa::{Buffer, Bytes, Instance, Offset};

use super::format::{Certificate, Step};

/// Above every offset.
const NOWHERE: u128 = 1 << 100;

/// Why a certificate proves nothing.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// The certificate follows other rules.
    #[error("version {version} of certificates is not known")]
    Version { version: u32 },
    /// The certificate is for another instance.
    #[error("the certificate is about another instance: digest {found}, not {expected}")]
    OtherInstance { found: planlab_dsa::Digest, expected: planlab_dsa::Digest },
    /// The rules do not cover such an instance.
    #[error("no certificate can be about an instance with {what}")]
    Unsupported { what: &'static str },
    /// The unit is not that of the instance.
    #[error("the unit is {expected} bytes, not {found}")]
    Unit { found: Bytes, expected: Bytes },
    /// A step that breaks a rule; the first has number 1.
    #[error("step {number}, `{step}`: {fault}")]
    WrongStep { number: usize, step: Step, fault: StepFault },
    /// The list ends before all cases do: the open buffers lack a skip, or the last case an end.
    #[error("after the last step, {number}, cases are still open: {}", open_text(open))]
    Incomplete { number: usize, open: Vec<usize> },
}

/// The rule that a step breaks.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StepFault {
    /// There is no such buffer.
    #[error("there are only {count} buffers")]
    UnknownBuffer { count: usize },
    /// The buffer is pinned, or placed.
    #[error("the buffer is not free to move here")]
    NotFree,
    /// Another buffer could lie below it.
    #[error("buffer {other} is not placed and may lie below it")]
    FitsBelow { other: usize },
    /// It is settled, but another buffer may begin below its end.
    #[error("it pushes up buffer {other}, so it has a second case")]
    PushesUp { other: usize },
    /// It is raised, but no unplaced buffer has to lie below it.
    #[error("nothing unplaced has to lie below the buffer")]
    Rests,
    /// The case has already ended.
    #[error("the case before it is over; only the skip of the buffer placed last can follow")]
    CaseIsOver,
    /// A skip inside a case that is not over, or without a matching place.
    #[error("no case of this buffer has just ended")]
    NothingToSkip,
    /// As far as the checker sees, everything left fits.
    #[error("nothing is over the capacity")]
    NothingOver,
}

fn open_text(open: &[usize]) -> String {
    match open {
        [] => "the last has no contradiction".to_owned(),
        _ => format!("no skip of {}", open.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

impl Certificate {
    /// Follows the proof. Returns the bound, in bytes, that it proves on the height of every plan of the instance
    /// without hand-overs.
    ///
    /// # Errors
    ///
    /// What is wrong with it; for the steps, the first wrong one.
    pub fn check_proof(&self, instance: &Instance) -> Result<Bytes, CertificateError> {
        self.check_head(instance)?;
        let facts = Facts::new(instance, self.capacity);
        let mut replay = Replay::new(&facts);
        for (number, &step) in (1..).zip(&self.steps) {
            let wrong = |fault| CertificateError::WrongStep { number, step, fault };
            replay.replay_step(step).map_err(wrong)?;
        }
        if !replay.is_over || !replay.open.is_empty() {
            let open = replay.open.iter().map(|case| case.buffer).collect();
            return Err(CertificateError::Incomplete { number: self.steps.len(), open });
        }
        let unit = self.unit.get();
        Ok(Bytes::new((self.capacity.get() / unit).saturating_add(1).saturating_mul(unit)))
    }

    fn check_head(&self, instance: &Instance) -> Result<(), CertificateError> {
        let (found, expected) = (self.instance, instance.digest());
        let has_windows = instance.buffers().iter().flat_map(|b| &b.pauses).any(|p| p.window.is_some());
        let unit = unit_of(instance.buffers());
        if self.version != Self::VERSION {
            return Err(CertificateError::Version { version: self.version });
        }
        if found != expected {
            return Err(CertificateError::OtherInstance { found, expected });
        }
        if has_windows {
            return Err(CertificateError::Unsupported { what: "windows that stay in use during a pause" });
        }
        if instance.arenas().len() > 1 {
            return Err(CertificateError::Unsupported { what: "several arenas" });
        }
        if self.unit != unit {
            return Err(CertificateError::Unit { found: self.unit, expected: unit });
        }
        Ok(())
    }
}

/// The greatest common divisor of all sizes and pins such that each alignment is a divisor or a multiple of it.
fn unit_of(buffers: &[Buffer]) -> Bytes {
    let mut unit = 0;
    for buffer in buffers {
        unit = greatest_common_divisor(
            greatest_common_divisor(unit, buffer.size.get()),
            buffer.pin.map_or(0, Offset::get),
        );
    }
    unit = unit.max(1);
    let misfit = |unit: u64| {
        let aligns = buffers.iter().map(|buffer| buffer.align.get());
        aligns.into_iter().find(|align| !unit.is_multiple_of(*align) && !align.is_multiple_of(unit))
    };
    while let Some(align) = misfit(unit) {
        unit = greatest_common_divisor(unit, align);
    }
    Bytes::new(unit)
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// The fixed data of an instance.
struct Facts {
    capacity: u128,
    size: Vec<u128>,
    align: Vec<u128>,
    pin: Vec<Option<u128>>,
    /// For each buffer, those that must not overlap with it.
    neighbours: Vec<Vec<usize>>,
    /// The active buffers at each step at which a buffer begins; each set once.
    active: Vec<Vec<usize>>,
    /// Whether two pinned buffers overlap.
    pins_overlap: bool,
}

impl Facts {
    fn new(instance: &Instance, capacity: Bytes) -> Self {
        let buffers = instance.buffers();
        let ids = 0..buffers.len();
        let conflict = |a: usize, b: usize| {
            let meet = || {
                buffers[a]
                    .active_pieces()
                    .any(|p| buffers[b].active_pieces().any(|q| p.steps.overlaps(q.steps)))
            };
            a != b && meet()
        };
        let mut neighbours: Vec<Vec<usize>> =
            ids.clone().map(|a| ids.clone().filter(|&b| conflict(a, b)).collect()).collect();
        for pair in instance.keep_apart_pairs() {
            neighbours[pair.first.index()].push(pair.second.index());
            neighbours[pair.second.index()].push(pair.first.index());
        }
        let mut facts = Self {
            capacity: capacity.get().into(),
            size: buffers.iter().map(|buffer| buffer.size.get().into()).collect(),
            align: buffers.iter().map(|buffer| buffer.align.get().into()).collect(),
            pin: buffers.iter().map(|buffer| buffer.pin.map(|pin| pin.get().into())).collect(),
            neighbours,
            active: active_sections(buffers),
            pins_overlap: false,
        };
        let at_pin =
            |facts: &Self, a: usize| facts.pin[a].is_some_and(|pin| facts.in_the_way(a, pin).is_some());
        facts.pins_overlap = ids.into_iter().any(|a| at_pin(&facts, a));
        facts
    }

    fn round_up(&self, buffer: usize, offset: u128) -> u128 {
        offset.div_ceil(self.align[buffer]) * self.align[buffer]
    }

    /// The end of a pinned neighbour that a buffer at this offset would overlap.
    fn in_the_way(&self, buffer: usize, offset: u128) -> Option<u128> {
        self.pinned_neighbours(buffer)
            .find(|&(pin, end)| offset < end && pin < offset + self.size[buffer])
            .map(|p| p.1)
    }

    fn pinned_neighbours(&self, buffer: usize) -> impl Iterator<Item = (u128, u128)> {
        self.neighbours[buffer].iter().filter_map(|&at| self.pin[at].map(|pin| (pin, pin + self.size[at])))
    }

    /// The lowest aligned offset from `offset` on that pinned neighbours leave free.
    fn lift_offset(&self, buffer: usize, offset: u128) -> u128 {
        let mut offset = self.round_up(buffer, offset);
        while let Some(end) = self.in_the_way(buffer, offset) {
            offset = self.round_up(buffer, end);
        }
        offset
    }
}

fn active_sections(buffers: &[Buffer]) -> Vec<Vec<usize>> {
    let starts = buffers.iter().flat_map(|buffer| buffer.active_pieces().map(|piece| piece.steps.start()));
    let starts: BTreeSet<_> = starts.collect();
    let at = |step| {
        let is_active = |id: &usize| buffers[*id].active_pieces().any(|piece| piece.steps.contains(step));
        (0..buffers.len()).filter(is_active).collect()
    };
    let mut sets: Vec<Vec<usize>> = starts.into_iter().map(at).collect();
    sets.sort_unstable();
    sets.dedup();
    sets
}

#[derive(Clone)]
struct Known {
    low: Vec<u128>,
    base: Vec<u128>,
    /// Neither pinned nor placed.
    is_free: Vec<bool>,
}

/// An open case: its second half is still to come.
struct Open {
    buffer: usize,
    before: Known,
}

/// The state between two steps.
struct Replay<'f> {
    facts: &'f Facts,
    known: Known,
    open: Vec<Open>,
    /// Whether a contradiction has ended the case.
    is_over: bool,
}

impl<'f> Replay<'f> {
    fn new(facts: &'f Facts) -> Self {
        let clear = |at: usize| facts.pin[at].unwrap_or_else(|| facts.lift_offset(at, 0));
        let low: Vec<u128> = (0..facts.size.len()).map(clear).collect();
        let known =
            Known { low: low.clone(), base: low, is_free: facts.pin.iter().map(Option::is_none).collect() };
        Self { facts, known, open: Vec::new(), is_over: false }
    }

    fn replay_step(&mut self, step: Step) -> Result<(), StepFault> {
        match (step, self.is_over) {
            (Step::Skip(buffer), true) => self.replay_skip(buffer),
            (Step::Skip(_), false) => Err(StepFault::NothingToSkip),
            (_, true) => Err(StepFault::CaseIsOver),
            (Step::Place(buffer), false) => self.replay_place(buffer),
            (Step::Settle(buffer), false) => self.settle_buffer(buffer),
            (Step::Raise(buffer), false) => self.raise_neighbours(buffer),
            (Step::Over, false) if self.cannot_be() => {
                self.is_over = true;
                Ok(())
            }
            (Step::Over, false) => Err(StepFault::NothingOver),
        }
    }

    fn free_neighbours(&self, buffer: usize) -> impl Iterator<Item = usize> {
        self.facts.neighbours[buffer].iter().copied().filter(|&at| self.known.is_free[at])
    }

    fn check_free(&self, buffer: usize) -> Result<(), StepFault> {
        match self.known.is_free.get(buffer) {
            None => Err(StepFault::UnknownBuffer { count: self.known.is_free.len() }),
            Some(false) => Err(StepFault::NotFree),
            Some(true) => Ok(()),
        }
    }

    fn replay_place(&mut self, buffer: usize) -> Result<(), StepFault> {
        self.check_free(buffer)?;
        let low = self.known.low[buffer];
        let fits_below = |&other: &usize| self.known.low[other] + self.facts.size[other] <= low;
        if let Some(other) = self.free_neighbours(buffer).find(fits_below) {
            return Err(StepFault::FitsBelow { other });
        }
        self.open.push(Open { buffer, before: self.known.clone() });
        self.put_lowest(buffer);
        Ok(())
    }

    fn settle_buffer(&mut self, buffer: usize) -> Result<(), StepFault> {
        self.check_free(buffer)?;
        let end = self.known.low[buffer] + self.facts.size[buffer];
        if let Some(other) = self.free_neighbours(buffer).find(|&other| self.known.low[other] < end) {
            return Err(StepFault::PushesUp { other });
        }
        self.put_lowest(buffer);
        Ok(())
    }

    /// Puts the buffer at its lowest offset, below its unplaced neighbours.
    fn put_lowest(&mut self, buffer: usize) {
        self.known.is_free[buffer] = false;
        let end = self.known.low[buffer] + self.facts.size[buffer];
        for &other in &self.facts.neighbours[buffer] {
            if self.known.is_free[other] {
                let base = self.known.base[other].max(self.facts.lift_offset(other, end));
                self.known.base[other] = base;
                self.known.low[other] = self.known.low[other].max(base);
            }
        }
    }

    fn replay_skip(&mut self, buffer: usize) -> Result<(), StepFault> {
        if self.open.last().is_none_or(|case| case.buffer != buffer) {
            return Err(StepFault::NothingToSkip);
        }
        if let Some(case) = self.open.pop() {
            self.known = case.before;
        }
        self.is_over = false;
        self.lie_above_another(buffer);
        Ok(())
    }

    fn raise_neighbours(&mut self, buffer: usize) -> Result<(), StepFault> {
        self.check_free(buffer)?;
        if self.known.low[buffer] <= self.known.base[buffer] {
            return Err(StepFault::Rests);
        }
        self.lie_above_another(buffer);
        Ok(())
    }

    /// Raises a buffer that has an unplaced neighbour below it.
    fn lie_above_another(&mut self, buffer: usize) {
        let ends = self.free_neighbours(buffer).map(|at| self.known.low[at] + self.facts.size[at]);
        let low = ends.min().map_or(NOWHERE, |end| self.facts.lift_offset(buffer, end));
        self.known.low[buffer] = self.known.low[buffer].max(low);
    }

    /// Whether something does not fit below the capacity.
    fn cannot_be(&self) -> bool {
        let ends_above = |&at: &usize| self.known.low[at] + self.facts.size[at] > self.facts.capacity;
        self.facts.pins_overlap
            || (0..self.facts.size.len()).filter(|&at| self.is_unplaced(at)).any(|at| ends_above(&at))
            || self.facts.active.iter().any(|active| self.is_crowded(active))
    }

    fn is_unplaced(&self, buffer: usize) -> bool {
        self.known.is_free[buffer] || self.facts.pin[buffer].is_some()
    }

    /// Whether the buffers that may not begin below some offset need more room than there is above it.
    fn is_crowded(&self, active: &[usize]) -> bool {
        let unplaced = active.iter().filter(|&&at| self.is_unplaced(at));
        let mut rows: Vec<(u128, u128)> =
            unplaced.map(|&at| (self.known.low[at], self.facts.size[at])).collect();
        rows.sort_unstable_by(|a, b| b.cmp(a));
        let mut sum = 0;
        rows.iter().any(|&(low, size)| {
            sum += size;
            low + sum > self.facts.capacity
        })
    }
}
