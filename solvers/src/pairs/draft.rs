//! The buffers of a part in units, and the pairs in which one must lie below the other.

use std::ops::Range;

use planlab_dsa::{Buffer, BufferId, Halt, Instance, LiveRange, Offset, PlanError, Run};

use crate::trees::Columns;

/// The most relations for which a model is built; no solver could handle more.
const MOST_RELATIONS: usize = 1_000_000;

/// The bytes of a buffer in use, in units, relative to its offset.
pub(crate) type Window = (u64, u64);

/// A part of a buffer in use during a section: the place, and the bytes.
pub(crate) type Part = (usize, Window);

/// A part of buffer `i` and one of buffer `j`, in use at one step: one lies below the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Relation {
    /// Indices into the places.
    pub(crate) pair: (usize, usize),
    /// The bytes of each that are in use.
    pub(crate) windows: (Window, Window),
}

/// The one of the two that lies below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Below {
    First,
    Second,
    Either,
}

/// A buffer of the model, in units.
#[derive(Clone, Debug)]
pub(crate) struct PlacedBuffer {
    pub(crate) id: BufferId,
    pub(crate) size: u64,
    pub(crate) low: u64,
    pub(crate) high: u64,
    /// Offsets are multiples of this.
    pub(crate) step: u64,
    /// The offset in the plan to start from.
    pub(crate) start: u64,
}

impl PlacedBuffer {
    fn new(buffer: &Buffer, id: BufferId, start: Offset, unit: u64, ceiling: u64) -> Self {
        let size = buffer.size.get() / unit;
        let (low, high) = match buffer.pin {
            Some(pin) => (pin.get() / unit, pin.get() / unit),
            None => (0, ceiling - size),
        };
        let step = buffer.align.get().div_ceil(unit);
        Self { id, size, low, high, step, start: start.get() / unit }
    }

    pub(crate) const fn is_fixed(&self) -> bool {
        self.low == self.high
    }
}

/// A part of an instance, ready for a model.
pub(crate) struct PairDraft<'i> {
    pub(crate) instance: &'i Instance,
    /// Bytes of a unit.
    pub(crate) unit: u64,
    /// The height of the plan to start from, in units.
    pub(crate) ceiling: u64,
    /// The best known bound of the whole instance, in units: lower heights gain nothing.
    pub(crate) floor: u64,
    pub(crate) places: Vec<PlacedBuffer>,
    /// Ascending, each once.
    pub(crate) relations: Vec<Relation>,
    /// For each relation: the order chosen by symmetry; empty if symmetry is off.
    pub(crate) chosen: Vec<Below>,
}

impl<'i> PairDraft<'i> {
    /// The draft of some buffers, given the offsets of all; [`PlanError::Failed`] for more pairs than a model can have.
    pub(super) fn new(
        run: &mut Run<'i>,
        ids: &[BufferId],
        offsets: &[Offset],
        (unit, floor): (u64, u64),
    ) -> Result<Self, Halt> {
        let instance = run.instance();
        let end = |id: &BufferId| offsets[id.index()].get() + instance.buffer(*id).size.get();
        let ceiling = ids.iter().map(end).max().unwrap_or(0) / unit;
        let place =
            |&id: &BufferId| PlacedBuffer::new(instance.buffer(id), id, offsets[id.index()], unit, ceiling);
        let places = ids.iter().map(place).collect();
        let floor = (floor / unit).min(ceiling);
        let mut draft =
            Self { instance, unit, ceiling, floor, places, relations: Vec::new(), chosen: Vec::new() };
        draft.find_relations(run)?;
        draft.relate_apart();
        Ok(draft)
    }

    /// The same in units large enough for a height of at most `most`; every size, height and offset is rounded down.
    /// Since `floor(a) + floor(b) <= floor(a + b)`, every plan of this draft is one of the other. So what is proved for
    /// the other holds here; a plan of the other is only an order.
    pub(crate) fn in_coarse_units(mut self, most: u64) -> Self {
        let factor = self.ceiling.div_ceil(most).max(1);
        self.unit = self.unit.saturating_mul(factor);
        self.ceiling /= factor;
        self.floor /= factor;
        for place in &mut self.places {
            place.size /= factor;
            let is_fixed = place.is_fixed();
            place.low /= factor;
            place.high = if is_fixed { place.low } else { self.ceiling - place.size };
            place.step = if place.step.is_multiple_of(factor) { place.step / factor } else { 1 };
            place.start /= factor;
        }
        let shrunk = |(low, high): Window| (low.div_ceil(factor), high / factor);
        let (mut relations, mut chosen) = (Vec::new(), Vec::new());
        for (index, relation) in self.relations.iter().enumerate() {
            let windows = (shrunk(relation.windows.0), shrunk(relation.windows.1));
            if windows.0.0 < windows.0.1 && windows.1.0 < windows.1.1 {
                relations.push(Relation { windows, ..*relation });
                chosen.push(self.chosen_order(index));
            }
        }
        (self.relations, self.chosen) = (relations, chosen);
        self
    }

    pub(crate) fn buffer_at(&self, place: usize) -> &Buffer {
        self.instance.buffer(self.places[place].id)
    }

    /// Finds every relation. Two pinned buffers have none, since neither can move.
    fn find_relations(&mut self, run: &mut Run<'_>) -> Result<(), Halt> {
        for i in 0..self.places.len() {
            run.tick(self.places.len() as u64)?;
            for j in i + 1..self.places.len() {
                if !self.places[i].is_fixed() || !self.places[j].is_fixed() {
                    self.relate_pair(i, j);
                }
            }
            if self.relations.len() > MOST_RELATIONS {
                let why = format!("the model has more than {MOST_RELATIONS} pairs of buffers");
                return Err(PlanError::Failed(why).into());
            }
        }
        Ok(())
    }

    fn relate_pair(&mut self, i: usize, j: usize) {
        let (a, b) = (self.buffer_at(i), self.buffer_at(j));
        if !a.live.overlaps(b.live) {
            return;
        }
        let mut found: Vec<Relation> = Vec::new();
        for p in a.active_pieces() {
            for q in b.active_pieces().filter(|q| q.steps.overlaps(p.steps)) {
                let windows = (self.in_units(&p.window), self.in_units(&q.window));
                found.push(Relation { pair: (i, j), windows });
            }
        }
        found.sort_unstable();
        found.dedup();
        self.relations.extend(found);
    }

    /// The whole units of a window; exact unless the draft is coarse.
    fn in_units(&self, window: &Range<planlab_dsa::Bytes>) -> Window {
        (window.start.get().div_ceil(self.unit), window.end.get() / self.unit)
    }

    /// Adds the kept-apart pairs, whether or not they meet in time.
    fn relate_apart(&mut self) {
        let mut index = vec![None; self.instance.len()];
        for (place, at) in self.places.iter().zip(0_usize..) {
            index[place.id.index()] = Some(at);
        }
        for pair in self.instance.keep_apart_pairs() {
            let (Some(a), Some(b)) = (index[pair.first.index()], index[pair.second.index()]) else {
                continue;
            };
            let (i, j) = (a.min(b), a.max(b));
            if !self.places[i].is_fixed() || !self.places[j].is_fixed() {
                let windows = ((0, self.places[i].size), (0, self.places[j].size));
                self.relations.push(Relation { pair: (i, j), windows });
            }
        }
        self.relations.sort_unstable();
        self.relations.dedup();
    }

    /// Whether the first lies below the second in the plan to start from.
    pub(crate) fn is_first_below(&self, relation: &Relation) -> bool {
        let (a, b) = (&self.places[relation.pair.0], &self.places[relation.pair.1]);
        let ((_, a_high), (b_low, _)) = relation.windows;
        a.start + a_high <= b.start + b_low
    }

    /// The only possible order of a relation, if the ranges of the offsets leave just one.
    pub(crate) fn forced_order(&self, relation: &Relation) -> Below {
        let (a, b) = (&self.places[relation.pair.0], &self.places[relation.pair.1]);
        let ((a_low, a_high), (b_low, b_high)) = relation.windows;
        if a.low + a_high > b.high + b_low || b.high + b_high <= a.low + a_low {
            Below::Second
        } else if b.low + b_high > a.high + a_low || a.high + a_high <= b.low + b_low {
            Below::First
        } else {
            Below::Either
        }
    }

    pub(crate) fn chosen_order(&self, index: usize) -> Below {
        self.chosen.get(index).copied().unwrap_or(Below::Either)
    }

    /// The parts in use in each section, the fullest first.
    pub(crate) fn fullest_sections(&self) -> Vec<Vec<Part>> {
        let mut parts: Vec<(LiveRange, Part)> = Vec::new();
        for (index, place) in self.places.iter().enumerate() {
            for piece in self.instance.buffer(place.id).active_pieces() {
                let window = self.in_units(&piece.window);
                if window.0 < window.1 {
                    parts.push((piece.steps, (index, window)));
                }
            }
        }
        let columns = Columns::new(parts.iter().map(|(steps, _)| (*steps).into()));
        let mut sections = vec![Vec::new(); columns.len()];
        for (steps, part) in parts {
            for column in columns.columns_of(steps) {
                sections[column].push(part);
            }
        }
        let bytes = |section: &Vec<Part>| section.iter().map(|(_, (low, high))| high - low).sum::<u64>();
        sections.sort_by_key(|section| std::cmp::Reverse(bytes(section)));
        sections
    }
}
