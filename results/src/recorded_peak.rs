//! What a pool wrote down as its peak while a trace was recorded, beside what ours reserve.
//!
//! A recorded trace is a window of a process, and the recorded peak is the process's. A peak is explained where
//! ours is the same; else it is not, and what the trace says of its iterations is told beside that, as no reason.
//! Figures and the trace decide, never its name.
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

/// Whether a recorded peak is met, and by what: the first that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Explanation {
    /// The window alone has the same peak.
    Equal,
    /// The window has another, and the process was not played: nothing is known.
    NotPlayed,
    /// The process has it: initialisation and a warm-up iteration.
    WarmUp,
    /// The process has it; in it an output layer lost a weight of its own to an embedding's. Whether the peak needs
    /// that weight is not said.
    TiedHead,
    /// The process has another. The iterations of the window differ from each other; that this is why was not
    /// shown.
    IterationsDiffer,
    /// The process has another. The trace does not say where its iterations begin; that this is why was not
    /// shown.
    NoIterations,
    /// The process has another, and the iterations of the window are alike, or there is one.
    Unexplained,
}

impl Explanation {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Self; 7] = [
        Self::Equal,
        Self::NotPlayed,
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
            Self::NotPlayed => "process not played",
            Self::WarmUp => "warm-up",
            Self::TiedHead => "warm-up and tied head",
            Self::IterationsDiffer => "not explained: iterations differ",
            Self::NoIterations => "not explained: no iteration marks",
            Self::Unexplained => "not explained",
        }
    }
}

impl RecordedPeak {
    /// Whether it is met, and by what.
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
        for (peak, explanation) in [
            (RecordedPeak { window: 10, ..none }, Explanation::Equal),
            (equal, Explanation::WarmUp),
            (RecordedPeak { iterations: 0, ..equal }, Explanation::WarmUp),
            (RecordedPeak { has_tied_head: true, ..equal }, Explanation::TiedHead),
            (RecordedPeak { has_tied_head: true, ..none }, Explanation::Unexplained),
            (RecordedPeak { iterations: 5, iterations_differ: true, ..none }, Explanation::IterationsDiffer),
            (RecordedPeak { iterations: 5, ..none }, Explanation::Unexplained),
            (RecordedPeak { iterations: 0, ..none }, Explanation::NoIterations),
        ] {
            assert_eq!(peak.explanation(), explanation, "{peak:?}");
        }
        assert!(Explanation::ALL.is_sorted());
    }

    #[test]
    fn without_the_process_nothing_is_known_but_an_equal_peak() {
        let unplayed = RecordedPeak { recorded: 10, window: 9, ..RecordedPeak::default() };
        for peak in [
            unplayed,
            RecordedPeak { has_tied_head: true, iterations: 1, ..unplayed },
            RecordedPeak { iterations: 5, iterations_differ: true, ..unplayed },
            RecordedPeak { iterations: 5, ..unplayed },
        ] {
            assert_eq!(peak.explanation(), Explanation::NotPlayed, "{peak:?}");
        }
        assert_eq!(RecordedPeak { window: 10, ..unplayed }.explanation(), Explanation::Equal);
    }

    #[test]
    fn what_is_not_met_is_called_not_explained() {
        for kind in Explanation::ALL {
            let is_met = kind <= Explanation::TiedHead;
            assert_eq!(kind.name().starts_with("not explained"), !is_met, "{kind:?}");
        }
    }
}
