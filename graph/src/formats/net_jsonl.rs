//! Training net JSON Lines: a header object, then one object per feature map, then one per function.
//!
//! ```text
//! {"planlab":"training-net","version":1,"name":"mine","batch":32,"parameters":1000}
//! {"map":0,"name":"image","bytes":64}
//! {"map":1,"name":"conv","bytes":128,"add_seconds":0.0001}
//! {"function":0,"name":"conv","kind":"convolution","inputs":[0],"output":1,"needs":[0],"forward":{"flops":1e9,"bytes":4e6,"launches":1},"backward":{"flops":2e9,"bytes":8e6,"launches":2}}
//! {"function":1,"name":"loss","kind":"other","inputs":[1],"output":2,"needs":[1],"forward_seconds":0.001,"backward_seconds":0.002}
//! ```
//!
//! Maps and functions are numbered in the order of the file, from 0. `kind` is `convolution`, `fully-connected`, `add`
//! or `other`. Each pass of a function has either measured seconds, or its work, from which the machine's roofline
//! gives them; if both are present, the seconds count. `add_seconds` is the time of adding two gradients of the map.
//! The header may also contain a `machine` (the text of a machine file) and a `capacity` in bytes: the file is then a
//! whole problem.

use planlab_dsa::Bytes;
use planlab_files::FormatError;
use serde::{Deserialize, Serialize};

use super::lines::{parse_header, split_header, to_line};
use crate::schedule::is_time;
use crate::{
    FeatureMap, Function, FunctionKind, Machine, MapId, SchedulingProblem, Times, TrainingNet, Work,
};

const KIND: &str = "training-net";

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Header {
    planlab: String,
    version: u32,
    name: String,
    batch: u64,
    #[serde(default)]
    parameters: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capacity: Option<u64>,
}

impl Header {
    /// The machine that the file names, or else the default one.
    fn find_machine(&self, file: &str, default: Option<Machine>) -> Result<Machine, String> {
        match &self.machine {
            Some(text) => Machine::from_toml(file, text).map_err(|error| error.reason().to_owned()),
            None => default.ok_or_else(|| "the file names no machine".to_owned()),
        }
    }
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RawMap {
    map: u32,
    name: String,
    bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    add_seconds: Option<f64>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RawFunction {
    function: u32,
    name: String,
    kind: FunctionKind,
    inputs: Vec<MapId>,
    output: MapId,
    needs: Vec<MapId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forward: Option<Work>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    backward: Option<Work>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forward_seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    backward_seconds: Option<f64>,
}

impl SchedulingProblem {
    /// Reads a net, and the machine in the file. Errors name the file `file`. A given `machine` replaces the file's;
    /// its own capacity then counts, and the seconds in the file stay the same.
    ///
    /// # Errors
    ///
    /// [`FormatError`] with the line: invalid JSON, a missing or unknown field, a map or function out of order, a pass
    /// with neither seconds nor work, an invalid time. Also if there is no machine, or if the net breaks a
    /// [rule](crate::NetError).
    pub fn read_jsonl(file: &str, text: &str, machine: Option<Machine>) -> Result<Self, FormatError> {
        read_problem(file, text, machine, None)
    }

    /// Like [`SchedulingProblem::read_jsonl`], but a file that names no machine is read on `default`. A capacity in the
    /// file then counts.
    ///
    /// # Errors
    ///
    /// As [`SchedulingProblem::read_jsonl`], but there always is a machine.
    pub fn read_jsonl_with_default(
        file: &str,
        text: &str,
        machine: Option<Machine>,
        default: Machine,
    ) -> Result<Self, FormatError> {
        read_problem(file, text, machine, Some(default))
    }

    /// Writes the problem in the form that [`SchedulingProblem::read_jsonl`] reads without another machine. The kernels
    /// of convolutions are left out: the times already reflect them.
    #[must_use]
    pub fn write_jsonl(&self) -> String {
        write_net(&self.net, Some(self))
    }
}

impl TrainingNet {
    /// Writes the net alone, without a machine: its passes have work, from which any machine's roofline gives times.
    #[must_use]
    pub fn write_jsonl(&self) -> String {
        write_net(self, None)
    }
}

fn write_net(net: &TrainingNet, problem: Option<&SchedulingProblem>) -> String {
    let mut text = to_line(&Header {
        planlab: KIND.to_owned(),
        version: 1,
        name: net.name().to_owned(),
        batch: net.batch(),
        parameters: net.parameters(),
        machine: problem.map(|problem| problem.machine.to_toml()),
        capacity: problem.map(|problem| problem.capacity.get()),
    });
    for ((map, content), index) in (0..).zip(net.maps()).zip(0_usize..) {
        let add_seconds = problem.map(|problem| problem.times.accumulate_times()[index]);
        text +=
            &to_line(&RawMap { map, name: content.name.clone(), bytes: content.bytes.get(), add_seconds });
    }
    for ((index, function), place) in (0..).zip(net.functions()).zip(0_usize..) {
        let passes = problem.map(|problem| [problem.times.forward(), problem.times.backward()]);
        text += &to_line(&raw_function(index, function, passes.map(|passes| passes.map(|pass| pass[place]))));
    }
    text
}

/// Reads a problem on `machine`; without it on that of the file, or else on `default`.
fn read_problem(
    file: &str,
    text: &str,
    machine: Option<Machine>,
    default: Option<Machine>,
) -> Result<SchedulingProblem, FormatError> {
    let at = |line: u64, reason: String| FormatError::new(file, line, reason);
    let ((first, header), lines) = split_header(file, text)?;
    let header = read_header(header).map_err(|reason| at(first, reason))?;
    let (machine, capacity) = match machine {
        Some(machine) => (machine, None),
        None => (header.find_machine(file, default).map_err(|reason| at(first, reason))?, header.capacity),
    };
    let mut draft = NetDraft::default();
    let mut last = first;
    for (line, text) in lines {
        draft.read_line(line, text).map_err(|reason| at(line, reason))?;
        last = line;
    }
    let problem =
        draft.finish_problem(&header, machine).map_err(|(line, reason)| at(line.unwrap_or(last), reason))?;
    Ok(match capacity {
        Some(0) => return Err(at(first, "field `capacity` is 0".to_owned())),
        Some(bytes) => problem.with_capacity(Bytes::new(bytes)),
        None => problem,
    })
}

fn read_header(text: &str) -> Result<Header, String> {
    let header: Header = parse_header(text, KIND)?;
    if header.batch == 0 {
        return Err("field `batch` is 0".to_owned());
    }
    Ok(header)
}

/// A net that is being read.
#[derive(Default)]
struct NetDraft {
    maps: Vec<FeatureMap>,
    functions: Vec<Function>,
    /// The line and the name of each function.
    lines: Vec<(u64, String)>,
    /// Measured seconds, if the file has them.
    forward: Vec<Option<f64>>,
    backward: Vec<Option<f64>>,
    accumulate: Vec<Option<f64>>,
}

impl NetDraft {
    fn read_line(&mut self, line: u64, text: &str) -> Result<(), String> {
        let object: serde_json::Value =
            serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
        // Parsed from the text, so that errors keep their column.
        if object.get("function").is_some() {
            let raw = serde_json::from_str(text).map_err(|error| format!("not a function: {error}"))?;
            self.add_function(line, raw)
        } else {
            self.add_map(serde_json::from_str(text).map_err(|error| format!("not a map: {error}"))?)
        }
    }

    fn add_map(&mut self, raw: RawMap) -> Result<(), String> {
        if raw.map as usize != self.maps.len() {
            return Err(format!("map {} stands where map {} should", raw.map, self.maps.len()));
        }
        if raw.bytes == 0 {
            return Err(format!("map `{}` has 0 bytes", raw.name));
        }
        self.accumulate.push(check_time("add_seconds", raw.add_seconds)?);
        self.maps.push(FeatureMap { name: raw.name, bytes: Bytes::new(raw.bytes) });
        Ok(())
    }

    fn add_function(&mut self, line: u64, raw: RawFunction) -> Result<(), String> {
        if raw.function as usize != self.functions.len() {
            let next = self.functions.len();
            return Err(format!("function {} stands where function {next} should", raw.function));
        }
        let pass = |what: &str, work: Option<Work>, seconds: Option<f64>| {
            let field = format!("{what}_seconds");
            match (work, check_time(&field, seconds)?) {
                (None, None) => {
                    Err(format!("function `{}` has no times: neither `{what}` nor `{field}`", raw.name))
                }
                (work, seconds) => Ok((work.unwrap_or_default(), seconds)),
            }
        };
        let (forward, forward_seconds) = pass("forward", raw.forward, raw.forward_seconds)?;
        let (backward, backward_seconds) = pass("backward", raw.backward, raw.backward_seconds)?;
        self.lines.push((line, raw.name.clone()));
        self.forward.push(forward_seconds);
        self.backward.push(backward_seconds);
        let RawFunction { name, kind, inputs, output, needs, .. } = raw;
        self.functions.push(Function { name, kind, inputs, output, needs, forward, backward });
        Ok(())
    }

    /// The problem, with the machine's memory. On failure, the reason and the line of the function that causes it, if a
    /// single one does.
    fn finish_problem(
        self,
        header: &Header,
        machine: Machine,
    ) -> Result<SchedulingProblem, (Option<u64>, String)> {
        let net = TrainingNet::new(&header.name, header.batch, header.parameters, self.maps, self.functions);
        let net = net.map_err(|error| {
            let line = self.lines.iter().find(|(_, name)| error.faulty_function() == Some(name));
            (line.map(|(line, _)| *line), error.to_string())
        })?;
        let roofline = machine.roofline_times(&net);
        let times = Times::new(
            &net,
            fill_measured(&self.forward, roofline.forward()),
            fill_measured(&self.backward, roofline.backward()),
            fill_measured(&self.accumulate, roofline.accumulate_times()),
        );
        let times = times.map_err(|error| (None, error.to_string()))?;
        Ok(SchedulingProblem::new(net, machine).with_times(times))
    }
}

/// Measured seconds; the roofline's if not measured.
fn fill_measured(seconds: &[Option<f64>], roofline: &[f64]) -> Vec<f64> {
    seconds.iter().zip(roofline).map(|(seconds, &roofline)| seconds.unwrap_or(roofline)).collect()
}

fn check_time(field: &str, seconds: Option<f64>) -> Result<Option<f64>, String> {
    match seconds {
        Some(seconds) if !is_time(seconds) => Err(format!("field `{field}` is {seconds:?}, not a time")),
        seconds => Ok(seconds),
    }
}

fn raw_function(index: u32, function: &Function, seconds: Option<[f64; 2]>) -> RawFunction {
    RawFunction {
        function: index,
        name: function.name.clone(),
        kind: function.kind,
        inputs: function.inputs.clone(),
        output: function.output,
        needs: function.needs.clone(),
        forward: Some(function.forward),
        backward: Some(function.backward),
        forward_seconds: seconds.map(|[forward, _]| forward),
        backward_seconds: seconds.map(|[_, backward]| backward),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"planlab":"training-net","version":1,"name":"mine","batch":2,"parameters":10}"#;
    const IMAGE: &str = r#"{"map":0,"name":"image","bytes":64}"#;
    const CONV: &str = r#"{"map":1,"name":"conv","bytes":128,"add_seconds":0.5}"#;
    const FIRST: &str = r#"{"function":0,"name":"conv","kind":"convolution","inputs":[0],"output":1,"needs":[0],"forward":{"flops":1e9,"bytes":4e6},"backward_seconds":0.25}"#;

    fn machine() -> Option<Machine> {
        Machine::built_in("x86-pcie3")
    }

    fn refusal(lines: &[&str]) -> String {
        SchedulingProblem::read_jsonl("n.jsonl", &lines.join("\n"), machine())
            .expect_err("refused")
            .to_string()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let text = [HEADER, IMAGE, CONV, FIRST].join("\n");
        let problem = SchedulingProblem::read_jsonl("n.jsonl", &text, machine()).expect("good");
        assert_eq!(problem.net.functions()[0].forward.launches, 1);
        assert_eq!((problem.times.backward(), problem.times.accumulate_times()[1]), (&[0.25][..], 0.5));
        assert_eq!(problem.times.forward(), problem.machine.roofline_times(&problem.net).forward());
        let problem = problem.with_capacity(Bytes::new(12_345));
        let again = SchedulingProblem::read_jsonl("x", &problem.write_jsonl(), None);
        assert_eq!(again.as_ref(), Ok(&problem));
        let alone = problem.net.write_jsonl();
        assert!(!alone.contains("machine") && !alone.contains("seconds"), "{alone}");
        let again = SchedulingProblem::read_jsonl("x", &alone, machine()).expect("good");
        assert_eq!((&again.net, again.times), (&problem.net, again.machine.roofline_times(&problem.net)));
    }

    #[test]
    fn the_machine_of_the_file_gives_way_to_another() {
        let text = [HEADER, IMAGE, CONV, FIRST].join("\n");
        let problem = SchedulingProblem::read_jsonl("n.jsonl", &text, machine()).expect("good");
        let text = problem.with_capacity(Bytes::new(99)).write_jsonl();
        let other = Machine::built_in("h100-pcie5").expect("built in");
        let moved = SchedulingProblem::read_jsonl("x", &text, Some(other.clone())).expect("good");
        assert_eq!((moved.capacity, &moved.machine), (other.capacity, &other));
    }

    #[test]
    fn default_machine_counts_in_files_that_name_none() {
        let read = |text: &str| {
            let default = machine().expect("built in");
            SchedulingProblem::read_jsonl_with_default("n.jsonl", text, None, default).expect("good")
        };
        // A name is no machine.
        let header = HEADER.replace("mine", "machine");
        let unnamed = [&header[..], IMAGE, CONV, FIRST].join("\n");
        let problem = read(&unnamed);
        assert_eq!((Some(&problem.machine), problem.net.name()), (machine().as_ref(), "machine"));
        assert_eq!(problem.capacity, problem.machine.capacity);
        let with_capacity = unnamed.replacen("\"batch\"", "\"capacity\":99,\"batch\"", 1);
        assert_eq!(read(&with_capacity).capacity, Bytes::new(99));
        let other = Machine::built_in("h100-pcie5").expect("built in");
        let named =
            SchedulingProblem::read_jsonl("x", &unnamed, Some(other.clone())).expect("good").write_jsonl();
        assert_eq!(read(&named).machine, other);
    }

    #[test]
    fn a_bad_file_is_refused_with_line_and_reason() {
        assert_eq!(refusal(&[]), "n.jsonl:1: the file is empty: there is no header object");
        let graph = r#"{"planlab":"graph","version":1,"kind":"of another file"}"#;
        assert_eq!(refusal(&[graph]), "n.jsonl:1: a `graph` of version 1, not a training-net of version 1");
        assert_eq!(refusal(&[HEADER]), "n.jsonl:1: a net without functions");
        assert_eq!(refusal(&[HEADER, CONV]), "n.jsonl:2: map 1 stands where map 0 should");
        assert_eq!(refusal(&[HEADER, &IMAGE.replace("64", "0")]), "n.jsonl:2: map `image` has 0 bytes");
        for (from, to, reason) in [
            (
                r#","backward_seconds":0.25"#,
                "",
                "function `conv` has no times: neither `backward` nor `backward_seconds`",
            ),
            ("0.25", "-1", "field `backward_seconds` is -1.0, not a time"),
            (r#""needs":[0]"#, r#""needs":[7]"#, "function `conv` names map 7, but there are 2 maps"),
        ] {
            let lines = [HEADER, IMAGE, CONV, &FIRST.replace(from, to), ""];
            assert_eq!(refusal(&lines), format!("n.jsonl:4: {reason}"));
        }
        let text = [HEADER, IMAGE, CONV, FIRST].join("\n");
        let alone = SchedulingProblem::read_jsonl("n.jsonl", &text, None).expect_err("no machine");
        assert_eq!(alone.to_string(), "n.jsonl:1: the file names no machine");
    }
}
