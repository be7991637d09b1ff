//! Last-in, first-out lists of blocks, from which any block can be taken in O(1).

use super::heap::BlockId;

/// The links of all blocks; a block is in one list at most. The heads of the lists lie with their owner.
#[derive(Debug, Default)]
pub(super) struct Lists {
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Link {
    /// Nearer to the head.
    before: Option<BlockId>,
    after: Option<BlockId>,
}

impl Lists {
    /// Puts a block at the head.
    pub(super) fn push(&mut self, head: &mut Option<BlockId>, id: BlockId) {
        if self.links.len() <= id.index() {
            self.links.resize(id.index() + 1, Link::default());
        }
        self.links[id.index()] = Link { before: None, after: *head };
        if let Some(second) = *head {
            self.links[second.index()].before = Some(id);
        }
        *head = Some(id);
    }

    /// Takes a block out of the list with that head.
    pub(super) fn take(&mut self, head: &mut Option<BlockId>, id: BlockId) {
        let Link { before, after } = self.links[id.index()];
        match before {
            Some(before) => self.links[before.index()].after = after,
            None => *head = after,
        }
        if let Some(after) = after {
            self.links[after.index()].before = before;
        }
    }
}
