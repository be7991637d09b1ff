//! Which operators hand on what they are given: their first output is their first input, seen otherwise.

use super::messages::{Node, is_own};
use super::shapes::Shapes;

const VIEWS: [&str; 5] = ["Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"];
/// From this version on Dropout drops nothing, unless its third input says that the net is trained.
const DROPOUT_SAYS: i64 = 12;
/// From this version on it drops nothing at all; before, an attribute says so.
const DROPOUT_IS_OFF: i64 = 7;

/// Whether a node is a view, of operators of a version.
pub(crate) fn is_view(node: &Node, version: i64, shapes: &Shapes<'_>) -> bool {
    let op = node.op_type.as_str();
    is_own(node.domain.as_deref())
        && (VIEWS.contains(&op) || op == "Dropout" && drops_nothing(node, version, shapes))
}

fn drops_nothing(node: &Node, version: i64, shapes: &Shapes<'_>) -> bool {
    if version < DROPOUT_IS_OFF {
        return node.int_attribute("is_test").is_some_and(|flag| flag != 0);
    }
    let trained = node.inputs.get(2).filter(|name| version >= DROPOUT_SAYS && !name.is_empty());
    // One that is known only when the net runs may say either.
    trained.is_none_or(|name| {
        shapes.values.get(name.as_str()).is_some_and(|value| value.ints.as_deref() == Some(&[0]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::import::onnx::messages::{Attribute, Graph, Tensor};
    use crate::formats::import::onnx::shapes::value::BOOL;
    use crate::formats::import::onnx::testing::node;

    fn dropout(inputs: &[&str], is_test: Option<i64>) -> Node {
        let attribute =
            is_test.map(|i| Attribute { name: "is_test".to_owned(), i: Some(i), ..Attribute::default() });
        Node { attributes: attribute.into_iter().collect(), ..node("Dropout", inputs, &[]) }
    }

    #[test]
    fn dropout_is_a_view_where_it_drops_nothing() {
        let flag = |name: &str, flag: i32| Tensor {
            data_type: Some(BOOL),
            int32_data: vec![flag],
            name: Some(name.to_owned()),
            ..Tensor::default()
        };
        let graph = Graph { initializers: vec![flag("no", 0), flag("yes", 1)], ..Graph::default() };
        let shapes = Shapes::from_graph(&graph, &[]).expect("known");
        let is = |node: &Node, version| is_view(node, version, &shapes);
        for (inputs, expected) in [
            (&["x"][..], true),
            (&["x", "ratio"], true),
            (&["x", "", ""], true),
            (&["x", "ratio", "no"], true),
            (&["x", "ratio", "yes"], false),
            (&["x", "ratio", "given when it runs"], false),
        ] {
            assert_eq!(is(&dropout(inputs, None), 13), expected, "{inputs:?}");
        }
        assert!(is(&dropout(&["x"], None), 7) && is(&dropout(&["x"], None), 10));
        assert_eq!([None, Some(0), Some(1)].map(|flag| is(&dropout(&["x"], flag), 6)), [false, false, true]);
        let other = Node { domain: Some("mine".to_owned()), ..dropout(&["x"], None) };
        assert!(!is(&other, 13));
    }
}
