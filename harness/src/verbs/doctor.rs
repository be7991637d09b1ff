//! `doctor`: reports what works on this machine, and what could disturb a measurement.

use std::path::Path;

use serde::Serialize;
use serde_json::json;

use crate::process::limits::Mechanism;
use crate::shell::JSON_VERSION;
use crate::shell::exit::{Exit, Verdict};
use crate::shell::output::Output;
use crate::shell::provenance;

#[derive(Serialize)]
struct Finding {
    topic: &'static str,
    ok: bool,
    says: String,
}

pub(crate) fn run(output: Output) -> Verdict {
    let findings = collect_findings();
    let here = provenance::this_machine(1);
    let value = json!({ "version": JSON_VERSION, "provenance": here, "findings": findings });
    let line =
        |f: &Finding| format!("{}  {:<12}  {}\n", if f.ok { "ok    " } else { "beware" }, f.topic, f.says);
    output.print_result(&value, findings.iter().map(line).collect::<String>(), Exit::Complete)
}

fn collect_findings() -> Vec<Finding> {
    let here = provenance::this_machine(1);
    let mechanism = Mechanism::detect_mechanism();
    let load = here.load_average_milli;
    let swap = provenance::swap_kib();
    let isolated = mechanism != Mechanism::Rlimit;
    let memory = provenance::memory_kib();
    vec![
        Finding {
            topic: "build",
            ok: !here.git_dirty && here.flags.starts_with("release"),
            says: format!(
                "commit {}{}, {}, {}",
                here.git_commit,
                if here.git_dirty { " with changes" } else { "" },
                here.rustc,
                here.flags
            ),
        },
        Finding { topic: "cpu", ok: here.cores > 1, says: format!("{}, {} cores", here.cpu, here.cores) },
        Finding { topic: "memory", ok: memory > 4 << 20, says: format!("{} MiB", memory / 1024) },
        Finding {
            topic: "limits",
            ok: isolated,
            says: match mechanism {
                Mechanism::Rlimit => {
                    "no cgroup can be made here: memory is limited by address space".to_owned()
                }
                _ => format!("memory is limited by {}", mechanism.name()),
            },
        },
        Finding {
            topic: "governor",
            ok: here.governor == "performance",
            says: format!("{} (turbo {}); other than `performance`, times vary", here.governor, here.turbo),
        },
        Finding { topic: "swap", ok: swap == 0, says: format!("{} MiB", swap / 1024) },
        Finding {
            topic: "load",
            ok: load < 500,
            says: format!("load average {}.{:03}: other work disturbs times", load / 1000, load % 1000),
        },
        Finding { topic: "mailboxes", ok: Path::new("/dev/shm").is_dir(), says: mailbox_folder() },
        check_solvers(),
        check_gpu(),
    ]
}

fn mailbox_folder() -> String {
    let kept =
        if Path::new("/dev/shm").is_dir() { "in memory (/dev/shm)" } else { "in the temporary folder" };
    format!("plans of running cells are kept {kept}")
}

fn check_solvers() -> Finding {
    let keys = crate::kinds::placement::planners::keys();
    let mip = keys.iter().any(|key| key.starts_with("mip/"));
    let says = format!("{} planners{}", keys.len(), if mip { "" } else { "; built without MIP" });
    Finding { topic: "planners", ok: mip, says }
}

/// Loads the driver without touching a device.
fn check_gpu() -> Finding {
    let found = planlab_replay::cuda::probe();
    let ok = found.is_ok();
    Finding { topic: "gpu", ok, says: found.unwrap_or_else(|error| format!("{error}: no replay on a GPU")) }
}
