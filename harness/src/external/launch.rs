//! The hidden verb `exec-external`: binds itself to its parent's life, then becomes the program.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::cli::ExecArgs;
use crate::exit::{Exit, Failure, Verdict};
use crate::isolation::child::die_with_parent;

/// The verb's name.
pub(crate) const VERB: &str = "exec-external";

/// A command that runs `program` in a process group of its own, and that the kernel kills when the calling
/// thread ends.
pub(crate) fn command(words: &[OsString]) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(VERB).arg(std::process::id().to_string()).args(words).process_group(0);
    Ok(command)
}

/// Becomes the program; returns only where that cannot be.
pub(crate) fn run(args: &ExecArgs) -> Verdict {
    die_with_parent(args.parent)?;
    let Some((program, arguments)) = args.command.split_first() else {
        return Err(Failure::usage("no program"));
    };
    let error = Command::new(program).args(arguments).exec();
    Err(Failure::new(Exit::Usage, format!("{}: {error}", program.display())))
}
