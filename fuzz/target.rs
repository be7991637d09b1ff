// Every fuzz target: its name says what is checked.

mod checks;
mod graph_checks;
mod measured_checks;
mod schedule_checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| match env!("CARGO_BIN_NAME") {
    "graph" => graph_checks::check_graph(bytes),
    "measured" => measured_checks::check_measured(bytes),
    "schedule" => schedule_checks::check_schedule(bytes),
    target => checks::check(target, bytes),
});
