//! ExecuTorch programs (`.pte`): the tensors of each method in the order of its instructions.
//!
//! Planned are the tensors that ExecuTorch's own memory plan places; where it placed them is the framework's plan. A step
//! is an instruction. A tensor is live from the first instruction that names it to the last; inputs from the start, outputs
//! to the end, and tensors with a state that outlives a run all the time. The output of `et_view` is the buffer of its
//! input. A jump back keeps all live that the instructions between name. A part is a method, `forward`, or one of the
//! memories that it uses, `forward/memory-2`. Buffers are named after the number of their value.
//!
//! # References
//!
//! 1. ExecuTorch, `schema/program.fbs` and `schema/scalar_type.fbs`: the tables and their fields.

use std::collections::BTreeMap;

use super::gather::{FoundBuffer, Rule, Tally, TraceGatherer, common_alignment, framework_with};
use super::{Dropped, Imported, Input, Part, Reader};
use crate::formats::flatbuffer::{Broken, ReadBudget, TABLE, Table};
use crate::formats::{FormatError, ReadOptions};

pub(crate) const READER: Reader = Reader {
    key: "executorch",
    title: "an ExecuTorch program (.pte), in the order of its instructions",
    endings: &[".pte"],
    has_lines: false,
    looks_like,
    read: read_executorch,
};

/// `ET` and the version of the schema.
fn looks_like(start: &[u8]) -> bool {
    matches!(start.get(4..8), Some([b'E', b'T', b'0'..=b'9', b'0'..=b'9']))
}

fn read_executorch(input: Input<'_>, options: &ReadOptions) -> Result<Imported, FormatError> {
    let file = input.file_name().to_owned();
    let bytes = input.read_bytes()?;
    let broken = |Broken { at, reason }| FormatError::at_byte(&file, at, reason);
    if !looks_like(&bytes) {
        return Err(broken(Broken::new(bytes.len().min(4), "there is no identifier ET12")));
    }
    let mut spent = ReadBudget::from_bytes(&bytes);
    let mut imported = Imported::default();
    let methods = Table::root_table(&bytes).and_then(|root| root.read_vector(1, 4)).map_err(broken)?;
    for method in methods.tables() {
        let method = method.and_then(|method| Method::from_table(method, &mut spent)).map_err(broken)?;
        imported.dropped.extend(method.dropped_values());
        let memories = method.tensors_by_memory().map_err(broken)?;
        let (is_only, bytes) = (memories.len() == 1, method.value_bytes());
        for (number, placed) in memories {
            let memory = Memory { number, is_only, placed };
            let part = method.build_part(&memory, &bytes, (&file, options), &mut imported.dropped)?;
            imported.parts.push(part);
        }
    }
    match imported.parts.is_empty() {
        true => {
            Err(FormatError::at_byte(file, 0, "no method in it has a tensor that its memory plan places"))
        }
        false => Ok(imported),
    }
}

/// ExecuTorch's memory plan rounds sizes up to multiples of this, unless it is asked for others.
const ALIGNMENT: u64 = 16;
/// Each memory of a method is a part; a device has few.
const MOST_MEMORIES: usize = 256;
/// Members of the union `KernelTypes`.
const TENSOR: u8 = 5;
const LISTS: [u8; 2] = [10, 11];
/// The operator whose output is its first argument, seen otherwise.
const VIEW: &str = "executorch_prim::et_view";

/// A value of a method.
enum EvaluatedTensor {
    Tensor(Tensor),
    /// Numbers of values.
    List(Vec<usize>),
    Other,
}

struct Tensor {
    name: String,
    bytes: u64,
    /// Whether the file has its data.
    has_data: bool,
    /// Memory and offset.
    place: Option<(u32, u64)>,
}

/// When a tensor is live: the first step and the last.
#[derive(Clone, Copy)]
struct Life {
    start: u64,
    last: u64,
    /// The operator that names it first.
    op: Option<usize>,
    category: &'static str,
}

/// A tensor that is a buffer.
struct PlacedTensor<'m> {
    value: usize,
    tensor: &'m Tensor,
    offset: u64,
    life: Life,
}

/// A memory of a method.
struct Memory<'m> {
    number: u32,
    is_only: bool,
    placed: Vec<PlacedTensor<'m>>,
}

/// A method, with the life of each of its values.
struct Method {
    /// Byte of its table.
    at: usize,
    name: String,
    values: Vec<EvaluatedTensor>,
    /// What each instruction is called.
    ops: Vec<String>,
    /// The value whose memory each is in.
    base: Vec<usize>,
    lives: Vec<Option<Life>>,
    /// Bytes of each memory.
    sizes: Vec<u64>,
    delegate_calls: u64,
}

impl Method {
    fn from_table(table: Table<'_>, spent: &mut ReadBudget) -> Result<Self, Broken> {
        spent.take_bytes(TABLE, table.byte_offset())?;
        let values = table.read_vector(2, 4)?.tables().map(|value| value_of(value?, spent));
        let values = values.collect::<Result<Vec<EvaluatedTensor>, Broken>>()?;
        let count = values.len();
        let mut method = Self {
            at: table.byte_offset(),
            name: table.read_string(0)?,
            values,
            ops: Vec::new(),
            base: (0..count).collect(),
            lives: vec![None; count],
            sizes: table.read_vector(8, 8)?.longs().collect(),
            delegate_calls: 0,
        };
        spent.take_bytes(method.name.len() + 8 * method.sizes.len(), table.byte_offset())?;
        let operators = read_names(table, 6, spent)?;
        let delegates = read_names(table, 7, spent)?;
        let inputs = method.value_numbers(table, 3, spent)?;
        inputs.iter().for_each(|&value| method.name_at(value, 0, None, "input"));
        for chain in table.read_vector(5, 4)?.tables() {
            method.run_chain(chain?, &operators, &delegates, spent)?;
        }
        let last = (method.ops.len() as u64).saturating_sub(1);
        for value in method.value_numbers(table, 4, spent)? {
            method.name_at(value, last, None, "output");
            let base = method.base[value];
            method.lives[base].iter_mut().for_each(|life| life.category = "output");
        }
        method.keep_states(last);
        Ok(method)
    }

    /// Tensors with an initial value that the plan places keep what they have from run to run.
    fn keep_states(&mut self, last: u64) {
        for (value, life) in self.values.iter().zip(&mut self.lives) {
            if matches!(value, EvaluatedTensor::Tensor(Tensor { has_data: true, place: Some(_), .. })) {
                *life = Some(Life { start: 0, last, op: None, category: "state" });
            }
        }
    }

    fn run_chain(
        &mut self,
        chain: Table<'_>,
        operators: &[String],
        delegates: &[String],
        spent: &mut ReadBudget,
    ) -> Result<(), Broken> {
        spent.take_bytes(TABLE, chain.byte_offset())?;
        let first = self.ops.len() as u64;
        for instruction in chain.read_vector(2, 4)?.tables() {
            let instruction = instruction?;
            let step = self.ops.len() as u64;
            let Some(call) = instruction.read_table(1)? else {
                return Err(Broken::new(instruction.byte_offset(), "an instruction without arguments"));
            };
            spent.take_bytes(2 * TABLE, call.byte_offset())?;
            let named = |names: &[String], what: &str| {
                let number = call.u32(0)?;
                let name = usize::try_from(number).ok().and_then(|number| names.get(number)).cloned();
                name.ok_or_else(|| Broken::new(call.byte_offset(), format!("there is no {what} {number}")))
            };
            let kind = instruction.u8(0)?;
            let op = match kind {
                1 => named(operators, "operator")?,
                2 => {
                    self.delegate_calls += 1;
                    named(delegates, "delegate")?
                }
                3 => "move".to_owned(),
                4 => "jump".to_owned(),
                5 => "free".to_owned(),
                _ => {
                    let reason = format!("an instruction of kind {kind}");
                    return Err(Broken::new(instruction.byte_offset(), reason));
                }
            };
            spent.take_bytes(op.len(), call.byte_offset())?;
            let args = match kind {
                3 => vec![self.value_number(call, 0)?, self.value_number(call, 1)?],
                4 => vec![self.value_number(call, 0)?],
                // A free reads nothing: what it frees was read before.
                5 => Vec::new(),
                _ => self.value_numbers(call, 1, spent)?,
            };
            if op == VIEW
                && let (Some(&shown), Some(&view)) = (args.first(), args.last())
                && self.lives[view].is_none()
            {
                self.base[view] = self.base[shown];
            }
            self.ops.push(op);
            for value in args {
                self.mention_value(value, step, spent, call.byte_offset())?;
            }
            if kind == 4 {
                spent.take_bytes(self.lives.len(), call.byte_offset())?;
                self.keep_over_jump(first + u64::from(call.u32(1)?), step);
            }
        }
        Ok(())
    }

    /// Keeps all live, from a step that is jumped back to until the jump, that is named between.
    fn keep_over_jump(&mut self, to: u64, from: u64) {
        for life in self.lives.iter_mut().flatten().filter(|life| life.last >= to) {
            life.start = life.start.min(to.min(from));
            life.last = life.last.max(from);
        }
    }

    /// An instruction names a value, or a list of values.
    fn mention_value(
        &mut self,
        value: usize,
        step: u64,
        spent: &mut ReadBudget,
        at: usize,
    ) -> Result<(), Broken> {
        let items = match &self.values[value] {
            EvaluatedTensor::List(items) => items.clone(),
            _ => vec![value],
        };
        spent.take_bytes(4 * items.len(), at)?;
        if let Some(item) = items.iter().find(|&&item| item >= self.values.len()) {
            return Err(Broken::new(at, format!("there is no value {item} of {}", self.values.len())));
        }
        items.into_iter().for_each(|value| self.name_at(value, step, Some(step), "activation"));
        Ok(())
    }

    fn name_at(&mut self, value: usize, step: u64, op: Option<u64>, category: &'static str) {
        let op = op.and_then(|op| usize::try_from(op).ok());
        let base = self.base[value];
        let life = self.lives[base].get_or_insert(Life { start: step, last: step, op, category });
        life.last = life.last.max(step);
    }

    /// The numbers of values that a field of a table lists.
    fn value_numbers(&self, of: Table<'_>, field: u16, spent: &mut ReadBudget) -> Result<Vec<usize>, Broken> {
        let vector = of.read_vector(field, 4)?;
        spent.take_bytes(4 * vector.len(), of.byte_offset())?;
        let numbers = vector.ints().filter(|&number| number != -1);
        numbers.map(|number| self.check_number(of, i64::from(number))).collect()
    }

    fn value_number(&self, of: Table<'_>, field: u16) -> Result<usize, Broken> {
        self.check_number(of, i64::from(of.u32(field)?))
    }

    fn check_number(&self, of: Table<'_>, number: i64) -> Result<usize, Broken> {
        let known = usize::try_from(number).ok().filter(|&number| number < self.values.len());
        let count = self.values.len();
        known.ok_or_else(|| Broken::new(of.byte_offset(), format!("there is no value {number} of {count}")))
    }

    fn tensors(&self) -> impl Iterator<Item = (usize, &Tensor)> {
        self.values.iter().enumerate().filter_map(|(number, value)| match value {
            EvaluatedTensor::Tensor(tensor) => Some((number, tensor)),
            _ => None,
        })
    }

    /// Tensors that are buffers, by memory; of the memories that have bytes in them.
    fn tensors_by_memory(&self) -> Result<BTreeMap<u32, Vec<PlacedTensor<'_>>>, Broken> {
        let mut memories: BTreeMap<u32, Vec<PlacedTensor<'_>>> = BTreeMap::new();
        for (value, tensor) in self.tensors().filter(|&(value, _)| self.base[value] == value) {
            if let (Some((memory, offset)), Some(life)) = (tensor.place, self.lives[value]) {
                memories.entry(memory).or_default().push(PlacedTensor { value, tensor, offset, life });
            }
        }
        memories.retain(|_, placed| placed.iter().any(|placed| placed.tensor.bytes > 0));
        match memories.len() {
            ..=MOST_MEMORIES => Ok(memories),
            count => {
                let reason = format!("a method with {count} memories, more than {MOST_MEMORIES}");
                Err(Broken::new(self.at, reason))
            }
        }
    }

    /// Bytes of each value: a view may be larger than what it shows of it.
    fn value_bytes(&self) -> Vec<u64> {
        let mut bytes: Vec<u64> = vec![0; self.values.len()];
        for (number, tensor) in self.tensors() {
            let base = self.base[number];
            bytes[base] = bytes[base].max(tensor.bytes);
        }
        bytes
    }

    fn build_part(
        &self,
        memory: &Memory<'_>,
        bytes: &[u64],
        (file, options): (&str, &ReadOptions),
        dropped: &mut Vec<Dropped>,
    ) -> Result<Part, FormatError> {
        let mut gather = TraceGatherer::new(file, options);
        gather.set_metadata("framework", "ExecuTorch");
        gather.set_metadata("clock", "instructions");
        let to = common_alignment(memory.placed.iter().map(|placed| placed.offset), ALIGNMENT, ALIGNMENT);
        gather.align_as(Rule { bytes: to, rounds: true, why: "as in ExecuTorch's own plan" });
        for &PlacedTensor { value, tensor, offset, life } in &memory.placed {
            let name = match tensor.name.as_str() {
                "" => value.to_string(),
                name => format!("{value}:{name}"),
            };
            gather.append_buffer(FoundBuffer {
                name,
                start: life.start,
                end: life.last + 1,
                size: bytes[value],
                category: Some(life.category),
                op: life.op.map(|op| format!("{op}:{}", self.ops[op])),
                place: Some(offset),
                row: None,
            });
        }
        let name = match self.name.as_str() {
            "" => "method",
            name => name,
        };
        let number = memory.number;
        let part = if memory.is_only { name.to_owned() } else { format!("{name}/memory-{number}") };
        let size = usize::try_from(number).ok().and_then(|number| self.sizes.get(number)).copied();
        gather.build_part(part, framework_with("ExecuTorch", size), dropped)
    }

    /// What is not planned.
    fn dropped_values(&self) -> Vec<Dropped> {
        let (mut constants, mut given, mut unused) = (Tally::default(), Tally::default(), Tally::default());
        let mut views = 0;
        for (number, tensor) in self.tensors() {
            match tensor.place {
                _ if self.base[number] != number => views += 1,
                None if tensor.has_data => constants.add_bytes(tensor.bytes),
                None => given.add_bytes(tensor.bytes),
                Some(_) if self.lives[number].is_none() => unused.add_bytes(tensor.bytes),
                Some(_) => {}
            }
        }
        let shown = "each is one buffer with what it shows, as large as the largest";
        let elsewhere = "the memory of their delegates is not planned";
        let dropped = [
            constants.as_dropped("tensors with data", "they have memory of their own"),
            given.as_dropped("tensors without a place", "the program gives them memory while it runs"),
            unused.as_dropped("tensors with a place that no instruction names", "they are never live"),
            Dropped::from_count(views, "views", shown),
            Dropped::from_count(self.delegate_calls, "calls of delegates", elsewhere),
        ];
        dropped.into_iter().flatten().collect()
    }
}

/// The first text of each table in a list.
fn read_names(table: Table<'_>, field: u16, spent: &mut ReadBudget) -> Result<Vec<String>, Broken> {
    let name = |entry: Result<Table<'_>, Broken>| {
        let entry = entry?;
        spent.take_bytes(TABLE + entry.read_vector(0, 1)?.len(), entry.byte_offset())?;
        entry.read_string(0)
    };
    table.read_vector(field, 4)?.tables().map(name).collect()
}

fn value_of(value: Table<'_>, spent: &mut ReadBudget) -> Result<EvaluatedTensor, Broken> {
    spent.take_bytes(TABLE, value.byte_offset())?;
    let Some(inner) = value.read_table(1)? else { return Ok(EvaluatedTensor::Other) };
    match value.u8(0)? {
        TENSOR => read_tensor(inner, spent).map(EvaluatedTensor::Tensor),
        kind if LISTS.contains(&kind) => {
            let items = inner.read_vector(0, 4)?;
            spent.take_bytes(TABLE + 4 * items.len(), inner.byte_offset())?;
            // None is -1; what is no value is found where the list is used.
            Ok(EvaluatedTensor::List(items.ints().filter_map(|item| usize::try_from(item).ok()).collect()))
        }
        _ => Ok(EvaluatedTensor::Other),
    }
}

fn read_tensor(table: Table<'_>, spent: &mut ReadBudget) -> Result<Tensor, Broken> {
    let bad = |reason: &str| Broken::new(table.byte_offset(), reason);
    let sizes = table.read_vector(2, 4)?;
    spent.take_bytes(TABLE + 4 * sizes.len(), table.byte_offset())?;
    let mut elements = 1_u64;
    for size in sizes.ints() {
        let size = u64::try_from(size).map_err(|_| bad("a tensor with a negative size"))?;
        elements = elements.checked_mul(size).ok_or_else(|| bad("its elements do not fit 64 bits"))?;
    }
    let kind = table.u8(0)?;
    let bits = element_bits(kind)
        .ok_or_else(|| bad(&format!("a tensor of the scalar type {kind}, which is not known")))?;
    let bytes = elements.checked_mul(bits).ok_or_else(|| bad("its bytes do not fit 64 bits"))?.div_ceil(8);
    let place = match table.read_table(6)? {
        None => None,
        Some(at) => Some((at.u32(0)?, u64::from(at.u32(2)?) << 32 | u64::from(at.u32(1)?))),
    };
    let name = match table.read_table(9)? {
        None => String::new(),
        Some(extra) => {
            spent.take_bytes(TABLE + extra.read_vector(1, 1)?.len(), extra.byte_offset())?;
            extra.read_string(1)?
        }
    };
    Ok(Tensor { name, bytes, has_data: table.u32(5)? > 0, place })
}

/// Bits of an element, by `ScalarType`.
const fn element_bits(kind: u8) -> Option<u64> {
    Some(match kind {
        0 | 1 | 11..=13 | 23..=26 => 8,
        2 | 5 | 15 | 22 | 27 => 16,
        3 | 6 | 8 | 14 | 28 => 32,
        4 | 7 | 9 | 29 => 64,
        10 => 128,
        // Four or two numbers in a byte.
        16 => 4,
        17 => 2,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::flatbuffer::testing::{Field, write};
    use crate::formats::import::testing::{lives, parts, read, told};

    /// Made by ExecuTorch's own `flatc` from its schema (1.5.1).
    const SMALL: &[u8] = include_bytes!("../../../../fuzz/corpus/executorch/small.pte");

    /// A program whose method has a tensor of 16 floats in each of these many memories.
    fn memories(count: u32) -> Vec<u8> {
        let some = |number: u32| Some(Field::Number(number));
        let value = |memory: u32| {
            let place = Field::Table(vec![some(memory), some(0), some(0)]);
            let sizes = Field::Ints(vec![16]);
            let tensor = vec![some(6), None, Some(sizes), None, None, None, Some(place)];
            vec![some(u32::from(TENSOR)), Some(Field::Table(tensor))]
        };
        let inputs = Field::Ints((0..i32::try_from(count).expect("small")).collect());
        let values = Field::Tables((0..count).map(value).collect());
        let method = vec![Some(Field::Text("f")), None, Some(values), Some(inputs)];
        let mut bytes = b"\0\0\0\0ET12".to_vec();
        write(&mut bytes, &[None, Some(Field::Tables(vec![method]))], 0);
        bytes
    }

    #[test]
    fn a_method_of_many_memories_is_refused() {
        let most = u32::try_from(MOST_MEMORIES).expect("small");
        let imported = read("m.pte", memories(most)).expect("valid");
        assert_eq!(imported.parts.len(), MOST_MEMORIES);
        assert_eq!(lives(&imported.parts[1].trace), [("1", (0, 1), 64)]);
        let error = read("m.pte", memories(most + 1)).expect_err("too many");
        assert_eq!(error.reason(), "a method with 257 memories, more than 256");
        assert!(error.byte() > Some(8));
    }

    #[test]
    fn a_method_is_a_part_for_each_memory() {
        let imported = read("small.pte", SMALL).expect("valid");
        assert_eq!(parts(&imported), ["forward/memory-1", "forward/memory-2"]);
        let part = &imported.parts[0];
        assert_eq!(
            lives(&part.trace),
            [
                ("0", (0, 1), 64),
                ("2", (0, 5), 128),
                ("6", (2, 5), 128),
                ("8", (4, 5), 128),
                ("9:counter", (0, 5), 32),
            ]
        );
        let labels = &part.trace.labels.buffers;
        assert_eq!(labels[1].op.as_deref(), Some("0:aten::mm"));
        let categories: Vec<_> = labels.iter().filter_map(|label| label.category.as_deref()).collect();
        assert_eq!(categories, ["input", "activation", "activation", "output", "state"]);
        let plan = part.own_plan().expect("every buffer is placed");
        assert_eq!(part.trace.instance.verify(plan).expect("it is a plan").height().get(), 480);
        let reserved = |part: &Part| part.framework.as_ref().and_then(|said| said.reserved_peak);
        assert_eq!(reserved(part).map(planlab_dsa::Bytes::get), Some(480));
        assert_eq!(lives(&imported.parts[1].trace), [("10", (3, 5), 112)]);
        let label = &imported.parts[1].trace.labels.buffers[0];
        assert_eq!(label.requested.map(planlab_dsa::Bytes::get), Some(100));
        assert_eq!(imported.parts[1].framework.as_ref().expect("said").placement, [Some(1 << 32)]);
        assert_eq!(
            told(&imported),
            [
                "1 tensors with data (2048 bytes): they have memory of their own",
                "1 tensors without a place (32 bytes): the program gives them memory while it runs",
                "1 views: each is one buffer with what it shows, as large as the largest",
                "1 calls of delegates: the memory of their delegates is not planned",
                "5 buffers at multiples of 16 bytes, their sizes rounded up to them: as in ExecuTorch's own plan; \
                 --align takes another",
                "1 buffers at multiples of 16 bytes, their sizes rounded up to them: as in ExecuTorch's own plan; \
                 --align takes another",
            ]
        );
    }
}
