//! U-Net as in the paper: convolutions without padding, and cropped skip connections.
//!
//! ```text
//!  572 -> conv conv -------------------- crop, join -> conv conv -> 388
//!           pool   conv conv -- crop, join -> conv conv   up
//!                    pool  conv conv    up
//! ```
//!
//! # References
//!
//! 1. O. Ronneberger, P. Fischer, T. Brox, *U-Net: Convolutional Networks for Biomedical Image Segmentation*, MICCAI
//!    2015, doi:10.1007/978-3-319-24574-4_28; 572 x 572 grey values to 388 x 388 pixels of two classes.
//!
//! The paper applies dropout at the end of the contracting path without saying where exactly; here it follows the last
//! two levels.

use super::blocks::loss_of_each;
use super::model::{Input, Model, Published, Sizes};
use crate::models::net::{Convolution, Net, NetValue, Window};

pub(crate) static MODELS: [Model; 1] = [Model {
    name: "unet",
    summary: "U-Net as in the paper: grey images, two classes",
    input: Input::Image { channels: 1, extent: 572, frames: 1 },
    published: Published::new(
        Some(31_030_658),
        None,
        "public implementations of the paper's net (tf_unet, Keras)",
    ),
    build: unet,
}];

const LEVELS: [u64; 4] = [64, 128, 256, 512];

fn double(n: &Net, x: NetValue, out: u64) -> NetValue {
    let h = n.relu(n.conv_bias(x, out, Window::square(3)));
    n.relu(n.conv_bias(h, out, Window::square(3)))
}

/// The centre of `x`, with the extents of `like`.
fn crop(n: &Net, x: NetValue, like: &NetValue) -> NetValue {
    let mut shape = x.shape().to_vec();
    shape[2..].copy_from_slice(&like.shape()[2..]);
    let start = x.shape().iter().zip(&shape).map(|(all, part)| all.saturating_sub(*part) / 2).collect();
    n.slice(x, start, shape)
}

fn unet(n: &Net, sizes: Sizes) -> NetValue {
    let mut h = n.new_input(vec![sizes.batch, 1, sizes.extent, sizes.extent]);
    let mut across = Vec::new();
    for out in LEVELS {
        let mut level = double(n, h, out);
        if out == 512 {
            level = n.dropout(level);
        }
        h = n.max_pool(level.clone(), Window::square(2).with_stride(2));
        across.push((level, out));
    }
    h = n.dropout(double(n, h, 1024));
    for (level, out) in across.into_iter().rev() {
        let up = n.conv_bias(h, out, Convolution::from(Window::square(2).with_stride(2)).transposed());
        let cropped = crop(n, level, &up);
        h = double(n, n.concat(vec![cropped, up]), out);
    }
    let h = n.conv_bias(h, 2, Window::square(1));
    let pixels = vec![sizes.batch, h.shape()[2], h.shape()[3]];
    loss_of_each(n, h, pixels)
}
