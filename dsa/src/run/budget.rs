//! The limits of a run, and how to end it from outside.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::{Bytes, Clock, Offset};

/// The limits of a run.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    /// Wall time from the start of the run. Default: no limit.
    pub wall: Option<Duration>,
    /// Units of work, as the planner counts them. Default: no limit.
    pub work: Option<u64>,
    /// A capacity: the run stops as soon as a plan is at most this high, or a bound above it is proven. Default: no
    /// target.
    pub target: Option<Bytes>,
    /// Ends the run from outside.
    pub cancel: CancelToken,
    /// Threads that the planner may use. Default: 1.
    pub threads: Option<NonZeroUsize>,
    /// Offsets suggested as a start, in bytes, one entry for each buffer by id; for example an old plan. They may be
    /// incomplete or invalid as a plan; planners that do not honour hints ignore them. Default: no hints.
    ///
    /// ```
    /// use planlab_dsa::{Budget, Offset};
    ///
    /// let old_plan = [Some(Offset::new(0)), None, Some(Offset::new(64))];
    /// let budget = Budget { hints: Some(old_plan.into()), ..Budget::default() };
    /// assert!(budget.hints.is_some());
    /// ```
    pub hints: Option<Arc<[Option<Offset>]>>,
    /// The clock that measures the wall time. Default: the machine's clock.
    pub clock: Clock,
}

/// A flag that ends a run from outside; clones share it.
#[derive(Clone, Debug, Default)]
pub struct CancelToken {
    flag: Arc<AtomicBool>,
    parent: Option<Arc<CancelToken>>,
}

impl From<Arc<AtomicBool>> for CancelToken {
    /// Watches a flag that other code, such as a signal handler, sets to end the run.
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self { flag, parent: None }
    }
}

impl CancelToken {
    /// Ends every run that holds a clone, at its next tick.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Whether this token was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Ordering::Relaxed) || self.parent.as_ref().is_some_and(|parent| parent.is_cancelled())
    }

    /// A token for a part of a larger run: cancelling this token also cancels the new one, but not the other way round.
    ///
    /// ```
    /// use planlab_dsa::CancelToken;
    ///
    /// let whole = CancelToken::default();
    /// let (one, other) = (whole.child_token(), whole.child_token());
    /// one.cancel();
    /// assert!(one.is_cancelled() && !other.is_cancelled() && !whole.is_cancelled());
    /// whole.cancel();
    /// assert!(other.is_cancelled());
    /// ```
    #[must_use]
    pub fn child_token(&self) -> Self {
        Self { flag: Arc::default(), parent: Some(Arc::new(self.clone())) }
    }
}
