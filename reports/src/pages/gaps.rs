//! The page on gaps: how close each planner comes to the best bound on each workload.

use crate::data::tables;
use crate::site::Site;
use crate::site::page::{Page, Piece};

pub(super) fn page(site: &Site<'_>) -> Option<Page> {
    let table = tables::gaps(site.model, |number| site.page_of(number));
    Some(Page::new("gaps.html", "Gap by workload and planner").named("Gaps").with([Piece::Table(table)]))
}
