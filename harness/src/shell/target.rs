//! Output files. A target is tried before the work, and the result is printed even if writing it fails in the end.

use std::io;
use std::path::Path;

use planlab_files::{NewFile, NewFolder, TemporaryFolder, is_same_file};
use planlab_workloads::formats::write_file;
use serde_json::{Map, Value, json};

use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{self, Output};

/// A file to be written, or standard output.
pub(crate) enum Target {
    Stdout,
    File(NewFile),
}

impl Target {
    /// Opens the target of a `-o` argument. `beside` are the other files of the command, read or written: a file that is
    /// one of them would be lost.
    pub(crate) fn open_argument<'f>(
        argument: &str,
        beside: impl IntoIterator<Item = &'f str>,
    ) -> Result<Self, Failure> {
        if argument == "-" { Ok(Self::Stdout) } else { Self::open_file(Path::new(argument), beside) }
    }

    /// The same of a file whose name may be `-`.
    pub(crate) fn open_file<'f>(
        path: &Path,
        beside: impl IntoIterator<Item = &'f str>,
    ) -> Result<Self, Failure> {
        let shown = path.display().to_string();
        if let Some(other) = beside.into_iter().find(|other| is_same_file(path, file_of(other))) {
            let also = if other == shown { String::new() } else { format!(" (as {other})") };
            let message = format!("{shown} is another file of this command, too{also}: name another output");
            return Err(Failure::from_usage(message).in_file(shown, None));
        }
        Ok(Self::File(NewFile::create(path)?))
    }

    /// Writes the file as a whole.
    pub(crate) fn write_all(self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Stdout => Ok(output::print_bytes(bytes)?),
            Self::File(file) => Ok(write_file(file, bytes)?),
        }
    }
}

/// The file that an argument names.
fn file_of(argument: &str) -> &Path {
    Path::new(if argument == "-" { "/dev/stdin" } else { argument })
}

/// A folder for temporary files.
pub(crate) fn scratch_folder() -> Result<TemporaryFolder, Failure> {
    // Absolute, because a program that receives the path may change its folder.
    Ok(TemporaryFolder::scratch_in(&std::path::absolute(std::env::temp_dir())?)?)
}

/// The same in memory, if there is room.
pub(crate) fn scratch_in_memory() -> io::Result<TemporaryFolder> {
    let memory = TemporaryFolder::scratch_in(Path::new("/dev/shm"));
    memory.or_else(|_| TemporaryFolder::scratch_in(&std::env::temp_dir()))
}

/// Prints what was made, then returns the error if it could not be written. `made` has the path as its `output`, and
/// `text` describes the content.
pub(crate) fn tell_written(
    written: Result<(), Failure>,
    path: &str,
    mut made: Value,
    text: &str,
    output: Output,
) -> Verdict {
    let path = if written.is_ok() { path } else { "not written" };
    made["output"] = if written.is_ok() { path.into() } else { Value::Null };
    let told = output.print_either(&made, format!("{path}: {text}\n"));
    written.and(told).map(|()| Exit::Complete)
}

/// Writes tables into a folder of their own, the page first, and prints `about`. A page that cannot be written is
/// printed.
#[cfg_attr(not(feature = "reports"), expect(dead_code, reason = "for verbs that write tables"))]
pub(crate) fn write_tables(
    mut folder: NewFolder,
    out: &Path,
    files: &[(String, String)],
    (mut about, text): (Value, &str),
    output: Output,
) -> Verdict {
    let put = |(name, text): &(String, String)| folder.put_file(name, text.as_bytes());
    let put = files.iter().try_for_each(put);
    let written = put.and_then(|()| folder.commit(Map::new()));
    let Some((name, page)) = files.first() else { return Ok(Exit::Complete) };
    let path = out.join(name);
    about["output"] = json!(path);
    let line = format!("{}: {text}\n", path.display());
    if written.is_err() {
        about["output"] = Value::Null;
        about["page"] = json!(page);
    }
    let told = match written {
        Err(_) if !output.json => output::print_bytes(page.as_bytes()).map_err(Failure::from),
        _ => output.print_either(&about, line),
    };
    written.map_err(Failure::from).and(told).map(|()| Exit::Complete)
}
