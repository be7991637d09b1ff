//! Branch and bound over which of two buffers lies below the other: supports every feature of an instance, for small
//! instances.
//!
//! Two buffers that are in use together rule out some differences of their offsets. The allowed differences are
//! intervals: two of them (one buffer below the other) or, with windows, more. A node fixes one interval for some of
//! the pairs, and takes the lowest offsets that satisfy these. If they satisfy all pairs, they are a plan, and no plan
//! of the node is lower; else the node branches on a pair that they violate. Hand-overs are chosen first: each set of
//! permissions that may be used together is a separate problem, in which an output lies inside its input and begins a
//! step later.
//!
//! # Complexity
//!
//! Exponential: a binary choice for every pair, for every set of hand-overs. Solves some 15 buffers.

use planlab_dsa::{BufferId, Bytes, Evidence, Halt, InPlace, Instance, Offset, Plan, Run, Scope};

use super::minimise::NodeHook;

/// Allowed differences, from the first value to the second, both included.
type Interval = (i128, i128);

/// Beyond every offset.
const FAR: i128 = 1 << 80;

/// Finds the lowest plan and proves that it is optimal, with all hand-overs. `beside` is called at every node, with the
/// units of work so far; it may find lower plans.
pub(super) fn minimise_by_precedence(run: &mut Run<'_>, beside: &mut NodeHook<'_>) -> Result<(), Halt> {
    let instance = run.instance();
    let grain = i128::from(instance.offset_granularity());
    let known = run.height_to_beat().map(|height| i128::from(height.get()));
    let mut best =
        known.map_or_else(|| sufficient_height(instance, grain), |height| (height + grain - 1) / grain);
    let mut is_met = known.is_some();
    let permissions = if run.scope() == Scope::Any { instance.in_place() } else { &[] };
    let mut sets = HandOvers { permissions, chosen: Vec::new() };
    let mut work = 0;
    sets.visit_each(0, &mut |chosen| {
        let mut search = PrecedenceSearch::new(instance, chosen, grain, best);
        search.work = work;
        let ended = search.branch_on_pair(run, beside);
        is_met |= search.best < best;
        (best, work) = (search.best, search.work);
        ended
    })?;
    // Some pins overlap without a possible hand-over: there is no plan and so no bound.
    if !is_met {
        return Ok(());
    }
    let height = u64::try_from(best * grain).unwrap_or(u64::MAX);
    run.raise_bound(Bytes::new(height), run.scope(), Evidence::Search)
}

/// One unit more than a height, in units, that has room for everything above the highest pin.
fn sufficient_height(instance: &Instance, grain: i128) -> i128 {
    let buffers = instance.buffers();
    let pins = buffers.iter().filter_map(|b| Some(b.pin?.get() + b.size.get())).max().unwrap_or(0);
    let needs = buffers.iter().map(|b| i128::from(b.size.get()) + i128::from(b.align.get()));
    (i128::from(pins) + needs.sum::<i128>()) / grain + 2
}

/// All sets of permissions that may be used together.
struct HandOvers<'i> {
    permissions: &'i [InPlace],
    chosen: Vec<InPlace>,
}

impl HandOvers<'_> {
    fn visit_each(
        &mut self,
        from: usize,
        visit: &mut dyn FnMut(&[InPlace]) -> Result<(), Halt>,
    ) -> Result<(), Halt> {
        let Some(&pair) = self.permissions.get(from) else { return visit(&self.chosen) };
        if self.allows_hand_over(pair) {
            self.chosen.push(pair);
            self.visit_each(from + 1, visit)?;
            self.chosen.pop();
        }
        self.visit_each(from + 1, visit)
    }

    fn allows_hand_over(&self, new: InPlace) -> bool {
        let is_free = |old: &InPlace| old.input != new.input && old.output != new.output;
        self.chosen.iter().all(is_free) && !self.leads_to(new.output, new.input)
    }

    fn leads_to(&self, from: BufferId, to: BufferId) -> bool {
        let next = self.chosen.iter().find(|pair| pair.input == from);
        next.is_some_and(|pair| pair.output == to || self.leads_to(pair.output, to))
    }
}

/// A lower bound on one offset: the offset of `from`, plus `more`.
#[derive(Clone, Copy)]
struct Above {
    offset: usize,
    from: usize,
    more: i128,
}

struct PrecedenceSearch<'i> {
    instance: &'i Instance,
    hand_overs: Vec<InPlace>,
    grain: i128,
    size: Vec<i128>,
    align: Vec<i128>,
    pin: Vec<Option<i128>>,
    /// For pairs (i, j) with i < j: the allowed differences, offset of j minus offset of i.
    pairs: Vec<(usize, usize, Vec<Interval>)>,
    above: Vec<Above>,
    /// The height to beat.
    best: i128,
    /// Units of work so far.
    work: u64,
}

impl<'i> PrecedenceSearch<'i> {
    fn new(instance: &'i Instance, hand_overs: &[InPlace], grain: i128, best: i128) -> Self {
        let units = |bytes: u64| i128::from(bytes) / grain;
        let buffers = instance.buffers();
        let mut search = Self {
            instance,
            hand_overs: hand_overs.to_vec(),
            grain,
            size: buffers.iter().map(|b| units(b.size.get())).collect(),
            align: buffers.iter().map(|b| units(b.align.get()).max(1)).collect(),
            pin: buffers.iter().map(|b| b.pin.map(|pin| units(pin.get()))).collect(),
            pairs: Vec::new(),
            above: Vec::new(),
            best,
            work: 0,
        };
        for j in 0..buffers.len() {
            for i in 0..j {
                let allowed = allowed_intervals(search.ruled_out(i, j));
                if allowed.len() > 1 {
                    search.pairs.push((i, j, allowed));
                }
            }
        }
        for pair in hand_overs {
            let (input, output) = (pair.input.index(), pair.output.index());
            search.above.push(Above { offset: output, from: input, more: 0 });
            let more = search.size[output] - search.size[input];
            search.above.push(Above { offset: input, from: output, more });
        }
        search
    }

    fn first_step(&self, buffer: usize) -> u32 {
        let is_late = self.hand_overs.iter().any(|pair| pair.output.index() == buffer);
        self.instance.buffers()[buffer].live.start().get() + u32::from(is_late)
    }

    /// Differences that two buffers rule out, as intervals without their ends.
    fn ruled_out(&self, i: usize, j: usize) -> Vec<Interval> {
        let (first, second) = (&self.instance.buffers()[i], &self.instance.buffers()[j]);
        if first.arena != second.arena {
            return Vec::new();
        }
        let from = self.first_step(i).max(self.first_step(j));
        let mut out = Vec::new();
        for p in first.active_pieces() {
            for q in second.active_pieces() {
                let start = p.steps.start().get().max(q.steps.start().get()).max(from);
                if start < p.steps.end().get().min(q.steps.end().get()) {
                    let units = |bytes: Bytes| i128::from(bytes.get()) / self.grain;
                    out.push((
                        units(p.window.start) - units(q.window.end),
                        units(p.window.end) - units(q.window.start),
                    ));
                }
            }
        }
        let is_pair = |a: BufferId, b: BufferId| (a.index(), b.index()) == (i, j);
        if self
            .instance
            .keep_apart_pairs()
            .iter()
            .any(|p| is_pair(p.first, p.second) || is_pair(p.second, p.first))
        {
            out.push((-self.size[j], self.size[i]));
        }
        out
    }

    fn branch_on_pair(&mut self, run: &mut Run<'_>, beside: &mut NodeHook<'_>) -> Result<(), Halt> {
        let work = 1 + self.pairs.len() as u64;
        self.work += work;
        run.tick(work)?;
        beside(run, self.work)?;
        let height = run.height_to_beat().map(|height| i128::from(height.get()));
        self.best = height.map_or(self.best, |height| self.best.min((height + self.grain - 1) / self.grain));
        let Some(low) = self.lowest_offsets() else { return Ok(()) };
        let Some((i, j, allowed)) = self.broken_pair(&low) else {
            self.best = self.height_of(&low);
            return run.offer(self.plan_of(&low));
        };
        for (least, most) in allowed {
            let known = self.above.len();
            if least > -FAR {
                self.above.push(Above { offset: j, from: i, more: least });
            }
            if most < FAR {
                self.above.push(Above { offset: i, from: j, more: -most });
            }
            let ended = self.branch_on_pair(run, beside);
            self.above.truncate(known);
            ended?;
        }
        Ok(())
    }

    fn height_of(&self, low: &[i128]) -> i128 {
        low.iter().zip(&self.size).map(|(low, size)| low + size).max().unwrap_or(0)
    }

    /// The lowest offsets that satisfy the choices so far; `None` if no offsets do, or if they are not lower than the
    /// best.
    fn lowest_offsets(&self) -> Option<Vec<i128>> {
        let mut low: Vec<i128> = self.pin.iter().map(|pin| pin.unwrap_or(0)).collect();
        loop {
            let mut rose = false;
            for above in &self.above {
                let align = self.align[above.offset];
                let least = low[above.from] + above.more;
                let least = (least + align - 1).div_euclid(align) * align;
                if low[above.offset] < least {
                    if self.pin[above.offset].is_some() || least + self.size[above.offset] >= self.best {
                        return None;
                    }
                    low[above.offset] = least;
                    rose = true;
                }
            }
            if !rose {
                return (self.height_of(&low) < self.best).then_some(low);
            }
        }
    }

    /// The violated pair with the fewest choices; among equals the one that costs the most.
    fn broken_pair(&self, low: &[i128]) -> Option<(usize, usize, Vec<Interval>)> {
        let is_broken = |(i, j, allowed): &&(usize, usize, Vec<Interval>)| {
            let difference = low[*j] - low[*i];
            !allowed.iter().any(|&(least, most)| least <= difference && difference <= most)
        };
        let worth = |(i, j, allowed): &&(usize, usize, Vec<Interval>)| {
            (std::cmp::Reverse(allowed.len()), self.size[*i].min(self.size[*j]))
        };
        self.pairs.iter().filter(is_broken).max_by_key(worth).cloned()
    }

    fn plan_of(&self, low: &[i128]) -> Plan {
        let bytes = |units: &i128| Offset::new(u64::try_from(units * self.grain).unwrap_or(u64::MAX));
        Plan { offsets: low.iter().map(bytes).collect(), in_place: self.hand_overs.clone() }
    }
}

/// The allowed intervals that remain when intervals without their ends are ruled out.
fn allowed_intervals(mut ruled_out: Vec<Interval>) -> Vec<Interval> {
    ruled_out.retain(|(from, to)| to - from > 1);
    ruled_out.sort_unstable();
    let mut allowed = Vec::new();
    let mut least = -FAR;
    for (from, to) in ruled_out {
        if least <= from {
            allowed.push((least, from));
        }
        least = least.max(to);
    }
    allowed.push((least, FAR));
    allowed
}
