//! How files are compressed, by their first bytes and by their names.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

/// Read at a time, in bytes.
pub(crate) const CHUNK: usize = 256 << 10;

planlab_dsa::named_enum! {
    /// How a file is compressed.
    pub(crate) enum Packing {
        Zstd = "zstd",
        Gzip = "gzip",
    }
}

impl Packing {
    /// Bytes by which one is known.
    pub(crate) const MARK: usize = 4;

    /// How a file that begins with these bytes is compressed.
    pub(crate) fn from_start(start: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|packing| match packing {
            // A frame, or one to skip (some compressors put their own notes first).
            Self::Zstd => matches!(start, [0x28, 0xB5, 0x2F, 0xFD, ..] | [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..]),
            // The third byte is the method: there is one.
            Self::Gzip => matches!(start, [0x1F, 0x8B, 8, ..]),
        })
    }

    /// How a file of this name has to be compressed.
    pub(crate) fn promised_by_name(file: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|packing| file.ends_with(packing.name_ending()))
    }

    /// The ending of a name that promises it.
    const fn name_ending(self) -> &'static str {
        match self {
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }

    pub(crate) fn unpack<'r>(self, packed: impl Read + 'r) -> io::Result<Box<dyn BufRead + 'r>> {
        Ok(match self {
            Self::Zstd => Box::new(BufReader::with_capacity(CHUNK, zstd::Decoder::new(packed)?)),
            Self::Gzip => {
                let packed = BufReader::with_capacity(CHUNK, packed);
                Box::new(BufReader::with_capacity(CHUNK, MultiGzDecoder::new(packed)))
            }
        })
    }
}

/// A name without the ending that says how the file is compressed.
pub(crate) fn without_packing(file: &str) -> &str {
    Packing::ALL.iter().find_map(|packing| file.strip_suffix(packing.name_ending())).unwrap_or(file)
}
