//! The parent's side of a replay: starts a child, enforces its time limit, and has a result for every end.

use std::io;
use std::process::Command;
use std::time::Duration;

use planlab_dsa::CancelToken;
use planlab_replay::host::Report;

use super::contender::malloc;
use super::host::protocol::{Reply, Request};
use crate::process::{self, Death, talk};

/// Prefixes of variables that change or replace allocators. Children have none of them, except those of their
/// contender.
const ALLOCATOR_VARIABLES: [&str; 4] = ["MIMALLOC_", "MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD"];
/// The verb that plays on a device. It keeps `LD_PRELOAD`, which loads memory checkers there.
pub(super) const DEVICE_VERB: &str = "run-device-replay";

/// How a child ended.
#[derive(Clone, Debug)]
pub(super) enum ReplayEnd {
    Played(Box<Report>),
    /// It cannot read its input.
    Unreadable(String),
    /// Why there is no report, and the end of its stderr.
    Died(Death, String),
}

/// Runs a request in a child.
///
/// # Errors
///
/// If no child can be started. A failure of the child itself is not an error.
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

/// A child of a hidden verb, without the variables that change allocators, except for those in `variables`.
///
/// # Errors
///
/// If the path of this program is not known.
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
