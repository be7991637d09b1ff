//! The page on schedules: which rows are compared with each other, and which are not.

use planlab_results::Status;
use planlab_results::schedule::ScheduleRow;

use crate::files::Parts;
use crate::offload::{report, row, without};

/// A key in the form of the suite `offload/pooch`.
fn video(size: u64) -> String {
    format!("model/resnext101-3d/train/b1/i{size}")
}

/// A net with videos of this size at batch 1.
fn at_size(row: ScheduleRow, size: u64) -> ScheduleRow {
    row.with(|row| {
        row.cell = format!("{} {size}", row.cell);
        row.workload = video(size).as_str().into();
        row.problem = format!("{size:064x}");
        row.compute_ns = size * 1_000_000;
    })
}

/// Sizes 512, which fits, and 768 and 896, which do not.
fn videos() -> Vec<ScheduleRow> {
    let runs = |size: u64| {
        let ran = |scheduler: &str, sixteenths: u64| {
            at_size(row(scheduler, 1, [9, 0, 0], size * sixteenths / 16), size)
        };
        let in_core = match size {
            512 => ran("in-core", 16),
            _ => at_size(without("in-core", 1, Status::Unknown, "out of memory"), size),
        };
        vec![
            in_core,
            ran("superneurons", 24),
            ran("pooch/retain", 17),
            ran("swap-all/unscheduled", 64),
            ran("swap-all", 52),
            ran("swap-opt", 32),
        ]
    };
    [512, 768, 896].into_iter().flat_map(runs).collect()
}

#[test]
fn a_net_at_one_batch_is_drawn_by_the_size_of_its_input() {
    let files = report(&videos());
    let page = files.text("offload.html");
    page.has([
        "1 net (resnext101-3d)",
        "resnext101-3d at batch 1 on x86-pcie3 (12 GB/s, 14.95 GB)</strong>: Everything stays on the device up to input 512. \
         The largest input that fits is 896, the largest that was asked for: <strong>pooch/retain</strong> at 1.05 images/s, \
         5.88 % slower",
        "Of the 2 inputs that fit, but not in-core, pooch/retain is fastest at 2.",
        "figure 21 (speed by the size of the input at batch 1",
    ]);
    assert!(!page.contains("figure 17 ("), "{page}");
    let svg =
        files.text("plots/speed-by-input-size-resnext101-3d-at-batch-1-on-x86-pcie3-12-gb.s-14.95-gb.svg");
    svg.has(["pooch/retain, input 768: 1.23 images/s, 5.88 % lost", "input: height and width of the images"]);
    let speed = files.text("tables/offload-speed.csv");
    assert!(speed.starts_with("net,input,machine,copies_gb,capacity_gb,batch,scheduler,"), "{speed}");
    speed.has(["\nresnext101-3d,896,x86-pcie3,12,14.95,1,pooch/retain,"]);
}

#[test]
fn the_claims_of_figures_21_and_22_are_of_sizes_beyond_the_memory() {
    let files = report(&videos());
    let claims = files.text("tables/offload-claims.csv");
    let loss = "\nresnext101-3d,768 to 896,x86-pcie3,12,14.95,pooch-resnext101-3d-loss-x86,21,";
    let line = claims.split(loss).nth(1).expect("a line").lines().next().expect("its rest");
    assert!(line.ends_with(",pooch/retain,1,5.88 %,within"), "{line}");
    claims.has(["pooch-over-superneurons-resnext101-3d-x86,21,PoocH is faster than SuperNeurons,"]);
    let power9 = |row: ScheduleRow| {
        row.with(|row| (row.machine, row.copy_out, row.copy_in) = ("power9-nvlink2".to_owned(), 54e9, 54e9))
    };
    let rows: Vec<ScheduleRow> = videos().into_iter().map(power9).collect();
    let claims = [",pooch-resnext101-3d-loss-power9,22,", ",pooch-fastest-power9,16,"];
    report(&rows).has("tables/offload-claims.csv", claims);
}

#[test]
fn what_the_steps_gain_is_drawn_for_each_machine() {
    let mut rows = videos();
    let resnet50 = [("swap-all/unscheduled", 8_000), ("swap-all", 6_000), ("pooch/retain", 2_500)];
    rows.extend(resnet50.map(|(scheduler, ms)| row(scheduler, 512, [0, 105, 0], ms)));
    rows.extend(resnet50.map(|(scheduler, ms)| row(scheduler, 64, [0, 105, 0], ms)));
    let elsewhere = row("swap-all", 512, [0, 105, 0], 9);
    rows.push(elsewhere.with(|row| (row.cell, row.machine) = ("h".to_owned(), "h100-pcie5".to_owned())));
    let files = report(&rows);
    insta::assert_snapshot!(files.text("tables/offload-steps.csv"), @r"
    net,input,machine,copies_gb,capacity_gb,batch,scheduler,times,fits
    resnet50,,x86-pcie3,12,14.95,512,swap-all,1.333333333,yes
    resnet50,,x86-pcie3,12,14.95,512,pooch/retain,3.2,yes
    resnext101-3d,896,x86-pcie3,12,14.95,1,swap-all,1.230769231,yes
    resnext101-3d,896,x86-pcie3,12,14.95,1,swap-opt,2,yes
    resnext101-3d,896,x86-pcie3,12,14.95,1,pooch/retain,3.764705882,yes
    ");
    files.has(
        "plots/speed-over-swap-all.unscheduled-x86-pcie3-12-gb.s-14.95-gb.svg",
        ["resnet50, batch 512, pooch/retain: 3.20 times", ">resnext101-3d at batch 1<", ">896<"],
    );
    assert!(!files.keys().any(|name| name.starts_with("plots/speed-over") && name.contains("h100")));
    files.has("offload.html", ["figure 15 (speed over swap-all without scheduling"]);
}

/// The speeds of a scheduler, each with the name of its case.
fn speeds(rows: &[ScheduleRow]) -> Vec<String> {
    let files = report(rows);
    let speed = files.text("tables/offload-speed.csv");
    let header: Vec<&str> = speed.lines().next().expect("a header").split(',').collect();
    let column = |name: &str| header.iter().position(|column| *column == name);
    let line = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let of = |name| column(name).map_or("", |at| cells[at]);
        format!("{}|{}|{}", of("batch"), of("images_per_second"), of("variant"))
    };
    speed.lines().skip(1).map(line).collect()
}

#[test]
fn measured_times_and_machines_of_one_name_are_cases_of_their_own() {
    let other = |batch, ms| {
        row("pooch/retain", batch, [66, 8, 31], ms)
            .with(|row| (row.cell, row.problem) = ("other".to_owned(), "f".repeat(64)))
    };
    let times = Some("given".to_owned());
    let measured =
        other(512, 2_000).with(|row| (row.times, row.compute_ns, row.started_ns) = (times, 1, 9_999));
    let machine = other(256, 1_000).with(|row| row.rates_digest = Some("0123456789".to_owned()));
    for (other, expected) in [
        (measured, ["512|256|given times", "512|204.8|"]),
        (machine, ["256|256|machine 01234567", "512|204.8|machine abababab"]),
    ] {
        assert_eq!(speeds(&[row("pooch/retain", 512, [66, 8, 31], 2_500), other]), expected);
    }
}

#[test]
fn older_rows_join_the_only_machine_and_a_replaced_problem_does_not() {
    let old = |row: ScheduleRow| row.with(|row| (row.rates_digest, row.times) = (None, None));
    let rows = [
        old(row("pooch/retain", 128, [66, 8, 31], 500)),
        row("pooch/retain", 512, [66, 8, 31], 2_500),
        old(row("in-core", 512, [105, 0, 0], 1_000).with(|row| {
            row.cell = "old".to_owned();
            row.problem = "f".repeat(64);
            row.compute_ns = 1_000;
            row.started_ns = 0;
        })),
    ];
    assert_eq!(speeds(&rows), ["128|256|", "512|204.8|", "512|512|replaced problems"]);
    // With two machines the assignment is not possible.
    let other = row("pooch/retain", 64, [66, 8, 31], 500)
        .with(|row| (row.cell, row.rates_digest) = ("other".to_owned(), Some("c".repeat(64))));
    let rows = [rows[0].clone(), rows[1].clone(), other];
    assert_eq!(
        speeds(&rows),
        ["128|256|rows of an older version", "512|204.8|machine abababab", "64|128|machine cccccccc"]
    );
}

#[test]
fn narrower_limits_replace_no_wider_ones() {
    let wide = row("pooch/retain", 512, [66, 8, 31], 2_500)
        .with(|row| (row.wall_limit_ns, row.planner_wall_ns) = (Some(60_000_000_000), Some(2_000_000_000)));
    let narrow = wide.clone().with(|row| {
        row.cell = "narrow".to_owned();
        row.work_limit = Some(200);
        row.started_ns = 9_999;
        row.iteration_ns = Some(5_000_000_000);
    });
    let (one, two) = (wide.clone(), narrow.clone());
    assert_eq!(speeds(&[one, two]), ["512|204.8|"]);
    // If there are no wider limits, the page states the narrow ones.
    let alone = narrow.clone().with(|row| (row.batch, row.problem) = (640, "6".repeat(64)));
    let files = report(&[wide.clone(), alone]);
    let speed = files.text("tables/offload-speed.csv");
    speed.has([",yes,60.0 s; placed in 2.00 s,\n", ",yes,\"60.0 s, 200 simulated; placed in 2.00 s\",\n"]);
    let said = "1 of 2 runs had narrower limits than the others (batch 640; pooch/retain).";
    files.has("offload.html", [said]);
    // Another planner gives other answers on what fits.
    let best_fit = narrow.with(|row| row.planner = "best-fit".to_owned());
    assert_eq!(speeds(&[wide, best_fit]), ["512|102.4|placed by best-fit", "512|204.8|placed by portfolio"]);
}

#[test]
fn failures_over_two_links_differ() {
    let crash = without("checkpoints/chen", 512, Status::Crashed, "signal 11");
    let faster =
        crash.clone().with(|row| (row.cell, row.copy_out, row.copy_in) = ("fast".to_owned(), 16e9, 16e9));
    let lines = [",x86-pcie3,12,14.95,", ",x86-pcie3,16,14.95,"];
    report(&[crash, faster]).has("tables/offload-failures.csv", lines);
}

#[test]
fn batches_and_inputs_that_both_change_are_cases_by_what_changes_more() {
    let sized = |batch: u64, size: u64| {
        row("in-core", batch, [9, 0, 0], 100).with(|row| {
            row.cell = format!("{batch} {size}");
            row.workload = format!("model/unet/train/b{batch}/i{size}").as_str().into();
            row.problem = format!("{batch} {size}");
        })
    };
    let rows: Vec<ScheduleRow> =
        [1, 2, 4].into_iter().flat_map(|batch| [256, 512].map(|size| sized(batch, size))).collect();
    let said = ["unet at input 256 on x86-pcie3", "unet at input 512 on", "The largest batch that fits is 4"];
    report(&rows).has("offload.html", said);
}
