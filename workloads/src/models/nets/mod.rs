//! The nets, one file a family.

pub mod alexnet;
pub mod googlenet;
pub mod inception_resnet;
pub mod resnet;

use super::net::{Net, Value};

/// The loss of a classification with its accuracy, both reported.
fn classify(net: &Net, h: Value, labels: &Value) -> Value {
    let loss = net.softmax_cross_entropy(h.clone(), labels);
    let accuracy = net.accuracy(h, labels);
    net.report(&[&loss, &accuracy]);
    loss
}
