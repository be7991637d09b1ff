//! The page on training within a budget: figures that can be checked by hand, and its messages about problems.

use crate::files::Parts;
use crate::fixtures::{budget_step as step, framework};
use crate::frameworks::report;

/// A net that takes 100 ms and 200 MiB with no limit. Ours is at 110 ms in 90 MiB, and at 120 ms in 50 MiB. PyTorch's steps
/// that compute the same take 132 ms in 90 MiB, and 150 ms in 60 MiB.
fn rows() -> String {
    let ours = |name, settings, ms, capacity, counted, measured| {
        step("gpt", (name, settings), ms, (Some(capacity), counted, measured), "x")
    };
    let torch =
        |name, settings, ms, peak, digest| step("gpt", (name, settings), ms, (None, peak, peak), digest);
    [
        torch("unconstrained", "", 100, 200, "x"),
        torch("torch/dp", "budget=0.5", 132, 90, "x"),
        torch("torch/dp", "budget=0.1", 150, 60, "x"),
        torch("torch/greedy", "budget=0.5", 105, 40, "other"),
        ours("planlab/compiled", "share=0.5", 110, 100, 80, 90),
        ours("planlab/eager", "share=0.25", 120, 50, 40, 50),
    ]
    .concat()
}

/// Our step of 110 ms has a rival of its peak: 110 / 132. That of 120 ms has no rival. In their times PyTorch has the step
/// with no limit alone: 90 / 200 and 50 / 200, whose geometric mean is 0.3354.
#[test]
fn summary_compares_equal_peaks_and_equal_times() {
    report(&rows()).has(
        "budget.html",
        [
            "takes 0.833 times as long as PyTorch",
            "(geometric mean of 1 step). In 1 step ours has a peak",
            "In the same time the peak of ours is 66.46 % below the least of PyTorch",
            "(2 steps).",
        ],
    );
}

#[test]
fn each_capacity_has_the_fastest_setting_that_fits() {
    let files = report(&rows());
    insta::assert_snapshot!(files.text("tables/budget-gpt.csv"), @"
    capacity_bytes,contender,settings,time,counted_share,measured_share,least_bytes
    104857600,planlab/compiled,share=0.5,1.1,0.8,0.9,
    104857600,torch/dp,budget=0.5,1.32,0.9,0.9,
    104857600,torch/greedy,budget=0.5,1.05,0.4,0.4,
    104857600,unconstrained,,,,,209715200
    52428800,planlab/eager,share=0.25,1.2,0.8,1,
    52428800,torch/dp,,,,,62914560
    52428800,torch/greedy,budget=0.5,1.05,0.8,0.8,
    52428800,unconstrained,,,,,209715200
    ");
    files.has("budget.html", ["Step time against peak: gpt, batch 16", "share=0.25 50.0 MiB, 120 ms"]);
    let table = files.text("tables/budgets.csv");
    assert_eq!(table.lines().count(), 1 + 6, "{table}");
    let unequal: Vec<&str> = table.lines().filter(|line| line.ends_with(",no")).collect();
    assert!(matches!(unequal[..], [line] if line.contains("torch/greedy")), "{table}");
}

#[test]
fn step_that_does_not_fit_has_its_least_peak_and_failures_are_alerts() {
    let refused = step("gpt", ("planlab/eager", "share=0.1"), 1, (Some(20), 1, 1), "x")
        .replace("\"complete\",\"reason\":\"\"", "\"out-of-memory\",\"reason\":\"no room\"")
        .replace("\"least_peak\":null", "\"least_peak\":31457280");
    let failed = step("gpt", ("torch/ilp", "budget=0.5"), 1, (None, 1, 1), "x")
        .replace("\"complete\",\"reason\":\"\"", "\"failed\",\"reason\":\"no SciPy\"");
    let files = report(&(rows() + &refused + &failed));
    let table = files.text("tables/budget-gpt.csv");
    table.has(["20971520,planlab/eager,,,,,31457280\n"]);
    files.has(
        "budget.html",
        [
            "these steps are compared with no others: gpt, torch/greedy budget=0.5.",
            "Without figures: 1 row. gpt, torch/ilp budget=0.5: no SciPy.",
        ],
    );
}

#[test]
fn rows_of_allocators_and_of_budgets_have_pages_of_their_own() {
    let allocators = framework("gpt", "glibc", [100; 3], 300, "w");
    let both = report(&(rows() + &allocators));
    both.has("budget.html", ["Step time against peak"]);
    assert!(!both.text("frameworks.html").contains("planlab/eager"));
    assert!(!report(&rows()).contains_key("frameworks.html"));
    assert!(!report(&allocators).contains_key("budget.html"));
}
