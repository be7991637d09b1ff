//! Batch sizes of the recorded nets: which buffers scale, and how good a plan of one batch is for another.

use planlab_dsa::{Budget, Buffer, Bytes, Instance, VerifiedPlan, execute};
use planlab_solvers::placement::{Canonical, carry_plan};
use planlab_workloads::Catalog;

const NETS: [&str; 4] = ["alexnet", "googlenet", "resnet50", "inception-resnet-v2"];
const STEPS: [(u64, u64); 2] = [(32, 64), (64, 128)];

fn load(net: &str, batch: u64) -> Instance {
    let key = format!("chainer/{net}/train/b{batch}");
    Catalog::new(None).load(&key).unwrap_or_else(|error| panic!("{error}")).instance
}

fn planned<'i>(key: &str, instance: &'i Instance) -> VerifiedPlan<'i> {
    let planner = planlab_solvers::find_planner(key).expect("registered");
    let budget = Budget { work: Some(300_000), ..Budget::default() };
    let best = execute(&planner, instance, budget, 0).best.expect("a plan");
    (*best).clone()
}

/// The buffers that are twice as large in the other batch, as instances of both batches.
fn that_double(small: &Instance, large: &Instance) -> (Instance, Instance) {
    let pairs = small.buffers().iter().zip(large.buffers());
    let (a, b): (Vec<Buffer>, Vec<Buffer>) =
        pairs.filter(|(a, b)| 2 * a.size.get() == b.size.get()).map(|(a, b)| (a.clone(), b.clone())).unzip();
    let build = |buffers| Instance::from_buffers(buffers).expect("part of a valid instance");
    (build(a), build(b))
}

#[test]
fn where_every_size_doubles_so_does_the_plan() {
    for net in NETS {
        for (batch, double) in STEPS {
            let (small, large) = that_double(&load(net, batch), &load(net, double));
            assert!(small.len() >= 50, "{net}: only {} of the sizes double", small.len());
            let forms = (Canonical::from_instance(&small), Canonical::from_instance(&large));
            assert_eq!(forms.0.digest(), forms.1.digest(), "{net} b{batch}");
            let plan = planned("scaled", &small);
            let carried = carry_plan(&plan, &large).unwrap_or_else(|error| panic!("{net}: {error}"));
            assert_eq!(carried.height().get(), 2 * plan.height().get(), "{net} b{batch}");
            let same = planned("scaled", &large);
            let offsets =
                |plan: &VerifiedPlan<'_>| plan.offsets().iter().map(|at| at.get()).collect::<Vec<_>>();
            let doubled: Vec<u64> = offsets(&plan).iter().map(|at| 2 * at).collect();
            assert_eq!(offsets(&same), doubled, "{net} b{batch}: another plan for another batch");
        }
    }
}

#[test]
fn a_whole_net_twice_as_large_has_the_plan_twice_as_large() {
    for net in NETS {
        let small = load(net, 32);
        let double = |b: &Buffer| Buffer { size: Bytes::new(2 * b.size.get()), ..b.clone() };
        let large = Instance::from_buffers(small.buffers().iter().map(double).collect()).expect("valid");
        let plan = planned("best-fit", &small);
        let carried = carry_plan(&plan, &large).unwrap_or_else(|error| panic!("{net}: {error}"));
        assert_eq!(carried.height().get(), 2 * plan.height().get(), "{net}");
    }
}

/// The order of a plan is good for another batch size, although weights and workspaces do not scale.
#[test]
fn a_plan_carried_over_is_close_to_a_fresh_one() {
    for net in NETS {
        for (batch, other) in [(32, 64), (32, 128), (64, 128), (128, 32)] {
            let (from, to) = (load(net, batch), load(net, other));
            let carried =
                carry_plan(&planned("best-fit", &from), &to).unwrap_or_else(|error| panic!("{net}: {error}"));
            let fresh = planned("best-fit", &to);
            let (carried, fresh, load) =
                (carried.height().get(), fresh.height().get(), to.load().bytes.get());
            println!("{net} b{batch} to b{other}: carried {carried}, fresh {fresh}, load {load}");
            assert!(carried >= load);
            assert!(carried - load <= load / 100, "{net} b{batch} to b{other}: {carried}, load {load}");
        }
    }
}
