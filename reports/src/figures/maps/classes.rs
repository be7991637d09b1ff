//! The colours of buffers in a map: by category; without categories by size class, or by lifetime if the sizes are alike.

use std::collections::BTreeMap;

use planlab_dsa::{Buffer, BufferId, Instance, Labels};
use plotters::style::RGBColor;

use crate::figures::palette::{CLASSES, category_color, on_light, shade_color};
use crate::format::{format_bytes, format_count};

const CATEGORY: &str = "colour by category";

/// The most classes of sizes or lifetimes.
const MOST: usize = CLASSES.len();

/// The classes of an instance's buffers.
pub(super) struct Classes {
    /// For each buffer: the index of its class.
    of: Vec<usize>,
    /// Name and colour of each class.
    names: Vec<(String, RGBColor)>,
    bytes: Vec<u64>,
    /// What the colours mean, in words.
    meaning: &'static str,
}

/// What the colours of an instance's maps mean, in words: `colour by category`.
pub(crate) fn map_colours(instance: &Instance, labels: &Labels) -> &'static str {
    Classes::new(instance, labels).meaning
}

impl Classes {
    pub(super) fn new(instance: &Instance, labels: &Labels) -> Self {
        let categories = Self::by_category(instance, labels);
        if categories.names.len() > 1 {
            return categories;
        }
        let sizes = Ranges::new(instance.buffers().iter().map(|buffer| buffer.size.get()));
        let lives = Ranges::new(instance.buffers().iter().map(live_steps));
        match (sizes, lives) {
            (Some(sizes), _) => {
                let name = |low, high| format!("{} to {}", format_bytes(low), format_bytes(high));
                Self::by_range(instance, "colour by size", &sizes, |buffer| buffer.size.get(), name)
            }
            (None, Some(lives)) => {
                let name = |low, high| format!("{} to {} steps", format_count(low), format_count(high));
                Self::by_range(instance, "colour by lifetime", &lives, live_steps, name)
            }
            (None, None) => categories,
        }
    }

    fn by_category(instance: &Instance, labels: &Labels) -> Self {
        let own = |id: BufferId| labels.buffers.get(id.index()).and_then(|label| label.category.clone());
        let mut sums: BTreeMap<Option<String>, u64> = BTreeMap::new();
        for id in instance.ids() {
            *sums.entry(own(id)).or_default() += instance.buffer(id).size.get();
        }
        let numbers: BTreeMap<_, _> = sums.keys().cloned().zip(0_usize..).collect();
        let of = instance.ids().map(|id| numbers[&own(id)]).collect();
        let look = |(number, name): (usize, &Option<String>)| {
            let shown = name.as_deref().unwrap_or("buffer").chars().take(18).collect();
            (shown, on_light(category_color(name.as_deref(), number)))
        };
        let names = sums.keys().enumerate().map(look).collect();
        Self { of, names, bytes: sums.into_values().collect(), meaning: CATEGORY }
    }

    fn by_range(
        instance: &Instance,
        meaning: &'static str,
        ranges: &Ranges,
        value: impl Fn(&Buffer) -> u64,
        name: impl Fn(u64, u64) -> String,
    ) -> Self {
        let number = |buffer: &Buffer| ranges.range_number(value(buffer));
        let mut spans: BTreeMap<usize, (u64, u64, u64)> = BTreeMap::new();
        for buffer in instance.buffers() {
            let (own, size) = (value(buffer), buffer.size.get());
            let (low, high, sum) = spans.entry(number(buffer)).or_insert((own, own, 0));
            (*low, *high, *sum) = ((*low).min(own), (*high).max(own), sum.saturating_add(size));
        }
        // Classes without a buffer have no colour.
        let places: BTreeMap<usize, usize> = spans.keys().copied().zip(0..).collect();
        let of = instance.buffers().iter().map(|buffer| places[&number(buffer)]).collect();
        let look =
            |(&number, &(low, high, _)): (&usize, &(u64, u64, u64))| (name(low, high), CLASSES[number].0);
        let names = spans.iter().map(look).collect();
        Self { of, names, bytes: spans.values().map(|span| span.2).collect(), meaning }
    }

    /// The class's colour, or a slightly darker one to distinguish neighbours.
    pub(super) fn class_color(&self, id: BufferId) -> RGBColor {
        let shades = [0.0, -0.1, -0.2];
        shade_color(self.names[self.of[id.index()]].1, shades[id.index() % shades.len()])
    }

    /// Names and colours: the largest category first, ranges from low to high.
    pub(super) fn class_names(&self) -> impl Iterator<Item = (&str, RGBColor)> {
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        if self.meaning == CATEGORY {
            order.sort_by_key(|&number| std::cmp::Reverse(self.bytes[number]));
        }
        order.into_iter().map(|number| (self.names[number].0.as_str(), self.names[number].1))
    }
}

fn live_steps(buffer: &Buffer) -> u64 {
    u64::from(buffer.live.end().get() - buffer.live.start().get())
}

/// Ranges of equal width on a logarithmic scale.
struct Ranges {
    least: u64,
    /// The logarithm of the width, base 2.
    width: usize,
}

impl Ranges {
    /// Ranges for these values; `None` if the largest is less than twice the least.
    fn new(values: impl Iterator<Item = u64> + Clone) -> Option<Self> {
        let (least, most) = (values.clone().min()?.max(1), values.max()?);
        let doublings = (most / least).checked_ilog2().filter(|&doublings| doublings > 0)?;
        Some(Self { least, width: (doublings as usize + 1).div_ceil(MOST) })
    }

    fn range_number(&self, value: u64) -> usize {
        (value / self.least).max(1).ilog2() as usize / self.width
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::samples::instance;

    #[test]
    fn a_map_without_categories_is_not_of_one_colour() {
        let sized = instance(&[(1, 0, 1), (2, 0, 1), (4096, 0, 1), (1 << 30, 0, 1)]);
        let classes = Classes::new(&sized, &Labels::from_numbers(4));
        let names: Vec<&str> = classes.class_names().map(|(name, _)| name).collect();
        assert_eq!(names, ["1 B to 2 B", "4.00 KiB to 4.00 KiB", "1.00 GiB to 1.00 GiB"]);
        assert_eq!(map_colours(&sized, &Labels::from_numbers(4)), "colour by size");
        let alike = instance(&[(3, 0, 1), (4, 0, 9), (5, 0, 100)]);
        assert_eq!(map_colours(&alike, &Labels::from_numbers(3)), "colour by lifetime");
        assert_eq!(Classes::new(&alike, &Labels::from_numbers(3)).class_names().count(), 3);
        let same = instance(&[(3, 0, 1), (3, 1, 2)]);
        assert_eq!(Classes::new(&same, &Labels::from_numbers(2)).class_names().count(), 1);
    }

    #[test]
    fn categories_come_before_sizes() {
        let mut labels = Labels::from_numbers(2);
        labels.buffers[1].category = Some("gradient".to_owned());
        let sized = instance(&[(1, 0, 1), (1 << 20, 0, 1)]);
        let classes = Classes::new(&sized, &labels);
        assert_eq!(classes.class_names().map(|(name, _)| name).collect::<Vec<_>>(), ["gradient", "buffer"]);
    }

    #[test]
    fn there_are_six_classes_at_most() {
        for most in [2, 3, 7, 64, 65, 1 << 20, u64::MAX] {
            let ranges = Ranges::new([1, most].into_iter()).expect("they differ");
            assert!(ranges.range_number(most) < MOST && ranges.range_number(1) == 0, "{most}");
        }
    }
}
