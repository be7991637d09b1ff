//! The shape of an Einsum: each letter of its equation stands for a dimension.

use std::collections::BTreeMap;

use super::call::{Call, one};
use super::value::Value;

/// The letters that a dimension is named by, and what it is.
type Dims = BTreeMap<char, Dim>;

struct Dim {
    size: u64,
    times: u64,
}

pub(crate) fn infer_einsum(call: &Call<'_>) -> Result<Vec<Value>, String> {
    let equation = call.text_attribute("equation").ok_or("it says no equation")?.replace(' ', "");
    if equation.contains('.') {
        return Err("an equation with `...` has no rule here".to_owned());
    }
    let (inputs, output) = match equation.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (equation.as_str(), None),
    };
    let dims = read_dimensions(call, inputs)?;
    let letters: String = match output {
        Some(output) => output.to_owned(),
        // What is named once, in the order of the alphabet.
        None => dims.iter().filter(|(_, dim)| dim.times == 1).map(|(&letter, _)| letter).collect(),
    };
    let size = |letter: char| dims.get(&letter).map(|dim| dim.size);
    let shape = letters.chars().map(size).collect::<Option<Vec<u64>>>();
    let shape = shape.ok_or("its output has a letter that no input has")?;
    one(call.required_input(0)?.elem, &shape)
}

/// The dimensions of the inputs by their letters.
fn read_dimensions(call: &Call<'_>, terms: &str) -> Result<Dims, String> {
    let terms: Vec<&str> = terms.split(',').collect();
    if terms.len() != call.node.inputs.len() {
        return Err(format!("{} terms for {} inputs", terms.len(), call.node.inputs.len()));
    }
    let mut dims = Dims::new();
    for (at, term) in terms.into_iter().enumerate() {
        let shape = &call.required_input(at)?.shape;
        if term.chars().count() != shape.len() {
            return Err(format!("the term `{term}` for {} dimensions", shape.len()));
        }
        for (letter, &size) in term.chars().zip(shape) {
            let dim = dims.entry(letter).or_insert(Dim { size, times: 0 });
            dim.times += 1;
            // A dimension of 1 is repeated.
            match (dim.size, size) {
                (known, size) if known == size || size == 1 => {}
                (1, size) => dim.size = size,
                (known, size) => return Err(format!("`{letter}` is {known} and {size}")),
            }
        }
    }
    Ok(dims)
}
