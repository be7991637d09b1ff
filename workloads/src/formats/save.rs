//! Writes files, compressed if their name says so.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use planlab_files::{NewFile, SaveError};

use super::input::packing::Packing;

/// zstd's level for files: small enough to commit, and fast enough.
const LEVEL: i32 = 9;

/// Writes a file whole or not at all ([`NewFile`]); compresses it if the name ends in `.zst` or `.gz`.
///
/// # Errors
///
/// [`SaveError`] with the path; its source is the system's error.
pub fn save_file(path: &Path, bytes: &[u8]) -> Result<(), SaveError> {
    write_file(NewFile::create(path)?, bytes)
}

/// Writes a file whose path was checked earlier.
///
/// # Errors
///
/// Like [`save_file`].
pub fn write_file(file: NewFile, bytes: &[u8]) -> Result<(), SaveError> {
    let packed = pack_for(file.path(), bytes).map_err(|error| SaveError::new(file.path(), error))?;
    file.write_all(&packed)
}

fn pack_for<'b>(path: &Path, bytes: &'b [u8]) -> io::Result<Cow<'b, [u8]>> {
    Ok(match Packing::promised_by_name(&path.to_string_lossy()) {
        Some(Packing::Zstd) => compress_zstd(bytes, LEVEL)?.into(),
        Some(Packing::Gzip) => compress_gzip(bytes)?.into(),
        None => bytes.into(),
    })
}

/// Compresses with gzip, without a name or a time: equal contents are equal files.
fn compress_gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Compresses with zstd at a level from 1 to 22, with a checksum.
///
/// # Errors
///
/// The error of the compressor.
pub fn compress_zstd(bytes: &[u8], level: i32) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), level)?;
    encoder.include_checksum(true)?;
    encoder.set_pledged_src_size(Some(bytes.len() as u64))?;
    encoder.write_all(bytes)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::formats::{InputLimits, read_bytes};

    #[test]
    fn a_saved_file_is_whole_alone_and_compressed_as_its_name_says() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let rows = b"id,offset\na,0\n".repeat(1000);
        for (name, mark) in [
            ("plain.csv", &b"id,"[..]),
            ("p.csv.zst", &[0x28, 0xB5, 0x2F]),
            ("g.jsonl.gz", &[0x1F, 0x8B, 8]),
            (".gz", &[0x1F, 0x8B, 8]),
        ] {
            let path = folder.path().join(name);
            for whole in [&b"first"[..], &rows] {
                save_file(&path, whole).expect("written or replaced");
                let bytes = fs::read(&path).expect("there");
                assert_eq!(read_bytes(name, &*bytes, InputLimits::default()).expect("whole"), whole);
            }
            let bytes = fs::read(&path).expect("there");
            assert!(bytes.starts_with(mark), "{name}");
            assert_eq!(bytes.len() < rows.len() / 10, name != "plain.csv", "{name}");
            save_file(&path, &rows).expect("replaced");
            assert_eq!(fs::read(&path).expect("there"), bytes, "{name}");
        }
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 4);
    }
}
