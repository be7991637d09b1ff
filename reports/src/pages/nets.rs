//! The page on nets: the memory of each net, and the time to plan it.

use crate::data::nets::{NetFigure, memory_figures, time_figures};
use crate::site::Site;
use crate::site::page::{Page, Piece, Text};

pub(super) fn page(site: &Site<'_>) -> Option<Page> {
    let figures = figures(site);
    let mut page = Page::new("nets.html", "Nets").named("Nets");
    page.heading = "Nets: memory and planning time by batch".into();
    if figures.is_empty() {
        let keys = Text::marked("No workload is a net's: keys of nets look like `route/net/train/b32`.");
        page.pieces.push(Piece::note(keys));
    }
    Some(page.with(figures.into_iter().map(|(_, (drawing, caption))| Piece::chapter(drawing, caption))))
}

/// Memory and time by net and batch.
pub(super) fn figures(site: &Site<'_>) -> Vec<NetFigure> {
    let stored = site.instances.iter().enumerate();
    let sums = stored.filter_map(|(number, stored)| Some((number, stored.as_ref()?.total))).collect();
    let (model, baseline) = (site.model, site.options.baseline.as_str());
    let mut figures = memory_figures(model, baseline, &site.options.totals, &sums);
    figures.extend(time_figures(model, baseline));
    figures
}
