//! The distribution of sizes: the number of buffers and of bytes for each power of two.

use planlab_dsa::Instance;
use plotters::element::Rectangle;
use plotters::style::Color;

use crate::figures::chart::{Entry, Key, Room, draw_chart, draw_legend, told};
use crate::figures::coord::Axis;
use crate::figures::palette::{BLUE, ORANGE};
use crate::figures::{Drawing, figure};
use crate::format::{as_real, count_real, format_bytes, format_count};

/// Draws, for each power of two, the share of the buffers with a size from it up to the next, and their share of the
/// bytes.
pub(crate) fn size_distribution_plot(instance: &Instance) -> Drawing {
    const LEFT: u32 = 756;
    let classes = size_classes(instance);
    let total = as_real(instance.total_size().get()).max(1.0);
    let buffers = count_real(instance.len()).max(1.0);
    let shares = move |class: &Class| [as_real(class.buffers) / buffers, as_real(class.bytes) / total];
    let most = classes.iter().flat_map(shares).fold(0.05, f64::max);
    let names = classes.iter().map(|class| short_power(class.power)).collect();
    let x = Axis::named_columns("size (from this power of two up to the next)", names);
    let y = Axis::shares("share", (most * 1.04).min(1.0));
    let all_buffers = format!("of {} buffers", format_count(instance.len() as u64));
    let all_bytes = format!("of {}", format_bytes(instance.total_size().get()));
    let entries = [Entry::new(Key::Box, BLUE, all_buffers), Entry::new(Key::Box, ORANGE, all_bytes)];
    figure("Size distribution", (900, 320), move |root| {
        let area = draw_legend(root, LEFT, Room::default().top, &entries)?;
        let mut chart = draw_chart(&area, Room::default(), &x, &y)?;
        for (class, at) in classes.iter().zip(0_u32..).filter(|(class, _)| class.buffers > 0) {
            let bar = |(share, color, side): (f64, _, f64)| {
                let left = f64::from(at) + side;
                let element = Rectangle::new([(left, 0.0), (left + 0.38, share)], Color::filled(&color));
                told(element, class_tip(class))
            };
            let [of_buffers, of_bytes] = shares(class);
            chart.draw_series([(of_buffers, BLUE, 0.1), (of_bytes, ORANGE, 0.5)].map(bar))?;
        }
        Ok(())
    })
}

fn short_power(power: u32) -> String {
    format_bytes(1 << power).replace(".00", "").replace(".0", "").replace("iB", "").replace(" B", "")
}

fn class_tip(class: &Class) -> String {
    let (least, bytes) = (format_bytes(1 << class.power), format_bytes(class.bytes));
    format!("from {least}: {} buffers, {bytes}", format_count(class.buffers))
}

/// Buffers with sizes from `2^power` up to the next power.
#[derive(Debug, PartialEq)]
struct Class {
    power: u32,
    buffers: u64,
    bytes: u64,
}

/// The classes from the smallest size to the largest, empty ones between them included.
fn size_classes(instance: &Instance) -> Vec<Class> {
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
    use crate::figures::samples;

    #[test]
    fn classes_by_hand() {
        let instance = samples::instance(&[4, 7, 8, 33].map(|size| (size, 0, 1)));
        let class = |power, buffers, bytes| Class { power, buffers, bytes };
        assert_eq!(
            size_classes(&instance),
            [class(2, 2, 11), class(3, 1, 8), class(4, 0, 0), class(5, 1, 33)]
        );
        assert!(size_distribution_plot(&instance).to_svg().expect("writes").contains("from 4 B: 2 buffers"));
        assert_eq!(size_classes(&samples::instance(&[])), []);
    }
}
