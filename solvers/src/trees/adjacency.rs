//! Adjacency lists in two arrays (compressed sparse rows).

use planlab_dsa::Instance;

/// For each number below a count, the numbers that it is paired with; ascending if they come from [`Adjacency::new`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Adjacency {
    /// Where each list starts; may be empty if there are no pairs.
    pub(super) starts: Vec<u32>,
    pub(super) partners: Vec<u32>,
}

impl Adjacency {
    pub(crate) fn new(count: usize, pairs: impl Iterator<Item = (u32, u32)>) -> Self {
        let mut pairs: Vec<(u32, u32)> = pairs.collect();
        if pairs.is_empty() {
            return Self::default();
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut starts = vec![0_u32; count + 1];
        pairs.iter().for_each(|&(of, _)| starts[of as usize + 1] += 1);
        for index in 0..count {
            starts[index + 1] += starts[index];
        }
        Self { starts, partners: pairs.into_iter().map(|(_, partner)| partner).collect() }
    }

    /// The buffers that each buffer is to be kept apart from.
    pub(crate) fn kept_apart(instance: &Instance) -> Self {
        let pairs = instance.keep_apart_pairs().iter().map(|pair| (pair.first.get(), pair.second.get()));
        Self::new(instance.len(), pairs.flat_map(|(a, b)| [(a, b), (b, a)]))
    }

    pub(crate) fn of(&self, number: u32) -> &[u32] {
        match self.starts.get(number as usize..number as usize + 2) {
            Some(&[start, end]) => &self.partners[start as usize..end as usize],
            _ => &[],
        }
    }
}
