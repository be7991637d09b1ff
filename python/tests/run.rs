//! Runs the tests of the Python package, which are in Python, on the library that cargo has built.
//!
//! Needs a Python with NumPy and pytest: `PLANLAB_PYTHON`, or Debian's (`./setup` installs them). Without one the test passes
//! and says so, as a machine without Python can build all the rest.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");
const DEBIAN_PYTHON: &str = "/usr/bin/python3";
const HAS_ALL: &str = "import sys, numpy, pytest; sys.exit(sys.version_info < (3, 10))";

#[test]
#[allow(clippy::print_stderr, reason = "a test that is skipped has to say so")]
fn python_tests_pass() {
    let python = env::var_os("PLANLAB_PYTHON").unwrap_or_else(|| OsString::from(DEBIAN_PYTHON));
    let probe = Command::new(&python).args(["-c", HAS_ALL]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: {} is no Python 3.10 with NumPy and pytest (./setup)", python.display());
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    install(folder.path());
    let output = Command::new(&python)
        .args(["-B", "-m", "pytest", "--quiet", "-p", "no:cacheprovider", "tests"])
        .current_dir(folder.path())
        .output()
        .expect("Python runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains(" passed"), "{text}");
}

/// Lays the package out as a wheel would install it, with the tests beside it.
fn install(folder: &Path) {
    let package = folder.join("planlab");
    fs::create_dir(&package).expect("a new folder");
    for file in fs::read_dir(Path::new(PACKAGE).join("planlab")).expect("the sources") {
        let file = file.expect("readable").path();
        if file.is_file() {
            fs::copy(&file, package.join(file.file_name().expect("a name"))).expect("a copy");
        }
    }
    fs::copy(library(), package.join("_native.abi3.so")).expect("a copy of the library");
    // Not copied: they look for the repository's files from where they are.
    std::os::unix::fs::symlink(Path::new(PACKAGE).join("tests"), folder.join("tests")).expect("a link");
}

/// Returns the library that cargo has built for this test: beside its program, or one folder up.
fn library() -> PathBuf {
    let program = env::current_exe().expect("this program");
    let folder = program.parent().expect("a folder");
    [folder.join("lib_native.so"), folder.join("../lib_native.so")]
        .into_iter()
        .find(|path| path.is_file())
        .unwrap_or_else(|| panic!("lib_native.so is not beside {}", program.display()))
}
