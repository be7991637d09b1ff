//! A map for each arena of an instance.

use planlab_dsa::{Instance, VerifiedPlan};

use super::options::MapOptions;
use super::pixels::Pixels;
use super::sheet::Sheet;
use crate::figures::chart::Entry;
use crate::figures::layout::Layout;
use crate::figures::raster::Raster;
use crate::figures::{ArenaFacts, Drawing, figure};

/// Draws a map for each arena, one below the other on the same steps.
pub(super) fn draw_arenas(
    name: &str,
    instance: &Instance,
    plan: Option<&VerifiedPlan<'_>>,
    options: &MapOptions,
    entries: Vec<Entry>,
    paint: impl Fn(&Layout, &ArenaFacts, Pixels) -> Raster,
) -> Drawing {
    let arenas = ArenaFacts::list_arenas(instance);
    let count = u32::try_from(arenas.len()).expect("an arena's number has 16 bits");
    let size = options.arena_size(count);
    let title = if options.title.is_empty() { name } else { &options.title };
    let top = options.top.filter(|_| count == 1);
    let sheet = |(arena, layout): (ArenaFacts, Layout)| {
        let top = top.unwrap_or_else(|| arena.axis_top(layout.height));
        let raster = paint(&layout, &arena, Pixels::new(size, layout.horizon, top));
        (Sheet::new(title, size, top, (arena, &layout), plan.is_some()), raster)
    };
    let sheets: Vec<(Sheet, Raster)> =
        arenas.into_iter().zip(Layout::of_arenas(instance, plan)).map(sheet).collect();
    figure(title, (size.0, size.1.saturating_mul(count)), move |root| {
        let areas = (0..count).map(|number| root.clone().shrink((0, number * size.1), size));
        areas.zip(&sheets).try_for_each(|(area, (sheet, raster))| sheet.draw_sheet(&area, raster, &entries))
    })
}
