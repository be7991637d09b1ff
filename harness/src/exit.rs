//! Exit codes, and errors that carry one.

use std::fmt;
use std::io;

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Complete = 0,
    /// A regression or a failed check.
    Regression = 1,
    /// Usage or bad input.
    Usage = 2,
    /// Some cell has no answer; the disk is full.
    Incomplete = 3,
    /// An invalid plan or a refuted bound was found.
    Invalid = 4,
    Interrupted = 130,
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}

/// An error and the exit code that it leads to.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) error: anyhow::Error,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, error: anyhow::anyhow!("{message}") }
    }

    /// What went wrong and why; a cause that the message before it names already is not named again.
    pub(crate) fn message(&self) -> String {
        let mut text = self.error.to_string();
        for cause in self.error.chain().skip(1).map(ToString::to_string) {
            if !text.contains(&cause) {
                text = format!("{text}: {cause}");
            }
        }
        text
    }

    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, message)
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        let exit = if is_disk_full(&error) { Exit::Incomplete } else { Exit::Usage };
        Self { exit, error }
    }
}

fn is_disk_full(error: &anyhow::Error) -> bool {
    let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| full.contains(&cause.kind()))
}

/// What a verb comes to.
pub(crate) type Verdict = Result<Exit, Failure>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_not_the_users_fault() {
        let full = anyhow::Error::from(io::Error::from(io::ErrorKind::StorageFull)).context("writing");
        assert_eq!(Failure::from(full).exit, Exit::Incomplete);
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(Failure::from(denied).exit, Exit::Usage);
    }
}
