//! `schedule`: keep, swap, recompute.

use serde_json::Value;
use tempfile::tempdir;

use crate::common::{figure, json, run, write};

const MACHINE: &str = "name = 'mine'\ncopy_out = 24e9\ncopy_in = 24e9\nflops = 2e13\nmemory = 1.5e12\nlaunch = 5e-6\n\
                       capacity = 2e9\n";

fn row<'f>(found: &'f Value, scheduler: &str) -> &'f Value {
    let mut rows = found["schedules"].as_array().expect("schedules").iter();
    rows.find(|row| row["scheduler"] == scheduler).unwrap_or_else(|| panic!("{scheduler}: {found}"))
}

/// The classes of the paper's table 3 for SuperNeurons, and of our reproduction for PoocH. A schedule whose live bytes
/// fit may not fit with a planner's offsets.
#[test]
fn resnet50_at_512_keeps_swaps_and_recomputes_as_published() {
    let folder = tempdir().expect("a folder");
    let arguments = ["schedule", "resnet50", "--batch", "512", "--planner", "best-fit"];
    // Best fit needs more than the capacity for both: no schedule fits.
    let schedulers =
        ["--scheduler", "in-core", "--scheduler", "superneurons", "--scheduler", "pooch/discard"];
    let found = json(folder.path(), &[arguments.as_slice(), &schedulers].concat(), 3);
    let counts = |scheduler: &str| {
        let row = row(&found, scheduler);
        ["kept", "swapped", "recomputed"].map(|class| row[class].as_u64())
    };
    assert_eq!(counts("superneurons"), [66, 21, 18].map(Some));
    assert_eq!(counts("pooch/discard"), [66, 10, 29].map(Some));
    assert!(row(&found, "in-core")["remark"].as_str().is_some_and(|text| text.starts_with("out of memory")));
    for scheduler in ["superneurons", "pooch/discard"] {
        let row = row(&found, scheduler);
        assert!(row["height"].as_u64() > Some(14_950_000_000) && row["fits"] == false, "{row}");
        assert!(figure(row, "live_peak") <= 14_950_000_000, "{row}");
    }
    assert_eq!(found["capacity"], 14_950_000_000_u64);
}

#[test]
fn a_schedule_is_written_checked_and_refused_if_it_lies() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "mine.toml", MACHINE);
    let net = ["schedule", "alexnet", "--batch", "192", "--machine", "mine.toml"];
    let with = |more: &[&'static str]| [net.as_slice(), more].concat();
    let found = json(folder.path(), &with(&["--scheduler", "swap-all", "-o", "s.jsonl"]), 0);
    let checked = json(folder.path(), &with(&["--check", "s.jsonl"]), 0);
    assert_eq!(checked["valid"], true);
    assert_eq!(checked["height"], row(&found, "swap-all")["height"]);
    let text = std::fs::read_to_string(folder.path().join("s.jsonl")).expect("written");
    let seconds = text.lines().next().and_then(|line| line.split("\"seconds\":").nth(1)).expect("a claim");
    let seconds = seconds.split([',', '}']).next().expect("a number");
    write(folder.path(), "lie.jsonl", text.replacen(seconds, "0.001", 1));
    let lie = json(folder.path(), &with(&["--check", "lie.jsonl"]), 4);
    assert!(lie["message"].as_str().is_some_and(|text| text.contains("claims")), "{lie}");
    let cut = text.lines().take(3).collect::<Vec<_>>().join("\n");
    write(folder.path(), "cut.jsonl", format!("{cut}\n{{\"event\":"));
    let (_, told) = run(folder.path(), &with(&["--check", "cut.jsonl"]), 2);
    assert!(told.contains("cut.jsonl:4"), "{told}");
}

/// The schedule keeps maps that no backward pass reads; an earlier bound was above its time.
#[test]
fn schedule_that_keeps_transient_maps_is_above_the_bound() {
    let folder = tempdir().expect("a folder");
    let file = "../workloads/data/schedules/refuters/densenet161-schedule.jsonl.zst";
    std::fs::copy(file, folder.path().join("s.jsonl.zst")).expect("copied");
    let net = ["schedule", "densenet161", "--batch", "64", "--capacity", "8424687584", "--link", "3GB"];
    let checked = json(folder.path(), &[net.as_slice(), &["--check", "s.jsonl.zst"]].concat(), 0);
    let [seconds, bound, gap] =
        ["seconds", "bound_seconds", "gap"].map(|field| checked[field].as_f64().expect("a number"));
    assert_eq!((&checked["valid"], &checked["bound_evidence"]), (&true.into(), &"lp".into()));
    assert!((0.518_009..0.518_011).contains(&seconds), "{checked}");
    assert!(bound <= seconds && gap > 0.0, "{checked}");
}

#[test]
fn what_no_schedule_can_do_is_named() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "slow.toml", MACHINE.replace("copy_in = 24e9", "copy_in = 0"));
    write(folder.path(), "times.csv", "function,forward,backward\nnobody,0.1,0.2\n");
    write(folder.path(), "part.toml", MACHINE.replace("flops = 2e13\n", ""));
    for (more, reason) in [
        (["--machine", "slow.toml"], "slow.toml:3"),
        (["--machine", "part.toml"], "flops"),
        (["--machine", "x86-pcie"], "did you mean `x86-pcie3`"),
        (["--times", "times.csv"], "times.csv:2"),
        (["--capacity", "100MB"], "parameters and workspace alone take"),
        (["--capacity", "1GB"], "alone takes"),
        (["--scheduler", "poch/retain"], "did you mean `pooch/retain`"),
        (["--mode", "infer"], "inference keeps no feature maps"),
    ] {
        let arguments = [["schedule", "alexnet", "--batch", "1024"].as_slice(), &more].concat();
        let (_, told) = run(folder.path(), &arguments, 2);
        assert!(told.contains(reason), "{more:?}: {told}");
    }
}
