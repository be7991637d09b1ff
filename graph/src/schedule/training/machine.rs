//! A machine as data: two copy engines, a roofline and a capacity.
//!
//! ```
//! use planlab_graph::Machine;
//!
//! let v100 = Machine::built_in("x86-pcie3").ok_or("no such machine")?;
//! assert_eq!(v100.copy_in, 12e9);
//! let text = "
//!     name = 'mine'
//!     copy_out = 24e9
//!     copy_in = 24e9
//!     flops = 2e13
//!     memory = 1.5e12
//!     launch = 5e-6
//!     capacity = 40e9
//! ";
//! let mine = Machine::from_toml("mine.toml", text)?;
//! assert_eq!(mine.capacity.get(), 40_000_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # References
//!
//! 1. S. Williams, A. Waterman, D. Patterson: Roofline. CACM 52(4), 2009. doi:10.1145/1498765.1498785.
//! 2. Y. Ito et al.: Profiling based Out-of-core Hybrid Method for Large Neural Networks. PPoPP 2019.
//!    doi:10.1145/3293883.3298790. The two V100 machines.

use std::ops::RangeInclusive;

use planlab_dsa::Bytes;
use planlab_files::FormatError;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::net::TrainingNet;
use super::parts::{EXACT, Work};

/// A machine for training: an accelerator with its own memory, and a link to the host with an engine in each direction.
///
/// The rates are what a program achieves, not those of the data sheet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// The key: `x86-pcie3`.
    pub name: String,
    /// Bytes per second from the device to the host.
    pub copy_out: f64,
    /// Bytes per second from the host to the device.
    pub copy_in: f64,
    /// Floating-point operations per second.
    pub flops: f64,
    /// Bytes of device memory read or written per second.
    pub memory: f64,
    /// Seconds to launch a kernel.
    pub launch: f64,
    /// Device memory that a program may use, base included.
    pub capacity: Bytes,
    /// Bytes that each parameter occupies for the whole iteration: its value, its gradient, the optimiser's state.
    pub bytes_per_parameter: u64,
    /// Bytes reserved in addition to the parameters: the workspace of convolutions.
    pub workspace: Bytes,
    /// The factor on a convolution's time at each doubling of the batch above 128, in addition to the roofline: a fixed
    /// workspace limit forces slower algorithms on large batches. 1 if unknown.
    pub large_batch_slowdown: f64,
}

/// The share of the peak rates of arithmetic and memory that a net's functions reach on a V100. Fitted once, not to any
/// particular net or function.
const ARITHMETIC_EFFICIENCY: f64 = 0.66;
const MEMORY_EFFICIENCY: f64 = 0.80;
/// The rate of a copy of pinned memory over a PCIe 5 link with 16 lanes (64e9 bytes/s). The fraction is that of
/// `x86-pcie3`, 12 of 16.
const PCIE5: f64 = 64e9 * 0.75;

/// The range of a rate in units per second. Within it no time overflows, or vanishes beside another.
const RATES: RangeInclusive<f64> = 1.0..=1e21;
/// The range of a launch in seconds.
const LAUNCHES: RangeInclusive<f64> = 0.0..=1e6;
/// The range of the factor at each doubling of the batch.
const SLOWDOWNS: RangeInclusive<f64> = 1.0..=100.0;

/// The batch at which the efficiencies were fitted.
const ROOFLINE_BATCH: f64 = 128.0;

/// Value, gradient and momentum in 4 bytes each.
const BYTES_PER_PARAMETER: u64 = 12;
/// Chainer's default limit.
const WORKSPACE: Bytes = Bytes::new(8_000_000);

/// Peak rates and memory of an accelerator.
struct Accelerator {
    flops: f64,
    memory: f64,
    capacity: u64,
}

/// 16160 MiB less the context, the libraries and fragmentation.
const V100: Accelerator = Accelerator { flops: 15.7e12, memory: 900e9, capacity: 14_950_000_000 };
/// The PCIe card, data sheet: FP32 without tensor cores; 80 GB less 2.5 GB for context and libraries.
const H100: Accelerator = Accelerator { flops: 51.2e12, memory: 2.04e12, capacity: 77_500_000_000 };
/// The SXM module, data sheet: FP32 without tensor cores; 141 GB less 3 GB for context and libraries.
const H200: Accelerator = Accelerator { flops: 67e12, memory: 4.8e12, capacity: 138_000_000_000 };

impl Machine {
    /// The keys of the built-in machines.
    pub const BUILT_IN: [&'static str; 4] = ["x86-pcie3", "power9-nvlink2", "h100-pcie5", "h200-pcie5"];

    /// A built-in machine. The V100 ones are calibrated; the others reuse the efficiencies of the V100, as measurements
    /// are missing.
    #[must_use]
    pub fn built_in(name: &str) -> Option<Self> {
        let (accelerator, link) = match name {
            "x86-pcie3" => (V100, 12e9),
            "power9-nvlink2" => (V100, 54e9),
            "h100-pcie5" => (H100, PCIE5),
            "h200-pcie5" => (H200, PCIE5),
            _ => return None,
        };
        Some(Self {
            name: name.to_owned(),
            copy_out: link,
            copy_in: link,
            flops: accelerator.flops * ARITHMETIC_EFFICIENCY,
            memory: accelerator.memory * MEMORY_EFFICIENCY,
            launch: 6e-6,
            capacity: Bytes::new(accelerator.capacity),
            bytes_per_parameter: BYTES_PER_PARAMETER,
            workspace: WORKSPACE,
            large_batch_slowdown: 1.0,
        })
    }

    /// Replaces the link, in bytes per second in each direction.
    ///
    /// # Panics
    ///
    /// If the rate is not a number from 1 to 1e21.
    #[must_use]
    pub fn with_link(mut self, bytes_per_second: f64) -> Self {
        assert!(RATES.contains(&bytes_per_second), "a link of {bytes_per_second} bytes/s");
        (self.copy_out, self.copy_in) = (bytes_per_second, bytes_per_second);
        self
    }

    /// Reads a machine. Errors name the file `file`. All fields except `bytes_per_parameter` (12), `workspace` (8e6
    /// bytes) and `large_batch_slowdown` (1) are required. A rate is a number from 1 to 1e21 per second.
    ///
    /// # Errors
    ///
    /// [`FormatError`] with the line: invalid TOML, a missing or unknown field, or an impossible value.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, FormatError> {
        let raw: RawMachine = toml::from_str(text).map_err(|error| {
            let line = line_of(text, error.span().map_or(0, |span| span.start));
            FormatError::new(file, line, format!("not a machine: {}", error.message()))
        })?;
        let reader = Reader { file, text };
        let rate = |field, value| reader.read_number(field, value, &RATES);
        Ok(Self {
            name: reader.read_name(raw.name)?,
            copy_out: rate("copy_out", raw.copy_out)?,
            copy_in: rate("copy_in", raw.copy_in)?,
            flops: rate("flops", raw.flops)?,
            memory: rate("memory", raw.memory)?,
            launch: reader.read_number("launch", raw.launch, &LAUNCHES)?,
            capacity: match reader.read_whole_number("capacity", raw.capacity)? {
                Some(0) | None => return Err(reader.missing_field("capacity")),
                Some(bytes) => Bytes::new(bytes),
            },
            bytes_per_parameter: reader
                .read_whole_number("bytes_per_parameter", raw.bytes_per_parameter)?
                .unwrap_or(BYTES_PER_PARAMETER),
            workspace: reader.read_whole_number("workspace", raw.workspace)?.map_or(WORKSPACE, Bytes::new),
            large_batch_slowdown: match raw.large_batch_slowdown {
                None => 1.0,
                given => reader.read_number("large_batch_slowdown", given, &SLOWDOWNS)?,
            },
        })
    }

    /// The machine in the form that [`Machine::from_toml`] reads.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let name = toml::Value::from(self.name.as_str());
        let Self { copy_out, copy_in, flops, memory, launch, capacity, .. } = self;
        let Self { bytes_per_parameter, workspace, large_batch_slowdown, .. } = self;
        // `Debug` gives the shortest text that parses to the same number.
        format!(
            "name = {name}\ncopy_out = {copy_out:?}\ncopy_in = {copy_in:?}\nflops = {flops:?}\nmemory = {memory:?}\n\
             launch = {launch:?}\ncapacity = {capacity}\nbytes_per_parameter = {bytes_per_parameter}\n\
             workspace = {workspace}\nlarge_batch_slowdown = {large_batch_slowdown:?}\n"
        )
    }

    /// Bytes that are taken for the whole iteration: parameters with their state, and the workspace.
    #[must_use]
    pub fn base_bytes(&self, net: &TrainingNet) -> Bytes {
        let parameters = net.parameters().saturating_mul(self.bytes_per_parameter);
        Bytes::new(parameters.saturating_add(self.workspace.get()))
    }

    /// The time of some work in seconds: arithmetic or memory, whichever takes longer, plus the launches.
    #[must_use]
    pub fn seconds_of_work(&self, work: Work) -> f64 {
        (work.flops / self.flops).max(work.bytes / self.memory) + f64::from(work.launches) * self.launch
    }

    /// The time of a copy to the host in seconds.
    #[must_use]
    pub fn out_seconds(&self, bytes: Bytes) -> f64 {
        bytes.get() as f64 / self.copy_out
    }

    /// The time of a copy from the host in seconds.
    #[must_use]
    pub fn in_seconds(&self, bytes: Bytes) -> f64 {
        bytes.get() as f64 / self.copy_in
    }

    /// The factor on the roofline time of a convolution's pass at a batch: 1 up to 128 images, multiplied by
    /// [`large_batch_slowdown`](Self::large_batch_slowdown) at every doubling above.
    #[must_use]
    pub fn batch_slowdown(&self, batch: u64) -> f64 {
        let doublings = (batch as f64 / ROOFLINE_BATCH).log2().max(0.0);
        self.large_batch_slowdown.powf(doublings)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMachine {
    name: Option<Spanned<String>>,
    copy_out: Option<Spanned<f64>>,
    copy_in: Option<Spanned<f64>>,
    flops: Option<Spanned<f64>>,
    memory: Option<Spanned<f64>>,
    launch: Option<Spanned<f64>>,
    capacity: Option<Spanned<f64>>,
    bytes_per_parameter: Option<Spanned<f64>>,
    workspace: Option<Spanned<f64>>,
    large_batch_slowdown: Option<Spanned<f64>>,
}

/// The line, from 1, that contains a byte of the text.
fn line_of(text: &str, byte: usize) -> u64 {
    let before = &text.as_bytes()[..byte.min(text.len())];
    1 + before.iter().map(|&byte| u64::from(byte == b'\n')).sum::<u64>()
}

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
}

impl Reader<'_> {
    fn missing_field(&self, field: &str) -> FormatError {
        FormatError::new(
            self.file,
            line_of(self.text, self.text.trim_end().len()),
            format!("field `{field}` is missing"),
        )
    }

    fn read_name(&self, name: Option<Spanned<String>>) -> Result<String, FormatError> {
        let name = name.ok_or_else(|| self.missing_field("name"))?;
        if name.get_ref().trim().is_empty() {
            let line = line_of(self.text, name.span().start);
            return Err(FormatError::new(self.file, line, "field `name` is empty"));
        }
        Ok(name.into_inner())
    }

    fn read_number(
        &self,
        field: &str,
        value: Option<Spanned<f64>>,
        range: &RangeInclusive<f64>,
    ) -> Result<f64, FormatError> {
        let value = value.ok_or_else(|| self.missing_field(field))?;
        let number = *value.get_ref();
        if range.contains(&number) {
            return Ok(number);
        }
        let wanted = format!("from {} to {:e}", range.start(), range.end());
        Err(self.refuse_value(field, &value, &wanted))
    }

    /// A number of bytes; a capacity is above 0.
    fn read_whole_number(
        &self,
        field: &str,
        value: Option<Spanned<f64>>,
    ) -> Result<Option<u64>, FormatError> {
        let Some(value) = value else { return Ok(None) };
        let least = if field == "capacity" { 1.0 } else { 0.0 };
        let number = *value.get_ref();
        if !(least..=EXACT as f64).contains(&number) || number.fract() != 0.0 {
            return Err(self.refuse_value(field, &value, "of whole bytes that a machine could have"));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just above")]
        Ok(Some(number as u64))
    }

    fn refuse_value(&self, field: &str, value: &Spanned<f64>, wanted: &str) -> FormatError {
        let line = line_of(self.text, value.span().start);
        // In the shortest form: 1e-308 has three hundred zeros otherwise.
        let number = value.get_ref();
        FormatError::new(self.file, line, format!("field `{field}` is {number:?}, not a number {wanted}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "name = 'm'\ncopy_out = 1e9\ncopy_in = 2e9\nflops = 1e12\nmemory = 1e11\nlaunch = 0\ncapacity = 100\n";

    fn refusal(text: &str) -> String {
        Machine::from_toml("m.toml", text).expect_err("refused").to_string()
    }

    #[test]
    fn a_file_is_read_with_its_defaults() {
        let machine = Machine::from_toml("m.toml", GOOD).expect("good");
        assert_eq!((machine.copy_out, machine.copy_in, machine.launch), (1e9, 2e9, 0.0));
        assert_eq!((machine.bytes_per_parameter, machine.workspace.get()), (12, 8_000_000));
    }

    #[test]
    fn a_bad_file_is_refused_with_line_and_field() {
        let with = |from: &str, to: &str| refusal(&GOOD.replace(from, to));
        assert_eq!(with("copy_in = 2e9\n", ""), "m.toml:6: field `copy_in` is missing");
        for (field, good, line) in
            [("copy_out", "1e9", 2), ("copy_in", "2e9", 3), ("flops", "1e12", 4), ("memory", "1e11", 5)]
        {
            for bad in ["0.0", "-1.0", "1e-308", "5e-324", "1e22", "1e308", "NaN", "inf"] {
                let toml = bad.to_lowercase();
                assert_eq!(
                    with(&format!("{field} = {good}"), &format!("{field} = {toml}")),
                    format!("m.toml:{line}: field `{field}` is {bad}, not a number from 1 to 1e21")
                );
            }
        }
        for bad in ["-1.0", "1e7", "inf", "NaN"] {
            let reason = with("launch = 0", &format!("launch = {}", bad.to_lowercase()));
            let expected = format!("m.toml:6: field `launch` is {bad}, not a number from 0 to 1e6");
            assert_eq!(reason, expected.replace("1e7", "10000000.0"));
        }
        let none = with("100", "0");
        assert!(none.starts_with("m.toml:7: field `capacity` is 0.0, not"), "{none}");
        assert!(with("100", "1.5").starts_with("m.toml:7: field `capacity` is 1.5, not"));
        assert!(with("'m'", "''").starts_with("m.toml:1: field `name` is empty"));
        let unknown = refusal(&format!("{GOOD}speed = 1\n"));
        assert!(unknown.starts_with("m.toml:8: not a machine: unknown field `speed`"), "{unknown}");
        let text = with("1e12", "'fast'");
        assert!(text.starts_with("m.toml:4: not a machine: invalid type"), "{text}");
    }

    #[test]
    fn the_longer_of_arithmetic_and_memory_counts() {
        let machine = Machine::from_toml("m.toml", &GOOD.replace("launch = 0", "launch = 1")).expect("good");
        let work = |flops, bytes, launches| Work { flops, bytes, launches };
        assert_eq!(machine.seconds_of_work(work(3e12, 1e11, 0)), 3.0);
        assert_eq!(machine.seconds_of_work(work(1e12, 4e11, 2)), 6.0);
    }

    #[test]
    fn large_batches_may_be_slow() {
        let machine =
            |factor| Machine::from_toml("m.toml", &format!("{GOOD}large_batch_slowdown = {factor}\n"));
        let slow = machine(1.5).expect("good");
        assert_eq!([64, 128, 256, 512].map(|batch| slow.batch_slowdown(batch)), [1.0, 1.0, 1.5, 2.25]);
        let even = Machine::built_in("x86-pcie3").expect("built in");
        assert_eq!(even.batch_slowdown(640), 1.0);
        let refused = machine(0.5).expect_err("faster").to_string();
        assert_eq!(refused, "m.toml:8: field `large_batch_slowdown` is 0.5, not a number from 1 to 1e2");
    }

    #[test]
    fn every_key_names_a_machine() {
        for key in Machine::BUILT_IN {
            let machine = Machine::built_in(key).expect("built in");
            assert_eq!(machine.name, key);
            assert_eq!(Machine::from_toml(key, &machine.to_toml()).as_ref(), Ok(&machine));
            assert!(machine.copy_in > 1e9 && machine.capacity > Bytes::new(10_000_000_000));
        }
        assert_eq!(Machine::built_in("abacus"), None);
    }
}
