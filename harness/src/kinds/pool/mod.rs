//! Plays traces on allocators: over simulated memory, on the host, and on a device.

pub(crate) mod contender;
pub(crate) mod device;
pub(crate) mod host;
mod keeper;
mod row;
mod saboteurs;
pub(crate) mod simulated;
mod subject;
mod supervisor;
mod table;

use planlab_dsa::performance::End;
use planlab_results::replay::ReplayRow;

use crate::shell::exit::Exit;

pub(crate) use contender::Contender;
pub(crate) use keeper::Keeper;

/// The exit code of the rows. Corrupted memory is worse than a contender without figures.
pub(crate) fn exit_of(rows: &[ReplayRow]) -> Exit {
    if rows.iter().any(|row| row.performance.status == End::Corrupt) {
        Exit::Invalid
    } else if rows.iter().any(|row| row.performance.status != End::Complete) {
        Exit::Incomplete
    } else {
        Exit::Complete
    }
}
