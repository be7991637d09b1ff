//! The tallies of all plans of the process.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::tally::PlanTally;

/// A plan's tally, and the list of those before it.
struct Node {
    tally: Arc<PlanTally>,
    next: Option<&'static Node>,
}

static PLANS: AtomicPtr<Node> = AtomicPtr::new(ptr::null_mut());

/// Records a plan that is in use from now on. Its tally is kept to the end of the process.
pub(crate) fn add(tally: &Arc<PlanTally>) {
    let node = Box::leak(Box::new(Node { tally: Arc::clone(tally), next: None }));
    PLANS.update(Ordering::Release, Ordering::Acquire, |before| {
        node.next = as_ref(before);
        ptr::from_mut(node)
    });
}

#[allow(unsafe_code, reason = "a list whose nodes live for ever")]
fn as_ref(node: *const Node) -> Option<&'static Node> {
    // SAFETY: null, or a leaked node.
    unsafe { node.as_ref() }
}

pub(crate) fn all() -> impl Iterator<Item = &'static PlanTally> {
    let first = as_ref(PLANS.load(Ordering::Acquire));
    std::iter::successors(first, |node| node.next).map(|node| &*node.tally)
}

/// Resets the plans' counts in the child of a fork.
pub(crate) fn after_fork() {
    all().for_each(|tally| {
        tally.rounds.set(0);
        tally.departures.set(0);
    });
}
