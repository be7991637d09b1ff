//! Seeded families of placement problems.
//!
//! A key `synthetic/<family>[/<parameter>=<value>...]/n<N>/s<seed>` permanently names one instance, equal on every
//! machine. [`all_families`] lists the families with their parameters.
//!
//! ```
//! use planlab_workloads::synthetic;
//!
//! let trace = synthetic::generate_trace("guillotine", &[("n", "100"), ("seed", "7")])?;
//! assert_eq!(trace.instance.len(), 100);
//! assert_eq!(trace.known_optimum(), Some(trace.instance.load().bytes.get()));
//! assert_eq!(trace.labels.meta_value("workload"), Some("synthetic/guillotine/n100/s7"));
//! # Ok::<(), synthetic::ParameterError>(())
//! ```

pub mod adversary;
pub(crate) mod dice;
mod family;
pub mod guillotine;
mod nets;
mod parameters;
pub mod power_law;
pub mod staircase;
pub mod tiling;
pub mod uniform;

use planlab_dsa::Labels;

use crate::formats::Trace;
use crate::nearest::nearest;

pub use family::{Family, Made};
pub use nets::{chain, lstm, multi_stream, skip, transformer};
pub use parameters::{Kind, Parameter, ParameterError, Values};

/// Every family.
#[must_use]
pub fn all_families() -> &'static [Family] {
    &FAMILIES
}

static FAMILIES: [Family; 16] = [
    uniform::FAMILY,
    power_law::FAMILY,
    chain::FAMILY,
    skip::FAMILY,
    transformer::FAMILY,
    lstm::FAMILY,
    multi_stream::FAMILY,
    staircase::FAMILY,
    guillotine::FAMILY,
    tiling::FAMILY,
    adversary::first_fit_start::FAMILY,
    adversary::greedy_by_size::FAMILY,
    adversary::paths::FIRST_FIT_AREA,
    adversary::paths::FIRST_FIT_WIDTH,
    adversary::greedy_by_breadth::FAMILY,
    adversary::paths::BEST_FIT,
];

/// The instance of a family with the given parameters; the others have their defaults.
///
/// # Errors
///
/// [`ParameterError`] for an unknown family or parameter (with similar names), or a forbidden value.
pub fn generate_trace(family: &str, parameters: &[(&str, &str)]) -> Result<Trace, ParameterError> {
    let (family, values) = resolve_parameters(family, parameters)?;
    Ok(build_trace(family, &values, (family.make)(&values)?))
}

/// Like [`generate_trace`], with the plan that proves a known optimum.
pub fn construct_instance(family: &str, parameters: &[(&str, &str)]) -> Result<Made, ParameterError> {
    let (family, values) = resolve_parameters(family, parameters)?;
    (family.make)(&values)
}

/// The instance of a key `synthetic/...`.
///
/// # Errors
///
/// Like [`generate_trace`]; also for a key without `n` or seed.
pub fn load_trace(key: &str) -> Result<Trace, ParameterError> {
    let (family, values) = parse_key(key)?;
    Ok(build_trace(family, &values, (family.make)(&values)?))
}

/// The number of buffers in the instance of a key.
pub fn buffer_count(key: &str) -> Result<usize, ParameterError> {
    let (_, values) = parse_key(key)?;
    Ok(values.count("n"))
}

/// Keys of instances of every family for lists, from 10 to 1,000,000 buffers, with seed 0.
#[must_use]
pub fn listed_keys() -> Vec<String> {
    let variants = [
        ("chain", "/mode=infer"),
        ("skip", "/mode=infer"),
        ("skip", "/kind=unet"),
        ("skip", "/kind=unet/mode=infer"),
        ("transformer", "/mode=infer"),
        ("lstm", "/mode=infer"),
    ];
    let mut keys = Vec::new();
    for family in all_families() {
        let of_family = variants.iter().filter(|(name, _)| *name == family.name).map(|&(_, variant)| variant);
        for variant in std::iter::once("").chain(of_family) {
            for n in [10, 100, 1000, 10_000, 100_000, 1_000_000] {
                keys.push(format!("synthetic/{}{variant}/n{n}/s0", family.name));
            }
        }
    }
    keys
}

/// The family of a key, with one line on what it models; `None` if the key is invalid.
#[must_use]
pub fn describe_key(key: &str) -> Option<String> {
    let (family, values) = parse_key(key).ok()?;
    let settings = values.changed_settings(family.parameters);
    let settings = if settings.is_empty() { String::new() } else { format!(" ({})", settings.join(", ")) };
    Some(format!("{}{settings}", family.summary))
}

fn resolve_parameters(
    name: &str,
    parameters: &[(&str, &str)],
) -> Result<(&'static Family, Values), ParameterError> {
    let family = FAMILIES.iter().find(|family| family.name == name);
    let family = family.ok_or_else(|| ParameterError::UnknownFamily {
        name: name.to_owned(),
        nearest: nearest(name, FAMILIES.iter().map(|family| family.name)),
    })?;
    Ok((family, Values::new(family.name, family.parameters, parameters)?))
}

fn parse_key(key: &str) -> Result<(&'static Family, Values), ParameterError> {
    let bad = || ParameterError::BadKey { key: key.to_owned() };
    let path = key.strip_prefix("synthetic/").ok_or_else(bad)?;
    let (rest, seed) = path.rsplit_once("/s").ok_or_else(bad)?;
    let (rest, n) = rest.rsplit_once("/n").ok_or_else(bad)?;
    let mut name = String::new();
    let mut parameters = Vec::new();
    for segment in rest.split('/') {
        match segment.split_once('=') {
            Some(pair) => parameters.push(pair),
            None if name.is_empty() => segment.clone_into(&mut name),
            None => name = format!("{name}/{segment}"),
        }
    }
    parameters.extend([("n", n), ("seed", seed)]);
    resolve_parameters(&name, &parameters)
}

/// The key of an instance: non-default parameters, then size and seed.
fn instance_key(family: &Family, values: &Values) -> String {
    let mut key = format!("synthetic/{}", family.name);
    for setting in values.changed_settings(family.parameters) {
        key = format!("{key}/{setting}");
    }
    format!("{key}/n{}/s{}", values.number("n"), values.number("seed"))
}

fn build_trace(family: &Family, values: &Values, made: Made) -> Trace {
    let mut labels = made.labels.unwrap_or_else(|| Labels::from_numbers(made.instance.len()));
    let mut meta = |key: &str, value: String| labels.metadata.push((key.to_owned(), value));
    meta("workload", instance_key(family, values));
    meta("family", family.name.to_owned());
    if let Some(optimum) = made.optimum {
        meta("optimum", optimum.to_string());
    }
    Trace::new(made.instance, labels)
}
