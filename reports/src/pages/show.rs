//! One instance, with or without a plan, as one file.

use maud::{Markup, PreEscaped, html};
use planlab_dsa::{Instance, Labels, VerifiedPlan};

use super::layout::{document, facts, plot};
use crate::drawing::Drawing;
use crate::drawing::raster::base64;
use crate::format::{bytes, count, percent};
use crate::{
    MapOptions, ReportError, fragmentation_map, load_curve_plot, placement_map, size_distribution_plot,
};

/// A page with everything that can be shown of an instance and a plan for it: a single file, pictures
/// included. `command` is the command that makes it again.
///
/// # Errors
///
/// [`ReportError::Draw`] where a picture cannot be drawn.
pub fn show_page(
    instance: &Instance,
    labels: &Labels,
    plan: Option<&VerifiedPlan<'_>>,
    title: &str,
    command: &str,
) -> Result<String, ReportError> {
    let options = MapOptions::default();
    let placement = placement_map(instance, labels, plan, &options);
    let (height, facts_of) = (plan.map(VerifiedPlan::height), numbers(instance, plan));
    let body = html! {
        main {
            h1 { (title) }
            (facts(&facts_of))
            (embedded(&placement, "Time across, address up, colour by category. The dashed lines mark the \
                first step of the highest load and the load itself; buffers in use at that step have a dark \
                edge, those that reach the height a red one.")?)
            @if let Some(plan) = plan {
                (embedded(&fragmentation_map(instance, plan, &options),
                    "Free memory below the height, by step and band of addresses; holes below a buffer in warm colours.")?)
            }
            (plot(&load_curve_plot(instance, height), "Bytes in use at each step.")?)
            (plot(&size_distribution_plot(instance), "Buffers and bytes by size.")?)
            (metadata(labels))
        }
        footer { "Made by " code { (command) } "." }
    };
    Ok(document(title, &body))
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

fn metadata(labels: &Labels) -> Markup {
    html! {
        @if !labels.metadata.is_empty() {
            h2 { "Metadata" }
            dl.facts { @for (key, value) in &labels.metadata { dt { (key) } dd { (value) } } }
        }
    }
}

/// A picture inside the page.
fn embedded(drawing: &Drawing, caption: &str) -> Result<Markup, ReportError> {
    let data = base64(&drawing.to_png()?);
    let (width, height) = drawing.size();
    Ok(html! {
        figure.map {
            img src=(PreEscaped(format!("data:image/png;base64,{data}"))) width=(width) height=(height)
                alt=(drawing.title());
            figcaption { (caption) }
        }
    })
}
