#![no_main]

#[path = "../graph_checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::check_graph(bytes));
