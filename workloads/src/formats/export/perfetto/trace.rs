//! A trace or a plan: counters of each arena, and a track of its buffers.

use std::collections::BTreeMap;

use planlab_dsa::{ArenaId, Buffer, Plan, printable_line};
use serde_json::{Value, json};

use super::document::{ALL, Events, THREAD, counter_event, process_event};
use crate::formats::Trace;
use crate::formats::export::heights;
use crate::formats::import::Framework;

/// The process of an arena; the first one holds the counters of all.
const fn process_of(arena: usize) -> usize {
    ALL + 1 + arena
}

/// Events of the trace viewer: a track of slices for each arena, a slice for each buffer; counters of each arena's load
/// and, with a plan, of the highest end among its live buffers and of its height. What the framework reserved
/// is a counter too: over time where it says so, else its peak. A step is a microsecond, or what the trace says
/// (`step-unit`).
///
/// # Panics
///
/// If the plan does not belong to the trace.
#[must_use]
pub fn write_perfetto(trace: &Trace, plan: Option<&Plan>, framework: Option<&Framework>) -> Vec<u8> {
    let clock = Clock::from_trace(trace);
    let workload = trace.labels.meta_value("workload").map(printable_line);
    let mut events = Events::new(&json!({ "workload": workload, "made by": "planlab export perfetto" }));
    events.push_event(&process_event(ALL, "memory"));
    write_reserved(trace, framework, &clock, &mut events);
    let heights = plan.map(|plan| heights(trace, plan));
    let is_alone = trace.instance.arenas().len() == 1;
    for (arena, id) in (0..trace.instance.arenas().len()).zip((0..).map(ArenaId::new)) {
        let name = format!("arena {}", trace.instance.arena_name(id));
        events.push_event(&process_event(process_of(arena), &name));
        let pid = if is_alone { ALL } else { process_of(arena) };
        for (step, bytes) in trace.instance.arena_load_curve(id).points() {
            events.push_event(&counter_event(pid, "load", clock.time_at(step.get()), bytes.get()));
        }
        if let Some((plan, heights)) = plan.zip(heights.as_ref()) {
            write_constant(trace, &clock, (pid, "height"), heights[arena].get(), &mut events);
            write_ends(trace, plan, arena, &clock, &mut events);
        }
    }
    write_slices(trace, plan, &clock, &mut events);
    events.finish_document()
}

/// Microseconds of a step.
struct Clock {
    /// Of a step of the file.
    scale: f64,
    /// Steps of the file, where the trace ranked them.
    original: BTreeMap<u32, u64>,
}

impl Clock {
    fn from_trace(trace: &Trace) -> Self {
        let mut original = BTreeMap::new();
        for (buffer, label) in trace.instance.buffers().iter().zip(&trace.labels.buffers) {
            if let Some((lower, upper)) = label.original_steps {
                original.insert(buffer.live.start().get(), lower);
                original.insert(buffer.live.end().get(), upper);
            }
        }
        let scale = trace.step_nanoseconds().map_or(1.0, |nanoseconds| nanoseconds as f64 / 1000.0);
        Self { scale, original }
    }

    fn time_at(&self, step: u32) -> f64 {
        self.time_of_raw(self.original.get(&step).copied().unwrap_or(u64::from(step)))
    }

    /// Of a step as the file has it.
    fn time_of_raw(&self, step: u64) -> f64 {
        step as f64 * self.scale
    }
}

/// Writes a counter that has one value from the first step to the last.
fn write_constant(trace: &Trace, clock: &Clock, (pid, name): (usize, &str), bytes: u64, events: &mut Events) {
    let starts = trace.instance.buffers().iter().map(|buffer| buffer.live.start().get());
    if let Some(first) = starts.min() {
        events.push_event(&counter_event(pid, name, clock.time_at(first), bytes));
        events.push_event(&counter_event(pid, name, clock.time_at(trace.instance.horizon().get()), bytes));
    }
}

/// Writes what the framework held: at each step if it says so, else at most.
fn write_reserved(trace: &Trace, framework: Option<&Framework>, clock: &Clock, events: &mut Events) {
    let segments = framework.map_or(&[][..], |framework| &framework.segments);
    let mut changes: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for segment in segments {
        let (from, to) = segment.steps;
        let came = &mut changes.entry(from).or_default().0;
        *came = came.saturating_add(segment.size);
        let went = &mut changes.entry(to).or_default().1;
        *went = went.saturating_add(segment.size);
    }
    let mut held = 0_u64;
    for (step, (came, went)) in changes {
        held = held.saturating_add(came).saturating_sub(went);
        events.push_event(&counter_event(ALL, "reserved", clock.time_of_raw(step), held));
    }
    if segments.is_empty() {
        let told = framework.and_then(|framework| framework.reserved_peak).map(|bytes| bytes.get());
        let written = trace.labels.metadata.iter().find(|(key, _)| key.ends_with("reserved-peak-bytes"));
        let peak = told.or_else(|| written.and_then(|(_, value)| value.parse().ok()));
        peak.into_iter()
            .for_each(|peak| write_constant(trace, clock, (ALL, "reserved (peak)"), peak, events));
    }
}

/// Writes the highest end among the live buffers of an arena, wherever it changes.
fn write_ends(trace: &Trace, plan: &Plan, arena: usize, clock: &Clock, events: &mut Events) {
    let mut changes: BTreeMap<u32, Vec<(bool, u64)>> = BTreeMap::new();
    for (buffer, offset) in trace.instance.buffers().iter().zip(&plan.offsets) {
        if buffer.arena.index() == arena {
            let end = offset.get() + buffer.size.get();
            changes.entry(buffer.live.start().get()).or_default().push((true, end));
            changes.entry(buffer.live.end().get()).or_default().push((false, end));
        }
    }
    // How many live buffers end at each address.
    let mut live: BTreeMap<u64, u32> = BTreeMap::new();
    let mut told = None;
    for (step, changes) in changes {
        for (begins, end) in changes {
            let count = live.entry(end).or_default();
            *count = if begins { *count + 1 } else { *count - 1 };
            if *count == 0 {
                live.remove(&end);
            }
        }
        let highest = live.last_key_value().map_or(0, |(&end, _)| end);
        if told.replace(highest) != Some(highest) {
            events.push_event(&counter_event(process_of(arena), "highest end", clock.time_at(step), highest));
        }
    }
}

fn write_slices(trace: &Trace, plan: Option<&Plan>, clock: &Clock, events: &mut Events) {
    for (row, (buffer, label)) in trace.instance.buffers().iter().zip(&trace.labels.buffers).enumerate() {
        let slice = |phase: &str, step: u32| {
            let pid = process_of(buffer.arena.index());
            let at = clock.time_at(step);
            let id = format!("{:#x}", row + 1);
            let name = if label.name.is_empty() { "unnamed" } else { &label.name };
            let name = printable_line(name);
            json!({ "ph": phase, "cat": "buffer", "id": id, "name": name, "pid": pid, "tid": THREAD, "ts": at })
        };
        let mut begin = slice("b", buffer.live.start().get());
        begin["args"] = describe_slice(buffer, plan.map(|plan| plan.offsets[row].get()), label);
        events.push_event(&begin);
        events.push_event(&slice("e", buffer.live.end().get()));
    }
}

fn describe_slice(buffer: &Buffer, offset: Option<u64>, label: &planlab_dsa::Label) -> Value {
    let mut about = json!({ "size": buffer.size.get() });
    offset.iter().for_each(|&offset| about["offset"] = offset.into());
    for (key, text) in [("category", &label.category), ("op", &label.op)] {
        text.iter().for_each(|text| about[key] = printable_line(text).into());
    }
    about
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Offset;

    use super::*;
    use crate::formats::export::perfetto::document::{counter_points as counters, parse_events};
    use crate::formats::export::testing::planned;
    use crate::formats::testing::trace;

    #[test]
    fn counters_and_slices_say_what_the_plan_says() {
        let (trace, plan) = planned();
        let events = parse_events(&write_perfetto(&trace, Some(&plan), None));
        assert_eq!(counters(&events, "load"), [(0.0, 64), (1.0, 96), (3.0, 80), (4.0, 48), (5.0, 0)]);
        assert_eq!(counters(&events, "height"), [(0.0, 96), (5.0, 96)]);
        assert_eq!(counters(&events, "highest end"), [(0.0, 64), (1.0, 96), (4.0, 48), (5.0, 0)]);
        let begins: Vec<&Value> = events.iter().filter(|event| event["ph"] == "b").collect();
        assert_eq!(begins.len(), 3);
        assert_eq!((&begins[1]["args"]["offset"], &begins[1]["name"]), (&64.into(), &"b, \"quoted\"".into()));
        // Whatever begins ends, later, under the same name and number.
        for begin in begins {
            let ends = |event: &&Value| {
                event["ph"] == "e" && event["id"] == begin["id"] && event["name"] == begin["name"]
            };
            let end = events.iter().find(ends).expect("it ends");
            assert!(end["ts"].as_f64() > begin["ts"].as_f64());
        }
    }

    #[test]
    fn several_arenas_have_counters_of_their_own() {
        let text = "# arena fast: 100\n# arena slow: 900\nid,lower,upper,size,arena\na,0,2,60,fast\nb,1,3,700,slow\n";
        let trace = trace(text);
        let plan = Plan::from_offsets([0, 0].map(Offset::new));
        let events = parse_events(&write_perfetto(&trace, Some(&plan), None));
        let highest = |name: &str, pid: usize| {
            let own = events.iter().filter(|event| event["pid"] == pid && event["name"] == name);
            own.filter_map(|event| event["args"]["bytes"].as_u64()).max()
        };
        assert_eq!([ALL, 2, 3].map(|pid| highest("load", pid)), [None, Some(60), Some(700)]);
        assert_eq!([ALL, 2, 3].map(|pid| highest("height", pid)), [None, Some(60), Some(700)]);
    }

    #[test]
    fn a_trace_alone_has_its_load() {
        let (trace, _) = planned();
        let events = parse_events(&write_perfetto(&trace, None, None));
        assert_eq!(counters(&events, "load").len(), 5);
        assert!(counters(&events, "height").is_empty() && counters(&events, "highest end").is_empty());
    }
}
