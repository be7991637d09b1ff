//! What nets share: their inputs, embeddings and losses.

use super::model::Sizes;
use crate::models::net::{Net, NetValue};

/// Images, and their labels if the net returns a loss.
pub(crate) fn images(net: &Net, sizes: Sizes) -> (NetValue, Option<NetValue>) {
    let x = net.new_input(vec![sizes.batch, 3, sizes.extent, sizes.extent]);
    (x, net.is_scored().then(|| net.new_input(vec![sizes.batch])))
}

/// The loss of a classification, reported together with the accuracy; without labels, the scores.
pub(crate) fn classify(net: &Net, h: NetValue, labels: Option<&NetValue>) -> NetValue {
    let Some(labels) = labels else { return h };
    let loss = net.softmax_cross_entropy(h.clone(), labels);
    let accuracy = net.accuracy(h, labels);
    net.report_values(&[&loss, &accuracy]);
    loss
}

/// The vectors of new indices of this shape, from a table of their own.
pub(crate) fn embed(net: &Net, shape: Vec<u64>, rows: u64, width: u64) -> NetValue {
    let indices = net.new_input(shape);
    net.embedding(&indices, net.new_parameter(vec![rows, width]), width)
}

/// The loss of the prediction of each token or pixel; the scores if the net returns no loss.
pub(crate) fn loss_of_each(net: &Net, scores: NetValue, shape: Vec<u64>) -> NetValue {
    if !net.is_scored() {
        return scores;
    }
    let labels = net.new_input(shape);
    let loss = net.softmax_cross_entropy(scores, &labels);
    net.report_values(&[&loss]);
    loss
}
