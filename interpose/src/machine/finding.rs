//! How the machine finds its plans: by periods, by marks, and by blocks that outlive a round or spread over its pages.

use std::sync::Arc;

use super::attention::IN_VAIN;
use super::state::{FoundPeriod, Machine, Pending};
use crate::calls::{News, Round, Token};
use crate::planning::{Solved, Unsolved};
use crate::plans::Ground;
use crate::tally::PlanTally;

/// The most rounds without a plan that are remembered, so that they are not tried again.
const MOST_REFUSED: usize = 16;
/// How often blocks that outlive their round may change its plan.
const MOST_EXCLUSIONS: u32 = 8;

impl Machine {
    /// Ends a round and begins the next, at the program's request. Does nothing unless the configuration uses marks.
    pub fn mark_round(&mut self, ground: &mut impl Ground) {
        if !self.config.marks {
            return;
        }
        let goes_on = self.follows && self.shelf.segment_holder().is_some_and(|course| !course.is_over());
        if goes_on {
            self.leave_round();
        }
        if self.follows {
            // The round went as planned, so there is nothing to learn from it.
            self.history.drop_latest(self.history.len() - self.marked);
        }
        self.astray = 0;
        self.end_stretch(self.marked, ground);
        self.marked = self.history.len();
        self.is_marked = true;
    }

    /// Called before a request: if no fewer blocks were live for a while, a stretch ends.
    #[inline]
    pub(super) fn look_between(&mut self, ground: &mut impl Ground) {
        let planned = usize::try_from(self.shelf.live_blocks()).unwrap_or(usize::MAX);
        self.is_between =
            self.stretches.observe_request(self.history.live_blocks() + planned, self.shelf.longest_round());
        if self.is_between && planned == 0 && !self.follows && !self.config.marks {
            let begin = self.stretches.begin_stretch(self.history.len());
            begin.into_iter().for_each(|begin| self.end_stretch(begin, ground));
        }
    }

    /// Treats the calls since `begin` as a round if they came often enough before.
    fn end_stretch(&mut self, begin: u64, ground: &mut impl Ground) {
        let calls = self.history.calls_since(begin).unwrap_or_default();
        let rounds = self.config.proof.rounds;
        let frees = calls.iter().take_while(|token| !token.is_request()).count();
        let calls = &calls[frees..];
        if calls.is_empty() || self.pending.is_some() {
            return;
        }
        let count = self.stretches.count_stretch(calls);
        // A round that was refused or is known is not checked every time.
        if count < rounds || !(count == rounds || count.is_power_of_two()) {
            return;
        }
        if let Some(round) = Round::of_calls(calls.to_vec()).filter(|round| !self.is_known(round.tokens())) {
            self.submit_pending(Pending { round, faults_milli: 0, replaces: None, exclusions: 0 }, ground);
        }
    }

    /// Leaves requests of the current plan to the real allocator from its next version on.
    pub(super) fn exclude_requests(&mut self, requests: &[usize], ground: &mut impl Ground) {
        if self.pending.is_some() {
            return;
        }
        let Some(course) = self.shelf.segment_holder() else { return };
        let solved = Arc::clone(course.solved());
        let before =
            self.exclusions.iter().find(|(of, _)| Arc::ptr_eq(of, &solved)).map_or(0, |(_, count)| *count);
        if before >= MOST_EXCLUSIONS {
            return;
        }
        let round = solved.round().without_requests(requests);
        let exclusions = before + 1;
        self.submit_pending(Pending { round, faults_milli: 0, replaces: Some(solved), exclusions }, ground);
    }

    /// Looks at the pages of the round that has just ended, after 1, 2, 4, 8, ... rounds on them. Nothing is in use.
    #[cold]
    pub(super) fn inspect_pages(&mut self, ground: &mut impl Ground) {
        self.is_inspection_due = false;
        self.claim_pages(ground);
        self.exclude_spreading(ground);
        self.unclaim_pages(ground);
    }

    fn exclude_spreading(&mut self, ground: &mut impl Ground) {
        let Some(course) = self.shelf.segment_holder().filter(|course| course.rounds_on_pages > 0) else {
            return;
        };
        let pages = ground.resident_pages(course.segment(), course.height());
        let spreading = pages.map(|pages| course.spreading_requests(&pages)).unwrap_or_default();
        if !spreading.is_empty() {
            self.shelf.give_back(ground);
            self.exclude_requests(&spreading, ground);
        }
    }

    /// Looks at the latest call.
    #[inline]
    pub(super) fn look_at_call(&mut self, ground: &mut impl Ground) {
        if self.config.marks {
            return;
        }
        match self.watch.look_at_call(&self.history) {
            News::Nothing => {}
            News::Likely => self.faults_when_likely = ground.page_faults(),
            News::Found { period, since_likely } => self.note_period(period, since_likely, ground),
        }
    }

    /// Records a proved period. It is planned at the next request, because a free should not wait for that.
    fn note_period(&mut self, period: u64, since_likely: u64, ground: &mut impl Ground) {
        let is_followed =
            self.follows && self.shelf.segment_holder().is_some_and(|course| course.call_count() == period);
        if self.pending.is_none() && !is_followed {
            let faults = ground.page_faults().saturating_sub(self.faults_when_likely);
            let faults_milli = (faults * 1000).saturating_mul(period) / since_likely.max(1);
            self.found = Some(FoundPeriod { end: self.history.len(), period, faults_milli });
        }
    }

    /// Plans what was found, and takes up what was planned.
    #[cold]
    pub(super) fn attend_planning(&mut self, ground: &mut impl Ground) {
        if let Some(found) = self.found.take() {
            self.plan_found(found, ground);
        }
        // Not in the middle of a round.
        let is_between = !self.follows || self.shelf.segment_holder().is_none_or(|course| course.is_over());
        if self.pending.is_some()
            && is_between
            && let Some(ended) = ground.collect_result()
        {
            self.take_up(ended, ground);
        }
    }

    fn plan_found(&mut self, found: FoundPeriod, ground: &mut impl Ground) {
        if self.pending.is_some() {
            return;
        }
        let calls = found.end.checked_sub(found.period).and_then(|from| self.history.calls_since(from));
        let period = usize::try_from(found.period).ok();
        let Some(period) = calls.zip(period).and_then(|(calls, period)| calls.get(..period)) else { return };
        if self.is_known(period) {
            return;
        }
        if let Some(round) = Round::of_period(period) {
            let faults_milli = found.faults_milli;
            self.submit_pending(Pending { round, faults_milli, replaces: None, exclusions: 0 }, ground);
        }
    }

    /// Whether calls are those of a known round, or of an inner loop of one.
    fn is_known(&self, period: &[Token]) -> bool {
        let planned = self.shelf.courses().iter().map(|course| course.solved().round());
        planned.chain(&self.refused).any(|round| round.holds_calls(period))
    }

    fn submit_pending(&mut self, pending: Pending, ground: &mut impl Ground) {
        // Checked before a thread is started for it.
        if pending.round.transient_load() < u128::from(self.config.least_load.get()) {
            // Without these requests the round is not worth a plan.
            pending.replaces.iter().for_each(|old| self.shelf.drop_plan(old));
            return self.refuse_round(pending.round);
        }
        if ground.submit_round(pending.round.clone()) {
            self.pending = Some(pending);
        } else {
            self.refuse_round(pending.round);
            self.fall_asleep(IN_VAIN);
        }
    }

    fn refuse_round(&mut self, round: Round) {
        self.tally.refused.add(1);
        self.refused.truncate(MOST_REFUSED - 1);
        self.refused.insert(0, round);
    }

    fn take_up(&mut self, ended: Result<Solved, Unsolved>, ground: &mut impl Ground) {
        let Some(pending) = self.pending.take() else { return };
        let Ok(solved) = ended else { return self.refuse_round(pending.round) };
        if self.follows {
            self.complete_round();
        }
        let (solved, tally) = (Arc::new(solved), Arc::new(PlanTally::new()));
        fill_tally(&tally, &solved, pending.faults_milli);
        let replaces = pending.replaces.as_ref();
        if !self.shelf.install_plan(Arc::clone(&solved), Arc::clone(&tally), replaces, ground) {
            return self.refuse_round(pending.round);
        }
        self.exclusions.retain(|(of, _)| Arc::strong_count(of) > 1);
        if pending.exclusions > 0 {
            self.exclusions.push((solved, pending.exclusions));
        }
        self.tally.plans.add(1);
        self.is_warm = true;
        ground.receive_tally(&tally);
    }
}

fn fill_tally(tally: &PlanTally, solved: &Solved, faults_milli: u64) {
    tally.requests.set(solved.round().requests().len() as u64);
    tally.planned.set(solved.request_numbers().len() as u64);
    tally.bytes.set(solved.planned_bytes().get());
    tally.height.set(solved.height.get());
    tally.load.set(solved.load.get());
    tally.bound.set(solved.bound.get());
    tally.planning_ns.set(u64::try_from(solved.took.as_nanos()).unwrap_or(u64::MAX));
    tally.faults_before_milli.set(faults_milli);
}
