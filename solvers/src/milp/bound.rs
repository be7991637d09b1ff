//! Converts a solver's dual bound into a number of units that is safe against its tolerances.
//!
//! The true optimum is a whole number of units, so a bound of 289.2 means 290. But solvers calculate with tolerances: a
//! binary may be off by 1e-6 and still count as whole. Times a big M of up to W, that lets a row give way by W /
//! 1,000,000 units; rows themselves may be off by as much again. Therefore bounds are lowered by `1e-3 + 2e-6 W` before
//! they are rounded up. Up to W = 400,000 units that is less than one, and a solver that has closed its gap proves the
//! optimum. Above that, bounds lie a few units below it, and no proof relies on more than the solver can know.

/// The part of the solvers' tolerances (1e-6 each for whole numbers and for rows) that W multiplies.
const RELATIVE: f64 = 2e-6;
/// The rest of them, for small W.
const ABSOLUTE: f64 = 1e-3;

/// The least whole number of units that no plan is below, given a dual bound in units and the height W of the model in
/// units. There is a plan at W, so a bound above W only shows that the solver is confused: 0.
pub(super) fn whole_units(dual: f64, ceiling: u64) -> u64 {
    let tolerance = ABSOLUTE + RELATIVE * as_float(ceiling);
    if dual.is_nan() || dual > as_float(ceiling) + tolerance {
        return 0;
    }
    as_whole((dual - tolerance).ceil())
}

/// Units as a coefficient.
#[expect(clippy::cast_precision_loss, reason = "a model has few enough units")]
pub(super) const fn as_float(units: u64) -> f64 {
    units as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, below 2^53")]
pub(super) fn as_whole(units: f64) -> u64 {
    units.max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_rounded_up_after_the_tolerance_is_taken_off() {
        for (dual, ceiling, units) in [
            (289.2, 300, 290),
            (289.999_999, 300, 290),
            (290.000_9, 300, 290),
            (290.01, 300, 291),
            (0.0, 300, 0),
            (-5.0, 300, 0),
            (f64::NAN, 300, 0),
            (300.0, 300, 300),
            (300.1, 300, 0),
            (1e50, 300, 0),
            (f64::INFINITY, 300, 0),
            (2_000_000.0, 2_000_000, 1_999_996),
        ] {
            assert_eq!(whole_units(dual, ceiling), units, "{dual} of {ceiling}");
        }
    }
}
