//! `generate`, `import` and `export`.

use planlab_dsa::{BufferId, Instance, Plan, printable_line};
use planlab_graph::Playback;
use planlab_workloads::formats::import::{self, Dropped, Framework, Part};
use planlab_workloads::formats::{
    Dialect, IntoModelError, with_offline_plan, write_c_header, write_idealloc, write_minimalloc,
    write_offline_plan, write_perfetto, write_plan, write_plan_json, write_requests, write_schedule_perfetto,
    write_trace,
};
use planlab_workloads::{ReadOptions, Trace, synthetic};
use serde_json::{Value, json};

use super::arenas::ArenaSizes;
use crate::cli::{Choice, ExportArgs, ExportFormat, GenerateArgs, IDEALLOC, ImportArgs};
use crate::inputs::{self, Source};
use crate::shell::JSON_VERSION;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, merge_objects, print_note};
use crate::shell::quantity::format_memory;
use crate::shell::target::{Target, scratch_folder, tell_written};

pub(crate) fn generate_trace(args: &GenerateArgs, output: Output) -> Verdict {
    output.refuse_stdout("trace", &args.output)?;
    let parameters =
        args.parameters.iter().map(|text| parse_parameter(text)).collect::<Result<Vec<_>, _>>()?;
    let target = Target::open_argument(&args.output, [])?;
    let trace = synthetic::generate_trace(&args.family, &parameters)?;
    written_with((target, &args.output), &write_trace(&trace), &trace, &json!({}), output)
}

fn parse_parameter(text: &str) -> Result<(&str, &str), Failure> {
    text.split_once('=').ok_or_else(|| Failure::from_usage(format!("`{text}`: a parameter is KEY=VALUE")))
}

pub(crate) fn import_file(args: &ImportArgs, output: Output) -> Verdict {
    output.refuse_stdout("trace", &args.output)?;
    let format = args.format.as_deref();
    if args.dialect != Dialect::HalfOpen && format != Some(IDEALLOC) {
        return Err(Failure::from_usage(
            "--dialect is for idealloc; the other formats say what their columns mean",
        ));
    }
    if args.plan.as_deref() == Some("-") && args.output == "-" {
        return Err(Failure::from_usage("the trace and the plan cannot both go to stdout"));
    }
    let file = args.file.as_str();
    let target = Target::open_argument(&args.output, [file].into_iter().chain(args.plan.as_deref()))?;
    let open = |path| Ok::<_, Failure>((Target::open_argument(path, [file])?, path));
    let plan = args.plan.as_deref().map(open).transpose()?;
    let options = ReadOptions {
        dialect: args.dialect,
        alignment: inputs::parse_alignment(args.align)?,
        pins: args.pins,
        without_in_place: args.in_place != Choice::Yes,
        part: args.parts.part.clone(),
        dims: args.parts.dims.clone(),
        ..ReadOptions::default()
    };
    let mut imported = inputs::import_parts(&args.file, format.and_then(import::reader), options.clone())?;
    let dropped = std::mem::take(&mut imported.dropped);
    dropped.iter().for_each(|dropped| print_note(&dropped.to_string()));
    let part = imported.chosen_part(inputs::input_name(&args.file), &options)?;
    part.trace.notices.iter().for_each(|notice| print_note(notice));
    let permissions = part.trace.instance.in_place().len();
    if permissions > 0 {
        print_note(&format!(
            "{permissions} permissions to overwrite a buffer in place; --in-place no leaves them out"
        ));
    }
    let mut about = json!({
        "part": part.name,
        "permissions": permissions,
        "dropped": dropped.iter().map(dropped_object).collect::<Vec<Value>>(),
        "framework": part.framework.as_ref().map(framework_object),
    });
    if let Some((target, path)) = plan {
        about["plan"] = own_plan((target, path), &part, args.in_place == Choice::Yes)?;
    }
    written_with((target, &args.output), &write_trace(&part.trace), &part.trace, &about, output)
}

/// Writes the framework's own placement as a plan, and says what is in it.
fn own_plan((target, path): (Target, &str), part: &Part, in_place: bool) -> Result<Value, Failure> {
    let name = part.framework.as_ref().map_or("the file", |framework| framework.name);
    let says = part.framework.as_ref().is_some_and(|framework| !framework.placement.is_empty());
    let plan = part.own_plan().ok_or_else(|| {
        Failure::from_usage(match says {
            true => format!("{name} does not say where it put every buffer: there is no plan for {path}"),
            false => format!("{name} says of no buffer where it lies: there is no plan for {path}"),
        })
    })?;
    let bytes = write_plan(&part.trace, &plan);
    let refuse = |violation| {
        let says = format!("{name}'s own placement is not a valid plan: {violation}");
        match in_place {
            true => Failure::new(Exit::Invalid, says),
            false => Failure::from_usage(format!("without permissions, {says}; --in-place yes keeps them")),
        }
    };
    let height = part.trace.instance.verify(plan).map_err(refuse)?.height();
    target.write_all(&bytes)?;
    print_note(&format!("{path}: {name}'s own placement, height {}", format_memory(height.get())));
    Ok(json!({ "output": path, "height": height }))
}

/// What was left out, for programs.
pub(super) fn dropped_object(dropped: &Dropped) -> Value {
    json!({ "count": dropped.count, "what": dropped.what, "bytes": dropped.bytes, "why": dropped.why })
}

fn framework_object(framework: &Framework) -> Value {
    json!({
        "name": framework.name,
        "allocated_peak": framework.allocated_peak,
        "reserved_peak": framework.reserved_peak,
        "failures": framework.failures.len(),
    })
}

pub(crate) fn export_trace(args: &ExportArgs, output: Output) -> Verdict {
    if args.into.is_some() && args.format != ExportFormat::TfliteMicro {
        return Err(Failure::from_usage("--into is for tflite-micro"));
    }
    output.refuse_stdout(if args.plan.is_some() { "plan" } else { "trace" }, &args.output)?;
    let read = [Some(&args.trace), args.plan.as_ref(), args.into.as_ref()];
    let target = Target::open_argument(&args.output, read.into_iter().flatten().map(String::as_str))?;
    let scratch = scratch_folder()?;
    let source = Source::resolve_argument(&args.trace, &args.reading, scratch.path())?;
    if let Some(playback) = inputs::open_playback(&source)? {
        return export_schedule(args, &playback, target, output);
    }
    let mut imported = inputs::open_parts(&source)?;
    std::mem::take(&mut imported.dropped).iter().for_each(|dropped| print_note(&dropped.to_string()));
    let Part { trace, framework, .. } = imported.chosen_part(&source.name, &source.read_options()?)?;
    trace.notices.iter().for_each(|notice| print_note(notice));
    let plan = args.plan.as_ref().map(|plan| inputs::read_plan(plan, &trace)).transpose()?;
    if let (Some(plan), Some(file)) = (&plan, &args.plan) {
        check_hand_overs(args, &trace, (inputs::input_name(file), plan))?;
        // What leaves here with offsets is a plan that somebody will use.
        let refuse =
            |violation| Failure::new(Exit::Invalid, violation).in_file(inputs::input_name(file), None);
        trace.instance.verify(plan.clone()).map_err(refuse)?;
    }
    let bytes = match (args.format, &plan) {
        (ExportFormat::Lab, None) => write_trace(&trace),
        (ExportFormat::Lab, Some(plan)) => write_plan(&trace, plan),
        (ExportFormat::Minimalloc, None) => write_minimalloc(&trace)?,
        (ExportFormat::Idealloc, None) => write_idealloc(&trace)?,
        (ExportFormat::Idealloc, Some(_)) => {
            return Err(Failure::from_usage("idealloc's CSV cannot hold the offsets of a plan"));
        }
        (ExportFormat::Minimalloc, Some(plan)) => write_minimalloc(&pin_to_plan(&trace, plan)?)?,
        (ExportFormat::Perfetto, plan) => write_perfetto(&trace, plan.as_ref(), framework.as_ref()),
        (ExportFormat::PlanJson, Some(plan)) => write_plan_json(&trace, plan),
        (ExportFormat::TfliteMicro, Some(plan)) => offline_plan(args, &trace, plan)?,
        (ExportFormat::CHeader, Some(plan)) => write_c_header(&trace, plan, &args.prefix)?,
        (ExportFormat::Requests, Some(plan)) => write_requests(&trace, plan)?,
        (_, None) => {
            return Err(Failure::from_usage("this format is for plans: name the plan after the trace"));
        }
    };
    let hand_overs = plan.map_or(0, |plan| plan.in_place.len());
    written_with((target, &args.output), &bytes, &trace, &json!({ "hand_overs": hand_overs }), output)
}

/// Writes a schedule in the only format that holds one.
fn export_schedule(args: &ExportArgs, playback: &Playback, target: Target, output: Output) -> Verdict {
    let name = inputs::input_name(&args.trace);
    let refuse = |reason: &str| Err(Failure::from_usage(format!("{name}: {reason}")).in_file(name, None));
    if args.format != ExportFormat::Perfetto {
        return refuse("a schedule can be exported as `perfetto` alone");
    }
    if args.plan.is_some() || args.reading.is_said() {
        return refuse(
            "a schedule has its own offsets: it takes no plan, --align, --pins, --in-place, --part or --dim",
        );
    }
    let written = target.write_all(&write_schedule_perfetto(playback));
    if args.output == "-" {
        return written.map(|()| Exit::Complete);
    }
    let totals = playback.totals();
    let events = playback.schedule().numbered_events().count();
    let value = json!({
        "version": JSON_VERSION,
        "output": args.output,
        "events": events,
        "seconds": totals.seconds,
        "peak": totals.peak,
    });
    let text =
        format!("{events} events in {:.6} s, peak {}", totals.seconds, format_memory(totals.peak.get()));
    tell_written(written, &args.output, value, &text, output)
}

/// Refuses hand-overs unless they are asked for, where the format cannot say which buffer overwrites which, or where its
/// reader may not look: a kernel that is not safe in place would compute something else. Else says how many there are.
fn check_hand_overs(args: &ExportArgs, trace: &Trace, (file, plan): (&str, &Plan)) -> Result<(), Failure> {
    let Some(first) = plan.in_place.first() else { return Ok(()) };
    let says_so = matches!(args.format, ExportFormat::Lab | ExportFormat::PlanJson | ExportFormat::Perfetto);
    let is_asked = args.reading.in_place.map_or(says_so, |choice| choice == Choice::Yes);
    let count = plan.in_place.len();
    if !is_asked {
        let name = |id: BufferId| printable_line(&trace.labels.buffers[id.index()].name);
        return Err(Failure::from_usage(format!(
            "{file}: {count} buffers take the place of one that is still live (`{}` overwrites `{}`), which only kernels that \
             are safe in place allow: plan with --in-place no, or export with --in-place yes",
            name(first.output),
            name(first.input)
        ))
        .in_file(file, None));
    }
    print_note(&format!(
        "{count} buffers take the place of one that is still live: their kernels must be safe in place"
    ));
    Ok(())
}

/// The words of an offline plan, or the model that `--into` names with them.
fn offline_plan(args: &ExportArgs, trace: &Trace, plan: &Plan) -> Result<Vec<u8>, Failure> {
    let Some(file) = &args.into else { return Ok(write_offline_plan(trace, plan)?) };
    let (name, model) = (inputs::input_name(file), inputs::read_file_bytes(file)?);
    with_offline_plan(name, &model, trace, plan, inputs::input_limits()).map_err(|error| match error {
        IntoModelError::Other { .. } => Failure::from_usage(&error).in_file(name, None),
        error => error.into(),
    })
}

/// The trace with every buffer pinned where the plan has it: what MiniMalloc's format calls a solution.
fn pin_to_plan(trace: &Trace, plan: &Plan) -> Result<Trace, Failure> {
    let instance = &trace.instance;
    let pinned = instance.buffers().iter().zip(&plan.offsets).map(|(b, &offset)| b.clone().with_pin(offset));
    let pinned = Instance::builder()
        .buffers(pinned)
        .in_place(instance.in_place().iter().copied())
        .arenas(instance.arenas().iter().cloned())
        .apart(instance.keep_apart_pairs().iter().copied())
        .build()?;
    Ok(Trace::new(pinned, trace.labels.clone()))
}

/// Writes a file, and says what is in it; `about` has more for programs.
fn written_with(
    (target, path): (Target, &str),
    bytes: &[u8],
    trace: &Trace,
    about: &Value,
    output: Output,
) -> Verdict {
    let written = target.write_all(bytes);
    if path == "-" {
        return written.map(|()| Exit::Complete);
    }
    let (buffers, load) = (trace.instance.len(), trace.instance.load().bytes);
    let arenas = ArenaSizes::from_instance(&trace.instance);
    let value = json!({
        "version": JSON_VERSION,
        "output": path,
        "buffers": buffers,
        "load": load,
        "optimum": trace.known_optimum(),
        "digest": trace.instance.digest(),
        "arenas": arenas.arena_objects(None),
    });
    let text = format!("{buffers} buffers, load {}{}", format_memory(load.get()), arenas.sum_remark());
    tell_written(written, path, merge_objects(value, about), &text, output)
}
