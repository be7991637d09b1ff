//! `show` and `report`: draw pictures and write reports.

use std::collections::{BTreeMap, BTreeSet};

use planlab_dsa::{Descriptor, VerifiedPlan};
use planlab_reports::{
    Drawing, KnownNets, KnownPlanner, MapOptions, PoolTotal, PoolTotals, Report, ReportOptions,
    load_curve_plot, placement_map,
};
use planlab_results::audit::{Fault, Finding};
use planlab_results::replay::{ReplayRow, read_rows};
use planlab_results::{keeps_plans, missing_shards};
use planlab_workloads::formats::import::Part;
use planlab_workloads::process::{self, Process};
use planlab_workloads::{Trace, expected, recorded};
use serde_json::json;

use super::arenas::ArenaSizes;
use super::{page, schedule_page};
use crate::cli::{Optimizer, ReportArgs, ShowArgs};
use crate::inputs::network::{self, Network};
use crate::inputs::{self, Source};
use crate::kinds::external;
use crate::kinds::placement::planners;
use crate::shell::JSON_VERSION;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, print_note};
use crate::shell::target::{Target, scratch_folder, tell_written};

/// The most arenas of a picture or a page: each has a map of its own.
const MOST_ARENAS: usize = 64;

/// What `show` writes: a picture of one plan, or a page of several to zoom and search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Picture {
    Svg,
    Png,
    Html,
}

/// Shows what the first argument names: a trace with plans of it, or schedules.
pub(crate) fn show_argument(args: &ShowArgs, output: Output) -> Verdict {
    let read = std::iter::once(&args.trace).chain(&args.plans).map(String::as_str);
    let target = Target::open_file(&args.output, read)?;
    let scratch = scratch_folder()?;
    let source = Source::resolve_argument(&args.trace, &args.reading, scratch.path())?;
    match inputs::open_playback(&source)? {
        Some(playback) => schedule_page::show_schedules(args, playback, target, output),
        None => show_trace(args, &source, target, output),
    }
}

fn show_trace(args: &ShowArgs, source: &Source, target: Target, output: Output) -> Verdict {
    let kind = picture_kind(args)?;
    let path = args.output.display().to_string();
    let mut imported = inputs::open_parts(source)?;
    std::mem::take(&mut imported.dropped).iter().for_each(|dropped| print_note(&dropped.to_string()));
    let Part { trace, framework, .. } = imported.chosen_part(&source.name, &source.read_options()?)?;
    trace.notices.iter().for_each(|notice| print_note(notice));
    if trace.instance.arenas().len() > MOST_ARENAS {
        let arenas = trace.instance.arenas().len();
        let reason =
            format!("{} has {arenas} arenas, and a picture shows at most {MOST_ARENAS}", source.name);
        return Err(Failure::from_usage(reason));
    }
    let plans =
        args.plans.iter().map(|file| complete_plan(file, &trace)).collect::<Result<Vec<_>, Failure>>()?;
    let first = plans.first();
    let bytes = match kind {
        Picture::Svg => draw_picture(&trace, first, &source.name, args.size).to_svg()?.into_bytes(),
        Picture::Png => draw_picture(&trace, first, &source.name, args.size).to_png()?,
        Picture::Html => {
            let framework = framework.unwrap_or_default();
            let page = page::framework_page(&source.name, &trace, &framework);
            let named = args.plans.iter().zip(&plans);
            named
                .fold(page, |page, (file, plan)| page.with_plan(inputs::input_name(file), plan))
                .to_html()?
                .into_bytes()
        }
    };
    let written = target.write_all(&bytes);
    let heights = first.map(VerifiedPlan::arena_heights);
    let arenas = ArenaSizes::from_instance(&trace.instance).arena_objects(heights.as_deref());
    let value = json!({ "version": JSON_VERSION, "output": path, "bytes": bytes.len(), "arenas": arenas });
    tell_written(written, &path, value, &format!("{} bytes", bytes.len()), output)
}

fn complete_plan<'t>(file: &str, trace: &'t Trace) -> Result<VerifiedPlan<'t>, Failure> {
    let refuse = |violation| Failure::new(Exit::Invalid, violation).in_file(inputs::input_name(file), None);
    trace.instance.verify(inputs::read_plan(file, trace)?).map_err(refuse)
}

fn picture_kind(args: &ShowArgs) -> Result<Picture, Failure> {
    let kind = args.output.extension().and_then(|end| end.to_str());
    match kind {
        Some("svg" | "png") if args.plans.len() > 1 => {
            Err(Failure::from_usage("a picture shows one plan; a page (.html) shows any number"))
        }
        Some("svg" | "png") if args.size.is_some() && args.plans.is_empty() => {
            Err(Failure::from_usage("--size needs a plan; a load curve has a fixed size"))
        }
        Some("html") if args.size.is_some() => {
            Err(Failure::from_usage("--size needs a picture (.svg, .png); a page (.html) fits its window"))
        }
        _ if args.capacity.is_some() || args.net.is_some() => {
            Err(Failure::from_usage("--capacity and --net are for schedules; a trace has its own"))
        }
        Some("svg") => Ok(Picture::Svg),
        Some("png") => Ok(Picture::Png),
        Some("html") => Ok(Picture::Html),
        _ => Err(Failure::from_usage(format!(
            "{}: a picture ends in .svg, .png or .html",
            args.output.display()
        ))),
    }
}

/// A plan's placement map, or a trace's load curve.
fn draw_picture(
    trace: &Trace,
    plan: Option<&VerifiedPlan<'_>>,
    name: &str,
    size: Option<(u32, u32)>,
) -> Drawing {
    match plan {
        Some(_) => {
            let mut options = MapOptions::default().with_title(name);
            if let Some((width, height)) = size {
                options = options.with_size(width, height);
            }
            placement_map(&trace.instance, &trace.labels, plan, &options)
        }
        None => load_curve_plot(&trace.instance, None),
    }
}

pub(crate) fn write_report(args: &ReportArgs, output: Output) -> Verdict {
    let folder = Report::open_folder(&args.output, &args.results)?;
    let (results, pages) = (args.results.display().to_string(), args.output.display().to_string());
    let mut options = ReportOptions::default();
    options.command = format!("planlab report {results} -o {pages}");
    options.maps = args.maps;
    options.totals = pool_totals(&read_rows(&args.results)?);
    options.nets = KnownNets { kept_bytes, draw: network::draw_net };
    options.planners = known_planners();
    let report = Report::from_store(&args.results, options)?;
    let written = report.write_into(folder)?;
    let missing = missing_shards(&args.results)?;
    let value = json!({
        "version": JSON_VERSION,
        "output": pages,
        "pages": written.pages,
        "files": written.files,
        "findings": report.audit_findings().len(),
        "missing": missing,
    });
    let text = format!("{pages}/index.html: {} pages, {} files\n", written.pages, written.files);
    output.print_either(&value, text)?;
    let is_whole = tell_lost(report.audit_findings(), keeps_plans(&args.results));
    Ok(crate::inputs::records::exit_with(Exit::Complete, is_whole))
}

/// What the registry and `planners.toml` know of each planner, by key.
fn known_planners() -> BTreeMap<String, KnownPlanner> {
    let known = |d: Descriptor| {
        let planner = KnownPlanner {
            summary: d.summary.into_owned(),
            kind: planlab_solvers::family(&d.key).unwrap_or_default().to_owned(),
            guarantee: d.guarantee.to_string(),
            complexity: d.complexity.to_owned(),
            reference: d.reference.to_owned(),
        };
        (d.key.into_owned(), planner)
    };
    let external = external::entries().iter().map(external::descriptor);
    planners::descriptors().into_iter().chain(external).map(known).collect()
}

/// Reports what a report lacks: each loss of rows, and the number of missing instances and plans. Returns whether it is
/// complete; curated records have only rows.
fn tell_lost(findings: &[Finding], keeps_plans: bool) -> bool {
    let of_rows: Vec<&Finding> = findings.iter().filter(|finding| finding.is_loss_of_rows()).collect();
    of_rows.iter().for_each(|finding| print_note(&finding.to_string()));
    let files = findings.iter().filter(|finding| finding.fault == Fault::MissingFile).count();
    if files > 0 {
        print_note(&format!(
            "{files} instances and plans that rows name cannot be read and have no pictures: `planlab audit` names them"
        ));
    }
    of_rows.is_empty() && (files == 0 || !keeps_plans)
}

/// The bytes that a net keeps beside a plan, in training with a momentum.
fn kept_bytes(key: &str) -> Option<u64> {
    Network::Net(key.parse().ok()?).kept_bytes(Optimizer::Momentum.states_per_parameter()).ok()
}

/// Known totals of the recorded nets. For the paper's nets: the retained part, the sum of all requests, and what the
/// framework's own pool held and the time it took. For PyTorch's: what it reserved.
fn pool_totals(replays: &[ReplayRow]) -> PoolTotals {
    let known = expected::expected_figures();
    let total = |row: &expected::Propagation| PoolTotal {
        parameters: Some(expected::retained_bytes(&row.key).unwrap_or(row.parameters).get()),
        network_wise: Some(row.sum.get()),
        pool: Some(row.cupy2_pool.get()),
        process_pool: known.process_of(&row.key).map(|process| process.cupy2_pool_total.get()),
        ..PoolTotal::default()
    };
    let mut totals: PoolTotals = known.propagation.iter().map(|row| (row.key.clone(), total(row))).collect();
    for cost in expected::pool_costs() {
        let total = totals.entry(cost.key.clone()).or_default();
        (total.pool_ns, total.plan_ns) = (nanoseconds(cost.pool_ms), nanoseconds(cost.plan_ms));
    }
    let played = replays.iter().filter(|row| row.contender == "pytorch-caching");
    let keys: BTreeSet<&str> = played.map(|row| row.workload.as_str()).collect();
    for key in keys {
        let Some(trace) = recorded::recorded(key).and_then(|trace| trace.read_trace().ok()) else { continue };
        let total = totals.entry(key.to_owned()).or_default();
        let bytes = |name: &str| trace.labels.meta_value(name).and_then(|value| value.parse().ok());
        total.torch_reserved = bytes("torch-reserved-peak-bytes");
        total.torch_allocated = bytes("torch-alloc-peak-bytes");
        let iterations = process::iterations(&trace);
        (total.torch_iterations, total.torch_iterations_differ) = (iterations.marked, iterations.differ);
        total.torch_tied_head = Process::from_pid(&trace).is_ok_and(|process| process.has_tied_head());
    }
    totals
}

/// Converts milliseconds with two decimals; `None` if the result is 0.
fn nanoseconds(milliseconds: f64) -> Option<u64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and small")]
    let nanoseconds = (milliseconds * 1e6).round() as u64;
    (nanoseconds > 0).then_some(nanoseconds)
}
