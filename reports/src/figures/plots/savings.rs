//! Shares by name, as horizontal bars with a text beside each.

use plotters::element::{Rectangle, Text};
use plotters::style::{Color, RGBColor};

use crate::figures::chart::{LETTERS, Room, draw_chart, text_style, text_width, told};
use crate::figures::coord::Axis;
use crate::figures::palette::{BLUE, ORANGE, TEXT};
use crate::figures::{Drawing, figure};
use crate::format::{count_real, format_percent};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bar {
    pub(crate) name: String,
    /// From 0.
    pub(crate) share: f64,
    /// The text beside the bar.
    pub(crate) text: String,
}

const ROW: u32 = 21;

/// The memory that plans save, by net; `None` without bars.
pub(crate) fn plot_savings(title: &str, bars: &[Bar]) -> Option<Drawing> {
    plot_horizontal(title, "share of the pool's memory that the plan saves", bars, BLUE, 620)
}

/// How far allocators are from the best plan, the closest first; `None` without allocators.
pub(crate) fn plot_closeness(ranked: &[(String, f64)]) -> Option<Drawing> {
    let bar = |(name, share): &(String, f64)| Bar {
        name: name.clone(),
        share: *share,
        text: format_percent(*share),
    };
    let bars: Vec<Bar> = ranked.iter().map(bar).collect();
    plot_horizontal("Reserved memory above the best plan", "reserved above the best plan", &bars, ORANGE, 900)
}

fn plot_horizontal(title: &str, axis: &str, bars: &[Bar], color: RGBColor, width: u32) -> Option<Drawing> {
    let most = bars.iter().map(|bar| bar.share).max_by(f64::total_cmp)?;
    let widest =
        |text: fn(&Bar) -> &str| bars.iter().map(|bar| text_width(text(bar), LETTERS)).max().unwrap_or(0);
    let (left, right) =
        (widest(|bar| &bar.name).clamp(60, width / 3) + 14, widest(|bar| &bar.text).min(width / 3) + 14);
    let room = Room { left, top: 8, right, ..Room::default() };
    let rows = u32::try_from(bars.len()).unwrap_or(u32::MAX).min(200) * ROW;
    let size = (width, room.top + rows + room.bottom + room.below);
    let x = Axis::shares(axis, most.max(0.01));
    let y = Axis::named_rows(bars.iter().map(|bar| bar.name.clone()).collect());
    let bars = bars.to_vec();
    Some(figure(title, size, move |root| {
        let mut chart = draw_chart(root, room, &x, &y)?;
        for (number, bar) in bars.iter().enumerate() {
            let middle = count_real(number) + 0.5;
            let shape = Rectangle::new([(0.0, middle - 0.36), (bar.share, middle + 0.36)], color.filled());
            chart.draw_series([told(shape, format!("{}: {}", bar.name, bar.text))])?;
            let (at, line) = chart.backend_coord(&(bar.share, middle));
            root.draw(&Text::new(bar.text.as_str(), (at + 6, line), text_style(LETTERS, TEXT)))?;
        }
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_has_its_name_and_its_text() {
        let bar = Bar { name: "a<b".to_owned(), share: 0.3, text: "30 %: 10 to 7 GiB".to_owned() };
        let svg = plot_savings("t", &[bar]).expect("drawn").to_inline_svg().expect("writes");
        assert!(svg.contains(">a&lt;b<") && svg.contains(">30 %: 10 to 7 GiB<"), "{svg}");
        assert!(plot_savings("t", &[]).is_none() && plot_closeness(&[]).is_none());
        assert!(plot_closeness(&[("pool".to_owned(), 0.0)]).is_some());
    }
}
