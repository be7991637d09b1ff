//! Looks at the pages of plans, and takes blocks out of them that spread over more and more pages.

use super::state::Machine;
use crate::plans::Ground;

impl Machine {
    /// Looks at the pages of the round that has just ended, after 1, 2, 4, 8, ... rounds on them. Nothing is in use.
    #[cold]
    pub(super) fn inspect_pages(&mut self, ground: &mut impl Ground) {
        self.is_inspection_due = false;
        self.claim_pages(ground);
        self.exclude_spreading(ground);
        self.unclaim_pages(ground);
    }

    fn exclude_spreading(&mut self, ground: &mut impl Ground) {
        let Some(course) = self.shelf.holder().filter(|course| course.rounds_on_pages > 0) else { return };
        let pages = ground.pages(course.segment(), course.height());
        let spreading = pages.map(|pages| course.spreading_requests(&pages)).unwrap_or_default();
        if !spreading.is_empty() {
            self.shelf.give_back(ground);
            self.exclude(&spreading, ground);
        }
    }
}
