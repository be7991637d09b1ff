//! Published figures of others, for comparison with ours.
//!
//! The claims are in `claims.toml`; docs/claims.md explains where figures differ and why.

use std::sync::LazyLock;

use planlab_results::queries::CellRow;
use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    /// A short permanent name.
    pub(crate) id: String,
    pub(crate) claim: String,
    /// The author, and the place of publication.
    pub(crate) source: String,
    /// Whether the source contains the figure, or the source's program produced it.
    pub(crate) basis: Basis,
    /// For a measured figure: the commit and options of our recorded run, or a statement that it is not reproduced.
    #[serde(default)]
    pub(crate) program: Option<String>,
    /// Keys of workloads; a `*` at the end stands for any ending.
    pub(crate) workloads: Vec<String>,
    /// Keys of planners; a `*` at the end stands for any ending.
    pub(crate) planners: Vec<String>,
    /// Our corresponding figure.
    pub(crate) figure: Kind,
    /// The given capacity in bytes; `None` if the height was minimised.
    #[serde(default)]
    pub(crate) capacity: Option<u64>,
    pub(crate) published: String,
    /// The lowest value that rounds to the published one, in the figure's unit.
    #[serde(default)]
    pub(crate) low: Option<f64>,
    /// The highest such value.
    #[serde(default)]
    pub(crate) high: Option<f64>,
    /// The command that measures our figure.
    pub(crate) command: String,
}

/// The origin of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Basis {
    /// The source contains it.
    Published,
    /// A run of the source's program produced it.
    Measured,
}

impl Basis {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Measured => "measured with the public program",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// Bytes.
    Height,
    HeightOverLoad,
    /// Seconds to the answer.
    Seconds,
    /// 1 if the plan is proved optimal, else 0.
    Proved,
    /// The reduction against the framework's own pool, as a share; both include parameters.
    TotalReduction,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    claim: Vec<Claim>,
}

static FILE: LazyLock<File> = LazyLock::new(|| {
    toml::from_str(include_str!("../../../claims.toml")).expect("the tests read the embedded file")
});

/// The claims, in the file's order.
pub(crate) fn claims() -> &'static [Claim] {
    &FILE.claim
}

impl Claim {
    pub(crate) fn basis_in_words(&self) -> String {
        match &self.program {
            Some(program) => format!("{}: {program}", self.basis.name()),
            None => self.basis.name().to_owned(),
        }
    }

    /// Whether a row has the claim's planners, workloads and capacity.
    pub(crate) fn is_about(&self, row: &CellRow) -> bool {
        let any = |patterns: &[String], key: &str| patterns.iter().any(|pattern| fits_pattern(pattern, key));
        row.target_bytes == self.capacity
            && any(&self.planners, &row.planner)
            && any(&self.workloads, &row.workload)
    }
}

fn fits_pattern(pattern: &str, key: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => key.starts_with(start),
        None => key == pattern,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_claims_are_told_apart_and_explained_and_say_how_they_were_measured() {
        let page = include_str!("../../../../docs/claims.md");
        assert!(claims().len() >= 10, "{}", claims().len());
        let mut ids = BTreeSet::new();
        for Claim { id, source, basis, program, planners, low, high, command, .. } in claims() {
            assert!(ids.insert(id), "{id}: twice");
            assert!(source.len() > 10 && command.starts_with(['p', 'j']), "{id}");
            assert!(low <= high, "{id}: from {low:?} to {high:?}");
            assert_eq!(program.is_some(), *basis == Basis::Measured, "{id}");
            let is_said = |program: &String| {
                let is_run = program.starts_with("run here as external/") && program.contains("commit");
                is_run || program == "not reproduced here"
            };
            assert!(program.as_ref().is_none_or(is_said), "{id}: {program:?}");
            // Ours and theirs are claims of their own.
            let theirs = planners.iter().filter(|key| key.starts_with("external/")).count();
            assert!(theirs == 0 || theirs == planners.len(), "{id}: {planners:?}");
            let basis = if *basis == Basis::Measured { "measured" } else { "published" };
            assert!(page.contains(&format!("| `{id}` | {basis} |")), "docs/claims.md has no `{id}`, {basis}");
        }
    }

    #[test]
    fn ranges_are_as_wide_as_the_rounding_of_what_was_published() {
        let rounded = [("tvm-hill-climb", 1.17, 1.28, 0.005), ("size-orders", 1.28, 1.41, 0.005)]
            .into_iter()
            .chain([("idealloc-a-to-k", 1.26, 1.41, 0.005), ("minimalloc-times", 0.5, 5.2, 0.05)])
            .chain([("reduction-googlenet-infer", 0.126, 0.126, 0.0005)]);
        for (id, least, most, half) in rounded {
            let claim = claims().iter().find(|claim| claim.id == id).expect("a claim");
            let is_near = |range: Option<f64>, edge: f64| range.is_some_and(|at| (at - edge).abs() < 1e-9);
            assert!(is_near(claim.low, least - half) && is_near(claim.high, most + half), "{claim:?}");
        }
    }

    #[test]
    fn a_star_stands_for_any_ending() {
        assert!(fits_pattern("minimalloc/*", "minimalloc/a") && fits_pattern("best-fit", "best-fit"));
        assert!(
            !fits_pattern("minimalloc/*", "idealloc/a") && !fits_pattern("best-fit", "best-fit/reference")
        );
    }
}
