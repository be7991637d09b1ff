//! Plays contenders in turns on one device, each turn from an empty memory to its figures.
//!
//! ```text
//!   turn:  check (not timed)  ->  new contender  ->  warm-up  ->  timed propagations  ->  sums checked, all given back
//!   round: one turn of each contender, in an order that is drawn again
//! ```
//!
//! *Check.* A separate instance of the contender plays each propagation three times. The device verifies every
//! buffer's pattern before the buffer is freed. These propagations also show the most bytes in use, and how far the
//! device's free memory fell.
//!
//! *Warm-up.* At least a given number of propagations, and until the reserved bytes were the same a given number of
//! times in a row, up to a limit. If none is wanted, the contender's first propagations are timed, too.
//!
//! *Timed.* One propagation is one sample. The host's clock is read when everything is enqueued, and after the one
//! synchronisation at the end; the device's time lies between two events. Without kernels, several short propagations
//! make one sample, and only contenders whose calls are the driver's own are waited for. The sums of the kernels over
//! all propagations must match what was written.
//!
//! *Given back.* Calls that give back memory or graphs return no result; their failures are counted. A turn with such
//! a failure is no success, even if it comes at the very end.
//!
//! *Time.* Each phase has a time limit; the rows of slow contenders have fewer samples.
//!
//! *Calls.* Without kernels, the same number of propagations follows, in which each run of requests or of frees is
//! timed by itself. That time includes reading a clock twice. Runs of fewer than 4 calls are left out if there are
//! longer ones.

use planlab_dsa::CancelToken;
use planlab_dsa::performance::{End, Performance};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::contenders::Contender;
use super::player::Score;
use super::tally::Tally;
use super::turn::{Protocol, Turn};
use crate::cuda::device::Device;

/// An event of a competition, passed to an observer.
#[derive(Clone, Debug)]
pub enum News {
    /// The contender with this index begins a turn.
    Begins(usize),
    /// The contender with this index has ended the turn, with its results so far.
    Ended(usize, Box<Performance>),
    /// The turn has broken the device, which answers no further call of this process: there are no more turns.
    Broken,
}

/// Plays the propagations in order, again and again, on each contender, and passes `tell` the news of each turn. Once
/// `cancel` is set, no further turn begins.
///
/// # Panics
///
/// If there are no propagations.
pub fn compete_on_device(
    device: &Device,
    scores: &[Score],
    contenders: &[Contender<'_>],
    protocol: &Protocol,
    cancel: &CancelToken,
    tell: &mut dyn FnMut(News),
) {
    assert!(!scores.is_empty(), "something to play");
    let mut tallies: Vec<Tally> = contenders.iter().map(|_| Tally::new()).collect();
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(protocol.seed);
    for round in 0..protocol.rounds {
        order.shuffle(&mut rng);
        for &index in &order {
            if cancel.is_cancelled() {
                return;
            }
            let tally = &mut tallies[index];
            if tally.performance.status == End::Complete {
                tell(News::Begins(index));
                let strategy = &contenders[index].strategy;
                let turn = Turn { driver: device.driver(), scores, strategy, protocol };
                if let Err(broken) = turn.take_turn(round == 0, tally) {
                    (tally.performance.status, tally.performance.reason) = broken;
                }
                tell(News::Ended(index, Box::new(tally.performance())));
                let is_suspect = matches!(tally.performance.status, End::Failed | End::Corrupt);
                if is_suspect && device.check_alive().is_err() {
                    return tell(News::Broken);
                }
            }
        }
    }
}
