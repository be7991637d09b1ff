//! The machine and the build, as every row records them and `doctor` prints them.

use std::fs;
use std::thread;

use planlab_results::Provenance;

/// The machine that this process runs on.
pub(crate) fn this_machine(concurrency: u32) -> Provenance {
    of_machine(concurrency, Some(memory_kib()))
}

/// The same for measurements on a device. The machine's memory is left out: it may grow while in use, and the digest
/// must not change.
pub(crate) fn beside_device(concurrency: u32) -> Provenance {
    of_machine(concurrency, None)
}

/// The digest of a machine.
fn machine_digest(cpu: &str, cores: u32, memory_kib: Option<u64>, kernel: &str) -> String {
    let memory = memory_kib.map(|kib| format!("|{kib}")).unwrap_or_default();
    blake3::hash(format!("{cpu}|{cores}{memory}|{kernel}").as_bytes()).to_hex()[..16].to_owned()
}

fn of_machine(concurrency: u32, memory_kib: Option<u64>) -> Provenance {
    let cpu = cpu_model();
    let cores =
        thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX));
    let kernel = read_first_line("/proc/sys/kernel/osrelease");
    Provenance {
        host: machine_digest(&cpu, cores, memory_kib, &kernel),
        cpu,
        cores,
        kernel,
        governor: read_first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        turbo: turbo_state(),
        load_average_milli: load_average_milli(),
        concurrency,
        git_commit: env!("PLANLAB_GIT_COMMIT").to_owned(),
        git_dirty: env!("PLANLAB_GIT_DIRTY") == "true",
        rustc: env!("PLANLAB_RUSTC").to_owned(),
        flags: env!("PLANLAB_FLAGS").trim().to_owned(),
    }
}

/// The first line of a file, or `unknown`.
fn read_first_line(path: &str) -> String {
    fs::read_to_string(path)
        .ok()
        .and_then(|text| text.lines().next().map(str::to_owned))
        .unwrap_or_else(|| "unknown".to_owned())
}

fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split(':').nth(1));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |name| name.trim().to_owned())
}

fn turbo_state() -> String {
    match (
        read_first_line("/sys/devices/system/cpu/intel_pstate/no_turbo").as_str(),
        read_first_line("/sys/devices/system/cpu/cpufreq/boost").as_str(),
    ) {
        ("0", _) | (_, "1") => "on",
        ("1", _) | (_, "0") => "off",
        _ => "unknown",
    }
    .to_owned()
}

/// The load average of the last minute, in thousandths.
pub(crate) fn load_average_milli() -> u64 {
    let text = read_first_line("/proc/loadavg");
    let value: f64 = text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small, positive number")]
    let milli = (value * 1000.0) as u64;
    milli
}

/// Memory of the machine in KiB, 0 if unknown.
pub(crate) fn memory_kib() -> u64 {
    memory_field("MemTotal:")
}

/// Swap of the machine in KiB.
pub(crate) fn swap_kib() -> u64 {
    memory_field("SwapTotal:")
}

fn memory_field(key: &str) -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_grows_makes_no_other_machine_of_one_with_a_device() {
        let machine = |memory_kib: &dyn Fn(u64) -> Option<u64>, kib| {
            machine_digest("a CPU", 16, memory_kib(kib), "6.18")
        };
        // On the host, where existing records include the memory, and beside a device.
        assert_ne!(machine(&Some, 4 << 20), machine(&Some, 8 << 20));
        assert_eq!(machine(&|_| None, 4 << 20), machine(&|_| None, 8 << 20));
        assert_eq!(
            this_machine(1).host,
            machine_digest(&cpu_model(), this_machine(1).cores, Some(memory_kib()), &this_machine(1).kernel)
        );
        let beside = beside_device(1);
        assert_eq!(beside.host, machine_digest(&beside.cpu, beside.cores, None, &beside.kernel));
    }
}
