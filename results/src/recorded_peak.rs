//! Compares the peak that a pool recorded with a trace and the peak of this project's pool.
//!
//! A recorded trace is a window of a process; the recorded peak is that of the process. A peak is explained if ours is
//! equal. If not, facts about the iterations in the trace are reported next to it, not as the cause. Only figures and
//! the trace decide, never its name.
//!
//! ```
//! use planlab_results::recorded_peak::{Explanation, RecordedPeak};
//!
//! let peak = RecordedPeak { recorded: 24, window: 22, process: Some(24), ..RecordedPeak::default() };
//! assert_eq!(peak.explanation(), Explanation::WarmUp);
//! ```

/// A recorded peak and ours, in reserved bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedPeak {
    /// The most bytes that the framework's own pool reserved.
    pub recorded: u64,
    /// The bytes that our pool reserves for the window alone, starting empty.
    pub window: u64,
    /// The bytes that our pool reserves for the process that contains the window; `None` if it was not played.
    pub process: Option<u64>,
    /// Whether an output layer's own weight was replaced by an embedding's in that process.
    pub has_tied_head: bool,
    /// The number of iterations in the trace that can be distinguished.
    pub iterations: usize,
    /// Whether two iterations request different sizes, or in a different order.
    pub iterations_differ: bool,
}

planlab_dsa::named_enum! {
    /// The explanation of a recorded peak; the first that applies.
    #[derive(PartialOrd, Ord)]
    pub enum Explanation {
        /// The window alone has the same peak.
        Equal = "equal",
        /// The window has another peak, and the process was not played: no conclusion.
        NotPlayed = "process not played",
        /// The process has the same peak: initialisation and a warm-up iteration.
        WarmUp = "warm-up",
        /// The process has the same peak; in it an embedding's weight replaced an output layer's own. Whether the peak
        /// needs that weight is not known.
        TiedHead = "warm-up and tied head",
        /// The process has another peak. The iterations of the window differ from each other; this is not proven to be
        /// the cause.
        IterationsDiffer = "not explained: iterations differ",
        /// The process has another peak. The trace does not show where its iterations begin; this is not proven to be
        /// the cause.
        NoIterations = "not explained: no iteration marks",
        /// The process has another peak, and the window has one iteration or only equal ones.
        Unexplained = "not explained",
    }
}

impl RecordedPeak {
    /// The first explanation that applies.
    #[must_use]
    pub fn explanation(&self) -> Explanation {
        let is_process = self.process == Some(self.recorded);
        if self.window == self.recorded {
            Explanation::Equal
        } else if self.process.is_none() {
            Explanation::NotPlayed
        } else if is_process && self.has_tied_head {
            Explanation::TiedHead
        } else if is_process {
            Explanation::WarmUp
        } else if self.iterations_differ {
            Explanation::IterationsDiffer
        } else if self.iterations == 0 {
            Explanation::NoIterations
        } else {
            Explanation::Unexplained
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_applies_explains() {
        let none = RecordedPeak { recorded: 10, window: 9, process: Some(9), ..RecordedPeak::default() };
        let none = RecordedPeak { iterations: 1, ..none };
        let equal = RecordedPeak { process: Some(10), ..none };
        let unplayed = RecordedPeak { process: None, iterations: 0, ..none };
        for (peak, explanation) in [
            (RecordedPeak { window: 10, ..none }, Explanation::Equal),
            (equal, Explanation::WarmUp),
            (RecordedPeak { iterations: 0, ..equal }, Explanation::WarmUp),
            (RecordedPeak { has_tied_head: true, ..equal }, Explanation::TiedHead),
            (RecordedPeak { has_tied_head: true, ..none }, Explanation::Unexplained),
            (RecordedPeak { iterations: 5, iterations_differ: true, ..none }, Explanation::IterationsDiffer),
            (RecordedPeak { iterations: 5, ..none }, Explanation::Unexplained),
            (RecordedPeak { iterations: 0, ..none }, Explanation::NoIterations),
            // Without the process nothing is known but an equal peak.
            (unplayed, Explanation::NotPlayed),
            (RecordedPeak { has_tied_head: true, iterations: 1, ..unplayed }, Explanation::NotPlayed),
            (RecordedPeak { iterations: 5, iterations_differ: true, ..unplayed }, Explanation::NotPlayed),
            (RecordedPeak { window: 10, ..unplayed }, Explanation::Equal),
        ] {
            assert_eq!(peak.explanation(), explanation, "{peak:?}");
        }
        assert!(Explanation::ALL.is_sorted());
        for kind in Explanation::ALL {
            assert_eq!(kind.name().starts_with("not explained"), kind > Explanation::TiedHead, "{kind:?}");
        }
    }
}
