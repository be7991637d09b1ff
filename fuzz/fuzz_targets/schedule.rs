#![no_main]

#[path = "../schedule_checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::check_schedule(bytes));
