//! The second implementation of Gergov's algorithm: valid plans, at most three times the load.

#[path = "independent/gergov.rs"]
mod gergov;

use planlab_dsa::testing::{Shape, instances, oracle};
use planlab_dsa::{Bytes, Instance, Offset, Plan};
use proptest::prelude::*;

fn plan(instance: &Instance) -> Plan {
    let row = |buffer: &planlab_dsa::Buffer| {
        let (start, end) = buffer.live.into();
        (buffer.size.get(), start, end)
    };
    let rows: Vec<(u64, u32, u32)> = instance.buffers().iter().map(row).collect();
    Plan::from_offsets(gergov::offsets(&rows).into_iter().map(Offset::new).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn plans_are_valid_and_at_most_three_times_the_load(
        instance in instances(Shape::plain().with_max_buffers(40).with_max_steps(25).with_max_size(40)),
    ) {
        let height = oracle(&instance, &plan(&instance));
        let most = Bytes::new(3 * instance.load().bytes.get());
        prop_assert!(height.as_ref().is_ok_and(|height| *height <= most), "{:?} against {}", height, most);
    }
}

#[test]
fn a_buffer_waits_until_it_overlaps_one_segment() {
    // The first leaves segments at 4 over [0, 2) and at 0 over [2, 3). The second overlaps both, so the lower
    // one is dropped, and the second lies on the other.
    assert_eq!(gergov::offsets(&[(4, 0, 2), (2, 1, 3)]), [0, 4]);
}

#[test]
fn nothing_is_placed_where_nothing_is() {
    assert!(gergov::offsets(&[]).is_empty());
}
