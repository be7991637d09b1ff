//! The ancestor relation: which operation is done before which, whatever the order.
//!
//! One row of bits for each operation, with those that come before it in every legal order.
//!
//! # Complexity
//!
//! O(n * dependencies / 64) time, n * ceil(n / 64) words of 8 bytes: 3 MB for 5,000 operations, 1.2 GB for
//! 100,000.

use crate::{Dependencies, OpId};

/// Which operations come before which in every legal order.
///
/// ```
/// use planlab_dsa::Bytes;
/// use planlab_graph::{Ancestors, Dependencies, Graph, Operation, Tensor};
///
/// let mut graph = Graph::builder();
/// let [x, y] = ["x", "y"].map(|name| graph.tensor(Tensor::new(name, Bytes::new(64))));
/// let f = graph.operation(Operation::new("f").writes([x]));
/// let g = graph.operation(Operation::new("g").reads([x]).writes([y]));
/// let other = graph.operation(Operation::new("other"));
/// let ancestors = Ancestors::of(&Dependencies::of(&graph.build()?));
/// assert!(ancestors.precedes(f, g));
/// assert!(!ancestors.precedes(f, other) && !ancestors.precedes(other, f));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ancestors {
    words: usize,
    rows: Vec<u64>,
}

impl Ancestors {
    /// The relation of a graph's dependencies.
    #[must_use]
    pub fn of(dependencies: &Dependencies) -> Self {
        let number = |op: &OpId| op.index();
        Self::of_rows(dependencies.operations(), |op| {
            dependencies.before(OpId::from_index(op)).iter().map(number)
        })
    }

    /// The relation of `count` things of which each comes right after some that have lower numbers.
    ///
    /// # Panics
    ///
    /// If one comes right after one that does not have a lower number.
    #[must_use]
    pub fn of_rows<B: Iterator<Item = usize>>(count: usize, before: impl Fn(usize) -> B) -> Self {
        let words = count.div_ceil(64);
        let mut rows = vec![0; count * words];
        for op in 0..count {
            let (done, rest) = rows.split_at_mut(op * words);
            let row = &mut rest[..words];
            for earlier in before(op) {
                assert!(earlier < op, "{earlier} does not come before {op}");
                let above = &done[earlier * words..(earlier + 1) * words];
                row.iter_mut().zip(above).for_each(|(word, more)| *word |= more);
                row[earlier / 64] |= 1 << (earlier % 64);
            }
        }
        Self { words, rows }
    }

    /// The bytes that the relation of so many operations takes.
    #[must_use]
    pub const fn bytes_for(operations: usize) -> usize {
        operations * operations.div_ceil(64) * 8
    }

    /// Whether the first is done before the second begins, in every legal order. Never of one and itself.
    ///
    /// # Panics
    ///
    /// If there is no such operation.
    #[must_use]
    pub fn precedes(&self, first: OpId, second: OpId) -> bool {
        self.is_set(second.index(), first.index())
    }

    pub(crate) fn is_set(&self, row: usize, bit: usize) -> bool {
        self.rows[row * self.words + bit / 64] >> (bit % 64) & 1 == 1
    }

    /// How many operations come before one in every legal order.
    ///
    /// # Panics
    ///
    /// If there is no such operation.
    #[must_use]
    pub fn count(&self, op: OpId) -> u32 {
        let from = op.index() * self.words;
        self.rows[from..from + self.words].iter().map(|word| word.count_ones()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_and_nothing_else() {
        // 0 -> 1 -> 3 and 2 -> 3, then a chain of 100 more from 3 on.
        let before = |op: usize| match op {
            0 | 2 => vec![],
            1 => vec![0],
            3 => vec![1, 2],
            op => vec![op - 1],
        };
        let ancestors = Ancestors::of_rows(104, |op| before(op).into_iter());
        let reaches = |from: usize, to: usize| {
            let mut open = vec![to];
            while let Some(op) = open.pop() {
                open.extend(before(op));
                if before(op).contains(&from) {
                    return true;
                }
            }
            false
        };
        let ids = || (0..104).map(OpId::from_index);
        for (a, b) in ids().flat_map(|a| ids().map(move |b| (a, b))) {
            assert_eq!(ancestors.precedes(a, b), reaches(a.index(), b.index()), "{a} {b}");
        }
        assert_eq!(ancestors.count(OpId::from_index(103)), 103);
        assert_eq!(Ancestors::bytes_for(104), 104 * 2 * 8);
    }
}
