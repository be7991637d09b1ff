//! The model: columns and rows in units, and the way back to buffers.

use good_lp::{Constraint, Expression, ProblemVariables, SolverModel, Variable, variable};
use planlab_dsa::{Buffer, BufferId, Halt, Instance, PlanError, Run, VerifiedPlan};

use super::Strengthening;
use super::bound::{as_float, is_exact};

/// The most binaries for which a model is built; a solver could do nothing with more.
const MOST_RELATIONS: usize = 1_000_000;

/// A part of buffer `i` and one of buffer `j`, in use at one step: one lies below the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Relation {
    /// Indices into the places.
    pair: (usize, usize),
    /// The bytes of each in use, in units, relative to its offset.
    windows: ((u64, u64), (u64, u64)),
}

/// Which of the two lies below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Below {
    First,
    Second,
    Either,
}

/// A buffer of the model, in units.
#[derive(Clone, Debug)]
struct Place {
    id: BufferId,
    size: u64,
    low: u64,
    high: u64,
    /// Offsets are multiples of it.
    step: u64,
    start: u64,
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

    const fn is_fixed(&self) -> bool {
        self.low == self.high
    }
}

struct Draft<'i> {
    instance: &'i Instance,
    unit: u64,
    ceiling: u64,
    switches: Strengthening,
    places: Vec<Place>,
    relations: Vec<Relation>,
}

impl Draft<'_> {
    fn buffer(&self, place: usize) -> &Buffer {
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
        let orders = Orders::new(&mut self);
        let mut columns = Columns::default();
        let height = columns.add(floor.min(self.ceiling), self.ceiling, false, self.ceiling);
        let offsets: Vec<Expression> = self.places.iter().map(|place| columns.place(place)).collect();
        let mut rows = Vec::with_capacity(offsets.len() + 2 * self.relations.len());
        for (place, offset) in self.places.iter().zip(&offsets) {
            rows.push((offset.clone() + as_float(place.size)).leq(height));
        }
        for (index, relation) in self.relations.iter().enumerate() {
            let (first, second) = self.slack(relation);
            if self.switches.tight_big_m && (first == Some(0) || second == Some(0)) {
                continue;
            }
            let below = orders.of(&self, index);
            let above = columns.order(below, self.is_first_below(relation));
            let (i, j) = relation.pair;
            let ((i_low, i_high), (j_low, j_high)) = relation.windows;
            let gap = |a: &Expression, high: u64, b: &Expression, low: u64| {
                a.clone() - b.clone() + as_float(high) - as_float(low)
            };
            let (first, second) = (self.big_m(first), self.big_m(second));
            rows.push(gap(&offsets[i], i_high, &offsets[j], j_low).leq(first * above));
            rows.push((gap(&offsets[j], j_high, &offsets[i], i_low) + second * above).leq(second));
        }
        let places = self.places.iter().map(|place| (place.id, place.step)).collect();
        let start = self.switches.start.then_some(columns.start);
        let (unit, ceiling) = (self.unit, self.ceiling);
        Formulation { unit, ceiling, start, places, variables: columns.variables, height, rows }
    }

    /// By how much at most the first can reach above the second's bottom, and the other way round; 0 where
    /// it never does, `None` where W has to do.
    fn slack(&self, relation: &Relation) -> (Option<u64>, Option<u64>) {
        if !self.switches.tight_big_m {
            return (None, None);
        }
        let (a, b) = (&self.places[relation.pair.0], &self.places[relation.pair.1]);
        let ((a_low, a_high), (b_low, b_high)) = relation.windows;
        let most = |upper: &Place, high: u64, lower: &Place, low: u64| {
            Some((upper.high + high).saturating_sub(lower.low + low))
        };
        (most(a, a_high, b, b_low), most(b, b_high, a, a_low))
    }

    fn big_m(&self, slack: Option<u64>) -> f64 {
        as_float(slack.unwrap_or(self.ceiling))
    }

    /// Whether the first lies below the second in the plan to start from.
    fn is_first_below(&self, relation: &Relation) -> bool {
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
        if a.low + a_high > b.high + b_low {
            Below::Second
        } else if b.low + b_high > a.high + a_low {
            Below::First
        } else {
            Below::Either
        }
    }
}

/// The orders that are fixed because another plan, as good, has the same buffers the other way round.
///
/// Buffers that are alike can change places, so they may be asked to lie in the order of their ids. And a
/// plan without pins, alignments and windows may be turned upside down, one component at a time; of the
/// two, the one may be asked for in which `a` lies below `b`, if `b` is unlike all others and `a` is the
/// first of those like it: where `b` lies below `a` and therefore below all of them, it lies above all of
/// them in the mirror.
struct Orders {
    fixed: Vec<Below>,
}

impl Orders {
    fn new(draft: &mut Draft<'_>) -> Self {
        let mut this = Self { fixed: vec![Below::Either; draft.relations.len()] };
        if draft.switches.symmetry {
            let classes = Classes::new(draft);
            classes.sort_start(draft);
            this.fix_mirrors(draft, &classes);
            classes.sort_start(draft);
            this.fix_alike(draft, &classes);
        }
        this
    }

    fn of(&self, draft: &Draft<'_>, index: usize) -> Below {
        match draft.forced(&draft.relations[index]) {
            Below::Either => self.fixed[index],
            forced => forced,
        }
    }

    fn fix_alike(&mut self, draft: &Draft<'_>, classes: &Classes) {
        for (relation, fixed) in draft.relations.iter().zip(&mut self.fixed) {
            if classes.of[relation.pair.0] == classes.of[relation.pair.1] {
                *fixed = Below::First;
            }
        }
    }

    fn fix_mirrors(&mut self, draft: &mut Draft<'_>, classes: &Classes) {
        let can_turn = |place: &Place| {
            let buffer = draft.instance.buffer(place.id);
            place.step == 1
                && buffer.pin.is_none()
                && buffer.pauses.iter().all(|pause| pause.window.is_none())
        };
        if !draft.places.iter().all(can_turn) {
            return;
        }
        let components = components(draft);
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
                turn(draft, &components, component);
            }
        }
    }
}

/// Turns the part of the start that belongs to a component upside down.
fn turn(draft: &mut Draft<'_>, components: &[usize], component: usize) {
    let ceiling = draft.ceiling;
    for (place, _) in draft.places.iter_mut().zip(components).filter(|(_, of)| **of == component) {
        place.start = ceiling - place.size - place.start;
    }
}

/// The component of each place: the lowest index that relations join it to.
fn components(draft: &Draft<'_>) -> Vec<usize> {
    fn root(parents: &mut [usize], mut at: usize) -> usize {
        while parents[at] != at {
            parents[at] = parents[parents[at]];
            at = parents[at];
        }
        at
    }
    let mut parents: Vec<usize> = (0..draft.places.len()).collect();
    for relation in &draft.relations {
        let (a, b) = (root(&mut parents, relation.pair.0), root(&mut parents, relation.pair.1));
        parents[a.max(b)] = a.min(b);
    }
    (0..parents.len()).map(|at| root(&mut parents, at)).collect()
}

/// Which places are alike: the class of each is the first of those like it.
struct Classes {
    of: Vec<usize>,
    members: Vec<Vec<usize>>,
}

impl Classes {
    fn new(draft: &Draft<'_>) -> Self {
        let mut is_apart = vec![false; draft.instance.len()];
        for pair in draft.instance.apart() {
            is_apart[pair.first.index()] = true;
            is_apart[pair.second.index()] = true;
        }
        let count = draft.places.len();
        let mut this = Self { of: (0..count).collect(), members: vec![Vec::new(); count] };
        for index in 0..count {
            let buffer = draft.buffer(index);
            let plain = buffer.pin.is_none() && buffer.pauses.is_empty();
            let free = plain && !is_apart[draft.places[index].id.index()];
            let like = |&other: &usize| {
                let head = draft.buffer(other);
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
    fn sort_start(&self, draft: &mut Draft<'_>) {
        for members in self.members.iter().filter(|members| members.len() > 1) {
            let mut starts: Vec<u64> = members.iter().map(|&member| draft.places[member].start).collect();
            starts.sort_unstable();
            for (&member, start) in members.iter().zip(starts) {
                draft.places[member].start = start;
            }
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
