//! One instance, with any number of placements, as one file.

use planlab_dsa::{Instance, Labels, VerifiedPlan};

use crate::ReportError;
use crate::data::clock::Clock;
use crate::data::own::OwnPlacement;
use crate::figures::size_distribution_plot;
use crate::format::{bytes, count, percent};
use crate::site::page::{Page, Piece};
use crate::site::page_alone;
use crate::site::viewer::{self, CallStacks, Panel, Scene, ViewerPart};

/// A page about one instance: a map of its placements to zoom and search, why they are as high as they are, and what is in
/// use at the peak. A single file that needs nothing else.
pub struct ShowPage<'a> {
    scene: Scene<'a>,
    title: String,
    command: String,
    answer: Option<String>,
    facts: Vec<(String, String)>,
}

impl<'a> ShowPage<'a> {
    /// A page of the buffers alone; `command` makes it again.
    #[must_use]
    pub fn new(
        instance: &'a Instance,
        labels: &'a Labels,
        title: impl Into<String>,
        command: impl Into<String>,
    ) -> Self {
        let scene =
            Scene { instance, labels, panels: Vec::new(), stacks: CallStacks::default(), bound: None };
        let (title, command) = (title.into(), command.into());
        Self { scene, title, command, answer: None, facts: facts_of(instance, labels) }
    }

    /// Adds a plan under a name, below those before it.
    #[must_use]
    pub fn with_plan(mut self, name: &str, plan: &VerifiedPlan<'_>) -> Self {
        let load = self.scene.instance.load().bytes;
        let (height, over) = (plan.height(), planlab_dsa::fragmentation(plan.height(), load));
        self.facts.push((
            format!("height of {name}"),
            format!("{}, {} above the load", exact(height.get()), percent(over)),
        ));
        if !plan.in_place().is_empty() {
            self.facts.push((format!("hand-overs in place of {name}"), count(plan.in_place().len() as u64)));
        }
        self.scene.panels.push(Panel::plan(name, self.scene.instance, plan));
        self
    }

    /// Adds the framework's own placement.
    #[must_use]
    pub fn with_own(mut self, own: &OwnPlacement) -> Self {
        let panel = Panel::own(self.scene.instance, own);
        // Without segments these are addresses of a malloc: their span is not what the process held.
        let remark =
            if panel.held.is_empty() { "; the file does not say how much of that was held" } else { "" };
        let span = format!(
            "{} from lowest to highest, without ranges never used{remark}",
            exact(panel.layout.height)
        );
        self.facts.push((format!("addresses of {}", own.name), span));
        self.scene.panels.push(panel);
        self
    }

    /// Adds the call stacks that allocated the buffers.
    #[must_use]
    pub fn with_stacks(mut self, stacks: CallStacks<'a>) -> Self {
        self.scene.stacks = stacks;
        self
    }

    /// Sets a proved bound on the height of every plan, bytes.
    #[must_use]
    pub fn with_bound(mut self, bytes: u64) -> Self {
        self.facts.push(("bound".to_owned(), exact(bytes)));
        self.scene.bound = Some(bytes);
        self
    }

    /// Sets a text for the top of the page, whose lines are kept.
    #[must_use]
    pub fn with_answer(mut self, text: impl Into<String>) -> Self {
        self.answer = Some(text.into());
        self
    }

    /// The page.
    ///
    /// # Errors
    ///
    /// [`ReportError::Draw`] if a figure cannot be drawn.
    pub fn html(mut self) -> Result<String, ReportError> {
        let instance = self.scene.instance;
        if self.scene.panels.is_empty() {
            self.scene.panels.push(Panel::stacked(instance));
        }
        let mut pieces: Vec<Piece> = self.answer.map(Piece::Verbatim).into_iter().collect();
        pieces.push(Piece::facts(self.facts));
        pieces.push(Piece::Viewer(ViewerPart::new(&self.scene, CAPTION)));
        pieces.extend(viewer::why(&self.scene));
        pieces.extend([Piece::heading("At the peak"), Piece::Table(viewer::peak(&self.scene))]);
        pieces.extend([
            Piece::heading("Sizes"),
            Piece::plot(size_distribution_plot(instance), "Buffers and bytes by size."),
        ]);
        let metadata = &self.scene.labels.metadata;
        if !metadata.is_empty() {
            pieces.extend([Piece::heading("Metadata"), Piece::facts(metadata.clone())]);
        }
        page_alone(&Page::new("", self.title).with(pieces), &self.command)
    }
}

pub(super) const CAPTION: &str = "Time across, address up; all placements on the same axes. Above them, the bytes in use at \
    each step. Where more than one buffer falls on a pixel, one of them is seen.";

fn facts_of(instance: &Instance, labels: &Labels) -> Vec<(String, String)> {
    let load = instance.load();
    let step = Clock::of(instance, labels).at(load.step);
    let facts = [
        ("buffers", count(instance.len() as u64)),
        ("steps", count(u64::from(instance.horizon().get()))),
        ("sum of sizes", exact(instance.total().get())),
        ("load", format!("{} at step {step}", exact(load.bytes.get()))),
        ("digest", instance.digest().to_string()),
    ];
    let permissions = instance.in_place().len();
    let in_place = (permissions > 0).then(|| {
        let without = exact(instance.load_without_in_place().bytes.get());
        [("in-place permissions", count(permissions as u64)), ("load without in-place", without)]
    });
    let facts = facts.into_iter().chain(in_place.into_iter().flatten());
    facts.map(|(name, value)| (name.to_owned(), value)).collect()
}

fn exact(number: u64) -> String {
    format!("{} ({} bytes)", bytes(number), count(number))
}
