//! Tests valid schedules in which one more event frees a buffer. The validator has to refuse such a schedule if
//!
//! - another event of the same engine frees the buffer, or the event itself does so already,
//! - the event is not surely after the one that writes the buffer, or
//! - another buffer at the same addresses is not surely written after the event.
//!
//! In all other cases the buffer only stays longer: the schedule is valid.

use std::collections::{BTreeMap, BTreeSet};

use planlab_dsa::BufferId;
use planlab_graph::{Schedule, Violation, validate_schedule};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::mutations::{MEMORY, add_free, random_schedule};
use super::references::slow;

/// An event: its engine, and its place there.
type Place = (usize, usize);

/// For each event, those that are surely complete when it starts: a search over the waits.
struct Order(BTreeMap<Place, BTreeSet<Place>>);

impl Order {
    fn new(schedule: &Schedule) -> Self {
        let mut earlier: BTreeMap<Place, BTreeSet<Place>> =
            list_places(schedule).map(|place| (place, BTreeSet::new())).collect();
        loop {
            let mut is_final = true;
            for place in list_places(schedule) {
                let known = add_waits(schedule, place, &earlier);
                is_final &= known.len() == earlier[&place].len();
                earlier.insert(place, known);
            }
            if is_final {
                return Self(earlier);
            }
        }
    }

    fn is_before(&self, first: Place, second: Place) -> bool {
        self.0[&second].contains(&first)
    }
}

fn list_places(schedule: &Schedule) -> impl Iterator<Item = Place> {
    (0..3).flat_map(move |engine| (0..schedule.events[engine].len()).map(move |place| (engine, place)))
}

/// What is known to be complete when an event starts, one step of the search further.
fn add_waits(
    schedule: &Schedule,
    (engine, place): Place,
    earlier: &BTreeMap<Place, BTreeSet<Place>>,
) -> BTreeSet<Place> {
    let event = &schedule.events[engine][place];
    let mut known = earlier[&(engine, place)].clone();
    for (other, (&after, &room)) in event.after.iter().zip(&event.room).enumerate() {
        let wanted = after.max(room) as usize;
        let wanted = if other == engine { wanted.max(place) } else { wanted };
        let Some(last) = wanted.checked_sub(1) else { continue };
        known.insert((other, last));
        known.extend(&earlier[&(other, last)]);
    }
    if let Some(started) = event.with {
        known.extend(&earlier[&(0, started as usize)]);
    }
    known
}

/// A schedule in which an event frees a buffer, too.
struct AddedFree<'s> {
    schedule: &'s Schedule,
    order: &'s Order,
    buffer: BufferId,
    event: Place,
}

impl AddedFree<'_> {
    fn is_harmless(&self) -> bool {
        let engine = &self.schedule.events[self.event.0];
        let frees = engine.iter().flat_map(|event| &event.frees).filter(|&&freed| freed == self.buffer);
        let writer = self.find_writer(self.buffer);
        let is_written =
            writer.is_none_or(|writer| writer == self.event || self.order.is_before(writer, self.event));
        frees.count() == 1
            && is_written
            && self.list_neighbours().into_iter().all(|other| self.are_apart(other))
    }

    fn find_writer(&self, buffer: BufferId) -> Option<Place> {
        let writes = |&(engine, place): &Place| self.schedule.events[engine][place].writes.contains(&buffer);
        list_places(self.schedule).find(writes)
    }

    /// The buffers that share an address with this one.
    fn list_neighbours(&self) -> Vec<BufferId> {
        let range = |buffer: BufferId| {
            let data = self.schedule.buffer(buffer);
            let start = data.offset.expect("it is placed").get();
            start..start + data.bytes.get()
        };
        let own = range(self.buffer);
        let others = (0..self.schedule.buffers.len()).map(BufferId::from_index);
        let shares_address = |&other: &BufferId| {
            let other_range = range(other);
            other != self.buffer && own.start < other_range.end && other_range.start < own.end
        };
        others.filter(shares_address).collect()
    }

    /// Whether one of the buffer and another is surely free when the other one is written.
    fn are_apart(&self, other: BufferId) -> bool {
        let is_gone = |first: BufferId, second: BufferId| {
            let Some(writer) = self.find_writer(second) else { return false };
            let frees = |&(engine, place): &Place| self.schedule.events[engine][place].frees.contains(&first);
            list_places(self.schedule).filter(frees).all(|free| self.order.is_before(free, writer))
        };
        is_gone(self.buffer, other) || is_gone(other, self.buffer)
    }
}

#[test]
fn added_free_is_refused_unless_the_buffer_may_stay() {
    let (mut harmless, mut twice, mut harmful) = (0_u32, 0_u32, 0_u32);
    for seed in 0..100 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (problem, verified) = random_schedule(&mut rng);
        let order = Order::new(verified.schedule());
        for _ in 0..40 {
            let mut schedule = verified.schedule().clone();
            let (buffer, event) = add_free(&mut rng, &mut schedule);
            let added = AddedFree { schedule: &schedule, order: &order, buffer, event };
            let verdict = validate_schedule(&problem, &schedule, None);
            let what = format!("seed {seed}: {event:?} frees buffer {buffer}: {verdict:?}");
            assert_eq!(verdict.is_ok(), added.is_harmless(), "{what}");
            match verdict {
                Ok(audited) => {
                    assert!((audited.seconds - verified.seconds()).abs() <= 1e-9 * audited.seconds, "{what}");
                    let later = schedule.with_times(|event| event.seconds * rng.random_range(1.0..9.0));
                    slow::run(&problem, &later, MEMORY)
                        .unwrap_or_else(|reason| panic!("{what}, but {reason}"));
                    harmless += 1;
                }
                Err(Violation::FreedTwice { .. }) => twice += 1,
                Err(Violation::NotWritten { .. } | Violation::Overlap { .. }) => harmful += 1,
                Err(_) => panic!("{what}"),
            }
        }
    }
    println!("{harmless} harmless, {twice} freed twice, {harmful} freed too early or held too long");
    assert!(harmless.min(twice).min(harmful) > 50, "{harmless} harmless, {twice} twice, {harmful} harmful");
}
