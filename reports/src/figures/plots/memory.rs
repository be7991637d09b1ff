//! Memory by net and batch: without reuse, with the framework's pool, planned, and the load.

use plotters::style::RGBColor;

use super::bars::{Bars, Part, Slot};
use crate::figures::Drawing;
use crate::figures::chart::{Entry, Key};
use crate::figures::coord::Axis;
use crate::figures::palette::{BLUE, GRAY, ORANGE, TEXT};
use crate::format::{as_real, format_bytes};

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

/// Draws the bars, with the name of the pool; `None` without nets.
pub(crate) fn plot_memory(title: &str, pool: &str, nets: &[NetMemory]) -> Option<Drawing> {
    let top = |net: &NetMemory, parts: &[Option<u64>]| {
        net.parameters.unwrap_or(0) + parts.iter().copied().flatten().max().unwrap_or(0)
    };
    // Values far above all others are cut off, so that the other bars stay visible.
    let reused = nets.iter().map(|net| top(net, &[net.pool, net.height, Some(net.load)])).max()?;
    let all = nets.iter().map(|net| top(net, &[net.network_wise, Some(reused)])).max()?;
    let most = all.min(reused.saturating_add(reused / 2));
    let drawn = |at: usize| nets.iter().map(|net| memory_bars(net, pool)[at]).find(|bar| bar.0.is_some());
    let drawn = (0..3).filter_map(drawn);
    let mut entries: Vec<Entry> = drawn.map(|(_, color, text)| Entry::new(Key::Box, color, text)).collect();
    entries.push(Entry::new(Key::Line { dashed: false }, TEXT, "load"));
    if nets.iter().any(|net| net.parameters.is_some()) {
        entries.push(Entry::new(Key::Box, PARAMETERS, "kept (parameters)"));
    }
    let slots = nets.iter().map(|net| memory_slot(net, pool)).collect();
    let bars = Bars::new(title, Axis::bytes("memory", as_real(most)), slots, entries);
    Some(Bars { height: 324, ..bars }.plot_slots())
}

/// The values of a net that have bars, each with its colour and its name.
const fn memory_bars<'n>(net: &NetMemory, pool: &'n str) -> [(Option<u64>, RGBColor, &'n str); 3] {
    [(net.network_wise, GRAY, "no reuse"), (net.pool, ORANGE, pool), (net.height, BLUE, "planned")]
}

fn memory_slot(net: &NetMemory, pool: &str) -> Slot {
    let kept = net.parameters.unwrap_or(0);
    let bar = |(value, color, what): (Option<u64>, RGBColor, &str)| {
        value.map(|value| {
            let name = format!("{} {}", net.net, net.batch);
            let mut parts = vec![Part {
                from: as_real(kept),
                to: as_real(kept + value),
                color,
                tip: format!("{name}: {what}: {}", format_bytes(value)),
                label: format_bytes(kept + value),
            }];
            if kept > 0 {
                let tip = format!("{name}: kept over all iterations: {}", format_bytes(kept));
                let (to, label) = (as_real(kept), String::new());
                parts.insert(0, Part { from: 0.0, to, color: PARAMETERS, tip, label });
            }
            parts
        })
    };
    Slot {
        group: net.net.clone(),
        name: net.batch.clone(),
        bars: memory_bars(net, pool).into_iter().filter_map(bar).collect(),
        mark: Some(as_real(kept + net.load)),
        ..Slot::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: &str = "framework's pool";

    fn alexnet() -> NetMemory {
        let (net, batch) = ("alexnet".to_owned(), "b32".to_owned());
        NetMemory { net, batch, parameters: None, network_wise: None, pool: None, height: Some(50), load: 50 }
    }

    fn svg(net: NetMemory) -> String {
        plot_memory("Memory", POOL, &[net]).expect("drawn").to_inline_svg().expect("writes")
    }

    #[test]
    fn a_bar_far_above_the_others_is_cut_off_and_keeps_its_value() {
        let (network_wise, height) = (Some(10 << 30), Some(1 << 20));
        let svg = svg(NetMemory { network_wise, height, load: 1 << 20, ..alexnet() });
        assert!(svg.contains(">10.0 GiB<") && svg.contains(">1 MiB<"), "{svg}");
        assert!(!svg.contains("y=\"-"), "nothing lies above the picture");
    }

    #[test]
    fn bars_stand_on_the_part_that_is_kept() {
        let net = NetMemory { parameters: Some(100), network_wise: Some(300), ..alexnet() };
        let slot = memory_slot(&net, POOL);
        assert_eq!(slot.bars.len(), 2);
        let ends: Vec<(f64, f64)> = slot.bars[0].iter().map(|part| (part.from, part.to)).collect();
        assert_eq!(ends, [(0.0, 100.0), (100.0, 400.0)]);
        assert_eq!(slot.mark, Some(150.0));
        let svg = svg(net);
        assert!(svg.contains("alexnet b32: planned: 50 B") && !svg.contains("pool"), "{svg}");
        assert!(plot_memory("Memory", POOL, &[]).is_none());
    }

    #[test]
    fn the_legend_names_the_bars_that_are_drawn() {
        let net = NetMemory { pool: Some(60), ..alexnet() };
        let own = svg(net.clone());
        assert!(own.contains("framework's pool<") && own.contains("planned<"), "{own}");
        assert!(!own.contains("no reuse"), "{own}");
        assert!(svg(NetMemory { network_wise: Some(90), ..net }).contains("no reuse<"));
    }
}
