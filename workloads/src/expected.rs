//! The memory that the profile-guided paper's own framework and pool need for the `chainer/` workloads.
//!
//! `data/chainer/expected.json` comes from running `CuPy`'s real pools on the same requests, and the paper's best fit
//! on the same traces.

use std::sync::OnceLock;

use planlab_dsa::{Bytes, LiveRange};
use serde::{Deserialize, Deserializer};

use crate::recorded::{data_file, recorded};

/// One propagation: the buffers that are allocated and freed within it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Propagation {
    /// The workload's key.
    #[serde(rename = "file", deserialize_with = "read_key")]
    pub key: String,
    /// The number of buffers.
    pub buffers: usize,
    /// The load.
    #[serde(rename = "load_bytes")]
    pub load: Bytes,
    /// The sum of all sizes, which is the memory of a network-wise allocation.
    #[serde(rename = "sum_bytes")]
    pub sum: Bytes,
    /// The net's parameters, which live outside the propagation.
    #[serde(rename = "parameter_bytes")]
    pub parameters: Bytes,
    /// The height of the paper's best fit.
    #[serde(rename = "best_fit_height_bytes")]
    pub best_fit_height: Bytes,
    /// Bytes that the pool of `CuPy` 2.0.0rc1 holds after five propagations.
    #[serde(rename = "cupy2_pool_total_after_5_propagations")]
    pub cupy2_pool: Bytes,
    /// Bytes that the pool of `CuPy` 1 holds after five propagations.
    #[serde(rename = "cupy1_pool_total_after_5_propagations")]
    pub cupy1_pool: Bytes,
}

/// One whole process: initialisation and its first iterations.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Process {
    /// The workload's key.
    #[serde(rename = "file", deserialize_with = "read_key")]
    pub key: String,
    /// The step before which the pool was read.
    pub before_step: u64,
    /// Bytes in use at that step.
    #[serde(rename = "cupy2_pool_used_bytes")]
    pub cupy2_pool_used: Bytes,
    /// Bytes held at that step, parameters included.
    #[serde(rename = "cupy2_pool_total_bytes")]
    pub cupy2_pool_total: Bytes,
    /// How often the pool asked the device for memory, if that was counted.
    pub device_allocations: Option<u64>,
}

/// The expected figures of the `chainer/` workloads.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Expected {
    /// The propagation traces, smallest net first.
    pub propagation: Vec<Propagation>,
    /// The process traces.
    pub process: Vec<Process>,
}

impl Expected {
    /// The figures of a propagation workload.
    #[must_use]
    pub fn propagation(&self, key: &str) -> Option<&Propagation> {
        self.propagation.iter().find(|expected| expected.key == key)
    }

    /// The figures of a process workload.
    #[must_use]
    pub fn process(&self, key: &str) -> Option<&Process> {
        self.process.iter().find(|expected| expected.key == key)
    }

    /// The recorded process of the same net and batch as a training propagation.
    #[must_use]
    pub fn process_of(&self, key: &str) -> Option<&Process> {
        let (net, batch) = key.split_once("/train/")?;
        let batch = batch.split('/').next()?;
        self.process(&format!("{net}/process/{batch}"))
    }
}

/// The bytes that the training of a net keeps between iterations: parameters, their gradients and the optimizer's
/// state. A recorded process of the net holds as much after an iteration, plus reported losses and accuracies, which
/// the next iteration replaces. Independent of the batch. `None` for inference, and if no process of the net was
/// recorded.
#[must_use]
pub fn retained_bytes(key: &str) -> Option<Bytes> {
    let (net, rest) = key.split_once("/train/")?;
    let is_by_rule = |segment: &str| segment == "chainer" || segment.starts_with("iteration");
    if net.starts_with("model/") && !rest.split('/').any(is_by_rule) {
        return None;
    }
    let net = net.replacen("model/", "chainer/", 1);
    let prefix = format!("{net}/process/");
    let process = expected_figures().process.iter().find(|process| process.key.starts_with(&prefix))?;
    let trace = recorded(&process.key)?.read_trace().ok()?;
    let is_live = |live: LiveRange| {
        u64::from(live.start().get()) < process.before_step
            && process.before_step <= u64::from(live.end().get())
    };
    let buffers = trace.instance.buffers().iter().zip(&trace.labels.buffers);
    let kept = buffers.filter(|(buffer, label)| {
        is_live(buffer.live) && !label.op.as_deref().is_some_and(|op| op.starts_with("fwd"))
    });
    Some(Bytes::new(kept.map(|(buffer, _)| buffer.size.get()).sum()))
}

/// The time of one propagation in `CuPy`'s real pool and in a plan's table, on a CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolCost {
    /// The workload's key.
    pub key: String,
    /// The number of requests.
    pub buffers: usize,
    /// The bytes that the pool held.
    pub pool_total: Bytes,
    /// The median time of one propagation in the pool, in milliseconds.
    pub pool_ms: f64,
    /// The time of one propagation in a plan's table, in milliseconds.
    pub plan_ms: f64,
}

/// The expected figures of the `chainer/` workloads.
#[must_use]
pub fn expected_figures() -> &'static Expected {
    static EXPECTED: OnceLock<Expected> = OnceLock::new();
    EXPECTED.get_or_init(|| {
        let bytes = data_file("chainer/expected.json").expect("embedded");
        serde_json::from_slice(&bytes).expect("valid")
    })
}

/// `alexnet-train-b32.csv` is `chainer/alexnet/train/b32`.
fn read_key<'de, D: Deserializer<'de>>(file: D) -> Result<String, D::Error> {
    let file = String::deserialize(file)?;
    let stem = file.strip_suffix(".csv").unwrap_or(&file);
    let mode = ["-infer-", "-train-", "-process-"]
        .into_iter()
        .find_map(|mode| stem.split_once(mode).zip(Some(mode)));
    Ok(match mode {
        Some(((net, rest), mode)) => {
            format!("chainer/{net}/{}/{}", mode.trim_matches('-'), rest.replace('-', "/"))
        }
        None => format!("chainer/{stem}"),
    })
}

/// The measured costs of the real pool's search, for the nets that are also workloads.
#[must_use]
pub fn pool_costs() -> &'static [PoolCost] {
    static COSTS: OnceLock<Vec<PoolCost>> = OnceLock::new();
    COSTS.get_or_init(|| {
        let bytes = data_file("chainer/cupy2rc1-pool-cost.txt").expect("embedded");
        let text = std::str::from_utf8(&bytes).expect("plain text");
        text.lines().filter_map(pool_cost).collect()
    })
}

/// A line `real_alexnet_train_b32.csv  n=  80  pool total  459276288  pool time/... median  0.63 ms (...)
/// plan lookup  0.01 ms`.
fn pool_cost(line: &str) -> Option<PoolCost> {
    let after = |mark: &str| line.split_once(mark)?.1.split_whitespace().next();
    let stem = line.split_whitespace().next()?.strip_prefix("real_")?.strip_suffix(".csv")?;
    let (net, rest) = stem.split_once('_')?;
    let net = match net {
        "inceptionresnetv2" => "inception-resnet-v2",
        "alexnet" | "googlenet" | "resnet50" => net,
        _ => return None,
    };
    let mode = match rest.strip_prefix("train_") {
        Some(batch) => format!("train/{batch}"),
        None => "infer/b1".to_owned(),
    };
    Some(PoolCost {
        key: format!("chainer/{net}/{mode}"),
        buffers: after("n=")?.parse().ok()?,
        pool_total: Bytes::new(after("pool total")?.parse().ok()?),
        pool_ms: after("median")?.parse().ok()?,
        plan_ms: after("plan lookup")?.parse().ok()?,
    })
}
