use std::fs;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use super::suite::parse;
use super::*;
use crate::Catalog;
use crate::expected::expected_figures;

fn planners() -> Vec<String> {
    ["bump", "best-fit", "best-fit/reference", "first-fit/size", "mip/highs"].map(str::to_owned).to_vec()
}

const fn all_quick(_planner: &str, _buffers: usize) -> bool {
    true
}

/// The cells of an embedded suite.
fn picks(name: &str) -> Vec<Pick> {
    let suite = Suite::find_suite(name).expect(name);
    suite.select_cells(&Catalog::new(None), &planners(), all_quick).expect(name).picks
}

#[test]
fn every_embedded_suite_selects_something() {
    let catalog = Catalog::new(None);
    for suite in builtin() {
        let selection = suite.select_cells(&catalog, &planners(), all_quick).expect(&suite.name);
        let is_empty = suite.name == "public" || suite.name.starts_with("offload/");
        assert_eq!(selection.picks.is_empty(), is_empty, "{}", suite.name);
        assert!(suite.analysis.len() > 40, "{}", suite.name);
    }
}

#[test]
fn all_is_seeds_recorded_and_synthetic() {
    let all = picks("all");
    for name in ["seeds", "recorded", "synthetic"] {
        assert!(picks(name).iter().all(|pick| all.contains(pick)), "{name}");
    }
}

#[test]
fn the_seeds_expect_what_was_measured() {
    let suite = Suite::find_suite("seeds").expect("embedded");
    for propagation in &expected_figures().propagation {
        for planner in ["best-fit", "best-fit/reference"] {
            let known = suite.expect.iter().find(|e| e.workload == propagation.key && e.planner == planner);
            let height = propagation.best_fit_height.get();
            assert_eq!(known.map(|e| e.height), Some(height), "{}", propagation.key);
        }
    }
}

#[test]
fn the_published_optima_need_no_model() {
    let picks = picks("seeds");
    for key in ["chainer/alexnet/infer/b1", "chainer/googlenet/infer/b1"] {
        assert!(picks.iter().any(|pick| pick.workload == key && pick.planner == "mip/highs"), "{key}");
        let known = expected_figures().propagation(key).expect("measured");
        assert_eq!(known.best_fit_height, known.load, "{key}");
    }
}

#[test]
fn mips_run_on_small_workloads_only() {
    let catalog = Catalog::new(None);
    for pick in picks("all") {
        let buffers = catalog.buffer_count(&pick.workload).expect("known");
        assert!(!pick.planner.starts_with("mip/") || buffers <= 300, "{}", pick.workload);
    }
}

#[test]
fn errors_name_file_and_line() {
    let catalog = Catalog::new(None);
    let group = "[[group]]\nworkloads = [\"WHAT\"]\nplanners = [\"*\"]\n";
    let head = "name = \"x\"\nanalysis = \"\"\n";
    for (text, place) in [
        ("name = \"x\"".to_owned(), "bad.toml:1: missing field `analysis`"),
        (format!("{head}colour = 1"), "bad.toml:3: unknown field `colour`"),
        (head.to_owned(), "bad.toml:1: the suite has neither a [[group]] nor a [[schedule]]"),
        (format!("{head}include = [\"smok\"]\n"), "bad.toml:3: there is no suite `smok`; did"),
    ] {
        let error = parse("bad.toml", &text, builtin()).expect_err(&text);
        assert!(error.to_string().starts_with(place), "{error}");
    }
    for (key, place) in [
        ("chainer/alexnet/infer/b2", "bad.toml:4: there is no workload `chainer/alexnet/infer/b2`; did you"),
        ("nothing/*", "bad.toml:4: there is no workload `nothing/*`"),
    ] {
        let suite = parse("bad.toml", &format!("{head}{}", group.replace("WHAT", key)), builtin());
        let error =
            suite.expect("well formed").select_cells(&catalog, &planners(), all_quick).expect_err(key);
        assert!(error.to_string().starts_with(place), "{error}");
    }
}

#[test]
fn lists_of_limits_make_cells() {
    let text = "name = \"x\"\nanalysis = \"x\"\n[[group]]\nworkloads = [\"chainer/alexnet/infer/b1\"]\n\
                planners = [\"bump\", \"external/peer\"]\ntime_limits = [1.0, 2.0]\n\
                capacities = [10, 20, 30]\nthreads = [1, 2]\nrepetitions = 5\n";
    let suite = parse("x.toml", text, builtin()).expect("well formed");
    let selection = suite.select_cells(&Catalog::new(None), &planners(), all_quick).expect("valid");
    assert_eq!(selection.picks.len(), 12);
    let last = selection.picks.last().expect("twelve");
    assert_eq!(last.time_limit, Some(Duration::from_secs(2)));
    assert_eq!((last.capacity, last.threads), (Some(30), NonZeroUsize::new(2)));
    assert!(selection.picks.iter().all(|pick| pick.repetitions == NonZeroU32::new(5)));
    assert!(selection.notices[0].contains("external/peer"), "{:?}", selection.notices);
    assert!(selection.notices[0].ends_with("not run"), "{:?}", selection.notices);
    let both = text.replace("repetitions", "time_limit = 3.0\nrepetitions");
    let error = parse("x.toml", &both, builtin()).expect_err("two ways to say it");
    assert!(error.to_string().starts_with("x.toml:6: time_limit and time_limits"), "{error}");
}

#[test]
fn what_a_group_for_quick_planners_leaves_out_another_group_may_have() {
    let text = "name = \"x\"\nanalysis = \"x\"\n[[group]]\nworkloads = [\"chainer/alexnet/infer/b1\"]\n\
                planners = [\"*\"]\nexcept = [\"mip/*\"]\nquick = true\n[[group]]\n\
                workloads = [\"chainer/alexnet/infer/b1\"]\nplanners = [\"b*\"]\ntime_limit = 3.0\n";
    let suite = parse("x.toml", text, builtin()).expect("well formed");
    let is_quick = |planner: &str, buffers: usize| planner == "bump" && buffers == 39;
    let picks = suite.select_cells(&Catalog::new(None), &planners(), is_quick).expect("valid").picks;
    let chosen: Vec<(&str, Option<Duration>)> =
        picks.iter().map(|pick| (pick.planner.as_str(), pick.time_limit)).collect();
    let limit = Some(Duration::from_secs(3));
    assert_eq!(chosen, [("bump", None), ("best-fit", limit), ("best-fit/reference", limit)]);
}

#[test]
fn allocators_are_played_on_the_workloads_of_their_groups() {
    let catalog = Catalog::new(None);
    let keys = ["network-wise", "cupy1-pool", "cupy2rc1-pool"];
    let text = "name = \"x\"\nanalysis = \"x\"\n[[group]]\nworkloads = [\"chainer/*/infer/b1\"]\n\
                allocators = [\"cupy*\"]\nmax_buffers = 250\n[[group]]\n\
                workloads = [\"chainer/alexnet/infer/b1\"]\nplanners = [\"bump\"]\nallocators = [\"*\"]\n";
    let suite = parse("x.toml", text, builtin()).expect("well formed");
    let baselines = suite.baseline_cells(&catalog, &keys).expect("valid");
    let of = |workload: &str| -> Vec<&str> {
        let own = baselines.iter().filter(|baseline| baseline.workload == workload);
        own.map(|baseline| baseline.allocator.as_str()).collect()
    };
    assert_eq!(of("chainer/googlenet/infer/b1"), ["cupy1-pool", "cupy2rc1-pool"]);
    assert_eq!(of("chainer/alexnet/infer/b1"), ["cupy1-pool", "cupy2rc1-pool", "network-wise"]);
    assert!(of("chainer/inception-resnet-v2/infer/b1").is_empty(), "too many buffers");
    assert_eq!(suite.select_cells(&catalog, &planners(), all_quick).expect("valid").picks.len(), 1);
    let wrong = parse("x.toml", &text.replace("cupy*", "cupi1-pool"), builtin()).expect("well formed");
    let error = wrong.baseline_cells(&catalog, &keys).expect_err("no such allocator");
    let start = "x.toml:5: there is no allocator `cupi1-pool`; did you mean `cupy1-pool`";
    assert!(error.to_string().starts_with(start), "{error}");
    let none = text.replace("planners = [\"bump\"]\nallocators = [\"*\"]\n", "");
    let error = parse("x.toml", &none, builtin()).expect_err("nothing to run");
    assert!(error.to_string().contains("neither planners nor allocators"), "{error}");
}

#[test]
fn embedded_suites_name_allocators_that_exist_on_the_nets_of_the_paper() {
    let catalog = Catalog::new(None);
    // All keys of the harness, as every pattern has to match one.
    let keys = [
        "network-wise",
        "device",
        "cupy1-pool",
        "cupy2rc1-pool",
        "cupy4-pool",
        "pytorch-caching",
        "pytorch-caching/expandable",
        "tensorflow-bfc",
        "tensorflow-bfc/one-region",
        "mxnet-naive",
        "mxnet-rounded",
        "tlsf",
        "profile-guided",
        "profile-guided/kinds",
        "profile-guided/scoped",
    ];
    let count = |name: &str, allocator: &str| {
        let suite = Suite::find_suite(name).expect(name);
        let baselines = suite.baseline_cells(&catalog, &keys).expect(name);
        baselines.iter().filter(|baseline| baseline.allocator == allocator).count()
    };
    let nets = catalog.keys().iter().filter(|key| key.starts_with("chainer/")).count();
    assert_eq!(count("seeds", "cupy2rc1-pool"), nets);
    assert!(count("smoke", "cupy2rc1-pool") >= 3 && count("smoke", "profile-guided") >= 3);
    assert_eq!(count("smoke", "profile-guided/scoped"), count("smoke", "profile-guided"));
    // Every recorded trace, and the process of each trace recorded in PyTorch's allocator.
    let recorded = catalog.keys();
    let traces = recorded.iter().filter(|key| key.starts_with("torch") || key.starts_with("onnx/")).count();
    let processes = recorded.iter().filter(|key| key.ends_with("/process")).count();
    assert_eq!((processes, count("recorded", "pytorch-caching")), (54, traces));
    assert_eq!(count("recorded", "tlsf"), traces - processes);
    let picks = picks("recorded");
    assert!(!picks.is_empty() && picks.iter().all(|pick| !pick.workload.ends_with("/process")));
}

#[test]
fn names_that_stand_for_nothing_are_refused() {
    let text = "name = \"x\"\nanalysis = \"x\"\n[[group]]\nworkloads = [\"chainer/alexnet/infer/b1\"]\n\
                planners = [\"bump\", \"external/peer\", \"cp/*\"]\nexcept = [\"best-*\"]\n\
                [[expect]]\nworkload = \"chainer/alexnet/infer/b1\"\nplanner = \"bump\"\nheight = 1\n\
                [[expect]]\nworkload = \"chainer/alexnet/infer/b1\"\nplanner = \"cp/pumpkin\"\nheight = 1\n";
    let catalog = Catalog::new(None);
    let check = |text: &str| {
        let suite = parse("x.toml", text, builtin()).expect("well formed");
        let picks = suite.select_cells(&catalog, &planners(), all_quick).expect("known workloads").picks;
        suite.check_names(&catalog, &planners(), &["cp/pumpkin"], &picks).map_err(|error| error.to_string())
    };
    assert_eq!(check(text), Ok(()));
    let key = "chainer/alexnet/infer/b1";
    let expected = format!("{key}\"\nplanner = \"bump\"");
    let (batch, net) = (expected.replace("b1", "b3"), expected.replace("alexnet", "googlenet"));
    for (from, to, place) in [
        ("[\"bump\"", "[\"bupm\"", "x.toml:5: there is no planner `bupm`; did you mean `bump`"),
        ("best-*", "bets-*", "x.toml:6: there is no planner `bets-*`"),
        ("\nplanner = \"bump\"", "\nplanner = \"bumb\"", "x.toml:7: an expectation of `bumb`, which"),
        (&expected, &batch, "x.toml:7: an expectation: there is no workload `chainer/alexnet/"),
        (&expected, &net, "x.toml:7: this `[[expect]]` is never checked: no group"),
    ] {
        let told = check(&text.replacen(from, to, 1)).expect_err(place);
        assert!(told.starts_with(place), "{told}");
    }
    let public = expected.replace(key, "minimalloc/a");
    assert_eq!(check(&text.replacen(&expected, &public, 1)), Ok(()), "instances that are not there");
}

#[test]
fn what_is_wrong_in_an_included_suite_is_told_by_its_file_and_line() {
    let text = "name = \"x\"\nanalysis = \"x\"\ninclude = [\"all\"]\n";
    let suite = parse("x.toml", text, builtin()).expect("well formed");
    let seeds = Suite::find_suite("seeds").expect("embedded");
    let line = seeds.text.lines().position(|line| line == "[[expect]]").expect("it has some") + 1;
    let patterns = suite.groups.iter().flat_map(|group| group.planners.iter().chain(&group.except));
    let known: Vec<String> = patterns.cloned().chain(["best-fit".to_owned()]).collect();
    // No cells at all: as if `[limits]` excluded the cells that the included suite expects.
    let error = suite.check_names(&Catalog::new(None), &known, &[], &[]).expect_err("nothing is run");
    let (place, told) = (format!("{}:{line}: this `[[expect]]`", seeds.file), error.to_string());
    assert!(told.starts_with(&place), "{told} rather than {place}");
    assert!(place.starts_with("suites/seeds.toml:"), "{place}");
}

#[test]
fn missing_public_instances_are_a_notice() {
    let suite = Suite::find_suite("public").expect("embedded");
    let selection =
        suite.select_cells(&Catalog::new(None), &planners(), all_quick).expect("a notice, no error");
    assert!(selection.notices.iter().any(|notice| notice.contains("idealloc")), "{:?}", selection.notices);
}

#[test]
fn mips_run_on_small_public_instances() {
    let corpus = tempfile::tempdir().expect("a temporary folder");
    for (name, buffers) in
        [("minimalloc/S.100.csv", 300), ("minimalloc/L.100.csv", 301), ("idealloc/I.csv", 9)]
    {
        let path = corpus.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        let rows: String = (0..buffers).map(|id| format!("{id},0,3,4\n")).collect();
        fs::write(path, format!("id,lower,upper,size\n{rows}")).expect("writable");
    }
    let suite = Suite::find_suite("public").expect("embedded");
    let catalog = Catalog::new(Some(corpus.path().to_owned()));
    let picks = suite.select_cells(&catalog, &planners(), all_quick).expect("all there").picks;
    let with_mip = picks.iter().filter(|pick| pick.planner == "mip/highs");
    let workloads: Vec<&str> = with_mip.map(|pick| pick.workload.as_str()).collect();
    assert_eq!(workloads, ["minimalloc/s", "idealloc/i"]);
}

#[test]
fn an_unknown_suite_has_near_ones() {
    let error = Suite::find_suite("smokes").expect_err("unknown");
    assert_eq!(error.to_string(), "there is no suite `smokes`; did you mean `smoke`?");
    assert!(matches!(Suite::find_suite("missing.toml"), Err(SuiteError::Io { .. })));
}

#[test]
fn suites_of_schedules_select_nets_machines_and_schedulers() {
    let schedulers = [
        "in-core",
        "swap-all",
        "swap-opt",
        "superneurons",
        "pooch/retain",
        "local-search",
        "joint",
        "rotor",
        "pytorch/dp",
    ]
    .map(str::to_owned)
    .to_vec();
    for suite in builtin().iter().filter(|suite| suite.name.starts_with("offload/")) {
        let picks = suite.schedule_cells(&schedulers).expect(&suite.name);
        assert!(!picks.is_empty() && suite.groups.is_empty(), "{}", suite.name);
    }
    let cells = |name: &str| Suite::find_suite(name).expect(name).schedule_cells(&schedulers).expect(name);
    let every = cells("offload/every");
    let nets = crate::models::models().count();
    assert_eq!(every.len(), nets * 3 * 3 * (schedulers.len() - 1), "all but in-core, which never fits");
    let fronts = cells("offload/fronts");
    // Six nets on three machines, and on two over a link too slow for copies.
    assert_eq!(fronts.len(), 6 * (3 + 2) * 4 * (schedulers.len() - 1));
    assert!(fronts.iter().all(|pick| pick.time_limit == Some(Duration::from_secs(60))));
    let pooch = cells("offload/pooch");
    assert!(pooch.iter().any(|pick| pick.machine.copy_in.total_cmp(&16e9).is_eq() && pick.spec.batch == 512));
    assert!(pooch.iter().all(|pick| pick.planner_time_limit == Some(Duration::from_secs(2))));
}

#[test]
fn shares_of_memory_are_a_problem_each() {
    let text = "name = \"x\"\nanalysis = \"x\"\n[[schedule]]\nnets = [\"alexnet\"]\nbatches = [64]\n\
                machines = [\"x86-pcie3\"]\nschedulers = [\"joint\"]\ncapacities = [10, 20]\n\
                peak_shares = [0.9, 0.5]\n";
    let suite = parse("x.toml", text, builtin()).expect("well formed");
    let picks = suite.schedule_cells(&["joint".to_owned()]).expect("valid");
    let memories: Vec<_> = picks.iter().map(|pick| (pick.capacity, pick.peak_share)).collect();
    let expected = [(10, 0.9), (10, 0.5), (20, 0.9), (20, 0.5)];
    assert_eq!(memories, expected.map(|(capacity, share)| (Some(capacity), Some(share))));
    for (field, reason) in [
        ("peak_shares = [1.5]", "x.toml:9: a share of 1.5: it is above 0 and at most 1"),
        ("peak_share = 0.0", "x.toml:9: a share of 0: it is above 0 and at most 1"),
        ("peak_share = 0.5\npeak_shares = [0.9]", "x.toml:10: peak_share and peak_shares of one group"),
    ] {
        let wrong = text.replace("peak_shares = [0.9, 0.5]", field);
        let error = parse("x.toml", &wrong, builtin()).expect_err(field);
        assert_eq!(error.to_string(), reason);
    }
}
