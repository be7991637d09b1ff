//! The ancestor relation: which operations run before which in every legal order.
//!
//! Each operation has a row of bits: one for each operation that precedes it in every legal order.
//!
//! # Complexity
//!
//! O(n * dependencies / 64) time and n * ceil(n / 64) words of 8 bytes: 3 MB for 5,000 operations, 1.2 GB for
//! 100,000.

use planlab_dsa::Bytes;

use super::dependencies::Dependencies;
use super::error::TooManyOperations;
use crate::OpId;

/// Which operations precede which in every legal order.
///
/// ```
/// use planlab_dsa::Bytes;
/// use planlab_graph::{Ancestors, Dependencies, Graph, Operation, Tensor};
///
/// let mut graph = Graph::builder();
/// let [x, y] = ["x", "y"].map(|name| graph.add_tensor(Tensor::new(name, Bytes::new(64))));
/// let f = graph.add_operation(Operation::new("f").with_outputs([x]));
/// let g = graph.add_operation(Operation::new("g").with_inputs([x]).with_outputs([y]));
/// let other = graph.add_operation(Operation::new("other"));
/// let ancestors = Ancestors::from_dependencies(&Dependencies::from_tensors(&graph.build()?), Ancestors::MEMORY)?;
/// assert!(ancestors.precedes(f, g));
/// assert!(!ancestors.precedes(f, other) && !ancestors.precedes(other, f));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
///
/// All methods that take an id panic if there is no such operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ancestors {
    words: usize,
    rows: Vec<u64>,
}

impl Ancestors {
    /// The memory that a relation may usually take: 4 GiB, enough for 185,000 operations.
    pub const MEMORY: Bytes = Bytes::new(4 << 30);

    /// The relation of a graph's dependencies, in at most `limit` bytes. Errors are as of [`Ancestors::of_rows`].
    pub fn from_dependencies(dependencies: &Dependencies, limit: Bytes) -> Result<Self, TooManyOperations> {
        let number = |op: &OpId| op.index();
        let before = |op| dependencies.before(OpId::from_index(op)).iter().map(number);
        Self::of_rows(dependencies.operation_count(), before, limit)
    }

    /// The relation of `count` operations, in at most `limit` bytes; `before` lists the numbers of the operations
    /// that one directly depends on.
    ///
    /// # Errors
    ///
    /// If it takes more bytes; nothing is allocated then.
    ///
    /// # Panics
    ///
    /// If an operation depends on one that does not have a lower number.
    pub fn of_rows<B: Iterator<Item = usize>>(
        count: usize,
        before: impl Fn(usize) -> B,
        limit: Bytes,
    ) -> Result<Self, TooManyOperations> {
        let (operations, bytes) = (count, Self::bytes_for(count));
        if bytes > limit.get() {
            return Err(TooManyOperations { operations, bytes, limit });
        }
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
        Ok(Self { words, rows })
    }

    /// The size of the relation in bytes.
    #[must_use]
    pub const fn bytes_for(operations: usize) -> u64 {
        (operations as u64).saturating_mul(operations.div_ceil(64) as u64 * 8)
    }

    /// Whether the first operation ends before the second begins in every legal order. An operation does not precede
    /// itself.
    #[must_use]
    pub fn precedes(&self, first: OpId, second: OpId) -> bool {
        self.is_set(second.index(), first.index())
    }

    pub(crate) fn is_set(&self, row: usize, bit: usize) -> bool {
        self.rows[row * self.words + bit / 64] >> (bit % 64) & 1 == 1
    }

    /// The operations of a list that none of the others precedes in every legal order.
    ///
    /// # Complexity
    ///
    /// O(list * operations / 64), and O(list^2) for short lists.
    pub(crate) fn first_of(&self, list: &[OpId]) -> Vec<OpId> {
        if list.len() <= SHORT {
            return find_extremes(list, |one, other| self.precedes(other, one));
        }
        let mut members = vec![0_u64; self.words];
        list.iter().for_each(|op| members[op.index() / 64] |= 1 << (op.index() % 64));
        let is_first =
            |op: &&OpId| self.ancestor_row(**op).iter().zip(&members).all(|(row, all)| row & all == 0);
        list.iter().filter(is_first).copied().collect()
    }

    /// The operations of a list that precede none of the others in every legal order.
    pub(crate) fn last_of(&self, list: &[OpId]) -> Vec<OpId> {
        if list.len() <= SHORT {
            return find_extremes(list, |one, other| self.precedes(one, other));
        }
        let mut preceding = vec![0_u64; self.words];
        for op in list {
            preceding.iter_mut().zip(self.ancestor_row(*op)).for_each(|(all, row)| *all |= row);
        }
        let is_last = |op: &&OpId| preceding[op.index() / 64] >> (op.index() % 64) & 1 == 0;
        list.iter().filter(is_last).copied().collect()
    }

    pub(crate) fn operation_count(&self) -> usize {
        self.rows.len() / self.words.max(1)
    }

    /// The operations that precede one, a bit each.
    pub(crate) fn ancestor_row(&self, op: OpId) -> &[u64] {
        &self.rows[op.index() * self.words..][..self.words]
    }
}

/// The longest list whose operations are compared one by one.
const SHORT: usize = 16;

/// The operations with no other operation beyond them.
fn find_extremes(list: &[OpId], is_beyond: impl Fn(OpId, OpId) -> bool) -> Vec<OpId> {
    let is_extreme = |&op: &OpId| !list.iter().any(|&other| is_beyond(op, other));
    list.iter().copied().filter(is_extreme).collect()
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};

    use super::*;

    #[test]
    fn the_first_and_the_last_of_long_lists_are_those_of_pairs() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(5);
        for _ in 0..50 {
            let edges: Vec<Vec<usize>> = (0..150)
                .map(|op| (0..2).filter(|_| op > 0).map(|_| rng.random_range(0..=op.max(1) - 1)).collect())
                .map(|before: Vec<usize>| before.into_iter().filter(|before| before % 3 > 0).collect())
                .collect();
            let before = |op: usize| edges[op].clone().into_iter();
            let ancestors = Ancestors::of_rows(150, before, Ancestors::MEMORY).expect("small");
            let list: Vec<OpId> = (0..150).filter(|_| rng.random_bool(0.3)).map(OpId::from_index).collect();
            assert!(list.len() > SHORT);
            let first = find_extremes(&list, |one, other| ancestors.precedes(other, one));
            let last = find_extremes(&list, |one, other| ancestors.precedes(one, other));
            assert_eq!((ancestors.first_of(&list), ancestors.last_of(&list)), (first, last));
        }
    }

    #[test]
    fn paths_are_found_and_nothing_else() {
        // 0 -> 1 -> 3 and 2 -> 3, then a chain of 100 more from 3 on.
        let before = |op: usize| match op {
            0 | 2 => vec![],
            1 => vec![0],
            3 => vec![1, 2],
            op => vec![op - 1],
        };
        let of = |limit| Ancestors::of_rows(104, |op| before(op).into_iter(), Bytes::new(limit));
        let ancestors = of(104 * 2 * 8).expect("small");
        let error = of(104 * 2 * 8 - 1).expect_err("one byte too many");
        assert_eq!((error.operations, error.bytes), (104, 1664));
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
        assert_eq!(Ancestors::bytes_for(104), 104 * 2 * 8);
    }

    #[test]
    fn a_relation_beyond_the_limit_is_an_error_that_names_operations_and_bytes() {
        let mut graph = crate::Graph::builder();
        (0..200_000).for_each(|_| _ = graph.add_operation(crate::Operation::new("f")));
        let graph = graph.build().expect("valid");
        let dependencies = Dependencies::from_tensors(&graph);
        let error = crate::lower_for_all_orders(
            &graph,
            &graph.operation_order(),
            &dependencies,
            crate::Safety::Widened,
        );
        assert_eq!(
            error.expect_err("5 GB").to_string(),
            "the ancestor relation of 200000 operations takes 5000000000 bytes, more than the limit of 4294967296"
        );
    }
}
