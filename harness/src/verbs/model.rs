//! `model`: writes the trace or the graph of a net, or prints its figures.

use planlab_graph::{write_dot, write_jsonl};
use planlab_workloads::formats::write_trace;
use planlab_workloads::models::{Mode, Spec};
use serde_json::{Value, json};

use crate::cli::{Emit, ModelArgs};
use crate::inputs::network::{Network, parse_spec};
use crate::shell::JSON_VERSION;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::Output;
use crate::shell::quantity::format_memory;
use crate::shell::target::{Target, tell_written};

pub(crate) fn run(args: &ModelArgs, output: Output) -> Verdict {
    let spec = parse_spec(&args.net, &args.shape, args.batch)?;
    let Some(path) = &args.output else { return print_figures(&spec, output) };
    output.refuse_stdout("model", path)?;
    let target = Target::open_argument(path, [])?;
    let (bytes, text, mut value) = model_output(&spec, args.emit.unwrap_or(Emit::Trace))?;
    let written = target.write_all(&bytes);
    if path == "-" {
        return written.map(|()| Exit::Complete);
    }
    value["version"] = json!(JSON_VERSION);
    value["workload"] = json!(spec.to_string());
    tell_written(written, path, value, &text, output)
}

/// The content to write, and its description.
fn model_output(spec: &Spec, emit: Emit) -> Result<(Vec<u8>, String, Value), Failure> {
    if emit == Emit::Trace {
        let trace = spec.build_trace()?;
        let (buffers, load) = (trace.instance.len(), trace.instance.load().bytes);
        let value = json!({ "buffers": buffers, "load": load, "digest": trace.instance.digest() });
        return Ok((
            write_trace(&trace),
            format!("{buffers} buffers, load {}", format_memory(load.get())),
            value,
        ));
    }
    Network::Net(*spec).refuse_requests("--emit")?;
    if emit == Emit::TrainingNet {
        if spec.mode != Mode::Train {
            return Err(Failure::from_usage(
                "a training net is for training; inference keeps no feature maps",
            ));
        }
        let net = spec.feature_maps()?;
        let (maps, functions) = (net.maps().len(), net.functions().len());
        let value = json!({ "maps": maps, "functions": functions });
        return Ok((net.write_jsonl().into_bytes(), format!("{maps} maps, {functions} functions"), value));
    }
    let graph = spec.build_graph()?;
    let (operations, tensors) = (graph.operations().len(), graph.tensors().len());
    let text = match emit {
        Emit::Dot => write_dot(&graph, &graph.operation_order())?,
        Emit::Graph | Emit::Trace | Emit::TrainingNet => write_jsonl(&graph),
    };
    let value = json!({ "operations": operations, "tensors": tensors });
    Ok((text.into_bytes(), format!("{operations} operations, {tensors} tensors"), value))
}

fn print_figures(spec: &Spec, output: Output) -> Verdict {
    let (parameters, flops) = (spec.parameter_count()?, spec.count_flops()?);
    let one = Spec::new(spec.net, Mode::Infer, 1).count_flops()?;
    let (graph, trace) = (spec.build_graph()?, spec.build_trace()?);
    let published = &spec.net.published;
    let instance = &trace.instance;
    let value = json!({
        "version": JSON_VERSION,
        "workload": spec.to_string(),
        "description": spec.describe(),
        "input": spec.net.input.to_string(),
        "parameters": parameters,
        "parameters_published": published.parameters,
        "flops": flops,
        "flops_of_one_input": one,
        "flops_published": published.flops,
        "source": published.source,
        "differs": published.differs,
        "operations": graph.operations().len(),
        "tensors": graph.tensors().len(),
        "buffers": instance.len(),
        "bytes": instance.total_size(),
        "load": instance.load().bytes,
        "load_without_in_place": instance.load_without_in_place().bytes,
        "digest": instance.digest(),
    });
    let beside = |ours: u64, theirs: Option<u64>| match theirs {
        Some(theirs) => format!("{ours} (published: {theirs})"),
        None => ours.to_string(),
    };
    let load = instance.load().bytes;
    let lines = [
        ("workload", spec.to_string()),
        ("net", spec.describe()),
        ("input", spec.net.input.to_string()),
        ("parameters", beside(parameters, published.parameters)),
        ("flops", flops.to_string()),
        ("one input", format!("{} flops forward", beside(one, published.flops))),
        ("operations", graph.operations().len().to_string()),
        ("buffers", instance.len().to_string()),
        ("bytes", instance.total_size().to_string()),
        ("load", format!("{load} ({} without in-place)", instance.load_without_in_place().bytes)),
        ("differs", published.differs.to_owned()),
    ];
    let told = lines.iter().filter(|(_, text)| !text.is_empty());
    let text: String = told.map(|(name, text)| format!("{name:<10}  {text}\n")).collect();
    output.print_result(&value, text, Exit::Complete)
}
