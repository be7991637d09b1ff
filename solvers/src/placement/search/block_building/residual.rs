//! Places the blocks that are left, as low as restarts of the exact search get with limited work.
//!
//! A few blocks that do not fit the capacity often fit a little above it. As in
//! [exact search](crate::placement::exact), every other restart tries the least height, and the others spread evenly
//! between that and the height to beat.

use planlab_dsa::Halt;

use crate::feasibility::{Restarts, Turn, Verdict, van_der_corput};
use crate::placement::search::window::{Piece, window_problem};
use crate::tick::Tick;

/// Restarts at the least height before any above it.
const FIRST_AT_LEAST: u64 = 3;

/// Offsets of all pieces, with a height of at least `least` and below `beat`, as low as they are found in about `work`
/// units of the exact search's work. `None` if none were found.
pub(super) fn lowest_residual(
    pieces: &[Piece],
    (least, beat): (u64, u64),
    (work, seed): (u64, u64),
    tick: &mut Tick<'_>,
) -> Result<Option<Vec<u64>>, Halt> {
    let Some(problem) = window_problem(pieces, &[]) else { return Ok(None) };
    let mut restarts = Restarts::new(&problem, seed);
    let (mut least, mut beat, mut best) = (least, beat, None);
    let (mut done, mut low, mut high) = (0, 0, 0);
    while done < work && least < beat {
        let is_least = low < FIRST_AT_LEAST || low <= high;
        let (ceiling, round) =
            if is_least { (least, low) } else { (van_der_corput(least, beat - 1, high + 1), high) };
        *(if is_least { &mut low } else { &mut high }) += 1;
        let verdict = restarts.run_restart(ceiling, Turn::from_round(round), u64::MAX, &mut |units| {
            done += units;
            tick(units)
        })?;
        match verdict {
            Verdict::Unknown => {}
            Verdict::Infeasible => least = ceiling + 1,
            Verdict::Feasible(offsets) => {
                let ends = offsets.iter().zip(pieces).map(|(offset, piece)| offset + piece.size);
                beat = ends.max().unwrap_or(0);
                best = Some(offsets);
            }
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(rows: &[(u32, u32, u64)]) -> Vec<Piece> {
        rows.iter().map(|&(start, end, size)| Piece { start, end, size, align: 1 }).collect()
    }

    #[test]
    fn it_goes_as_low_as_there_is_a_plan() {
        // A load of 4 and an optimum of 5.
        let pieces =
            pieces(&[(0, 3, 2), (2, 6, 1), (3, 6, 1), (7, 8, 1), (4, 7, 2), (6, 8, 2), (2, 4, 1), (0, 2, 2)]);
        let below =
            |beat| lowest_residual(&pieces, (4, beat), (1 << 20, 1), &mut |_| Ok(())).expect("no limit");
        assert_eq!(below(5), None);
        for beat in [6, 40] {
            let found = below(beat).expect("a plan");
            let height = found.iter().zip(&pieces).map(|(offset, piece)| offset + piece.size).max();
            assert_eq!(height, Some(5));
        }
    }
}
