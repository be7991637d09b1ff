//! TensorFlow Lite models (`.tflite`): the buffers of each subgraph in the order of its operators.
//!
//! Tensors with data (weights) and variables have memory of their own. The output of a `RESHAPE`, `SQUEEZE` or
//! `EXPAND_DIMS` is the buffer of its input; that of an operator which works element by element may overwrite an input that
//! ends there and is as large. A subgraph that an `IF`, `WHILE` or `CALL_ONCE` runs has its steps inside of that operator's,
//! and its buffers share the memory of the others, as in TensorFlow Lite Micro; so a part is a subgraph that nothing runs,
//! with all that it runs. Sizes and offsets are multiples of 16 bytes, as there.
//!
//! A model that carries an offline plan for TensorFlow Lite Micro gives it as the framework's own placement. Buffers are
//! named after the number of their tensor among those of all subgraphs, `12:conv1`, and the metadata `tflite-tensors` and
//! `tflite-views` say what else an offline plan must place.
//!
//! # References
//!
//! 1. TensorFlow Lite, `schema.fbs`: the tables and their fields.
//! 2. TensorFlow Lite Micro, `docs/memory_management.md`: the offline plan in a model's metadata.
//! 3. TensorFlow Lite Micro, `micro_allocation_info.cc`: `MarkAllocationLifetimes`.

mod lives;
mod model;
mod operators;

use std::collections::BTreeMap;

use self::lives::{LeftOutTensors, Life, Lives};
use self::model::Model;
use super::gather::{FoundBuffer, Rule, TraceGatherer};
use super::{Dropped, Framework, Imported, Input, Part, Reader};
use crate::formats::flatbuffer::{Broken, ReadBudget};
use crate::formats::{FormatError, ReadOptions};

pub(crate) use self::model::{METADATA, TENSORS_KEY, VIEWS_KEY};

pub(crate) const READER: Reader = Reader {
    key: "tflite",
    title: "a TensorFlow Lite model, in the order of its operators",
    endings: &[".tflite"],
    has_lines: false,
    looks_like,
    read: read_tflite,
};

const IDENTIFIER: &[u8] = b"TFL3";
/// Offsets and sizes in TensorFlow Lite Micro are multiples of this.
const ALIGNMENT: u64 = 16;

fn looks_like(start: &[u8]) -> bool {
    start.get(4..8) == Some(IDENTIFIER)
}

fn read_tflite(input: Input<'_>, options: &ReadOptions) -> Result<Imported, FormatError> {
    let file = input.file_name().to_owned();
    let bytes = input.read_bytes()?;
    let broken = |Broken { at, reason }| FormatError::at_byte(&file, at, reason);
    if !looks_like(&bytes) {
        return Err(broken(Broken::new(bytes.len().min(4), "there is no identifier TFL3")));
    }
    let model = Model::from_bytes(&bytes).map_err(broken)?;
    let mut imported = Imported::default();
    let (mut left, mut seen) = (LeftOutTensors::default(), vec![false; model.subgraphs.len()]);
    let mut spent = ReadBudget::from_bytes(&bytes);
    for root in model.root_subgraphs() {
        let lives = Lives::from_model(&model, root, &mut spent).map_err(broken)?;
        lives.subgraphs.iter().for_each(|&subgraph| seen[subgraph] = true);
        let part = build_part(&model, root, &lives, (&file, options), &mut left, &mut imported.dropped)?;
        imported.parts.push(part);
    }
    imported.dropped.extend(left.as_dropped());
    let unseen = seen.iter().filter(|&&seen| !seen).count() as u64;
    let why = "no other subgraph that is run leads to them";
    imported.dropped.extend(Dropped::from_count(unseen, "subgraphs that run each other", why));
    match imported.parts.is_empty() {
        true => Err(FormatError::at_byte(file, 0, "there is no subgraph in it")),
        false => Ok(imported),
    }
}

/// A subgraph with all that it runs.
fn build_part(
    model: &Model,
    root: usize,
    lives: &Lives<'_>,
    (file, options): (&str, &ReadOptions),
    left: &mut LeftOutTensors,
    dropped: &mut Vec<Dropped>,
) -> Result<Part, FormatError> {
    let planned: Vec<(usize, Life)> = lives.planned_tensors(model, left);
    let place = |tensor: usize| model.offline.get(tensor).and_then(|&offset| u64::try_from(offset).ok());
    let mut gather = TraceGatherer::new(file, options);
    gather.set_metadata("framework", "TFLite");
    gather.set_metadata("clock", "operators");
    gather.set_metadata(TENSORS_KEY, model.tensors.len().to_string());
    let views: Vec<String> = lives.views.iter().map(|(view, of)| format!("{view}={of}")).collect();
    if !views.is_empty() {
        let why = "each is one buffer with what it shows, as large as the largest";
        dropped.push(Dropped::new(views.len() as u64, "views", why));
        gather.set_metadata(VIEWS_KEY, views.join(" "));
    }
    gather.align_as(Rule { bytes: ALIGNMENT, rounds: true, why: "as in TensorFlow Lite Micro" });
    let mut buffers: BTreeMap<usize, usize> = BTreeMap::new();
    for (at, life) in planned {
        let found = FoundBuffer {
            name: format!("{at}:{}", model.tensors[at].name),
            start: life.start,
            end: life.last + 1,
            size: life.bytes,
            category: Some(life.category()),
            op: life.step.map(|step| lives.ops[step].clone()),
            place: place(at),
            row: None,
        };
        buffers.extend(gather.append_buffer(found).map(|buffer| (at, buffer)));
    }
    for (output, input) in lives.in_place_pairs(model) {
        if let (Some(&output), Some(&input)) = (buffers.get(&output), buffers.get(&input)) {
            gather.may_overwrite(output, input);
        }
    }
    let name = match model.subgraphs[root].name.as_str() {
        "" => format!("subgraph-{root}"),
        name => name.to_owned(),
    };
    let name = if root == 0 { name } else { format!("{name}#{root}") };
    gather.build_part(name, Framework::new("TFLite"), dropped)
}

#[cfg(test)]
mod tests;
