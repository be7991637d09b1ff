//! Traces, families and files.

mod bad_input;
mod batch;
mod compilers;
mod export_memory;
mod families;
mod feature_maps;
mod fuzz_corpus;
mod manifest;
mod model_figures;
mod models;
mod onnx_nets;
mod round_trip;
mod torch;
