//! The colours of the viewer, for light and for dark pages: every buffer stands out from free memory by a contrast of 3, as
//! WCAG asks of graphics.

use plotters::style::RGBColor;
use serde_json::{Value as Json, json};

use crate::figures::palette::{
    CLASSES, FREE, GRAPHIC, HOLE, PAPER, TEXT, category_color, hex_text, readable_color,
};

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
    free: FREE,
    hole: HOLE,
    hatch: RGBColor(0xe8, 0xc0, 0x86),
    outside: PAPER,
    ink: TEXT,
    paper: PAPER,
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

/// The colours of both themes; one a category.
pub(super) fn theme_json(categories: &[&str]) -> Json {
    let [light, dark] = [CLASSES.map(|(light, _)| light), CLASSES.map(|(_, dark)| dark)];
    json!({ "light": LIGHT.colors_json(categories, light), "dark": DARK.colors_json(categories, dark) })
}

impl Theme {
    fn colors_json(&self, categories: &[&str], scale: [RGBColor; CLASSES.len()]) -> Json {
        json!({
            "free": hex_text(self.free),
            "hole": hex_text(self.hole),
            "hatch": hex_text(self.hatch),
            "outside": hex_text(self.outside),
            "ink": hex_text(self.ink),
            "paper": hex_text(self.paper),
            "height": hex_text(self.height),
            "none": hex_text(self.readable_color(category_color(None, 0))),
            "categories": self.category_colors(categories).map(hex_text).collect::<Vec<String>>(),
            "scale": scale.map(hex_text),
        })
    }

    fn category_colors(&self, names: &[&str]) -> impl Iterator<Item = RGBColor> {
        let numbered = names.iter().zip(0..);
        numbered.map(|(name, number)| self.readable_color(category_color(Some(name), number)))
    }

    fn readable_color(&self, color: RGBColor) -> RGBColor {
        readable_color(color, &[self.free, self.hole, self.outside], GRAPHIC)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::palette::color_contrast;

    #[test]
    fn every_buffer_stands_out_in_both_themes() {
        let names: Vec<String> = (0..40).map(|number| format!("kind {number}")).collect();
        let names: Vec<&str> =
            names.iter().map(String::as_str).chain(["activation", "gradient", "input"]).collect();
        let scales = [CLASSES.map(|(light, _)| light), CLASSES.map(|(_, dark)| dark)];
        for (theme, scale) in [LIGHT, DARK].into_iter().zip(scales) {
            for color in theme.category_colors(&names).chain(scale) {
                for behind in [theme.free, theme.hole, theme.outside] {
                    let told = (hex_text(color), hex_text(behind));
                    assert!(color_contrast(color, behind) >= GRAPHIC, "{told:?}");
                }
            }
            assert!(color_contrast(theme.ink, theme.paper) >= 7.0);
            assert!(color_contrast(theme.height, theme.free) >= GRAPHIC);
            assert!(color_contrast(theme.height, theme.paper) >= 4.5);
        }
    }
}
