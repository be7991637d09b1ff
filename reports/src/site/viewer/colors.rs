//! The colours of the viewer, for light and for dark pages: every buffer stands out from free memory by a contrast of 3, as
//! WCAG asks of graphics.

use plotters::style::RGBColor;
use serde_json::{Value as Json, json};

use crate::figures::palette::{category, hex, readable};

/// WCAG 1.4.11.
const LEAST: f64 = 3.0;

/// What lies behind buffers.
struct Theme {
    free: RGBColor,
    hole: RGBColor,
    hatch: RGBColor,
    /// What a framework does not hold.
    outside: RGBColor,
    ink: RGBColor,
    paper: RGBColor,
    /// The line of the height.
    height: RGBColor,
}

const LIGHT: Theme = Theme {
    free: RGBColor(0xee, 0xf1, 0xf4),
    hole: RGBColor(0xfb, 0xe7, 0xc8),
    hatch: RGBColor(0xe8, 0xc0, 0x86),
    outside: RGBColor(0xff, 0xff, 0xff),
    ink: RGBColor(0x22, 0x26, 0x2b),
    paper: RGBColor(0xff, 0xff, 0xff),
    height: RGBColor(0xb3, 0x26, 0x1e),
};

const DARK: Theme = Theme {
    free: RGBColor(0x22, 0x27, 0x2d),
    hole: RGBColor(0x3b, 0x2b, 0x18),
    hatch: RGBColor(0x63, 0x49, 0x26),
    outside: RGBColor(0x14, 0x17, 0x1b),
    ink: RGBColor(0xe2, 0xe6, 0xea),
    paper: RGBColor(0x14, 0x17, 0x1b),
    height: RGBColor(0xff, 0x8a, 0x80),
};

/// From small to large, or from short to long; readable without red-green vision.
const SCALE: [RGBColor; 7] = [
    RGBColor(0xa0, 0xda, 0x39),
    RGBColor(0x4a, 0xc1, 0x6d),
    RGBColor(0x1f, 0xa1, 0x87),
    RGBColor(0x27, 0x7f, 0x8e),
    RGBColor(0x36, 0x5c, 0x8d),
    RGBColor(0x46, 0x32, 0x7e),
    RGBColor(0x44, 0x01, 0x54),
];

/// The colours of both themes; one a category.
pub(super) fn json(categories: &[&str]) -> Json {
    json!({ "light": LIGHT.json(categories), "dark": DARK.json(categories) })
}

impl Theme {
    fn json(&self, categories: &[&str]) -> Json {
        json!({
            "free": hex(self.free),
            "hole": hex(self.hole),
            "hatch": hex(self.hatch),
            "outside": hex(self.outside),
            "ink": hex(self.ink),
            "paper": hex(self.paper),
            "height": hex(self.height),
            "none": hex(self.readable(category(None, 0))),
            "categories": self.categories(categories).map(hex).collect::<Vec<String>>(),
            "scale": SCALE.map(|color| hex(self.readable(color))),
        })
    }

    fn categories(&self, names: &[&str]) -> impl Iterator<Item = RGBColor> {
        names.iter().zip(0_usize..).map(|(name, number)| self.readable(category(Some(name), number)))
    }

    fn readable(&self, color: RGBColor) -> RGBColor {
        readable(color, &[self.free, self.hole, self.outside], LEAST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::palette::contrast;

    #[test]
    fn every_buffer_stands_out_in_both_themes() {
        let names: Vec<String> = (0..40).map(|number| format!("kind {number}")).collect();
        let names: Vec<&str> =
            names.iter().map(String::as_str).chain(["activation", "gradient", "input"]).collect();
        for theme in [LIGHT, DARK] {
            let scale = SCALE.map(|color| theme.readable(color));
            for color in theme.categories(&names).chain(scale) {
                for behind in [theme.free, theme.hole, theme.outside] {
                    assert!(contrast(color, behind) >= LEAST, "{} on {}", hex(color), hex(behind));
                }
            }
            assert!(contrast(theme.ink, theme.paper) >= 7.0);
            assert!(
                contrast(theme.height, theme.free) >= LEAST && contrast(theme.height, theme.paper) >= 4.5
            );
        }
    }
}
