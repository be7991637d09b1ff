//! What XLA's heap simulator did: from its events to lives.
//!
//! A buffer that shares with another (`SHARE_WITH`) has that one's memory; the two, and all that share with either, are
//! one buffer here, as large as the largest of them, from the first `ALLOC` to the last `FREE`. The first of them may be
//! freed before the second shares with it: the memory changes hands at that instruction.

use rustc_hash::FxHashMap;

use super::messages::{ALLOC, FREE, HeapTrace, LogicalBuffer, SHARE_WITH};

/// Buffers that share memory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shared {
    /// Their ids, the canonical one first.
    pub(crate) members: Vec<i64>,
    /// Bytes of the largest.
    pub(crate) size: u64,
    /// The event of the `ALLOC`.
    pub(crate) start: u64,
    /// The event of the last `FREE`, or the number of events.
    pub(crate) end: u64,
    /// The instruction of the `ALLOC`.
    pub(crate) instruction: String,
}

/// The buffers of a trace, in order of their `ALLOC`.
///
/// # Errors
///
/// The event that makes no sense, and why.
pub(crate) fn shared_lives(
    trace: &HeapTrace,
    logical: &FxHashMap<i64, &LogicalBuffer>,
) -> Result<Vec<Shared>, (usize, String)> {
    let mut all: Vec<Shared> = Vec::new();
    // Where each id is, and whether it is live.
    let mut known: FxHashMap<i64, (usize, bool)> = FxHashMap::default();
    let last = trace.events.len() as u64;
    for (number, event) in trace.events.iter().enumerate() {
        let at = number as u64;
        let (id, bad) = (event.buffer, |reason: String| (number, reason));
        let twice = || bad(format!("buffer {id} is there already"));
        match event.kind {
            ALLOC => {
                let size = buffer_size(id, logical).map_err(bad)?;
                let instruction = event.instruction.clone();
                all.push(Shared { members: vec![id], size, start: at, end: last, instruction });
                if known.insert(id, (all.len() - 1, true)).is_some() {
                    return Err(twice());
                }
            }
            SHARE_WITH => {
                let canonical = event.canonical;
                let Some(&(place, _)) = known.get(&canonical) else {
                    return Err(bad(format!("buffer {id} shares with {canonical}, which has no memory yet")));
                };
                if known.insert(id, (place, true)).is_some() {
                    return Err(twice());
                }
                all[place].members.push(id);
                all[place].size = all[place].size.max(buffer_size(id, logical).map_err(bad)?);
                all[place].end = last;
            }
            FREE => {
                let Some((place, live @ true)) = known.get_mut(&id) else {
                    return Err(bad(format!("buffer {id} is freed, but it is not live")));
                };
                *live = false;
                all[*place].end = at;
            }
            other => return Err(bad(format!("its kind, {other}, is not one of ALLOC, FREE, SHARE_WITH"))),
        }
    }
    // A member that nobody freed lives to the end, and its memory with it.
    for &(place, _) in known.values().filter(|(_, live)| *live) {
        all[place].end = last;
    }
    Ok(all)
}

fn buffer_size(id: i64, logical: &FxHashMap<i64, &LogicalBuffer>) -> Result<u64, String> {
    let Some(buffer) = logical.get(&id) else {
        return Err(format!("buffer {id} is not one of the logical buffers"));
    };
    u64::try_from(buffer.size).map_err(|_| format!("buffer {id} has {} bytes", buffer.size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::import::xla::messages::HeapEvent;

    /// Kind, buffer, canonical buffer.
    type Event = (i32, i64, i64);
    /// Members, bytes, first step, end.
    type Life = (Vec<i64>, u64, u64, u64);

    fn play(events: &[Event]) -> Result<Vec<Life>, (usize, String)> {
        let event = |&(kind, buffer, canonical): &Event| HeapEvent {
            kind,
            buffer,
            canonical,
            instruction: String::new(),
        };
        let trace = HeapTrace { events: events.iter().map(event).collect() };
        let buffers: Vec<LogicalBuffer> =
            (1..=4).map(|id| LogicalBuffer { id, size: 10 * id, defined_at: None }).collect();
        let logical = buffers.iter().map(|buffer| (buffer.id, buffer)).collect();
        let shared = shared_lives(&trace, &logical)?;
        Ok(shared.into_iter().map(|s| (s.members, s.size, s.start, s.end)).collect())
    }

    #[test]
    fn who_shares_is_one_buffer_until_the_last_is_freed() {
        // The canonical buffer is freed first, the one that shares comes later and is larger.
        let events =
            [(ALLOC, 1, 0), (ALLOC, 3, 0), (FREE, 1, 0), (SHARE_WITH, 2, 1), (FREE, 3, 0), (FREE, 2, 0)];
        assert_eq!(play(&events), Ok(vec![(vec![1, 2], 20, 0, 5), (vec![3], 30, 1, 4)]));
        // Sharing with one that shares itself; the canonical one is freed last.
        let events =
            [(ALLOC, 1, 0), (SHARE_WITH, 2, 1), (SHARE_WITH, 3, 2), (FREE, 3, 0), (FREE, 2, 0), (FREE, 1, 0)];
        assert_eq!(play(&events), Ok(vec![(vec![1, 2, 3], 30, 0, 5)]));
        // Nobody frees one of them.
        let events = [(ALLOC, 1, 0), (SHARE_WITH, 2, 1), (FREE, 1, 0)];
        assert_eq!(play(&events), Ok(vec![(vec![1, 2], 20, 0, 3)]));
    }

    #[test]
    fn events_that_make_no_sense_are_named() {
        let reason = |events: &[Event]| play(events).expect_err("senseless");
        let cases: [(&[Event], (usize, &str)); 6] = [
            (&[(ALLOC, 1, 0), (ALLOC, 1, 0)], (1, "buffer 1 is there already")),
            (&[(FREE, 1, 0)], (0, "buffer 1 is freed, but it is not live")),
            (&[(ALLOC, 1, 0), (FREE, 1, 0), (FREE, 1, 0)], (2, "buffer 1 is freed, but it is not live")),
            (&[(SHARE_WITH, 2, 1)], (0, "buffer 2 shares with 1, which has no memory yet")),
            (&[(ALLOC, 9, 0)], (0, "buffer 9 is not one of the logical buffers")),
            (&[(7, 1, 0)], (0, "its kind, 7, is not one of ALLOC, FREE, SHARE_WITH")),
        ];
        for (events, expected) in cases {
            assert_eq!(reason(events), (expected.0, expected.1.to_owned()));
        }
    }
}
