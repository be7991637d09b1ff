//! The page on the memory that each net needs: planned, with its framework's pool, and without any reuse. Memory that is
//! kept over all iterations is shown apart.

use std::collections::BTreeMap;

use crate::data::nets::net_memory::{self, Net, Sources, own_pool};
use crate::data::nets::parts::{NetPart, parts, shown_batch};
use crate::data::papers::paper::{Quantity, published_figures};
use crate::figures::plots::memory::{self, NetMemory};
use crate::format::{format_bytes, format_percent};
use crate::site::Site;
use crate::site::page::{Menu, Page, Piece, Text};
use planlab_results::table::{CellValue, Table, columns};

/// Bars per batch.
const BARS: usize = 3;

/// The page; `None` if no workload is a net.
pub(crate) fn page(site: &Site<'_>) -> Option<Page> {
    let sums = sums(site);
    let nets = nets(site, &sums);
    let played: Vec<&Net<'_>> = nets.iter().filter(|net| net.is_played).collect();
    let mut pieces = vec![Piece::note(Text::from_marked(
        "What a net needs on the device: without any reuse (*network-wise*), with the pool of its own framework, and \
         planned ahead. *Kept* memory (parameters, and in training their gradients and the optimizer's state) stays over \
         all iterations and is not planned: the pictures show it as the light part of each bar, and the totals include it. \
         The pools are our own implementations on simulated memory.",
    ))];
    pieces.extend(figures(&nets));
    pieces.extend(Piece::section("By net and batch", by_net(site, &played)));
    pieces.extend(Piece::section("Beside the published figures", beside_published(&nets)));
    let question = "How much memory does each net need?";
    (pieces.len() > 1)
        .then(|| Page::new("memory.html", question).in_menu(Menu::Memory, question).with(pieces))
}

/// The sums of sizes of the workloads whose instances are at hand.
pub(crate) fn sums(site: &Site<'_>) -> BTreeMap<usize, u64> {
    let stored = site.instances.iter().enumerate();
    stored.filter_map(|(number, stored)| Some((number, stored.as_ref()?.total))).collect()
}

pub(crate) fn nets<'a>(site: &'a Site<'a>, sums: &'a BTreeMap<usize, u64>) -> Vec<Net<'a>> {
    net_memory::collect_nets(Sources {
        model: site.model,
        replays: site.replays,
        totals: &site.options.totals,
        baseline: &site.options.baseline,
        sums,
    })
}

/// A figure for each route and mode. A model's other orders and limits have a page of their own.
fn figures(nets: &[Net<'_>]) -> Vec<Piece> {
    let shown: Vec<&Net<'_>> =
        nets.iter().filter(|net| net.key.route != "model" || net.key.variant.is_none()).collect();
    let mut pieces = Vec::new();
    for NetPart { route, title, nets: chosen } in parts(shown.iter().map(|net| net.workload), BARS) {
        let bars: Vec<NetMemory> = chosen.iter().map(|(_, at)| bars(shown[*at])).collect();
        let title = format!("Memory by net and batch: {title}");
        let is_played = chosen.iter().any(|(_, at)| shown[*at].is_played);
        let pool = if is_played { own_pool(route) } else { "framework's pool" };
        let has = |part: fn(&NetMemory) -> Option<u64>| bars.iter().any(|bar| part(bar).is_some());
        let mut caption = String::new();
        if has(|bar| bar.network_wise) {
            caption += "Gray: each request has memory of its own. ";
        }
        if has(|bar| bar.pool) {
            caption += &format!(
                "Orange: {pool}, after a whole process if one was recorded, otherwise after the propagations that the \
                 table states. "
            );
        }
        caption += "Blue: planned. The tick is the most that is requested at once, which no allocator can do without. ";
        if has(|bar| bar.parameters) {
            caption += "The light part below is kept over all iterations. ";
        }
        caption += "A bar that leaves the frame has its value above it.";
        pieces
            .extend(memory::plot_memory(&title, pool, &bars).map(|drawing| Piece::chapter(drawing, caption)));
    }
    pieces
}

fn bars(net: &Net<'_>) -> NetMemory {
    NetMemory {
        net: net.key.net.to_owned(),
        batch: shown_batch(&net.key),
        parameters: net.kept,
        network_wise: net.network_wise,
        pool: net.pool_total().map(|total| total.saturating_sub(net.kept_bytes())),
        height: net.planned,
        load: net.requested,
    }
}

fn by_net(site: &Site<'_>, nets: &[&Net<'_>]) -> Table {
    Table::from_rows(
        "memory-by-net",
        "Each total includes what is kept over all iterations; planned less kept is the height of the plan. Pool: that of \
         the net's own framework, after a whole process if one was recorded and played, otherwise what is kept and what \
         it reserves over propagations of the net. Real pool: what the framework's own code held for the same requests. \
         Reduction: what planning saves of the pool; of the propagation: the same without what is kept.",
        nets,
        columns!(|net| {
            let known = site.options.totals.get(net.workload.as_str()).copied().unwrap_or_default();
            let of_propagation = net.propagation_reduction();
            let real_pool = match net.process {
                Some(_) => known.process_pool,
                None => known.pool.map(|pool| net.kept_bytes() + pool),
            };
            [
                ("workload", "Workload", site.workload_link(net.workload)),
                ("kept_bytes", "Kept", CellValue::bytes(net.kept)),
                ("network_wise_bytes", "Network-wise", CellValue::bytes(net.network_wise_total())),
                ("pool", "Pool", CellValue::text(own_pool(net.key.route))),
                ("pool_from", "after", CellValue::text(net.pool_from())),
                ("pool_bytes", "Pool holds", CellValue::bytes(net.pool_total())),
                ("real_pool_bytes", "Real pool", CellValue::bytes(real_pool)),
                ("planned_bytes", "Planned", CellValue::bytes(net.planned_total())),
                ("requested_bytes", "At least", CellValue::Bytes(net.kept_bytes() + net.requested)),
                ("reduction", "Reduction", CellValue::share(net.share_saved())),
                ("propagation_reduction", "of the propagation", CellValue::share(of_propagation)),
            ]
        }),
    )
}

fn beside_published(nets: &[Net<'_>]) -> Table {
    let compared = published_figures().iter().filter_map(|figure| {
        let net = nets.iter().find(|net| *net.workload == *figure.workload)?;
        Some((figure, net, net.comparable_figure(figure.of, nets)?))
    });
    Table::from_rows(
        "memory-published",
        "Figures of the profile-guided paper (arXiv:1804.10001), parameters included, beside ours from the rows of this \
         report. The paper's inference and seq2seq depend on sizes of workspaces and sentences that are not known here. Its \
         Inception-ResNet is a network of its own, and the paper does not state the batch for its ratio to AlexNet \
         (docs/claims.md).",
        compared,
        columns!(|(figure, net, ours)| {
            let (shown, exactly) = written(figure.of, net, ours);
            [
                ("workload", "Workload", CellValue::text(net.workload)),
                ("figure", "Figure", CellValue::text(figure.of.name())),
                ("published", "Published", CellValue::text(&figure.published)),
                ("ours", "Ours", CellValue::text(shown)),
                ("ours_exact", "Exactly", exactly),
                ("lies", "Ours lies", CellValue::text(figure.relative_position(ours))),
            ]
        }),
    )
}

/// Our figure for people, and exactly.
fn written(quantity: Quantity, net: &Net<'_>, ours: f64) -> (String, CellValue) {
    let exact = match quantity {
        Quantity::NetworkWise => net.network_wise_total(),
        Quantity::Pool => net.pool_total(),
        _ => None,
    };
    match (exact, quantity) {
        (Some(exact), _) => {
            (format!("{:.2} GB ({})", ours / 1e9, format_bytes(exact)), CellValue::Count(exact))
        }
        (None, Quantity::PoolOverAlexnet) => (format!("{ours:.2} x"), CellValue::Number(ours)),
        (None, _) => (format_percent(ours), CellValue::Share(ours)),
    }
}
