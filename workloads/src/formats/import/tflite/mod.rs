//! TensorFlow Lite models (`.tflite`): the buffers of each subgraph in the order of its operators.
//!
//! Tensors with data (weights) and variables have memory of their own. The output of a `RESHAPE`, `SQUEEZE` or
//! `EXPAND_DIMS` is the buffer of its input; that of an operator which works element by element may overwrite an input that
//! ends there and is as large. A model that carries an offline plan for TensorFlow Lite Micro gives it as
//! the framework's own placement. Buffers are named after the number of their tensor, `12:conv1`, and the metadata
//! `tflite-tensors` and `tflite-views` say what else an offline plan must place.
//!
//! # References
//!
//! 1. TensorFlow Lite, `schema.fbs`: the tables and their fields.
//! 2. TensorFlow Lite Micro, `docs/memory_management.md`: the offline plan in a model's metadata.

mod operators;

use super::super::export::tflite_micro::{METADATA, TENSORS_KEY, VIEWS_KEY};
use super::super::flatbuffer::{Broken, Spent, TABLE, Table, Vector};
use super::super::{FormatError, ReadOptions};
use super::gather::{Found, Gather, Tally};
use super::{Dropped, Framework, Imported, Input, Part, Reader};

pub(super) const READER: Reader = Reader {
    key: "tflite",
    title: "a TensorFlow Lite model, in the order of its operators",
    endings: &[".tflite"],
    looks_like,
    read,
};

const IDENTIFIER: &[u8] = b"TFL3";

fn looks_like(start: &[u8]) -> bool {
    start.get(4..8) == Some(IDENTIFIER)
}

fn read(input: Input<'_>, options: &ReadOptions) -> Result<Imported, FormatError> {
    let file = input.file().to_owned();
    let bytes = input.bytes()?;
    let broken = |Broken { at, reason }| FormatError::at_byte(&file, at, reason);
    if !looks_like(&bytes) {
        return Err(broken(Broken::new(bytes.len().min(4), "there is no identifier TFL3")));
    }
    let model = Model::of(&bytes).map_err(broken)?;
    let mut imported = Imported::default();
    let mut spent = Spent::of(&bytes);
    let mut first = 0;
    for number in 0..model.subgraphs.len() {
        let table = model.subgraphs.table(number);
        let subgraph = table.and_then(|table| model.subgraph(table, &mut spent)).map_err(broken)?;
        let own = model.offline.get(first..first + subgraph.tensors.len());
        first += subgraph.tensors.len();
        let part = subgraph.part(number, own.unwrap_or_default(), &file, options, &mut imported.dropped)?;
        imported.parts.push(part);
    }
    match imported.parts.is_empty() {
        true => Err(FormatError::new(file, 1, "there is no subgraph in it")),
        false => Ok(imported),
    }
}

/// What is read of a model once.
struct Model<'b> {
    subgraphs: Vector<'b>,
    /// Of each buffer, whether it has data.
    has_data: Vec<bool>,
    /// Code and name of each operator that it uses.
    operators: Vec<(u32, String)>,
    /// Offsets of the tensors of all subgraphs, or -1; empty if there is no offline plan.
    offline: Vec<i32>,
}

impl<'b> Model<'b> {
    fn of(bytes: &'b [u8]) -> Result<Self, Broken> {
        let root = Table::root(bytes)?;
        let mut operators = Vec::new();
        for code in root.vector(1, 4)?.tables() {
            let code = code?;
            // The field of a byte came first, and ends at 127.
            let number = u32::from(code.u8(0)?).max(code.u32(3)?);
            let custom = if number == operators::CUSTOM { code.string(1)? } else { String::new() };
            let name = if custom.is_empty() { operators::name(number) } else { custom };
            operators.push((number, name));
        }
        let buffers = root.vector(4, 4)?;
        let mut has_data = Vec::with_capacity(buffers.len());
        for buffer in buffers.tables() {
            let buffer = buffer?;
            // Large models keep data behind the flatbuffer: `offset` and `size`.
            has_data.push(buffer.vector(0, 1)?.len() > 0 || buffer.u64(1)? > 1);
        }
        let offline = offline(root, buffers)?;
        Ok(Self { subgraphs: root.vector(2, 4)?, has_data, operators, offline })
    }

    fn subgraph(&self, table: Table<'b>, spent: &mut Spent) -> Result<Subgraph, Broken> {
        spent.take(TABLE, table.at())?;
        let mut tensors = Vec::new();
        for tensor in table.vector(0, 4)?.tables() {
            tensors.push(self.tensor(tensor?, spent)?);
        }
        let list = |of: Table<'b>, field: u16, spent: &mut Spent| {
            let vector = of.vector(field, 4)?;
            spent.take(4 * vector.len(), of.at())?;
            let check = |number: i32| match usize::try_from(number) {
                Ok(number) if number < tensors.len() => Ok(Some(number)),
                // An input that is left out.
                Err(_) if number == -1 => Ok(None),
                _ => Err(Broken::new(of.at(), format!("there is no tensor {number} of {}", tensors.len()))),
            };
            let numbers = vector.ints().map(check).collect::<Result<Vec<_>, _>>()?;
            Ok(numbers.into_iter().flatten().collect::<Vec<usize>>())
        };
        let (inputs, outputs) = (list(table, 1, spent)?, list(table, 2, spent)?);
        let mut calls = Vec::new();
        for operator in table.vector(3, 4)?.tables() {
            let operator = operator?;
            let code = operator.u32(0)?;
            let known = usize::try_from(code).ok().and_then(|code| self.operators.get(code));
            let Some((number, name)) = known else {
                return Err(Broken::new(operator.at(), format!("there is no operator code {code}")));
            };
            spent.take(TABLE + name.len(), operator.at())?;
            let (inputs, outputs) = (list(operator, 1, spent)?, list(operator, 2, spent)?);
            calls.push(Call {
                is_view: operators::VIEWS.contains(number),
                elementwise: operators::elementwise(*number),
                name: name.clone(),
                inputs,
                outputs,
            });
        }
        Ok(Subgraph { name: table.string(4)?, tensors, inputs, outputs, calls })
    }

    fn tensor(&self, table: Table<'b>, spent: &mut Spent) -> Result<Tensor, Broken> {
        let bad = |reason: String| Broken::new(table.at(), reason);
        let buffer = table.u32(2)?;
        let has_data = usize::try_from(buffer).ok().and_then(|buffer| self.has_data.get(buffer));
        let has_data = *has_data.ok_or_else(|| bad(format!("there is no buffer {buffer}")))?;
        let dims = table.vector(0, 4)?.len() + table.vector(7, 4)?.len();
        spent.take(TABLE + 4 * dims + table.vector(3, 1)?.len(), table.at())?;
        let mut elements = 1_u64;
        for dim in table.vector(0, 4)?.ints() {
            let dim = u64::try_from(dim).map_err(|_| bad(format!("a dimension of {dim}")))?;
            elements =
                elements.checked_mul(dim).ok_or_else(|| bad("its elements do not fit 64 bits".to_owned()))?;
        }
        let bytes = match operators::bits(table.u8(1)?) {
            Some(bits) => {
                let bits = elements.checked_mul(bits);
                Some(bits.ok_or_else(|| bad("its bytes do not fit 64 bits".to_owned()))?.div_ceil(8))
            }
            None => None,
        };
        let is_dynamic = table.vector(7, 4)?.ints().any(|dim| dim < 0);
        Ok(Tensor {
            name: table.string(3)?,
            bytes,
            elements,
            has_data,
            is_variable: table.u8(5)? != 0,
            is_dynamic,
        })
    }
}

/// The offsets of the offline plan in a model's metadata.
fn offline(root: Table<'_>, buffers: Vector<'_>) -> Result<Vec<i32>, Broken> {
    for metadata in root.vector(6, 4)?.tables() {
        let metadata = metadata?;
        if metadata.vector(0, 1)?.bytes() == METADATA.as_bytes() {
            let number = usize::try_from(metadata.u32(1)?).unwrap_or(usize::MAX);
            let buffer = buffers.table(number)?;
            let words = buffer.vector(0, 1)?.bytes().as_chunks::<4>().0;
            let mut words = words.iter().map(|&word| i32::from_le_bytes(word)).skip(2);
            let count = words.next().and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
            return Ok(words.take(count).collect());
        }
    }
    Ok(Vec::new())
}

struct Tensor {
    name: String,
    /// None of strings and the like.
    bytes: Option<u64>,
    elements: u64,
    has_data: bool,
    is_variable: bool,
    /// Whether a dimension is known only when it runs; the shape has 1 there.
    is_dynamic: bool,
}

/// An operator of a subgraph.
struct Call {
    name: String,
    is_view: bool,
    /// How many of its first inputs have elements at the places of those that it makes of them.
    elementwise: usize,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
}

struct Subgraph {
    name: String,
    tensors: Vec<Tensor>,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    calls: Vec<Call>,
}

/// When a tensor is live.
#[derive(Clone, Copy)]
struct Life {
    start: u64,
    /// Inclusive.
    last: u64,
    /// The operator that makes it; none makes an input.
    call: Option<usize>,
    is_output: bool,
    bytes: u64,
}

impl Subgraph {
    /// The tensor whose memory each is in, and the life of those that have memory.
    fn lives(&self) -> (Vec<usize>, Vec<Option<Life>>) {
        let mut base: Vec<usize> = (0..self.tensors.len()).collect();
        let mut lives: Vec<Option<Life>> = vec![None; self.tensors.len()];
        let size = |tensor: usize| self.tensors[tensor].bytes.unwrap_or(0);
        let made = |tensor, step, call| {
            Some(Life { start: step, last: step, call, is_output: false, bytes: size(tensor) })
        };
        for &input in &self.inputs {
            lives[input] = made(input, 0, None);
        }
        for (number, call) in self.calls.iter().enumerate() {
            let step = number as u64;
            for &input in &call.inputs {
                lives[base[input]].iter_mut().for_each(|life| life.last = step);
            }
            let shown =
                call.inputs.first().copied().filter(|&input| call.is_view && lives[base[input]].is_some());
            for (at, &output) in call.outputs.iter().enumerate() {
                if lives[base[output]].is_some() {
                    continue;
                }
                match shown.filter(|_| at == 0) {
                    Some(input) => {
                        base[output] = base[input];
                        let life = &mut lives[base[input]];
                        life.iter_mut().for_each(|life| life.bytes = life.bytes.max(size(output)));
                    }
                    None => lives[output] = made(output, step, Some(number)),
                }
            }
        }
        let last = (self.calls.len() as u64).saturating_sub(1);
        for &output in &self.outputs {
            lives[base[output]].iter_mut().for_each(|life| {
                life.last = last;
                life.is_output = true;
            });
        }
        (base, lives)
    }

    /// Tensors that may be written over others, which end there: output, input.
    fn permissions(&self, base: &[usize], lives: &[Option<Life>]) -> Vec<(usize, usize)> {
        let mut permissions = Vec::new();
        for (number, call) in self.calls.iter().enumerate().filter(|(_, call)| call.elementwise > 0) {
            let &[output] = call.outputs.as_slice() else { continue };
            let Some(made) = lives[output].filter(|life| life.call == Some(number)) else { continue };
            // An input that is repeated along a dimension is read again after it was written over.
            let fits = |&input: &usize| {
                let (read, made) = (&self.tensors[input], &self.tensors[output]);
                read.elements == made.elements && read.bytes == made.bytes
            };
            for (at, &input) in call.inputs.iter().enumerate().take(call.elementwise) {
                let of = base[input];
                let is_new = call.inputs[..at].iter().all(|&other| base[other] != of);
                let ends = lives[of].is_some_and(|life| {
                    life.last == number as u64 && !life.is_output && life.bytes >= made.bytes
                });
                if is_new && ends && call.inputs.iter().filter(|&&input| base[input] == of).all(fits) {
                    permissions.push((output, of));
                }
            }
        }
        permissions
    }

    fn part(
        self,
        number: usize,
        offline: &[i32],
        file: &str,
        options: &ReadOptions,
        dropped: &mut Vec<Dropped>,
    ) -> Result<Part, FormatError> {
        let (base, lives) = self.lives();
        let mut gather = Gather::new(file, options);
        gather.meta("framework", "TFLite");
        gather.meta("clock", "operators");
        gather.meta(TENSORS_KEY, self.tensors.len().to_string());
        let views = base.iter().enumerate().filter(|&(view, &of)| view != of);
        let views: Vec<String> = views.map(|(view, of)| format!("{view}={of}")).collect();
        if !views.is_empty() {
            let why = "each is one buffer with what it shows, as large as the largest";
            dropped.push(Dropped::new(views.len() as u64, "views", why));
            gather.meta(VIEWS_KEY, views.join(" "));
        }
        let mut buffers = vec![None; self.tensors.len()];
        let mut left = Left::default();
        for (at, tensor) in self.tensors.iter().enumerate() {
            let Some(life) = lives[at].filter(|_| left.keeps(tensor)) else { continue };
            buffers[at] = gather.buffer(Found {
                name: format!("{at}:{}", tensor.name),
                start: life.start,
                end: life.last + 1,
                size: life.bytes,
                category: Some(match life {
                    Life { call: None, .. } => "input",
                    Life { is_output: true, .. } => "output",
                    _ => "activation",
                }),
                op: life.call.map(|call| format!("{call}:{}", self.calls[call].name)),
                place: offline.get(at).and_then(|&offset| u64::try_from(offset).ok()),
                row: None,
            });
        }
        for (output, input) in self.permissions(&base, &lives) {
            if let Some((output, input)) = buffers[output].zip(buffers[input]) {
                gather.may_overwrite(output, input);
            }
        }
        for tensor in
            self.tensors.iter().zip(&lives).filter(|(_, life)| life.is_none()).map(|(tensor, _)| tensor)
        {
            if tensor.has_data {
                left.constants.add(tensor.bytes.unwrap_or(0));
            }
        }
        dropped.extend(left.dropped());
        let name = if self.name.is_empty() { format!("subgraph-{number}") } else { self.name };
        let taken = if number == 0 { name } else { format!("{name}#{number}") };
        gather.finish(taken, Framework::new("TFLite"), dropped)
    }
}

/// Tensors that are not planned.
#[derive(Default)]
struct Left {
    constants: Tally,
    variables: Tally,
    unsized_: u64,
    dynamic: u64,
}

impl Left {
    /// Whether a tensor is planned; one that is not is counted.
    fn keeps(&mut self, tensor: &Tensor) -> bool {
        let bytes = tensor.bytes.unwrap_or(0);
        match tensor {
            Tensor { has_data: true, .. } => self.constants.add(bytes),
            Tensor { is_variable: true, .. } => self.variables.add(bytes),
            Tensor { bytes: None, .. } => self.unsized_ += 1,
            _ => {
                self.dynamic += u64::from(tensor.is_dynamic);
                return true;
            }
        }
        false
    }

    fn dropped(&self) -> Vec<Dropped> {
        let mut dropped = Vec::new();
        dropped.extend(self.constants.dropped("tensors with data", "they have memory of their own"));
        dropped.extend(self.variables.dropped("variables", "they outlive the run"));
        for (count, what, why) in [
            (self.unsized_, "tensors of strings or resources", "they have no size"),
            (self.dynamic, "tensors with a dynamic dimension", "planned as the file has them, with 1 there"),
        ] {
            if count > 0 {
                dropped.push(Dropped::new(count, what, why));
            }
        }
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::export::tflite_micro::tests::model;
    use super::super::import;
    use super::*;

    #[test]
    fn one_table_named_again_and_again_is_refused() {
        let whole = model();
        assert!(import("m.tflite", &whole[..], None, &ReadOptions::default()).is_ok());
        // Every subgraph is the one there is: few bytes that would be read a million times.
        let mut many = whole.clone();
        let root = Table::root(&whole).expect("a model");
        let subgraph = root.vector(2, 4).and_then(|subgraphs| subgraphs.table(0)).expect("there").at();
        let field = root.field(2).expect("valid").expect("there");
        let count = 100_000_u32;
        let vector = u32::try_from(many.len()).expect("small");
        // Offsets lead forward: the vector stands before a second copy of the model's tables.
        many.extend(count.to_le_bytes());
        let copy = many.len() + 4 * count as usize;
        for at in (many.len()..copy).step_by(4) {
            many.extend(u32::try_from(copy + subgraph - at).expect("small").to_le_bytes());
        }
        many.extend(&whole);
        many[field..field + 4]
            .copy_from_slice(&(vector - u32::try_from(field).expect("small")).to_le_bytes());
        let error =
            import("m.tflite", &many[..], None, &ReadOptions::default()).map(drop).expect_err("a trick");
        assert!(error.reason().contains("more than the file has bytes for"), "{error}");
    }
}
