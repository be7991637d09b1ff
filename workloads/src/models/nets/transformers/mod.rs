//! Transformers: of text, and of images.

pub(super) mod attention;
pub mod bert;
pub mod gpt2;
pub mod llama;
pub mod t5;
pub mod vit;
