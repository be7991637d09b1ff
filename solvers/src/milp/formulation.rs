//! The model: columns and rows in units, and the way back to buffers.

use good_lp::{Constraint, Expression, ProblemVariables, SolverModel, Variable, variable};
use planlab_dsa::{Buffer, BufferId, Halt, Instance, PlanError, Run, VerifiedPlan};

use super::bound::{as_float, is_exact};
use super::rows::Rows;
use super::{Strengthening, symmetry};

/// The most binaries for which a model is built; a solver could do nothing with more.
const MOST_RELATIONS: usize = 1_000_000;

/// A part of buffer `i` and one of buffer `j`, in use at one step: one lies below the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Relation {
    /// Indices into the places.
    pub(super) pair: (usize, usize),
    /// The bytes of each in use, in units, relative to its offset.
    pub(super) windows: ((u64, u64), (u64, u64)),
}

/// Which of the two lies below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Below {
    First,
    Second,
    Either,
}

/// A buffer of the model, in units.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) id: BufferId,
    pub(super) size: u64,
    pub(super) low: u64,
    pub(super) high: u64,
    /// Offsets are multiples of it.
    pub(super) step: u64,
    /// The offset in the plan to start from.
    pub(super) start: u64,
}

/// The model of an instance.
pub(super) struct Formulation {
    /// Bytes of a unit.
    pub(super) unit: u64,
    /// W, in units.
    pub(super) ceiling: u64,
    /// The value of each column in the plan to start from, where there is one.
    pub(super) start: Option<Vec<f64>>,
    /// The buffer and the units of one of each column after the first.
    pub(super) places: Vec<(BufferId, u64)>,
    variables: ProblemVariables,
    height: Variable,
    rows: Vec<Constraint>,
}

impl Formulation {
    /// The model of what a better plan than `best` would have to be.
    ///
    /// # Errors
    ///
    /// What [`Run::tick`] says; [`PlanError::Failed`] for a model that is too large to build, or whose
    /// numbers have no place in a floating point number.
    pub(super) fn new(
        run: &mut Run<'_>,
        best: &VerifiedPlan<'_>,
        floor: u64,
        switches: Strengthening,
    ) -> Result<Self, Halt> {
        let instance = run.instance();
        let unit = if switches.scale { instance.granularity() } else { 1 };
        let ceiling = best.height().get() / unit;
        if !is_exact(ceiling) {
            return Err(failed(format!("{ceiling} units are more than a solver can count")));
        }
        let floor_units = floor.div_ceil(unit);
        let kept =
            if switches.drop_settled { unsettled(instance, best, floor) } else { instance.ids().collect() };
        let places =
            kept.iter().map(|&id| Place::new(instance.buffer(id), id, best, unit, ceiling)).collect();
        let mut draft = Draft { instance, unit, ceiling, switches, places, relations: Vec::new() };
        draft.relate(run)?;
        Ok(draft.build(if switches.load { floor_units } else { 0 }))
    }

    /// The model in a solver's own form.
    pub(super) fn give_to<S: SolverModel>(
        &mut self,
        solver: impl FnOnce(good_lp::variable::UnsolvedProblem) -> S,
    ) -> S {
        let variables = std::mem::take(&mut self.variables);
        let mut model = solver(variables.minimise(self.height));
        for row in self.rows.drain(..) {
            model.add_constraint(row);
        }
        model
    }
}

fn failed(why: String) -> Halt {
    PlanError::Failed(why).into()
}

/// The buffers of every component (joined by overlapping live ranges and kept-apart pairs) that reaches
/// above the bound.
fn unsettled(instance: &Instance, best: &VerifiedPlan<'_>, floor: u64) -> Vec<BufferId> {
    let mut ids: Vec<BufferId> = instance.ids().collect();
    ids.sort_unstable_by_key(|&id| (instance.buffer(id).live.start(), id));
    let mut component = vec![0_usize; instance.len()];
    let (mut last, mut end) = (0, planlab_dsa::Step::default());
    for id in ids {
        let live = instance.buffer(id).live;
        last += usize::from(live.start() >= end);
        component[id.index()] = last;
        end = end.max(live.end());
    }
    let mut is_open = vec![false; last + 1];
    for id in instance.ids() {
        let top = best.offsets()[id.index()].get() + instance.buffer(id).size.get();
        is_open[component[id.index()]] |= top > floor;
    }
    // A pair across components makes one of both; few pairs, so try until nothing changes.
    let pairs = || instance.apart().iter().map(|p| (component[p.first.index()], component[p.second.index()]));
    while let Some((a, b)) = pairs().find(|&(a, b)| is_open[a] != is_open[b]) {
        (is_open[a], is_open[b]) = (true, true);
    }
    instance.ids().filter(|id| is_open[component[id.index()]]).collect()
}

impl Place {
    fn new(buffer: &Buffer, id: BufferId, best: &VerifiedPlan<'_>, unit: u64, ceiling: u64) -> Self {
        let size = buffer.size.get() / unit;
        let (low, high) = match buffer.pin {
            Some(pin) => (pin.get() / unit, pin.get() / unit),
            None => (0, ceiling - size),
        };
        let step = buffer.align.get().div_ceil(unit);
        Self { id, size, low, high, step, start: best.offsets()[id.index()].get() / unit }
    }

    pub(super) const fn is_fixed(&self) -> bool {
        self.low == self.high
    }
}

pub(super) struct Draft<'i> {
    pub(super) instance: &'i Instance,
    pub(super) unit: u64,
    pub(super) ceiling: u64,
    pub(super) switches: Strengthening,
    pub(super) places: Vec<Place>,
    /// Ascending, each once.
    pub(super) relations: Vec<Relation>,
}

impl Draft<'_> {
    pub(super) fn buffer(&self, place: usize) -> &Buffer {
        self.instance.buffer(self.places[place].id)
    }

    /// Finds every relation. Two pinned buffers have none: they stand where they stand.
    fn relate(&mut self, run: &mut Run<'_>) -> Result<(), Halt> {
        for i in 0..self.places.len() {
            run.tick(self.places.len() as u64)?;
            for j in i + 1..self.places.len() {
                if !self.places[i].is_fixed() || !self.places[j].is_fixed() {
                    self.relate_pair(i, j);
                }
            }
            if self.relations.len() > MOST_RELATIONS {
                return Err(failed(format!("the model has more than {MOST_RELATIONS} pairs of buffers")));
            }
        }
        Ok(())
    }

    fn relate_pair(&mut self, i: usize, j: usize) {
        let (a, b) = (self.buffer(i), self.buffer(j));
        if !a.live.overlaps(b.live) {
            return;
        }
        let in_units = |window: &std::ops::Range<planlab_dsa::Bytes>| {
            (window.start.get() / self.unit, window.end.get() / self.unit)
        };
        let mut found: Vec<Relation> = Vec::new();
        for p in a.pieces() {
            for q in b.pieces().filter(|q| q.steps.overlaps(p.steps)) {
                found.push(Relation { pair: (i, j), windows: (in_units(&p.window), in_units(&q.window)) });
            }
        }
        found.sort_unstable();
        found.dedup();
        self.relations.extend(found);
    }

    /// Adds the kept-apart pairs; they are related whether or not they meet in time.
    fn relate_apart(&mut self) {
        let mut index = vec![None; self.instance.len()];
        for (place, at) in self.places.iter().zip(0_usize..) {
            index[place.id.index()] = Some(at);
        }
        for pair in self.instance.apart() {
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

    fn build(mut self, floor: u64) -> Formulation {
        self.relate_apart();
        let fixed = if self.switches.symmetry { symmetry::fix(&mut self) } else { Vec::new() };
        let mut columns = Columns::default();
        let is_whole = self.switches.whole_height;
        let height = columns.add(floor.min(self.ceiling), self.ceiling, is_whole, self.ceiling);
        let offsets: Vec<Expression> = self.places.iter().map(|place| columns.place(place)).collect();
        let mut orders = Vec::with_capacity(self.relations.len());
        for (index, relation) in self.relations.iter().enumerate() {
            let by_symmetry = fixed.get(index).copied().unwrap_or(Below::Either);
            let below =
                if self.forced(relation) == Below::Either { by_symmetry } else { self.forced(relation) };
            orders.push(columns.order(below, self.is_first_below(relation)));
        }
        let rows = Rows { draft: &self, height, offsets, orders }.all();
        let places = self.places.iter().map(|place| (place.id, place.step)).collect();
        let start = self.switches.start.then_some(columns.start);
        let (unit, ceiling) = (self.unit, self.ceiling);
        Formulation { unit, ceiling, start, places, variables: columns.variables, height, rows }
    }

    /// What is taken off the row "the first lies below the second" where it does not hold: W, or the most
    /// by which the first can reach above the second's bottom. And the same for the other row.
    pub(super) fn big_m(&self, relation: &Relation) -> (u64, u64) {
        if !self.switches.tight_big_m {
            return (self.ceiling, self.ceiling);
        }
        let (a, b) = (&self.places[relation.pair.0], &self.places[relation.pair.1]);
        let ((a_low, a_high), (b_low, b_high)) = relation.windows;
        let most = |upper: &Place, high: u64, lower: &Place, low: u64| {
            (upper.high + high).saturating_sub(lower.low + low)
        };
        (most(a, a_high, b, b_low), most(b, b_high, a, a_low))
    }

    /// Whether the first lies below the second in the plan to start from.
    pub(super) fn is_first_below(&self, relation: &Relation) -> bool {
        let (a, b) = (&self.places[relation.pair.0], &self.places[relation.pair.1]);
        let ((_, a_high), (b_low, _)) = relation.windows;
        a.start + a_high <= b.start + b_low
    }

    /// Where the only possible order of a relation is known from the ends of the offsets' ranges.
    fn forced(&self, relation: &Relation) -> Below {
        if !self.switches.tight_big_m {
            return Below::Either;
        }
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
}

/// The columns so far.
#[derive(Default)]
struct Columns {
    variables: ProblemVariables,
    start: Vec<f64>,
}

impl Columns {
    fn add(&mut self, low: u64, high: u64, is_whole: bool, start: u64) -> Variable {
        self.start.push(as_float(start));
        let column = variable().min(as_float(low)).max(as_float(high));
        self.variables.add(if is_whole { column.integer() } else { column })
    }

    /// The offset of a buffer: a column, or where its alignment is coarser than the unit a multiple of one.
    fn place(&mut self, place: &Place) -> Expression {
        let Place { low, high, step, start, .. } = *place;
        let column = self.add(low.div_ceil(step), high / step, step > 1, start / step);
        as_float(step) * column
    }

    /// The binary that is 0 where the first lies below.
    fn order(&mut self, below: Below, is_first_below: bool) -> Variable {
        let (low, high) = match below {
            Below::First => (0, 0),
            Below::Second => (1, 1),
            Below::Either => (0, 1),
        };
        self.add(low, high, true, u64::from(!is_first_below))
    }
}
