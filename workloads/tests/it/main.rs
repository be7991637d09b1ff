//! Traces, families and files.

mod feature_maps;
mod bad_input;
mod families;
mod fuzz_corpus;
mod manifest;
mod models;
mod round_trip;
