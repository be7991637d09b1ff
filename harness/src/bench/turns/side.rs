//! One of the two builds that are measured in turns.

use std::path::PathBuf;
use std::process::Output;

use crate::shell::exit::Failure;

/// One side: its binary and the folder of its results.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) name: &'static str,
    pub(super) binary: PathBuf,
    pub(super) results: PathBuf,
}

impl Side {
    pub(super) fn side_failure(&self, reason: &dyn std::fmt::Display) -> Failure {
        Failure::from_usage(format!("side {} ({}): {reason}", self.name, self.binary.display()))
    }
}

/// The last line that a binary wrote to stderr.
pub(super) fn last_line(output: &Output) -> String {
    let told = String::from_utf8_lossy(&output.stderr);
    told.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it printed nothing").to_owned()
}
