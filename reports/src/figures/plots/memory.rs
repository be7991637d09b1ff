//! Memory by net and batch: without reuse, with the framework's pool, planned, and the load.

use plotters::style::RGBColor;

use super::bars::{Bars, Part, Slot};
use crate::figures::Drawing;
use crate::figures::chart::{Entry, Key};
use crate::figures::coord::Axis;
use crate::figures::palette::{BLUE, GRAY, ORANGE, TEXT};
use crate::format::{bytes, real};

/// The memory of one net at one batch in bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NetMemory {
    pub(crate) net: String,
    pub(crate) batch: String,
    /// Bytes kept over all iterations, in addition to the planned ones.
    pub(crate) parameters: Option<u64>,
    /// The sum of all sizes, without any reuse.
    pub(crate) network_wise: Option<u64>,
    /// The bytes that the framework's pool took.
    pub(crate) pool: Option<u64>,
    /// The plan's height.
    pub(crate) height: Option<u64>,
    pub(crate) load: u64,
}

const PARAMETERS: RGBColor = RGBColor(0xb8, 0xbf, 0xc7);

/// The names of the bars.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'a> {
    pub(crate) title: &'a str,
    pub(crate) pool: &'a str,
    pub(crate) planner: &'a str,
}

/// Draws the bars; `None` without nets.
pub(crate) fn plot(names: Names<'_>, nets: &[NetMemory]) -> Option<Drawing> {
    let top = |net: &NetMemory, parts: &[Option<u64>]| {
        net.parameters.unwrap_or(0) + parts.iter().copied().flatten().max().unwrap_or(0)
    };
    // Values far above all others are cut off, so that the other bars stay visible.
    let reused = nets.iter().map(|net| top(net, &[net.pool, net.height, Some(net.load)])).max()?;
    let all = nets.iter().map(|net| top(net, &[net.network_wise, Some(reused)])).max()?;
    let most = all.min(reused.saturating_add(reused / 2));
    let entry = |color, text: &str| Entry { key: Key::Box, color, text: text.to_owned() };
    let drawn = |at: usize| nets.iter().map(|net| bars(net, names)[at]).find(|bar| bar.0.is_some());
    let drawn = (0..3).filter_map(drawn);
    let mut entries: Vec<Entry> = drawn.map(|(_, color, text)| entry(color, text)).collect();
    entries.push(Entry { key: Key::Line { dashed: false }, color: TEXT, text: "load".to_owned() });
    if nets.iter().any(|net| net.parameters.is_some()) {
        entries.push(entry(PARAMETERS, "kept (parameters)"));
    }
    let figure = Bars {
        title: names.title.to_owned(),
        y: Axis::bytes("memory", real(most)),
        height: 324,
        note: String::new(),
        slots: nets.iter().map(|net| slot(net, names)).collect(),
        entries,
    };
    Some(figure.plot())
}

/// The values of a net that have bars, each with its colour and its name.
const fn bars<'n>(net: &NetMemory, names: Names<'n>) -> [(Option<u64>, RGBColor, &'n str); 3] {
    [(net.network_wise, GRAY, "no reuse"), (net.pool, ORANGE, names.pool), (net.height, BLUE, names.planner)]
}

fn slot(net: &NetMemory, names: Names<'_>) -> Slot {
    let kept = net.parameters.unwrap_or(0);
    let bar = |(value, color, what): (Option<u64>, RGBColor, &str)| {
        value.map(|value| {
            let name = format!("{} {}", net.net, net.batch);
            let mut parts = vec![Part {
                from: real(kept),
                to: real(kept + value),
                color,
                tip: format!("{name}: {what}: {}", bytes(value)),
                label: bytes(kept + value),
            }];
            if kept > 0 {
                let tip = format!("{name}: kept over all iterations: {}", bytes(kept));
                let (to, label) = (real(kept), String::new());
                parts.insert(0, Part { from: 0.0, to, color: PARAMETERS, tip, label });
            }
            parts
        })
    };
    Slot {
        group: net.net.clone(),
        name: net.batch.clone(),
        bars: bars(net, names).into_iter().filter_map(bar).collect(),
        dots: Vec::new(),
        mark: Some(real(kept + net.load)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: Names<'_> = Names { title: "Memory", pool: "framework's pool", planner: "best-fit" };

    #[test]
    fn a_bar_far_above_the_others_is_cut_off_and_keeps_its_value() {
        let net = NetMemory {
            net: "seq2seq".to_owned(),
            batch: "b1".to_owned(),
            parameters: None,
            network_wise: Some(10 << 30),
            pool: None,
            height: Some(1 << 20),
            load: 1 << 20,
        };
        let svg = plot(NAMES, &[net]).expect("drawn").to_inline_svg().expect("writes");
        assert!(svg.contains(">10.0 GiB<") && svg.contains(">1 MiB<"), "{svg}");
        assert!(!svg.contains("y=\"-"), "nothing lies above the picture");
    }

    #[test]
    fn bars_stand_on_the_part_that_is_kept() {
        let net = NetMemory {
            net: "alexnet".to_owned(),
            batch: "b32".to_owned(),
            parameters: Some(100),
            network_wise: Some(300),
            pool: None,
            height: Some(50),
            load: 50,
        };
        let slot = slot(&net, NAMES);
        assert_eq!(slot.bars.len(), 2);
        let ends: Vec<(f64, f64)> = slot.bars[0].iter().map(|part| (part.from, part.to)).collect();
        assert_eq!(ends, [(0.0, 100.0), (100.0, 400.0)]);
        assert_eq!(slot.mark, Some(150.0));
        let svg = plot(NAMES, &[net]).expect("drawn").to_inline_svg().expect("writes");
        assert!(svg.contains("alexnet b32: best-fit: 50 B") && !svg.contains("pool"), "{svg}");
        assert!(plot(NAMES, &[]).is_none());
    }

    #[test]
    fn the_legend_names_the_bars_that_are_drawn() {
        let net = NetMemory {
            net: "alexnet".to_owned(),
            batch: "b32".to_owned(),
            parameters: None,
            network_wise: None,
            pool: Some(60),
            height: Some(50),
            load: 50,
        };
        let of = |net| plot(NAMES, &[net]).expect("drawn").to_inline_svg().expect("writes");
        let svg = of(net.clone());
        assert!(
            svg.contains("framework's pool<") && svg.contains("best-fit<") && !svg.contains("no reuse"),
            "{svg}"
        );
        assert!(of(NetMemory { network_wise: Some(90), ..net }).contains("no reuse<"));
    }
}
