//! Lower bounds on the height, each with its scope and its evidence.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Bytes, Scope};

crate::named_enum! {
    /// How a bound was obtained, ordered from the easiest to check to a mere claim.
    #[derive(Default, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum Evidence {
        /// The most bytes in use at one step (or the end of a pinned buffer).
        #[default]
        Load = "load",
        /// The load with sizes rounded up to a common alignment.
        Alignment = "alignment",
        /// Subset sums that offsets can reach.
        NormalPattern = "normal-pattern",
        /// An argument over one section of steps.
        Section = "section",
        /// An exhausted branch and bound.
        Search = "search",
        /// The dual bound of a MIP solver.
        Mip = "mip",
        /// A proof of a constraint solver.
        Cp = "cp",
        /// Claimed without proof.
        Claimed = "claimed",
    }
}

/// No plan of the scope is lower than `value`. Default: 0 bytes, which need no proof.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    any: Claim,
    no_hand_over: Claim,
}

impl Bound {
    /// The best claim that holds for plans of `scope`.
    #[must_use]
    pub const fn best_claim(&self, scope: Scope) -> Claim {
        match scope {
            Scope::Any => self.any,
            Scope::NoHandOver => self.no_hand_over,
        }
    }

    /// Takes over a claim that is higher than the known bound. A bound on any plan also bounds plans without
    /// hand-overs. Returns whether anything changed.
    pub fn raise_claim(&mut self, claim: Claim, scope: Scope) -> bool {
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

    /// The bound of parts whose heights add up: the sum of the values. The sum needs every part, so its evidence is the
    /// last of theirs in the order of [`Evidence`].
    #[must_use]
    pub fn sum_parts(parts: impl IntoIterator<Item = Self>) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(Bound::sum_parts(parts), of((5, Evidence::Search), (8, Evidence::Section)));
        assert_eq!(Bound::sum_parts([]), Bound::default());
    }

    #[test]
    fn a_bound_on_any_plan_raises_both_scopes() {
        let mut bound = Bound::default();
        let claim = |value| Claim { value: Bytes::new(value), evidence: Evidence::Search };
        assert!(bound.raise_claim(claim(5), Scope::NoHandOver));
        assert!(bound.raise_claim(claim(3), Scope::Any));
        assert!(!bound.raise_claim(claim(3), Scope::Any));
        assert_eq!(bound.best_claim(Scope::Any), claim(3));
        assert_eq!(bound.best_claim(Scope::NoHandOver), claim(5));
    }
}
