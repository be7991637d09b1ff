//! A second implementation of Gergov's algorithm, slow and without code shared with the planner.
//!
//! 1. A set of segments, each an address and a range of steps; at first address 0 over all steps. The lowest segment
//!    (the leftmost of equals) is taken out. Take the buffers that overlap it in time and no other remaining segment.
//!    The one that starts first (ties: the lower row) has its *shadow* at the segment's address. The segment comes back
//!    in parts: the part that the buffer covers at the shadow's end, and the parts to its left and right unchanged.
//!    Without such a buffer the segment is dropped.
//! 2. Shadows may overlap. In the order of step 1, each buffer gets the first colour that no buffer has whose live
//!    range and shadow both overlap its own. It lies at its shadow's address plus its colour times the highest end of
//!    all shadows.
//!
//! # References
//!
//! 1. J. Gergov, *Algorithms for compile-time memory optimization*, SODA 1999.

/// Steps `[left, right)` at an address.
#[derive(Clone, Copy, Debug)]
struct Segment {
    address: u64,
    left: u32,
    right: u32,
}

impl Segment {
    fn overlaps(&self, start: u32, end: u32) -> bool {
        self.left < end && start < self.right
    }
}

/// The offset of each buffer `(size, start, end)`, live in the steps `[start, end)`.
pub(crate) fn offsets(buffers: &[(u64, u32, u32)]) -> Vec<u64> {
    let (order, shadows) = shadows(buffers);
    let end = |row: usize| shadows[row] + buffers[row].0;
    let highest = (0..buffers.len()).map(end).max().unwrap_or(0);
    let meet = |a: usize, b: usize| {
        let ((_, start, stop), (_, other_start, other_stop)) = (buffers[a], buffers[b]);
        start < other_stop && other_start < stop && shadows[a] < end(b) && shadows[b] < end(a)
    };
    let mut colours: Vec<Option<u64>> = vec![None; buffers.len()];
    for &row in &order {
        let taken: Vec<u64> =
            (0..buffers.len()).filter(|&other| meet(row, other)).filter_map(|other| colours[other]).collect();
        colours[row] = (0..).find(|colour| !taken.contains(colour));
    }
    let offset = |row: usize| shadows[row] + colours[row].expect("every buffer has a colour") * highest;
    (0..buffers.len()).map(offset).collect()
}

/// The rows in the order of placement, and the address of each shadow by row.
fn shadows(buffers: &[(u64, u32, u32)]) -> (Vec<usize>, Vec<u64>) {
    let (mut order, mut addresses) = (Vec::new(), vec![0; buffers.len()]);
    let left = buffers.iter().map(|buffer| buffer.1).min().unwrap_or(0);
    let right = buffers.iter().map(|buffer| buffer.2).max().unwrap_or(0);
    let mut segments = vec![Segment { address: 0, left, right }];
    while order.len() < buffers.len() {
        let segment = take_lowest(&mut segments);
        let fits = |row: &usize| {
            let (_, start, end) = buffers[*row];
            let is_new = !order.contains(row);
            is_new && segment.overlaps(start, end) && !segments.iter().any(|other| other.overlaps(start, end))
        };
        let Some(row) = (0..buffers.len()).filter(fits).min_by_key(|&row| (buffers[row].1, row)) else {
            continue;
        };
        let (size, start, end) = buffers[row];
        let Segment { address, left, right } = segment;
        order.push(row);
        addresses[row] = address;
        let parts = [
            Segment { address: address + size, left: left.max(start), right: right.min(end) },
            Segment { address, left, right: start },
            Segment { address, left: end, right },
        ];
        segments.extend(parts.into_iter().filter(|part| part.left < part.right));
    }
    (order, addresses)
}

fn take_lowest(segments: &mut Vec<Segment>) -> Segment {
    let key = |at: &usize| (segments[*at].address, segments[*at].left);
    let lowest = (0..segments.len()).min_by_key(key).expect("a buffer overlaps a segment until it is placed");
    segments.swap_remove(lowest)
}
