//! Mean gap against mean planning time, with the names of the planners that no other beats in both.

use plotters::element::{PathElement, Text};
use plotters::style::Color;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::chart::{Chart, LETTERS, Marker, Room, chart, letters, line, text_width, told};
use super::coord::Axis;
use super::palette::{BLUE, GRAY, MUTED, Shape, TEXT};
use super::{Area, Drawing, Drawn, figure};
use crate::format::{nanoseconds, percent};

/// A planner.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spot {
    pub(crate) label: String,
    pub(crate) time_ns: f64,
    pub(crate) gap: f64,
    /// Whether no other planner is both faster and closer.
    pub(crate) is_front: bool,
}

/// The size of the picture in pixels: half a page.
pub(super) const SIZE: (u32, u32) = (620, 380);
pub(super) const ROOM: Room = Room { left: 74, top: 16, right: 24, bottom: 46, below: 3 };

/// Draws a dot for each planner, and the front as a line of named dots; `None` without planners.
pub(crate) fn plot(spots: &[Spot]) -> Option<Drawing> {
    let times = || spots.iter().map(|spot| spot.time_ns.max(1.0));
    let (least, most) = (times().min_by(f64::total_cmp)?, times().max_by(f64::total_cmp)?);
    let gap = spots.iter().map(|spot| spot.gap).fold(0.0, f64::max);
    let x = Axis::times("mean planning time", least, most);
    let y = Axis::gaps("mean gap to the proven bound", gap);
    let mut spots = spots.to_vec();
    spots.sort_by(|a, b| a.time_ns.total_cmp(&b.time_ns));
    Some(figure("Gap against planning time", SIZE, move |root| {
        let mut chart = chart(root, ROOM, &x, &y)?;
        let front: Vec<&Spot> = spots.iter().filter(|spot| spot.is_front).collect();
        steps(&mut chart, &front, x.high())?;
        let dot = |spot: &Spot, radius, color| {
            let at = (spot.time_ns.max(1.0), spot.gap);
            let tip = format!("{}: {}, gap {}", spot.label, nanoseconds(spot.time_ns), percent(spot.gap));
            told(Marker::new(at, Shape::Circle, radius, color), tip)
        };
        chart.draw_series(spots.iter().filter(|spot| !spot.is_front).map(|spot| dot(spot, 3, GRAY)))?;
        chart.draw_series(front.iter().map(|spot| dot(spot, 5, BLUE)))?;
        names(root, &chart, &spots, &front)
    }))
}

/// The front as steps: what is reached after each time.
fn steps(chart: &mut Chart<'_>, front: &[&Spot], end: f64) -> Drawn {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for spot in front {
        points.extend(points.last().map(|&(_, gap)| (spot.time_ns.max(1.0), gap)));
        points.push((spot.time_ns.max(1.0), spot.gap));
    }
    points.extend(points.last().map(|&(_, gap)| (end, gap)));
    line(chart, points, BLUE.stroke_width(1), true)
}

/// Writes the names of the front beside their dots, over no other name and no dot if there is room.
fn names(root: &Area<'_>, chart: &Chart<'_>, spots: &[Spot], front: &[&Spot]) -> Drawn {
    let (right, bottom) = ((SIZE.0 - ROOM.right).cast_signed(), (SIZE.1 - ROOM.bottom).cast_signed() - 8);
    let place = |spot: &Spot| chart.backend_coord(&(spot.time_ns.max(1.0), spot.gap));
    let dots: Vec<(i32, i32)> = spots.iter().map(place).collect();
    let mut taken: Vec<(i32, i32, i32)> = Vec::new();
    for spot in front {
        let (x, y) = place(spot);
        let wide = text_width(&spot.label, LETTERS).cast_signed();
        let is_free = |&(left, middle): &(i32, i32)| {
            let apart =
                |&(l, r, m): &(i32, i32, i32)| left > r + 4 || left + wide < l - 4 || (middle - m).abs() > 15;
            left + wide <= right && middle > 10 && middle < bottom && taken.iter().all(apart)
        };
        let covers_no_dot = |&(left, middle): &(i32, i32)| {
            dots.iter().all(|&(x, y)| x < left - 5 || x > left + wide + 5 || (y - middle).abs() > 11)
        };
        let rows = [-12, 12, 0, -26, 26, -40, 40, -54, -68, -82];
        let places = || {
            let beside = rows.iter().flat_map(|row| {
                [(x + 9, y + row), (x - wide - 9, y + row), (x - wide / 2, y + row), (x - wide - 40, y + row)]
            });
            beside.filter(&is_free)
        };
        let place =
            places().find(covers_no_dot).or_else(|| places().next()).unwrap_or((x - wide - 8, y - 12));
        taken.push((place.0, place.0 + wide, place.1));
        if (place.1 - y).abs() > 14 || place.0 > x + 12 || place.0 + wide < x - 12 {
            let edge = (x.clamp(place.0, place.0 + wide), place.1 + if place.1 < y { 7 } else { -7 });
            root.draw(&PathElement::new([(x, y), edge], MUTED.stroke_width(1)))?;
        }
        let style = letters(LETTERS, TEXT).pos(Pos::new(HPos::Left, VPos::Center));
        root.draw(&Text::new(spot.label.as_str(), place, style))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_has_names_and_the_others_have_tips() {
        let spot =
            |label: &str, time_ns, gap, is_front| Spot { label: label.to_owned(), time_ns, gap, is_front };
        let spots = [
            spot("quick<", 1e4, 0.02, true),
            spot("close", 1e4, 0.02, true),
            spot("beaten", 1e8, 0.5, false),
        ];
        let svg = plot(&spots).expect("drawn").to_inline_svg().expect("writes");
        assert!(svg.contains(">quick&lt;<") && svg.contains(">close<") && !svg.contains(">beaten<"), "{svg}");
        assert!(svg.contains("beaten: 100 ms, gap 50.00 %"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 3);
        let at =
            |name: &str| svg.split(&format!(">{name}<")).next().and_then(|text| text.rsplit("<text").next());
        assert_ne!(at("quick&lt;"), at("close"), "names stand apart");
        assert!(plot(&[]).is_none());
    }

    #[test]
    fn a_name_covers_no_dot() {
        // A dot is where the name would be: to the right of its own, and above.
        let spot =
            |label: &str, time_ns, gap, is_front| Spot { label: label.to_owned(), time_ns, gap, is_front };
        let place = |spots: &[Spot]| -> (f64, f64) {
            let svg = plot(spots).expect("drawn").to_inline_svg().expect("writes");
            let text =
                svg.split(">best<").next().and_then(|text| text.rsplit("<text").next()).expect("a name");
            let number = |name: &str| {
                let rest = text.split(&format!(" {name}=\"")).nth(1).expect("a place");
                rest.split('"').next().and_then(|number| number.parse().ok()).expect("a number")
            };
            (number("x"), number("y"))
        };
        let (best, far) = (spot("best", 1e4, 0.02, true), spot("far", 1e8, 0.5, false));
        let alone = place(&[best.clone(), far.clone()]);
        let near = spot("near", 1.25e4, 0.026, false);
        assert_ne!(place(&[best, near, far]), alone);
    }
}
