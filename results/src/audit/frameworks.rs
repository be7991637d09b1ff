//! Checks that framework rows agree: neither an allocator nor a plan may change what a program computes.

use super::checks::disagree;
use super::finding::Finding;
use crate::rows::{FrameworkRow, group_by};

/// Nets whose output depends on the allocator, or on planlab's choice of what a step saves.
#[must_use]
pub fn audit_frameworks(rows: &[FrameworkRow]) -> Vec<Finding> {
    let asked = |row: &&FrameworkRow| {
        // Losses of training depend on the number of propagations.
        let propagations = u64::from(row.warm_up) + row.wall_ns.len() as u64;
        let subject =
            format!("{} {} {} b{}, {} threads", row.framework, row.net, row.mode, row.batch, row.threads);
        (subject, row.provenance.host.clone(), propagations, row.budget.is_some())
    };
    let complete = rows.iter().filter(|row| row.digest.is_some() && row.must_agree());
    let mut findings = Vec::new();
    for ((subject, ..), rows) in group_by(complete, asked) {
        let values = group_by(rows, |row| row.digest.clone().unwrap_or_default());
        let values = values.into_iter().map(|(digest, rows)| {
            let mut who: Vec<&str> = rows.iter().map(|row| row.contender.as_str()).collect();
            who.dedup();
            format!("{} of {}", digest.get(..12).unwrap_or(&digest), who.join(" and "))
        });
        disagree(&subject, "what the net puts out", values, &mut findings);
    }
    findings
}
