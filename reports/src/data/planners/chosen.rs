//! Chooses the plans to draw.

use planlab_results::queries::CellRow;

use crate::data::planners::model::Model;

/// Larger workloads only have maps of the best plan and the baseline's.
pub(crate) const SMALL: u64 = 2_000;
/// This many of the lowest heights of a small workload are drawn.
const LOWEST: usize = 3;

/// The cells whose plans are drawn, by workload: the best, the baseline's, the worst of each planner, and then others
/// with low heights. If there are more than `maps`, every workload gets its first ones before any gets more.
pub(crate) fn choose_cells(model: &Model, baseline: &str, maps: usize) -> Vec<Vec<usize>> {
    let workloads = 0..model.workloads.len();
    let mut left = maps;
    let mut chosen: Vec<Vec<usize>> = vec![Vec::new(); model.workloads.len()];
    for workload in workloads.clone() {
        for cell in first_cells(model, workload, baseline) {
            add_cell(model, &mut chosen[workload], cell, &mut left);
        }
    }
    for cell in (0..model.all.planners.len()).filter_map(|planner| worst_cell(model, planner)) {
        add_cell(model, &mut chosen[model.cells[cell].workload_number], cell, &mut left);
    }
    for workload in workloads.filter(|&workload| model.workloads[workload].buffers <= SMALL) {
        for cell in lowest_cells(model, workload) {
            add_cell(model, &mut chosen[workload], cell, &mut left);
        }
    }
    chosen
}

/// The cell of a planner with the largest gap, among the plans of small workloads.
pub(crate) fn worst_cell(model: &Model, planner: usize) -> Option<usize> {
    let own = model.cells.iter().enumerate().filter(|(_, cell)| cell.planner_number == planner);
    let drawable = own.filter(|(_, cell)| cell.plan.is_some() && cell.buffers <= SMALL);
    let gaps = drawable.filter_map(|(number, cell)| Some((cell.gap?, number)));
    // Of equals the first, as everywhere.
    gaps.max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(&a.1))).map(|(_, number)| number)
}

/// Adds a cell unless its plan is already chosen.
fn add_cell(model: &Model, chosen: &mut Vec<usize>, cell: usize, left: &mut usize) {
    let plan = |cell: usize| &model.cells[cell].plan;
    if *left > 0 && plan(cell).is_some() && chosen.iter().all(|&other| plan(other) != plan(cell)) {
        chosen.push(cell);
        *left -= 1;
    }
}

/// The best cell and the baseline's.
fn first_cells(model: &Model, workload: usize, baseline: &str) -> Vec<usize> {
    let baseline = model.planner_of(baseline).and_then(|planner| model.free_cells(planner, workload).next());
    let cells = || model.workloads[workload].cells.clone();
    let number = |wanted: &CellRow| cells().find(|&at| std::ptr::eq(&raw const model.cells[at], wanted));
    [model.best_cell(workload), baseline].into_iter().flatten().filter_map(number).collect()
}

/// One cell for each of the lowest heights; at equal heights, a cell without hand-overs comes first.
fn lowest_cells(model: &Model, workload: usize) -> Vec<usize> {
    let rank = |cell: usize| {
        let row = &model.cells[cell];
        row.plan.as_ref()?;
        Some((row.height?, row.hand_overs > 0, cell))
    };
    let mut ranked: Vec<_> = model.workloads[workload].cells.clone().filter_map(rank).collect();
    ranked.sort_unstable();
    ranked.dedup_by_key(|&mut (height, _, _)| height);
    ranked.into_iter().take(LOWEST).map(|(_, _, cell)| cell).collect()
}
