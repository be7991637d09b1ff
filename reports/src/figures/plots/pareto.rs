//! Mean gap against mean planning time, with the names of the planners that no other beats in both.

use plotters::element::{PathElement, Text};
use plotters::style::Color;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::figures::chart::{
    Chart, LETTERS, Marker, Room, draw_chart, draw_line, text_style, text_width, told,
};
use crate::figures::coord::Axis;
use crate::figures::palette::{BLUE, GRAY, MUTED, Shape, TEXT};
use crate::figures::{Area, Drawing, Drawn, figure};
use crate::format::{format_nanoseconds, format_percent};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spot {
    pub(crate) label: String,
    pub(crate) time_ns: f64,
    pub(crate) gap: f64,
    /// Whether no other planner is both faster and closer.
    pub(crate) is_front: bool,
}

/// The size of the picture in pixels: half a page, of a report or of the README.
pub(super) const SIZE: (u32, u32) = (520, 320);
pub(super) const ROOM: Room = Room { left: 74, top: 16, right: 24, bottom: 46, below: 3 };

/// Draws a dot for each planner, and the front as a line of named dots; `None` without planners.
pub(crate) fn plot_pareto(spots: &[Spot]) -> Option<Drawing> {
    let times = || spots.iter().map(|spot| spot.time_ns.max(1.0));
    let (least, most) = (times().min_by(f64::total_cmp)?, times().max_by(f64::total_cmp)?);
    let gap = spots.iter().map(|spot| spot.gap).fold(0.0, f64::max);
    let x = Axis::times("mean planning time", least, most);
    let y = Axis::gaps("mean gap to the proven bound", gap);
    let mut spots = spots.to_vec();
    spots.sort_by(|a, b| a.time_ns.total_cmp(&b.time_ns));
    Some(figure("Gap against planning time", SIZE, move |root| {
        let mut chart = draw_chart(root, ROOM, &x, &y)?;
        let front: Vec<&Spot> = spots.iter().filter(|spot| spot.is_front).collect();
        draw_steps(&mut chart, &front, x.high())?;
        let dot = |spot: &Spot, radius, color| {
            let at = (spot.time_ns.max(1.0), spot.gap);
            let (time, gap) = (format_nanoseconds(spot.time_ns), format_percent(spot.gap));
            let tip = format!("{}: {time}, gap {gap}", spot.label);
            told(Marker::new(at, Shape::Circle, radius, color), tip)
        };
        chart.draw_series(spots.iter().filter(|spot| !spot.is_front).map(|spot| dot(spot, 3, GRAY)))?;
        chart.draw_series(front.iter().map(|spot| dot(spot, 5, BLUE)))?;
        draw_names(root, &chart, &spots, &front)
    }))
}

/// The front as steps: what is reached after each time.
fn draw_steps(chart: &mut Chart<'_>, front: &[&Spot], end: f64) -> Drawn {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for spot in front {
        points.extend(points.last().map(|&(_, gap)| (spot.time_ns.max(1.0), gap)));
        points.push((spot.time_ns.max(1.0), spot.gap));
    }
    points.extend(points.last().map(|&(_, gap)| (end, gap)));
    draw_line(chart, points, BLUE.stroke_width(1), true)
}

/// Writes the names of the front beside their dots: over no other name, and over no dot and no line if there is room.
fn draw_names(root: &Area<'_>, chart: &Chart<'_>, spots: &[Spot], front: &[&Spot]) -> Drawn {
    let place = |spot: &Spot| chart.backend_coord(&(spot.time_ns.max(1.0), spot.gap));
    let dots: Vec<Point> = spots.iter().map(place).collect();
    let steps: Vec<Point> = front.iter().map(|spot| place(spot)).collect();
    let mut taken: Vec<Name> = Vec::new();
    for spot in front {
        let dot = place(spot);
        let wide = text_width(&spot.label, LETTERS).cast_signed();
        let name = name_places(dot, wide)
            .filter(|name| name.is_inside() && taken.iter().all(|other| name.is_apart(other)))
            .min_by_key(|name| name.harm_at(&dots, &steps))
            .unwrap_or(Name { dot, left: dot.0 - wide - 9, right: dot.0 - 9, middle: dot.1 - 14 });
        if let Some(end) = name.leader_end() {
            root.draw(&PathElement::new([dot, end], MUTED.stroke_width(1)))?;
        }
        let style = text_style(LETTERS, TEXT).pos(Pos::new(HPos::Left, VPos::Center));
        root.draw(&Text::new(spot.label.as_str(), (name.left, name.middle), style))?;
        taken.push(name);
    }
    Ok(())
}

type Point = (i32, i32);

/// A place for the name of a dot, in pixels.
#[derive(Clone, Copy, Debug)]
struct Name {
    dot: Point,
    left: i32,
    right: i32,
    /// The middle of the letters.
    middle: i32,
}

/// Places around a dot for a name of this width.
fn name_places(dot: Point, wide: i32) -> impl Iterator<Item = Name> {
    let rows = [-14, 14, 0, -28, 28, -42, 42, -56, -70, -84];
    let columns = [9, -wide - 9, -wide / 2, 30, -wide - 30, 60, -wide - 60];
    rows.into_iter().flat_map(move |row| {
        columns.into_iter().map(move |column| {
            let left = dot.0 + column;
            Name { dot, left, right: left + wide, middle: dot.1 + row }
        })
    })
}

impl Name {
    /// Half the height of the letters.
    const HALF: i32 = 7;

    fn is_inside(&self) -> bool {
        let (right, bottom) = (SIZE.0 - ROOM.right, SIZE.1 - ROOM.bottom - ROOM.below - 8);
        self.left > ROOM.left.cast_signed()
            && self.right <= right.cast_signed()
            && self.middle > 10
            && self.middle < bottom.cast_signed()
    }

    /// Whether neither of two names is over the other or over its line.
    fn is_apart(&self, other: &Self) -> bool {
        let is_free = self.left > other.right + 4
            || self.right < other.left - 4
            || (self.middle - other.middle).abs() > 15;
        let crosses = |name: &Self, line: &Self| {
            line.leader_end()
                .is_some_and(|end| points_between(line.dot, end).any(|point| name.covers_point(point, 1)))
        };
        is_free && !crosses(self, other) && !crosses(other, self)
    }

    /// The end of the line that joins a dot to its name; `None` if the name is beside the dot.
    fn leader_end(&self) -> Option<Point> {
        let (x, y) = self.dot;
        let is_beside = (self.middle - y).abs() <= 15 && self.left <= x + 12 && self.right >= x - 12;
        (!is_beside).then(|| {
            let across = x.clamp(self.left - 2, self.right + 2);
            let is_level = (self.middle - y).abs() <= Self::HALF;
            (across, if is_level { y } else { self.middle + Self::HALF * (y - self.middle).signum() })
        })
    }

    /// Whether a point with this much room around it lies under the letters.
    fn covers_point(&self, (x, y): Point, room: i32) -> bool {
        x >= self.left - room && x <= self.right + room && (y - self.middle).abs() <= Self::HALF + room
    }

    /// How bad the place is: dots and steps under the letters, dots under the line, then the distance.
    fn harm_at(&self, dots: &[Point], steps: &[Point]) -> i32 {
        let count = |covered: &dyn Fn(Point) -> bool| -> i32 {
            dots.iter().map(|&dot| i32::from(covered(dot))).sum()
        };
        let under_letters = count(&|dot| self.covers_point(dot, 4));
        // The line begins over the dots that touch its own, wherever it goes.
        let under_line = self.leader_end().map_or(0, |end| {
            count(&|dot| {
                !is_near(dot, self.dot, 9)
                    && points_between(self.dot, end).any(|point| is_near(point, dot, 4))
            })
        });
        let on_steps = steps.windows(2).any(|pair| {
            let corner = (pair[1].0, pair[0].1);
            points_between(pair[0], corner)
                .chain(points_between(corner, pair[1]))
                .any(|point| self.covers_point(point, 1))
        });
        let far =
            (self.middle - self.dot.1).abs() + (self.left - self.dot.0).max(self.dot.0 - self.right).max(0);
        under_letters * 10_000 + under_line * 2_000 + i32::from(on_steps) * 500 + far
    }
}

/// Whether a point is within this many pixels of a dot, across and up.
fn is_near((x, y): Point, dot: Point, pixels: i32) -> bool {
    (x - dot.0).abs() <= pixels && (y - dot.1).abs() <= pixels
}

/// Points on the way from one to another, a few pixels apart.
fn points_between(from: Point, to: Point) -> impl Iterator<Item = Point> {
    let pieces = ((to.0 - from.0).abs().max((to.1 - from.1).abs()) / 2).max(1);
    (0..=pieces).map(move |piece| {
        (from.0 + (to.0 - from.0) * piece / pieces, from.1 + (to.1 - from.1) * piece / pieces)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::samples::place_of;

    fn spot(label: &str, time_ns: f64, gap: f64, is_front: bool) -> Spot {
        Spot { label: label.to_owned(), time_ns, gap, is_front }
    }

    #[test]
    fn the_front_has_names_and_the_others_have_tips() {
        let spots = [
            spot("quick<", 1e4, 0.02, true),
            spot("close", 1e4, 0.02, true),
            spot("beaten", 1e8, 0.5, false),
        ];
        let svg = plot_pareto(&spots).expect("drawn").to_inline_svg().expect("writes");
        assert!(svg.contains(">quick&lt;<") && svg.contains(">close<") && !svg.contains(">beaten<"), "{svg}");
        assert!(svg.contains("beaten: 100 ms, gap 50.00 %"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 3);
        let at =
            |name: &str| svg.split(&format!(">{name}<")).next().and_then(|text| text.rsplit("<text").next());
        assert_ne!(at("quick&lt;"), at("close"), "names stand apart");
        assert!(plot_pareto(&[]).is_none());
    }

    #[test]
    fn a_far_name_has_a_line_that_crosses_no_name_and_no_dot() {
        let name = |dot, left, middle| Name { dot, left, right: left + 50, middle };
        assert_eq!(name((100, 100), 109, 100).leader_end(), None);
        let far = name((100, 100), 130, 58);
        assert_eq!(far.leader_end(), Some((128, 65)));
        assert!(!far.is_apart(&name((90, 90), 105, 85)), "over the line");
        assert!(far.is_apart(&name((90, 90), 130, 120)));
        let steps = [(0, 0)];
        assert!(
            far.harm_at(&[(100, 100), (115, 80)], &steps) > far.harm_at(&[(100, 100), (140, 80)], &steps)
        );
        assert!(
            far.harm_at(&[(140, 60)], &steps) > far.harm_at(&[(115, 80)], &steps),
            "letters before the line"
        );
    }

    #[test]
    fn a_name_covers_no_dot() {
        // A dot is where the name would be: to the right of its own, and above.
        let place = |spots: &[Spot]| {
            place_of(&plot_pareto(spots).expect("drawn").to_inline_svg().expect("writes"), "best<")
        };
        let (best, far) = (spot("best", 1e4, 0.02, true), spot("far", 1e8, 0.5, false));
        let alone = place(&[best.clone(), far.clone()]);
        let near = spot("near", 1.25e4, 0.026, false);
        assert_ne!(place(&[best, near, far]), alone);
    }
}
