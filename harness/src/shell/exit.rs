//! Exit codes, and errors that carry one.

use std::fmt;
use std::io;
use std::path::Path;

use planlab_files::{FolderError, SaveError};
use planlab_results::StoreError;
use planlab_workloads::external::ExternalError;
use planlab_workloads::recorded::AddError;
use planlab_workloads::{FormatError, SuiteError, WorkloadError};
use serde_json::{Value, json};

use crate::shell::JSON_VERSION;

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Complete,
    /// A regression or a failed check.
    Regression,
    /// Usage or bad input.
    Usage,
    /// Some cell has no answer; the disk is full.
    Incomplete,
    /// An invalid plan or a refuted bound was found.
    Invalid,
    Interrupted,
    /// The code of the program that was run.
    Program(u8),
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Complete => 0,
            Self::Regression => 1,
            Self::Usage => 2,
            Self::Incomplete => 3,
            Self::Invalid => 4,
            Self::Interrupted => 130,
            Self::Program(code) => code,
        }
    }

    /// Returns the worse of two exits, by their codes.
    pub(crate) fn or_worse(self, other: Self) -> Self {
        if self.code() >= other.code() { self } else { other }
    }

    /// Returns the first exit whose condition holds, or `Complete`.
    pub(crate) fn first_of<const N: usize>(conditions: [(Self, bool); N]) -> Self {
        conditions.into_iter().find(|&(_, holds)| holds).map_or(Self::Complete, |(exit, _)| exit)
    }
}

/// An error and the exit code that it leads to.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) error: anyhow::Error,
    /// Where the reason lies, if the error itself does not know.
    place: Option<ErrorPlace>,
}

/// A file, and the line or the byte of it that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ErrorPlace {
    file: Option<String>,
    line: Option<u64>,
    /// From 0, of a file that has no lines.
    byte: Option<u64>,
}

/// The file that an error of the system is about.
#[derive(Debug)]
pub(crate) struct InFile(pub(crate) String);

impl fmt::Display for InFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, error: anyhow::anyhow!("{message}"), place: None }
    }

    /// The same, about a file, or a line of it.
    pub(crate) fn in_file(mut self, file: impl fmt::Display, line: Option<u64>) -> Self {
        self.place = Some(ErrorPlace { file: Some(file.to_string()), line, byte: None });
        self
    }

    /// The error as `--json` prints it.
    pub(crate) fn as_json(&self) -> Value {
        let place = self.place.clone().unwrap_or_else(|| place_of(&self.error));
        json!({
            "version": JSON_VERSION,
            "error": self.full_message(),
            "file": place.file,
            "line": place.line,
            "byte": place.byte,
            "exit_code": self.exit.code(),
        })
    }

    /// What went wrong and why; a cause that the message before it names already is not named again.
    pub(crate) fn full_message(&self) -> String {
        let mut text = self.error.to_string();
        for cause in self.error.chain().skip(1).map(ToString::to_string) {
            if !text.contains(&cause) {
                text = format!("{text}: {cause}");
            }
        }
        text
    }

    pub(crate) fn from_usage(message: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, message)
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        let exit = if is_disk_full(&error) { Exit::Incomplete } else { Exit::Usage };
        Self { exit, error, place: None }
    }
}

/// The place that an error carries.
fn place_of(error: &anyhow::Error) -> ErrorPlace {
    let of_file = error
        .downcast_ref()
        .map(|InFile(file)| ErrorPlace { file: Some(file.clone()), ..ErrorPlace::default() });
    of_file.or_else(|| error.chain().find_map(place_in)).unwrap_or_default()
}

fn place_in(cause: &(dyn std::error::Error + 'static)) -> Option<ErrorPlace> {
    let format = |error: &FormatError| {
        let line = error.byte().is_none().then(|| error.line());
        ErrorPlace { file: Some(error.file().to_owned()), line, byte: error.byte() }
    };
    let file = |file: &str| ErrorPlace { file: Some(file.to_owned()), ..ErrorPlace::default() };
    let path = |path: &Path| file(&path.display().to_string());
    let external = |error: &ExternalError| match error {
        ExternalError::Format(error) => Some(format(error)),
        ExternalError::Io { file: name, .. } | ExternalError::Changed { file: name } => Some(file(name)),
        _ => None,
    };
    if let Some(error) = cause.downcast_ref::<FormatError>() {
        return Some(format(error));
    }
    if let Some(error) = cause.downcast_ref::<SaveError>() {
        return Some(path(error.path()));
    }
    if let Some(error) = cause.downcast_ref::<FolderError>() {
        return Some(path(error.path()));
    }
    if let Some(error) = cause.downcast_ref::<StoreError>() {
        return error.path().map(|at| ErrorPlace { line: error.line(), ..path(at) });
    }
    if let Some(error) = cause.downcast_ref::<ExternalError>() {
        return external(error);
    }
    match cause.downcast_ref::<AddError>() {
        Some(AddError::NoManifest { path: at, .. }) => return Some(path(at)),
        Some(AddError::Manifest(error)) => return Some(format(error)),
        Some(AddError::Save(error)) => return Some(path(error.path())),
        Some(AddError::Unlisted { path: at } | AddError::Lock { path: at, .. }) => return Some(path(at)),
        _ => {}
    }
    match (cause.downcast_ref::<WorkloadError>(), cause.downcast_ref::<SuiteError>()) {
        (Some(WorkloadError::Format(error)), _) => Some(format(error)),
        (Some(WorkloadError::External(error)), _) => external(error),
        (_, Some(SuiteError::File(error))) => external(error),
        (_, Some(SuiteError::Io { file: name, .. })) => Some(file(name)),
        (_, Some(SuiteError::Bad { file: name, line, .. })) => {
            Some(ErrorPlace { line: u64::try_from(*line).ok(), ..file(name) })
        }
        _ => None,
    }
}

fn is_disk_full(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).any(planlab_files::is_disk_full)
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

    #[test]
    fn an_error_knows_its_file_and_line() {
        let of = |failure: Failure| {
            let object = failure.as_json();
            (object["file"].as_str().map(str::to_owned), object["line"].as_u64())
        };
        let at = |file: &str, line| (Some(file.to_owned()), line);
        let bad = || FormatError::new("t.csv", 7, "size is 0");
        assert_eq!(of(bad().into()), at("t.csv", Some(7)));
        assert_eq!(of(anyhow::Error::from(bad()).context("reading").into()), at("t.csv", Some(7)));
        assert_eq!(of(WorkloadError::from(bad()).into()), at("t.csv", Some(7)));
        let missing = io::Error::from(io::ErrorKind::NotFound);
        assert_eq!(
            of(anyhow::Error::from(missing).context(InFile("x.csv".to_owned())).into()),
            at("x.csv", None)
        );
        assert_eq!(of(Failure::from_usage("no").in_file("c.json", Some(1))), at("c.json", Some(1)));
        assert_eq!(of(Failure::from_usage("no")), (None, None));
        let object = Failure::from(FormatError::at_byte("t.pickle", 7, "no")).as_json();
        assert_eq!((object["line"].as_u64(), object["byte"].as_u64()), (None, Some(7)));
        assert_eq!(object["error"], "t.pickle: byte 7: no");
    }
}
