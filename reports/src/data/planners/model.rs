//! The records of a store, grouped for pages and plots.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use planlab_results::queries::{
    Board, CellRow, Cells, Failure, Gap, GroupGaps, Height, HeightPairs, Leader, Leaders, Limits, Planner,
    PlannerGaps, Tables,
};
use planlab_results::scale::Curve;
use planlab_results::{Provenance, StoreError, WorkloadKey};

use crate::data::natural::natural;
use crate::data::planners::compare::{Comparison, planner_family};

#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(crate) key: WorkloadKey,
    pub(crate) instance: String,
    pub(crate) buffers: u64,
    pub(crate) load: u64,
    /// The range of its cells among all cells.
    pub(crate) cells: Range<usize>,
}

/// The data of all pages; independent of the order of the records.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) tables: Tables,
    /// All cells and their planners.
    pub(crate) all: Cells,
    /// The cells, by workload.
    pub(crate) cells: Vec<CellRow>,
    pub(crate) workloads: Vec<Workload>,
    /// Each planner over all its cells.
    pub(crate) leaders: Vec<Leader>,
    /// All planners on all workloads, and those that ran on the common ones.
    pub(crate) whole: Leaders,
    pub(crate) boards: Vec<(Board, Leaders)>,
    /// The reference planner (not in place, on the most workloads, with the least gap), and the comparisons with it.
    pub(crate) pairs: Option<(usize, Vec<HeightPairs>)>,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) group_gaps: Vec<GroupGaps>,
    pub(crate) planner_gaps: Vec<PlannerGaps>,
    /// The comparison that the summary shows.
    pub(crate) compared: Option<Comparison>,
    /// Heights by planner and workload, if there is one.
    heights: BTreeMap<(usize, usize), u64>,
    /// By workload and family: the lowest height, and its planner.
    lowest: Vec<BTreeMap<String, (u64, usize)>>,
    pub(crate) failures: Vec<Failure>,
    /// Machines and builds, the mechanisms that enforced limits there, and the number of rows for each.
    pub(crate) machines: Vec<(Provenance, String, u64)>,
    pub(crate) suites: BTreeSet<String>,
    pub(crate) limits: BTreeSet<Limits>,
    /// Growth with the number of buffers.
    pub(crate) curves: Vec<Curve>,
    pub(crate) digest: String,
}

impl Model {
    pub(crate) fn new(tables: Tables) -> Result<Self, StoreError> {
        let all = tables.cells(natural)?;
        let (cells, leaders, heights) = (all.rows()?, all.planner_leaders()?, all.planner_heights()?);
        let pairs = |reference| Ok::<_, StoreError>((reference, all.compare_with(reference)?));
        let height = |of: &Height| Some(((of.planner_number, of.workload_number), of.height?));
        let (workloads, boards) = (collect_workloads(&cells), all.board_leaders()?);
        let every: Vec<usize> = (0..workloads.len()).collect();
        let whole = all.leaders_on(&every)?;
        let compared = compare_planners(&all, &workloads, &whole, &boards)?;
        let heights: BTreeMap<(usize, usize), u64> = heights.iter().filter_map(height).collect();
        let mut lowest: Vec<BTreeMap<String, (u64, usize)>> = vec![BTreeMap::new(); workloads.len()];
        for (&(planner, workload), &height) in &heights {
            let name = planner_family(&all.planners[planner].label).to_owned();
            let known = lowest[workload].entry(name).or_insert((height, planner));
            *known = (height, planner).min(*known);
        }
        Ok(Self {
            lowest,
            workloads,
            compared,
            whole,
            cells,
            pairs: reference_planner(&leaders).map(pairs).transpose()?,
            leaders,
            boards,
            gaps: all.planner_gaps()?,
            group_gaps: all.gaps_by_group()?,
            planner_gaps: all.gaps_by_planner()?,
            heights,
            all,
            failures: tables.failures()?,
            machines: tables.machines()?,
            suites: tables.suites()?,
            limits: tables.limits()?,
            curves: tables.growth_curves()?,
            digest: tables.rows_digest()?,
            tables,
        })
    }

    pub(crate) fn row_count(&self) -> u64 {
        self.all.statuses.values().sum()
    }

    pub(crate) fn planner_of_cell(&self, cell: &CellRow) -> &Planner {
        &self.all.planners[cell.planner_number]
    }

    pub(crate) fn planner_of(&self, label: &str) -> Option<usize> {
        self.all.planners.iter().position(|planner| planner.label == label)
    }

    pub(crate) fn workload_of(&self, key: &str) -> Option<usize> {
        self.workloads.iter().position(|workload| workload.key == *key)
    }

    /// A planner's name in tables, with a mark if it uses hand-overs.
    pub(crate) fn marked_name(&self, planner: usize) -> String {
        let Planner { label, is_in_place, .. } = &self.all.planners[planner];
        format!("{label}{}", if *is_in_place { " \u{21c4}" } else { "" })
    }

    /// The height of a planner on a workload: the lower median over its cells (seeds). `None` if it did not run or has
    /// no answer. Cells with a given capacity do not count.
    pub(crate) fn height_on(&self, planner: usize, workload: usize) -> Option<u64> {
        self.heights.get(&(planner, workload)).copied()
    }

    /// The lowest height on a workload by a planner of another family, and that planner.
    pub(crate) fn lowest_rival(&self, planner: usize, workload: usize) -> Option<(u64, usize)> {
        let own = planner_family(&self.all.planners[planner].label);
        let others = self.lowest[workload].iter().filter(|(name, _)| *name != own);
        others.map(|(_, &lowest)| lowest).min()
    }

    pub(crate) fn cells_of(&self, workload: usize) -> impl Iterator<Item = &CellRow> {
        self.cells[self.workloads[workload].cells.clone()].iter()
    }

    /// The cells of a planner on a workload without a given capacity.
    pub(crate) fn free_cells(&self, planner: usize, workload: usize) -> impl Iterator<Item = &CellRow> {
        let is_one = move |cell: &&CellRow| cell.planner_number == planner && cell.target_bytes.is_none();
        self.cells_of(workload).filter(is_one)
    }

    /// The cell with the lowest height of a workload. Among equals, one without hand-overs comes first, then the quickest.
    /// Cells with a given capacity do not count.
    pub(crate) fn best_cell(&self, workload: usize) -> Option<&CellRow> {
        let free = self.cells_of(workload).filter(|cell| cell.target_bytes.is_none());
        let ranked = free.filter_map(|cell| {
            Some(((cell.height?, cell.hand_overs > 0, cell.median_ns.unwrap_or(u64::MAX)), cell))
        });
        ranked.min_by_key(|&(rank, _)| rank).map(|(_, cell)| cell)
    }
}

/// The comparison of the summary: over the recorded nets if it covers some of them and some planners, otherwise over the
/// suite, or over everything, that compares the most.
fn compare_planners(
    all: &Cells,
    workloads: &[Workload],
    whole: &Leaders,
    boards: &[(Board, Leaders)],
) -> Result<Option<Comparison>, StoreError> {
    const FEW: usize = 3;
    let recorded: Vec<usize> = (0..workloads.len()).filter(|&at| is_recorded(&workloads[at].key)).collect();
    let nets = all.leaders_on(&recorded)?;
    let nets = Comparison::new("recorded nets", recorded.len(), &nets, &all.planners);
    if let Some(nets) = nets.filter(|nets| nets.ranked.len() >= FEW && nets.workloads.len() >= FEW) {
        return Ok(Some(nets));
    }
    let whole = Comparison::new("workloads", workloads.len(), whole, &all.planners);
    let of_suites =
        boards.iter().filter(|(board, _)| board.route.is_none()).filter_map(|(board, leaders)| {
            let scope = format!("workloads of the suite {}", board.suite);
            let most = leaders.all.iter().map(|leader| leader.workloads).max().unwrap_or(0);
            Comparison::new(&scope, most, leaders, &all.planners)
        });
    // Of equals the first, which is the widest.
    let all: Vec<Comparison> = whole.into_iter().chain(of_suites).collect();
    Ok(all.into_iter().rev().max_by_key(|compared| compared.ranked.len() * compared.workloads.len()))
}

/// Whether a workload was recorded from a framework.
pub(crate) fn is_recorded(key: &WorkloadKey) -> bool {
    key.net_parts().is_some_and(|net| net.route != "model")
}

fn collect_workloads(cells: &[CellRow]) -> Vec<Workload> {
    let mut workloads: Vec<Workload> = Vec::new();
    for (number, cell) in cells.iter().enumerate() {
        if cell.workload_number == workloads.len() {
            workloads.push(Workload {
                key: WorkloadKey::from(&*cell.workload),
                instance: cell.instance.to_string(),
                buffers: cell.buffers,
                load: cell.load,
                cells: number..number,
            });
        }
        workloads[cell.workload_number].cells.end = number + 1;
    }
    workloads
}

fn reference_planner(leaders: &[Leader]) -> Option<usize> {
    leaders.iter().min_by(|a, b| compare_leaders(a, b)).map(|leader| leader.planner_number)
}

/// Planners on the most workloads first, then those with the least mean gap.
pub(crate) fn compare_leaders(a: &Leader, b: &Leader) -> Ordering {
    let gap = |leader: &Leader| leader.mean_gap().mean.unwrap_or(f64::INFINITY);
    b.workloads.cmp(&a.workloads).then_with(|| gap(a).total_cmp(&gap(b)))
}
