//! How much of an input is read before it is refused.

/// What an input may hold at most; more is taken for a mistake: an endless device, or a small file that unpacks to
/// terabytes.
///
/// One number sets all three limits, and no line or document is refused below the least that is given here.
///
/// ```
/// use planlab_workloads::formats::InputLimits;
///
/// let limits = InputLimits::default();
/// assert_eq!((limits.unpacked(), limits.document(), limits.line()), (4 << 30, 64 << 20, 16 << 20));
/// assert_eq!(InputLimits::new(8 << 30).line(), 32 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputLimits {
    unpacked: u64,
}

/// The least limit of a line, in bytes.
const LINE: u64 = 16 << 20;
/// The least limit of a document, in bytes.
const DOCUMENT: u64 = 64 << 20;

impl InputLimits {
    /// Limits for inputs of at most so many bytes, counted after decompression.
    #[must_use]
    pub const fn new(unpacked: u64) -> Self {
        Self { unpacked }
    }

    /// Bytes of an input, decompressed. It is read line by line, so that this is no measure of memory.
    #[must_use]
    pub const fn unpacked(self) -> u64 {
        self.unpacked
    }

    /// Bytes of a line: 1/256 of an input, but at least 16 MiB.
    #[must_use]
    pub const fn line(self) -> u64 {
        at_least(self.unpacked / 256, LINE)
    }

    /// Bytes of a document (JSON, TOML), which is held in memory as a whole: 1/64 of an input, but at least 64 MiB.
    #[must_use]
    pub const fn document(self) -> u64 {
        at_least(self.unpacked / 64, DOCUMENT)
    }
}

impl Default for InputLimits {
    /// 4 GiB: a hundred million buffers.
    fn default() -> Self {
        Self::new(4 << 30)
    }
}

const fn at_least(bytes: u64, least: u64) -> u64 {
    if bytes < least { least } else { bytes }
}
