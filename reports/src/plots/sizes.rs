//! The distribution of sizes: how many buffers there are of each power of two, and how many bytes.

use planlab_dsa::Instance;

use crate::drawing::axis::{Axis, Entry, Frame, Key, Scale, legend};
use crate::drawing::palette::{BLUE, Ink, ORANGE};
use crate::drawing::{Anchor, Drawing};
use crate::format::{bytes, count, count_real, real};

/// Draws, for each power of two, the share of the buffers with a size from it up to the next, and the share
/// of the bytes that they hold.
#[must_use]
pub fn size_distribution_plot(instance: &Instance) -> Drawing {
    let mut drawing = Drawing::new("Size distribution", 900, 320);
    let classes = classes(instance);
    let total = real(instance.total().get()).max(1.0);
    let buffers = count_real(instance.len()).max(1.0);
    let share = |class: &Class| (real(class.buffers) / buffers).max(real(class.bytes) / total);
    let most = classes.iter().map(share).fold(0.0, f64::max).max(0.05);
    let x = Axis {
        scale: Scale::Linear { low: 0.0, high: count_real(classes.len()).max(1.0) },
        ticks: Vec::new(),
        title: "size (from this power of two up to the next)".to_owned(),
    };
    let y = Axis::shares_to("share", most);
    let frame = Frame { left: 92.0, top: 22.0, right: 740.0, bottom: 266.0, x, y };
    frame.draw(&mut drawing);
    let slot = (frame.right - frame.left) / count_real(classes.len()).max(1.0);
    let every = (44.0 / slot).ceil().max(1.0);
    for (class, at) in classes.iter().zip(0_u32..) {
        let left = frame.left + slot * f64::from(at);
        let shares = [(real(class.buffers) / buffers, BLUE), (real(class.bytes) / total, ORANGE)];
        for ((value, color), side) in shares.into_iter().zip([0.1, 0.5]) {
            let (top, width) = (frame.up(value), slot * 0.38);
            let corner = (left + slot * side, top);
            drawing.rect(corner, (width, frame.bottom - top), Ink::Color(color), tip(class));
        }
        if f64::from(at) % every == 0.0 {
            let label = short(class.power);
            drawing.text_of((left + slot / 2.0, frame.bottom + 14.0), label, Anchor::Middle, 11.0, Ink::Text);
        }
    }
    let entries = [
        Entry { key: Key::Box, color: BLUE, text: format!("of {} buffers", count(instance.len() as u64)) },
        Entry { key: Key::Box, color: ORANGE, text: format!("of {}", bytes(instance.total().get())) },
    ];
    legend(&mut drawing, (frame.right + 16.0, frame.top), 60.0, &entries);
    drawing
}

fn short(power: u32) -> String {
    bytes(1 << power).replace(".00", "").replace(".0", "").replace("iB", "").replace(" B", "")
}

fn tip(class: &Class) -> String {
    format!("from {}: {} buffers, {}", bytes(1 << class.power), count(class.buffers), bytes(class.bytes))
}

/// Buffers with sizes from `2^power` up to the next power.
#[derive(Debug, PartialEq)]
struct Class {
    power: u32,
    buffers: u64,
    bytes: u64,
}

/// The classes from the smallest size to the largest, empty ones between them included.
fn classes(instance: &Instance) -> Vec<Class> {
    let mut all: Vec<Class> = (0..u64::BITS).map(|power| Class { power, buffers: 0, bytes: 0 }).collect();
    for buffer in instance.buffers() {
        let class = &mut all[buffer.size.get().ilog2() as usize];
        class.buffers += 1;
        class.bytes += buffer.size.get();
    }
    let last = all.iter().rposition(|class| class.buffers > 0);
    all.truncate(last.map_or(0, |last| last + 1));
    let first = all.iter().position(|class| class.buffers > 0).unwrap_or(0);
    all.drain(..first);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use planlab_dsa::{Buffer, Bytes, LiveRange};

    #[test]
    fn classes_by_hand() {
        let live = LiveRange::new(0, 1).expect("not empty");
        let buffers = [4, 7, 8, 33].map(|size| Buffer::new(Bytes::new(size), live)).to_vec();
        let instance = Instance::from_buffers(buffers).expect("valid");
        let class = |power, buffers, bytes| Class { power, buffers, bytes };
        assert_eq!(classes(&instance), [class(2, 2, 11), class(3, 1, 8), class(4, 0, 0), class(5, 1, 33)]);
        assert!(size_distribution_plot(&instance).to_svg().expect("writes").contains("from 4 B: 2 buffers"));
    }

    #[test]
    fn no_buffers_no_classes() {
        let empty = Instance::from_buffers(Vec::new()).expect("valid");
        assert_eq!(classes(&empty), []);
        assert!(size_distribution_plot(&empty).to_png().is_ok());
    }
}
