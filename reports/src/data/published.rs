//! What the paper of `PoocH` publishes on schedules, to be set beside ours.

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use serde::Deserialize;

use super::schedules::{Case, Run};

/// The embedded file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published {
    machine: Vec<Machine>,
    figure: Vec<Figure>,
    counts: Vec<Counts>,
    claim: Vec<Claim>,
}

/// A machine of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Machine {
    key: String,
    /// The least and the greatest rate of copies that ours may have, bytes per second.
    link: [f64; 2],
    /// The same of the capacity, bytes.
    capacity: [u64; 2],
}

/// A figure of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figure {
    pub(crate) number: u32,
    nets: Vec<String>,
    machine: String,
    /// What is drawn in it.
    pub(crate) shows: String,
}

/// A line of table 3.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counts {
    /// A short name, the same for good.
    pub(crate) id: String,
    net: String,
    pub(crate) batch: u64,
    machine: String,
    /// The method as the paper calls it.
    pub(crate) method: String,
    /// Ours that are the same.
    pub(crate) schedulers: Vec<String>,
    /// Kept, swapped, recomputed.
    pub(crate) counts: [u64; 3],
}

/// A number in the text, or an outcome.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    /// A short name, the same for good.
    pub(crate) id: String,
    pub(crate) figure: u32,
    net: String,
    machine: String,
    pub(crate) claim: String,
    pub(crate) measure: Measure,
    pub(crate) schedulers: Vec<String>,
    /// The scheduler below the line of a ratio.
    over: Option<String>,
    batches: [u64; 2],
    pub(crate) published: String,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

/// What a claim is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Measure {
    /// Images per second.
    Speed,
    /// The share of the speed that is lost.
    Loss,
    /// Of two speeds.
    Ratio,
    /// There is a schedule.
    Runs,
    /// There is none.
    Fails,
}

/// What the paper publishes.
///
/// # Panics
///
/// If the embedded file is damaged, which the tests rule out.
pub(crate) fn published() -> &'static Published {
    static PUBLISHED: OnceLock<Published> = OnceLock::new();
    PUBLISHED.get_or_init(|| {
        toml::from_str(include_str!("../../schedules.toml")).expect("the embedded file is valid")
    })
}

impl Published {
    fn is_of(&self, case: &Case, nets: &[String], machine: &str) -> bool {
        let within = |machine: &&Machine| {
            let link = machine.link[0]..=machine.link[1];
            let capacity = machine.capacity[0]..=machine.capacity[1];
            link.contains(&case.link.0) && link.contains(&case.link.1) && capacity.contains(&case.capacity)
        };
        let machines = self.machine.iter().filter(|known| known.key == machine);
        case.machine == machine && nets.contains(&case.net) && machines.clone().any(|known| within(&known))
    }

    /// The figures of a net on a machine as ours.
    pub(crate) fn figures<'p>(&'p self, case: &Case) -> impl Iterator<Item = &'p Figure> {
        self.figure.iter().filter(|figure| self.is_of(case, &figure.nets, &figure.machine))
    }

    pub(crate) fn counts<'p>(&'p self, case: &Case) -> impl Iterator<Item = &'p Counts> {
        self.counts.iter().filter(|line| self.is_of(case, std::slice::from_ref(&line.net), &line.machine))
    }

    pub(crate) fn claims<'p>(&'p self, case: &Case) -> impl Iterator<Item = &'p Claim> {
        self.claim.iter().filter(|claim| self.is_of(case, std::slice::from_ref(&claim.net), &claim.machine))
    }
}

impl Claim {
    fn batches(&self) -> RangeInclusive<u64> {
        self.batches[0]..=self.batches[1]
    }

    /// The runs that a claim speaks of.
    pub(crate) fn runs<'c>(&self, case: &'c Case, scheduler: &str) -> Vec<&'c Run> {
        let is_meant = |run: &&Run| run.series.label == scheduler && self.batches().contains(&run.row.batch);
        case.runs.iter().filter(is_meant).collect()
    }

    /// The figure of a run; `None` where it has none.
    pub(crate) fn value(&self, case: &Case, run: &Run) -> Option<f64> {
        match self.measure {
            Measure::Speed => run.speed(),
            Measure::Loss => run.loss(),
            Measure::Ratio => {
                let over = case.run(self.over.as_deref()?, run.row.batch)?;
                Some(run.speed()? / over.speed()?)
            }
            Measure::Runs | Measure::Fails => None,
        }
    }

    /// Where values from `least` to `most` lie against what is published.
    pub(crate) fn lies(&self, (least, most): (f64, f64)) -> &'static str {
        let below = self.low.is_some_and(|low| least < low);
        let above = self.high.is_some_and(|high| most > high);
        match (below, above) {
            (false, false) => "within",
            (true, false) if self.low.is_some_and(|low| most < low) => "below",
            (true, false) => "within and below",
            (false, true) if self.high.is_some_and(|high| least > high) => "above",
            (false, true) => "within and above",
            (true, true) => "within, below and above",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_is_whole() {
        let published = published();
        assert_eq!(
            published.figure.iter().map(|figure| figure.number).collect::<Vec<_>>(),
            [15, 16, 17, 18, 19, 20, 21, 22]
        );
        assert!(published.counts.iter().all(|line| line.counts.iter().sum::<u64>() == 105));
        let known = |key: &String| published.machine.iter().any(|machine| machine.key == *key);
        assert!(published.figure.iter().all(|figure| known(&figure.machine)));
        for claim in &published.claim {
            let is_number = !matches!(claim.measure, Measure::Runs | Measure::Fails);
            assert_eq!(claim.low.or(claim.high).is_some(), is_number, "{claim:?}");
            assert_eq!(claim.over.is_some(), claim.measure == Measure::Ratio, "{claim:?}");
            assert!(claim.batches[0] <= claim.batches[1] && known(&claim.machine), "{claim:?}");
            let figure = published.figure.iter().find(|figure| figure.number == claim.figure);
            let figure = figure.expect("a figure");
            assert!(figure.nets.contains(&claim.net) && figure.machine == claim.machine, "{claim:?}");
        }
    }

    #[test]
    fn every_figure_is_explained_in_words() {
        let page = include_str!("../../../docs/claims.md");
        let (counts, claims) = (published().counts.iter(), published().claim.iter());
        for id in counts.map(|line| &line.id).chain(claims.map(|claim| &claim.id)) {
            assert_eq!(page.matches(&format!("| `{id}` | published |")).count(), 1, "docs/claims.md: `{id}`");
        }
    }

    #[test]
    fn a_range_lies_against_both_ends() {
        let claim = published().claim.iter().find(|claim| claim.high == Some(0.385)).expect("13 to 38 %");
        let lies = |least, most| claim.lies((least, most));
        assert_eq!(
            [lies(0.2, 0.3), lies(0.0, 0.05), lies(0.05, 0.2)],
            ["within", "below", "within and below"]
        );
        assert_eq!([lies(0.5, 0.6), lies(0.3, 0.5)], ["above", "within and above"]);
        assert_eq!(lies(0.0, 0.9), "within, below and above");
    }
}
