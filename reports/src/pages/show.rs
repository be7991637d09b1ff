//! One instance, with or without a plan, as one file.

use planlab_dsa::{Instance, Labels, VerifiedPlan};

use crate::ReportError;
use crate::figures::{
    Drawing, MapOptions, fragmentation_map, load_curve_plot, placement_map, size_distribution_plot,
};
use crate::format::{bytes, count, percent};
use crate::site::page::{Page, Picture, Piece};
use crate::site::page_alone;

/// A page with all views of an instance and a plan for it: a single file, pictures included. `command` is the command
/// that makes it again.
///
/// # Errors
///
/// [`ReportError::Draw`] if a picture cannot be drawn.
pub fn show_page(
    instance: &Instance,
    labels: &Labels,
    plan: Option<&VerifiedPlan<'_>>,
    title: &str,
    command: &str,
) -> Result<String, ReportError> {
    let options = MapOptions::default();
    let inside = |drawing: Drawing, caption: &str| Piece::Picture(Picture::inside(drawing, caption));
    let mut pieces = vec![
        Piece::facts(numbers(instance, plan)),
        inside(
            placement_map(instance, labels, plan, &options),
            "Time across, address up, colour by category. The dashed lines mark the first step of the highest load and \
             the load itself; buffers in use at that step have a dark edge, those that reach the height a red one.",
        ),
    ];
    pieces.extend(plan.map(|plan| {
        inside(
            fragmentation_map(instance, plan, &options),
            "Free memory below the height, by step and band of addresses; holes below a buffer in warm colours.",
        )
    }));
    pieces.extend([
        Piece::plot(load_curve_plot(instance, plan.map(VerifiedPlan::height)), "Bytes in use at each step."),
        Piece::plot(size_distribution_plot(instance), "Buffers and bytes by size."),
    ]);
    if !labels.metadata.is_empty() {
        pieces.extend([Piece::heading("Metadata"), Piece::facts(labels.metadata.clone())]);
    }
    page_alone(&Page::new("", title).with(pieces), command)
}

fn numbers(instance: &Instance, plan: Option<&VerifiedPlan<'_>>) -> Vec<(&'static str, String)> {
    let exact = |number: u64| format!("{} ({} bytes)", bytes(number), count(number));
    let load = instance.load();
    let mut pairs = vec![
        ("buffers", count(instance.len() as u64)),
        ("steps", count(u64::from(instance.horizon().get()))),
        ("sum of sizes", exact(instance.total().get())),
        ("load", format!("{} at step {}", exact(load.bytes.get()), load.step)),
    ];
    if let Some(plan) = plan {
        pairs.push(("height", exact(plan.height().get())));
        pairs.push(("fragmentation", percent(planlab_dsa::fragmentation(plan.height(), load.bytes))));
        if !plan.in_place().is_empty() {
            pairs.push(("hand-overs in place", count(plan.in_place().len() as u64)));
        }
    }
    pairs.push(("digest", instance.digest().to_string()));
    pairs
}
