//! Squeaky wheel: first fit in an order that each plan improves.
//!
//! The worked example of docs/invent-a-planner.md. It starts with the order by size. The buffer on top of a plan was
//! placed too late, so it moves half-way to the front of the order before the next round.
//!
//! ```text
//! cargo run -p planlab-solvers --no-default-features --example squeaky_wheel
//! ```
//!
//! # References
//!
//! 1. D. E. Joslin and D. P. Clements, *Squeaky wheel optimization*, Journal of Artificial Intelligence Research 10,
//!    1999, doi:10.1613/jair.561.
//!
//! # Complexity
//!
//! O(n^2) time for each round, O(n) memory.
//!
//! # Deviations from the paper
//!
//! One buffer is blamed in each round, and nothing is remembered of earlier rounds but the order.
#![allow(clippy::print_stdout, reason = "an example shows its result")]

use std::cmp::Reverse;
use std::error::Error;

use planlab_dsa::{
    Budget, Buffer, BufferId, Bytes, Descriptor, Guarantee, Halt, Honours, Instance, LiveRange, Offset, Plan,
    Planner, Run, execute,
};

/// The rounds of a run without a proof.
const ROUNDS: usize = 100;

/// First fit in an order that each plan improves; key `squeaky-wheel`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SqueakyWheel;

impl Planner for SqueakyWheel {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "squeaky-wheel".into(),
            summary: "first fit; what lies on top comes earlier in the next round".into(),
            guarantee: Guarantee::Heuristic,
            honours: Honours { alignment: true, work_limit: true, ..Honours::default() },
            randomized: false,
            reference: "Joslin and Clements, Squeaky wheel optimization, JAIR 10, 1999",
            complexity: "n^2 a round",
            practical: Some(1_000),
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let instance = run.instance();
        let size = |id: BufferId| instance.buffer(id).size.get();
        let mut order: Vec<BufferId> = instance.ids().collect();
        order.sort_by_key(|&id| Reverse(size(id)));
        for _ in 0..ROUNDS {
            let offsets = first_fit(run, &order)?;
            let end = |id: BufferId| offsets[id.index()].get() + size(id);
            let top = (0..order.len()).max_by_key(|&place| end(order[place]));
            // Verifies the plan and keeps it if it is better. Ends the run if it is optimal.
            run.offer(Plan::from_offsets(offsets))?;
            let Some(top) = top else { break };
            order[top / 2..=top].rotate_right(1);
        }
        Ok(())
    }
}

/// Places each buffer of the order at its lowest free offset.
fn first_fit(run: &mut Run<'_>, order: &[BufferId]) -> Result<Vec<Offset>, Halt> {
    let instance = run.instance();
    let mut offsets = vec![Offset::new(0); instance.len()];
    let mut placed: Vec<BufferId> = Vec::with_capacity(order.len()); // the lowest first
    for &id in order {
        let buffer = instance.buffer(id);
        let mut offset = 0;
        for &below in &placed {
            let (low, other) = (offsets[below.index()].get(), instance.buffer(below));
            if !other.live.overlaps(buffer.live) {
                continue;
            }
            if offset + buffer.size.get() <= low {
                break; // the hole below `other` is large enough
            }
            let free = offset.max(low + other.size.get());
            offset = buffer.align.round_up(free).expect("totals of an instance fit 64 bits");
        }
        offsets[id.index()] = Offset::new(offset);
        let place = placed.partition_point(|&other| offsets[other.index()].get() <= offset);
        placed.insert(place, id);
        run.tick(placed.len() as u64)?; // the limits of the run
    }
    Ok(offsets)
}

fn main() -> Result<(), Box<dyn Error>> {
    let buffers = [(0, 4, 5), (1, 4, 6), (5, 8, 7), (2, 6, 6)]
        .map(|(start, end, size)| LiveRange::new(start, end).map(|live| Buffer::new(Bytes::new(size), live)));
    let instance = Instance::from_buffers(buffers.into_iter().collect::<Result<_, _>>()?)?;
    let by_size = planlab_solvers::find_planner("first-fit/size").ok_or("first-fit/size is always there")?;
    for planner in [&by_size as &dyn Planner, &SqueakyWheel] {
        let outcome = execute(planner, &instance, Budget::default(), 0);
        let plan = outcome.best.ok_or("there is no plan")?;
        println!("{}: height {}, load {}", planner.descriptor().key, plan.height(), instance.load().bytes);
    }
    Ok(())
}
