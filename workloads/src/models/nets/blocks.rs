//! What the classifiers of images share: how they begin and how they end.

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
