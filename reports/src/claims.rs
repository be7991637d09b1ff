//! What others published, to be set beside our figures.
//!
//! The claims stand in `claims.toml`; docs/claims.md says in words where figures differ and why.

use std::sync::OnceLock;

use planlab_results::Record;
use serde::Deserialize;

/// A published figure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    /// A short name, the same for good.
    pub(crate) id: String,
    /// What is claimed, a sentence.
    pub(crate) claim: String,
    /// Who says so, and where.
    pub(crate) source: String,
    /// Keys of workloads; a `*` at the end stands for any ending.
    pub(crate) workloads: Vec<String>,
    /// Keys of planners, likewise.
    pub(crate) planners: Vec<String>,
    /// Which of our figures is meant.
    pub(crate) figure: Kind,
    /// The capacity that was asked for, bytes; none: the height was minimised.
    #[serde(default)]
    pub(crate) capacity: Option<u64>,
    /// The published figure as it is written.
    pub(crate) published: String,
    /// The least that was published, in the figure's unit.
    #[serde(default)]
    pub(crate) low: Option<f64>,
    /// The most that was published.
    #[serde(default)]
    pub(crate) high: Option<f64>,
    /// The command that measures it.
    pub(crate) command: String,
}

/// A figure of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// Bytes.
    Height,
    /// Height over load.
    HeightOverLoad,
    /// Seconds to the answer.
    Seconds,
    /// 1 where the plan is proved optimal, else 0.
    Proved,
    /// How much less than with the framework's own pool, parameters included in both: a share.
    TotalReduction,
}

/// The claims, in the file's order.
///
/// # Panics
///
/// If the embedded file is damaged, which the tests rule out.
pub(crate) fn claims() -> &'static [Claim] {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        claim: Vec<Claim>,
    }
    static CLAIMS: OnceLock<Vec<Claim>> = OnceLock::new();
    CLAIMS.get_or_init(|| {
        let file: File =
            toml::from_str(include_str!("../claims.toml")).expect("the embedded claims are valid");
        file.claim
    })
}

impl Claim {
    /// Whether a row is of the claim's planners and workloads, and was asked for the same.
    pub(crate) fn is_about(&self, row: &Record) -> bool {
        let any = |patterns: &[String], key: &str| patterns.iter().any(|pattern| fits(pattern, key));
        row.target_bytes == self.capacity
            && any(&self.planners, &row.planner)
            && any(&self.workloads, &row.workload)
    }
}

fn fits(pattern: &str, key: &str) -> bool {
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
    fn the_claims_are_read_and_told_apart() {
        let claims = claims();
        assert!(claims.len() >= 10, "{}", claims.len());
        let ids: BTreeSet<&str> = claims.iter().map(|claim| claim.id.as_str()).collect();
        assert_eq!(ids.len(), claims.len());
        for claim in claims {
            assert!(claim.source.len() > 10 && claim.command.starts_with(['p', 'j']), "{}", claim.id);
            assert!(claim.low <= claim.high, "{}: from {:?} to {:?}", claim.id, claim.low, claim.high);
        }
    }

    #[test]
    fn a_star_stands_for_any_ending() {
        assert!(fits("minimalloc/*", "minimalloc/a") && fits("best-fit", "best-fit"));
        assert!(!fits("minimalloc/*", "idealloc/a") && !fits("best-fit", "best-fit/reference"));
    }

    #[test]
    fn every_claim_is_explained_in_words() {
        let page = include_str!("../../docs/claims.md");
        for claim in claims() {
            assert!(page.contains(&format!("`{}`", claim.id)), "docs/claims.md has no `{}`", claim.id);
        }
    }
}
