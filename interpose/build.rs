//! Links the compiler's unwinder into the library, where there is one as an archive.
//!
//! As a library of its own (libgcc_s) it is loaded, and its relocations are made, in every process under a preload: about
//! half of what the preload costs at the start of a process.

use std::path::Path;
use std::process::Command;

const ARCHIVE: &str = "libgcc_eh.a";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CC");
    // Its destructor of threads' states is called when they end, whoever closes the library before.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // The archive of this machine's compiler says nothing of another target.
    if std::env::var("HOST") != std::env::var("TARGET") {
        return;
    }
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let Ok(output) = Command::new(compiler).arg(format!("-print-file-name={ARCHIVE}")).output() else {
        return;
    };
    let file = String::from_utf8_lossy(&output.stdout);
    let file = Path::new(file.trim());
    // A compiler that has none says only the name.
    if let Some(folder) = file.parent().filter(|folder| folder.is_absolute() && file.is_file()) {
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    }
}
