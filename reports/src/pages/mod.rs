//! The pages of a report: one file per question.

mod allocators;
mod memory;
pub(crate) mod offload;
pub(crate) mod overview;
pub(crate) mod planners;

use allocators::{closeness, frameworks, iterations, pytorch, requests, threads, time};
use memory::{budgets, models, nets};
use offload::fronts;
use overview::{cell, cells, run, summary, workload};
pub(crate) use planners::planner::page as of_planner;
use planners::{boards, claims, gaps, scale};

use crate::ReportError;
use crate::site::Site;
use crate::site::page::Page;

/// The pages of a report in the order of the navigation; a page without content is left out.
const PAGES: [fn(&Site<'_>) -> Option<Page>; 18] = [
    summary::page,
    boards::page,
    gaps::page,
    scale::page,
    claims::page,
    nets::page,
    models::page,
    offload::page,
    fronts::page,
    budgets::page,
    closeness::page,
    time::page,
    requests::page,
    threads::page,
    iterations::page,
    frameworks::page,
    pytorch::page,
    run::page,
];

/// The pages that cover all workloads.
pub(crate) fn of_report(site: &Site<'_>) -> Result<Vec<Page>, ReportError> {
    let mut pages: Vec<Page> = PAGES.iter().filter_map(|page| page(site)).collect();
    pages.push(cells::page(site)?);
    Ok(pages)
}

/// The pages of one workload: its own page, and those of the cells whose plans have maps.
pub(crate) fn of_workload(site: &Site<'_>, workload: usize) -> impl Iterator<Item = Page> {
    let cells = site.maps_of(workload).iter().map(|map| cell::page(site, map));
    std::iter::once(workload::page(site, workload)).chain(cells)
}
