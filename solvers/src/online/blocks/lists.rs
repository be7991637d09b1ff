//! Last-in, first-out lists of blocks, with O(1) removal of any block.

use super::heap::BlockId;

/// The links of all blocks; a block is in at most one list. The owner keeps the heads of the lists.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Link {
    /// The next block towards the head.
    before: Option<BlockId>,
    after: Option<BlockId>,
}

impl Lists {
    pub(crate) fn push_head(&mut self, head: &mut Option<BlockId>, id: BlockId) {
        if self.links.len() <= id.index() {
            self.links.resize(id.index() + 1, Link::default());
        }
        self.links[id.index()] = Link { before: None, after: *head };
        if let Some(second) = *head {
            self.links[second.index()].before = Some(id);
        }
        *head = Some(id);
    }

    pub(crate) fn unlink_block(&mut self, head: &mut Option<BlockId>, id: BlockId) {
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
