//! Every planner of the registry keeps the contract: eight tests, which cores share.

use planlab_dsa::testing::conformance_of_all;

const PARTS: usize = 8;

/// Every eighth planner, from one on: neighbours in the registry take alike long.
fn check_part(first: usize) {
    let registry = planlab_solvers::registry();
    conformance_of_all(registry.iter().skip(first).step_by(PARTS).map(AsRef::as_ref));
}

macro_rules! parts {
    ($($name:ident: $first:literal),+ $(,)?) => {
        $(
            #[test]
            fn $name() {
                check_part($first);
            }
        )+

        #[test]
        fn the_parts_are_all_planners() {
            assert_eq!([$($first),+], std::array::from_fn::<usize, PARTS, _>(|part| part));
        }
    };
}

parts! {
    part_1_keeps_the_contract: 0,
    part_2_keeps_the_contract: 1,
    part_3_keeps_the_contract: 2,
    part_4_keeps_the_contract: 3,
    part_5_keeps_the_contract: 4,
    part_6_keeps_the_contract: 5,
    part_7_keeps_the_contract: 6,
    part_8_keeps_the_contract: 7,
}

#[test]
fn no_two_planners_share_a_key() {
    let mut keys: Vec<_> =
        planlab_solvers::registry().iter().map(|planner| planner.descriptor().key).collect();
    let count = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), count);
}
