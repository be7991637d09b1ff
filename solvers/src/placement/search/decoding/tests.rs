//! The decoder after any changes, against a new one, and against first fit.

use std::sync::Arc;

use planlab_dsa::testing::{Shape, instances, oracle_height};
use planlab_dsa::{Halt, Instance};
use proptest::prelude::*;
use proptest::sample::Index;

use super::decoder::{Change, Decoder};
use super::model::Model;
use crate::demands::can_stand;
use crate::placement::greedy::first_fit;
use crate::placement::testing;
use crate::trees::Neighbours;

fn index(value: usize) -> u32 {
    u32::try_from(value).expect("few")
}

fn free(_: u64) -> Result<(), Halt> {
    Ok(())
}

fn shape() -> Shape {
    let shape =
        Shape::plain_buffers().with_max_buffers(24).with_max_steps(16).with_pins(true).with_apart(true);
    shape.with_alignment(true).with_pauses(true).with_windows(true)
}

fn models(instance: &Instance) -> [Arc<Model>; 2] {
    [1 << 20, 0].map(|room| {
        let neighbours = Neighbours::with_room(instance, room, &mut free).expect("no limit");
        let mut model = Model::with_neighbours(instance, neighbours);
        model.narrow &= room > 0;
        Arc::new(model)
    })
}

/// A change chosen by two numbers.
fn choose(decoder: &Decoder, (swap, a, b): (bool, Index, Index)) -> Option<Change> {
    let free = decoder.order().len() - decoder.first_movable() as usize;
    if free == 0 {
        return None;
    }
    let at = |one: Index| decoder.first_movable() + index(one.index(free));
    let id = |one: Index| decoder.order()[at(one) as usize];
    Some(if swap { Change::Swap(id(a), id(b)) } else { Change::Shift(id(a), at(b)) })
}

fn state(decoder: &Decoder) -> (Vec<u32>, Vec<u64>, u128, Vec<u32>) {
    let mut tall = decoder.tall_buffers().to_vec();
    tall.sort_unstable();
    (decoder.order().to_vec(), decoder.offsets().collect(), decoder.excess_over_ceiling(), tall)
}

fn from_scratch(decoder: &Decoder) -> Decoder {
    let order = decoder.order().to_vec();
    let mut fresh = Decoder::new(Arc::clone(decoder.model()), &order, &mut free).expect("no limit");
    fresh.set_ceiling(decoder.ceiling());
    fresh
}

proptest! {
    #[test]
    fn after_any_changes_it_is_as_if_decoded_from_scratch(
        instance in instances(shape()),
        changes in prop::collection::vec((any::<bool>(), any::<Index>(), any::<Index>(), 0_u8..3), 1..30),
        ceiling in 0_u64..60,
    ) {
        prop_assume!(can_stand(&instance));
        for model in models(&instance) {
            let order: Vec<u32> = (0..index(model.len())).collect();
            let mut decoder = Decoder::new(Arc::clone(&model), &order, &mut free).expect("no limit");
            decoder.set_ceiling(ceiling);
            let mut kept = state(&decoder);
            for &(swap, a, b, what) in &changes {
                let Some(change) = choose(&decoder, (swap, a, b)) else { break };
                decoder.make_change(change, &mut free).expect("no limit");
                prop_assert_eq!(state(&decoder), state(&from_scratch(&decoder)));
                match what {
                    0 => {
                        decoder.undo_changes();
                        prop_assert_eq!(state(&decoder), kept.clone());
                    }
                    1 => {
                        decoder.keep_changes();
                        kept = state(&decoder);
                    }
                    _ => {}
                }
            }
            let plan = model.plan_of(decoder.offsets());
            prop_assert!(oracle_height(&instance, &plan).is_ok());
        }
    }

    #[test]
    fn it_gives_the_plan_of_first_fit(instance in instances(shape().with_max_buffers(40))) {
        prop_assume!(can_stand(&instance));
        let order: Vec<u32> = (0..index(instance.len())).rev().collect();
        for model in models(&instance) {
            let decoder = Decoder::new(Arc::clone(&model), &order, &mut free).expect("no limit");
            let offsets = first_fit(&instance, decoder.order(), &mut free).expect("no limit");
            let plan = model.plan_of(decoder.offsets());
            prop_assert_eq!(plan.offsets.iter().map(|o| o.get()).collect::<Vec<_>>(), offsets);
        }
    }
}

#[test]
fn a_swap_touches_the_neighbours_alone() {
    let start = |at: u32| 3 * (at / 2) + at % 2;
    let rows: Vec<_> = (0..1000).map(|at| (4, start(at), start(at) + 2)).collect();
    let instance = testing::test_instance(&rows);
    let model = Model::new(&instance, &mut free).expect("no limit").expect("no pins");
    let order: Vec<u32> = (0..1000).collect();
    let mut decoder = Decoder::new(Arc::new(model), &order, &mut free).expect("no limit");
    let before = decoder.placement_count();
    decoder.make_change(Change::Swap(10, 500), &mut free).expect("no limit");
    assert!(decoder.placement_count() - before < 10, "{} were placed", decoder.placement_count() - before);
    assert_eq!(state(&decoder), state(&from_scratch(&decoder)));
}
