//! Shared objects by a minimum-cost flow, the plain way: all arcs are in a list, and every unit of flow takes the
//! cheapest path found by Bellman-Ford.
//!
//! A unit that goes from the source straight to the right side of a buffer opens an object for it, at the cost of its
//! size. A unit that comes from the left side of a buffer that ended before puts it into that buffer's object, at the
//! cost of the difference if it is larger. The cost is that of the arcs, so an object that shrinks and grows again
//! counts twice; the height is the sum of the largest buffers of the objects.
//!
//! Flows of equal cost may differ in height; [`cost`] is the same for all. If no buffer follows a larger one, height
//! and cost are equal.
//!
//! # References
//!
//! 1. J. Lee et al., *On-device neural net inference with mobile GPUs*, 2019, arXiv:1907.01989.

/// Size, first step, and the step after the last.
type Buffer = (u64, u32, u32);

/// The height in bytes of shared objects from a minimum-cost flow.
pub(crate) fn height(buffers: &[Buffer]) -> u64 {
    stacked(buffers, &inputs(buffers))
}

/// The sum of the largest buffers of the objects.
fn stacked(buffers: &[Buffer], inputs: &[Option<usize>]) -> u64 {
    let mut total = 0;
    for first in (0..buffers.len()).filter(|&buffer| inputs[buffer].is_none()) {
        let mut largest = buffers[first].0;
        let mut at = first;
        while let Some(next) = inputs.iter().position(|&input| input == Some(at)) {
            largest = largest.max(buffers[next].0);
            at = next;
        }
        total += largest;
    }
    total
}

/// The minimum cost of a flow: the sizes of the buffers that open an object, and the growth by the others.
pub(crate) fn cost(buffers: &[Buffer]) -> u64 {
    inputs(buffers).into_iter().zip(buffers).map(|(input, buffer)| grown(buffers, buffer.0, input)).sum()
}

/// The growth of an object when a buffer of that size joins it.
fn grown(buffers: &[Buffer], size: u64, input: Option<usize>) -> u64 {
    size.saturating_sub(input.map_or(0, |input| buffers[input].0))
}

struct Arc {
    from: usize,
    to: usize,
    cost: i128,
    is_free: bool,
}

/// For each buffer, the one that had its object before; `None` if it opens one.
fn inputs(buffers: &[Buffer]) -> Vec<Option<usize>> {
    let count = buffers.len();
    let (source, sink) = (2 * count, 2 * count + 1);
    let mut arcs = arcs(buffers, source, sink);
    for _ in 0..count {
        push(&mut arcs, source, sink);
    }
    let mut inputs = vec![None; count];
    // Forward arcs have even indices; each is followed by its reverse.
    for arc in arcs.iter().step_by(2).filter(|arc| !arc.is_free && arc.from < count && arc.to < sink) {
        inputs[arc.to - count] = Some(arc.from);
    }
    inputs
}

/// Left sides are the nodes from 0 on, right sides those from the number of buffers on.
fn arcs(buffers: &[Buffer], source: usize, sink: usize) -> Vec<Arc> {
    let count = buffers.len();
    let mut arcs = Vec::new();
    let mut add = |from, to, cost| {
        arcs.push(Arc { from, to, cost, is_free: true });
        arcs.push(Arc { from: to, to: from, cost: -cost, is_free: false });
    };
    for (i, &(size, _, end)) in buffers.iter().enumerate() {
        add(source, i, 0);
        add(source, count + i, i128::from(size));
        add(count + i, sink, 0);
        for (j, &(other, start, _)) in buffers.iter().enumerate() {
            if end <= start {
                add(i, count + j, i128::from(other.saturating_sub(size)));
            }
        }
    }
    arcs
}

/// Sends a unit along the cheapest path.
fn push(arcs: &mut [Arc], source: usize, sink: usize) {
    let mut costs: Vec<Option<i128>> = vec![None; sink + 1];
    let mut arrives_by: Vec<Option<usize>> = vec![None; sink + 1];
    costs[source] = Some(0);
    let mut goes_on = true;
    while goes_on {
        goes_on = false;
        for (index, arc) in arcs.iter().enumerate().filter(|(_, arc)| arc.is_free) {
            let Some(cost) = costs[arc.from].map(|cost| cost + arc.cost) else { continue };
            if costs[arc.to].is_none_or(|known| cost < known) {
                costs[arc.to] = Some(cost);
                arrives_by[arc.to] = Some(index);
                goes_on = true;
            }
        }
    }
    let mut node = sink;
    while node != source {
        let index = arrives_by[node].expect("every buffer can open an object");
        arcs[index].is_free = false;
        arcs[index ^ 1].is_free = true;
        node = arcs[index].from;
    }
}

/// The heights of all minimum-cost flows, each once, by trying all flows: for a handful of buffers.
pub(crate) fn heights_of_cheapest(buffers: &[Buffer]) -> Vec<u64> {
    let least = cost(buffers);
    let mut heights = Vec::new();
    follow_all(buffers, &mut Vec::new(), &mut |inputs| {
        let added = inputs.iter().zip(buffers).map(|(input, buffer)| grown(buffers, buffer.0, *input));
        if added.sum::<u64>() == least {
            heights.push(stacked(buffers, inputs));
        }
    });
    heights.sort_unstable();
    heights.dedup();
    heights
}

/// Tries all ways in which buffers can follow one another.
fn follow_all(buffers: &[Buffer], inputs: &mut Vec<Option<usize>>, see: &mut dyn FnMut(&[Option<usize>])) {
    let Some(&(_, start, _)) = buffers.get(inputs.len()) else { return see(inputs) };
    let may_follow = |&i: &usize| buffers[i].2 <= start && !inputs.contains(&Some(i));
    let choices: Vec<usize> = (0..buffers.len()).filter(may_follow).collect();
    for choice in choices.into_iter().map(Some).chain([None]) {
        inputs.push(choice);
        follow_all(buffers, inputs, see);
        inputs.pop();
    }
}
