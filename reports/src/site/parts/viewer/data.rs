//! What the viewer knows of an instance and its placements, as compact JSON.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use planlab_dsa::{Buffer, BufferId, Instance, Label, Labels, Piece, greatest_common_divisor};
use rustc_hash::FxHashMap;
use serde_json::{Value as Json, json};

use super::colors;
use super::scene::{CallStacks, Panel, Scene};
use crate::figures::layout::Rectangle;
use crate::format::as_real;

pub(super) fn scene_json(scene: &Scene<'_>) -> Json {
    let load = scene.instance.load();
    let mut categories = Words::default();
    let buffers = buffer_json(&scene.instance, &scene.labels, &scene.stacks, &mut categories);
    json!({
        "horizon": scene.horizon,
        "capacity": scene.capacity,
        "load": { "bytes": load.bytes, "step": load.step },
        "bound": scene.bound,
        "pieces": piece_json(&scene.instance),
        "buffers": buffers,
        "panels": scene.panels.iter().map(|panel| panel_json(&scene.instance, panel)).collect::<Vec<Json>>(),
        "colors": colors::theme_json(&categories.words),
    })
}

/// The rectangles that every panel has, but for their lowest address. `of` is left out where each buffer is one rectangle,
/// and `counted`, the step from which each counts towards the load, where all count from their start.
fn piece_json(instance: &Instance) -> Json {
    let all = || {
        let buffers = instance.buffers().iter().zip(instance.ids());
        buffers.flat_map(|(buffer, id)| buffer.active_pieces().map(move |piece| (piece, id)))
    };
    let outputs = instance.hand_over_outputs();
    let counted = |(piece, id): (Piece, BufferId)| {
        let (start, first) = (piece.steps.start(), instance.buffer(id).live.start());
        u64::from(start.get()) + u64::from(outputs[id.index()] && start == first)
    };
    let is_plain = all().zip(0_usize..).all(|((_, id), number)| id.index() == number);
    json!({
        "of": (!is_plain).then(|| pack_numbers(all().map(|(_, id)| id.index() as u64))),
        "start": pack_numbers(all().map(|(piece, _)| u64::from(piece.steps.start().get()))),
        "counted": (!instance.in_place().is_empty()).then(|| pack_numbers(all().map(counted))),
        "end": pack_numbers(all().map(|(piece, _)| u64::from(piece.steps.end().get()))),
        "size": pack_numbers(all().map(|(piece, _)| piece.window.end.get() - piece.window.start.get())),
    })
}

/// What there is to say of each buffer; what no buffer has is left out.
fn buffer_json<'a>(
    instance: &Instance,
    labels: &'a Labels,
    stacks: &CallStacks<'_>,
    categories: &mut Words<'a>,
) -> Json {
    let names = labels.buffers.iter().map(|label| label.name.as_str());
    let is_numbered = names.clone().zip(0_usize..).all(|(name, number)| name == number.to_string());
    let mut ops = Words::default();
    let categories_of = word_json(labels, categories, |label| label.category.as_deref());
    let ops_of = word_json(labels, &mut ops, |label| label.op.as_deref());
    let of = |number: usize| stacks.of.get(number).copied().flatten().map_or(0, |stack| u64::from(stack) + 1);
    json!({
        "size": pack_numbers(instance.buffers().iter().map(|buffer| buffer.size.get())),
        "requested": differing_json(instance, labels, |_, label| label.requested.map(planlab_dsa::Bytes::get), |b| b.size.get()),
        "from": differing_json(instance, labels, |_, label| Some(label.original_steps?.0), |b| b.live.start().get().into()),
        "to": differing_json(instance, labels, |_, label| Some(label.original_steps?.1), |b| b.live.end().get().into()),
        "names": (!is_numbered).then(|| names.collect::<Vec<&str>>()),
        "category": categories_of,
        "categories": categories.words,
        "op": ops_of,
        "ops": ops.words,
        "stack": (!stacks.of.is_empty()).then(|| pack_numbers((0..instance.len()).map(of))),
        "stacks": stacks.stacks,
        "frames": stacks.frames,
    })
}

/// The number of a word of each buffer, from 1; 0 if there is no word.
fn word_json<'a>(
    labels: &'a Labels,
    words: &mut Words<'a>,
    word: impl Fn(&'a Label) -> Option<&'a str>,
) -> Option<Json> {
    let number = |label: &'a Label| word(label).map_or(0, |word| words.word_number(word) + 1);
    let numbers: Vec<u64> = labels.buffers.iter().map(number).collect();
    numbers.iter().any(|&number| number > 0).then(|| pack_numbers(numbers))
}

/// A number of each buffer, if a label says one; `plain` for the others.
fn differing_json(
    instance: &Instance,
    labels: &Labels,
    said: impl Fn(&Buffer, &Label) -> Option<u64>,
    plain: impl Fn(&Buffer) -> u64,
) -> Option<Json> {
    let all = || instance.buffers().iter().zip(&labels.buffers);
    let number = |(buffer, label): (&Buffer, &Label)| said(buffer, label).unwrap_or_else(|| plain(buffer));
    let is_said = all().any(|(buffer, label)| number((buffer, label)) != plain(buffer));
    is_said.then(|| pack_numbers(all().map(number)))
}

/// Where a panel has the pieces, and what is said of it.
fn panel_json(instance: &Instance, panel: &Panel) -> Json {
    let mut rectangles = panel.layout.rectangles.iter().peekable();
    let (mut lows, mut absent) = (Vec::new(), Vec::new());
    for (buffer, id) in instance.buffers().iter().zip(instance.ids()) {
        for piece in buffer.active_pieces() {
            let is_it =
                |rectangle: &&Rectangle| rectangle.id == id && rectangle.start == piece.steps.start().get();
            let found = rectangles.next_if(is_it);
            if found.is_none() {
                absent.push(lows.len());
            }
            lows.push(found.map_or(0, |rectangle| rectangle.low));
        }
    }
    let held = || panel.held.iter();
    json!({
        "name": panel.name,
        "kind": panel.kind,
        "height": panel.layout.height,
        "borders": panel.layout.borders,
        "step": panel.blocked.as_ref().map(|blocked| blocked.step),
        "low": pack_numbers(lows),
        "absent": absent,
        "held": (!panel.held.is_empty()).then(|| json!({
            "low": pack_numbers(held().map(|held| held.address)),
            "size": pack_numbers(held().map(|held| held.size)),
            "start": pack_numbers(held().map(|held| u64::from(held.steps.0))),
            "end": pack_numbers(held().map(|held| u64::from(held.steps.1))),
        })),
    })
}

/// Distinct texts, numbered in the order in which they come.
#[derive(Default)]
pub(super) struct Words<'a> {
    pub(super) words: Vec<&'a str>,
    numbers: FxHashMap<&'a str, u64>,
}

impl<'a> Words<'a> {
    pub(super) fn word_number(&mut self, word: &'a str) -> u64 {
        *self.numbers.entry(word).or_insert_with(|| {
            self.words.push(word);
            self.words.len() as u64 - 1
        })
    }
}

/// Numbers as the viewer reads them: little-endian arrays of the narrowest type, divided by their common divisor, in base64.
/// Those beyond 2^53 that have no small common divisor lose their last digits, as every number in a browser.
pub(super) fn pack_numbers(values: impl IntoIterator<Item = u64>) -> Json {
    let mut values: Vec<u64> = values.into_iter().collect();
    let unit = values.iter().fold(0, |unit, &value| greatest_common_divisor(unit, value)).max(1);
    let most = values.iter().max().map_or(0, |most| most / unit);
    if most > u64::from(u32::MAX) {
        let bytes = values.iter().flat_map(|&value| as_real(value).to_le_bytes());
        return packed_json("f64", 1, bytes.collect());
    }
    values.iter_mut().for_each(|value| *value /= unit);
    let (kind, width) = match most {
        0..=0xff => ("u8", 1),
        0x100..=0xffff => ("u16", 2),
        _ => ("u32", 4),
    };
    let bytes = values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(width));
    packed_json(kind, unit, bytes.collect())
}

fn packed_json(kind: &str, unit: u64, bytes: Vec<u8>) -> Json {
    json!({ "type": kind, "unit": unit, "data": BASE64_STANDARD.encode(bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_type_holds_the_numbers() {
        let kind = |values: &[u64]| {
            let packed = pack_numbers(values.iter().copied());
            let size =
                BASE64_STANDARD.decode(packed["data"].as_str().expect("is text")).expect("is base64").len();
            (packed["type"].as_str().expect("is text").to_owned(), packed["unit"].as_u64(), size)
        };
        assert_eq!(kind(&[0, 512, 512 * 255]), ("u8".to_owned(), Some(512), 3));
        assert_eq!(kind(&[1, 256]), ("u16".to_owned(), Some(1), 4));
        assert_eq!(kind(&[1 << 40, 3 << 40]), ("u8".to_owned(), Some(1 << 40), 2));
        assert_eq!(kind(&[1, 1 << 20]), ("u32".to_owned(), Some(1), 8));
        assert_eq!(kind(&[1, 1 << 40]), ("f64".to_owned(), Some(1), 16));
        assert_eq!(kind(&[]), ("u8".to_owned(), Some(1), 0));
    }
}
