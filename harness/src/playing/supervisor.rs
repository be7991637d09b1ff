//! The parent's side of a replay: starts a child, holds it to its time, and has an end for it whatever it does.

use std::io;
use std::process::Command;
use std::time::Duration;

use planlab_dsa::CancelToken;
use planlab_replay::host::Report;

use super::contender::malloc;
use super::host::protocol::{Reply, Request};
use crate::process::{self, Death, talk};

/// Variables that change what allocators do, or put another in their place, begin so; children have none but what their contender stands for.
const ALLOCATOR_VARIABLES: [&str; 4] = ["MIMALLOC_", "MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD"];
/// Plays on a device, where checkers of its memory come by `LD_PRELOAD`.
pub(super) const DEVICE_VERB: &str = "run-device-replay";

/// What became of a child.
#[derive(Clone, Debug)]
pub(super) enum ReplayEnd {
    Played(Box<Report>),
    /// It cannot read what it was given.
    Unreadable(String),
    /// Why there is no report, and the end of what it wrote to stderr.
    Died(Death, String),
}

/// Runs a request in a child.
///
/// # Errors
///
/// Where no child can be started; what a child does is never an error.
pub(super) fn run(request: &Request, limit: Duration, cancel: &CancelToken) -> io::Result<ReplayEnd> {
    let environment = malloc(&request.contender).map_or(&[][..], |malloc| malloc.environment());
    let talk = talk(command("run-replay", environment)?, request, limit, cancel)?;
    if talk.killed.is_some() {
        return Ok(ReplayEnd::Died(talk.death(), talk.stderr));
    }
    Ok(match serde_json::from_slice(&talk.answer) {
        Ok(Reply::Played(report)) => ReplayEnd::Played(report),
        Ok(Reply::Unreadable { reason }) => ReplayEnd::Unreadable(reason),
        Err(_) => ReplayEnd::Died(talk.death(), talk.stderr),
    })
}

/// A child of a hidden verb, without the variables that change what allocators do; some may be set instead.
///
/// # Errors
///
/// Where this program's own file is not known.
pub(super) fn command(verb: &str, variables: &[(&str, &str)]) -> io::Result<Command> {
    let mut command = process::command(verb)?;
    for (name, _) in std::env::vars_os() {
        let name_of = name.to_str().unwrap_or_default();
        let is_kept = verb == DEVICE_VERB && name_of == "LD_PRELOAD";
        if !is_kept && ALLOCATOR_VARIABLES.iter().any(|prefix| name_of.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    command.envs(variables.iter().copied());
    Ok(command)
}
