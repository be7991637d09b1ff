//! The hidden verb `exec-external`: binds its life to its parent's, records the time, then becomes the program.

use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Read as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use planlab_files::open_regular;

use crate::cli::ExecArgs;
use crate::process::die_with_parent;
use crate::shell::clock::monotonic_time;
use crate::shell::exit::{Exit, Failure, Verdict};

/// The verb's name.
pub(crate) const VERB: &str = "exec-external";

/// A command that runs a program in a process group of its own. The kernel kills it when the calling thread ends.
/// `stamp` is the file that receives the time at which the program begins.
pub(crate) fn launch_command(words: &[OsString], stamp: &Path) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(VERB).arg(std::process::id().to_string()).arg(stamp).args(words).process_group(0);
    Ok(command)
}

/// When the program began, on the clock of [`monotonic_time`]; `None` if it did not begin.
pub(crate) fn time_begun(stamp: &Path) -> Option<Duration> {
    read_stamp(stamp)?.parse().ok().map(Duration::from_nanos)
}

/// The text of a stamp file. The program may have replaced it by anything.
fn read_stamp(stamp: &Path) -> Option<String> {
    let mut text = String::new();
    open_regular(stamp).ok()?.take(LONGEST_STAMP).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The most bytes of a stamp file.
const LONGEST_STAMP: u64 = 4096;
/// The first word of a stamp file if the program could not be started.
const REFUSED: &str = "refused: ";

/// Why the program could not be started; `None` if it began.
pub(crate) fn refusal_reason(stamp: &Path) -> Option<String> {
    read_stamp(stamp)?.strip_prefix(REFUSED).map(str::to_owned)
}

/// Becomes the program; returns only if that fails.
pub(crate) fn become_program(args: &ExecArgs) -> Verdict {
    die_with_parent(args.parent)?;
    let Some((program, arguments)) = args.command.split_first() else {
        return Err(Failure::from_usage("no program"));
    };
    fs::write(&args.stamp, monotonic_time().as_nanos().to_string())?;
    let error = Command::new(program).args(arguments).exec();
    // The system looks for a bare name in PATH alone.
    let is_path = program.as_bytes().contains(&b'/');
    let reason = match error.kind() {
        ErrorKind::NotFound if is_path && Path::new(program).exists() => {
            "its interpreter or loader does not exist".to_owned()
        }
        _ => error.to_string(),
    };
    fs::write(&args.stamp, format!("{REFUSED}{reason}"))?;
    Err(Failure::new(Exit::Usage, format!("{}: {reason}", program.display())))
}
