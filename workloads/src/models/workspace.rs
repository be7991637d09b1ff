//! The scratch memory of a convolution.
//!
//! # References
//!
//! 1. T. Sekiyama, T. Imamichi, H. Imai, R. Raymond, *Profile-guided memory optimization for deep neural networks*,
//!    arXiv:1804.10001: 8 MiB, Chainer's default.
//! 2. The patent on the same method: 20 times and 0.05 times the output map.

use std::fmt;

use planlab_dsa::Bytes;

/// Bytes in a MiB.
const MIB: u64 = 1 << 20;
/// Factors are multiples of 1 / 1000.
const PARTS: u64 = 1000;

/// The workspace of each convolution, forward and backward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Workspace {
    /// The same number of bytes for every convolution; 0 for none.
    Fixed(Bytes),
    /// A multiple of the size of the convolution's output map, rounded down to bytes.
    OutputMaps {
        /// The factor in thousandths.
        thousandths: u64,
    },
}

impl Workspace {
    /// No workspace.
    pub const NONE: Self = Self::Fixed(Bytes::ZERO);
    /// Chainer's default.
    pub const CHAINER: Self = Self::Fixed(Bytes::new(8 * MIB));

    /// The size in bytes for an output map of `output_map` bytes; `None` if it does not fit 64 bits.
    #[must_use]
    pub fn bytes_for(self, output_map: u64) -> Option<u64> {
        match self {
            Self::Fixed(bytes) => Some(bytes.get()),
            Self::OutputMaps { thousandths } => {
                let product = u128::from(output_map) * u128::from(thousandths);
                u64::try_from(product / u128::from(PARTS)).ok()
            }
        }
    }

    /// Parses `8m` (MiB), `4096` (bytes), `x20` or `x0.05` (output maps); `None` for any other text. Each workspace has one
    /// spelling, the shortest.
    ///
    /// ```
    /// use planlab_workloads::models::Workspace;
    ///
    /// let twentieth = Workspace::parse("x0.05").expect("a factor");
    /// assert_eq!(twentieth.bytes_for(1000), Some(50));
    /// assert_eq!(twentieth.to_string(), "x0.05");
    /// assert_eq!(Workspace::parse("1048576"), None, "1m is shorter");
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let parsed = if let Some(factor) = text.strip_prefix('x') {
            let (whole, part) = factor.split_once('.').unwrap_or((factor, "0"));
            let digits = u32::try_from(part.len()).ok().filter(|digits| (1..=3).contains(digits))?;
            let part = part.parse::<u64>().ok()? * 10_u64.pow(3 - digits);
            let thousandths = whole.parse::<u64>().ok()?.checked_mul(PARTS)?.checked_add(part)?;
            Self::OutputMaps { thousandths }
        } else if let Some(mebibytes) = text.strip_suffix('m') {
            Self::Fixed(Bytes::new(mebibytes.parse::<u64>().ok()?.checked_mul(MIB)?))
        } else {
            Self::Fixed(Bytes::new(text.parse().ok()?))
        };
        Some(parsed).filter(|parsed| parsed.to_string() == text)
    }
}

impl fmt::Display for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Fixed(bytes) if bytes.get() > 0 && bytes.get().is_multiple_of(MIB) => {
                write!(f, "{}m", bytes.get() / MIB)
            }
            Self::Fixed(bytes) => write!(f, "{}", bytes.get()),
            Self::OutputMaps { thousandths } => {
                let (whole, part) = (thousandths / PARTS, thousandths % PARTS);
                let part = format!("{part:03}");
                match part.trim_end_matches('0') {
                    "" => write!(f, "x{whole}"),
                    part => write!(f, "x{whole}.{part}"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_and_printed_exactly() {
        for text in ["0", "4096", "1m", "8m", "1048577", "x20", "x0.05", "x0.001", "x1.5", "x0"] {
            assert_eq!(Workspace::parse(text).map(|parsed| parsed.to_string()).as_deref(), Some(text));
        }
        for wrong in [
            "", "m", "x", "08m", "x.5", "x1.", "x1.50", "x1.2345", "+1", "1048576", "0m", "x-1", "8M",
            "x1.+5",
        ] {
            assert_eq!(Workspace::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Workspace::parse("18446744073709551615m"), None);
        assert_eq!(Workspace::parse("x20").and_then(|twenty| twenty.bytes_for(u64::MAX)), None);
    }
}
