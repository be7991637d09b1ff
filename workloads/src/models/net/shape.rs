//! Shapes of values, and shape errors.

/// The extents of a value, batch first: `[N, C, H, W]`, `[N, C, D, H, W]`, `[N, tokens, width]`, `[N, C]`, `[N]`. A
/// scalar has no extents.
pub type Shape = Vec<u64>;

/// The most elements of a value: its size in bytes, rounded up, still fits 64 bits.
const MOST_ELEMENTS: u64 = 1 << 56;

/// The number of elements of a shape.
#[must_use]
pub fn elements(shape: &[u64]) -> u64 {
    shape.iter().product()
}

pub(super) fn is_countable(shape: &[u64]) -> bool {
    let product = shape.iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent));
    product.is_some_and(|product| (1..=MOST_ELEMENTS).contains(&product))
}

/// Why a net does not accept an input.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// A window, dilation included, is larger than the padded input. Calls count from 1.
    #[error(
        "call {call} ({function}): a window of {window:?} does not fit into {extents:?}; the input is too small"
    )]
    TooSmall { function: &'static str, call: usize, extents: Shape, window: Shape },
    /// A value or parameter has no elements, or more than 2^56.
    #[error("call {call}: a value with the extents {shape:?} has no elements, or more than 2^56")]
    Uncountable { call: usize, shape: Shape },
    /// The shapes of the inputs do not match.
    #[error("call {call} ({function}): inputs with the extents {shapes:?} do not fit together")]
    Mismatch { function: &'static str, call: usize, shapes: Vec<Shape> },
}
