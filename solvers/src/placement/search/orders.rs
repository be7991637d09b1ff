//! Local search over the order in which a greedy rule places the buffers: supports every feature of an instance,
//! hand-overs and windows included.
//!
//! The state is an order and the height of its plan. A step moves one or several buffers: a buffer that reaches the top
//! comes earlier, an output comes right behind or right before an input that it may overwrite, or any buffer goes
//! anywhere. A plan that is no higher is the new state. After many steps in vain the search restarts from its lowest
//! order, with as many random moves as Luby's sequence says and with the other rule.
//!
//! # References
//!
//! 1. H. R. Lourenço, O. C. Martin and T. Stützle, *Iterated local search*, Handbook of Metaheuristics, 2003,
//!    doi:10.1007/0-306-48056-5_11.
//!
//! # Complexity
//!
//! Anytime. A step takes as long as a greedy planner: about n log n.

use planlab_dsa::{BufferId, Halt, Instance, Plan, Run};
use rand::RngExt;

use crate::feasibility::luby_number;
use crate::placement::Order;
use crate::placement::greedy::{Rule, place_at_most};

/// Steps in vain, for each buffer, before a restart.
const STAGNATION_PER_BUFFER: u64 = 8;
/// Of this many steps, one continues with another move.
const MORE_MOVES: u32 = 3;

/// The search, which stops and continues between turns.
pub(crate) struct OrderSearch {
    state: State,
    lowest: State,
    /// The buffers that reach the top of the state's plan.
    top_buffers: Vec<BufferId>,
    /// Steps since the last lower plan or restart.
    in_vain: u64,
    restarts: u64,
}

#[derive(Clone)]
struct State {
    order: Vec<BufferId>,
    rule: Rule,
    /// In bytes.
    height: u64,
}

impl OrderSearch {
    /// Starts from the best of the greedy orders, all offered. `None` if there is nothing to change: no order has a plan,
    /// or fewer than two buffers can move.
    pub(crate) fn new(run: &mut Run<'_>) -> Result<Option<Self>, Halt> {
        let instance = run.instance();
        let mut search: Option<Self> = None;
        for order in Order::ALL {
            for rule in [Rule::FirstFit, Rule::BestFit] {
                let mut order = order.sort_buffers(instance);
                order.retain(|&id| instance.buffer(id).pin.is_none());
                let most = search.as_ref().map_or(u64::MAX, |search| search.state.height);
                if order.len() < 2 {
                    return Ok(None);
                }
                let Some((plan, height)) = place_at_most(run, &order, rule, most)? else { continue };
                let state = State { order, rule, height };
                let top_buffers = find_top_buffers(instance, &plan, height);
                search = Some(Self { lowest: state.clone(), state, top_buffers, in_vain: 0, restarts: 0 });
                run.offer(plan)?;
            }
        }
        Ok(search)
    }

    /// Searches until about this many buffers were placed.
    pub(crate) fn run_turn(&mut self, run: &mut Run<'_>, placed: u64) -> Result<(), Halt> {
        let each = self.state.order.len() as u64;
        for _ in 0..placed.div_ceil(each) {
            self.run_step(run)?;
            if self.in_vain > STAGNATION_PER_BUFFER * each {
                self.restart_from_lowest(run)?;
            }
        }
        Ok(())
    }

    fn run_step(&mut self, run: &mut Run<'_>) -> Result<(), Halt> {
        let mut order = self.state.order.clone();
        self.change_order(run, &mut order);
        while run.rng().random_ratio(1, MORE_MOVES) {
            self.change_order(run, &mut order);
        }
        self.in_vain += 1;
        let Some((plan, height)) = place_at_most(run, &order, self.state.rule, self.state.height)? else {
            return Ok(());
        };
        if height < self.state.height {
            self.in_vain = 0;
        }
        self.top_buffers = find_top_buffers(run.instance(), &plan, height);
        self.state = State { order, height, ..self.state };
        if height < self.lowest.height {
            self.lowest = self.state.clone();
        }
        run.offer(plan)
    }

    fn change_order(&self, run: &mut Run<'_>, order: &mut Vec<BufferId>) {
        let permissions = run.instance().in_place();
        let kinds = if permissions.is_empty() { 2 } else { 3 };
        match run.rng().random_range(0..kinds) {
            0 => {
                let top = self.top_buffers[run.rng().random_range(0..self.top_buffers.len())];
                let from = position_of(order, top);
                let to = run.rng().random_range(0..=from.unwrap_or(0));
                shift_position(order, from, to);
            }
            1 => {
                let [from, to] = [(); 2].map(|()| run.rng().random_range(0..order.len()));
                shift_position(order, Some(from), to);
            }
            _ => {
                let pair = permissions[run.rng().random_range(0..permissions.len())];
                let from = position_of(order, pair.output);
                let output = from.map(|from| order.remove(from));
                // A pinned input is placed before all others.
                let input = position_of(order, pair.input);
                let behind = usize::from(run.rng().random_ratio(3, 4));
                let to = input.map_or(0, |input| input + behind);
                order.splice(to..to, output);
            }
        }
    }

    /// Restarts from the lowest order, disturbed, with the other rule.
    fn restart_from_lowest(&mut self, run: &mut Run<'_>) -> Result<(), Halt> {
        self.restarts += 1;
        self.in_vain = 0;
        let mut order = self.lowest.order.clone();
        for _ in 0..luby_number(self.restarts) {
            self.change_order(run, &mut order);
        }
        let rule = if self.state.rule == Rule::FirstFit { Rule::BestFit } else { Rule::FirstFit };
        if let Some((plan, height)) = place_at_most(run, &order, rule, u64::MAX)? {
            self.top_buffers = find_top_buffers(run.instance(), &plan, height);
            self.state = State { order, rule, height };
            run.offer(plan)?;
        }
        Ok(())
    }
}

/// The buffers that reach the top of a plan, or, if only pinned ones do, the highest of the others.
fn find_top_buffers(instance: &Instance, plan: &Plan, height: u64) -> Vec<BufferId> {
    let end = |id: BufferId| plan.offsets[id.index()].get() + instance.buffer(id).size.get();
    let is_free = |id: &BufferId| instance.buffer(*id).pin.is_none();
    let highest: Vec<BufferId> = instance.ids().filter(is_free).filter(|&id| end(id) == height).collect();
    if highest.is_empty() {
        instance.ids().filter(is_free).max_by_key(|&id| end(id)).into_iter().collect()
    } else {
        highest
    }
}

fn position_of(order: &[BufferId], id: BufferId) -> Option<usize> {
    order.iter().position(|&other| other == id)
}

fn shift_position(order: &mut Vec<BufferId>, from: Option<usize>, to: usize) {
    if let Some(from) = from {
        let id = order.remove(from);
        order.insert(to, id);
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::{Shape, instances, oracle_height};
    use planlab_dsa::{Arena, Budget, Planner, Stop, execute};
    use proptest::prelude::*;

    use super::*;
    use crate::placement::exact::Exact;
    use crate::placement::testing::scripted;

    proptest! {
        #[test]
        fn every_plan_is_valid_and_the_search_goes_on(
            instance in instances(Shape::every_feature().with_arenas(false).with_max_buffers(20)),
        ) {
            let budget = Budget { work: Some(20_000), ..Budget::default() };
            let in_orders = scripted(Exact.descriptor(), |run| {
                let Some(mut search) = OrderSearch::new(run)? else { return Ok(()) };
                loop {
                    search.run_turn(run, 1)?;
                }
            });
            let outcome = execute(&in_orders, &instance, budget, 1);
            let is_open = instance.arenas() == [Arena::default()];
            let is_pinned = instance.buffers().iter().any(|buffer| buffer.pin.is_some());
            prop_assert!(outcome.best.is_some() || is_pinned || !is_open || instance.len() < 2, "no plan");
            if let Some(best) = &outcome.best {
                prop_assert_eq!(oracle_height(&instance, best.as_plan()).ok(), Some(best.height()));
            }
            let free = instance.buffers().iter().filter(|buffer| buffer.pin.is_none()).count();
            let is_over = matches!(outcome.end, Ok(Stop::Proved | Stop::WorkLimit));
            prop_assert!(is_over || free < 2 || outcome.best.is_none(), "{:?}", outcome.end);
        }
    }
}
