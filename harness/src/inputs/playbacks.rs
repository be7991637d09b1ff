//! Schedules in files, as the runs that they describe.

use planlab_graph::{Playback, Schedule};
use planlab_workloads::formats::read_schedule_from;

use super::source::{Origin, Source, input_limits, input_name, open_file, open_reader};
use crate::shell::exit::Failure;

/// The run of a source's schedule; `None` if the source is something else.
pub(crate) fn open_playback(source: &Source) -> Result<Option<Playback>, Failure> {
    let Origin::File(path) = &source.origin else { return Ok(None) };
    let file = open_file(path, &source.name)?;
    let schedule = read_schedule_from(&source.name, file, input_limits())?;
    schedule.map(|schedule| run_schedule(schedule, &source.name)).transpose()
}

/// The run of the schedule that an argument names.
#[cfg_attr(not(feature = "reports"), expect(dead_code, reason = "for pages"))]
pub(crate) fn read_playback(argument: &str) -> Result<Playback, Failure> {
    let name = input_name(argument);
    let schedule = read_schedule_from(name, open_reader(argument)?, input_limits())?;
    let other = || Failure::from_usage(format!("{name}: this is not a schedule")).in_file(name, None);
    run_schedule(schedule.ok_or_else(other)?, name)
}

fn run_schedule(schedule: Schedule, name: &str) -> Result<Playback, Failure> {
    let refuse = |error| Failure::from_usage(format!("{name}: {error}")).in_file(name, None);
    Playback::new(schedule).map_err(refuse)
}
