//! The page on unmodified programs: a framework's propagation with planlab, and with the allocators of processes.

use planlab_results::framework::PLANLAB;
use planlab_results::statistics::median;
use planlab_results::table::{CellValue, Table, columns};

use crate::data::frameworks::{Case, Frameworks, GLIBC, Group, Ratios, Run};
use crate::figures::Drawing;
use crate::figures::chart::Entry;
use crate::figures::coord::{Axis, whole};
use crate::figures::plots::bars::{Bars, Dot, Slot};
use crate::format::{as_real, format_bytes, format_nanoseconds, format_percent};
use crate::site::Site;
use crate::site::page::{Menu, Page, Piece};

/// The page; `None` without rows of allocators.
pub(crate) fn page(site: &Site<'_>) -> Option<Page> {
    let frameworks = site.frameworks;
    if frameworks.groups.is_empty() && frameworks.failures.is_empty() {
        return None;
    }
    let mut pieces = vec![Piece::note(
        "An unchanged framework, in a process of its own for each contender: `planlab run` against the \
         allocators that a process can load, some with an expert's settings (/keep: they never return memory). \
         Times are medians of the propagations after a warm-up. CPU time covers all threads, planning included. \
         Steady memory is the peak resident memory during these propagations, with the program, its libraries \
         and the weights.",
    )];
    pieces.push(equality_piece(frameworks));
    pieces.extend(failure_piece(frameworks));
    for group in &frameworks.groups {
        pieces.extend(group_findings(group).map(Piece::text));
    }
    pieces.extend([Piece::heading("Ours over each contender"), Piece::Table(mean_table(frameworks))]);
    for group in &frameworks.groups {
        pieces.extend(group_figures(group));
    }
    pieces.extend([Piece::heading("All rows"), Piece::Table(row_table(frameworks))]);
    let page = Page::new("frameworks.html", "Frameworks on a plan")
        .in_menu(Menu::Allocators, "What do frameworks gain from a plan?");
    Some(page.with(pieces))
}

/// Whether every contender computed the same.
fn equality_piece(frameworks: &Frameworks) -> Piece {
    if frameworks.unequal.is_empty() {
        return Piece::fine(
            "Under every contender each net puts out the same, bit by bit; in training all losses and weights are the same.",
        );
    }
    let several = "A result depends on who served the memory, or a net is not deterministic";
    Piece::alert(format!("{several}: {}.", frameworks.unequal.join("; ")))
}

fn failure_piece(frameworks: &Frameworks) -> Option<Piece> {
    let told = frameworks.failures.iter().map(|row| {
        let (net, reason) = (&row.net, &row.reason);
        format!("{} {net} {} b{}, {}: {reason}", row.framework, row.mode, row.batch, row.contender)
    });
    let told: Vec<String> = told.collect();
    let text = || format!("{} rows have no figures: {}.", told.len(), told.join("; "));
    (!told.is_empty()).then(|| Piece::alert(text()))
}

fn group_findings(group: &Group) -> Option<String> {
    let mut text = format!("{}:", group.conditions.name());
    let over_glibc =
        |of: fn(&Case, &Run) -> Option<f64>| group.ratios_of(|case: &Case| of(case, case.run_of(GLIBC)?));
    let over_best = group.ratios_of(|case| case.speed_over(case.fastest_other()?));
    let best = over_best?;
    if let Some(ratios) = over_glibc(Case::speed_over) {
        text += &format!(" {},", over_glibc_in_words(&ratios));
    }
    let (least, net) = &best.least;
    let rival = group.cases.iter().find(|case| case.net == *net).and_then(Case::fastest_other);
    let rival = rival.map_or("", |run| run.series.label.as_str());
    text += &format!(
        " {:.2} times as fast as the fastest of the others on each net (least {least:.2}: {net}, {rival}).",
        best.mean
    );
    if let Some(ratios) = over_glibc(Case::memory_over) {
        text += &format!(" Steady memory: {} of glibc's", format_percent(ratios.mean));
        if let Some(least) = group.ratios_of(|case| case.memory_over(case.smallest_other()?)) {
            let (most, net) = least.most;
            let mean = format_percent(least.mean);
            text += &format!(
                ", {mean} of that of the smallest of the others on each net (at most {}: {net})",
                format_percent(most)
            );
        }
        text += ".";
    }
    Some(text)
}

fn over_glibc_in_words(ratios: &Ratios) -> String {
    let (least, net) = &ratios.least;
    match ratios.nets {
        1 => format!("{:.2} times as fast as glibc ({net} alone)", ratios.mean),
        nets => format!(
            "{:.2} times as fast as glibc (geometric mean of {nets} nets, least {least:.2}: {net})",
            ratios.mean
        ),
    }
}

fn mean_table<'f>(frameworks: &'f Frameworks) -> Table {
    let rivals = |group: &'f Group| {
        let rivals = group.contenders().into_iter().filter(|contender| contender.label != PLANLAB);
        rivals.filter_map(move |contender| {
            let speed = group.ratios_of(|case| case.speed_over(case.run_of(&contender.label)?))?;
            Some((group, &*contender.label, speed))
        })
    };
    Table::from_rows(
        "frameworks-means",
        "Geometric means over the nets that both ran. Speed: the contender's time over ours; above 1 ours is \
         faster. Memory: ours over the contender's in the steady state; below 100 % ours holds less. Faults: page \
         faults of a propagation of the contender and of ours, medians over the nets.",
        frameworks.groups.iter().flat_map(rivals),
        columns!(|(group, contender, speed)| {
            let conditions = &group.conditions;
            let wall = group.ratios_of(|case| case.wall_speed_over(case.run_of(contender)?));
            let memory = group.ratios_of(|case| case.memory_over(case.run_of(contender)?));
            let middle = |contender: &str| CellValue::or_missing(middle_faults(group, contender).map(faults));
            [
                ("framework", "Framework", CellValue::text(&conditions.framework)),
                ("mode", "Mode", CellValue::text(&conditions.mode)),
                ("batch", "Batch", CellValue::Count(conditions.batch)),
                ("threads", "Threads", CellValue::Count(u64::from(conditions.threads))),
                ("machine", "Machine", CellValue::text(&conditions.machine)),
                ("contender", "Against", CellValue::text(contender)),
                ("nets", "Nets", CellValue::count(speed.nets)),
                ("cpu_speed", "Speed, CPU time", CellValue::Number(speed.mean)),
                ("cpu_speed_least", "least", CellValue::Number(speed.least.0)),
                ("cpu_speed_most", "most", CellValue::Number(speed.most.0)),
                ("wall_speed", "Speed, wall time", CellValue::number(wall.map(|ratios| ratios.mean))),
                ("memory_share", "Memory", CellValue::share(memory.as_ref().map(|ratios| ratios.mean))),
                ("memory_share_most", "most", CellValue::share(memory.as_ref().map(|ratios| ratios.most.0))),
                ("faults", "Faults", middle(contender)),
                ("our_faults", "ours", middle(PLANLAB)),
            ]
        }),
    )
}

fn middle_faults(group: &Group, contender: &str) -> Option<f64> {
    let of = |case: &Case| Some(case.run_of(contender)?.faults.median);
    median(&group.cases.iter().filter_map(of).collect::<Vec<f64>>())
}

/// A count that may lie between two whole numbers.
fn faults(number: f64) -> CellValue {
    CellValue::Count(whole(number.round()))
}

/// CPU time and steady memory of every contender divided by glibc's, net by net.
fn group_figures(group: &Group) -> Vec<Piece> {
    let name = group.conditions.name();
    let time = |run: &Run, glibc: &Run| {
        let over = |time: f64| time / glibc.cpu.median.max(1.0);
        let tip = format!("{} of CPU time", format_nanoseconds(run.cpu.median));
        Some((over(run.cpu.median), Some((over(run.cpu.low), over(run.cpu.high))), tip))
    };
    let memory = |run: &Run, glibc: &Run| {
        let steady = run.steady?;
        Some((as_real(steady) / as_real(glibc.steady?.max(1)), None, format_bytes(steady)))
    };
    let time = plot_group(group, format!("CPU time of a propagation: {name}"), "of glibc's CPU time", &time);
    let memory = plot_group(group, format!("Steady memory: {name}"), "of glibc's memory", &memory);
    let of_time =
        "The median of the propagations, and where the middle half of them lies, over glibc's median.";
    let of_memory = "The most that was resident after the warm-up, over what glibc held.";
    let figures = [(time, of_time), (memory, of_memory)];
    figures.into_iter().filter_map(|(drawing, caption)| Some(Piece::figure(drawing?, caption))).collect()
}

/// A value of a run divided by glibc's, the range of the middle half, and the tooltip.
type Dotted = (f64, Option<(f64, f64)>, String);

fn plot_group(
    group: &Group,
    title: String,
    axis: &str,
    value: &dyn Fn(&Run, &Run) -> Option<Dotted>,
) -> Option<Drawing> {
    let slots: Vec<Slot> = group.cases.iter().filter_map(|case| case_slot(case, value)).collect();
    let ends =
        slots.iter().flat_map(|slot| &slot.dots).map(|dot| dot.interval.map_or(dot.value, |(_, high)| high));
    let most = ends.max_by(f64::total_cmp)?;
    let entries: Vec<Entry> = group.contenders().into_iter().map(Entry::from_series).collect();
    Some(Bars::new(title, Axis::shares(axis, most * 1.05), slots, entries).plot_slots())
}

/// `None` without glibc, the reference of all values.
fn case_slot(case: &Case, value: &dyn Fn(&Run, &Run) -> Option<Dotted>) -> Option<Slot> {
    let glibc = case.run_of(GLIBC)?;
    let dot = |run: &Run| {
        let (value, interval, told) = value(run, glibc)?;
        let tip = format!("{}: {}: {told}", case.net, run.series.label);
        Some(Dot { series: run.series.clone(), value, interval, tip })
    };
    let dots = case.runs.iter().filter_map(dot).collect();
    Some(Slot { group: case.net.clone(), dots, ..Slot::default() })
}

fn row_table<'f>(frameworks: &'f Frameworks) -> Table {
    let runs = |group: &'f Group| {
        group.cases.iter().flat_map(move |case| case.runs.iter().map(move |run| (group, case, run)))
    };
    Table::from_rows(
        "frameworks",
        "Every contender on every net. Times and faults of a propagation are medians, with quartiles of the CPU time. \
         Before: resident before the first propagation; ever: the peak of the whole process. Planned: the share \
         of the process's large requests that a plan served, warm-up included. Planning runs on a second \
         thread; height is that of the highest plan. Speed and memory: as above.",
        frameworks.groups.iter().flat_map(runs),
        columns!(|(group, case, run)| {
            let conditions = &group.conditions;
            let row = &run.row;
            let planned = row.requests.zip(row.planned).filter(|(requests, _)| *requests > 0);
            let planned = planned.map(|(all, own)| as_real(own) / as_real(all));
            let is_other = case.our_run().is_some_and(|ours| ours.series != run.series);
            let our_speed = case.speed_over(run).filter(|_| is_other);
            let our_memory = case.memory_over(run).filter(|_| is_other);
            let first_ns = row.first_wall_ns.map(as_real);
            [
                ("framework", "Framework", CellValue::text(&conditions.framework)),
                ("net", "Net", CellValue::text(&case.net)),
                ("mode", "Mode", CellValue::text(&conditions.mode)),
                ("batch", "Batch", CellValue::Count(conditions.batch)),
                ("threads", "Threads", CellValue::Count(u64::from(conditions.threads))),
                ("machine", "Machine", CellValue::text(&conditions.machine)),
                ("contender", "Contender", CellValue::text(&run.series.label)),
                ("processes", "Processes", CellValue::count(run.processes)),
                ("cpu_ns", "CPU time", CellValue::Nanoseconds(run.cpu.median)),
                ("cpu_low_ns", "from", CellValue::Nanoseconds(run.cpu.low)),
                ("cpu_high_ns", "to", CellValue::Nanoseconds(run.cpu.high)),
                ("wall_ns", "Wall time", CellValue::Nanoseconds(run.wall.median)),
                ("cpu_speed", "Ours: speed", CellValue::number(our_speed)),
                ("faults", "Faults", faults(run.faults.median)),
                ("first_wall_ns", "First propagation", CellValue::nanoseconds(first_ns)),
                ("before_bytes", "Before", CellValue::bytes(row.resident_before)),
                ("steady_bytes", "Steady", CellValue::bytes(run.steady)),
                ("peak_bytes", "ever", CellValue::bytes(run.peak)),
                ("memory_share", "Ours: memory", CellValue::share(our_memory)),
                ("planned_share", "Planned", CellValue::share(planned)),
                ("plans", "Plans", CellValue::or_missing(row.plans.map(CellValue::Count))),
                ("planning_ns", "Planning", CellValue::nanoseconds(row.planning_ns.map(as_real))),
                ("height_bytes", "Height", CellValue::bytes(row.plan_height)),
                ("load_bytes", "Load", CellValue::bytes(row.plan_load)),
            ]
        }),
    )
}
