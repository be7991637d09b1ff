//! Memory of GPUs by the library's symbols, on simulated devices.

use std::process::{Command, Output};

use serde_json::Value;

use crate::common::{built, library};

fn plugged(word: &str, settings: &[(&str, &str)]) -> (Output, Option<Value>) {
    let program = built("plugged");
    let folder = tempfile::tempdir().expect("writable");
    let report = folder.path().join("report.jsonl");
    let mut command = Command::new(program);
    command.arg(library()).arg(word).env("PLANLAB_REPORT", &report).envs(settings.iter().copied());
    let output = command.output().expect("it starts");
    let line = std::fs::read_to_string(report).ok();
    (output, line.map(|line| serde_json::from_str(&line).expect("one line of JSON")))
}

#[test]
fn rounds_of_streams_on_two_devices_are_planned() {
    let (output, report) = plugged("rounds", &[("PLANLAB_SIMULATED_CUDA", "1073741824")]);
    assert_eq!(
        (output.status.success(), &output.stdout[..], &output.stderr[..]),
        (true, &b"ok\n"[..], &b""[..])
    );
    let report = report.expect("a report");
    let devices = report["devices"].as_array().expect("devices");
    assert_eq!((devices.len(), report["threads"].as_u64()), (2, Some(0)), "nothing of the host's memory");
    for (device, more) in devices.iter().zip([1, 0]) {
        let count = |name: &str| device["counts"][name].as_u64().expect("a count");
        let memory = |name: &str| device["memory"][name].as_u64().expect("a count");
        assert_eq!(
            (device["device"].as_str(), device["streams"].as_u64()),
            (Some("simulated-cuda"), Some(2))
        );
        assert_eq!(device["plans"].as_array().map(Vec::len), Some(2));
        let layers = if more == 1 { 41 + 43 } else { 45 + 47 };
        assert_eq!(count("requests"), 60 * layers + more);
        // All but the first ten rounds.
        assert!(count("planned") >= 50 * layers, "{device}");
        assert_eq!((memory("used"), memory("wrong_frees"), memory("ordered")), (0, 0, more));
        assert!(memory("device_allocations") < 20 && memory("reserved_peak") > 0);
    }
}

#[test]
fn without_a_gpu_there_is_no_memory_and_a_reason_once_for_each_device() {
    // This also holds on a machine with a GPU.
    let (output, report) = plugged("none", &[("CUDA_VISIBLE_DEVICES", "")]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.success(), &output.stdout[..]), (true, &b"null\n"[..]), "{stderr}");
    for device in [0, 1] {
        let lines =
            stderr.lines().filter(|line| line.starts_with(&format!("planlab: no memory of GPU {device}: ")));
        assert_eq!(lines.count(), 1, "{stderr}");
    }
    assert_eq!(report, None);
}
