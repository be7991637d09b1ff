//! Checks that need the schedule alone: the audit and [`Playback`](crate::Playback) share them.

use planlab_dsa::BufferId;

use super::violation::Violation;
use crate::{EventId, Schedule};

/// Relative error that sums of seconds may have.
pub(crate) const TOLERANCE: f64 = 1e-9;

/// The event that writes each buffer; `None` for the buffers that exist from the start.
///
/// # Panics
///
/// If the schedule refers to a buffer that does not exist.
pub(crate) fn find_writers(schedule: &Schedule) -> Result<Vec<Option<EventId>>, Violation> {
    let mut writers = vec![None; schedule.buffers.len()];
    let mut is_written = vec![false; schedule.buffers.len()];
    schedule.resident.iter().for_each(|id| is_written[id.index()] = true);
    for (event, data) in schedule.numbered_events() {
        for &buffer in &data.writes {
            if std::mem::replace(&mut is_written[buffer.index()], true) {
                return Err(Violation::WrittenTwice { event, buffer });
            }
            writers[buffer.index()] = Some(event);
        }
    }
    match is_written.iter().position(|is_written| !is_written) {
        Some(index) => Err(Violation::NeverWritten(BufferId::from_index(index))),
        None => Ok(writers),
    }
}

/// The offset of a buffer in bytes, which is at least the base.
///
/// # Panics
///
/// If there is no such buffer.
pub(crate) fn find_offset(schedule: &Schedule, buffer: BufferId) -> Result<u64, Violation> {
    let base = schedule.base;
    let offset = schedule.buffer(buffer).offset.ok_or(Violation::NoOffset(buffer))?.get();
    if offset < base.get() {
        return Err(Violation::BelowBase { buffer, offset, base });
    }
    Ok(offset)
}

/// Checks that a run takes this many seconds, if the schedule claims a time, and a finite number of them.
pub(crate) fn check_claim(schedule: &Schedule, seconds: f64) -> Result<(), Violation> {
    if !seconds.is_finite() {
        return Err(Violation::Endless);
    }
    let is_same = |claimed: f64| (claimed - seconds).abs() <= TOLERANCE * seconds;
    match schedule.seconds.filter(|&claimed| !is_same(claimed)) {
        Some(claimed) => Err(Violation::WrongClaim { claimed, seconds }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::{Bytes, Offset};

    use super::*;
    use crate::{Content, MapId};

    #[test]
    fn offset_is_found_from_the_base_on() {
        let base = Bytes::new(8);
        let mut schedule = Schedule { base, ..Schedule::default() };
        let buffer = schedule.add_buffer(Content::Map(MapId::from_index(0)), 0, Bytes::new(4));
        let mut find = |offset: Option<u64>| {
            schedule.buffers[buffer.index()].offset = offset.map(Offset::new);
            find_offset(&schedule, buffer)
        };
        assert_eq!([8, 12].map(|offset| find(Some(offset))), [Ok(8), Ok(12)]);
        assert_eq!(find(Some(7)), Err(Violation::BelowBase { buffer, offset: 7, base }));
        assert_eq!(find(None), Err(Violation::NoOffset(buffer)));
    }

    #[test]
    fn claim_is_refused_unless_it_is_the_time_of_a_finite_run() {
        let check =
            |claimed, seconds| check_claim(&Schedule { seconds: claimed, ..Schedule::default() }, seconds);
        assert_eq!(check(Some(5.0), 5.0 * (1.0 + TOLERANCE / 2.0)), Ok(()));
        assert_eq!(check(None, 5.0), Ok(()));
        assert_eq!(check(Some(4.0), 5.0), Err(Violation::WrongClaim { claimed: 4.0, seconds: 5.0 }));
        assert!(matches!(check(Some(f64::NAN), 5.0), Err(Violation::WrongClaim { .. })));
        for claimed in [None, Some(5.0), Some(f64::INFINITY)] {
            assert_eq!(check(claimed, f64::INFINITY), Err(Violation::Endless));
        }
    }
}
