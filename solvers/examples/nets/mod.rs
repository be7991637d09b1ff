//! Reads the nets that the example `training_nets` of `planlab-workloads` writes, a JSON object a line.

use std::error::Error;
use std::io::BufRead;

use planlab_dsa::Bytes;
use planlab_graph::{FeatureMap, Function, FunctionKind, MapId, TrainingNet, Work};
use serde::Deserialize;

/// The nets of some lines; an error names the line.
pub(crate) fn read(lines: impl BufRead) -> impl Iterator<Item = Result<TrainingNet, Box<dyn Error>>> {
    (1..).zip(lines.lines()).map(|(number, line)| {
        let read = |line: String| serde_json::from_str::<RawNet>(&line)?.net();
        let net = line.map_err(Into::into).and_then(read);
        net.map_err(|error| format!("stdin:{number}: {error}").into())
    })
}

#[derive(Deserialize)]
struct RawNet {
    name: String,
    batch: u64,
    parameters: u64,
    maps: Vec<(String, u64)>,
    functions: Vec<RawFunction>,
}

#[derive(Deserialize)]
struct RawFunction {
    name: String,
    kind: String,
    inputs: Vec<usize>,
    output: usize,
    needs: Vec<usize>,
    forward: (f64, f64, u32),
    backward: (f64, f64, u32),
}

impl RawNet {
    fn net(self) -> Result<TrainingNet, Box<dyn Error>> {
        let map = |(name, bytes)| FeatureMap { name, bytes: Bytes::new(bytes) };
        let maps = self.maps.into_iter().map(map).collect();
        let functions = self.functions.into_iter().map(function).collect::<Result<_, _>>()?;
        Ok(TrainingNet::new(self.name, self.batch, self.parameters, maps, functions)?)
    }
}

fn function(raw: RawFunction) -> Result<Function, String> {
    let kind = match &raw.kind[..] {
        "convolution" => FunctionKind::Convolution,
        "fully-connected" => FunctionKind::FullyConnected,
        "add" => FunctionKind::Add,
        "other" => FunctionKind::Other,
        kind => return Err(format!("function `{}` is of unknown kind `{kind}`", raw.name)),
    };
    let ids = |places: Vec<usize>| places.into_iter().map(MapId::from_index).collect();
    let work = |(flops, bytes, launches)| Work { flops, bytes, launches };
    Ok(Function {
        name: raw.name,
        kind,
        inputs: ids(raw.inputs),
        output: MapId::from_index(raw.output),
        needs: ids(raw.needs),
        forward: work(raw.forward),
        backward: work(raw.backward),
    })
}
