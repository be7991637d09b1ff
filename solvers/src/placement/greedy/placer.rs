//! Places buffers one by one: the part that all greedy planners share.
//!
//! - Pinned buffers are placed before all others.
//! - A paused buffer blocks only its active pieces, and is blocked only by what is active then.
//! - Buffers of other arenas never block; buffers to keep apart block at all steps.
//! - In place: suppose a buffer `b` may overwrite an already placed `a`, whose place no other has taken. Then `b` has a
//!   second kind of offset to choose from: those at which its bytes lie inside `a`'s, with `b` counted from the step
//!   after its first. The rule compares them with the ordinary offsets. Of equals, the ordinary offset wins, then the
//!   input of the lower id. (An input that is placed after its output is placed like any other buffer.) Hand-overs are
//!   made only in a run that counts them.
//! - Offsets are multiples of the alignment.

use planlab_dsa::{Alignment, BufferId, Halt, InPlace, Instance, LiveRange, Offset, Piece, Plan, Run, Scope};

use crate::demands::{fits_arenas, pinned_hand_overs};
use crate::tick::Tick;
use crate::trees::{Adjacency, Blocked, Columns, Occupancy, Room, Span};

/// Which of the free offsets a buffer takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    FirstFit,
    /// The lowest of the smallest sufficient gap; above everything if no gap suffices. A gap is measured from the end
    /// of what lies below it.
    BestFit,
    /// The same, but a gap is measured from the first aligned offset in it.
    BestFitAligned,
    /// The same, but a gap is measured from the first aligned offset in it, and the smallest so far from the end of
    /// what lies below that.
    BestFitMixed,
}

/// Places every buffer in `order` by `rule` and offers the plan if it is lower than the incumbent. Stops early once the
/// plan can no longer be lower.
pub(crate) fn plan_in_order(run: &mut Run<'_>, order: &[BufferId], rule: Rule) -> Result<(), Halt> {
    let is_beaten =
        |run: &Run<'_>, height: u64| run.height_to_beat().is_some_and(|best| height >= best.get());
    place_buffers(run, order, rule, is_beaten)?.map_or(Ok(()), |plan| run.offer(plan))
}

/// Places every buffer in `order` by `rule`. No plan if the pins or the capacities of the arenas do not admit the
/// rule's choice.
pub(crate) fn place_in_order(
    run: &mut Run<'_>,
    order: &[BufferId],
    rule: Rule,
) -> Result<Option<Plan>, Halt> {
    place_buffers(run, order, rule, |_, _| false)
}

/// The same, with the height, if that is at most `most` bytes.
pub(crate) fn place_at_most(
    run: &mut Run<'_>,
    order: &[BufferId],
    rule: Rule,
    most: u64,
) -> Result<Option<(Plan, u64)>, Halt> {
    let plan = place_buffers(run, order, rule, |_, height| height > most)?;
    let sized = plan.and_then(|plan| plan.height(run.instance()).map(|height| (plan, height.get())));
    Ok(sized.filter(|&(_, height)| height <= most))
}

fn place_buffers(
    run: &mut Run<'_>,
    order: &[BufferId],
    rule: Rule,
    is_beaten: impl Fn(&Run<'_>, u64) -> bool,
) -> Result<Option<Plan>, Halt> {
    let instance = run.instance();
    let Some(mut placer) = Placer::new(instance, run.scope() == Scope::Any) else { return Ok(None) };
    for (placed, &id) in order.iter().filter(|id| instance.buffer(**id).pin.is_none()).enumerate() {
        let work = placer.place_buffer(id, rule);
        run.tick(work)?;
        if placed % PLACED_PER_LOOK == 0 && is_beaten(run, placer.height()) {
            return Ok(None);
        }
    }
    Ok(placer.finish_plan())
}

/// The offsets, in bytes, that first fit gives in an order; pinned buffers come first. Uses no hand-overs, and knows one
/// arena.
pub(crate) fn first_fit(instance: &Instance, order: &[u32], tick: &mut Tick<'_>) -> Result<Vec<u64>, Halt> {
    let mut placer = Placer::with_columns(instance, Columns::of_pieces(instance), &[], false);
    for id in order.iter().map(|&id| BufferId::new(id)).filter(|id| instance.buffer(*id).pin.is_none()) {
        tick(placer.place_buffer(id, Rule::FirstFit))?;
    }
    Ok(placer.offsets().collect())
}

/// The number of buffers placed between two checks of the incumbent.
const PLACED_PER_LOOK: usize = 32;

/// An offset chosen by a rule: the smaller, the better.
type Choice = (Preference, Option<BufferId>);

/// A rule's rating of an offset: a key to minimise, then the offset itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Preference {
    /// For best fit: the size of the gap minus the buffer's; above everything: the largest number.
    slack: u64,
    offset: u64,
}

/// The buffers placed so far, and the addresses that they block.
pub(super) struct Placer<'i> {
    instance: &'i Instance,
    columns: Columns,
    arenas: Vec<Occupancy>,
    offsets: Vec<Option<u64>>,
    /// The highest end so far, by arena, in bytes.
    tops: Vec<u64>,
    inputs: Adjacency,
    apart: Adjacency,
    is_taken: Vec<bool>,
    in_place: Vec<InPlace>,
}

impl<'i> Placer<'i> {
    /// `None` if the pinned buffers cannot all stay at their pins.
    pub(super) fn new(instance: &'i Instance, hands_over: bool) -> Option<Self> {
        let pinned = pinned_hand_overs(instance)?;
        Some(Self::with_columns(instance, Columns::new(inserted_ranges(instance)), &pinned, hands_over))
    }

    fn with_columns(instance: &'i Instance, columns: Columns, pinned: &[InPlace], hands_over: bool) -> Self {
        let permissions = if hands_over { instance.in_place() } else { &[] };
        let permissions = permissions.iter().map(|pair| (pair.output.get(), pair.input.get()));
        let mut this = Self {
            instance,
            arenas: vec![Occupancy::new(columns.len()); instance.arenas().len()],
            columns,
            offsets: vec![None; instance.len()],
            tops: vec![0; instance.arenas().len()],
            inputs: Adjacency::new(instance.len(), permissions),
            apart: Adjacency::kept_apart(instance),
            is_taken: vec![false; instance.len()],
            in_place: Vec::new(),
        };
        for id in instance.ids() {
            if let Some(pin) = instance.buffer(id).pin {
                let input = pinned.iter().find(|pair| pair.output == id).map(|pair| pair.input);
                this.put_at(id, pin.get(), input);
            }
        }
        this
    }

    /// Places one buffer; returns the work that it took.
    fn place_buffer(&mut self, id: BufferId, rule: Rule) -> u64 {
        let mut blocked = self.blocked_offsets(id, false);
        let free = self.choose_offset(id, &mut blocked, rule, (0, None)).expect("there is no end above");
        let work = blocked.look_count() + 1;
        let mut best: Choice = (free, None);
        for &input in self.inputs.of(id.get()) {
            if let Some(other) =
                self.hand_over(id, BufferId::new(input), rule).filter(|other| other.0 < best.0)
            {
                best = other;
            }
        }
        let (Preference { offset, .. }, input) = best;
        self.put_at(id, offset, input);
        work
    }

    /// What blocks a buffer; with `is_late`, without its first step (it takes another's place then).
    pub(super) fn blocked_offsets(&self, id: BufferId, is_late: bool) -> Blocked<'_> {
        let buffer = self.instance.buffer(id);
        let mut blocked = Blocked::default();
        let occupancy = &self.arenas[buffer.arena.index()];
        for piece in active_pieces(self.instance, id, is_late) {
            let window = Span { start: piece.window.start.get(), end: piece.window.end.get() };
            occupancy.block_window(self.columns.columns_of(piece.steps), window, &mut blocked);
        }
        let apart =
            self.apart.of(id.get()).iter().filter_map(|&other| self.placed_span(BufferId::new(other)));
        blocked.add_spans(apart.collect(), Span { start: 0, end: buffer.size.get() });
        blocked
    }

    /// The addresses of a placed buffer.
    fn placed_span(&self, id: BufferId) -> Option<Span> {
        let start = self.offsets[id.index()]?;
        Some(Span { start, end: start + self.instance.buffer(id).size.get() })
    }

    /// The best offset for the rule among the free offsets from `from` to `last`.
    fn choose_offset(
        &self,
        id: BufferId,
        blocked: &mut Blocked<'_>,
        rule: Rule,
        (from, last): (u64, Option<u64>),
    ) -> Option<Preference> {
        let align = self.instance.buffer(id).align;
        let is_in = |offset: u64| last.is_none_or(|last| offset <= last);
        match rule {
            Rule::FirstFit => {
                let offset = blocked.lowest_free(from, align);
                is_in(offset).then_some(Preference { slack: 0, offset })
            }
            Rule::BestFit | Rule::BestFitAligned | Rule::BestFitMixed => {
                let rooms = blocked.free_rooms(from).take_while(|room| is_in(room.low));
                let rooms = rooms.map(|room| Room { high: min_of_some(room.high, last), ..room });
                smallest_room(rooms, align, rule)
            }
        }
    }

    /// The best offset for the rule among those inside a placed input.
    fn hand_over(&self, id: BufferId, input: BufferId, rule: Rule) -> Option<Choice> {
        let Span { start, end } = self.placed_span(input).filter(|_| !self.is_taken[input.index()])?;
        let last = end - self.instance.buffer(id).size.get();
        let mut blocked = self.blocked_offsets(id, true);
        let found = self.choose_offset(id, &mut blocked, rule, (start, Some(last)))?;
        Some((found, Some(input)))
    }

    pub(super) fn put_at(&mut self, id: BufferId, offset: u64, input: Option<BufferId>) {
        let buffer = self.instance.buffer(id);
        self.offsets[id.index()] = Some(offset);
        let top = &mut self.tops[buffer.arena.index()];
        *top = (*top).max(offset + buffer.size.get());
        if let Some(input) = input {
            self.is_taken[input.index()] = true;
            self.in_place.push(InPlace { input, output: id });
        }
        let occupancy = &mut self.arenas[buffer.arena.index()];
        for piece in active_pieces(self.instance, id, input.is_some()) {
            let span =
                Span { start: offset + piece.window.start.get(), end: offset + piece.window.end.get() };
            occupancy.insert_rectangle(self.columns.columns_of(piece.steps), span);
        }
    }

    /// The height of the buffers placed so far, in bytes: it only grows.
    fn height(&self) -> u64 {
        self.tops.iter().sum()
    }

    fn offsets(&self) -> impl Iterator<Item = u64> {
        self.offsets.iter().map(|offset| offset.expect("every buffer was placed"))
    }

    /// The plan, if it keeps the capacities of the arenas.
    pub(super) fn finish_plan(self) -> Option<Plan> {
        let offsets: Vec<Offset> = self.offsets().map(Offset::new).collect();
        fits_arenas(self.instance, &offsets).then_some(Plan { offsets, in_place: self.in_place })
    }
}

/// The smallest room that has an aligned offset, the lowest of equals; the room without an end comes last.
fn smallest_room(rooms: impl Iterator<Item = Room>, align: Alignment, rule: Rule) -> Option<Preference> {
    let mut best: Option<Preference> = None;
    for room in rooms {
        let offset = align.round_up(room.low).expect("an instance leaves room for all padding");
        if room.high.is_some_and(|high| high < offset) {
            continue;
        }
        let from = |low: u64| room.high.map_or(u64::MAX, |high| high - low);
        let (seen, kept) = match rule {
            Rule::BestFitAligned => (from(offset), from(offset)),
            Rule::BestFitMixed => (from(offset), from(room.low)),
            Rule::BestFit | Rule::FirstFit => (from(room.low), from(room.low)),
        };
        if best.is_none_or(|best| seen < best.slack) {
            best = Some(Preference { slack: kept, offset });
        }
        if best.is_some_and(|best| best.slack == 0) {
            break;
        }
    }
    best
}

fn min_of_some(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.into_iter().chain(b).min()
}

/// The active pieces of a buffer; with `is_late`, without its first step.
fn active_pieces(instance: &Instance, id: BufferId, is_late: bool) -> impl Iterator<Item = Piece> {
    let buffer = instance.buffer(id);
    let first = buffer.live.start().get() + u32::from(is_late);
    buffer.active_pieces().filter_map(move |piece| {
        let steps = LiveRange::new(piece.steps.start().get().max(first), piece.steps.end().get()).ok()?;
        Some(Piece { steps, window: piece.window })
    })
}

/// Every range of steps that is ever inserted or queried.
fn inserted_ranges(instance: &Instance) -> impl Iterator<Item = (u32, u32)> {
    let outputs = instance.in_place().iter().map(|pair| pair.output);
    let late = outputs.flat_map(|id| active_pieces(instance, id, true));
    let all = instance.buffers().iter().flat_map(planlab_dsa::Buffer::active_pieces).chain(late);
    all.map(|piece| piece.steps.into())
}
