//! Figures of the `PoocH` paper on schedules, for comparison with ours.

use std::sync::LazyLock;

use serde::Deserialize;

use super::lies;
use crate::data::schedules::asked::Sweep;
use crate::data::schedules::{Case, Run};

/// The contents of the embedded file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published {
    machine: Vec<Machine>,
    figure: Vec<Figure>,
    counts: Vec<Counts>,
    claim: Vec<Claim>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Machine {
    key: String,
    /// The lowest and highest rate of copies for which our figures are comparable, in bytes per second.
    link: [f64; 2],
    /// The same for the capacity, in bytes.
    capacity: [u64; 2],
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figure {
    pub(crate) number: u32,
    nets: Vec<String>,
    machine: String,
    by: By,
    pub(crate) shows: String,
}

/// The horizontal axis of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum By {
    /// Nets, each at one size that exceeds the memory.
    Net,
    Batch,
    /// Sizes of the input, at batch 1.
    Input,
}

impl By {
    /// Whether a case with this sweep belongs to such a figure.
    const fn is_of(self, sweep: Sweep) -> bool {
        match sweep {
            Sweep::Batch { input: None } => matches!(self, Self::Batch | Self::Net),
            Sweep::Batch { input: Some(_) } => false,
            Sweep::Input { batch } => batch == 1 && matches!(self, Self::Input | Self::Net),
        }
    }
}

/// A row of table 3.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counts {
    /// A short permanent name.
    pub(crate) id: String,
    net: String,
    pub(crate) batch: u64,
    machine: String,
    /// The method's name in the paper.
    pub(crate) method: String,
    /// Our equivalent schedulers.
    pub(crate) schedulers: Vec<String>,
    /// Kept, swapped, recomputed.
    pub(crate) counts: [u64; 3],
}

/// A number in the text, or an outcome.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    /// A short permanent name.
    pub(crate) id: String,
    pub(crate) figure: u32,
    nets: Vec<String>,
    machine: String,
    pub(crate) claim: String,
    pub(crate) measure: Measure,
    pub(crate) schedulers: Vec<String>,
    /// The scheduler in the denominator of a ratio.
    over: Option<String>,
    batches: [u64; 2],
    pub(crate) published: String,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Measure {
    /// Images per second.
    Speed,
    /// The share of the speed that is lost.
    Loss,
    /// The ratio of two speeds.
    Ratio,
    /// A schedule exists.
    Runs,
    /// There is no schedule.
    Fails,
}

pub(crate) static PAPER: LazyLock<Published> = LazyLock::new(|| {
    toml::from_str(include_str!("../../../schedules.toml")).expect("the tests read the embedded file")
});

impl Published {
    /// Whether a case has one of these nets, as in the paper, on that machine.
    fn is_of(&self, case: &Case, nets: &[String], machine: &str) -> bool {
        let within = |machine: &&Machine| {
            let link = machine.link[0]..=machine.link[1];
            let capacity = machine.capacity[0]..=machine.capacity[1];
            link.contains(&case.link.0) && link.contains(&case.link.1) && capacity.contains(&case.capacity)
        };
        let machines = self.machine.iter().filter(|known| known.key == machine);
        let is_plain = case.sequence.is_none() && case.workspace.is_none() && !case.is_replaced();
        case.machine == machine
            && is_plain
            && nets.contains(&case.net)
            && machines.clone().any(|known| within(&known))
    }

    fn of_case<'p>(&'p self, case: &Case) -> impl Iterator<Item = &'p Figure> {
        let is_of =
            |figure: &&Figure| figure.by.is_of(case.sweep) && self.is_of(case, &figure.nets, &figure.machine);
        self.figure.iter().filter(is_of)
    }

    /// The figures of a net by size, on a machine like ours.
    pub(crate) fn figures_of<'p>(&'p self, case: &Case) -> impl Iterator<Item = &'p Figure> {
        self.of_case(case).filter(|figure| figure.by != By::Net)
    }

    /// The figure over several nets on a machine like ours that contains this net.
    pub(crate) fn step_figure(&self, case: &Case) -> Option<&Figure> {
        self.of_case(case).find(|figure| figure.by == By::Net)
    }

    pub(crate) fn counts_of<'p>(&'p self, case: &Case) -> impl Iterator<Item = &'p Counts> {
        let is_of = |line: &&Counts| {
            By::Batch.is_of(case.sweep) && self.is_of(case, std::slice::from_ref(&line.net), &line.machine)
        };
        self.counts.iter().filter(is_of)
    }

    pub(crate) fn claims_of<'p>(&'p self, case: &Case) -> impl Iterator<Item = &'p Claim> {
        let numbers: Vec<u32> = self.of_case(case).map(|figure| figure.number).collect();
        let is_of = move |claim: &&Claim| {
            numbers.contains(&claim.figure) && self.is_of(case, &claim.nets, &claim.machine)
        };
        self.claim.iter().filter(is_of)
    }
}

impl Claim {
    pub(crate) fn matching_runs<'c>(&self, case: &'c Case, scheduler: &str) -> Vec<&'c Run> {
        let batches = self.batches[0]..=self.batches[1];
        let is_meant = |run: &&Run| run.series.label == scheduler && batches.contains(&run.row.batch);
        case.runs.iter().filter(is_meant).collect()
    }

    pub(crate) fn figure_of(&self, case: &Case, run: &Run) -> Option<f64> {
        match self.measure {
            Measure::Speed => run.images_per_second(),
            Measure::Loss => run.speed_loss(),
            Measure::Ratio => {
                let over = case.run_of(self.over.as_deref()?, run.size)?;
                Some(run.images_per_second()? / over.images_per_second()?)
            }
            Measure::Runs | Measure::Fails => None,
        }
    }

    /// Where our figures from `least` to `most` lie relative to the published range.
    pub(crate) fn relative_position(&self, ours: (f64, f64)) -> &'static str {
        lies((self.low, self.high), ours)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_is_whole() {
        let published = &*PAPER;
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
            assert_eq!(figure.machine, claim.machine, "{claim:?}");
            assert!(
                !claim.nets.is_empty() && claim.nets.iter().all(|net| figure.nets.contains(net)),
                "{claim:?}"
            );
        }
    }

    #[test]
    fn every_figure_is_explained_in_words() {
        let page = include_str!("../../../../docs/claims.md");
        let (counts, claims) = (PAPER.counts.iter(), PAPER.claim.iter());
        for id in counts.map(|line| &line.id).chain(claims.map(|claim| &claim.id)) {
            assert_eq!(page.matches(&format!("| `{id}` | published |")).count(), 1, "docs/claims.md: `{id}`");
        }
    }

    #[test]
    fn a_range_lies_against_both_ends() {
        let claim = PAPER.claim.iter().find(|claim| claim.high == Some(0.385)).expect("13 to 38 %");
        let lies = |least, most| claim.relative_position((least, most));
        assert_eq!(
            [lies(0.2, 0.3), lies(0.0, 0.05), lies(0.05, 0.2)],
            ["within", "below", "within and below"]
        );
        assert_eq!([lies(0.5, 0.6), lies(0.3, 0.5)], ["above", "within and above"]);
        assert_eq!(lies(0.0, 0.9), "within, below and above");
    }
}
