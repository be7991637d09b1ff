//! The page on memory by net, batch and allocator; memory kept over all iterations is separate.

use planlab_results::{NetParts, WorkloadKey};

use crate::data::model::natural;
use crate::data::nets::{NetPart, net_of, parts, shown_batch};
use crate::data::paper::{Published, Quantity, published};
use crate::data::replays::Case;
use crate::figures::memory::{self, Names, NetMemory};
use crate::format::{bytes, percent, real};
use crate::site::Site;
use crate::site::page::{Page, Piece};
use planlab_dsa::performance::End;
use planlab_results::table::{Column, Table, Value};

/// Bars per batch.
const BARS: usize = 3;

/// The memory of a net's propagation in bytes.
struct Net<'a> {
    workload: &'a WorkloadKey,
    key: NetParts<'a>,
    /// Bytes kept over all iterations: parameters, and in training also their gradients and the optimizer's state.
    kept: Option<u64>,
    /// Bytes without any reuse.
    network_wise: Option<u64>,
    /// Bytes that the framework's own pool reserves over propagations.
    pool: Option<u64>,
    /// The number of these propagations.
    propagations: usize,
    /// Bytes that it holds at the end of a whole process, including kept ones.
    process: Option<u64>,
    planned: Option<u64>,
    /// The most requested bytes at once.
    requested: u64,
}

impl Net<'_> {
    fn kept(&self) -> u64 {
        self.kept.unwrap_or(0)
    }

    /// Bytes that the pool holds, including kept ones.
    fn pool_total(&self) -> Option<u64> {
        self.process.or_else(|| Some(self.kept() + self.pool?))
    }

    fn planned_total(&self) -> Option<u64> {
        Some(self.kept() + self.planned?)
    }

    fn network_wise_total(&self) -> Option<u64> {
        Some(self.kept() + self.network_wise?)
    }

    /// The moment at which the pool was measured.
    fn pool_from(&self) -> String {
        match (self.process, self.pool) {
            (Some(_), _) => "a process".to_owned(),
            (None, Some(_)) if self.propagations == 1 => "1 propagation".to_owned(),
            (None, Some(_)) => format!("{} propagations", self.propagations),
            (None, None) => String::new(),
        }
    }

    /// The share of the pool's bytes that the plan saves.
    fn reduction(&self) -> Option<f64> {
        saved(self.pool_total()?, self.planned_total()?)
    }

    /// The same without kept bytes.
    fn propagation_reduction(&self) -> Option<f64> {
        saved(self.pool?, self.planned?)
    }

    /// A figure that corresponds to one of the paper; the paper's figures include kept bytes.
    fn figure(&self, quantity: Quantity, nets: &[Net<'_>]) -> Option<f64> {
        self.kept?;
        match quantity {
            Quantity::NetworkWise => self.network_wise_total().map(real),
            Quantity::Pool => self.pool_total().map(real),
            Quantity::Reduction => self.reduction(),
            Quantity::PoolOverAlexnet => {
                let alexnet = NetParts { net: "alexnet", ..self.key };
                let alexnet = nets.iter().find(|net| net.key == alexnet && net.kept.is_some())?;
                Some(real(self.pool_total()?) / real(alexnet.pool_total()?.max(1)))
            }
            // Figures over several nets, and times, are on other pages.
            Quantity::GreatestReduction | Quantity::SpeedUp => None,
        }
    }
}

fn saved(before: u64, after: u64) -> Option<f64> {
    (before > 0).then(|| 1.0 - real(after) / real(before))
}

/// The pool of the framework from which a workload was recorded.
pub(super) fn own_pool(route: &str) -> &'static str {
    match route {
        // Models follow Chainer's rules.
        "chainer" | "model" => "cupy2rc1-pool",
        _ => "pytorch-caching",
    }
}

/// The page; `None` unless an allocator was played on a net.
pub(super) fn page(site: &Site<'_>) -> Option<Page> {
    let nets = nets(site);
    let mut pieces = vec![Piece::note(
        "What a net takes on the device: without any reuse (network-wise), with the pool of its own framework, and \
         planned ahead. The pools are the lab's own implementations over simulated memory, from the rows of this \
         report; what is kept over all iterations is not planned and stands apart.",
    )];
    pieces.extend(figures(&nets));
    if !nets.is_empty() {
        pieces.push(Piece::Table(by_net(site, &nets)));
    }
    let compared = beside_published(&nets);
    if !compared.rows.is_empty() {
        pieces.push(Piece::heading("Beside the published figures"));
        pieces.push(Piece::Table(compared));
    }
    if let Some(all) = all_pools(site) {
        pieces.push(Piece::heading("All allocators"));
        pieces.push(Piece::Table(all));
    }
    for (heading, table) in [("By capacity", limited(site)), ("On real memory", physical(site))] {
        if !table.rows.is_empty() {
            pieces.push(Piece::heading(heading));
            pieces.push(Piece::Table(table));
        }
    }
    let title = "Memory by net, batch and allocator";
    (pieces.len() > 1).then(|| Page::new("memory.html", title).named("Memory").with(pieces))
}

/// The nets on which an allocator was played over simulated memory.
fn nets<'a>(site: &Site<'a>) -> Vec<Net<'a>> {
    let mut workloads: Vec<&WorkloadKey> =
        site.replays.simulated().map(|case| &case.row().workload).collect();
    workloads.sort_unstable_by(|a, b| natural(a, b));
    workloads.dedup();
    workloads.into_iter().filter_map(|workload| net(site, workload)).collect()
}

fn net<'a>(site: &Site<'a>, workload: &'a WorkloadKey) -> Option<Net<'a>> {
    let key = net_of(workload)?;
    let pool = own_pool(key.route);
    let served = |contender: &str| site.replays.served(workload, contender);
    let any = site.replays.simulated().find(|case| case.row().workload == *workload)?.row();
    let totals = site.options.totals.get(workload.as_str()).copied().unwrap_or_default();
    Some(Net {
        workload,
        kept: totals.parameters.or(any.retained),
        network_wise: served("network-wise").map(|case| case.row().performance.reserved_peak),
        pool: served(pool).map(|case| case.row().performance.reserved_peak),
        propagations: served(pool).map_or(0, Case::looked_at),
        process: process_of(site, &key, pool),
        planned: planned(site, workload),
        requested: any.requested_peak,
        key,
    })
}

/// The bytes that the pool held after a whole process of the net at this batch; only for nets in training.
fn process_of(site: &Site<'_>, key: &NetParts<'_>, pool: &str) -> Option<u64> {
    // A variant is one of several different iterations.
    if key.mode != "train" || key.variant.is_some() {
        return None;
    }
    let process = format!("{}/{}/process/b{}", key.route, key.net, key.batch);
    site.replays.served(&process, pool).map(|case| case.row().performance.reserved_peak)
}

/// The steady state of profile-guided allocation; if it was not played, the height of the baseline's plan.
fn planned(site: &Site<'_>, workload: &str) -> Option<u64> {
    let settled = site.replays.served(workload, "profile-guided").and_then(Case::settled);
    settled.or_else(|| {
        let model = site.model;
        model.height(model.planner_of(&site.options.baseline)?, model.workload_of(workload)?)
    })
}

fn figures(nets: &[Net<'_>]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for NetPart { route, title, nets: chosen } in parts(nets.iter().map(|net| net.workload), BARS) {
        let bars: Vec<NetMemory> = chosen.into_iter().map(|(_, at)| bars(&nets[at])).collect();
        let title = format!("Reserved memory by net and batch: {title}");
        let pool = own_pool(route);
        let names = Names { title: &title, pool, planner: "planned" };
        let no_reuse = bars.iter().any(|bar| bar.network_wise.is_some());
        let caption = format!(
            "{}Orange: {pool}, after a whole process where one was recorded, \
             else after the propagations that the table names. Blue: planned by best fit. The tick is the most \
             that is requested at once, which no allocator can do without. The light part below is kept over all iterations. Bars that \
             leave the frame are cut off and have their value above them.",
            if no_reuse { "Gray: every request with memory of its own. " } else { "" }
        );
        pieces.extend(memory::plot(names, &bars).map(|drawing| Piece::figure(drawing, caption)));
    }
    pieces
}

fn bars(net: &Net<'_>) -> NetMemory {
    NetMemory {
        net: net.key.net.to_owned(),
        batch: shown_batch(&net.key),
        parameters: net.kept,
        network_wise: net.network_wise,
        pool: net.pool_total().map(|total| total.saturating_sub(net.kept())),
        height: net.planned,
        load: net.requested,
    }
}

fn by_net(site: &Site<'_>, nets: &[Net<'_>]) -> Table {
    let mut table = Table::named(
        "memory-by-net",
        "Bytes, with what is kept over all iterations in each of the totals. Pool: that of the net's own framework; \
         after a whole process where one was recorded and played, else what is kept and what it reserves over \
         propagations of the net. Real pool: what the framework's own code held for the same requests. Reduction: by \
         planning, against the pool; of the propagation: without what is kept in either.",
        &[
            ("workload", "Workload"),
            ("kept_bytes", "Kept"),
            ("network_wise_bytes", "Network-wise"),
            ("pool", "Pool"),
            ("pool_from", "after"),
            ("pool_bytes", "Pool holds"),
            ("real_pool_bytes", "Real pool"),
            ("planned_bytes", "Planned"),
            ("requested_bytes", "At least"),
            ("reduction", "Reduction"),
            ("propagation_reduction", "of the propagation"),
        ],
    );
    let total = |bytes: Option<u64>| Value::or_missing(bytes.map(Value::Bytes));
    for net in nets {
        let known = site.options.totals.get(net.workload.as_str()).copied().unwrap_or_default();
        let real_pool = match net.process {
            Some(_) => known.process_pool,
            None => known.pool.map(|pool| net.kept() + pool),
        };
        table.push(vec![
            site.link(net.workload),
            total(net.kept),
            total(net.network_wise_total()),
            Value::text(own_pool(net.key.route)),
            Value::text(net.pool_from()),
            total(net.pool_total()),
            total(real_pool),
            total(net.planned_total()),
            Value::Bytes(net.kept() + net.requested),
            Value::or_missing(net.reduction().map(Value::Share)),
            Value::or_missing(net.propagation_reduction().map(Value::Share)),
        ]);
    }
    table
}

fn beside_published(nets: &[Net<'_>]) -> Table {
    let mut table = Table::named(
        "memory-published",
        "Figures of the profile-guided paper (arXiv:1804.10001), parameters included, beside ours from the rows of this \
         report. The paper's inference and seq2seq rest on sizes of workspaces and sentences that are not known here, and its \
         Inception-ResNet is a network of its own: how many times AlexNet's memory it takes is not said of which batch \
         (docs/claims.md).",
        &[
            ("workload", "Workload"),
            ("figure", "Figure"),
            ("published", "Published"),
            ("ours", "Ours"),
            ("ours_exact", "Exactly"),
            ("lies", "Ours lies"),
        ],
    );
    for figure in published() {
        let net = nets.iter().find(|net| *net.workload == *figure.workload);
        let Some((net, ours)) = net.and_then(|net| Some((net, net.figure(figure.of, nets)?))) else {
            continue;
        };
        table.push(comparison(figure, net, ours));
    }
    table
}

fn comparison(figure: &Published, net: &Net<'_>, ours: f64) -> Vec<Value> {
    let exact = match figure.of {
        Quantity::NetworkWise => net.network_wise_total(),
        Quantity::Pool => net.pool_total(),
        _ => None,
    };
    let (shown, exactly) = match (exact, figure.of) {
        (Some(exact), _) => (format!("{:.2} GB ({})", ours / 1e9, bytes(exact)), Value::Count(exact)),
        (None, Quantity::PoolOverAlexnet) => (format!("{ours:.2} x"), Value::Number(ours)),
        (None, _) => (percent(ours), Value::Share(ours)),
    };
    vec![
        Value::text(net.workload),
        Value::text(figure.of.name()),
        Value::text(&figure.published),
        Value::text(shown),
        exactly,
        Value::text(figure.lies(ours)),
    ]
}

/// The reserved bytes of each allocator divided by the requested peak.
fn all_pools(site: &Site<'_>) -> Option<Table> {
    let held = |case: &Case| case.held().into_iter().map(|(label, _)| label);
    let mut contenders: Vec<String> = site.replays.simulated().flat_map(held).collect();
    contenders.sort_unstable();
    contenders.dedup();
    let mut workloads: Vec<&WorkloadKey> =
        site.replays.simulated().map(|case| &case.row().workload).collect();
    workloads.dedup();
    let mut table = Table::named(
        "memory-by-allocator",
        "The most that each allocator reserved over the most that was requested at once, less 1; bytes in the remark of \
         each field. Of profile-guided: what it settles at, and apart what it took with its first propagation, which a \
         pool serves. A cross: it did not serve all requests.",
        &[("workload", "Workload")],
    );
    table.turned = true;
    table.columns.extend(contenders.iter().map(|key| Column { key: key.clone(), title: key.clone() }));
    for workload in workloads {
        let of = |contender: &String| {
            let mut cases = site.replays.simulated().filter(|case| *case.workload() == **workload);
            Value::or_missing(cases.find_map(|case| {
                let (_, held) = case.held().into_iter().find(|(label, _)| label == contender)?;
                Some(over(case, held))
            }))
        };
        let mut row = vec![site.link(workload)];
        row.extend(contenders.iter().map(of));
        table.push(row);
    }
    if table.rows.is_empty() { None } else { Some(table) }
}

fn over(case: &Case, held: u64) -> Value {
    let row = case.row();
    if row.performance.status != End::Complete || row.requested_peak == 0 {
        return Value::text("\u{2717}");
    }
    let share = real(held) / real(row.requested_peak) - 1.0;
    Value::Heat(share.max(0.0), format!("{} bytes", crate::format::count(held)))
}

/// Replays with a memory limit.
fn limited(site: &Site<'_>) -> Table {
    let mut table = Table::named(
        "memory-by-capacity",
        "Allocators on a device of limited memory: whether all requests were served.",
        &[
            ("workload", "Workload"),
            ("allocator", "Allocator"),
            ("device", "Device"),
            ("capacity_bytes", "Capacity"),
            ("status", "Status"),
            ("reserved_bytes", "Reserved"),
            ("device_allocations", "Calls to the device"),
            ("reason", "Remark"),
        ],
    );
    for case in &site.replays.cases {
        let row = case.row();
        let Some(capacity) = row.capacity else { continue };
        table.push(vec![
            Value::text(case.workload()),
            Value::text(&case.series.label),
            Value::text(case.place().name()),
            Value::Bytes(capacity),
            Value::text(row.performance.status.name()),
            Value::Bytes(row.performance.reserved_peak),
            Value::Count(row.performance.device_allocations),
            Value::text(&row.performance.reason),
        ]);
    }
    table
}

/// Reserved bytes on real memory, by the allocator's own count and by that of the device or the system.
fn physical(site: &Site<'_>) -> Table {
    let mut table = Table::named(
        "memory-physical",
        "On real memory, of all threads together: the most that was reserved by the contender's own count, and the most \
         that the process or the device had more than before by theirs. Where no byte is touched, the system gives no pages.",
        &[
            ("workload", "Workload"),
            ("contender", "Contender"),
            ("device", "Device"),
            ("threads", "Threads"),
            ("requested_bytes", "Requested at once"),
            ("reserved_bytes", "Reserved"),
            ("used_bytes", "In use"),
            ("physical_bytes", "Physical"),
            ("device_allocations", "Calls for memory"),
        ],
    );
    for case in site.replays.cases.iter().filter(|case| case.row().device != "simulated") {
        let row = case.row();
        table.push(vec![
            Value::text(case.workload()),
            Value::text(&case.series.label),
            Value::text(case.place().name()),
            Value::Count(u64::from(row.threads)),
            Value::Bytes(row.requested_peak * u64::from(row.threads)),
            Value::Bytes(row.performance.reserved_peak),
            Value::or_missing(row.performance.used_peak.map(Value::Bytes)),
            Value::or_missing(row.performance.physical_peak.map(Value::Bytes)),
            Value::Count(row.performance.device_allocations),
        ]);
    }
    table
}
