//! What is wrong with a graph, in words.

use crate::formats::error::quote_excerpt;

/// What is wrong with a graph.
#[derive(Debug)]
pub(crate) struct ModelFault {
    /// The node, if it is one.
    pub(crate) node: Option<usize>,
    pub(crate) reason: String,
}

impl From<String> for ModelFault {
    fn from(reason: String) -> Self {
        Self { node: None, reason }
    }
}

impl ModelFault {
    /// What is wrong with a node.
    pub(crate) const fn from_node(node: usize, reason: String) -> Self {
        Self { node: Some(node), reason }
    }
}

/// Names in a list of an error.
pub(crate) const SHOWN: usize = 8;

/// A reason that may quote shapes of any length, for a message.
pub(crate) fn brief(reason: &str) -> String {
    const MOST: usize = 200;
    let mut brief: String = reason.chars().filter(|letter| !letter.is_control()).take(MOST).collect();
    if brief.len() < reason.len() {
        brief.push_str("...");
    }
    brief
}

/// A name of the file, for a message.
pub(crate) fn shown(name: &str) -> String {
    quote_excerpt(name)
}
