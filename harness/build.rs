//! Builds facts about the build into the binary: commit, compiler, profile.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    let commit = output("git", &["rev-parse", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    let dirty = output("git", &["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"])
        .is_some_and(|s| !s.is_empty());
    let compiler = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let rustc = output(&compiler, &["--version"]).unwrap_or_else(|| "unknown".to_owned());
    let profile = env::var("PROFILE").unwrap_or_default();
    let level = env::var("OPT_LEVEL").unwrap_or_default();
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default().replace('\u{1f}', " ");
    println!("cargo:rustc-env=PLANLAB_GIT_COMMIT={commit}");
    println!("cargo:rustc-env=PLANLAB_GIT_DIRTY={dirty}");
    println!("cargo:rustc-env=PLANLAB_RUSTC={rustc}");
    println!("cargo:rustc-env=PLANLAB_FLAGS={profile} opt-level={level} {flags}");
    if profile == "release" {
        // A fixed address: relocating the binary's pointers took half of its start time, and each cell is a process.
        println!("cargo:rustc-link-arg-bin=planlab=-no-pie");
    }
    println!("cargo:rerun-if-changed=build.rs");
    for file in ["HEAD", "index"] {
        // In a further work tree of git they lie elsewhere.
        let path = output("git", &["rev-parse", "--git-path", file]);
        if let Some(path) = path.filter(|path| Path::new(path).exists()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
