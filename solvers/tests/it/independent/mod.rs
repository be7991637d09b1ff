//! Second implementations of some planners, from the text alone: slow, plain, and sharing no code with the originals.

mod best_fit;
mod gergov;
mod greedy_by_size;
mod mincost_flow;
mod mxnet_sharing;

use planlab_dsa::testing::{Shape, instances, oracle};
use planlab_dsa::{Budget, Buffer, Bytes, Instance, Offset, Plan, execute};
use planlab_solvers::placement::flow::MincostFlow;
use planlab_solvers::planner;
use proptest::prelude::*;

type Row = (u64, u32, u32);

fn rows(instance: &Instance) -> Vec<Row> {
    let row = |buffer: &Buffer| (buffer.size.get(), buffer.live.start().get(), buffer.live.end().get());
    instance.buffers().iter().map(row).collect()
}

fn offsets(key: &str, instance: &Instance) -> Vec<u64> {
    let planner = planner(key).expect("registered");
    let best = execute(&planner, instance, Budget::default(), 0).best.expect("a plan");
    best.offsets().iter().map(|offset| offset.get()).collect()
}

fn height(key: &str, instance: &Instance) -> Option<u64> {
    let planner = planner(key).expect("registered");
    execute(&planner, instance, Budget::default(), 0).height().map(Bytes::get)
}

fn height_at(instance: &Instance, offsets: &[u64]) -> u64 {
    let ends = instance.buffers().iter().zip(offsets).map(|(buffer, offset)| offset + buffer.size.get());
    ends.max().unwrap_or(0)
}

/// The largest instances that the slow ones can handle.
fn shape() -> Shape {
    Shape::plain().with_max_buffers(60).with_max_steps(40).with_max_size(40)
}

/// The instance with all sizes times 16, so that every match range divides them.
fn sixteenfold(instance: &Instance) -> Instance {
    let buffers = instance
        .buffers()
        .iter()
        .map(|buffer| Buffer { size: Bytes::new(16 * buffer.size.get()), ..buffer.clone() });
    Instance::builder()
        .buffers(buffers)
        .in_place(instance.in_place().to_vec())
        .build()
        .expect("as valid as before")
}

/// The instance with its sizes redistributed: the smallest to the buffer that starts first.
fn growing(instance: &Instance) -> Instance {
    let mut buffers = instance.buffers().to_vec();
    let mut sizes: Vec<Bytes> = buffers.iter().map(|buffer| buffer.size).collect();
    sizes.sort_unstable();
    buffers.sort_by_key(|buffer| buffer.live.start());
    buffers.iter_mut().zip(sizes).for_each(|(buffer, size)| buffer.size = size);
    Instance::from_buffers(buffers).expect("as valid as before")
}

proptest! {
    #[test]
    fn best_fit_is_what_its_description_says(instance in instances(shape())) {
        let expected = best_fit::offsets(&rows(&instance));
        prop_assert_eq!(offsets("best-fit", &instance), expected.clone());
        prop_assert_eq!(offsets("best-fit/reference", &instance), expected);
    }

    #[test]
    fn greedy_by_size_is_what_its_description_says(instance in instances(shape())) {
        prop_assert_eq!(offsets("greedy-by-size", &instance), greedy_by_size::offsets(&rows(&instance)));
    }

    #[test]
    fn gergov_is_what_its_description_says(instance in instances(shape())) {
        let expected = gergov::offsets(&rows(&instance));
        prop_assert_eq!(height("gergov", &instance), Some(height_at(&instance, &expected)));
        let plan = Plan::from_offsets(expected.into_iter().map(Offset::new).collect::<Vec<_>>());
        let most = Bytes::new(3 * instance.load().bytes.get());
        prop_assert!(oracle(&instance, &plan).is_ok_and(|height| height <= most));
    }

    /// Several flows may have the least cost, and their objects may add up to less than that cost.
    #[test]
    fn mincost_flow_costs_the_least(instance in instances(shape())) {
        let least = mincost_flow::cost(&rows(&instance));
        prop_assert_eq!(MincostFlow::cost(&instance).get(), least);
        prop_assert!(height("mincost-flow", &instance).is_some_and(|height| height <= least));
        prop_assert!(mincost_flow::height(&rows(&instance)) <= least);
    }

    #[test]
    fn mincost_flow_is_as_high_as_one_of_the_cheapest(instance in instances(shape().with_max_buffers(7))) {
        let heights = mincost_flow::heights_of_cheapest(&rows(&instance));
        let ours = height("mincost-flow", &instance).expect("a plan");
        prop_assert!(heights.binary_search(&ours).is_ok(), "{ours} is none of {heights:?}");
        prop_assert!(heights.binary_search(&mincost_flow::height(&rows(&instance))).is_ok());
    }

    /// Then an object's largest buffer is its last, and all flows of one cost have one height.
    #[test]
    fn mincost_flow_has_that_height_where_sizes_never_shrink(instance in instances(shape())) {
        let growing = growing(&instance);
        let expected = mincost_flow::height(&rows(&growing));
        prop_assert_eq!(height("mincost-flow", &growing), Some(expected));
        prop_assert_eq!(mincost_flow::cost(&rows(&growing)), expected);
    }

    #[test]
    fn mxnet_sharing_is_what_its_description_says(instance in instances(shape().with_in_place(true))) {
        let instance = sixteenfold(&instance);
        let pairs: Vec<(u32, u32)> = instance.in_place().iter().map(|pair| (pair.input.get(), pair.output.get())).collect();
        let best = [1, 2, 4, 8, 16].map(|range| mxnet_sharing::total(&rows(&instance), &pairs, range)).into_iter().min();
        prop_assert_eq!(height("mxnet-sharing", &instance), best);
        // If every range divides the sizes, whole bytes are exact.
        prop_assert_eq!(height("mxnet-sharing/published", &instance), best);
    }
}

#[test]
fn gergov_lets_a_buffer_wait_until_it_overlaps_one_segment() {
    // The first leaves segments at 4 over [0, 2) and at 0 over [2, 3). The second overlaps both, so the lower
    // one is dropped, and the second lies on the other.
    assert_eq!(gergov::offsets(&[(4, 0, 2), (2, 1, 3)]), [0, 4]);
}

#[test]
fn objects_are_shared_where_that_costs_least() {
    // The second or the third buffer could go into the object of the first.
    let rows = [(4, 0, 2), (6, 2, 4), (5, 2, 4)];
    assert_eq!((mincost_flow::cost(&rows), mincost_flow::height(&rows)), (11, 11));
    // Nothing overlaps: one object as large as the largest.
    let chain = [(3, 0, 1), (7, 1, 2), (5, 2, 3)];
    assert_eq!((mincost_flow::cost(&chain), mincost_flow::height(&chain)), (7, 7));
    // 5, 3, 5 in one object: it shrinks and grows, so the flow costs more than the object's height.
    let dip = [(5, 0, 1), (3, 1, 3), (5, 3, 4)];
    assert_eq!((mincost_flow::cost(&dip), mincost_flow::height(&dip)), (7, 5));
    assert_eq!((mincost_flow::cost(&[]), mincost_flow::height(&[])), (0, 0));
}

#[test]
fn the_cheapest_flow_gives_up_what_looked_cheap_first() {
    // The third can follow either of the first two; the fourth only the second.
    let rows = [(8, 0, 3), (8, 0, 1), (8, 3, 5), (8, 1, 2)];
    assert_eq!((mincost_flow::cost(&rows), mincost_flow::height(&rows)), (16, 16));
    let all_at_once = [(8, 0, 2), (4, 0, 2), (2, 1, 3)];
    assert_eq!(mincost_flow::cost(&all_at_once), 14);
}

#[test]
fn blocks_are_shared_within_the_range_of_sizes() {
    let chain = [(4, 0, 1), (7, 1, 2), (3, 2, 3)];
    assert_eq!(mxnet_sharing::total(&chain, &[], 0), 14);
    assert_eq!(mxnet_sharing::total(&chain, &[], 1), 14);
    // 7 takes the block of 4, which is no less than 7 / 2; then the block is too large for 3.
    assert_eq!(mxnet_sharing::total(&chain, &[], 2), 10);
    assert_eq!(mxnet_sharing::total(&chain, &[], 4), 7);
}

#[test]
fn a_block_is_free_only_after_the_node_at_which_its_buffer_ends() {
    // Both live at step 1: no sharing without in place.
    let two = [(4, 0, 2), (4, 1, 3)];
    assert_eq!(mxnet_sharing::total(&two, &[], 16), 8);
    assert_eq!(mxnet_sharing::total(&two, &[(0, 1)], 16), 4);
    assert_eq!(mxnet_sharing::total(&two, &[(0, 1)], 0), 4);
}

#[test]
fn only_one_output_of_the_same_size_takes_the_place_of_an_input() {
    let rows = [(4, 0, 2), (4, 1, 3), (4, 1, 3), (3, 2, 4)];
    assert_eq!(mxnet_sharing::total(&rows, &[(0, 1), (0, 2)], 0), 11);
    assert_eq!(mxnet_sharing::total(&rows, &[(0, 1), (0, 2), (1, 3)], 0), 11);
}

#[test]
fn a_chain_in_place_frees_its_block_with_its_last_buffer() {
    let chain = [(4, 0, 2), (4, 1, 3), (4, 2, 4), (4, 4, 5)];
    assert_eq!(mxnet_sharing::total(&chain, &[(0, 1), (1, 2)], 1), 4);
}

#[test]
fn requests_of_one_step_are_served_by_size() {
    // Free at step 1: blocks of 6 and 4. The 5 takes 6, the 4 takes 4.
    let rows = [(6, 0, 1), (4, 0, 1), (4, 1, 2), (5, 1, 2)];
    assert_eq!(mxnet_sharing::total(&rows, &[], 2), 10);
    // The 3 comes first, being larger, and takes the 4; the 2 may take the 6 within the range.
    let small = [(6, 0, 1), (4, 0, 1), (2, 1, 2), (3, 1, 2)];
    assert_eq!(mxnet_sharing::total(&small, &[], 3), 10);
    assert_eq!(mxnet_sharing::total(&small, &[], 2), 12);
}
