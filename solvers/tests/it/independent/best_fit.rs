//! A second implementation of the profile-guided best fit, with a height for every column of time.
//!
//! The time axis is cut at every start and end; each piece is a column with a height. A line is a run of columns of one
//! height, so neighbours of one height always form one line.

/// The offsets of `(size, start, end)` buffers.
pub(crate) fn offsets(buffers: &[(u64, u32, u32)]) -> Vec<u64> {
    let mut cuts: Vec<u32> = buffers.iter().flat_map(|&(_, start, end)| [start, end]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let column = |step: u32| cuts.binary_search(&step).expect("every start and end is a cut");
    let mut heights = vec![0_u64; cuts.len().saturating_sub(1)];
    let mut placed: Vec<Option<u64>> = vec![None; buffers.len()];
    while placed.contains(&None) {
        let (from, to) = lowest_line(&heights);
        let mut chosen: Option<usize> = None;
        for (id, &(size, start, end)) in buffers.iter().enumerate() {
            if placed[id].is_some() || column(start) < from || to < column(end) {
                continue;
            }
            let beats = chosen.is_none_or(|other| {
                let (other_size, other_start, other_end) = buffers[other];
                (end - start, size) > (other_end - other_start, other_size)
            });
            if beats {
                chosen = Some(id);
            }
        }
        let level = heights[from];
        if let Some(id) = chosen {
            let (size, start, end) = buffers[id];
            placed[id] = Some(level);
            heights[column(start)..column(end)].fill(level + size);
        } else {
            let left = from.checked_sub(1).map(|column| heights[column]);
            let right = heights.get(to).copied();
            let neighbour = left.into_iter().chain(right).min().expect("one line alone holds any buffer");
            heights[from..to].fill(neighbour);
        }
    }
    placed.into_iter().map(|offset| offset.expect("all are placed")).collect()
}

/// The columns `[from, to)` of the lowest line, the leftmost of equals.
fn lowest_line(heights: &[u64]) -> (usize, usize) {
    let least = heights.iter().copied().min().expect("there is a buffer, so there is a column");
    let from = heights.iter().position(|&height| height == least).expect("the least is there");
    let to = (from..heights.len()).find(|&column| heights[column] != least).unwrap_or(heights.len());
    (from, to)
}
