//! A plan as one JSON object.

use planlab_dsa::Plan;
use serde::Serialize;

use super::heights;
use crate::formats::Trace;

/// The version of the object, raised when a field changes its meaning.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'t> {
    planlab: &'static str,
    version: u32,
    workload: Option<&'t str>,
    height: u64,
    load: u64,
    arenas: Vec<ArenaObject<'t>>,
    buffers: Vec<BufferObject<'t>>,
}

#[derive(Serialize)]
struct ArenaObject<'t> {
    name: &'t str,
    capacity: Option<u64>,
    height: u64,
    load: u64,
}

#[derive(Serialize)]
struct BufferObject<'t> {
    id: &'t str,
    lower: u64,
    upper: u64,
    size: u64,
    alignment: u64,
    offset: u64,
    arena: u16,
    overwrites: Option<&'t str>,
    category: Option<&'t str>,
    op: Option<&'t str>,
}

/// A plan as JSON: height and load in bytes (sums over the arenas), the arenas, and an object for each buffer in the trace's order. A buffer
/// has its half-open life in the file's steps and the id of the buffer whose place it takes (`overwrites`).
///
/// # Panics
///
/// If the plan does not belong to the trace.
#[must_use]
pub fn write_plan_json(trace: &Trace, plan: &Plan) -> Vec<u8> {
    let heights = heights(trace, plan);
    let labels = &trace.labels.buffers;
    let mut overwrites = vec![None; trace.instance.len()];
    for pair in &plan.in_place {
        overwrites[pair.output.index()] = Some(labels[pair.input.index()].name.as_str());
    }
    let loads = trace.instance.arena_loads();
    let arenas = trace.instance.arenas().iter().zip(heights.iter().zip(loads));
    let arenas = arenas.map(|(arena, (height, load))| ArenaObject {
        name: &arena.name,
        capacity: arena.capacity.map(|capacity| capacity.get()),
        height: height.get(),
        load: load.bytes.get(),
    });
    let rows = trace.instance.buffers().iter().zip(labels).zip(plan.offsets.iter().zip(overwrites));
    let buffers = rows.enumerate().map(|(index, ((buffer, label), (offset, overwrites)))| {
        let (lower, upper) = trace.life(index);
        BufferObject {
            id: &label.name,
            lower,
            upper,
            size: buffer.size.get(),
            alignment: buffer.align.get(),
            offset: offset.get(),
            arena: u16::try_from(buffer.arena.index()).expect("an arena's number has 16 bits"),
            overwrites,
            category: label.category.as_deref(),
            op: label.op.as_deref(),
        }
    });
    let document = Document {
        planlab: "plan",
        version: VERSION,
        workload: trace.labels.meta_value("workload"),
        height: heights.iter().map(|height| height.get()).sum(),
        load: trace.instance.load().bytes.get(),
        arenas: arenas.collect(),
        buffers: buffers.collect(),
    };
    let mut json = serde_json::to_vec(&document).expect("names and numbers are JSON");
    json.push(b'\n');
    json
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::formats::export::testing::planned;

    #[test]
    fn the_object_says_what_the_plan_says() {
        let (trace, plan) = planned();
        let object: Value = serde_json::from_slice(&write_plan_json(&trace, &plan)).expect("JSON");
        assert_eq!((object["height"].as_u64(), object["load"].as_u64()), (Some(96), Some(96)));
        assert_eq!(object["workload"], "small net");
        let buffers = object["buffers"].as_array().expect("an array");
        assert_eq!(buffers[1]["id"], "b, \"quoted\"");
        assert_eq!(buffers[1]["offset"], 64);
        assert_eq!(buffers[2]["overwrites"], "a");
        assert_eq!((&buffers[2]["lower"], &buffers[2]["upper"]), (&2.into(), &5.into()));
        assert_eq!((&object["arenas"][0]["height"], &object["arenas"][0]["load"]), (&96.into(), &96.into()));
    }
}
