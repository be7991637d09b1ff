//! Fixes orders of pairs if an equally good plan has the same buffers the other way round.
//!
//! Identical buffers can change places, so they can be required to lie in the order of their ids. And a plan without
//! pins, alignments and windows can be turned upside down, one component at a time. Of the two plans, the one in which
//! `a` lies below `b` can be required if `b` is unlike all others and `a` is the first of its class. For if `b` lies
//! below `a`, then it lies below the whole class of `a`, and above all of it in the mirror image.

use super::draft::{Below, PairDraft, PlacedBuffer};
use super::parts::connected_components;
use crate::demands::is_kept_apart;

/// Chooses the order of each relation, as far as symmetry leaves it free. Changes the plan to start from into one that
/// satisfies it.
pub(super) fn break_symmetry(draft: &mut PairDraft<'_>) {
    let mut orders = Orders { fixed: vec![Below::Either; draft.relations.len()] };
    let classes = Classes::new(draft);
    classes.sort_start(draft);
    orders.fix_mirrors(draft, &classes);
    classes.sort_start(draft);
    orders.fix_alike(draft, &classes);
    draft.chosen = orders.fixed;
}

struct Orders {
    fixed: Vec<Below>,
}

impl Orders {
    fn fix_alike(&mut self, draft: &PairDraft<'_>, classes: &Classes) {
        for (relation, fixed) in draft.relations.iter().zip(&mut self.fixed) {
            if classes.of[relation.pair.0] == classes.of[relation.pair.1] {
                *fixed = Below::First;
            }
        }
    }

    fn fix_mirrors(&mut self, draft: &mut PairDraft<'_>, classes: &Classes) {
        let can_turn = |place: &PlacedBuffer| {
            let buffer = draft.instance.buffer(place.id);
            place.step == 1
                && buffer.pin.is_none()
                && buffer.pauses.iter().all(|pause| pause.window.is_none())
        };
        if !draft.places.iter().all(can_turn) {
            return;
        }
        let pairs = draft.relations.iter().map(|relation| relation.pair);
        let components = connected_components(draft.places.len(), pairs);
        let mut chosen: Vec<Option<(u64, usize, Below)>> = vec![None; draft.places.len()];
        for (index, relation) in draft.relations.iter().enumerate() {
            let (i, j) = relation.pair;
            let below = match (classes.is_alone(i), classes.is_alone(j)) {
                (_, true) if classes.is_first(i) => Below::First,
                (true, _) if classes.is_first(j) => Below::Second,
                _ => continue,
            };
            let weight = draft.places[i].size.saturating_add(draft.places[j].size);
            let best = &mut chosen[components[i]];
            if best.is_none_or(|(most, ..)| weight > most) {
                *best = Some((weight, index, below));
            }
        }
        for (component, (_, index, below)) in
            chosen.iter().zip(0_usize..).filter_map(|(c, at)| Some((at, (*c)?)))
        {
            self.fixed[index] = below;
            let is_so = draft.is_first_below(&draft.relations[index]) == (below == Below::First);
            if !is_so {
                turn_component(draft, &components, component);
            }
        }
    }
}

/// Turns the part of the start that belongs to a component upside down.
fn turn_component(draft: &mut PairDraft<'_>, components: &[usize], component: usize) {
    let ceiling = draft.ceiling;
    for (place, _) in draft.places.iter_mut().zip(components).filter(|(_, of)| **of == component) {
        place.start = ceiling - place.size - place.start;
    }
}

/// Classes of identical places: the class of each is the first place like it.
struct Classes {
    of: Vec<usize>,
    members: Vec<Vec<usize>>,
}

impl Classes {
    fn new(draft: &PairDraft<'_>) -> Self {
        let is_apart = is_kept_apart(draft.instance);
        let count = draft.places.len();
        let mut this = Self { of: (0..count).collect(), members: vec![Vec::new(); count] };
        for index in 0..count {
            let buffer = draft.buffer_at(index);
            let plain = buffer.pin.is_none() && buffer.pauses.is_empty();
            let free = plain && !is_apart[draft.places[index].id.index()];
            let like = |&other: &usize| {
                let head = draft.buffer_at(other);
                !this.members[other].is_empty()
                    && !is_apart[draft.places[other].id.index()]
                    && (head.size, head.live, head.align, head.pin)
                        == (buffer.size, buffer.live, buffer.align, None)
                    && head.pauses.is_empty()
            };
            let class = if free { (0..index).find(like).unwrap_or(index) } else { index };
            this.of[index] = class;
            this.members[class].push(index);
        }
        this
    }

    fn is_alone(&self, place: usize) -> bool {
        self.members[self.of[place]].len() == 1
    }

    fn is_first(&self, place: usize) -> bool {
        self.of[place] == place
    }

    /// Gives the members of each class their offsets in ascending order.
    fn sort_start(&self, draft: &mut PairDraft<'_>) {
        for members in self.members.iter().filter(|members| members.len() > 1) {
            let mut starts: Vec<u64> = members.iter().map(|&member| draft.places[member].start).collect();
            starts.sort_unstable();
            for (&member, start) in members.iter().zip(starts) {
                draft.places[member].start = start;
            }
        }
    }
}
