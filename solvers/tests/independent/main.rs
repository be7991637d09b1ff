//! Second implementations of some planners, from the text alone: slow, plain, and sharing nothing with what
//! they judge.

mod mincost_flow;
mod mxnet_sharing;

#[test]
fn objects_are_shared_where_that_costs_least() {
    // The second of two could go into the first's object, or the third.
    let rows = [(4, 0, 2), (6, 2, 4), (5, 2, 4)];
    assert_eq!((mincost_flow::cost(&rows), mincost_flow::height(&rows)), (11, 11));
    // Nothing overlaps: one object as large as the largest.
    let chain = [(3, 0, 1), (7, 1, 2), (5, 2, 3)];
    assert_eq!((mincost_flow::cost(&chain), mincost_flow::height(&chain)), (7, 7));
    // 5, 3, 5 in one object: it shrinks and grows, so that the flow pays more than the object is high.
    let dip = [(5, 0, 1), (3, 1, 3), (5, 3, 4)];
    assert_eq!((mincost_flow::cost(&dip), mincost_flow::height(&dip)), (7, 5));
    assert_eq!((mincost_flow::cost(&[]), mincost_flow::height(&[])), (0, 0));
}

#[test]
fn the_cheapest_flow_gives_up_what_looked_cheap_first() {
    // Either of the first two may hand on to the third; only the second to the fourth as well.
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
    // 7 takes the block of 4, which is no less than 7 / 2; then that one is too large for 3.
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
