//! Arguments of the verbs that play traces on allocators, or run a program on one: `simulate`, `replay`, `run`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{ArgGroup, Args};
use planlab_replay::Work;
use serde::{Deserialize, Serialize};

use super::common::{Reading, parse_named};
use crate::shell::quantity;

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// A trace file, a workload key, or - for stdin; several are played in turn, each as one propagation
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<String>,
    /// The allocators (globs; `planlab list allocators`)
    #[arg(long = "allocator", value_name = "GLOB", required = true)]
    pub(crate) allocators: Vec<String>,
    /// How often to play the trace, or all of them in turn [default: 1; for one trace and an allocator that plans:
    /// until its plan stays the same, at most 20 times]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) iterations: Option<u32>,
    /// Memory of the device [default: unlimited]
    #[arg(long, value_name = "BYTES", value_parser = quantity::parse_bytes)]
    pub(crate) capacity: Option<u64>,
    /// Play only what comes before this step [default: the last step, so buffers that end there stay live]
    #[arg(long, value_name = "STEP")]
    pub(crate) until: Option<u32>,
    /// Print each propagation too
    #[arg(long)]
    pub(crate) samples: bool,
    /// Keep a row for each allocator in this folder of results, for `report` (whole propagations only)
    #[arg(long, value_name = "DIR", conflicts_with = "until")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("contenders").required(true).multiple(true).args(["plans", "planners", "allocators"])))]
pub(crate) struct ReplayArgs {
    /// A trace file, a workload key, or - for stdin
    pub(crate) trace: String,
    /// Further traces, played in turn, each as one propagation
    #[arg(value_name = "TRACE")]
    pub(crate) more: Vec<String>,
    /// Play this plan of the trace; rows call it `plan:NAME`, after the stem of its file
    #[arg(long = "plan", value_name = "PLAN")]
    pub(crate) plans: Vec<String>,
    /// Play the plan that this planner makes
    #[arg(long = "planner", value_name = "KEY")]
    pub(crate) planners: Vec<String>,
    /// Play these (globs): online allocators (`planlab list allocators`), and on the host glibc, jemalloc,
    /// jemalloc/oversize-1m, jemalloc/one-arena, mimalloc, and empty-loop, which measures the loop itself; on a device
    /// also empty-loop, cuda-malloc, cuda-malloc-async/keep, cuda-malloc-async/release, cuda-graph/async, and for each
    /// plan cuda-graph/plan and plan/shuffled
    #[arg(long = "allocator", value_name = "GLOB")]
    pub(crate) allocators: Vec<String>,
    /// The memory to use: host, cuda:N, or simulated-cuda[:BYTES], which simulates a GPU and measures nothing
    #[arg(long, value_name = "DEVICE", value_parser = parse_device, default_value = "host")]
    pub(crate) device: Device,
    /// Threads, each with the whole trace; several numbers run one after another
    #[arg(long, value_name = "N[,N]", value_delimiter = ',', default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) threads: Vec<u32>,
    /// What to do with each block
    #[arg(long, value_parser = parse_named(Work::ALL, work_value), default_value_t = Work::None)]
    pub(crate) work: Work,
    /// Timed propagations of each process [default: as many as fit --seconds; for several traces, without a warm-up, or
    /// on a device 200, on a device fewer if these take longer]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) iterations: Option<u32>,
    /// Time for the timed propagations of each process; on a device, for those of each contender's turn, and for its
    /// warm-up
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration, default_value = "2s")]
    pub(crate) seconds: Duration,
    /// Processes of each contender, which take turns
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) reps: u32,
    /// On a device: turns of each contender in a process, in a newly drawn order
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Minimum number of propagations before the timed ones; 0 for no warm-up [default: 50]
    #[arg(long, value_name = "N")]
    pub(crate) warm_up: Option<u32>,
    /// With --work operations: how long each takes [default: as recorded, if the trace declares the time of a step: `#
    /// step-unit: ns`]
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration)]
    pub(crate) operation_time: Option<Duration>,
    /// The most that a plan or a pool may reserve, for each thread; on a device, the memory left to each contender
    /// [default: unlimited]
    #[arg(long, value_name = "BYTES", value_parser = quantity::parse_bytes)]
    pub(crate) capacity: Option<u64>,
    /// Wall time of a process, which is killed after it
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration, default_value = "5m")]
    pub(crate) time_limit: Duration,
    /// Seed of the order in which the contenders take their turns
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Keep a row for each process in this folder of results
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// The memory that a replay plays on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Device {
    Host,
    /// A GPU, by its number.
    Cuda(u32),
    /// A simulated GPU with this many bytes.
    Simulated(u64),
}

/// Default size of a simulated device in bytes.
const SIMULATED_MEMORY: u64 = 4 << 30;

fn parse_device(text: &str) -> Result<Device, String> {
    let number = text.strip_prefix("cuda:").and_then(|number| number.parse().ok());
    let memory = text.strip_prefix("simulated-cuda:").map(quantity::parse_bytes);
    match (text, number, memory) {
        ("host", _, _) => Ok(Device::Host),
        ("simulated-cuda", _, _) => Ok(Device::Simulated(SIMULATED_MEMORY)),
        (_, Some(number), _) => Ok(Device::Cuda(number)),
        (_, _, Some(memory)) => Ok(Device::Simulated(memory?)),
        _ => Err(format!("`{text}`: a device is host, cuda:0, cuda:1, ..., or simulated-cuda[:BYTES]")),
    }
}

/// What can be done with a block between its request and its free.
fn work_value(work: Work) -> PossibleValue {
    PossibleValue::new(work.name()).help(match work {
        Work::None => "Nothing: blocks are not touched",
        Work::Pages => "Write one byte of each page",
        Work::Pattern => "Write every byte, and compare it before the free",
        Work::Kernels => {
            "On a device: one kernel writes a buffer after its request, one reads it before its free"
        }
        Work::Operations => {
            "On a device: as kernels, and keep the device busy for as long as the operations take"
        }
    })
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The smallest request to plan; at least 1KiB
    #[arg(long, value_name = "BYTES", value_parser = least_size, default_value = "4KiB")]
    pub(crate) min_size: u64,
    /// A round lasts from one call of `planlab_step()` to the next [default: rounds are detected]
    #[arg(long)]
    pub(crate) marks: bool,
    /// Equal rounds in a row before one is planned
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) rounds: u32,
    /// Check every planned block: overlaps, and writes to freed memory
    #[arg(long)]
    pub(crate) check: bool,
    /// Do not use huge pages
    #[arg(long)]
    pub(crate) no_huge_pages: bool,
    /// Write the statistics to this file as JSON (`-`: stdout)
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<String>,
    /// Plan nothing; write the program's requests to this file as a trace (`.csv`, `.csv.zst`, `.csv.gz`)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["marks", "check", "no_huge_pages", "report", "rounds"])]
    pub(crate) record_only: Option<String>,
    /// libplanlab.so [default: the one beside this program]
    #[arg(long, env = "PLANLAB_LIBRARY", value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

fn least_size(text: &str) -> Result<u64, String> {
    let bytes = quantity::parse_bytes(text)?;
    if bytes < 1024 { Err(format!("`{text}`: the least is 1KiB")) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_names() {
        assert_eq!((parse_device("host"), parse_device("cuda:3")), (Ok(Device::Host), Ok(Device::Cuda(3))));
        assert_eq!(parse_device("simulated-cuda:8MiB"), Ok(Device::Simulated(8 << 20)));
        assert_eq!(parse_device("simulated-cuda"), Ok(Device::Simulated(SIMULATED_MEMORY)));
        for text in ["", "cuda", "cuda:", "cuda:-1", "gpu", "Host", "simulated-cuda:x"] {
            assert!(parse_device(text).is_err(), "{text}");
        }
    }
}
