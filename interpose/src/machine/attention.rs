//! Decides whether the machine looks at a request, or away for a while.

use super::state::Machine;
use crate::calls::{Familiar, Look, Stretches, Watch};
use crate::plans::Ground;

/// After this many requests without any plan, the machine looks away; the second number says for how many requests.
pub(super) const AWAKE: u32 = 1 << 17;
pub(super) const ASLEEP: u32 = 1 << 19;
/// If there cannot be a plan for now, the machine looks away for this many requests.
pub(super) const IN_VAIN: u32 = 1 << 14;

impl Machine {
    /// Counts a request without a plan; after many, most calls are not looked at.
    pub(super) fn count_unplanned(&mut self) {
        self.fruitless += 1;
        if self.fruitless > AWAKE && !self.has_hope() {
            self.fruitless = 0;
            self.fall_asleep(ASLEEP);
        }
    }

    /// Looks away for a number of requests, unless there is hope.
    pub(super) fn fall_asleep(&mut self, requests: u32) {
        if !self.has_hope() {
            self.asleep = requests;
            self.forget_history();
        }
    }

    /// Whether a request may belong to something known.
    fn has_hope(&self) -> bool {
        self.config.marks || self.pending.is_some() || !self.shelf.courses().is_empty()
    }

    /// Whether to look at this request.
    #[inline]
    pub(super) fn watches_request(&mut self, ground: &mut impl Ground) -> bool {
        if self.asleep > 0 {
            self.asleep -= 1;
            if self.asleep == 0 {
                self.forget_history();
            }
            return false;
        }
        let may_sleep = !self.has_hope();
        match self.pace.handle_request(may_sleep, || ground.clock_nanoseconds()) {
            Look::Watch => true,
            Look::Anew => {
                self.forget_history();
                true
            }
            Look::Away => {
                if self.history.known_calls() > 0 {
                    self.forget_history();
                }
                false
            }
        }
    }

    pub(super) fn is_asleep(&self) -> bool {
        self.asleep > 0 || self.pace.is_asleep()
    }

    /// Forgets what was seen so far, because the next calls are missed, and frees its memory.
    #[cold]
    fn forget_history(&mut self) {
        self.history.clear();
        self.watch = Watch::new(self.config.proof);
        self.stretches = Stretches::default();
        self.familiar = Familiar::default();
        self.found = None;
    }
}
