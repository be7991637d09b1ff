//! What a pool wrote down as its peak while a trace was recorded, beside what ours reserve.
//!
//! A recorded trace is a window of a process, and the recorded peak is the process's. What explains a difference is
//! told by figures and by what the trace says of itself, never by its name.
//!
//! ```
//! use planlab_results::recorded_peak::{Explanation, RecordedPeak};
//!
//! let peak = RecordedPeak { recorded: 24, window: 22, process: Some(24), ..RecordedPeak::default() };
//! assert_eq!(peak.explanation(), Explanation::WarmUp);
//! ```

/// A recorded peak and ours; bytes reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedPeak {
    /// What the framework's own pool reserved at most.
    pub recorded: u64,
    /// What ours reserves for the window alone, from an empty pool.
    pub window: u64,
    /// What ours reserves for the process that the window was cut from; `None` where it was not played.
    pub process: Option<u64>,
    /// Whether an output layer lost its own weight to an embedding's in that process.
    pub has_tied_head: bool,
    /// How many iterations the trace tells apart.
    pub iterations: usize,
    /// Whether two of them ask for other sizes, or in another order.
    pub iterations_differ: bool,
}

/// What explains a recorded peak: the first that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Explanation {
    /// The window alone has the same peak.
    Equal,
    /// The process has it: initialisation and a warm-up iteration.
    WarmUp,
    /// The process has it, with a weight that an output layer lost to an embedding's.
    TiedHead,
    /// The warm-up iteration was another than those of the window, which differ from each other.
    IterationsDiffer,
    /// The trace does not say where its iterations begin.
    NoIterations,
    /// Nothing in the trace.
    Unexplained,
}

impl Explanation {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Self; 6] = [
        Self::Equal,
        Self::WarmUp,
        Self::TiedHead,
        Self::IterationsDiffer,
        Self::NoIterations,
        Self::Unexplained,
    ];

    /// In a few words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::WarmUp => "warm-up",
            Self::TiedHead => "warm-up and tied head",
            Self::IterationsDiffer => "iterations differ",
            Self::NoIterations => "no iteration marks",
            Self::Unexplained => "not explained by the trace",
        }
    }
}

impl RecordedPeak {
    /// What explains it.
    #[must_use]
    pub fn explanation(&self) -> Explanation {
        let is_process = self.process == Some(self.recorded);
        if self.window == self.recorded {
            Explanation::Equal
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
        for (peak, explanation) in [
            (RecordedPeak { window: 10, ..none }, Explanation::Equal),
            (equal, Explanation::WarmUp),
            (RecordedPeak { iterations: 0, ..equal }, Explanation::WarmUp),
            (RecordedPeak { has_tied_head: true, ..equal }, Explanation::TiedHead),
            (RecordedPeak { has_tied_head: true, ..none }, Explanation::Unexplained),
            (RecordedPeak { iterations: 5, iterations_differ: true, ..none }, Explanation::IterationsDiffer),
            (RecordedPeak { iterations: 5, ..none }, Explanation::Unexplained),
            (RecordedPeak { iterations: 0, process: None, ..none }, Explanation::NoIterations),
        ] {
            assert_eq!(peak.explanation(), explanation, "{peak:?}");
        }
        assert!(Explanation::ALL.is_sorted());
    }
}
