//! Lower bounds on the height, each with its scope and its evidence.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::instance::gcd;
use crate::load::counted_pieces;
use crate::{Alignment, Bytes, Instance};

/// The plans that a bound holds for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Every plan.
    Any,
    /// Plans without hand-overs.
    NoHandOver,
}

impl Scope {
    /// The name in files and on screen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::NoHandOver => "no-hand-over",
        }
    }

    /// Whether the scope includes plans with this number of hand-overs.
    #[must_use]
    pub const fn holds(self, hand_overs: u64) -> bool {
        matches!(self, Self::Any) || hand_overs == 0
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How a bound was obtained, ordered from the easiest to check to a mere claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Evidence {
    /// The most bytes in use at one step (or the end of a pinned buffer).
    Load,
    /// The load with sizes rounded up to a common alignment.
    Alignment,
    /// Subset sums that offsets can reach.
    NormalPattern,
    /// An argument over one section of steps.
    Section,
    /// An exhausted branch and bound.
    Search,
    /// The dual bound of a MIP solver.
    Mip,
    /// A proof of a constraint solver.
    Cp,
    /// Claimed without proof.
    Claimed,
}

impl Evidence {
    /// The name in files and on screen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Alignment => "alignment",
            Self::NormalPattern => "normal-pattern",
            Self::Section => "section",
            Self::Search => "search",
            Self::Mip => "mip",
            Self::Cp => "cp",
            Self::Claimed => "claimed",
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No plan of the scope is lower than `value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Bytes.
    pub value: Bytes,
    /// How the bound was obtained.
    pub evidence: Evidence,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

/// The best bounds known, by scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    any: Claim,
    no_hand_over: Claim,
}

impl Bound {
    /// The best claim that holds for plans of `scope`.
    #[must_use]
    pub const fn of(&self, scope: Scope) -> Claim {
        match scope {
            Scope::Any => self.any,
            Scope::NoHandOver => self.no_hand_over,
        }
    }

    /// Takes over a claim that is higher than the known bound. A bound on any plan also bounds plans without
    /// hand-overs. Returns whether anything changed.
    pub fn raise(&mut self, claim: Claim, scope: Scope) -> bool {
        let mut raised = false;
        if scope == Scope::Any && claim.value > self.any.value {
            self.any = claim;
            raised = true;
        }
        if claim.value > self.no_hand_over.value {
            self.no_hand_over = claim;
            raised = true;
        }
        raised
    }
}

impl Bound {
    /// The bound of parts whose heights add up: the sum of the values. The sum needs every part, so its evidence is the
    /// last of theirs in the order of [`Evidence`].
    #[must_use]
    pub fn sum(parts: impl IntoIterator<Item = Self>) -> Self {
        let add = |a: Claim, b: Claim| Claim {
            value: Bytes::new(a.value.get().saturating_add(b.value.get())),
            evidence: a.evidence.max(b.evidence),
        };
        parts.into_iter().fold(Self::default(), |sum, part| Self {
            any: add(sum.any, part.any),
            no_hand_over: add(sum.no_hand_over, part.no_hand_over),
        })
    }
}

impl Default for Bound {
    fn default() -> Self {
        let nothing = Claim { value: Bytes::ZERO, evidence: Evidence::Load };
        Self { any: nothing, no_hand_over: nothing }
    }
}

/// The bounds known before any search: load, pins and alignment. O(n log n).
#[must_use]
pub fn initial_bound(instance: &Instance) -> Bound {
    let mut bound = Bound::default();
    let load = |value| Claim { value, evidence: Evidence::Load };
    bound.raise(load(instance.load().bytes), Scope::Any);
    bound.raise(load(instance.load_without_in_place().bytes), Scope::NoHandOver);
    bound.raise(load(pin_bound(instance)), Scope::Any);
    for scope in [Scope::Any, Scope::NoHandOver] {
        if let Some(value) = alignment_bound(instance, scope) {
            bound.raise(Claim { value, evidence: Evidence::Alignment }, scope);
        }
    }
    bound
}

/// The highest end of a pinned buffer, summed over the arenas; 0 without pins.
#[must_use]
pub fn pin_bound(instance: &Instance) -> Bytes {
    Bytes::new(instance.pinned_tops().into_iter().sum())
}

/// A bound on plans of the scope: the load with sizes rounded up to the greatest common divisor of the alignments, less
/// the padding of the topmost buffer. `None` if that adds nothing: no alignment, several arenas, or pauses with windows.
///
/// If two buffers are live together and their offsets are multiples of `a`, these differ by at least `ceil(size / a) *
/// a` for the size of the lower buffer. Only the topmost buffer at a step may end anywhere.
#[must_use]
pub fn alignment_bound(instance: &Instance, scope: Scope) -> Option<Bytes> {
    let divisor = instance.buffers().iter().fold(0, |divisor, buffer| gcd(divisor, buffer.align.get()));
    let align = Alignment::new(divisor)?;
    let windows = instance.buffers().iter().flat_map(|b| &b.pauses).any(|pause| pause.window.is_some());
    if align == Alignment::ONE || windows || instance.arenas().len() > 1 {
        return None;
    }
    let mut changes: Vec<(u32, bool, u64, u64)> = Vec::with_capacity(2 * instance.len());
    for (buffer, piece) in counted_pieces(instance, scope) {
        let rounded = align.round_up(buffer.size.get())?;
        let padding = rounded - buffer.size.get();
        changes.push((piece.steps.start().get(), true, rounded, padding));
        changes.push((piece.steps.end().get(), false, rounded, padding));
    }
    changes.sort_unstable();
    highest_rounded_load(&changes).map(Bytes::new)
}

/// The highest sum of rounded sizes at a step, less the largest padding there, in bytes. Each entry of `changes`,
/// ascending: the step, whether a buffer begins there (or ends), its rounded size and its padding. `None` if a sum does
/// not fit 64 bits.
#[must_use]
pub fn highest_rounded_load(changes: &[(u32, bool, u64, u64)]) -> Option<u64> {
    let mut paddings = std::collections::BTreeMap::<u64, u32>::new();
    let (mut sum, mut best) = (0_u64, 0_u64);
    for &(_, begins, rounded, padding) in changes {
        if begins {
            sum = sum.checked_add(rounded)?;
            *paddings.entry(padding).or_default() += 1;
            let (&most, _) = paddings.last_key_value()?;
            best = best.max(sum - most);
        } else {
            sum -= rounded;
            let count = paddings.get_mut(&padding)?;
            *count -= 1;
            if *count == 0 {
                paddings.remove(&padding);
            }
        }
    }
    Some(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffer, LiveRange, Offset};

    fn buffer(size: u64, start: u32, end: u32) -> Buffer {
        Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"))
    }

    #[test]
    fn alignment_counts_the_padding_below_the_top() {
        let align = Alignment::new(8).expect("positive");
        let buffers = [buffer(5, 0, 2), buffer(9, 0, 2), buffer(3, 1, 3)].map(|b| b.with_align(align));
        let instance = Instance::from_buffers(buffers.to_vec()).expect("valid");
        // At step 1: 8 + 16 + 8, less the largest padding, 7 (of the 9).
        for scope in [Scope::Any, Scope::NoHandOver] {
            assert_eq!(alignment_bound(&instance, scope), Some(Bytes::new(25)));
            let claim = initial_bound(&instance).of(scope);
            assert_eq!(claim, Claim { value: Bytes::new(25), evidence: Evidence::Alignment });
        }
    }

    #[test]
    fn a_pinned_end_bounds_every_plan() {
        let instance =
            Instance::from_buffers(vec![buffer(4, 0, 1).with_pin(Offset::new(100))]).expect("valid");
        assert_eq!(initial_bound(&instance).of(Scope::Any).value, Bytes::new(104));
    }

    #[test]
    fn bounds_of_parts_add_up_and_need_the_evidence_of_all() {
        let of = |any: (u64, Evidence), no_hand_over: (u64, Evidence)| {
            let claim = |(value, evidence)| Claim { value: Bytes::new(value), evidence };
            Bound { any: claim(any), no_hand_over: claim(no_hand_over) }
        };
        let parts = [
            of((4, Evidence::Load), (6, Evidence::Section)),
            of((1, Evidence::Search), (2, Evidence::Alignment)),
            Bound::default(),
        ];
        assert_eq!(Bound::sum(parts), of((5, Evidence::Search), (8, Evidence::Section)));
        assert_eq!(Bound::sum([]), Bound::default());
    }

    #[test]
    fn a_bound_on_any_plan_raises_both_scopes() {
        let mut bound = Bound::default();
        let claim = |value| Claim { value: Bytes::new(value), evidence: Evidence::Search };
        assert!(bound.raise(claim(5), Scope::NoHandOver));
        assert!(bound.raise(claim(3), Scope::Any));
        assert!(!bound.raise(claim(3), Scope::Any));
        assert_eq!(bound.of(Scope::Any), claim(3));
        assert_eq!(bound.of(Scope::NoHandOver), claim(5));
    }
}
