//! Tests the synthetic families: exact sizes, equal instances on every machine, proven optima.

use planlab_dsa::Plan;
use planlab_workloads::Catalog;
use planlab_workloads::synthetic::{self, ParameterError, all_families, construct_instance, generate_trace};

#[test]
fn every_family_has_exactly_as_many_buffers_as_asked() {
    for family in all_families() {
        for n in ["10", "11", "57", "100", "1000", "4321"] {
            let trace = generate_trace(family.name, &[("n", n), ("seed", "5")]).expect(family.name);
            assert_eq!(trace.instance.len().to_string(), n, "{}", family.name);
            assert_eq!(trace.labels.buffers.len().to_string(), n, "{}", family.name);
        }
    }
}

#[test]
fn a_key_names_one_instance_and_seeds_differ() {
    let catalog = Catalog::new(None);
    for family in all_families() {
        let load = |seed: u64| {
            let key = format!("synthetic/{}/n300/s{seed}", family.name);
            let trace = catalog.load(&key).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(trace.labels.meta_value("workload"), Some(key.as_str()));
            assert_eq!(catalog.buffer_count(&key).expect("known"), 300);
            trace.instance.digest()
        };
        assert_eq!(load(1), load(1), "{}", family.name);
        assert_ne!(load(1), load(2), "{}", family.name);
    }
}

#[test]
fn instances_never_change() {
    let digest = |family: &synthetic::Family| {
        let trace = generate_trace(family.name, &[("n", "500"), ("seed", "42")]).expect(family.name);
        (family.name, trace.instance.digest().short_text())
    };
    let found: Vec<(&str, String)> = all_families().iter().map(digest).collect();
    assert_eq!(found, DIGESTS.map(|(name, digest)| (name, digest.to_owned())));
}

/// Stored results refer to these digests: a family that makes other instances needs another name.
const DIGESTS: [(&str, &str); 16] = [
    ("uniform", "34b5e5dfd6c3"),
    ("power-law", "4f9f4321099c"),
    ("chain", "a1a402533a91"),
    ("skip", "6c52c3db50ef"),
    ("transformer", "7b0d9e0100c7"),
    ("lstm", "16c1e8a489ad"),
    ("multi-stream", "8d543efe53ab"),
    ("staircase", "74d47ca3bce3"),
    ("guillotine", "662134cd7bf2"),
    ("tiling", "632229e6cf4e"),
    ("adversary/first-fit-start", "4b2027452280"),
    ("adversary/greedy-by-size", "65673af57503"),
    ("adversary/first-fit-area", "dea1e8a80879"),
    ("adversary/first-fit-width", "be2c2ee4ea4c"),
    ("adversary/greedy-by-breadth", "1343905a4862"),
    ("adversary/best-fit", "1a96371bcdd7"),
];

#[test]
fn known_optima_are_the_load_and_a_plan_reaches_them() {
    let mut known = 0;
    for family in all_families() {
        for n in ["10", "333", "3000"] {
            let made = construct_instance(family.name, &[("n", n), ("seed", "9")]).expect(family.name);
            let Some(optimum) = made.optimum else { continue };
            let plan = Plan::from_offsets(made.witness.clone().expect("a known optimum has a plan"));
            let verified = made.instance.verify(plan).unwrap_or_else(|violation| panic!("{violation}"));
            assert_eq!(verified.height(), optimum, "{} {n}", family.name);
            assert_eq!(made.instance.load().bytes, optimum, "{} {n}", family.name);
            known += 1;
        }
    }
    assert_eq!(known, 3 * 8);
}

#[test]
fn guillotine_pieces_fill_the_rectangle() {
    for aspect in ["0", "50", "100"] {
        let parameters = [("n", "200"), ("aspect", aspect), ("height", "300")];
        let instance = construct_instance("guillotine", &parameters).expect("valid").instance;
        let area: u64 = instance.buffers().iter().map(|b| b.size.get() * u64::from(b.live.width())).sum();
        let height = instance.load().bytes.get();
        assert_eq!((area, height), (800 * 300 * 512, 300 * 512), "aspect {aspect}");
        let steps = instance.load_curve();
        assert_eq!(steps.points().len(), 2, "the load is the same at every step");
    }
}

#[test]
fn training_nests_and_inference_does_not() {
    let live = |parameters: &[(&str, &str)]| {
        let instance = generate_trace("chain", parameters).expect("valid").instance;
        let horizon = instance.horizon().get();
        let width: u64 = instance.buffers().iter().map(|b| u64::from(b.live.width())).sum();
        width / u64::from(horizon)
    };
    assert!(live(&[("n", "700")]) > 50);
    assert!(live(&[("n", "700"), ("mode", "infer")]) <= 4);
}

#[test]
fn in_place_nets_have_permissions() {
    let count = |value: &str| {
        let trace = generate_trace("skip", &[("in-place", value), ("mode", "infer")]).expect("valid");
        trace.instance.in_place().len()
    };
    assert_eq!(count("no"), 0);
    assert!(count("yes") > 50);
}

#[test]
fn streams_wait_or_are_kept_apart() {
    let made =
        |rule: &str| generate_trace("multi-stream", &[("rule", rule), ("n", "200")]).expect("valid").instance;
    let (late, apart) = (made("late"), made("apart"));
    assert!(late.keep_apart_pairs().is_empty() && apart.keep_apart_pairs().len() > 200);
    assert!(late.load().bytes > apart.load().bytes);
    for pair in apart.keep_apart_pairs() {
        assert!(!apart.buffer(pair.first).live.overlaps(apart.buffer(pair.second).live));
    }
}

#[test]
fn bad_parameters_are_named() {
    for (family, parameters, message) in [
        ("unifrom", vec![], "there is no family `unifrom`; did you mean `uniform`?"),
        (
            "guillotine",
            vec![("sed", "1")],
            "the family `guillotine` has no parameter `sed` (it has n, seed, height, aspect); did you mean `seed`?",
        ),
        (
            "uniform",
            vec![("m", "3")],
            "the family `uniform` has no parameter `m` (it has n, seed, max-size, granule, live); did you mean `n`?",
        ),
        ("uniform", vec![("n", "9")], "n=9: it must be a whole number from 10 to 10000000"),
        ("uniform", vec![("n", "ten")], "n=ten: it must be a whole number from 10 to 10000000"),
        ("chain", vec![("mode", "eval")], "mode=eval: it must be one of train, infer"),
        ("chain", vec![("mode", "infer"), ("mode", "train")], "the parameter `mode` is set twice"),
    ] {
        assert_eq!(generate_trace(family, &parameters).expect_err(message).to_string(), message);
    }
    for key in ["synthetic/uniform", "synthetic/uniform/n10", "synthetic/uniform/s1/n10", "uniform/n10/s1"] {
        assert!(matches!(synthetic::load_trace(key), Err(ParameterError::BadKey { .. })), "{key}");
    }
}

#[test]
fn parameters_are_part_of_the_key() {
    let trace = generate_trace("skip", &[("kind", "unet"), ("mode", "train"), ("n", "50")]).expect("valid");
    let key = "synthetic/skip/kind=unet/n50/s0";
    assert_eq!(trace.labels.meta_value("workload"), Some(key));
    assert_eq!(synthetic::load_trace(key).expect("valid").instance.digest(), trace.instance.digest());
    assert!(synthetic::describe_key(key).expect("known").ends_with("(kind=unet)"));
}

#[test]
fn every_listed_key_is_described() {
    let keys = synthetic::listed_keys();
    assert_eq!(keys.len(), 6 * (16 + 6));
    assert!(keys.iter().all(|key| synthetic::describe_key(key).is_some()));
}
