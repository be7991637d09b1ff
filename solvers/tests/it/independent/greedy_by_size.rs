//! A second implementation of greedy by size: finds every gap between the placed buffers that live at the same time, by
//! a walk over all addresses at which one begins or ends.

/// The offsets of `(size, start, end)` buffers.
pub(crate) fn offsets(buffers: &[(u64, u32, u32)]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..buffers.len()).collect();
    order.sort_by_key(|&id| (std::cmp::Reverse(buffers[id].0), id));
    let mut placed: Vec<Option<u64>> = vec![None; buffers.len()];
    for id in order {
        let (size, start, end) = buffers[id];
        let mut taken: Vec<(u64, u64)> = Vec::new();
        for (other, &(other_size, other_start, other_end)) in buffers.iter().enumerate() {
            if let Some(offset) = placed[other]
                && other_start < end
                && start < other_end
            {
                taken.push((offset, offset + other_size));
            }
        }
        placed[id] = Some(smallest_gap(size, &taken));
    }
    placed.into_iter().map(|offset| offset.expect("all are placed")).collect()
}

/// The bottom of the smallest gap of at least `size`, the lowest of equals; if there is no such gap, the top.
fn smallest_gap(size: u64, taken: &[(u64, u64)]) -> u64 {
    let is_free = |address: u64| !taken.iter().any(|&(low, high)| low <= address && address < high);
    let top = taken.iter().map(|&(_, high)| high).max().unwrap_or(0);
    let bottoms = taken.iter().map(|&(_, high)| high).chain([0]).filter(|&bottom| is_free(bottom));
    let gap = |bottom: u64| {
        let ceiling = taken.iter().map(|&(low, _)| low).filter(|&low| low > bottom).min()?;
        (ceiling - bottom >= size).then_some((ceiling - bottom, bottom))
    };
    bottoms.filter_map(gap).min().map_or(top, |(_, bottom)| bottom)
}
