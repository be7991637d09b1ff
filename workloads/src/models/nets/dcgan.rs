//! DCGAN: a generator of images, and in training its discriminator.
//!
//! # References
//!
//! 1. A. Radford, L. Metz, S. Chintala, *Unsupervised Representation Learning with Deep Convolutional Generative
//!    Adversarial Networks*, ICLR 2016, arXiv:1511.06434; widths as in PyTorch's example (64 x 64 images, 100 random
//!    numbers, 64 channels).
//!
//! # Deviations from the paper
//!
//! Training is one propagation: the discriminator sees real and generated images in one batch, and its loss trains both
//! nets. PyTorch's example runs the discriminator three times: on real images, on generated ones, and for the
//! generator. Inference generates images.

use super::model::{Input, Model, Published, Sizes};
use crate::models::net::{Convolution, Function, Net, NetValue, Window};

pub(crate) static MODELS: [Model; 1] = [Model {
    name: "dcgan",
    summary: "DCGAN: the generator, and in training the discriminator",
    input: Input::Noise,
    published: Published::new(
        Some(3_576_704 + 2_765_568),
        None,
        "PyTorch's example: generator and discriminator",
    ),
    build: dcgan,
}];

const HALVE: Window = Window::square(4).with_stride(2).with_padding(1);

fn generator(n: &Net, noise: NetValue) -> NetValue {
    let up = |window: Window| Convolution::from(window).transposed();
    let mut h = n.relu(n.batch_norm(n.conv(noise, 512, up(Window::square(4)))));
    for out in [256, 128, 64] {
        h = n.relu(n.batch_norm(n.conv(h, out, up(HALVE))));
    }
    n.each(Function::Tanh, n.conv(h, 3, up(HALVE)))
}

fn discriminator(n: &Net, images: NetValue) -> NetValue {
    let mut h = n.each(Function::LeakyRelu, n.conv(images, 64, HALVE));
    for out in [128, 256, 512] {
        h = n.each(Function::LeakyRelu, n.batch_norm(n.conv(h, out, HALVE)));
    }
    n.each(Function::Sigmoid, n.conv(h, 1, Window::square(4)))
}

fn dcgan(n: &Net, sizes: Sizes) -> NetValue {
    let made = generator(n, n.new_input(vec![sizes.batch, 100, 1, 1]));
    if !n.is_scored() {
        return made;
    }
    let real = n.new_input(made.shape().to_vec());
    let loss = n.binary_cross_entropy(discriminator(n, n.stack(vec![real, made])));
    n.report_values(&[&loss]);
    loss
}
