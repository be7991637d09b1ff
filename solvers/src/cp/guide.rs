//! The next decision of Pumpkin: the values of a start until there is a solution, then what recent conflicts suggest, as
//! in the last solution. Without such conflicts another rule decides.

use pumpkin_core::branching::branchers::autonomous_search::AutonomousSearch;
use pumpkin_core::branching::branchers::warm_start::WarmStart;
use pumpkin_core::branching::{Brancher, BrancherEvent, SelectionContext};
use pumpkin_core::predicates::Predicate;
use pumpkin_core::results::SolutionReference;
use pumpkin_core::variables::DomainId;

/// Decides by a start, by conflicts, or by the rule `B`.
#[derive(Debug)]
pub(crate) struct Guide<B> {
    start: Option<WarmStart<DomainId>>,
    search: AutonomousSearch<B>,
}

impl<B: Brancher> Guide<B> {
    pub(crate) fn new(start: Option<WarmStart<DomainId>>, rule: B) -> Self {
        Self { start, search: AutonomousSearch::new(rule) }
    }

    /// Leaves the start: there is a solution.
    pub(crate) fn forget_start(&mut self) {
        self.start = None;
    }
}

impl<B: Brancher> Brancher for Guide<B> {
    fn next_decision(&mut self, context: &mut SelectionContext<'_>) -> Option<Predicate> {
        let decision = self.start.as_mut().and_then(|start| start.next_decision(context));
        decision.or_else(|| self.search.next_decision(context))
    }

    fn on_conflict(&mut self) {
        self.search.on_conflict();
    }

    fn on_backtrack(&mut self) {
        self.search.on_backtrack();
    }

    fn on_solution(&mut self, solution: SolutionReference<'_>) {
        self.search.on_solution(solution);
    }

    fn on_unassign_integer(&mut self, variable: DomainId, value: i32) {
        self.search.on_unassign_integer(variable, value);
    }

    fn on_appearance_in_conflict_predicate(&mut self, predicate: Predicate) {
        self.search.on_appearance_in_conflict_predicate(predicate);
    }

    fn on_restart(&mut self) {
        self.search.on_restart();
    }

    fn synchronise(&mut self, context: &mut SelectionContext<'_>) {
        if let Some(start) = &mut self.start {
            start.synchronise(context);
        }
        self.search.synchronise(context);
    }

    fn is_restart_pointless(&mut self) -> bool {
        false
    }

    fn subscribe_to_events(&self) -> Vec<BrancherEvent> {
        let mut events = self.search.subscribe_to_events();
        events.push(BrancherEvent::Synchronise);
        events
    }
}
