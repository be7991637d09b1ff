//! Graph JSON Lines: a header object, then one object for each operation in execution order.
//!
//! ```text
//! {"planlab":"graph","version":1,"tensors":[{"tensor":"x","bytes":64,"category":"input"}]}
//! {"op":"relu","name":"r1","reads":["x"],"writes":[{"tensor":"y","bytes":64}],"inplace":[["x","y"]]}
//! ```
//!
//! The header lists the inputs (tensors that no operation makes). The first mention of a tensor, in the header or in
//! `writes`, gives its size in `bytes`. Later mentions may leave out its fields, repeat them or add others; a mention
//! that contradicts an earlier one is an error. `"output":true` keeps a tensor to the end, and `"external":true` leaves
//! its memory to the caller.
//! `"alias":"x","at":16` places a tensor in the storage of another, from its byte 16 (without `at`: 0). `workspace`
//! (bytes), `flops`, `seconds` and `stream` (a number) are optional.
//!
//! With `"order":"any"` in the header, operations may come in any order. They are sorted like in
//! [`GraphBuilder::build_in_any_order`](crate::GraphBuilder::build_in_any_order).
//!
//! Tensors are numbered in the order of writing: first the inputs, as the file mentions them, then the others, as
//! operations make them. So a graph stays the same if it is read, written and read again.

mod raw;
mod read;
mod write;

pub use read::read_jsonl;
pub use write::write_jsonl;

#[cfg(test)]
mod tests {
    use planlab_dsa::{Bytes, Stream};

    use super::write::unique_names;
    use super::*;
    use crate::{Graph, Tensor, TensorId};

    const TWO: &str = r#"{"planlab":"graph","version":1,"tensors":[{"tensor":"x","bytes":64,"category":"input"}]}
{"op":"relu","name":"r1","reads":["x"],"writes":[{"tensor":"y","bytes":64}],"inplace":[["x","y"]]}
{"op":"gemm","reads":["y"],"writes":[{"tensor":"z","bytes":32,"output":true,"external":true}],"workspace":8,"flops":100,"seconds":0.5}
"#;

    #[test]
    fn graph_is_known_by_its_header() {
        assert!(Graph::begins_file(TWO.as_bytes()));
        let net = TWO.replace(r#""planlab":"graph""#, r#""planlab":"training-net""#);
        assert!(!Graph::begins_file(net.as_bytes()) && !Graph::begins_file(b""));
    }

    #[test]
    fn a_graph_comes_back_as_it_was() {
        let graph = read_jsonl("two.jsonl", TWO).expect("valid");
        assert_eq!(graph.operations().len(), 2);
        assert_eq!(write_jsonl(&graph), TWO);
    }

    #[test]
    fn aliases_and_streams_come_back() {
        let text = r#"{"planlab":"graph","version":1,"tensors":[{"tensor":"x","bytes":64}]}
{"op":"split","reads":["x"],"writes":[{"tensor":"a","bytes":32,"alias":"x"},{"tensor":"b","bytes":32,"alias":"x","at":32}]}
{"op":"relu","reads":["b"],"writes":[{"tensor":"y","bytes":32}],"stream":1}
"#;
        let graph = read_jsonl("views.jsonl", text).expect("valid");
        assert_eq!(write_jsonl(&graph), text);
        assert_eq!(graph.tensor_place(TensorId::from_index(2)).offset, Bytes::new(32));
        assert_eq!(graph.operations()[1].stream, Stream::new(1));
    }

    #[test]
    fn operations_in_any_order_are_sorted() {
        let (header, operations) = TWO.split_once('\n').expect("lines");
        let lines: Vec<&str> = operations.lines().rev().collect();
        let any = header.replace("\"version\":1", "\"version\":1,\"order\":\"any\"");
        let graph = read_jsonl("any.jsonl", &format!("{any}\n{}", lines.join("\n"))).expect("valid");
        assert_eq!(write_jsonl(&graph), TWO);
        let error =
            read_jsonl("two.jsonl", &format!("{header}\n{}", lines.join("\n"))).expect_err("no order");
        assert!(error.to_string().contains(" before "), "{error}");
    }

    #[test]
    fn errors_name_the_line() {
        let header = r#"{"planlab":"graph","version":1}"#;
        let any = r#"{"planlab":"graph","version":1,"order":"any"}"#;
        let with_x = r#"{"planlab":"graph","version":1,"tensors":[{"tensor":"x","bytes":8}]}"#;
        let huge = r#"{"op":"h","writes":[{"tensor":"huge","bytes":18446744073709551615}]}"#;
        let op = |name: &str, reads: &[&str], writes: &[&str]| {
            let writes: Vec<String> =
                writes.iter().map(|name| format!(r#"{{"tensor":"{name}","bytes":4}}"#)).collect();
            format!(r#"{{"op":"f","name":"{name}","reads":{reads:?},"writes":[{}]}}"#, writes.join(","))
        };
        let (reads_x, makes_x) = (op("a", &["x"], &[]), op("a", &[], &["x"]));
        let (also_makes_x, updates_x) = (op("b", &[], &["x"]), op("u", &["x"], &["x"]));
        let cycle = [op("a", &["y"], &["x"]), op("b", &["x"], &["y"])];
        // An operation that writes one tensor, given its fields.
        let writer = |op: &str, fields: &str| format!(r#"{{"op":"{op}","writes":[{{"tensor":{fields}}}]}}"#);
        for (lines, place) in [
            (&[""][..], "1: the file is empty"),
            (&[r#"{"planlab":"plan","version":1}"#], "1: a `plan` of version 1"),
            (&[header, "", r#"{"op":"f","reads":["x"]}"#], "3: tensor `x` is unknown"),
            (&[header, r#"{"op":"f","colour":1}"#], "2: not an operation: unknown field"),
            (&[header, &writer("f", r#""x","bytes":-1"#)], "2: not an"),
            (&[header, &writer("f", r#""x","bytes":0"#)], "2: tensor `x`"),
            (&[header, r#"{"op":"f","seconds":-1.0}"#], "2: `f` (line 2) takes -1 seconds"),
            (
                &[header, &reads_x, &also_makes_x],
                "2: `a` (line 2) reads tensor `x` before `b` (line 3) makes it",
            ),
            (&[header, &makes_x, &also_makes_x], "3: `a` (line 2) and `b` (line 3) both write tensor `x`"),
            (
                &[any, &cycle[0], "", &cycle[1]],
                "2: operations wait for each other in a cycle: `a` (line 2) -> `b` (line 4) -> `a` (line 2)",
            ),
            (&[header, &writer("f", r#""v","bytes":4,"alias":"w""#)], "2: tensor `w` is unknown"),
            (&[header, &writer("f", r#""v","bytes":4,"at":4"#)], "2: tensor `v` has `at`, but no `alias`"),
            (&[header, &makes_x, huge], "3: tensor `huge` brings the total size of the tensors above"),
            (&[header, &updates_x], "2: tensor `x` is read before any operation writes it"),
            // Byte 4 has two writers.
            (
                &[
                    with_x,
                    &writer("f", r#""a","bytes":5,"alias":"x""#),
                    &writer("g", r#""b","bytes":4,"alias":"x","at":4"#),
                ],
                "3: `g` (line 3) writes tensor `b`, which shares bytes with",
            ),
        ] {
            let error = read_jsonl("bad", &lines.join("\n")).expect_err(place).to_string();
            assert!(error.starts_with(&format!("bad:{place}")), "{error}\n{lines:?}");
        }
        let in_header = with_x.replace('8', "4");
        assert!(read_jsonl("g", &format!("{in_header}\n{updates_x}")).is_ok());
    }

    #[test]
    fn mentions_of_a_tensor_are_merged() {
        let text = r#"{"planlab":"graph","version":1,"tensors":[{"tensor":"x","bytes":64},{"tensor":"w","bytes":64}]}
{"op":"update","reads":["x"],"writes":[{"tensor":"x","category":"state","output":true,"bytes":64}]}
{"op":"view","reads":["w"],"writes":[{"tensor":"v","bytes":8}]}
{"op":"update","reads":["v","x"],"writes":[{"tensor":"v","alias":"w","at":8},{"tensor":"x","output":true}]}
"#;
        let graph = read_jsonl("merged.jsonl", text).expect("valid");
        let x = Tensor::new("x", Bytes::new(64)).with_category("state").as_output();
        let v = Tensor::new("v", Bytes::new(8)).with_base(TensorId::from_index(1), Bytes::new(8));
        assert_eq!((&graph.tensors()[0], &graph.tensors()[2]), (&x, &v));
    }

    #[test]
    fn a_mention_that_contradicts_an_earlier_one_is_an_error() {
        let of = |first: &str, later: &str| {
            let text = format!(
                "{{\"planlab\":\"graph\",\"version\":1,\"tensors\":[{{\"tensor\":\"y\",\"bytes\":64}},{{\"tensor\":\"x\",\
                 \"bytes\":4,{first}}}]}}\n\n{{\"op\":\"f\",\"reads\":[\"x\"],\"writes\":[{{\"tensor\":\"x\",{later}}}]}}"
            );
            read_jsonl("bad", &text).map_err(|error| error.to_string())
        };
        let alias = r#""alias":"y""#;
        for (first, later, told) in [
            (alias, r#""bytes":8"#, "`bytes` 8 here, but 4 on line 1"),
            (r#""category":"a""#, r#""category":"b""#, "`category` \"b\" here, but \"a\" on line 1"),
            (r#""output":false"#, r#""output":true"#, "`output` true here, but false on line 1"),
            (r#""external":true"#, r#""external":false"#, "`external` false here, but true on line 1"),
            (alias, r#""alias":"x""#, "`alias` \"x\" here, but \"y\" on line 1"),
            (alias, r#""at":4"#, "`at` 4 here, but 0 on line 1"),
        ] {
            let error = of(first, later).expect_err(told);
            assert_eq!(error, format!("bad:3: tensor `x` has {told}"));
        }
        assert!(of(alias, r#""at":0,"bytes":4,"output":false"#).is_ok());
    }

    #[test]
    fn every_tensor_has_a_name_of_its_own() {
        let mut graph = Graph::builder();
        for name in ["", "#0", "a", "a", "a#2", "#0#", ""] {
            graph.add_tensor(Tensor::new(name, Bytes::new(1)));
        }
        let graph = graph.build().expect("valid");
        assert_eq!(unique_names(&graph), ["#0##", "#0", "a#2#", "a#3", "a#2", "#0#", "#6"]);
        assert_eq!(read_jsonl("again", &write_jsonl(&graph)).expect("valid").tensors().len(), 7);
    }

    #[test]
    fn a_graph_that_is_read_written_and_read_is_the_same() {
        // An output in the header before the input, and a time with 17 digits.
        let text = r#"{"planlab":"graph","version":1,"order":"any","tensors":[{"tensor":"y","bytes":4,"output":true},{"tensor":"x","bytes":8}]}
{"op":"g","reads":["v"],"writes":[{"tensor":"y"}],"seconds":7.2057594037927933e-5,"inplace":[["v","y"]]}
{"op":"f","reads":["x"],"writes":[{"tensor":"v","bytes":4,"alias":"x","at":4}],"seconds":1.7976931348623157e308}
{"op":"update","reads":["x"],"writes":[{"tensor":"x"}],"seconds":0.30000000000000004}
"#;
        let graph = read_jsonl("any", text).expect("valid");
        let written = write_jsonl(&graph);
        assert_eq!(read_jsonl("again", &written).expect("valid"), graph, "{written}");
        let names: Vec<&str> = graph.tensors().iter().map(|tensor| tensor.name.as_str()).collect();
        assert_eq!(names, ["x", "v", "y"]);
    }
}
