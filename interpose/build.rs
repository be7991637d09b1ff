//! Links the compiler's unwinder into the library, if the compiler has it as an archive.
//!
//! If it were a separate library (libgcc_s), every process under a preload would load and relocate it: about half of
//! what the preload costs at the start of a process.

use std::path::Path;
use std::process::Command;

const ARCHIVE: &str = "libgcc_eh.a";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CC");
    // The library must not be unloaded: its destructor of thread states runs when threads end.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // This machine's compiler does not know the archive of another target.
    if std::env::var("HOST") != std::env::var("TARGET") {
        return;
    }
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let Ok(output) = Command::new(compiler).arg(format!("-print-file-name={ARCHIVE}")).output() else {
        return;
    };
    let file = String::from_utf8_lossy(&output.stdout);
    let file = Path::new(file.trim());
    // A compiler without the archive prints only its name.
    if let Some(folder) = file.parent().filter(|folder| folder.is_absolute() && file.is_file()) {
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    }
}
