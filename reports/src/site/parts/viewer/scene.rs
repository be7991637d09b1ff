//! What a viewer shows: one instance, and placements of it.

use std::borrow::Cow;

use planlab_dsa::{Bytes, Instance, Labels, VerifiedPlan};

use crate::data::instances::blocked::Blocked;
use crate::data::instances::own::{Held, OwnPlacement};
use crate::figures::layout::Layout;

/// What is to be seen: one arena.
pub(crate) struct Scene<'a> {
    /// An instance of one arena.
    pub(crate) instance: Cow<'a, Instance>,
    pub(crate) labels: Cow<'a, Labels>,
    /// The first step after all; that of the whole instance, so that several arenas have one axis of time.
    pub(crate) horizon: u32,
    /// Bytes that the arena holds.
    pub(crate) capacity: Option<u64>,
    /// At least one.
    pub(crate) panels: Vec<Panel>,
    pub(crate) stacks: CallStacks<'a>,
    /// Bytes below which no plan is, if that is known to be more than the load.
    pub(crate) bound: Option<u64>,
}

impl<'a> Scene<'a> {
    /// The scene of an instance of one arena, without panels.
    pub(crate) fn new(instance: Cow<'a, Instance>, labels: Cow<'a, Labels>) -> Self {
        Self {
            labels,
            horizon: instance.horizon().get(),
            capacity: instance.arenas()[0].capacity.map(Bytes::get),
            instance,
            panels: Vec::new(),
            stacks: CallStacks::default(),
            bound: None,
        }
    }
}

/// A placement of all buffers, or of those that have one.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    pub(crate) name: String,
    /// As the script calls it: a verified `plan`, the framework's `own` placement, or all buffers `stacked`.
    pub(crate) kind: &'static str,
    pub(crate) layout: Layout,
    /// Memory that a framework held.
    pub(crate) held: Vec<Held>,
    /// Why it is so high.
    pub(crate) blocked: Option<Blocked>,
}

impl Panel {
    pub(crate) fn from_plan(name: impl Into<String>, instance: &Instance, plan: &VerifiedPlan<'_>) -> Self {
        let layout = Layout::new(instance, Some(plan));
        let blocked = Blocked::from_layout(instance, &layout);
        Self { name: name.into(), kind: "plan", layout, held: Vec::new(), blocked }
    }

    /// The framework's own placement. What it held says more than its addresses, which have no common height.
    pub(crate) fn from_framework(instance: &Instance, own: &OwnPlacement) -> Self {
        let (layout, held) = own.layout_with_held(instance);
        let blocked = if held.is_empty() { Blocked::from_layout(instance, &layout) } else { None };
        Self { name: own.name.clone(), kind: "own", layout, held, blocked }
    }

    pub(crate) fn without_reuse(instance: &Instance) -> Self {
        let layout = Layout::new(instance, None);
        let name = "Buffers without reuse".to_owned();
        Self { name, kind: "stacked", layout, held: Vec::new(), blocked: None }
    }
}

/// The call stacks that allocated buffers; empty if they are not known.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CallStacks<'a> {
    /// Frames: `model.py:12 forward`.
    pub frames: &'a [String],
    /// Numbers of frames, the innermost first.
    pub stacks: Vec<&'a [u32]>,
    /// Which of the stacks allocated each buffer.
    pub of: &'a [Option<u32>],
}

impl<'a> CallStacks<'a> {
    /// Stacks of numbers of `frames`, and the number of the stack of each buffer.
    #[must_use]
    pub const fn new(frames: &'a [String], stacks: Vec<&'a [u32]>, of: &'a [Option<u32>]) -> Self {
        Self { frames, stacks, of }
    }

    pub(crate) fn innermost_frame(&self, buffer: usize) -> Option<&'a str> {
        let number = (*self.of.get(buffer)?)?;
        let frame = *self.stacks.get(number as usize)?.first()?;
        self.frames.get(frame as usize).map(String::as_str)
    }
}
