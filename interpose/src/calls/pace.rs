//! Measures how fast requests come, and decides whether to look at them.
//!
//! A request that gets its memory from the kernel takes many page faults, a fraction of a microsecond each. If large
//! requests come every few microseconds for a long time, the real allocator already has their memory. A plan would
//! gain nothing, and watching for one takes a twentieth of a compiler's time. So the machine does not watch during
//! that time.

/// The number of requests between two looks at the clock.
const STRIDE: u32 = 64;
/// Requests that are further apart than this many nanoseconds, on average, are worth looking at.
const DENSE: u64 = 3000;
/// After this many dense strides in a row, the machine looks away.
const LONG: u32 = 16;
/// The greatest count of dense strides, and the count below which the machine looks again. One slow stride halves the
/// count (the thread may have waited for a processor), which is not enough.
const MOST: u32 = LONG + 2;
const AWAKE_BELOW: u32 = LONG / 2;

#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Requests since the last look at the clock.
    requests: u32,
    /// The clock at that look, in nanoseconds.
    before: u64,
    /// The number of dense strides, halved by each other stride.
    dense: u32,
    is_asleep: bool,
}

/// What to do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Watch,
    /// Watch, and forget what was seen before.
    Anew,
    Away,
}

impl Pace {
    /// Handles a request. `may_sleep`: whether there is nothing yet that it could belong to.
    #[inline]
    pub(crate) fn handle_request(&mut self, may_sleep: bool, now: impl FnOnce() -> u64) -> Look {
        self.requests += 1;
        if self.requests >= STRIDE {
            return self.begin_stride(may_sleep, now());
        }
        if self.is_asleep { Look::Away } else { Look::Watch }
    }

    #[cold]
    fn begin_stride(&mut self, may_sleep: bool, now: u64) -> Look {
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

    /// Whether the machine looks away.
    #[inline]
    pub(crate) fn is_asleep(&self) -> bool {
        self.is_asleep
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers to a number of requests that come a number of nanoseconds apart.
    fn looks(pace: &mut Pace, clock: &mut u64, requests: u32, apart: u64) -> Vec<Look> {
        let next = |_| {
            *clock += apart;
            pace.handle_request(true, || *clock)
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
        // One pause does not wake it; two slow strides do.
        looks(&mut pace, &mut clock, 1, 5_000_000);
        assert!(looks(&mut pace, &mut clock, 500, 100).iter().all(|look| *look == Look::Away));
        let slow = looks(&mut pace, &mut clock, 1000, 10_000);
        let again = slow.iter().position(|look| *look == Look::Anew).expect("it wakes");
        assert!(again <= 3 * STRIDE as usize, "{again}");
        assert!(slow[again + 1..].iter().all(|look| *look == Look::Watch));
    }
}
