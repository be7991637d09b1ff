//! An explanation for programs.

use planlab_dsa::BufferId;
use planlab_workloads::formats::import::Count;
use planlab_workloads::waste::Cause;
use serde_json::{Value, json};

use super::explained::Explained;
use super::failure::{CapacityAnswer, Failed};
use super::largest::Largest;
use crate::shell::JSON_VERSION;
use crate::verbs::convert::dropped_object;
use crate::verbs::fit::Fit;
use crate::verbs::view;

pub(super) fn explained_object(explained: &Explained<'_>) -> Value {
    let Explained { trace, framework, best, .. } = *explained;
    let categories = explained.peak_by_category().into_iter();
    json!({
        "version": JSON_VERSION,
        "file": explained.file,
        "part": explained.part,
        "why": explained.why,
        "others": explained.others,
        "framework": (!framework.name.is_empty()).then_some(framework.name),
        "buffers": trace.instance.len(),
        "reserved": explained.waste.as_ref().map(|waste| waste.reserved),
        "allocated": framework.allocated_peak,
        "counts": framework.counts.iter().map(count_object).collect::<Vec<_>>(),
        "requested": explained.requested_peak(),
        "load": trace.instance.load().bytes,
        "load_without_in_place": trace.instance.load_without_in_place().bytes,
        "alignment": explained.common_alignment(),
        "plan": view::record_object(best),
        "difference": difference_object(explained),
        "peak": {
            "step": explained.peak_step,
            "buffers": explained.peak.iter().map(|id| buffer_object(explained, *id)).collect::<Vec<_>>(),
            "categories": categories
                .map(|(name, count, bytes)| json!({ "category": name, "buffers": count, "bytes": bytes }))
                .collect::<Vec<_>>(),
        },
        "failures": explained.failures.iter().map(failure_object).collect::<Vec<_>>(),
        "failures_in_all": framework.failures.len(),
        "batch": explained.largest.as_ref().map(batch_object),
        "dropped": explained.dropped.iter().map(dropped_object).collect::<Vec<_>>(),
    })
}

fn count_object(count: &Count) -> Value {
    json!({ "what": count.what, "framework": count.theirs, "trace": count.ours })
}

fn difference_object(explained: &Explained<'_>) -> Option<Value> {
    let (waste, height) = (explained.waste.as_ref()?, explained.best.height?);
    let part = |(cause, bytes): (Cause, i128)| json!({ "cause": cause.name(), "bytes": big_number(bytes) });
    Some(json!({
        "step": waste.step,
        "reserved": waste.reserved,
        "live": waste.live,
        "outside": waste.outside,
        "bytes": big_number(i128::from(waste.reserved) - i128::from(height)),
        "parts": waste.parts_at(height).map(part),
        "needed_elsewhere": waste.needed_elsewhere(height),
    }))
}

/// JSON has no numbers of 128 bits, and no difference of two of 64 needs them where memory is real.
fn big_number(bytes: i128) -> Value {
    i64::try_from(bytes).map_or(Value::Null, Value::from)
}

fn buffer_object(explained: &Explained<'_>, id: BufferId) -> Value {
    let label = &explained.trace.labels.buffers[id.index()];
    let buffer = explained.trace.instance.buffer(id);
    let live = (u64::from(buffer.live.start().get()), u64::from(buffer.live.end().get()));
    let (start, end) = label.original_steps.unwrap_or(live);
    json!({
        "name": label.name,
        "size": buffer.size,
        "requested": explained.requested_size(id),
        "start": start,
        "end": end,
        "stream": explained.framework.streams.get(id.index()),
        "category": label.category,
        "op": label.op,
        "stack": explained.framework.call_stack(id.index()).collect::<Vec<&str>>(),
    })
}

fn failure_object(failed: &Failed) -> Value {
    let (answer, bytes) = match failed.answer {
        CapacityAnswer::Fits { height } => ("fits", Some(height)),
        CapacityAnswer::TooMuch { needed } => ("too-much", Some(needed)),
        CapacityAnswer::Unknown => ("unknown", None),
    };
    json!({
        "step": failed.event.step,
        "requested": failed.event.size,
        "device_free": failed.event.device_free,
        "stream": failed.event.stream,
        "reserved": failed.reserved,
        "live": failed.live,
        "capacity": failed.capacity,
        "is_limited": failed.is_limited,
        "plan": answer,
        "plan_bytes": bytes,
        "stack": failed.event.stack,
    })
}

fn batch_object(largest: &Largest) -> Value {
    json!({
        "recorded": largest.recorded,
        "capacity": largest.capacity,
        "kept": { "buffers": largest.kept.0, "bytes": largest.kept.1 },
        "largest": largest.planned.map(|(batch, _)| batch),
        "height": largest.planned.map(|(_, height)| height),
        "too_large": largest.refuted.map(|(batch, _)| batch),
        "needed": largest.refuted.map(|(_, needed)| needed),
        "allocator": largest.pool.map(|(key, fit)| json!({
            "key": key,
            "largest": match fit {
                Fit::None => Some(0),
                Fit::Most(batch) | Fit::All(batch) => Some(batch),
                Fit::Unknown => None,
            },
        })),
    })
}
