//! Writes a digest of the sources of this crate, the contract and the graphs into `PLANLAB_SOURCE_DIGEST`. A crate that was
//! taken out of the repository has only its own beside it.

use std::path::{Path, PathBuf};
use std::{fs, io};

fn main() -> io::Result<()> {
    let mut files = Vec::new();
    for folder in ["src", "../dsa/src", "../graph/src"] {
        if !Path::new(folder).is_dir() {
            continue;
        }
        println!("cargo::rerun-if-changed={folder}");
        collect(Path::new(folder), &mut files)?;
    }
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for file in files {
        let text = fs::read(&file)?;
        let name = file.to_string_lossy().replace('\\', "/");
        for part in [name.as_bytes(), &text] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    println!("cargo::rustc-env=PLANLAB_SOURCE_DIGEST={}", hasher.finalize().to_hex());
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
