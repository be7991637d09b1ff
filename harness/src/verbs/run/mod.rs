//! `run`: runs an unmodified program on planned memory.

mod planner;
mod program;
mod statistics;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

use planlab_files::TemporaryFolder;

use crate::cli::RunArgs;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, print_note};
use crate::shell::signals::Relay;
use crate::shell::target::{Target, scratch_folder, scratch_in_memory};
use planner::Planner;
use program::Aside;

/// The library's file name.
const LIBRARY: &str = "libplanlab.so";
/// The names of the library's files: each process writes a trace whose name ends with the process number.
const TRACE: &str = "trace";
const REPORT: &str = "report";

pub(crate) fn run(args: &RunArgs, output: Output) -> Verdict {
    let library = find_library(args.library.as_deref())?;
    let written = args.record_only.as_ref().or(args.report.as_ref());
    if let Some(file) = written {
        let what = if args.record_only.is_some() { "trace" } else { "report" };
        output.refuse_stdout(what, file)?;
    }
    let program = args.command.first().and_then(|program| program.to_str());
    let target = written.map(|file| Target::open_argument(file, program)).transpose()?;
    // A trace may be larger than memory.
    let scratch = if args.record_only.is_some() { scratch_folder()? } else { scratch_in_memory()? };
    let planner = if args.record_only.is_some() { None } else { Planner::start_waiting(scratch.path()).ok() };
    let mut command = Command::new(&args.command[0]);
    command.args(&args.command[1..]);
    if let Some(value) = preload_value(&library, &args.command[0])? {
        command.env("LD_PRELOAD", value);
    }
    set_environment(&mut command, args, scratch.path(), planner.is_some());
    let mut child = start_program(&mut command, &args.command[0])?;
    let pid = child.id();
    let status = child.wait()?;
    drop(planner);
    if let Some(signal) = status.signal() {
        print_note(&format!("signal {signal} ended the program"));
    }
    let exit = exit_from(status);
    match (target, &args.record_only) {
        (Some(target), Some(_)) => record_trace(target, args, &scratch, exit),
        (target, _) => report_statistics(target, args, (&scratch, pid), exit, output),
    }
}

/// The named library, or the one beside this program.
fn find_library(named: Option<&Path>) -> Result<PathBuf, Failure> {
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
        Failure::from_usage(format!("there is no {LIBRARY} ({where_}): {hint}"))
    })?;
    Ok(fs::canonicalize(found)?)
}

/// The new value of `LD_PRELOAD` for a program: the library, before any existing value. `None`: it stays as it is,
/// because the library cannot work there.
fn preload_value(library: &Path, program: &OsStr) -> Result<Option<OsString>, Failure> {
    if library.to_string_lossy().contains([':', ' ', '$']) {
        let reason = "LD_PRELOAD takes no path with a space, a colon or a dollar sign";
        return Err(Failure::from_usage(format!("{}: {reason}", library.display())));
    }
    let before = std::env::var_os("LD_PRELOAD").filter(|before| !before.is_empty());
    let sanitizer = before.as_deref().and_then(program::preloaded_sanitizer);
    let aside = sanitizer.or_else(|| program::why_aside(program));
    if let Some(why) = &aside {
        print_note(&format!("{} runs without the library: {why}", program.to_string_lossy()));
    }
    let way = way_of_glibc();
    match aside {
        Some(Aside::Sanitizer(_)) => return Ok(None),
        // It would not start: another loader does not find what the library needs.
        Some(Aside::OtherLibc(_)) if way.is_none() => return Ok(None),
        _ => {}
    }
    let mut all = OsString::from(way.unwrap_or_default());
    all.push(library);
    if let Some(before) = before {
        all.push(":");
        all.push(before);
    }
    Ok(Some(all))
}

/// A way to the root that only the loader of glibc can go, to be put before a path: it replaces `$LIB` by the folder of
/// its libraries. A loader that does not find a preloaded library goes on, but one of another C library that finds it
/// stops at what is missing in it. `None` if glibc does not lie at the usual place.
fn way_of_glibc() -> Option<String> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let libc =
        maps.lines().find_map(|line| Some(line[line.find('/')?..].strip_suffix("/libc.so.6")?.to_owned()))?;
    let folder = libc.strip_prefix("/usr/").or_else(|| libc.strip_prefix('/'))?;
    let is_usual = folder.starts_with("lib") && Path::new("/usr").join(folder).is_dir();
    is_usual.then(|| format!("/usr/$LIB{}", "/..".repeat(6)))
}

/// Starts the program, which receives this process's signals from then on.
fn start_program(command: &mut Command, program: &OsStr) -> Result<Child, Failure> {
    let relay = Relay::begin_relay();
    let child = command
        .spawn()
        .map_err(|error| Failure::from_usage(format!("{}: {error}", program.to_string_lossy())))?;
    relay.relay_to(child.id());
    Ok(child)
}

/// Passes the arguments to the library, as environment variables.
fn set_environment(command: &mut Command, args: &RunArgs, scratch: &Path, plans: bool) {
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
        ("PLANLAB_LAUNCHER", "", plans),
    ] {
        if is_on {
            command.env(name, scratch.join(file));
        } else {
            command.env_remove(name);
        }
    }
}

/// The program's exit code; if a signal ended it, the code that a shell returns.
fn exit_from(status: ExitStatus) -> Exit {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Exit::Program(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Writes the trace of the process that made the most requests.
fn record_trace(target: Target, args: &RunArgs, scratch: &TemporaryFolder, exit: Exit) -> Verdict {
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
        print_note(&reason);
        return if exit == Exit::Program(0) { Err(Failure::new(Exit::Incomplete, reason)) } else { Ok(exit) };
    };
    if others > 0 {
        print_note(&format!("{others} other processes made smaller traces, which are left out"));
    }
    target.write_all(&fs::read(largest)?)?;
    Ok(exit)
}

/// Prints the statistics of the requests after the program's output: the table on stderr, JSON on stdout.
fn report_statistics(
    target: Option<Target>,
    args: &RunArgs,
    (scratch, pid): (&TemporaryFolder, u32),
    exit: Exit,
    output: Output,
) -> Verdict {
    let file = scratch.path().join(REPORT);
    let lines = if file.exists() { fs::read_to_string(file)? } else { String::new() };
    let total = statistics::Total::from_lines(&lines, pid)?;
    let object = total.total_object(&args.command, exit.code(), args.min_size);
    if let Some(target) = target {
        target.write_all(format!("{object}\n").as_bytes())?;
    }
    if output.json {
        output.print_value(&object)?;
    } else {
        total.total_text(args.min_size).lines().for_each(print_note);
    }
    Ok(exit)
}
