//! AlexNet, one tower with 227 x 227 inputs.
//!
//! # References
//!
//! 1. A. Krizhevsky, I. Sutskever, G. E. Hinton, *ImageNet Classification with Deep Convolutional Neural Networks*,
//!    NIPS 2012.
//! 2. Chainer 3.0.0rc1, `examples/imagenet/alex.py`.

use super::classify;
use crate::models::net::{Net, Value, Window};

/// Extents of an input image.
pub const INPUT: u64 = 227;

/// The net.
pub fn alexnet(n: &Net, x: &Value, labels: &Value) -> Value {
    let pool = Window::square(3).stride(2).covering();
    let three = Window::square(3).pad(1);
    let h = n.conv_bias(x.clone(), 96, Window::square(11).stride(4));
    let mut h = n.max_pool(n.lrn(n.relu(h)), pool);
    h = n.max_pool(n.lrn(n.relu(n.conv_bias(h.clone(), 256, Window::square(5).pad(2)))), pool);
    h = n.relu(n.conv_bias(h.clone(), 384, three));
    h = n.relu(n.conv_bias(h.clone(), 384, three));
    h = n.max_pool(n.relu(n.conv_bias(h.clone(), 256, three)), pool);
    h = n.dropout(n.relu(n.linear(h.clone(), 4096)));
    h = n.dropout(n.relu(n.linear(h.clone(), 4096)));
    h = n.linear(h.clone(), 1000);
    classify(n, h, labels)
}
