use super::*;
use crate::formats::export::tflite_micro::tests::{model, model_of};
use crate::formats::flatbuffer::Table;
use crate::formats::flatbuffer::testing::{Field, lead};
use crate::formats::import::testing::{lives, parts, read, told};

/// Codes of operators, and which subgraphs they run.
const ABS: u32 = 101;
const IF: u32 = 118;
const WHILE: u32 = 119;

/// Code, inputs, outputs, the subgraphs that it runs.
type Op<'o> = (u32, &'o [i32], &'o [i32], &'o [u32]);
/// Names of tensors, the input and the output, operators.
type Sub<'s> = (&'s [&'static str], (i32, i32), &'s [Op<'s>]);

/// A model of subgraphs, each with its tensors of 16 floats, an input and an output, and operators.
fn subgraphs(all: &[Sub<'_>]) -> Vec<u8> {
    let codes = [ABS, IF, WHILE];
    let some = |number: u32| Some(Field::Number(number));
    let ints = |ints: &[i32]| Some(Field::Ints(ints.to_vec()));
    let code = |code: &u32| vec![some(*code), None, None, some(*code)];
    let tensor = |name: &&'static str| vec![ints(&[4, 4]), None, None, Some(Field::Text(name))];
    let op = |&(code, inputs, outputs, runs): &Op<'_>| {
        let number = codes.iter().position(|&known| known == code).expect("known");
        let options = runs.iter().map(|&subgraph| some(subgraph)).collect();
        let number = u32::try_from(number).expect("small");
        vec![some(number), ints(inputs), ints(outputs), None, Some(Field::Table(options))]
    };
    let subgraph = |&(tensors, (input, output), ops): &Sub<'_>| {
        let tensors = Field::Tables(tensors.iter().map(tensor).collect());
        let ops = Field::Tables(ops.iter().map(op).collect());
        vec![Some(tensors), ints(&[input]), ints(&[output]), Some(ops)]
    };
    model_of(Some(Field::Tables(codes.iter().map(code).collect())), all.iter().map(subgraph).collect())
}

fn read_model(bytes: &[u8]) -> Result<Imported, FormatError> {
    read("m.tflite", bytes)
}

/// The condition and the body of a loop.
const CONDITION: Sub<'_> = (&["c", "is"], (0, 1), &[(ABS, &[0], &[1], &[])]);
const BODY: Sub<'_> = (&["i", "mid", "o"], (0, 2), &[(ABS, &[0], &[1], &[]), (ABS, &[1], &[2], &[])]);

#[test]
fn what_an_operator_runs_shares_the_memory() {
    let ops: [Op<'_>; 3] = [(ABS, &[0], &[1], &[]), (WHILE, &[1], &[2], &[1, 2]), (ABS, &[2], &[3], &[])];
    let imported =
        read_model(&subgraphs(&[(&["x", "a", "b", "y"], (0, 3), &ops), CONDITION, BODY])).expect("valid");
    assert_eq!(imported.parts.len(), 1);
    let trace = &imported.parts[0].trace;
    assert_eq!(
        lives(trace),
        [
            ("0:x", (0, 1), 64),
            // Read by the loop, from its step to the last inside of it.
            ("1:a", (0, 7), 64),
            ("2:b", (1, 8), 64),
            ("3:y", (7, 8), 64),
            ("4:c", (2, 4), 64),
            ("5:is", (3, 4), 64),
            ("6:i", (4, 6), 64),
            ("7:mid", (5, 7), 64),
            ("8:o", (6, 7), 64),
        ]
    );
    let labels = &trace.labels.buffers;
    assert_eq!((labels[2].op.as_deref(), labels[7].op.as_deref()), (Some("1:while"), Some("1:while/0:abs")));
    let of =
        |category: &str| labels.iter().filter(|label| label.category.as_deref() == Some(category)).count();
    assert_eq!((of("input"), of("output"), of("activation")), (1, 1, 7));
    assert_eq!(trace.labels.meta_value(TENSORS_KEY), Some("9"));
    // Inside of the loop what ends may be overwritten, what it gives may not.
    let permitted: Vec<(usize, usize)> =
        trace.instance.in_place().iter().map(|pair| (pair.output.index(), pair.input.index())).collect();
    assert_eq!(permitted, [(1, 0), (3, 2), (5, 4), (7, 6), (8, 7)]);
}

#[test]
fn a_subgraph_that_runs_twice_is_live_from_the_first_time_to_the_last() {
    let ops: [Op<'_>; 2] = [(IF, &[0], &[1], &[1, 1]), (IF, &[1], &[2], &[1, 1])];
    let imported = read_model(&subgraphs(&[(&["x", "a", "y"], (0, 2), &ops), CONDITION])).expect("valid");
    let trace = &imported.parts[0].trace;
    // Steps 0 and 5 are those of the two operators.
    assert_eq!(
        lives(trace)[1..],
        [("1:a", (0, 10), 64), ("2:y", (5, 10), 64), ("3:c", (1, 10), 64), ("4:is", (2, 10), 64)]
    );
}

#[test]
fn a_subgraph_that_nothing_runs_is_a_part() {
    let imported = read_model(&subgraphs(&[CONDITION, BODY])).expect("valid");
    assert_eq!(parts(&imported), ["subgraph-0", "subgraph-1#1"]);
    assert_eq!(lives(&imported.parts[1].trace)[0], ("2:i", (0, 1), 64));
}

#[test]
fn a_subgraph_without_a_buffer_is_left_out() {
    let imported = read_model(&subgraphs(&[CONDITION, (&["weights"], (-1, -1), &[])])).expect("valid");
    assert_eq!(parts(&imported), ["subgraph-0"]);
    let told = told(&imported).pop();
    assert_eq!(told.as_deref(), Some("1 traces: no buffer in them needs a place: subgraph-1#1"));
}

#[test]
fn subgraphs_that_run_without_end_are_refused() {
    let again: [Op<'_>; 1] = [(WHILE, &[0], &[1], &[0, 0])];
    let error = read_model(&subgraphs(&[(&["x", "y"], (0, 1), &again)])).expect_err("without end");
    assert!(error.byte() > Some(8) && error.reason() == "subgraph 0 runs itself in the end", "{error}");
    let nowhere: [Op<'_>; 1] = [(IF, &[0], &[1], &[0, 7])];
    let error = read_model(&subgraphs(&[(&["x", "y"], (0, 1), &nowhere)])).expect_err("there is none");
    assert!(error.byte() > Some(8) && error.reason() == "there is no subgraph 7 of 1", "{error}");
    // Two that run only each other.
    let (first, second): ([Op<'_>; 1], [Op<'_>; 1]) =
        ([(IF, &[0], &[1], &[2, 2])], [(IF, &[0], &[1], &[1, 1])]);
    let model = [CONDITION, (&["x", "y"][..], (0, 1), &first[..]), (&["x", "y"][..], (0, 1), &second[..])];
    let imported = read_model(&subgraphs(&model)).expect("the first is a model");
    assert_eq!(imported.parts.len(), 1);
    let told = imported.dropped.iter().find(|dropped| dropped.what == "subgraphs that run each other");
    assert_eq!(told.map(|dropped| dropped.count), Some(2));
}

#[test]
fn subgraphs_that_run_others_again_and_again_are_refused() {
    // Each of 15 runs the next 80 times.
    let names: &[&str] = &["x", "y"];
    let runs: Vec<[u32; 2]> = (1..17).map(|next| [next, next]).collect();
    let calls: Vec<Vec<Op<'_>>> =
        runs.iter().map(|runs| (0..40).map(|_| (IF, &[0][..], &[1][..], &runs[..])).collect()).collect();
    let mut all: Vec<Sub<'_>> = calls.iter().take(15).map(|ops| (names, (0, 1), &ops[..])).collect();
    all.push(CONDITION);
    let error = read_model(&subgraphs(&all)).expect_err("it would run for years");
    assert!(error.reason().contains("more than the file has bytes for"), "{error}");
}

/// The file with one vector of its root in which the first table stands again and again: few bytes, read many times.
fn again(whole: &[u8], vector: u16, count: u32) -> Vec<u8> {
    let mut many = whole.to_vec();
    let root = Table::root_table(whole).expect("a model");
    let table =
        root.read_vector(vector, 4).and_then(|tables| tables.table_at(0)).expect("there").byte_offset();
    let field = root.field_offset(vector).expect("valid").expect("there");
    lead(&mut many, field);
    // Offsets lead forward: the vector stands before a second copy of the model's tables.
    many.extend(count.to_le_bytes());
    let copy = many.len() + 4 * count as usize;
    for at in (many.len()..copy).step_by(4) {
        many.extend(u32::try_from(copy + table - at).expect("small").to_le_bytes());
    }
    many.extend(whole);
    many
}

#[test]
fn one_table_named_again_and_again_is_refused() {
    let whole = model();
    assert!(read_model(&whole).is_ok());
    let error = read_model(&again(&whole, 2, 100_000)).map(drop).expect_err("a trick");
    assert!(error.reason().contains("more than the file has bytes for"), "{error}");
}

/// Names count as often as they are copied: those of custom operators, and those of subgraphs.
#[test]
fn one_long_name_named_again_and_again_is_refused() {
    let name = || Some(Field::Text("n".repeat(100_000).leak()));
    let some = |number: u32| Some(Field::Number(number));
    let ints = |ints: &[i32]| Some(Field::Ints(ints.to_vec()));
    let code = vec![some(operators::CUSTOM), name(), None, some(operators::CUSTOM)];
    let tensors = Field::Tables(vec![vec![ints(&[4, 4])]]);
    let subgraph = vec![Some(tensors), ints(&[0]), ints(&[0]), None, name()];
    let whole = model_of(Some(Field::Tables(vec![code])), vec![subgraph]);
    for vector in [1, 2] {
        assert!(read_model(&again(&whole, vector, 2)).is_ok());
        let error = read_model(&again(&whole, vector, 100)).map(drop).expect_err("a trick");
        assert!(error.reason().contains("more than the file has bytes for"), "{error}");
    }
}
