//! A problem as columns of numbers: how callers in other languages hand one in.

use crate::{Alignment, Buffer, BufferId, Bytes, Instance, InstanceError, LiveRange, Offset};

/// A problem as columns with an entry for each buffer, in the order of the buffers' ids.
///
/// Steps may be any 64-bit numbers. Unless all lie between 0 and 2^32 - 1 (nanoseconds do not), each is
/// replaced by its rank, which changes neither what is live together nor any plan's height.
///
/// ```
/// use planlab_dsa::Columns;
///
/// let columns = Columns {
///     lower: &[0, 1_700_000_000_000],
///     upper: &[1_700_000_000_001, 1_700_000_000_002],
///     size: &[64, 32],
///     align: Some(&[16, 16]),
///     pin: Some(&[0, -1]),
/// };
/// let instance = columns.build_instance()?;
/// assert_eq!(instance.load().bytes.get(), 96);
/// # Ok::<(), planlab_dsa::ColumnError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Columns<'c> {
    /// The first step at which each buffer is live.
    pub lower: &'c [i64],
    /// The first step after it, at which it no longer is.
    pub upper: &'c [i64],
    /// Bytes; more than 0.
    pub size: &'c [u64],
    /// What each offset is a multiple of, in bytes. Default: 1.
    pub align: Option<&'c [u64]>,
    /// Fixed offsets in bytes; -1 where a buffer has none. Default: none.
    pub pin: Option<&'c [i64]>,
}

/// Why columns are no problem.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnError {
    /// A column has another number of entries than the first.
    #[error("`{column}` has {count} entries, but `lower` has {expected}")]
    Length { column: &'static str, count: usize, expected: usize },
    /// A buffer that is never live.
    #[error("buffer {buffer}: live at steps [{lower}, {upper}), so never: lower must be below upper")]
    Empty { buffer: BufferId, lower: i64, upper: i64 },
    /// An alignment of 0.
    #[error("buffer {buffer}: its alignment is 0; any other number of bytes will do")]
    ZeroAlignment { buffer: BufferId },
    /// A pin below 0 that is not -1.
    #[error("buffer {buffer}: pinned at offset {pin}; only -1 (no pin) may be negative")]
    NegativePin { buffer: BufferId, pin: i64 },
    /// Steps that have to be ranked, and more different ones than 32 bits can count.
    #[error("{count} different steps are more than an instance can have (4294967296)")]
    TooManySteps { count: usize },
    /// The columns make no valid instance.
    #[error(transparent)]
    Instance(#[from] InstanceError),
}

impl ColumnError {
    /// The buffer that is at fault, where it is one.
    #[must_use]
    pub fn faulty_buffer(&self) -> Option<BufferId> {
        match self {
            Self::Empty { buffer, .. }
            | Self::ZeroAlignment { buffer }
            | Self::NegativePin { buffer, .. } => Some(*buffer),
            Self::Instance(error) => error.faulty_buffer(),
            Self::Length { .. } | Self::TooManySteps { .. } => None,
        }
    }
}

/// What a pin of no buffer is in its column.
const FREE: i64 = -1;

impl Columns<'_> {
    /// Checks the columns and makes the instance. O(n log n) for n buffers.
    ///
    /// # Errors
    ///
    /// The first rule that is broken, with the buffer that breaks it.
    pub fn build_instance(&self) -> Result<Instance, ColumnError> {
        self.check_lengths()?;
        self.check_lives()?;
        let steps = Steps::collect_steps(self)?;
        let ids = (0..self.lower.len()).map(BufferId::from_index);
        let buffers: Result<Vec<Buffer>, _> = ids.map(|id| self.build_buffer(id, &steps)).collect();
        Ok(Instance::from_buffers(buffers?)?)
    }

    fn check_lengths(&self) -> Result<(), ColumnError> {
        let expected = self.lower.len();
        let of = |column: Option<&[u64]>| column.map_or(expected, <[u64]>::len);
        let pins = self.pin.map_or(expected, <[i64]>::len);
        let lengths = [
            ("upper", self.upper.len()),
            ("size", self.size.len()),
            ("align", of(self.align)),
            ("pin", pins),
        ];
        if let Some((column, count)) = lengths.into_iter().find(|&(_, count)| count != expected) {
            return Err(ColumnError::Length { column, count, expected });
        }
        if u32::try_from(expected).is_err() {
            return Err(InstanceError::TooMany { count: expected }.into());
        }
        Ok(())
    }

    fn check_lives(&self) -> Result<(), ColumnError> {
        let lives = self.lower.iter().zip(self.upper);
        match lives.enumerate().find(|(_, (lower, upper))| lower >= upper) {
            Some((row, (&lower, &upper))) => {
                Err(ColumnError::Empty { buffer: BufferId::from_index(row), lower, upper })
            }
            None => Ok(()),
        }
    }

    fn build_buffer(&self, id: BufferId, steps: &Steps) -> Result<Buffer, ColumnError> {
        let row = id.index();
        let live = steps.live_range(self.lower[row], self.upper[row]);
        let mut buffer = Buffer::new(Bytes::new(self.size[row]), live);
        if let Some(align) = self.align {
            buffer.align = Alignment::new(align[row]).ok_or(ColumnError::ZeroAlignment { buffer: id })?;
        }
        match self.pin.map_or(FREE, |pins| pins[row]) {
            FREE => {}
            pin => {
                let offset = u64::try_from(pin).map_err(|_| ColumnError::NegativePin { buffer: id, pin })?;
                buffer.pin = Some(Offset::new(offset));
            }
        }
        Ok(buffer)
    }
}

/// How steps of 64 bits become steps of 32.
enum Steps {
    /// They fit.
    AsTheyAre,
    /// All there are, ascending; a step is replaced by its rank.
    Ranked(Vec<i64>),
}

impl Steps {
    fn collect_steps(columns: &Columns<'_>) -> Result<Self, ColumnError> {
        let fits = |step: &i64| u32::try_from(*step).is_ok();
        // Lower steps are below upper ones.
        if columns.lower.iter().all(fits) && columns.upper.iter().all(fits) {
            return Ok(Self::AsTheyAre);
        }
        let mut all: Vec<i64> = columns.lower.iter().chain(columns.upper).copied().collect();
        all.sort_unstable();
        all.dedup();
        match u32::try_from(all.len().saturating_sub(1)) {
            Ok(_) => Ok(Self::Ranked(all)),
            Err(_) => Err(ColumnError::TooManySteps { count: all.len() }),
        }
    }

    fn live_range(&self, lower: i64, upper: i64) -> LiveRange {
        let step = |raw: i64| match self {
            Self::AsTheyAre => u32::try_from(raw),
            Self::Ranked(all) => u32::try_from(all.partition_point(|&known| known < raw)),
        };
        let range = step(lower).and_then(|lower| Ok((lower, step(upper)?)));
        let (lower, upper) = range.expect("all steps, or all ranks, were seen to fit");
        LiveRange::new(lower, upper).expect("no life is empty, and ranks keep the order")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns<'c>(lower: &'c [i64], upper: &'c [i64], size: &'c [u64]) -> Columns<'c> {
        Columns { lower, upper, size, ..Columns::default() }
    }

    fn lives(instance: &Instance) -> Vec<(u32, u32)> {
        instance.buffers().iter().map(|buffer| buffer.live.into()).collect()
    }

    #[test]
    fn columns_become_buffers() {
        let columns = Columns {
            align: Some(&[1, 48]),
            pin: Some(&[-1, 96]),
            ..columns(&[3, 0], &[0xffff_ffff, 4], &[10, 20])
        };
        let instance = columns.build_instance().expect("valid");
        let live = |start, end| LiveRange::new(start, end).expect("not empty");
        let align = Alignment::new(48).expect("positive");
        let second = Buffer::new(Bytes::new(20), live(0, 4)).with_align(align).with_pin(Offset::new(96));
        assert_eq!(instance.buffers(), [Buffer::new(Bytes::new(10), live(3, u32::MAX)), second]);
    }

    #[test]
    fn steps_that_do_not_fit_are_ranked() {
        let far = i64::from(u32::MAX) + 1;
        for (lower, upper, expected) in [
            ([0, 7], [7, far], [(0, 1), (1, 2)]),
            ([-5, i64::MIN], [9, i64::MAX], [(1, 2), (0, 3)]),
            ([0, 7], [7, far - 1], [(0, 7), (7, u32::MAX)]),
        ] {
            let instance = columns(&lower, &upper, &[1, 1]).build_instance().expect("valid");
            assert_eq!(lives(&instance), expected, "{lower:?} {upper:?}");
        }
    }

    #[test]
    fn no_columns_are_no_buffers() {
        assert!(Columns::default().build_instance().expect("valid").is_empty());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let fine = columns(&[0, 1], &[2, 3], &[4, 4]);
        let faults = [
            (columns(&[0, 1], &[2], &[4, 4]), "`upper` has 1 entries, but `lower` has 2", None),
            (Columns { pin: Some(&[]), ..fine }, "`pin` has 0 entries, but `lower` has 2", None),
            (
                columns(&[0, 3], &[2, 3], &[4, 4]),
                "buffer 1: live at steps [3, 3), so never: lower must be below upper",
                Some(1),
            ),
            (
                Columns { align: Some(&[1, 0]), ..fine },
                "buffer 1: its alignment is 0; any other number of bytes will do",
                Some(1),
            ),
            (
                Columns { pin: Some(&[-2, 0]), ..fine },
                "buffer 0: pinned at offset -2; only -1 (no pin) may be negative",
                Some(0),
            ),
            (
                columns(&[0, 1], &[2, 3], &[0, 4]),
                "buffer 0: its size is 0; a buffer has at least one byte",
                Some(0),
            ),
            (
                Columns { pin: Some(&[0, 2]), ..fine },
                "buffers 0 and 1: both are pinned, and they overlap at step 1",
                Some(1),
            ),
        ];
        for (columns, message, buffer) in faults {
            let error = columns.build_instance().expect_err(message);
            assert_eq!(
                (error.to_string().as_str(), error.faulty_buffer()),
                (message, buffer.map(BufferId::new))
            );
        }
    }
}
