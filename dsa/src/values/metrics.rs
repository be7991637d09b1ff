//! Compares a height with its bound and its load.

use crate::Bytes;

/// `(height - bound) / bound` against a proven bound; 0 means optimal. A bound of 0 gives 0.
///
/// ```
/// use planlab_dsa::{gap, Bytes};
/// assert_eq!(gap(Bytes::new(110), Bytes::new(100)), 0.1);
/// assert_eq!(gap(Bytes::ZERO, Bytes::ZERO), 0.0);
/// ```
#[must_use]
pub fn gap(height: Bytes, bound: Bytes) -> f64 {
    relative_excess(height, bound)
}

/// `(height - load) / load`; never negative for a plan of the instance that has this load. A load of 0 gives 0.
///
/// ```
/// use planlab_dsa::{fragmentation, Bytes};
/// assert_eq!(fragmentation(Bytes::new(150), Bytes::new(100)), 0.5);
/// ```
#[must_use]
pub fn fragmentation(height: Bytes, load: Bytes) -> f64 {
    relative_excess(height, load)
}

#[expect(clippy::cast_precision_loss, reason = "a ratio of byte counts needs 52 bits at most")]
fn relative_excess(height: Bytes, base: Bytes) -> f64 {
    if base == Bytes::ZERO {
        return 0.0;
    }
    (i128::from(height.get()) - i128::from(base.get())) as f64 / base.get() as f64
}
