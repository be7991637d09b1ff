//! The viewer: placements of one instance over time, to be zoomed and searched in the browser.
//!
//! A script draws them on a canvas. All that it needs is in the page; without it there are the tables beside it.

mod colors;
mod data;
mod scene;
mod track;

use maud::{Markup, html};
use serde_json::Value as Json;

use crate::data::schedules::track::ScheduleTrack;
use crate::site::parts::script_data;
pub use scene::CallStacks;
pub(crate) use scene::{Panel, Scene};

pub(crate) const STYLE: &str = include_str!("../../../assets/viewer/viewer.css");

/// The script, in the order in which its parts need each other.
pub(crate) const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("../../../assets/time.js"),
    include_str!("../../../assets/viewer/data.js"),
    include_str!("../../../assets/viewer/paint.js"),
    include_str!("../../../assets/viewer/map.js"),
    include_str!("../../../assets/viewer/controls.js"),
    "})();\n"
);

/// How many times the slider of an axis of time moves from end to end.
const SLIDER_STEPS: u64 = 1000;

/// The file of the script in a report.
pub(crate) const SCRIPT_FILE: &str = "viewer.js";

#[derive(Clone, Debug)]
pub(crate) struct ViewerPart {
    data: Json,
    label: String,
    /// Panels with a step to look at.
    tops: Vec<(usize, String)>,
    /// What the axis counts: steps, or the nanoseconds of a time.
    clock: &'static str,
    horizon: u64,
    peak: u64,
    caption: String,
    /// Its number among the viewers of its page.
    number: usize,
}

impl ViewerPart {
    pub(crate) fn new(scene: &Scene<'_>, caption: impl Into<String>) -> Self {
        let names: Vec<&str> = scene.panels.iter().map(|panel| panel.name.as_str()).collect();
        let tops = scene.panels.iter().enumerate().filter(|(_, panel)| panel.blocked.is_some());
        Self {
            data: data::scene_json(scene),
            label: panel_label(&names),
            tops: tops.map(|(number, panel)| (number, panel.name.clone())).collect(),
            clock: "step",
            horizon: scene.horizon.into(),
            peak: scene.instance.load().step.get().into(),
            caption: caption.into(),
            number: 0,
        }
    }

    /// The viewer of a schedule on an axis of `horizon` nanoseconds. All such viewers of a page move together; their
    /// numbers differ.
    pub(crate) fn from_track(track: &ScheduleTrack, horizon: u64, number: usize, caption: &str) -> Self {
        Self {
            data: track::track_json(track, horizon),
            label: panel_label(&[track.name.as_str()]),
            tops: Vec::new(),
            clock: "time",
            horizon,
            peak: track.peak.1,
            caption: caption.to_owned(),
            number,
        }
    }

    /// The viewer of an arena of several, each with a number, on one page.
    pub(crate) fn of_arena(mut self, name: &str, number: usize) -> Self {
        self.label = format!("{}, {name}", self.label);
        self.number = number;
        self
    }

    /// How far the slider moves at a time.
    fn slider_step(&self) -> u64 {
        if self.clock == "time" { (self.horizon / SLIDER_STEPS).max(1) } else { 1 }
    }

    /// What identifies the help of this viewer on its page.
    fn help_id(&self) -> String {
        format!("viewer-help-{}", self.number)
    }

    /// The same placement under another name, of a viewer with one panel.
    pub(crate) fn with_name(mut self, name: &str) -> Self {
        self.data["panels"][0]["name"] = name.into();
        self.label = panel_label(&[name]);
        self.tops.iter_mut().for_each(|(_, top)| name.clone_into(top));
        self
    }
}

fn panel_label(names: &[&str]) -> String {
    format!("Map of memory over time: {}", names.join("; "))
}

const HELP: &str = "Drag or arrows move; the wheel or + and \u{2212} zoom (wheel with Shift: time alone, with Alt: addresses \
    alone; Shift with arrows: one axis); 0 shows all, P the peak. Enter picks the first buffer in view, Tab and Shift+Tab the \
    next and the one before, Escape lets go of it.";

pub(crate) fn viewer_html(part: &ViewerPart) -> Markup {
    html! {
        figure.viewer {
            noscript { p.alert { "The map needs JavaScript; the tables beside it hold its figures." } }
            (toolbar_markup(part))
            ul.keys aria-label="legend" {}
            div.stage {
                canvas tabindex="0" role="application" aria-roledescription="map" aria-label=(part.label)
                    aria-describedby=(part.help_id()) {}
                div.tip aria-hidden="true" hidden {}
            }
            p.help id=(part.help_id()) { (HELP) }
            label.step { @if part.clock == "step" { "Step " } @else { "Time " } input type="range" aria-label=(part.clock) min="0" max=(part.horizon.saturating_sub(1)) step=(part.slider_step()) value=(part.peak); output {} }
            div.readings {
                section aria-label={ "the largest buffers in use at this " (part.clock) } { h3 { "In use at this " (part.clock) } ol.live {} }
                section.picked aria-label="the picked buffer" aria-live="polite" { h3 { "Picked buffer" } div {} }
            }
            script.data type="application/json" { (script_data(&part.data)) }
            figcaption { (part.caption) }
        }
    }
}

fn toolbar_markup(part: &ViewerPart) -> Markup {
    html! {
        div.controls role="group" aria-label="view" {
            button type="button" data-do="in" aria-label="zoom in" title="zoom in" { "+" }
            button type="button" data-do="out" aria-label="zoom out" title="zoom out" { "\u{2212}" }
            button type="button" data-do="all" { "all" }
            button type="button" data-do="peak" { "peak" }
            @for (number, name) in &part.tops {
                button type="button" data-do="top" data-panel=(number) title="the step at which the height is reached" {
                    @if part.tops.len() == 1 { "top" } @else { "top of " (name) }
                }
            }
            label { "colour by " select data-do="color" {} }
            label { "find " input type="search" placeholder="name, category, frame" data-do="find"; }
            button type="button" data-do="previous" aria-label="the match before" { "\u{2039}" }
            button type="button" data-do="next" aria-label="the next match" { "\u{203a}" }
            output.found aria-live="polite" {}
        }
    }
}

#[cfg(test)]
mod tests;
