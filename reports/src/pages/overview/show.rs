//! One instance, with any number of placements, as one file.

use std::borrow::Cow;

use planlab_dsa::{ArenaPart, Instance, Labels, VerifiedPlan};

use crate::ReportError;
use crate::data::instances::clock::Clock;
use crate::data::instances::own::OwnPlacement;
use crate::figures::{ArenaFacts, size_distribution_plot};
use crate::format::{exact_bytes, format_count, format_percent};
use crate::site::output::page_alone;
use crate::site::page::{Page, Piece};
use crate::site::parts::viewer::{CallStacks, Panel, Scene, ViewerPart};
use crate::site::words;

/// A page about one instance: a map of its placements to zoom and search, why they are as high as they are, and what is in
/// use at the peak. Several arenas have a section each. A single file that needs nothing else.
pub struct ShowPage<'a> {
    instance: &'a Instance,
    labels: &'a Labels,
    arenas: Vec<ArenaSection<'a>>,
    title: String,
    command: String,
    answer: Option<String>,
    facts: Vec<(String, String)>,
}

/// What a page shows of one arena.
struct ArenaSection<'a> {
    /// The arena in the whole instance; `None` if it is the only one.
    part: Option<(ArenaFacts, ArenaPart)>,
    scene: Scene<'a>,
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
        let arenas = ArenaSection::list_arenas(instance, labels);
        let (title, command) = (title.into(), command.into());
        Self { instance, labels, arenas, title, command, answer: None, facts: Vec::new() }
    }

    /// Adds a plan under a name, below those before it.
    #[must_use]
    pub fn with_plan(mut self, name: &str, plan: &VerifiedPlan<'_>) -> Self {
        if self.arenas.len() > 1 {
            let height = format!("{} in all", exact_bytes(plan.height().get()));
            self.facts.push((format!("height of {name}"), height));
        }
        self.arenas.iter_mut().for_each(|arena| arena.add_plan(name, plan));
        self
    }

    /// Adds the framework's own placement. A framework says nothing of arenas: buffers of several have none.
    #[must_use]
    pub fn with_own(mut self, own: &OwnPlacement) -> Self {
        let [arena] = &mut self.arenas[..] else { return self };
        let panel = Panel::from_framework(&arena.scene.instance, own);
        // Without segments these are addresses of a malloc: their span is not what the process held.
        let remark =
            if panel.held.is_empty() { "; the file does not say how much of that was held" } else { "" };
        let height = exact_bytes(panel.layout.height);
        let span = format!("{height} from lowest to highest, without ranges never used{remark}");
        arena.facts.push((format!("addresses of {}", own.name), span));
        arena.scene.panels.push(panel);
        self
    }

    /// Adds the call stacks that allocated the buffers; no framework that says them has several arenas.
    #[must_use]
    pub fn with_stacks(mut self, stacks: CallStacks<'a>) -> Self {
        if let [arena] = &mut self.arenas[..] {
            arena.scene.stacks = stacks;
        }
        self
    }

    /// Sets a proved bound on the height of every plan, bytes; over several arenas, on the sum of their heights.
    #[must_use]
    pub fn with_bound(mut self, bytes: u64) -> Self {
        self.facts.push(("bound".to_owned(), exact_bytes(bytes)));
        if let [arena] = &mut self.arenas[..] {
            arena.scene.bound = Some(bytes);
        }
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
    pub fn to_html(self) -> Result<String, ReportError> {
        let mut pieces: Vec<Piece> = self.answer.map(Piece::Verbatim).into_iter().collect();
        let mut facts = facts_of(self.instance, self.arenas.len());
        let mut arenas = self.arenas;
        if let [arena] = &mut arenas[..] {
            facts.append(&mut arena.facts);
        }
        facts.extend(self.facts);
        facts.push(("digest".to_owned(), self.instance.digest().to_string()));
        pieces.push(Piece::facts(facts));
        for (number, arena) in arenas.into_iter().enumerate() {
            pieces.extend(arena.section_pieces(number));
        }
        pieces.extend([
            Piece::heading("Sizes"),
            Piece::plot(size_distribution_plot(self.instance), "Buffers and bytes by size."),
        ]);
        let metadata = &self.labels.metadata;
        if !metadata.is_empty() {
            pieces.extend([Piece::heading("Metadata"), Piece::facts(metadata.clone())]);
        }
        page_alone(&Page::new("", self.title).with(pieces), &self.command)
    }
}

impl<'a> ArenaSection<'a> {
    /// A section for each arena of an instance.
    fn list_arenas(instance: &'a Instance, labels: &'a Labels) -> Vec<Self> {
        if instance.arenas().len() == 1 {
            let scene = Scene::new(Cow::Borrowed(instance), Cow::Borrowed(labels));
            let facts = load_facts(&scene);
            return vec![Self { part: None, scene, facts }];
        }
        let horizon = instance.horizon().get();
        let section = |(arena, part): (ArenaFacts, ArenaPart)| {
            let own = part.ids.iter().map(|id| labels.buffers[id.index()].clone());
            let labels = Labels { buffers: own.collect(), metadata: Vec::new() };
            let scene = Scene::new(Cow::Owned(part.instance.clone()), Cow::Owned(labels));
            let scene = Scene { horizon, capacity: arena.capacity, ..scene };
            let facts = load_facts(&scene);
            Self { part: Some((arena, part)), scene, facts }
        };
        ArenaFacts::list_arenas(instance).into_iter().zip(instance.split_arenas()).map(section).collect()
    }

    /// Adds what a plan of the whole instance puts into this arena.
    fn add_plan(&mut self, name: &str, plan: &VerifiedPlan<'_>) {
        let (panel, facts) = match &self.part {
            None => self.own_panel(name, plan),
            Some((_, part)) => {
                let own = part.instance.verify(plan.in_part(part));
                self.own_panel(name, &own.expect("a part of a valid plan is valid"))
            }
        };
        self.facts.extend(facts);
        self.scene.panels.push(panel);
    }

    /// The map of a plan of this arena alone, and what is said of it.
    fn own_panel(&self, name: &str, plan: &VerifiedPlan<'_>) -> (Panel, Vec<(String, String)>) {
        let load = self.scene.instance.load().bytes;
        let (height, over) = (plan.height(), planlab_dsa::fragmentation(plan.height(), load));
        let above = format!("{}, {} above the load", exact_bytes(height.get()), format_percent(over));
        let mut facts = vec![(format!("height of {name}"), above)];
        if !plan.in_place().is_empty() {
            facts.push((format!("hand-overs of {name}"), format_count(plan.in_place().len() as u64)));
        }
        (Panel::from_plan(name, &self.scene.instance, plan), facts)
    }

    /// The pieces of the section; sections count from 0.
    fn section_pieces(mut self, number: usize) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let name = self.part.as_ref().and_then(|(arena, _)| arena.name.clone());
        if let Some(name) = &name {
            pieces.extend([Piece::heading(name.replacen('a', "A", 1)), Piece::facts(self.facts)]);
            if self.scene.instance.is_empty() {
                return pieces;
            }
        }
        if self.scene.panels.is_empty() {
            let panel = Panel::without_reuse(&self.scene.instance);
            self.scene.panels.push(panel);
        }
        let viewer = ViewerPart::new(&self.scene, CAPTION);
        pieces.push(Piece::Viewer(match &name {
            Some(name) => viewer.of_arena(name, number),
            None => viewer,
        }));
        pieces.extend(words::reason_pieces(&self.scene));
        pieces.extend([Piece::heading("At the peak"), Piece::Table(words::peak_table(&self.scene))]);
        pieces
    }
}

const CAPTION: &str = "Time across, address up; all placements on the same axes. Above them, the bytes in use at \
    each step. Where more than one buffer falls on a pixel, one of them is seen.";

fn facts_of(instance: &Instance, arenas: usize) -> Vec<(String, String)> {
    let mut facts = vec![
        ("buffers", format_count(instance.len() as u64)),
        ("steps", format_count(u64::from(instance.horizon().get()))),
        ("sum of sizes", exact_bytes(instance.total_size().get())),
    ];
    let permissions = instance.in_place().len();
    if permissions > 0 {
        facts.push(("in-place permissions", format_count(permissions as u64)));
        facts.push(("load without in-place", exact_bytes(instance.load_without_in_place().bytes.get())));
    }
    if arenas > 1 {
        facts.push(("arenas", format_count(arenas as u64)));
    }
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The load of an arena and when it is reached, and its capacity.
fn load_facts(scene: &Scene<'_>) -> Vec<(String, String)> {
    let load = scene.instance.load();
    let step = Clock::from_labels(&scene.instance, &scene.labels).original_step(load.step);
    let mut facts = vec![("load".to_owned(), format!("{} at step {step}", exact_bytes(load.bytes.get())))];
    facts.extend(scene.capacity.map(|capacity| ("capacity".to_owned(), exact_bytes(capacity))));
    facts
}
