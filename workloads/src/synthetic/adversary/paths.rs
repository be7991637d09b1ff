//! Adversaries that consist of paths alone: their outer lives come first.
//!
//! Of first fit by size times width, largest first: the outer lives are long and thin and have the largest areas. Ordered
//! by size, the inner ones would come first, and the plan would be optimal.
//!
//! Of first fit by width, longest first: the outer lives are the longest. Ordered by area, an inner one would come first,
//! and the plan would be optimal.
//!
//! Of the paper's best fit \[1\], which fills the lowest line with the longest-lived buffer that fits: the outer lives are
//! the longest, so both go to the bottom. The space left between them is one step too narrow for either inner life, so the
//! line is lifted. The inner two end up above each other: three sizes high instead of two.
//!
//! # References
//!
//! 1. T. Sekiyama, T. Imamichi, H. Imai, R. Raymond, "Profile-guided memory optimization for deep neural
//!    networks", 2018, arXiv:1804.10001: the heuristic.

use super::Path;
use crate::synthetic::family::Family;
use crate::synthetic::parameters::{N, SEED};

macro_rules! families {
    ($($(#[$about:meta])* $family:ident = $name:literal: $summary:literal, $path:expr;)*) => {$(
        $(#[$about])*
        pub const $family: Family = Family {
            name: $name,
            summary: $summary,
            parameters: &[N, SEED],
            make: |values| $path.make_instance(values, $name),
        };
    )*};
}

families! {
    /// The family `adversary/first-fit-area`.
    FIRST_FIT_AREA = "adversary/first-fit-area":
        "paths whose outer lives have the largest areas: 9/7 of the optimum for first-fit/area",
        Path { lives: [(0, 8), (7, 10), (9, 12), (11, 19)], sizes: [2, 4, 3, 2] };
    /// The family `adversary/first-fit-width`.
    FIRST_FIT_WIDTH = "adversary/first-fit-width":
        "paths whose outer lives are longest: 7/5 of the optimum for first-fit/width",
        Path { lives: [(0, 10), (9, 17), (16, 19), (18, 28)], sizes: [2, 3, 2, 2] };
    /// The family `adversary/best-fit`.
    BEST_FIT = "adversary/best-fit":
        "paths whose outer lives are longest: 3/2 of the optimum for best-fit",
        Path { lives: [(0, 10), (9, 13), (12, 15), (14, 24)], sizes: [1, 1, 1, 1] };
}
