//! The step before boxing: first fit in the order of size and width, and the cases that need no boxes.

use planlab_dsa::BufferId;

use super::interval_colouring::interval_colouring;
use super::item::Item;

/// What to do with a set of buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Case {
    /// No two are live at once: any order puts all of them at the bottom.
    Apart,
    /// All have one size: first fit in this order, by rows of a colouring, is as high as the load.
    Alike(Vec<BufferId>),
    /// They have to be boxed.
    Mixed,
}

impl Case {
    pub(super) fn from_items(items: &[Item]) -> Self {
        let is_alike = items.windows(2).all(|pair| pair[0].height == pair[1].height);
        let rows = interval_colouring(items.to_vec());
        if rows.len() <= 1 {
            return Self::Apart;
        }
        if !is_alike {
            return Self::Mixed;
        }
        Self::Alike(rows.iter().flatten().map(|item| BufferId::from_index(item.number)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_told_apart() {
        let item = |start, end, height, number| Item { start, end, height, number };
        assert_eq!(Case::from_items(&[]), Case::Apart);
        assert_eq!(Case::from_items(&[item(0, 2, 3, 0), item(2, 4, 5, 1)]), Case::Apart);
        assert_eq!(Case::from_items(&[item(0, 2, 3, 0), item(1, 4, 5, 1)]), Case::Mixed);
        let alike = [item(1, 4, 5, 0), item(0, 2, 5, 1), item(2, 4, 5, 2)];
        assert_eq!(Case::from_items(&alike), Case::Alike([1, 2, 0].map(BufferId::new).to_vec()));
    }
}
