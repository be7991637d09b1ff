//! `run`: runs an unmodified program on planned memory.

mod statistics;

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use planlab_dsa::CancelToken;
use planlab_files::TemporaryFolder;
use rustix::process::{Pid, Signal, kill_process};

use crate::cli::RunArgs;
use crate::process::GRACE;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, note};
use crate::shell::signals::cancel_token;
use crate::shell::target::{Target, scratch};

/// The library's file name.
const LIBRARY: &str = "libplanlab.so";
/// The names of the library's files: each process writes a trace whose name ends with the process number.
const TRACE: &str = "trace";
const REPORT: &str = "report";
/// The longest interval between two checks whether the program has ended.
const LOOK: Duration = Duration::from_millis(20);

pub(crate) fn run(args: &RunArgs, output: Output) -> Verdict {
    let library = library(args.library.as_deref())?;
    let written = args.record_only.as_ref().or(args.report.as_ref());
    if let Some(file) = written {
        let what = if args.record_only.is_some() { "trace" } else { "report" };
        output.refuse_stdout(what, file)?;
    }
    let program = args.command.first().and_then(|program| program.to_str());
    let target = written.map(|file| Target::open(file, program)).transpose()?;
    let scratch = scratch()?;
    let mut command = Command::new(&args.command[0]);
    command.args(&args.command[1..]).env("LD_PRELOAD", preload(&library)?);
    set(&mut command, args, scratch.path());
    let child = command
        .spawn()
        .map_err(|error| Failure::usage(format!("{}: {error}", args.command[0].to_string_lossy())))?;
    let pid = child.id();
    let status = wait(child, &cancel_token())?;
    if let Some(signal) = status.signal() {
        note(&format!("signal {signal} ended the program"));
    }
    let exit = exit(status);
    match (target, &args.record_only) {
        (Some(target), Some(_)) => record(target, args, &scratch, exit),
        (target, _) => report(target, args, (&scratch, pid), exit, output),
    }
}

/// The named library, or the one beside this program.
fn library(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let candidates = match named {
        Some(file) => vec![file.to_owned()],
        None => {
            let program = std::env::current_exe()?;
            let folder = program.parent().unwrap_or(Path::new("."));
            ["", "deps", "../lib"].map(|beside| folder.join(beside).join(LIBRARY)).into()
        }
    };
    let found = candidates.iter().find(|file| file.is_file());
    let found = found.ok_or_else(|| {
        let where_ = candidates.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
        let hint = "`just build` makes it, --library or PLANLAB_LIBRARY names it";
        Failure::usage(format!("there is no {LIBRARY} ({where_}): {hint}"))
    })?;
    Ok(fs::canonicalize(found)?)
}

/// The new value of `LD_PRELOAD`: the library, before any existing value.
fn preload(library: &Path) -> Result<OsString, Failure> {
    if library.to_string_lossy().contains([':', ' ']) {
        let reason = "LD_PRELOAD takes no path with a space or a colon";
        return Err(Failure::usage(format!("{}: {reason}", library.display())));
    }
    let mut all = library.as_os_str().to_owned();
    if let Some(before) = std::env::var_os("LD_PRELOAD").filter(|before| !before.is_empty()) {
        all.push(":");
        all.push(before);
    }
    Ok(all)
}

/// Passes the arguments to the library, as environment variables.
fn set(command: &mut Command, args: &RunArgs, scratch: &Path) {
    command.env("PLANLAB_MIN_SIZE", args.min_size.to_string()).env("PLANLAB_ROUNDS", args.rounds.to_string());
    for (name, is_on) in [
        ("PLANLAB_MARKS", args.marks),
        ("PLANLAB_CHECK", args.check),
        ("PLANLAB_HUGE_PAGES", !args.no_huge_pages),
    ] {
        command.env(name, if is_on { "1" } else { "0" });
    }
    for (name, file, is_on) in [
        ("PLANLAB_RECORD", TRACE, args.record_only.is_some()),
        ("PLANLAB_REPORT", REPORT, args.record_only.is_none()),
    ] {
        if is_on {
            command.env(name, scratch.join(file));
        } else {
            command.env_remove(name);
        }
    }
}

/// Waits for the program. Ctrl-C reaches it from the terminal. If this process receives a signal, it sends the program
/// TERM.
fn wait(mut child: Child, cancel: &CancelToken) -> Result<ExitStatus, Failure> {
    let mut patience = Duration::from_millis(1);
    let mut asked: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        thread::sleep(patience);
        patience = (patience * 2).min(LOOK);
        if cancel.is_cancelled() && asked.get_or_insert_with(Instant::now).elapsed() >= GRACE {
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            // The program may have ended meanwhile.
            let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
            asked = Some(Instant::now());
        }
    }
}

/// The program's exit code; if a signal ended it, the code that a shell returns.
fn exit(status: ExitStatus) -> Exit {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Exit::Program(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Writes the trace of the process that made the most requests.
fn record(target: Target, args: &RunArgs, scratch: &TemporaryFolder, exit: Exit) -> Verdict {
    let mut traces = Vec::new();
    for entry in fs::read_dir(scratch.path())? {
        let entry = entry?;
        // The folder also contains other files.
        if entry.file_name().to_string_lossy().starts_with(TRACE) {
            traces.push((entry.metadata()?.len(), entry.path()));
        }
    }
    traces.sort();
    let others = traces.len().saturating_sub(1);
    let Some((_, largest)) = traces.pop() else {
        let reason = format!("there is no trace: {}", statistics::none_seen(args.min_size));
        note(&reason);
        return if exit == Exit::Program(0) { Err(Failure::new(Exit::Incomplete, reason)) } else { Ok(exit) };
    };
    if others > 0 {
        note(&format!("{others} other processes made smaller traces, which are left out"));
    }
    target.write(&fs::read(largest)?)?;
    Ok(exit)
}

/// Prints the statistics of the requests after the program's output: the table on stderr, JSON on stdout.
fn report(
    target: Option<Target>,
    args: &RunArgs,
    (scratch, pid): (&TemporaryFolder, u32),
    exit: Exit,
    output: Output,
) -> Verdict {
    let file = scratch.path().join(REPORT);
    let lines = if file.exists() { fs::read_to_string(file)? } else { String::new() };
    let total = statistics::Total::of(&lines, pid)?;
    let object = total.object(&args.command, exit.code(), args.min_size);
    if let Some(target) = target {
        target.write(format!("{object}\n").as_bytes())?;
    }
    if output.json {
        output.value(&object)?;
    } else {
        total.text(args.min_size).lines().for_each(note);
    }
    Ok(exit)
}
