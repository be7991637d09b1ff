//! What still works once the process may make no system call: rounds of known plans, whose memory is there.
//!
//! Nothing is learned, and nothing of the machine's own memory grows. The program has prepared its memory before it
//! forbade itself system calls, in the rounds that the plans serve now; the real allocator may have none for them.

use super::progress::MOST_BETWEEN;
use super::state::Machine;
use crate::calls::Token;
use crate::plans::{Ground, Step};

/// The number of a request that the history does not know.
const UNKNOWN: u64 = u64::MAX - 1;

impl Machine {
    /// The planned address of a request, or `None`.
    pub fn request_frozen(&mut self, size: u64, align: u64, ground: &mut impl Ground) -> Option<u64> {
        let token = Token::from_request(size, align)?;
        if self.shelf.segment_holder().is_none_or(|course| course.is_over()) {
            self.follows = false;
        }
        while let Some(address) = ground.next_foreign_free() {
            self.free_frozen(address, ground);
        }
        if !self.follows {
            if self.shelf.live_blocks() > 0 {
                return None;
            }
            let chosen = self.shelf.find_candidate(token, |_| true)?;
            self.shelf.begin_course(chosen);
            (self.follows, self.between) = (true, 0);
        }
        self.claim_pages(ground);
        match self.shelf.segment_holder()?.handle_request(token, UNKNOWN) {
            Step::Here(address) => {
                self.between = 0;
                Some(address)
            }
            Step::Outliving => None,
            Step::Other | Step::InUse => {
                self.between += 1;
                self.follows = self.between <= MOST_BETWEEN;
                None
            }
        }
    }

    /// Frees a planned block.
    #[cold]
    pub fn free_frozen(&mut self, address: u64, ground: &mut impl Ground) {
        self.shelf.free_block(address, ground);
        self.unclaim_pages(ground);
    }
}
