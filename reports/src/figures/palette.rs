//! Colours that are readable on light and dark backgrounds; the first eight also without red-green vision.

use std::collections::BTreeMap;

use plotters::style::RGBColor;

/// Text and axes.
pub(crate) const TEXT: RGBColor = RGBColor(0x22, 0x26, 0x2b);
/// Less important text.
pub(crate) const MUTED: RGBColor = RGBColor(0x6a, 0x73, 0x7d);
/// Grid lines.
pub(crate) const GRID: RGBColor = RGBColor(0xdf, 0xe3, 0xe8);
pub(crate) const PAPER: RGBColor = RGBColor(0xff, 0xff, 0xff);

/// The colours that a page can replace, with their values on a light page, and their CSS classes.
pub(crate) const THEME: [(RGBColor, &str); 4] =
    [(TEXT, "ink-text"), (MUTED, "ink-muted"), (GRID, "ink-grid"), (PAPER, "ink-paper")];

pub(crate) const RED: RGBColor = RGBColor(0xd6, 0x28, 0x28);
pub(crate) const BLUE: RGBColor = RGBColor(0x2f, 0x7e, 0xc0);
pub(crate) const ORANGE: RGBColor = RGBColor(0xc9, 0x78, 0x00);
pub(crate) const GREEN: RGBColor = RGBColor(0x1b, 0x9e, 0x77);
pub(crate) const PINK: RGBColor = RGBColor(0xcc, 0x4c, 0x78);
pub(crate) const PURPLE: RGBColor = RGBColor(0x8a, 0x63, 0xd2);
pub(crate) const GRAY: RGBColor = RGBColor(0x8b, 0x94, 0x9e);

/// Each is as far as possible from those before it, also without red-green vision.
const SERIES: [RGBColor; 16] = [
    BLUE,
    ORANGE,
    GREEN,
    PINK,
    PURPLE,
    RGBColor(0x6c, 0x66, 0x10),
    RGBColor(0x7b, 0x91, 0xae),
    RGBColor(0x9a, 0x46, 0x94),
    RGBColor(0x64, 0x83, 0xff),
    RGBColor(0x9c, 0x6b, 0x3f),
    RGBColor(0xe0, 0x6c, 0x6c),
    RGBColor(0x66, 0x99, 0x3c),
    RGBColor(0x24, 0x92, 0xb8),
    RGBColor(0x2a, 0x9d, 0x8f),
    RGBColor(0xd9, 0x5f, 0x0e),
    RGBColor(0xb0, 0x8d, 0x00),
];

pub(crate) const fn series_color(number: usize) -> RGBColor {
    SERIES[number % SERIES.len()]
}

/// The shape of the series with this index; series with the same colour have different shapes.
pub(crate) const fn series_shape(number: usize) -> Shape {
    match (number + number / SERIES.len()) % 5 {
        0 => Shape::Circle,
        1 => Shape::Square,
        2 => Shape::Triangle,
        3 => Shape::Diamond,
        _ => Shape::Cross,
    }
}

/// The colour of a buffer's category; unknown ones get one by their index.
pub(crate) fn category_color(name: Option<&str>, number: usize) -> RGBColor {
    let base = name.map(|name| name.split(':').next().unwrap_or(name));
    match base {
        None => RGBColor(0x6f, 0x9f, 0xd0),
        Some("activation" | "forward" | "feature" | "kept") => BLUE,
        Some("gradient" | "grad" | "backward") => ORANGE,
        Some("workspace" | "recompute" | "recomputed") => PURPLE,
        Some("accumulate" | "reserved") => GRAY,
        Some("temporary" | "temp") => RGBColor(0x9c, 0x6b, 0x3f),
        Some("param" | "parameter" | "weight" | "copy-out" | "copied") => GREEN,
        Some("input" | "data") => RGBColor(0xb0, 0x8d, 0x00),
        Some("optimizer" | "state" | "copy-in" | "copied and recomputed") => PINK,
        Some(_) => series_color(number + 5),
    }
}

/// Memory that no buffer uses, in a map on a light page.
pub(crate) const FREE: RGBColor = RGBColor(0xee, 0xf1, 0xf4);
/// Free memory with a buffer above it, in a map on a light page.
pub(crate) const HOLE: RGBColor = RGBColor(0xfb, 0xe7, 0xc8);

/// The contrast that WCAG 1.4.11 asks of graphics.
pub(crate) const GRAPHIC: f64 = 3.0;

/// The classes of sizes or lifetimes in every map, from small to large: the colour on a light page, and on a dark one.
///
/// Their lightness falls on a light page and rises on a dark one, so that the order is visible without colour vision.
pub(crate) const CLASSES: [(RGBColor, RGBColor); 6] = [
    (RGBColor(0x65, 0x91, 0x04), RGBColor(0x60, 0x8a, 0x01)),
    (RGBColor(0x4d, 0x82, 0x8b), RGBColor(0x55, 0x8f, 0x80)),
    (RGBColor(0x25, 0x6c, 0xd2), RGBColor(0x76, 0x83, 0xcf)),
    (RGBColor(0x4a, 0x30, 0xb8), RGBColor(0xbf, 0x9f, 0xff)),
    (RGBColor(0x71, 0x1f, 0x74), RGBColor(0xd9, 0xae, 0xbd)),
    (RGBColor(0x71, 0x25, 0x23), RGBColor(0xfe, 0xd3, 0xc4)),
];

/// The colour, dark enough for a map on a light page.
pub(crate) fn on_light(color: RGBColor) -> RGBColor {
    readable_color(color, &[FREE, HOLE, PAPER], GRAPHIC)
}

/// A colour moved towards white (`share` > 0) or black (`share` < 0); `share` from -1 to 1.
pub(crate) fn shade_color(color: RGBColor, share: f64) -> RGBColor {
    let target = if share > 0.0 { 255.0 } else { 0.0 };
    let moved = |part: u8| to_byte(f64::from(part) + (target - f64::from(part)) * share.abs());
    RGBColor(moved(color.0), moved(color.1), moved(color.2))
}

/// The contrast of two colours by WCAG 2: from 1 to 21.
pub(crate) fn color_contrast(one: RGBColor, other: RGBColor) -> f64 {
    let (one, other) = (relative_luminance(one), relative_luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

fn relative_luminance(color: RGBColor) -> f64 {
    let linear = |part: u8| {
        let part = f64::from(part) / 255.0;
        if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(color.0) + 0.7152 * linear(color.1) + 0.0722 * linear(color.2)
}

/// The colour, moved away from all of these backgrounds until its contrast with each is at least `least`.
pub(crate) fn readable_color(color: RGBColor, backgrounds: &[RGBColor], least: f64) -> RGBColor {
    let is_dark = backgrounds.iter().all(|background| relative_luminance(*background) < 0.18);
    let moved = |step: u32| shade_color(color, f64::from(step) / if is_dark { 50.0 } else { -50.0 });
    let reads =
        |color: &RGBColor| backgrounds.iter().all(|background| color_contrast(*color, *background) >= least);
    (0..50).map(moved).find(reads).unwrap_or_else(|| moved(50))
}

/// Free memory: from light to dark red as the share grows from 0 to 1.
pub(crate) fn heat_color(share: f64) -> RGBColor {
    const STOPS: [[f64; 3]; 5] = [
        [238.0, 243.0, 248.0],
        [253.0, 224.0, 160.0],
        [248.0, 160.0, 90.0],
        [214.0, 72.0, 60.0],
        [110.0, 16.0, 52.0],
    ];
    let at = share.clamp(0.0, 1.0) * 4.0;
    let (mut below, mut rest) = (STOPS[0], at);
    for window in STOPS.windows(2) {
        let (from, to) = (window[0], window[1]);
        if rest <= 1.0 {
            return rgb_color([0, 1, 2].map(|part| from[part] + (to[part] - from[part]) * rest));
        }
        (below, rest) = (to, rest - 1.0);
    }
    rgb_color(below)
}

fn rgb_color(parts: [f64; 3]) -> RGBColor {
    let [red, green, blue] = parts.map(to_byte);
    RGBColor(red, green, blue)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a byte")]
fn to_byte(part: f64) -> u8 {
    part.round().clamp(0.0, 255.0) as u8
}

/// The colour as `#rrggbb`.
pub(crate) fn hex_text(color: RGBColor) -> String {
    format!("#{:02x}{:02x}{:02x}", color.0, color.1, color.2)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
}

impl Shape {
    /// The corners around the centre of a shape with a radius of 1.
    pub(super) const fn corners(self) -> &'static [(f64, f64)] {
        match self {
            Self::Circle => &[],
            Self::Square => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            Self::Triangle => &[(0.0, -1.15), (1.1, 0.85), (-1.1, 0.85)],
            Self::Diamond => &[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)],
            Self::Cross => &[
                (-1.2, -0.7),
                (-0.7, -1.2),
                (0.0, -0.5),
                (0.7, -1.2),
                (1.2, -0.7),
                (0.5, 0.0),
                (1.2, 0.7),
                (0.7, 1.2),
                (0.0, 0.5),
                (-0.7, 1.2),
                (-1.2, 0.7),
                (-0.5, 0.0),
            ],
        }
    }
}

/// The look of a planner: the same in every plot of a report.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    pub(crate) label: String,
    /// Its index among all planners of the report.
    pub(crate) number: usize,
}

impl Series {
    /// The distinct series of all, by their index.
    pub(crate) fn distinct<'s>(all: impl Iterator<Item = &'s Self>) -> Vec<&'s Self> {
        let by_number: BTreeMap<usize, &Self> = all.map(|series| (series.number, series)).collect();
        by_number.into_values().collect()
    }

    pub(crate) const fn color(&self) -> RGBColor {
        series_color(self.number)
    }

    pub(crate) const fn shape(&self) -> Shape {
        series_shape(self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_the_heat_scale() {
        assert_eq!(hex_text(heat_color(0.0)), "#eef3f8");
        assert_eq!(hex_text(heat_color(1.0)), "#6e1034");
        assert_eq!(heat_color(-1.0), heat_color(0.0));
        assert_eq!(heat_color(0.5), RGBColor(248, 160, 90));
    }

    /// A colour variable of the pages' style, in light and dark.
    fn variables(name: &str) -> [RGBColor; 2] {
        let style = include_str!("../assets/style.css");
        let start = format!("--{name}: #");
        let mut values = style.split(&start).skip(1).map(|text| {
            let number = u32::from_str_radix(&text[..6], 16).expect("six digits");
            let [_, red, green, blue] = number.to_be_bytes();
            RGBColor(red, green, blue)
        });
        [values.next().expect("light"), values.next().expect("dark")]
    }

    #[test]
    fn text_has_the_contrast_of_wcag_aa_in_light_and_dark() {
        for ink in ["text", "muted", "link", "bad"] {
            for ground in ["paper", "card"] {
                for (ink_color, ground_color) in variables(ink).into_iter().zip(variables(ground)) {
                    let ratio = color_contrast(ink_color, ground_color);
                    assert!(ratio >= 4.5, "{ink} on {ground}: {ratio:.2}");
                }
            }
        }
        for (text, warm) in variables("text").into_iter().zip(variables("warm")) {
            let ratio = color_contrast(text, warm);
            assert!(ratio >= 4.5, "text on the warmest field: {ratio:.2}");
        }
        assert!(color_contrast(TEXT, PAPER) >= 4.5 && color_contrast(MUTED, PAPER) >= 4.5);
    }

    #[test]
    fn lines_and_bars_have_the_contrast_of_wcag_aa_in_light_and_dark() {
        for color in SERIES.into_iter().chain([RED, GRAY]) {
            for paper in variables("paper") {
                let ratio = color_contrast(color, paper);
                assert!(ratio >= 3.0, "{} on {}: {ratio:.2}", hex_text(color), hex_text(paper));
            }
        }
    }

    #[test]
    fn classes_stand_out_and_their_order_shows_without_colour() {
        for (light, _) in CLASSES {
            assert_eq!(on_light(light), light, "{}", hex_text(light));
        }
        for pair in CLASSES.windows(2) {
            assert!(relative_luminance(pair[0].0) > relative_luminance(pair[1].0), "on a light page");
            assert!(relative_luminance(pair[0].1) < relative_luminance(pair[1].1), "on a dark page");
        }
    }

    #[test]
    fn contrast_is_that_of_wcag() {
        let (black, white) = (RGBColor(0, 0, 0), RGBColor(255, 255, 255));
        assert!((color_contrast(black, white) - 21.0).abs() < 1e-9);
        // The lightest gray that text may have on white.
        assert!((color_contrast(RGBColor(0x76, 0x76, 0x76), white) - 4.54).abs() < 0.01);
        let pale = RGBColor(0xf0, 0x8a, 0x3c);
        let readable = readable_color(pale, &[white], 3.0);
        assert!(color_contrast(pale, white) < 3.0 && color_contrast(readable, white) >= 3.0);
        assert_eq!(readable_color(BLUE, &[white], 3.0), BLUE);
    }

    #[test]
    fn the_lines_of_a_chart_look_different() {
        let part = |one: u8, other: u8| f64::from(one) - f64::from(other);
        for (number, one) in SERIES[..9].iter().enumerate() {
            for other in &SERIES[..number] {
                let apart = part(one.0, other.0).hypot(part(one.1, other.1)).hypot(part(one.2, other.2));
                assert!(apart > 50.0, "{} and {}: {apart:.0}", hex_text(*one), hex_text(*other));
            }
        }
        let (temporary, workspace) = (category_color(Some("temp"), 0), category_color(Some("workspace"), 1));
        assert_ne!(temporary, workspace, "a net has both");
    }

    #[test]
    fn neighbours_in_a_series_differ_in_colour_or_shape() {
        let looks: std::collections::BTreeSet<_> =
            (0..60).map(|number| format!("{:?} {:?}", series_color(number), series_shape(number))).collect();
        assert_eq!(looks.len(), 60);
    }
}
