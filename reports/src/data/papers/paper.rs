//! Figures of the profile-guided paper on the memory of single nets, for comparison with ours.

use std::sync::LazyLock;

use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published {
    /// Our workload with the same net and batch, or part of its key if the figure covers several.
    pub(crate) workload: String,
    pub(crate) of: Quantity,
    pub(crate) published: String,
    /// The lowest value that rounds to it, in bytes or as a share.
    pub(crate) low: f64,
    /// The highest such value.
    pub(crate) high: f64,
}

/// The quantity of a figure, parameters included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Quantity {
    /// Bytes without any reuse.
    NetworkWise,
    /// Bytes that the pool holds.
    Pool,
    /// The share of the pool's bytes that the plan saves.
    Reduction,
    /// The greatest reduction over several workloads.
    GreatestReduction,
    /// The pool's bytes divided by those for `AlexNet` in the same mode with the same batch.
    PoolOverAlexnet,
    /// The speed of a propagation with kernels under the plan, divided by that with the pool.
    SpeedUp,
}

impl Quantity {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::NetworkWise => "network-wise",
            Self::Pool => "pool",
            Self::Reduction => "reduction by the plan",
            Self::GreatestReduction => "greatest reduction by the plan",
            Self::PoolOverAlexnet => "pool over AlexNet's",
            Self::SpeedUp => "speed-up by the plan",
        }
    }
}

impl Published {
    pub(crate) fn relative_position(&self, ours: f64) -> &'static str {
        match ours {
            ours if ours < self.low => "below",
            ours if ours > self.high => "above",
            _ => "within its rounding",
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    figure: Vec<Published>,
}

static FILE: LazyLock<File> = LazyLock::new(|| {
    toml::from_str(include_str!("../../../paper.toml")).expect("the tests read the embedded file")
});

/// The figures, in the file's order.
pub(crate) fn published_figures() -> &'static [Published] {
    &FILE.figure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_lies_within_its_rounding() {
        assert!(published_figures().len() >= 5);
        for figure in published_figures() {
            let number: f64 =
                figure.published.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
            let unit = match figure.of {
                Quantity::Reduction | Quantity::GreatestReduction => 1e-2,
                Quantity::NetworkWise | Quantity::Pool => 1e9,
                Quantity::PoolOverAlexnet | Quantity::SpeedUp => 1.0,
            };
            assert_eq!(figure.relative_position(number * unit), "within its rounding", "{figure:?}");
            assert_eq!(figure.relative_position(figure.low * 0.999), "below");
            assert_eq!(figure.relative_position(figure.high * 1.001), "above");
        }
    }
}
