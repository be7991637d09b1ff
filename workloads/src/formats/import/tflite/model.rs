//! The tables of a model: tensors, subgraphs, and the offline plan among the metadata.

use std::ops::Range;

use super::operators;
use crate::formats::flatbuffer::{Broken, ReadBudget, TABLE, Table, Vector};

/// The name of the metadata.
pub(crate) const METADATA: &str = "OfflineMemoryAllocation";
/// Metadata of a trace: how many tensors the model has.
pub(crate) const TENSORS_KEY: &str = "tflite-tensors";
/// Metadata of a trace: tensors that are in another's buffer, `14=12 15=12`.
pub(crate) const VIEWS_KEY: &str = "tflite-views";

/// What is read of a model.
pub(crate) struct Model {
    /// Of all subgraphs, one subgraph after the other.
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) subgraphs: Vec<Subgraph>,
    /// Offsets of the tensors, or -1; empty if there is no offline plan.
    pub(crate) offline: Vec<i32>,
}

pub(crate) struct Tensor {
    pub(crate) name: String,
    /// None of strings and the like.
    pub(crate) bytes: Option<u64>,
    pub(crate) elements: u64,
    pub(crate) has_data: bool,
    pub(crate) is_variable: bool,
    /// Whether a dimension is known only when it runs; the shape has 1 there.
    pub(crate) is_dynamic: bool,
}

pub(crate) struct Subgraph {
    pub(crate) name: String,
    pub(crate) tensors: Range<usize>,
    /// Byte of its table.
    pub(crate) at: usize,
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<usize>,
    pub(crate) calls: Vec<Call>,
}

/// An operator of a subgraph.
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) is_view: bool,
    /// How many of its first inputs have elements at the places of those that it makes of them.
    pub(crate) elementwise: usize,
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<usize>,
    /// The subgraphs that it runs.
    pub(crate) runs: Vec<usize>,
}

/// What subgraphs share: buffers and operators.
struct Shared {
    /// Of each buffer, whether it has data.
    has_data: Vec<bool>,
    /// Code and name of each operator that is used.
    operators: Vec<(u32, String)>,
    subgraphs: usize,
}

impl Model {
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, Broken> {
        let mut spent = ReadBudget::from_bytes(bytes);
        let root = Table::root_table(bytes)?;
        let subgraphs = root.read_vector(2, 4)?;
        let buffers = root.read_vector(4, 4)?;
        let operators = read_operators(root, &mut spent)?;
        let shared = Shared { has_data: has_data(buffers)?, operators, subgraphs: subgraphs.len() };
        let mut model =
            Self { tensors: Vec::new(), subgraphs: Vec::new(), offline: offline_offsets(root, buffers)? };
        for subgraph in subgraphs.tables() {
            model.read_subgraph(subgraph?, &shared, &mut spent)?;
        }
        Ok(model)
    }

    /// The subgraphs that no other runs. The first is always one: with it a run begins.
    pub(crate) fn root_subgraphs(&self) -> impl Iterator<Item = usize> {
        let mut is_run = vec![false; self.subgraphs.len()];
        let calls = self.subgraphs.iter().flat_map(|subgraph| &subgraph.calls);
        calls.flat_map(|call| &call.runs).for_each(|&subgraph| is_run[subgraph] = true);
        (0..is_run.len()).filter(move |&number| number == 0 || !is_run[number])
    }

    fn read_subgraph(
        &mut self,
        table: Table<'_>,
        shared: &Shared,
        spent: &mut ReadBudget,
    ) -> Result<(), Broken> {
        spent.take_bytes(TABLE + table.read_vector(4, 1)?.len(), table.byte_offset())?;
        let first = self.tensors.len();
        for tensor in table.read_vector(0, 4)?.tables() {
            self.tensors.push(shared.read_tensor(tensor?, spent)?);
        }
        let count = self.tensors.len() - first;
        let list = |of: Table<'_>, field: u16, spent: &mut ReadBudget| {
            let vector = of.read_vector(field, 4)?;
            spent.take_bytes(4 * vector.len(), of.byte_offset())?;
            let check = |number: i32| match usize::try_from(number) {
                Ok(number) if number < count => Ok(Some(first + number)),
                // An input that is left out.
                Err(_) if number == -1 => Ok(None),
                _ => Err(Broken::new(of.byte_offset(), format!("there is no tensor {number} of {count}"))),
            };
            let numbers = vector.ints().map(check).collect::<Result<Vec<_>, _>>()?;
            Ok(numbers.into_iter().flatten().collect::<Vec<usize>>())
        };
        let (inputs, outputs) = (list(table, 1, spent)?, list(table, 2, spent)?);
        let mut calls = Vec::new();
        for operator in table.read_vector(3, 4)?.tables() {
            let operator = operator?;
            let (number, name) = shared.operator_code(operator)?;
            spent.take_bytes(TABLE + name.len(), operator.byte_offset())?;
            let (inputs, outputs) = (list(operator, 1, spent)?, list(operator, 2, spent)?);
            calls.push(Call {
                is_view: operators::VIEWS.contains(number),
                elementwise: operators::replaceable_inputs(*number),
                name: name.clone(),
                inputs,
                outputs,
                runs: shared.subgraphs_run(operator, *number)?,
            });
        }
        let (name, tensors) = (table.read_string(4)?, first..self.tensors.len());
        self.subgraphs.push(Subgraph { name, tensors, at: table.byte_offset(), inputs, outputs, calls });
        Ok(())
    }
}

impl Shared {
    fn operator_code(&self, operator: Table<'_>) -> Result<&(u32, String), Broken> {
        let code = operator.u32(0)?;
        let known = usize::try_from(code).ok().and_then(|code| self.operators.get(code));
        known.ok_or_else(|| Broken::new(operator.byte_offset(), format!("there is no operator code {code}")))
    }

    /// The subgraphs that an operator runs, one after the other.
    fn subgraphs_run(&self, operator: Table<'_>, code: u32) -> Result<Vec<usize>, Broken> {
        let fields = operators::subgraph_count(code);
        if fields == 0 {
            return Ok(Vec::new());
        }
        let Some(options) = operator.read_table(4)? else {
            return Err(Broken::new(operator.byte_offset(), "it does not say which subgraphs it runs"));
        };
        let number = |field: u16| {
            let number = options.u32(field)?;
            let known = usize::try_from(number).ok().filter(|&number| number < self.subgraphs);
            let count = self.subgraphs;
            known.ok_or_else(|| {
                Broken::new(options.byte_offset(), format!("there is no subgraph {number} of {count}"))
            })
        };
        (0..fields).map(number).collect()
    }

    fn read_tensor(&self, table: Table<'_>, spent: &mut ReadBudget) -> Result<Tensor, Broken> {
        let bad = |reason: String| Broken::new(table.byte_offset(), reason);
        let buffer = table.u32(2)?;
        let has_data = usize::try_from(buffer).ok().and_then(|buffer| self.has_data.get(buffer));
        let has_data = *has_data.ok_or_else(|| bad(format!("there is no buffer {buffer}")))?;
        let dims = table.read_vector(0, 4)?.len() + table.read_vector(7, 4)?.len();
        spent.take_bytes(TABLE + 4 * dims + table.read_vector(3, 1)?.len(), table.byte_offset())?;
        let mut elements = 1_u64;
        for dim in table.read_vector(0, 4)?.ints() {
            let dim = u64::try_from(dim).map_err(|_| bad(format!("a dimension of {dim}")))?;
            elements =
                elements.checked_mul(dim).ok_or_else(|| bad("its elements do not fit 64 bits".to_owned()))?;
        }
        let bytes = match operators::element_bits(table.u8(1)?) {
            Some(bits) => {
                let bits = elements.checked_mul(bits);
                Some(bits.ok_or_else(|| bad("its bytes do not fit 64 bits".to_owned()))?.div_ceil(8))
            }
            None => None,
        };
        let is_dynamic = table.read_vector(7, 4)?.ints().any(|dim| dim < 0);
        let is_variable = table.u8(5)? != 0;
        Ok(Tensor { name: table.read_string(3)?, bytes, elements, has_data, is_variable, is_dynamic })
    }
}

fn read_operators(root: Table<'_>, spent: &mut ReadBudget) -> Result<Vec<(u32, String)>, Broken> {
    let mut operators = Vec::new();
    for code in root.read_vector(1, 4)?.tables() {
        let code = code?;
        // The field of a byte came first, and ends at 127.
        let number = u32::from(code.u8(0)?).max(code.u32(3)?);
        spent.take_bytes(TABLE + code.read_vector(1, 1)?.len(), code.byte_offset())?;
        let custom = if number == operators::CUSTOM { code.read_string(1)? } else { String::new() };
        let name = if custom.is_empty() { operators::operator_name(number) } else { custom };
        operators.push((number, name));
    }
    Ok(operators)
}

fn has_data(buffers: Vector<'_>) -> Result<Vec<bool>, Broken> {
    let mut has_data = Vec::with_capacity(buffers.len());
    for buffer in buffers.tables() {
        let buffer = buffer?;
        // Large models keep data behind the flatbuffer: `offset` and `size`.
        has_data.push(buffer.read_vector(0, 1)?.len() > 0 || buffer.u64(1)? > 1);
    }
    Ok(has_data)
}

/// The offsets of the offline plan in a model's metadata.
fn offline_offsets(root: Table<'_>, buffers: Vector<'_>) -> Result<Vec<i32>, Broken> {
    for metadata in root.read_vector(6, 4)?.tables() {
        let metadata = metadata?;
        if metadata.read_vector(0, 1)?.bytes() == METADATA.as_bytes() {
            let number = usize::try_from(metadata.u32(1)?).unwrap_or(usize::MAX);
            let buffer = buffers.table_at(number)?;
            let words = buffer.read_vector(0, 1)?.bytes().as_chunks::<4>().0;
            let mut words = words.iter().map(|&word| i32::from_le_bytes(word)).skip(2);
            let count = words.next().and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
            return Ok(words.take(count).collect());
        }
    }
    Ok(Vec::new())
}
