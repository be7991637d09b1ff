//! Writes every net of `planlab list models` as it is trained, a JSON object a line: what the example `check_schedules`
//! of `planlab-solvers` reads.
//!
//! ```sh
//! cargo run -p planlab-workloads --example training_nets -- 1 16 64 |
//!     cargo run -p planlab-solvers --example check_schedules -- 300
//! ```
//!
//! The arguments are the batches.

use std::error::Error;
use std::io::{Write, stdout};

use planlab_graph::{Function, FunctionKind, MapId, TrainingNet, Work};
use planlab_workloads::models::{Mode, Spec, models};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let batches: Vec<u64> = std::env::args().skip(1).map(|batch| batch.parse()).collect::<Result<_, _>>()?;
    let batches = if batches.is_empty() { vec![1, 16, 64] } else { batches };
    let mut out = stdout().lock();
    for model in models() {
        for &batch in &batches {
            let net = Spec::new(model, Mode::Train, batch).feature_maps()?;
            writeln!(out, "{}", written(&net))?;
        }
    }
    Ok(())
}

fn written(net: &TrainingNet) -> Value {
    json!({
        "name": net.name(),
        "batch": net.batch(),
        "parameters": net.parameters(),
        "maps": net.maps().iter().map(|map| json!([map.name, map.bytes.get()])).collect::<Vec<_>>(),
        "functions": net.functions().iter().map(function).collect::<Vec<_>>(),
    })
}

fn function(function: &Function) -> Value {
    let kind = match function.kind {
        FunctionKind::Convolution => "convolution",
        FunctionKind::FullyConnected => "fully-connected",
        FunctionKind::Add => "add",
        FunctionKind::Other => "other",
    };
    let places = |maps: &[MapId]| maps.iter().map(|map| map.index()).collect::<Vec<_>>();
    let work = |work: Work| json!([work.flops, work.bytes, work.launches]);
    json!({
        "name": function.name,
        "kind": kind,
        "inputs": places(&function.inputs),
        "output": function.output.index(),
        "needs": places(&function.needs),
        "forward": work(function.forward),
        "backward": work(function.backward),
    })
}
