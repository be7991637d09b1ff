//! Limits on the size of an input.

/// The most that an input may contain; more counts as a mistake, such as an endless device, or a small file that
/// unpacks to terabytes.
///
/// One number sets all limits; those of parts have a minimum.
///
/// ```
/// use planlab_workloads::formats::InputLimits;
///
/// let limits = InputLimits::default();
/// assert_eq!((limits.unpacked_bytes(), limits.document_bytes(), limits.line_bytes()), (16 << 30, 64 << 20, 16 << 20));
/// assert_eq!((limits.whole_file_bytes(), InputLimits::new(20).whole_file_bytes()), (4 << 30, 20));
/// assert_eq!(InputLimits::new(32 << 30).line_bytes(), 32 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputLimits {
    unpacked: u64,
}

/// The smallest limit of a line, in bytes.
const LINE: u64 = 16 << 20;
/// The smallest limit of a document, in bytes.
const DOCUMENT: u64 = 64 << 20;

impl InputLimits {
    /// Limits for inputs of at most `unpacked` bytes after decompression.
    #[must_use]
    pub const fn new(unpacked: u64) -> Self {
        Self { unpacked }
    }

    /// Bytes of an input after decompression. It is read line by line, so this does not determine the memory.
    #[must_use]
    pub const fn unpacked_bytes(self) -> u64 {
        self.unpacked
    }

    /// Bytes of a file of another tool that is held in memory as a whole: 1/4 of an input, but at least 64 MiB.
    #[must_use]
    pub fn whole_file_bytes(self) -> u64 {
        (self.unpacked / 4).max(DOCUMENT).min(self.unpacked)
    }

    /// Bytes of a line: 1/1024 of an input, but at least 16 MiB.
    #[must_use]
    pub fn line_bytes(self) -> u64 {
        (self.unpacked / 1024).max(LINE)
    }

    /// Bytes of a document (JSON, TOML), which is held in memory as a whole: 1/256 of an input, but at least 64 MiB.
    #[must_use]
    pub fn document_bytes(self) -> u64 {
        (self.unpacked / 256).max(DOCUMENT)
    }
}

impl Default for InputLimits {
    /// 16 GiB: four hundred million buffers.
    fn default() -> Self {
        Self::new(16 << 30)
    }
}
