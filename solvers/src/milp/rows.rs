//! The rows of the model: the published ones, and *stacks*, which make its relaxation tighter.
//!
//! Of the buffers in use at one step, those below `j` lie on top of each other, so that `j` lies no lower than the sum
//! of their sizes; and those above `j` fit between its top and the height. Stacks contain no big M. Large models do
//! without them: with them, the solver would not finish the first relaxation in its time.
//!
//! (Transitivity, stated for all triples of buffers that are live at one step, was tried as well; the solvers were
//! slower with it.)

use good_lp::{Constraint, Expression, Variable};

use super::Strengthening;
use super::bound::as_float;
use crate::pairs::{PairDraft, Part, PlacedBuffer, Relation};

/// The most coefficients in stacks; the fullest sections come first.
const MOST_STACKED: usize = 60_000;
/// The most relations of a model that gets stacks.
const MOST_RELATIONS: usize = 2_000;

/// The columns of a model, for building its rows.
pub(super) struct Rows<'d, 'i> {
    pub(super) draft: &'d PairDraft<'i>,
    pub(super) switches: Strengthening,
    pub(super) height: Variable,
    /// For each place.
    pub(super) offsets: Vec<Expression>,
    /// For each relation: 0 if the first lies below.
    pub(super) orders: Vec<Variable>,
}

impl Rows<'_, '_> {
    pub(super) fn all_rows(&self) -> Vec<Constraint> {
        let mut rows = Vec::new();
        self.push_arena(&mut rows);
        self.push_disjunctions(&mut rows);
        if self.switches.stacks && self.draft.relations.len() <= MOST_RELATIONS {
            self.push_stacks(&mut rows);
        }
        rows
    }

    fn push_arena(&self, rows: &mut Vec<Constraint>) {
        for (place, offset) in self.draft.places.iter().zip(&self.offsets) {
            rows.push((offset.clone() + as_float(place.size)).leq(self.height));
        }
    }

    fn push_disjunctions(&self, rows: &mut Vec<Constraint>) {
        for (relation, &order) in self.draft.relations.iter().zip(&self.orders) {
            let (i, j) = relation.pair;
            let ((i_low, i_high), (j_low, j_high)) = relation.windows;
            let reach = |a: usize, high: u64, b: usize, low: u64| {
                self.offsets[a].clone() - self.offsets[b].clone() + as_float(high) - as_float(low)
            };
            let (first, second) = big_m(self.draft, relation, self.switches.tight_big_m);
            let (first, second) = (as_float(first), as_float(second));
            rows.push(reach(i, i_high, j, j_low).leq(first * order));
            rows.push((reach(j, j_high, i, i_low) + second * order).leq(second));
        }
    }

    /// 1 if part `a` lies below part `b`; `None` if both are pinned.
    fn is_below(&self, a: Part, b: Part) -> Option<Expression> {
        let (first, second) = if a.0 < b.0 { (a, b) } else { (b, a) };
        let relation = Relation { pair: (first.0, second.0), windows: (first.1, second.1) };
        let index = self.draft.relations.binary_search(&relation).ok()?;
        let order = self.orders[index];
        Some(if a.0 < b.0 { 1 - order } else { order.into() })
    }

    fn push_stacks(&self, rows: &mut Vec<Constraint>) {
        let mut left = MOST_STACKED;
        for section in self.draft.fullest_sections() {
            let entries = 2 * section.len() * section.len();
            if section.len() < 3 || entries > left {
                continue;
            }
            left -= entries;
            for &part in &section {
                self.stack_around(part, &section, rows);
            }
        }
    }

    fn stack_around(&self, part: Part, section: &[Part], rows: &mut Vec<Constraint>) {
        let (place, (low, high)) = part;
        let (mut below, mut above) = (Expression::from(0.0), Expression::from(0.0));
        for &other in section.iter().filter(|other| other.0 != place) {
            let bytes = as_float(other.1.1 - other.1.0);
            if let (Some(under), Some(over)) = (self.is_below(other, part), self.is_below(part, other)) {
                below += bytes * under;
                above += bytes * over;
            }
        }
        rows.push((below - as_float(low)).leq(self.offsets[place].clone()));
        rows.push((above + self.offsets[place].clone() + as_float(high)).leq(self.height));
    }
}

/// What to subtract from the row "the first lies below the second" if it does not hold: W, or the most by which the
/// first can reach above the second's bottom. Also the same for the other row.
fn big_m(draft: &PairDraft<'_>, relation: &Relation, is_tight: bool) -> (u64, u64) {
    if !is_tight {
        return (draft.ceiling, draft.ceiling);
    }
    let (a, b) = (&draft.places[relation.pair.0], &draft.places[relation.pair.1]);
    let ((a_low, a_high), (b_low, b_high)) = relation.windows;
    let most = |upper: &PlacedBuffer, high: u64, lower: &PlacedBuffer, low: u64| {
        (upper.high + high).saturating_sub(lower.low + low)
    };
    (most(a, a_high, b, b_low), most(b, b_high, a, a_low))
}
