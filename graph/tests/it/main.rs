//! Tests of graphs from outside: random ones against a plain reference, large ones, and files as a fuzzer makes them.

mod dependencies;
mod fuzz_corpus;
mod size;
