//! How fast requests come, and whether it is worth to look at them.
//!
//! A request whose memory has to be had from the kernel takes many page faults, a fraction of a microsecond each: where
//! large requests come every few microseconds, for long, the real allocator has that memory already. A plan would gain
//! nothing, and to watch for one takes a twentieth of a compiler's time. So nobody watches while it goes on like that.

use super::Machine;
use super::ground::Ground;
use super::stretches::Stretches;

/// Requests after which the machine looks away if none was ever planned, and for how many.
pub(super) const AWAKE: u32 = 1 << 17;
pub(super) const ASLEEP: u32 = 1 << 19;
/// Requests between two looks at the clock.
const STRIDE: u32 = 64;
/// Requests that are further apart than so many nanoseconds, on average, are worth to be looked at.
const DENSE: u64 = 3000;
/// After so many dense strides in a row nobody watches.
const LONG: u32 = 16;
/// What is counted of them at most, and where the count halves to when it is over: one slow stride in between (the thread
/// had to wait for a processor) is no end.
const MOST: u32 = LONG + 2;
const AWAKE_BELOW: u32 = LONG / 2;

#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Requests since the last look at the clock.
    requests: u32,
    /// What the clock said then, in nanoseconds.
    before: u64,
    /// Dense strides, halved by each that is not.
    dense: u32,
    is_asleep: bool,
}

/// What is to be done with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Watch,
    /// Watch, and what was seen before is no longer of use.
    Anew,
    Away,
}

impl Pace {
    /// A request comes. `may_sleep`: whether there is nothing yet that it could be a part of.
    #[inline]
    pub(super) fn request(&mut self, may_sleep: bool, now: impl FnOnce() -> u64) -> Look {
        self.requests += 1;
        if self.requests >= STRIDE {
            return self.stride(may_sleep, now());
        }
        if self.is_asleep { Look::Away } else { Look::Watch }
    }

    #[cold]
    fn stride(&mut self, may_sleep: bool, now: u64) -> Look {
        let is_dense = now.saturating_sub(self.before) < u64::from(STRIDE) * DENSE;
        (self.requests, self.before) = (0, now);
        self.dense = if is_dense { (self.dense + 1).min(MOST) } else { self.dense / 2 };
        let was_asleep = self.is_asleep;
        self.is_asleep = may_sleep && if was_asleep { self.dense >= AWAKE_BELOW } else { self.dense >= LONG };
        match (was_asleep, self.is_asleep) {
            (_, true) => Look::Away,
            (true, false) => Look::Anew,
            (false, false) => Look::Watch,
        }
    }

    /// Whether nobody watches.
    #[inline]
    pub(super) fn is_asleep(&self) -> bool {
        self.is_asleep
    }
}

impl Machine {
    /// Where nothing was ever planned for long, most calls are not looked at.
    pub(super) fn tire(&mut self) {
        self.fruitless += 1;
        if self.fruitless > AWAKE && !self.has_hope() {
            (self.fruitless, self.asleep) = (0, ASLEEP);
        }
    }

    /// Whether a request may be a part of what is known.
    fn has_hope(&self) -> bool {
        self.config.marks || self.pending.is_some() || !self.shelf.courses().is_empty()
    }

    /// Whether a request that comes is looked at.
    #[inline]
    pub(super) fn watches(&mut self, ground: &mut impl Ground) -> bool {
        if self.asleep > 0 {
            self.asleep -= 1;
            if self.asleep == 0 {
                self.forget();
            }
            return false;
        }
        let may_sleep = !self.has_hope();
        match self.pace.request(may_sleep, || ground.nanoseconds()) {
            Look::Watch => true,
            Look::Anew => {
                self.forget();
                true
            }
            Look::Away => false,
        }
    }

    pub(super) fn is_asleep(&self) -> bool {
        self.asleep > 0 || self.pace.is_asleep()
    }

    /// What was seen so far is of no use: there is a hole in it.
    #[cold]
    fn forget(&mut self) {
        self.history.clear();
        self.watch.restart();
        self.stretches = Stretches::default();
        self.found = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said to so many requests that come so many nanoseconds apart, one after the other.
    fn looks(pace: &mut Pace, clock: &mut u64, requests: u32, apart: u64) -> Vec<Look> {
        let next = |_| {
            *clock += apart;
            pace.request(true, || *clock)
        };
        (0..requests).map(next).collect()
    }

    #[test]
    fn nobody_watches_while_requests_come_fast() {
        let (mut pace, mut clock) = (Pace::default(), 1 << 40);
        assert!(looks(&mut pace, &mut clock, 5000, DENSE + 100).iter().all(|look| *look == Look::Watch));
        let fast = looks(&mut pace, &mut clock, 5000, 100);
        let away = fast.iter().position(|look| *look == Look::Away).expect("in the end");
        assert!((900..1200).contains(&away), "{away}");
        assert!(fast[away..].iter().all(|look| *look == Look::Away));
        // One pause is no end, and two slow strides are.
        looks(&mut pace, &mut clock, 1, 5_000_000);
        assert!(looks(&mut pace, &mut clock, 500, 100).iter().all(|look| *look == Look::Away));
        let slow = looks(&mut pace, &mut clock, 1000, 10_000);
        let anew = slow.iter().position(|look| *look == Look::Anew).expect("it wakes");
        assert!(anew <= 3 * STRIDE as usize, "{anew}");
        assert!(slow[anew + 1..].iter().all(|look| *look == Look::Watch));
    }

    #[test]
    fn what_has_a_plan_is_watched_however_fast_it_comes() {
        let mut pace = Pace::default();
        assert!((0..5000).all(|clock| pace.request(false, || clock) == Look::Watch));
    }
}
