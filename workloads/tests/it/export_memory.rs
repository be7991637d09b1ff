//! What an export takes beside its bytes.

use std::fmt::Write;
use std::fs;
use std::process::Command;

use planlab_workloads::formats::{ReadOptions, read_trace, write_perfetto};

/// Set in the process that measures itself.
const MEASURES: &str = "PLANLAB_TEST_MEASURES";

/// The most bytes that this process ever had in memory.
fn peak() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    1024 * line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number")
}

/// In a process of its own, for other tests take memory too.
#[test]
fn events_for_perfetto_are_not_held_as_values() {
    const NAME: &str = "export_memory::events_for_perfetto_are_not_held_as_values";
    if std::env::var_os(MEASURES).is_none() {
        let own = std::env::current_exe().expect("a program");
        let status = Command::new(own).args(["--exact", NAME]).env(MEASURES, "yes").status();
        assert!(status.expect("it runs").success());
        return;
    }
    let mut csv = "id,lower,upper,size\n".to_owned();
    (0..20_000).for_each(|row| writeln!(csv, "b{row},{row},{},64", row + 10).expect("text"));
    let trace = read_trace("large.csv", csv.as_bytes(), &ReadOptions::default()).expect("valid");
    let before = peak();
    let written = write_perfetto(&trace, None, None).len();
    let grown = peak() - before;
    assert!(grown < 6 * written, "{grown} bytes for a file of {written}");
}
